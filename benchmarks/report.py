"""Figures as a person reads them: lines while it is measured, one table at the end, the page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

Figures = dict[str, Any]
KINDS = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


def show(what: str, figure: str) -> None:
    """Print one line of figures, at once."""
    print(f"{what:<58} {figure}", flush=True)


def progress(line: str) -> None:
    """Tell whoever waits what was measured last."""
    print(f"  {line}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `floor` is what the bare SQL makes of the same, `must` is what it has to be."""

    name: str
    ours: str
    floor: str = ""
    must: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.name, self.ours, self.floor, self.must


HEAD = Row("", "Answerback", "floor", "must be")


def table(figures: Figures) -> None:
    """Print every figure beside the floor, and beside what it must be."""
    rows = [HEAD, *(row for part in SECTIONS for row in rows_of(part, figures))]
    widths = [max(len(row.cells[column]) for row in rows) for column in range(3)]
    print(f"{figures['command']}: {figures['machine']}")
    for row in rows:
        ours, floor = (f"{c:>{w}}" for c, w in zip(row.cells[1:3], widths[1:], strict=True))
        print(f"{row.name:<{widths[0]}}  {ours}  {floor}  {row.must}".rstrip())


def page(figures: Figures, picture: str) -> str:
    """docs/benchmarks.md."""
    lines = [_INTRODUCTION.format(**figures), f"![Throughput, latency, cost]({picture})"]
    for part, (title, rows_from) in SECTIONS.items():
        if rows := list(rows_of(part, figures)):
            lines += ["", f"## {title}", "", cleandoc(rows_from.__doc__ or ""), ""]
            lines += [
                f"`make bench ARGS='--only {part}'`",
                "",
                _markdown(HEAD),
                "|---|--:|--:|---|",
            ]
            lines += map(_markdown, rows)
    return "\n".join(lines) + "\n"


def _markdown(row: Row) -> str:
    return f"| {' | '.join(row.cells)} |"


def rows_of(part: str, figures: Figures) -> Iterator[Row]:
    """The rows of one part, none when it was not measured."""
    if part in figures:
        yield from SECTIONS[part][1](figures[part])


def _pipeline(found: Figures) -> Iterator[Row]:
    """5,000 messages of 500 chats, handed in by one process and answered by another (on SQLite by
    the same one), with an agent that takes no time. PostgreSQL waits for the disk, Redis is there.
    CPU counts every process, the servers too; SQLite's log counts the file behind it. The
    stages behind *taken* are by the moments in the rows, each of a statement's begin. Medians of
    three."""
    for kind, ours in found.items():
        must = _MUST.get(kind, {})
        yield _row(kind, "messages a second", ours, "rate")
        yield _share(kind, ours, must.get("ratio", ""))
        for key, name, digits in (
            ("cpu_ms", "ms of CPU a message, all processes", 2),
            ("commits", "commits a message", 2),
            ("wal_bytes", "bytes of log a message", 0),
            ("round_trips", "round trips a message", 1),
        ):
            yield _row(kind, name, ours, key, digits, must.get(key, ""))
        yield from _way_rows(kind, ours)


_MUST = {
    "postgresql": {
        "ratio": "at least 0.35",
        "cpu_ms": "at most 2",
        "commits": "at most 1.5",
        "wal_bytes": "at most 3,000",
        "round_trips": "at most 16",
    }
}


def _row(kind: str, name: str, ours: Figures, key: str, digits: int = 0, must: str = "") -> Row:
    """A figure beside the floor's."""
    own, floor = (f"{f[key]:,.{digits}f}" for f in (ours, ours["floor_figures"]))
    return Row(f"{KINDS[kind]}, {name}", own, floor, must)


def _share(kind: str, ours: Figures, must: str) -> Row:
    return Row(f"{KINDS[kind]}, share of the floor", f"{ours['ratio']:.2f}", "1", must)


def _spread_row(kind: str, what: str, ours: Figures) -> Row:
    own, floor = (_spread(figures, f"{what}_") for figures in (ours, ours["floor_figures"]))
    return Row(f"{KINDS[kind]}, {what} after, p50 / p99 ms", own, floor)


def _way_rows(kind: str, ours: Figures) -> Iterator[Row]:
    """The time until it was taken in, and the stages from there on, each after the one before."""
    yield _spread_row(kind, "taken", ours)
    for stage in ("claimed", "stored", "sent", "settled"):
        name = f"{KINDS[kind]}, {stage} after that, p50 / p99 ms"
        yield Row(name, _spread(ours, f"{stage}_"))


def _spread(figures: Figures, prefix: str = "") -> str:
    return f"{figures[f'{prefix}p50_ms']:.0f} / {figures[f'{prefix}p99_ms']:.0f}"


def _latency(found: Figures) -> Iterator[Row]:
    """The same at an even pace: from the hand-over to its acknowledgement, and to the answer."""
    for kind, ours in found.items():
        yield from _way_rows(kind, ours)
        yield _spread_row(kind, "answered", ours)


def _agents(found: Figures) -> Iterator[Row]:
    """The same with agents that take 200 ms, 200 of them together: 1,000 a second are possible."""
    for kind, ours in found.items():
        yield _row(kind, "messages a second", ours, "rate")
        yield _share(kind, ours, "at least 0.9")
        yield from _way_rows(kind, ours)


def _doorway(found: Figures) -> Iterator[Row]:
    """Webhooks of Telegram at two processes, over connections that stay open: 200 at once, and 50
    a second. Once while agents of up to 300 ms answer all of them, once at processes that only
    listen."""
    for name, figures in (("agents busy", found), ("listening only", found["idle"])):
        yield Row(f"{name}, 200 at once, p50 / p99 ms", _spread(figures), must="p99 under 250")
        yield Row(
            f"{name}, 50 a second, p50 / p99 ms", _spread(figures, "paced_"), must="p50 under 15"
        )
        refused = figures["refused"] + figures["paced_refused"]
        yield Row(f"{name}, refused", f"{refused}", must="0")


def _backlog(found: Figures) -> Iterator[Row]:
    """3,000 messages wait when workers start. Telegram allows an account 30 a second (the fake
    refuses what is more), WhatsApp 80."""
    for name, figures in found.items():
        if name == "of_allowed":
            continue
        yield Row(
            f"{name}, share of the allowed rate",
            f"{figures['of_allowed']:.2f}",
            must="at least 0.95",
        )
        for key, must in _BACKLOG_MUST.items():
            yield Row(f"{name}, {key.replace('_', ' ')}", f"{figures[key]}", must=must)
        yield Row(f"{name}, lost", f"{figures['waiting'] - figures['answered']}", must="0")
        yield Row(f"{name}, refused by the platform", f"{figures['refused']}")


_BACKLOG_MUST = {"most_claims": "at most 2", "out_of_order": "0", "doubled": "0", "notices": "0"}


def _flat(found: Figures) -> Iterator[Row]:
    """Medians with a database that grows. The messages come from ten people who have had all the
    answers so far. *reply* is the time from the acknowledgement to the answer, *claim* the same
    where a worker has to claim the run first, *settle* what follows the answer; a *look* is what a
    process asks by itself, or an operator. In the end, at the largest size, words are deleted as
    fast as that goes while the people write on."""
    for number, size in enumerate(found["sizes"]):
        yield Row(f"{number + 1}: {size}", "")
    for kind, title in KINDS.items():
        for name, figures in found[kind].items():
            costs = " / ".join(f"{cost:.1f}" for cost in figures["ms"])
            yield Row(f"{title}, {name}, ms at each size", costs)
        for name, waits in found["beside"][kind].items():
            longest = f"{_spread(waits)} / {waits['longest_ms']:.0f}"
            yield Row(f"{title}, intake, {_BESIDE[name]}, p50 / p99 / longest ms", longest)


_BESIDE = {
    "alone": "nothing beside",
    "forget": "a chat forgotten",
    "retention": "old words deleted",
}


def _turns(found: Figures) -> Iterator[Row]:
    """Turns of one process whose agents all wait, and are let go together."""
    for kind, figures in found.items():
        name = f"{KINDS[kind]}, {figures['in_flight']:,} in flight"
        yield Row(f"{name}, kB a turn", f"{figures['kb_a_turn']:.1f}")
        yield Row(f"{name}, renewal, p50 / p99 ms", _spread(figures, "renewal_"))
        yield Row(f"{name}, renewal, ms of CPU", f"{figures['renewal_cpu_ms']:.1f}")
        yield Row(f"{name}, s until all are answered", f"{figures['all_answered_s']:.1f}")


def _pages(found: Figures) -> Iterator[Row]:
    """Clients that follow a chat on a page, in one process: each its own, then all the same one,
    which has one turn. An answer's way from the agent's return to the screen has its storing and
    its sending in it."""
    name = f"{found['followers']:,} followers"
    yield Row(f"{name}, kB each", f"{found['kb_a_follower']:.1f}")
    yield Row(f"{name}, ms of CPU to begin each", f"{found['begin_ms_of_cpu']:.2f}")
    yield Row(f"{name}, share of a core while nothing happens", f"{found['idle_cpu']:.3f}")
    yield Row(f"{name}, s of CPU to tell all of a turn", f"{found['turn_to_all_s_of_cpu']:.2f}")
    yield Row(f"{name}, ms between the first and the last told", f"{found['spread_ms']:.0f}")
    for name, must in _TO_SCREEN.items():
        yield Row(f"an answer to the screen, {name}, p50 / p99 ms", _spread(found[name]), must=must)
    yield Row(
        "a question about a turn, ms of CPU with the database", f"{found['status']['cpu_ms']:.2f}"
    )


_TO_SCREEN = {
    "same process, Redis": "p50 under 50",
    "same process": "p50 under 50",
    "another process, Redis": "p50 under 50",
    "another process": "p50 under 1,000",
}


def _operator(found: Figures) -> Iterator[Row]:
    """The operator's page, each from the request to the whole of its answer, which is asked of the
    database every time. CPU counts the database, too."""
    yield Row(f"with {found['size']}", "")
    for kind, title in KINDS.items():
        for name, figures in found[kind].items():
            cost = f"{_spread(figures)} / {figures['cpu_ms']:.0f}"
            yield Row(f"{title}, {name}, p50 / p99 / ms of CPU", cost, must="p50 under 80")


def _start(found: Figures) -> Iterator[Row]:
    """`answerback serve` on a database that is there."""
    yield Row("s of CPU until ready", f"{found['cpu_s']:.2f}", must="under 1")
    yield Row("s until ready", f"{found['ready_s']:.2f}")


def _commands(found: Figures) -> Iterator[Row]:
    """Commands on a database of SQLite with one answered message: user and system time, the start
    of Python included, the least of five calls. Their output is no terminal's."""
    for kind, must in (("help", "under 0.25"), ("reading", "under 0.6")):
        for call, seconds in found[kind].items():
            yield Row(f"answerback {call}, s of CPU", f"{seconds:.2f}", must=must)


def _takeover(found: Figures) -> Iterator[Row]:
    """Until a turn begins in another process: for a new message, and after the end of the process
    that had begun it (a hand-over may come before that)."""
    for name, seconds in found.items():
        yield Row(f"{name}, s", f"{seconds:.2f}")


SECTIONS: dict[str, tuple[str, Callable[[Figures], Iterator[Row]]]] = {
    "pipeline": ("As many as are taken", _pipeline),
    "latency": ("Fifty a second", _latency),
    "agents_200ms": ("Agents that take 200 ms", _agents),
    "doorway": ("The doorway", _doorway),
    "backlog": ("A backlog", _backlog),
    "flat": ("Costs against size", _flat),
    "turns": ("Turns in flight", _turns),
    "pages": ("Pages", _pages),
    "operator": ("The operator's page", _operator),
    "start": ("Start", _start),
    "commands": ("Commands", _commands),
    "takeover": ("Takeover", _takeover),
}
"""The parts: a title, and the rows, whose docstring is the text above them."""

_INTRODUCTION = """# Benchmarks

What Answerback costs, beside the least SQL that does the same durable steps with the driver
alone (`benchmarks/floor.py`: insert unless known, claim in the order of the chat under a lease,
record the reply and the end), measured in the same run. Whatever says *floor* is that program's.

`{command}` wrote this page and its picture, on {machine}; everything ran there, the load included.
"""
