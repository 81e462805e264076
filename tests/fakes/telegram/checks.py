"""Refusals of the Bot API: the rules of a text and of its entities."""

from __future__ import annotations

from tests.fakes.faults import Answer
from tests.fakes.recording import Json
from tests.fakes.telegram.markup import MarkupError, parse_markup

TEXT_MAX = 4096
"""Code points, after the markup is taken out."""
CAPTION_MAX = 1024
RAW_MAX = 32_768
"""Bytes, before."""


class Refusal(Exception):
    """An error answer of the API: HTTP status, description, parameters."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def answer(self) -> Answer:
        body: Json = {"ok": False, "error_code": self.status, "description": self.description}
        headers = []
        if self.parameters:
            body["parameters"] = self.parameters
        if "retry_after" in self.parameters:
            headers.append(("Retry-After", str(self.parameters["retry_after"])))
        return Answer.of(self.status, body, *headers)


def checked_text(params: Json) -> tuple[str, list[Json]]:
    """The visible text of a message and its entities. Raises Refusal."""
    text, entities = _parsed(params, "text", "entities")
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if len(text) > TEXT_MAX:
        raise Refusal(400, "Bad Request: message is too long")
    return text, entities


def checked_caption(params: Json) -> tuple[str, list[Json]]:
    """The visible caption of a file, which may be empty. Raises Refusal."""
    text, entities = _parsed(params, "caption", "caption_entities")
    if len(text) > CAPTION_MAX:
        raise Refusal(400, "Bad Request: message caption is too long")
    return text, entities


def _parsed(params: Json, name: str, entities_name: str) -> tuple[str, list[Json]]:
    raw = params.get(name, "")
    if not isinstance(raw, str):
        raise Refusal(400, f"Bad Request: {name} must be a string")
    if len(raw.encode("utf-8", "surrogatepass")) > RAW_MAX:
        raise Refusal(400, "Bad Request: text is too long")
    mode = params.get("parse_mode", "")
    if mode:
        try:
            return parse_markup(raw, str(mode))
        except MarkupError as error:
            raise Refusal(400, f"Bad Request: {error}") from error
    entities = params.get(entities_name) or []
    _check_entities(raw, entities)
    return raw, entities


def utf16_length(text: str) -> int:
    """The length of a text in the units of entity offsets."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _check_entities(text: str, entities: list[Json]) -> None:
    units = utf16_length(text)
    inside = _boundaries(text)
    for entity in entities:
        start, length = entity.get("offset"), entity.get("length")
        if not isinstance(start, int) or not isinstance(length, int):
            raise Refusal(400, "Bad Request: can't parse entities: offset or length is missing")
        end = start + length
        if start < 0 or length <= 0 or end > units:
            why = f"entity beginning at UTF-16 offset {start} ends after the end of the text"
            raise Refusal(400, f"Bad Request: can't parse entities: {why} at UTF-16 offset {end}")
        if start not in inside or end not in inside:
            why = f"entity begins in a middle of a UTF-16 symbol at UTF-16 offset {start}"
            raise Refusal(400, f"Bad Request: can't parse entities: {why}")


def _boundaries(text: str) -> set[int]:
    at, found = 0, {0}
    for character in text:
        at += 2 if ord(character) > 0xFFFF else 1
        found.add(at)
    return found
