"""A chat's whole record as JSON, written row by row: the shape is described in `docs/privacy.md`.

All of it is read in one transaction, so it is of one moment; a page of rows is in memory at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from storage.statements import clock
from storage.statements.tx import Tx
from storage.views import record

FORMAT = "answerback-record"
VERSION = 1
"""Goes up when a key is taken away or changes its meaning; keys are added without."""

SaveFile = Callable[[int, str], str | None]
"""Saves the file of this name that came from this chat; returns the name under which it was saved,
or None where its content is not here."""

_JSON = ("attachments", "quoted", "extra", "result", "offered")
"""Columns whose text is JSON, or null."""
_MOMENTS = ("at", "due_at", "until", "not_before")


def nothing_saved(_chat: int, _ref: str) -> str | None:
    """For a record without the content of its files."""
    return None


def write_record(tx: Tx, out: TextIO, chats: Sequence[int], save: SaveFile = nothing_saved) -> None:
    """Write the record of these chats into a file, from its beginning: it may be done again."""
    out.seek(0)
    out.truncate()
    made_at = _moment(clock.read(tx))
    out.write(f'{{"format": "{FORMAT}", "version": {VERSION}, "made_at": "{made_at}", "chats": [')
    for place, chat in enumerate(chats):
        out.write(",\n" if place else "\n")
        _write_chat(tx, out, chat, save)
    out.write("\n]}\n")


def _write_chat(tx: Tx, out: TextIO, chat: int, save: SaveFile) -> None:
    head = _shown(record.chat(tx, chat) | {"addresses": record.addresses(tx, chat)})
    out.write(json.dumps(head)[:-1])
    _write_rows(out, "messages", record.messages(tx, chat))
    _write_rows(out, "parts", record.parts(tx, chat))
    _write_rows(out, "turns", record.turns(tx, chat))
    _write_rows(out, "events", record.chat_events(tx, chat))
    _write_rows(out, "payloads", record.loose_payloads(tx, chat))
    kept = [{**file, "saved_as": save(chat, file["ref"])} for file in record.files_of(tx, chat)]
    _write_rows(out, "files", kept)
    for name, rows in record.others(tx, chat).items():
        _write_rows(out, name, rows)
    out.write("}")


def _write_rows(out: TextIO, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    out.write(f',\n"{name}": [')
    for place, row in enumerate(rows):
        out.write(",\n" if place else "\n")
        out.write(json.dumps(_shown(row)))
    out.write("]")


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as JSON has it: moments in ISO 8601, and what is stored as JSON as what it says."""
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    match value:
        case list():
            return [_shown(one) if isinstance(one, dict) else one for one in value]
        case float() if name in _MOMENTS or name.endswith(("_at", "_since", "_until")):
            return _moment(value)
        case str() if name in _JSON:
            return _read(value)
        case bytes() | memoryview():
            return None
        case _:
            return value


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _moment(epoch: float) -> str | None:
    """Epoch seconds in ISO 8601, UTC; None for a time that never comes, or that nobody set: 0."""
    try:
        when = datetime.fromtimestamp(epoch, UTC)
        return f"{when:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z" if epoch else None
    except (OverflowError, ValueError):
        return None
