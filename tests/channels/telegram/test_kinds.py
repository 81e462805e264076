"""One update of every kind and content of the Bot API, made from its own description."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.message import (
    REQUEST_ID,
    Edited,
    Ignored,
    Inbound,
    InboundKind,
    Membership,
    Migrated,
)
from channels.telegram.content import BOOKKEEPING, content_of
from channels.telegram.parse import (
    ALLOWED_UPDATES,
    CHANNEL_UPDATES,
    SERVICE,
    UNSERVED_UPDATES,
    parse,
)
from channels.text import is_blank
from tests.channels.telegram.kit import ME, Json
from tests.fakes.telegram import spec

_found = spec.load()
pytestmark = pytest.mark.skipif(
    _found is None, reason="the description of the Bot API 10.1 is not beside the project"
)
API = _found or spec.Spec({}, {}, {})
UPDATES = [name for name in API.types.get("Update", {}) if name != "update_id"]
CONTENTS = [
    name
    for name, field in API.types.get("Message", {}).items()
    if not field.required and name not in BOOKKEEPING
]
PLAIN: dict[str, Any] = {
    "Integer": 5,
    "String": "word",
    "Boolean": True,
    "True": True,
    "Float": 1.5,
}


def made(types: tuple[str, ...], depth: int = 0, *, full: bool = False) -> Any:
    """A value of the first of these types; `full` fills the optional fields of its top."""
    name = types[0]
    if name.startswith("Array of "):
        return [made((name.removeprefix("Array of "),), depth, full=full)]
    if name in PLAIN:
        return PLAIN[name]
    if name in API.subtypes:
        return made(API.subtypes[name], depth, full=full)
    deep = full and depth == 0
    return {
        field.name: made(field.types, depth + 1, full=full)
        for field in API.types[name].values()
        if field.required or (deep and depth < 2)
    }


def with_content(name: str, *, full: bool) -> Json:
    base: Json = made(("Message",))
    return base | {name: made(API.types["Message"][name].types, full=full)}


@pytest.mark.parametrize("kind", UPDATES)
@pytest.mark.parametrize("full", [False, True])
def test_every_kind_of_update_becomes_one_event(kind: str, *, full: bool) -> None:
    value = made(API.types["Update"][kind].types, full=full)
    (event,) = parse({"update_id": 1, kind: value}, ME, channel_posts=True)
    served = kind in (*ALLOWED_UPDATES, *CHANNEL_UPDATES)
    assert served or (isinstance(event, Ignored) and event.reason.startswith(kind))


def test_every_kind_of_update_has_its_rule() -> None:
    assert {*ALLOWED_UPDATES, *CHANNEL_UPDATES, *UNSERVED_UPDATES} == set(UPDATES)


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("full", [False, True])
def test_every_content_becomes_a_message_with_words_or_is_ignored_by_name(
    name: str, *, full: bool
) -> None:
    content = with_content(name, full=full)
    (event,) = parse({"update_id": 1, "message": content}, ME)
    if name in SERVICE:
        assert event == Ignored(f"service message: {name}")
    else:
        assert isinstance(event, Inbound)
        assert REQUEST_ID.fullmatch(event.request_id)
        assert not is_blank(event.text)


@pytest.mark.parametrize("name", [name for name in CONTENTS if name not in SERVICE])
def test_no_content_is_unknown_to_us(name: str) -> None:
    content = content_of(with_content(name, full=True))
    assert content.kind is not InboundKind.OTHER or not content.text.startswith("[message")


def test_a_message_with_everything_at_once_is_still_one_event() -> None:
    everything = made(("Message",), full=True)
    (event,) = parse({"message": everything}, ME)
    assert isinstance(event, Migrated)


def test_an_edit_and_a_change_of_our_status_come_out_as_what_they_are() -> None:
    (edit,) = parse({"edited_message": made(("Message",)) | {"text": "x"}}, ME)
    assert isinstance(edit, Edited)
    change = made(("ChatMemberUpdated",))
    change["new_chat_member"]["user"]["id"] = ME.id
    (member,) = parse({"my_chat_member": change}, ME)
    assert isinstance(member, Membership)
