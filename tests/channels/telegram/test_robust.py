"""Whatever arrives: events or a payload error, and nothing that can't be stored."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.message import REQUEST_ID, Edited, Event, Inbound, PayloadError, clean
from channels.telegram.parse import parse
from channels.text import is_blank
from tests.channels.telegram.kit import ME, Json, samples

SAMPLES = samples()

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=6),
        st.sampled_from([0, -1, 1 << 62, 1 << 64, "\ud800", "\x00", ME.id]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a JSON value."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else []
    )
    return [p for key in keys for p in ((*path, key), *places(value[key], (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> Json:
    """A real update of which some fields are gone or something else."""
    update = copy.deepcopy(SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))])
    for _ in range(draw(st.integers(min_value=1, max_value=4))):
        found = places(update)
        if not found:
            break
        *where, last = draw(st.sampled_from(found))
        parent: Any = update
        for key in where:
            parent = parent[key]
        if draw(st.booleans()) and isinstance(parent, dict):
            del parent[last]
        else:
            parent[last] = draw(JSON)
    return update


def outcome(update: Any) -> tuple[Event, ...]:
    try:
        return parse(update, ME, channel_posts=True)
    except PayloadError:
        return ()


def strings(event: Inbound) -> list[str]:
    who, quoted = event.sender, event.quoted
    return [
        event.text,
        event.chat_name,
        event.button,
        event.callback_id,
        event.album,
        event.forwarded_from,
        event.command,
        event.command_args,
        who.id,
        who.name,
        who.username,
        who.language,
        *((quoted.text, quoted.provider_id) if quoted else ()),
        *(part for a in event.attachments for part in (a.ref, a.name, a.mime)),
    ]


@given(damaged())
def test_a_damaged_update_is_events_or_a_payload_error(update: Json) -> None:
    for event in outcome(update):
        whole = event.message if isinstance(event, Edited) else event
        if isinstance(whole, Inbound):
            assert REQUEST_ID.fullmatch(whole.request_id)
            assert not is_blank(whole.text)
            assert all(clean(text) == text for text in strings(whole))


@given(JSON)
def test_any_json_at_all_is_events_or_a_payload_error(value: Any) -> None:
    outcome(value)
    outcome({"message": value, "update_id": 1})
    outcome({"callback_query": value})
    outcome({"message": {"message_id": 1, "chat": {"id": 1}, "rich_message": value}})


def test_a_deeply_nested_rich_message_does_not_exhaust_the_stack() -> None:
    nested: Any = "deep"
    for _ in range(20_000):
        nested = {"type": "bold", "text": nested}
    (event,) = outcome({"message": {"message_id": 1, "chat": {"id": 1}, "rich_message": nested}})
    assert isinstance(event, Inbound)
    assert event.text == "deep"


def test_the_same_update_gives_the_same_events_whatever_the_order_of_its_fields() -> None:
    for update in SAMPLES.values():
        shuffled = json.loads(json.dumps(update, sort_keys=True))
        assert outcome(shuffled) == outcome(update)
