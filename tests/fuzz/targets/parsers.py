"""Parsers by themselves: the platforms' posts, tokens, an agent's answers, rules of time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

from bot.agents.http.contract import HttpAnswer, asked_for_person, read_answer
from bot.agents.http.contract import retry_after as asked_to_wait
from bot.domain.delivery import DeliveryStatus
from bot.domain.errors import AgentFailed, GiveUp, ReminderRefused, Retry
from bot.domain.message import REQUEST_ID, Edited, Event, Inbound, PayloadError
from bot.schedule import CronCalendar
from channels.telegram.parse import parse as parse_update
from channels.web.access.identity import Identity, NotIdentified, identify
from channels.web.access.signed import NotSigned, sign, verified
from channels.whatsapp.parse import parse as parse_form
from channels.whatsapp.parse import parse_status
from channels.whatsapp_cloud.envelope import parse as parse_body
from channels.whatsapp_common.errors import retry_after_seconds
from tests.channels.telegram.kit import ME
from tests.fakes.meta.payloads import NUMBER
from tests.fakes.twilio.server import SENDER
from tests.fuzz import corpus
from tests.fuzz.engine import Target
from tests.fuzz.mutations import (
    damaged_bytes,
    damaged_document,
    damaged_pairs,
    strange_text,
)

LARGEST = 1_000_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(), max_size=12),
        st.sampled_from([0, -1, 2**63, 2**64, 10**400, "\ud800", "\x00", ME.id, NUMBER]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(
                st.text(max_size=5),
                st.sampled_from(
                    [
                        *("message", "chat", "id", "from", "text", "message_id", "entities"),
                        *("entry", "changes", "value", "messages", "statuses", "type", "body"),
                        *("contacts", "photo", "document", "reply_to_message", "rich_message"),
                    ]
                ),
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=25,
)


def storable(value: object) -> bool:
    """Tell whether every text within a value is one that any database takes."""
    match value:
        case str():
            return _UNSTORABLE.search(value) is None
        case Mapping():
            return all(storable(k) and storable(v) for k, v in value.items())
        case list() | tuple() | set() | frozenset():
            return all(map(storable, value))
        case _ if hasattr(value, "__dataclass_fields__"):
            return all(storable(getattr(value, n)) for n in value.__dataclass_fields__)
        case _:
            return True


def _good(events: Sequence[Event]) -> str:
    """The kind of the first event. Every one must be storable, and named as a request can be."""
    for event in events:
        assert storable(event), event
        message = event.message if isinstance(event, Edited) else event
        if isinstance(message, Inbound):
            assert REQUEST_ID.fullmatch(message.request_id), message.request_id
    return type(events[0]).__name__ if events else "nothing"


def _update(raw: bytes) -> str:
    try:
        update = json.loads(raw)
    except (ValueError, RecursionError):
        return "no JSON"
    return _update_value(update)


def _update_value(update: Any) -> str:
    try:
        return _good(parse_update(update, ME, channel_posts=True))
    except PayloadError:
        return "refused"


def _form(pairs: Sequence[tuple[str, str]]) -> str:
    try:
        return _good(parse_form(dict(pairs), SENDER))
    except PayloadError:
        return "refused"


class Callback(NamedTuple):
    """A status as it comes: its form, and the query of its URL."""

    form: Mapping[str, str]
    query: Mapping[str, str]


def _callback(chance: Random) -> Callback:
    query = [("r", "7"), ("a", "1"), ("t", "1800000000")]
    form = damaged_pairs(chance, chance.choice(corpus.status_forms()))
    return Callback(dict(form), dict(damaged_pairs(chance, query)))


def _status(callback: Callback) -> str:
    try:
        status = parse_status(*callback)
    except PayloadError:
        return "refused"
    return _good_status(status)


def _good_status(status: DeliveryStatus) -> str:
    assert storable(status), status
    assert len(status.receipt) < 600
    assert max(status.part, status.attempt) < 2**63
    assert re.fullmatch("[0-9]{0,9}", status.code)
    return "none" if status.state is None else status.state.value


def _body(raw: bytes) -> str:
    payloads = parse_body(raw, [NUMBER])
    assert payloads
    for payload in payloads:
        assert storable((payload.text, payload.error, payload.account))
        assert payload.error or payload.events or payload.status, payload
        if payload.status is not None:
            _good_status(payload.status)
        _good(payload.events)
    return "dead letter" if any(payload.error for payload in payloads) else "read"


_SECRET = "a secret of thirty-two bytes or more, for tokens"


def signed(payload: bytes, secret: str) -> str:
    """A token of any payload, with a good signature."""
    head = b'{"typ":"JWT","alg":"HS256"}'
    parts = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in (head, payload))
    made = hmac.new(secret.encode(), parts, hashlib.sha256).digest()
    return (parts + b"." + base64.urlsafe_b64encode(made).rstrip(b"=")).decode()


def _claims(chance: Random) -> str:
    claims = {"aud": "x", "sub": "u1", "exp": 1_800_003_600, "name": "Ada", "iat": 1, "nbf": 0}
    if chance.random() < 0.5:
        return signed(damaged_document(chance, [claims], 4_000), _SECRET)
    whole = sign(claims, _SECRET).encode()
    return damaged_bytes(chance, whole, [whole]).decode("latin-1")


def _token(token: str) -> str:
    try:
        verified(token, [_SECRET])
    except NotSigned:
        return "not signed"
    try:
        who = identify(token, [_SECRET], 1_800_000_000.0)
    except NotIdentified:
        return "not named"
    assert isinstance(who, Identity)
    assert storable(who)
    return "read"


class AgentSaid(NamedTuple):
    """An answer of an agent's server."""

    status: int
    body: bytes
    retry_after: str


_DATES = ("Fri, 15 Jan 2027 09:00:00 GMT", "Fri, 15 Jan 2027 09:00:00 +0000", "120", "1.5")


def _date(chance: Random) -> str:
    whole = chance.choice(_DATES).encode()
    made = damaged_bytes(chance, whole, [d.encode() for d in _DATES])
    return made[:6_000].decode("latin-1")


def _agent_said(chance: Random) -> AgentSaid:
    body = damaged_document(chance, corpus.provider_answers(), LARGEST)
    return AgentSaid(chance.choice((200, 200, 200, 422, 429, 503, 500, 302)), body, _date(chance))


def _agents_answer(said: AgentSaid) -> str:
    answer = HttpAnswer(*said)
    try:
        reply = read_answer(answer, 1_800_000_000.0)
        reason = asked_for_person(answer)
    except (AgentFailed, GiveUp, Retry) as told:
        assert storable(str(told))
        return type(told).__name__
    assert storable((reply, reason))
    return "a reply"


def _wait(header: str) -> str:
    """Both readers of Retry-After give seconds that can be waited for, or nothing."""
    waits = (asked_to_wait(header, 1_800_000_000.0), retry_after_seconds(header, 1_800_000_000.0))
    assert all(wait is None or 0 <= wait < 1e12 for wait in waits), waits
    return "nothing" if waits == (None, None) else "a wait"


_WHENS = (
    "2027-01-15 09:00",
    "in 20 minutes",
    "0 9 * * mon-fri",
    "*/30 8-17 1,15 * *",
    "0 0 31 2 *",
    "59 23 * * sun-6",
)


class When(NamedTuple):
    """A time as a model writes it, and a zone."""

    when: str
    zone: str


def _when(chance: Random) -> When:
    whole = chance.choice(_WHENS)
    if chance.random() < 0.5:
        fields = [
            chance.choice((*f"{whole} L 9999 */0 1-99 -1 mon#9 last".split(), "*"))
            for _ in range(5)
        ]
        whole = " ".join(fields)
    else:
        raw = damaged_bytes(chance, whole.encode(), [w.encode() for w in _WHENS])
        whole = raw.decode("utf-8", "replace")[:1_000]
    zones = (
        "UTC",
        "Europe/Berlin",
        "Pacific/Apia",
        "../../etc/passwd",
        "\x00",
        strange_text(chance),
    )
    return When(whole, chance.choice(zones))


_CALENDAR = CronCalendar()


def _reminder(given: When) -> str:
    now = 1_800_000_000.0
    try:
        schedule = _CALENDAR.read(given.when, given.zone, now)
    except ReminderRefused as refused:
        assert len(str(refused)) < 3_000
        return "refused"
    assert schedule.due_at > now
    _CALENDAR.following(schedule, schedule.due_at)
    return "read"


def targets() -> Sequence[Target]:
    """All that is read without a database."""
    return [
        Target(
            "parse: telegram",
            90,
            _update,
            lambda chance: damaged_document(chance, corpus.updates(), LARGEST),
        ),
        Target("parse: telegram, any JSON", 30, _update_value, like=JSON),
        Target(
            "parse: twilio",
            70,
            _form,
            lambda chance: damaged_pairs(chance, chance.choice(corpus.forms())),
        ),
        Target("parse: twilio status", 30, _status, _callback),
        Target(
            "parse: meta",
            90,
            _body,
            lambda chance: damaged_document(chance, corpus.bodies(), 4 * LARGEST),
            most_seconds=6.0,
        ),
        Target(
            "parse: meta, any JSON",
            30,
            lambda value: _body(json.dumps({"entry": [{"changes": [{"value": value}]}]}).encode()),
            like=JSON,
        ),
        Target("parse: tokens", 40, _token, _claims),
        Target("parse: an agent's answer", 60, _agents_answer, _agent_said),
        Target("parse: Retry-After", 30, _wait, _date),
        Target("parse: reminders", 20, _reminder, _when),
        Target(
            "parse: any text as a reminder",
            5,
            _reminder,
            like=st.builds(When, st.text(), st.just("UTC")),
        ),
    ]
