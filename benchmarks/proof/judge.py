"""The judge, who holds what people were shown against what they asked and what was claimed of it.

It knows nothing of who answers. Everything that it is given was written down by the providers and
the pages, but the claims: what the contestant says became of each message. A claim excuses (a
message that is said to be uncertain may be missing, may be there, and may have come behind others:
a request that was under way arrives when it arrives); it never vouches: a message that is said to
be answered and that nobody was shown is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.proof.errands import Errand, Fails, answered


class Claim(StrEnum):
    """A contestant's word on a message, as far as that excuses anything."""

    UNCERTAIN = "uncertain"
    """It may have arrived: the person or an operator was told so."""
    APOLOGISED = "apologised"
    """It was given up, and the person was told so."""
    BY_HAND = "by hand"
    """An operator answered or closed it."""


class Outcome(StrEnum):
    """The end of a message: each has one."""

    ANSWERED = "answered, once"
    ARRIVED = "uncertain, and had arrived"
    LATE = "uncertain, and arrived behind a later answer"
    MISSING = "uncertain, and had not arrived"
    IN_VAIN = "apologised for, since their agent failed each time"
    NEEDLESS = "apologised for without need"
    BY_HAND = "answered or closed by an operator"
    LOST = "lost"


UNCERTAIN = (Outcome.ARRIVED, Outcome.LATE, Outcome.MISSING)


class Wrong(StrEnum):
    """Things that no message may meet."""

    LOST = "lost"
    DOUBLED = "doubled"
    ORDER = "out of order"
    MISLED = "misled"
    """Somebody was shown what is not so: an apology beside the answer, another's answer, a page
    whose events had a gap."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message that was taken, in the order of its chat."""

    chat: str
    errand: Errand


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    wrong: Wrong
    name: str
    why: str = ""
    beside: Sequence[str] = ()
    """Other messages that it has to do with."""


@dataclass
class Verdict:
    """The outcomes of all messages, and what is wrong."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return self.outcomes.total()

    @property
    def uncertain(self) -> int:
        return sum(self.outcomes[one] for one in UNCERTAIN)

    def wrong(self, wrong: Wrong) -> int:
        """The number of findings of this kind."""
        return sum(one.wrong is wrong for one in self.findings)

    def add(self, wrong: Wrong, name: str, why: str = "", *beside: str) -> None:
        self.findings.append(Finding(wrong, name, why, beside))


def judge(
    asked: Sequence[Asked],
    shown: Mapping[str, Sequence[str]],
    claims: Mapping[str, Claim],
    by_hand: Collection[str] = (),
) -> Verdict:
    """Hold every message against what its chat was shown, in order. `by_hand` are those that an
    operator had answered anew: they come when they come."""
    verdict = Verdict()
    chats: dict[str, list[Errand]] = {}
    for one in asked:
        chats.setdefault(one.chat, []).append(one.errand)
    for chat, texts in shown.items():
        parts = [said for text in texts for said in answered(text)]
        times = Counter(parts)
        errands = chats.pop(chat, [])
        behind = _behind(errands, [said for said in parts if said[0] not in by_hand])
        late = {part.name for part in behind}
        for errand in errands:
            claim = claims.get(errand.name)
            _judge_one(verdict, errand, times, claim, late=errand.name in late)
        for part in behind:
            if claims.get(part.name) is not Claim.UNCERTAIN:
                why = f"part {part.number}, behind {part.before}"
                verdict.add(Wrong.ORDER, part.name, why, part.before)
        known = {errand.name for errand in errands}
        for name, _ in times:
            if name not in known:
                verdict.add(Wrong.MISLED, name, f"shown in {chat}, which never asked")
    for errands in chats.values():
        for errand in errands:
            _judge_one(verdict, errand, Counter(), claims.get(errand.name))
    return verdict


def _judge_one(
    verdict: Verdict,
    errand: Errand,
    times: Counter[tuple[str, int]],
    claim: Claim | None,
    *,
    late: bool = False,
) -> None:
    seen = [times[errand.name, part] for part in range(1, errand.parts + 1)]
    whole = all(seen)
    if max(seen) > 1:
        verdict.add(Wrong.DOUBLED, errand.name, f"{claim or 'no claim'}, shown {seen} times")
    if claim is Claim.APOLOGISED and any(seen):
        verdict.add(Wrong.MISLED, errand.name, "was shown its answer, and an apology")
    outcome = _outcome(errand, claim, whole=whole, late=late)
    verdict.outcomes[outcome] += 1
    if outcome is Outcome.LOST:
        verdict.add(Wrong.LOST, errand.name, f"{claim or 'no claim'}, shown {seen} times")


def _outcome(errand: Errand, claim: Claim | None, *, whole: bool, late: bool) -> Outcome:
    match claim:
        case Claim.UNCERTAIN if whole:
            return Outcome.LATE if late else Outcome.ARRIVED
        case Claim.UNCERTAIN:
            return Outcome.MISSING
        case Claim.BY_HAND:
            return Outcome.BY_HAND
        case Claim.APOLOGISED:
            return Outcome.IN_VAIN if errand.fails is Fails.ALWAYS else Outcome.NEEDLESS
        case None:
            return Outcome.ANSWERED if whole else Outcome.LOST


@dataclass(frozen=True, slots=True)
class _Behind:
    """A part that was shown behind one of message `before`, which belongs behind it."""

    name: str
    number: int
    before: str


def _behind(errands: Sequence[Errand], parts: Sequence[tuple[str, int]]) -> Sequence[_Behind]:
    """Each part that was first shown behind one that belongs behind it."""
    places = {errand.name: place for place, errand in enumerate(errands)}
    found = []
    last = (-1, 0)
    for name, part in dict.fromkeys(parts):
        if name not in places:
            continue
        key = places[name], part
        if key < last:
            found.append(_Behind(name, part, errands[last[0]].name))
        last = max(last, key)
    return found
