"""The storm as one table: for the terminal, and for docs/proof.md."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.job import quantile
from benchmarks.proof.judge import Outcome, Wrong
from benchmarks.proof.plan import Kind
from benchmarks.proof.storm import Found
from tests.e2e.forking import ROOT

PAGE = ROOT / "docs" / "proof.md"
MESSAGES, KILLS = 20_000, 1_000
"""As many as a published run has at least."""
UNCERTAIN, NEEDLESS = 0.01, 0.001
"""Of all messages, at most."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a figure a storm, that of all of them, and what it must be."""

    name: str
    cells: Sequence[str]
    all: str
    must: str = ""


def ready_to_show(found: Mapping[str, Found]) -> Sequence[Row]:
    """Every figure, in the order in which somebody asks for it."""
    return [*_counts(found), *_shares(found), *_costs(found)]


def _counts(found: Mapping[str, Found]) -> Iterator[Row]:
    def count(name: str, of: Callable[[Found], int], must: str = "") -> Row:
        numbers = [of(one) for one in found.values()]
        return Row(name, [f"{n:,}" for n in numbers], f"{sum(numbers):,}", must)

    yield count("messages", lambda f: f.verdict.messages)
    yield count("deliveries of them, with those that nobody took", lambda f: f.tries)
    yield count("sends of the answers, with those that failed", lambda f: f.sends)
    for kind in Kind:
        if any(one.befell[kind] for one in found.values()):
            yield count(kind.value, lambda f, k=kind: f.befell[k])  # type: ignore[misc]  # its default is of this turn
    yield count("kills that hit runs at work", lambda f: f.hit_runs)
    yield count("sends under way in a process that was killed", lambda f: f.hit_sends)
    yield count("processes started", lambda f: f.record.starts)
    yield count("processes that ended by themselves", _ended_by_themselves)
    yield count("processes that did not leave in time", lambda f: f.record.left_too_late)
    yield count("sends that a provider spoilt", lambda f: f.spoilt.total())
    for wrong in Wrong:
        yield count(f"**{wrong}**", lambda f, w=wrong: f.verdict.wrong(w), "0")  # type: ignore[misc]  # as above
    yield count("calls that a platform does not allow", lambda f: len(f.violations), "0")
    for outcome in Outcome:
        if outcome is not Outcome.LOST:
            yield count(outcome.value, lambda f, o=outcome: f.verdict.outcomes[o])  # type: ignore[misc]  # as above


def _ended_by_themselves(found: Found) -> int:
    return len(found.record.last_words)


def _shares(found: Mapping[str, Found]) -> Iterator[Row]:
    def share(name: str, of: Callable[[Found], int], most: float) -> Row:
        pairs = [(of(one), one.verdict.messages) for one in found.values()]
        parts = [f"{100 * n / (of_all or 1):.2f} %" for n, of_all in pairs]
        everything = sum(n for n, _ in pairs) / (sum(of_all for _, of_all in pairs) or 1)
        return Row(name, parts, f"{100 * everything:.2f} %", f"under {100 * most:g} %")

    yield share("**uncertain**, of all messages", lambda f: f.verdict.uncertain, UNCERTAIN)
    needless = Outcome.NEEDLESS
    yield share(
        "**apologised for without need**, of all messages",
        lambda f: f.verdict.outcomes[needless],
        NEEDLESS,
    )


def _costs(found: Mapping[str, Found]) -> Iterator[Row]:
    for rank in (0.5, 0.99):
        cells = [f"{quantile(one.takeovers, rank):.2f}" for one in found.values()]
        everybody = [t for one in found.values() for t in one.takeovers]
        name = f"seconds from a death until another process goes on, p{100 * rank:.0f}"
        yield Row(name, cells, f"{quantile(everybody, rank):.2f}")
    most = [max((size for _, size in one.memory), default=0) for one in found.values()]
    yield Row("megabytes of the largest process", [_mega(m) for m in most], _mega(max(most)))
    grown = [one.stored[1] - one.stored[0] for one in found.values()]
    each = [g / (one.verdict.messages or 1) for g, one in zip(grown, found.values(), strict=True)]
    yield Row("megabytes by which the database grew", [_mega(g) for g in grown], _mega(sum(grown)))
    yield Row("bytes of it a message", [f"{e:,.0f}" for e in each], "")
    settled = [one.settled_after for one in found.values()]
    yield Row("seconds until all was settled", [f"{s:.0f}" for s in settled], f"{max(settled):.0f}")


def _mega(size: float) -> str:
    return f"{size / 1e6:.0f}"


def holds(found: Mapping[str, Found], *, whole: bool) -> Sequence[str]:
    """Everything that does not hold of what must. `whole`: it is long enough to be published."""
    verdicts = [one.verdict for one in found.values()]
    messages = sum(v.messages for v in verdicts)
    problems = [f"{n} {wrong}" for wrong in Wrong if (n := sum(v.wrong(wrong) for v in verdicts))]
    problems += [what for one in found.values() for what in one.violations[:10]]
    problems += [f"not settled: {what}" for one in found.values() for what in one.left[:10]]
    problems += [
        f"{one.never_taken} runs were never taken" for one in found.values() if one.never_taken
    ]
    uncertain = sum(v.uncertain for v in verdicts)
    if uncertain >= UNCERTAIN * messages:
        problems.append(f"{uncertain} uncertain of {messages}")
    needless = sum(v.outcomes[Outcome.NEEDLESS] for v in verdicts)
    if needless and needless >= NEEDLESS * messages:
        problems.append(f"{needless} apologised for without need of {messages}")
    kills = sum(one.befell[Kind.KILL] for one in found.values())
    if whole and (kills < KILLS or messages < MESSAGES):
        problems.append(f"only {kills} kills and {messages} messages")
    return problems


def printed(found: Mapping[str, Found]) -> str:
    """The table for a terminal."""
    rows = [Row("", [*found], "together", "must be"), *ready_to_show(found)]
    cells = [[row.name.replace("**", ""), *row.cells, row.all, row.must] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = []
    for name, *figures in cells:
        shown = [f"{f:>{w}}" for f, w in zip(figures[:-1], widths[1:], strict=False)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *shown, figures[-1]]).rstrip())
    return "\n".join(lines)


def markdown(found: Mapping[str, Found]) -> str:
    """The same for a page."""
    heads = ["", *found, "together", "must be"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * (len(found) + 1)}---|"]
    rows = ready_to_show(found)
    lines += [f"| {' | '.join([row.name, *row.cells, row.all, row.must])} |" for row in rows]
    return "\n".join(lines)


def where() -> str:
    """The day, the machine and the commit, without a name of either's owner."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="ascii"))
    cores = len(os.sched_getaffinity(0))
    gigabytes = int(memory[1]) / 1e6 if memory else 0.0
    kind = model[1].strip() if model else platform.machine()
    day = datetime.now(UTC).date().isoformat()
    return (
        f"{day}, {cores} cores of {kind}, {gigabytes:.0f} GB of memory, "
        f"Python {platform.python_version()}, commit {_commit()}"
    )


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short=10", "HEAD") or "unknown") + changed


def write(section: str, text: str) -> None:
    """Put a text into its place on docs/proof.md, between the marks of its section."""
    begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    page = PAGE.read_text(encoding="utf-8")
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not (found and ended):
        raise ValueError(f"{PAGE.name} has no place for {section}")
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")
