"""One valid update of every kind, and one message of every content, from the description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakes.recording import Json
from tests.fakes.telegram.spec import Field, Spec
from tests.fakes.updates import DATE, private, user

_BASE = ("message_id", "date", "chat", "from")
_WORDS = {"mime_type": "text/plain", "currency": "XTR", "emoji": "🎲"}
_ENUMS = {
    ("Sticker", "type"): "regular",
    ("Poll", "type"): "regular",
    ("Chat", "type"): "private",
    ("MessageEntity", "type"): "bold",
    ("InlineQuery", "chat_type"): "private",
    ("SuggestedPostInfo", "state"): "pending",
    ("UniqueGiftInfo", "origin"): "upgrade",
    ("EncryptedPassportElement", "type"): "phone_number",
    ("RichBlockTableCell", "align"): "left",
    ("RichBlockTableCell", "valign"): "top",
    ("SuggestedPostRefunded", "reason"): "post_deleted",
}


def every_update(spec: Spec) -> Iterator[tuple[str, Json]]:
    """A name and an update for every kind; each has what is required and nothing more."""
    make = Maker(spec)
    kinds = [f for f in spec.types["Update"].values() if f.name != "update_id"]
    for number, kind in enumerate(kinds):
        yield kind.name, {"update_id": 820_000_000 + number, kind.name: make.value("Update", kind)}


def every_message(spec: Spec) -> Iterator[tuple[str, Json]]:
    """A name and an update for every field that a message can have; where a field's type has
    variants, one for each."""
    make = Maker(spec)
    numbers = iter(range(821_000_000, 822_000_000))
    for field in spec.types["Message"].values():
        if field.name in _BASE:
            continue
        for name, value in make.variants("Message", field):
            number = next(numbers)
            message = make.message(number % 1_000_000) | {field.name: value}
            yield name, {"update_id": number, "message": message}


class Maker:
    """Makes values of described types."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec

    def message(self, number: int) -> Json:
        """A message with nothing in it."""
        chat = private(700_100_201)
        return {"message_id": number, "date": DATE, "chat": chat, "from": user(700_100_201)}

    def variants(self, owner: str, field: Field) -> list[tuple[str, Any]]:
        """A value of each type that a field can have, with a name for each."""
        subtypes = self._spec.subtypes.get(field.types[0], ())
        if len(subtypes) < 2:
            return [(field.name, self.value(owner, field))]
        return [(f"{field.name}:{t}", self.one(owner, field.name, t)) for t in subtypes]

    def value(self, owner: str, field: Field) -> Any:
        return field.always or self.one(owner, field.name, field.types[0])

    def one(self, owner: str, name: str, type_name: str) -> Any:
        """One value of a type, for the field `name` of the type `owner`."""
        if type_name.startswith("Array of "):
            return [self.one(owner, name, type_name.removeprefix("Array of "))]
        if type_name == "String":
            return _ENUMS.get((owner, name)) or _WORDS.get(name, "some text")
        if type_name == "Integer":
            return DATE if name.endswith("date") else 7
        if type_name == "Float":
            return 1.5
        if type_name in ("Boolean", "True"):
            return True
        if type_name == "Message":
            return self.message(7) | {"text": "some text"}
        subtypes = self._spec.subtypes.get(type_name)
        return self.one(owner, name, subtypes[0]) if subtypes else self._object(type_name)

    def _object(self, type_name: str) -> Json:
        fields = self._spec.types[type_name].values()
        return {f.name: self.value(type_name, f) for f in fields if f.required}
