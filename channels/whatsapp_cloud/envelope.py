"""A body that Meta posted, taken apart. Pure.

It may hold messages and statuses of several numbers. Each is told by itself, with its own piece of
the body: one that can't be read costs none of the others, and is kept as a dead letter.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from bot.domain.message import (
    Edited,
    Event,
    Ignored,
    Inbound,
    PayloadError,
    Reported,
    Revoked,
    clean,
    one_line,
)
from bot.domain.plugin import Payload
from channels.raw import Raw, joined, obj, string, title
from channels.whatsapp_cloud.content import number
from channels.whatsapp_cloud.fields import event_of_field
from channels.whatsapp_cloud.parse import Receiver, answer_of, events_of, status_of

_OURS = "whatsapp_business_account"
MESSAGES = "messages"
_KINDS = ("messages", "statuses", "errors", "message_echoes")
_MEMBERS = {
    MESSAGES: ("messages", "statuses", "errors"),
    "smb_message_echoes": ("message_echoes", "errors"),
}
"""By the field of a change, the arrays whose members are told one by one."""
_UPDATE, _ENTRY, _AROUND = {"object"}, {"id", "time"}, {"messaging_product", "metadata", "contacts"}
"""The fields that stand around them. What else does is kept with the first alone: each of a
thousand messages would bring it along."""

_MARK = "\ufeff"
"""Some writers begin with it, and no reader of JSON takes it."""
_MOST_DIGITS = 1000
"""Python refuses a body for a number of more than 4,300."""
_MOST_TOLD = 10_000
"""Messages, statuses and other things that one body may tell: Meta puts up to 1,000 into one, and
each is a transaction of ours."""
_TOO_MANY = f"more than {_MOST_TOLD} things in one body"
_TIMES, _BESIDE = 8, 1024 * _MOST_TOLD
"""Each piece has a copy of what stands around it: all of them may have so many times the length of
the body, and these characters more. Meta's own surroundings are some 400 long."""
_TOO_LARGE = "its pieces would be many times as large as the body"
_DEEPEST = 64
"""Arrays and objects within each other; Meta's own are some 15."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[][{}]', re.DOTALL)
"""A string, or where an array or object begins or ends."""


def parse(body: bytes, numbers: Collection[str]) -> Sequence[Payload]:
    """All that a verified body tells, messages in the order in which they were written. `numbers`
    are the ids of ours: what names none is for the only one."""
    text = clean(body.decode("utf-8", "replace").removeprefix(_MARK))
    lost: list[str] = []
    try:
        update = _read(text, lost)
        told: list[Payload] = []
        left = _TIMES * len(text) + _BESIDE
        for change in _changes(update, text):
            for payload in change.payloads(numbers):
                told.append(payload)
                left -= len(payload.text)
                if left < 0:
                    return [Payload(text, error=_TOO_LARGE)]
            if len(told) > _MOST_TOLD:
                return [Payload(text, error=_TOO_MANY)]
    except (ValueError, RecursionError) as error:
        return [Payload(text, error=f"the body can't be read: {type(error).__name__}")]
    if lost:
        told.append(Payload(text, error=lost[0]))
    return sorted(told, key=_order) or [Payload(text, error="there is nothing in the body")]


def _read(text: str, lost: list[str]) -> object:
    """The value of a body; `lost` gets what of it was not read. Raises ValueError."""

    def loads(text: str) -> object:
        return json.loads(
            text,
            strict=False,
            parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else digits,
            object_pairs_hook=lambda pairs: _object(pairs, lost),
        )

    try:
        return loads(text)
    except RecursionError:
        lost.insert(0, f"more than {_DEEPEST} deep: what is in there was not read")
        return loads(_shallow(text))


def _shallow(text: str) -> str:
    """A body with `null` for all that is nested too deep."""
    kept: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth == _DEEPEST + 1:
                kept += text[start : token.start()], "null"
        elif token[0] in ("]", "}"):
            depth -= 1
            if depth == _DEEPEST:
                start = token.end()
    return "".join([*kept, text[start:] if depth <= _DEEPEST else ""])


def _object(pairs: Sequence[tuple[str, object]], lost: list[str]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        lost.append(f"{one_line(twice)!r} stands twice in an object: the last one was read")
    return found


def _order(payload: Payload) -> tuple[float, int]:
    """Messages by when they were written, in epoch seconds, what is done to one behind it, and
    all else first."""
    match payload.events:
        case (Inbound(sent_at=float(at)),):
            return at, 0
        case (Edited(edited_at=at),):
            return at, 1
        case (Revoked(at=at),):
            return at, 2
        case _:
            return 0.0, 0


def _changes(update: object, whole: str) -> Iterator[_Change]:
    for place, entry in enumerate(_members(update, "entry")):
        for nth, change in enumerate(_members(entry, "changes")):
            alone = _lean(update, _UPDATE) if place or nth else update
            yield _Change(whole, alone, _lean(entry, _ENTRY) if nth else entry, change)


def _lean(raw: object, names: Collection[str]) -> object:
    """An object with these fields alone; anything else as it is."""
    return {n: said for n, said in raw.items() if n in names} if isinstance(raw, Mapping) else raw


def _members(raw: object, key: str) -> Sequence[object]:
    """The members of an array in an object. What should be one counts as its only member."""
    value = raw.get(key) if isinstance(raw, Mapping) else raw
    if value is None:
        return ()
    return value if isinstance(value, list) else [value]


def _with_only(raw: object, key: str, member: object) -> object:
    """The inverse of `_members`, with this member alone."""
    if isinstance(raw, Mapping):
        return {**raw, key: [member]}
    return [member] if isinstance(raw, list) else member


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of a body, with what stands around it."""

    whole: str
    update: object
    entry: object
    change: object

    def payloads(self, numbers: Collection[str]) -> Iterator[Payload]:
        """All that it tells, one after the other: whoever has enough stops."""
        update, change = self.update, self.change
        if not isinstance(update, Mapping) or not isinstance(change, Mapping):
            yield self._dead("a change that is no object")
            return
        if update.get("object") != _OURS:
            yield self._one(Ignored("not about WhatsApp"))
            return
        value, field = obj(change, "value"), string(change, "field")
        kinds = _MEMBERS.get(field)
        if kinds is None:
            yield self._one(event_of_field(field, value))
            return
        receiver = Receiver.of(value, numbers)
        if receiver is None:
            yield self._dead("it does not say for which number it is")
            return
        if receiver.number not in numbers and (field != MESSAGES or MESSAGES not in value):
            yield self._one(Ignored("a status of a number that is not configured"))
            return
        members = [(kind, member) for kind in kinds for member in _members(value, kind)]
        if len(members) > _MOST_TOLD:
            yield self._dead(_TOO_MANY)
            return
        if not members:
            yield self._one(Ignored("nothing in it"))
            return
        rest = {"field": field, "value": _lean(value, {*_AROUND, *_KINDS})}
        lean = replace(self, update=_lean(update, _UPDATE), entry=_lean(self.entry, _ENTRY))
        for by, around, (kind, member) in zip(
            chain([self], repeat(lean)), chain([change], repeat(rest)), members, strict=False
        ):
            told = by.member(around, receiver, kind, member)
            yield replace(told, account=receiver.number)

    def _one(self, event: Event) -> Payload:
        return Payload(self._text(self.change), (event,))

    def _dead(self, error: str) -> Payload:
        return Payload(self._text(self.change), error=error)

    def _text(self, change: object) -> str:
        """The body with this change alone."""
        entry = _with_only(self.entry, "changes", change)
        update = _with_only(self.update, "entry", entry)
        try:
            return json.dumps(update, separators=(",", ":"))
        except RecursionError:
            return self.whole

    def member(self, around: Raw, receiver: Receiver, kind: str, member: object) -> Payload:
        """One message, status or error."""
        value = obj(around, "value")
        alone = {name: said for name, said in value.items() if name not in _KINDS}
        if "contacts" in alone:
            alone["contacts"] = [receiver.contact_of(member)] if isinstance(member, Mapping) else []
        change = {**around, "value": {**alone, kind: [member]}}
        text = self._text(change)
        if not isinstance(member, Mapping):
            return Payload(text, error=f"of {kind}: one that is no object")
        if kind == "statuses":
            return status_of(member, text)
        if kind == "errors":
            said = joined(number(member, "code"), title(member, "title"), by=": ")
            return Payload(text, (Reported(f"an error {said}"),))
        try:
            if kind == "message_echoes":
                return Payload(text, (answer_of(member),))
            return Payload(text, events_of(member, receiver))
        except PayloadError as error:
            return Payload(text, error=str(error))
