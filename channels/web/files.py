"""Files that people hand in with a message, and files as they are handed out."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from bot.domain.clients.desk import Desk, StoredFile
from bot.domain.message import LONGEST_TITLE, Address, one_line
from channels.web.answers import Wrong

MOST_FILES = 10
_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,100}")
_UNKNOWN = "application/octet-stream"
_SHOWN = frozenset(
    {
        *(f"image/{kind}" for kind in ("avif", "bmp", "gif", "jpeg", "png", "webp")),
        *(f"audio/{kind}" for kind in ("aac", "flac", "mp4", "mpeg", "ogg", "wav", "webm")),
        *(f"video/{kind}" for kind in ("mp4", "mpeg", "ogg", "quicktime", "webm")),
        "application/pdf",
        "application/zip",
        "text/csv",
        "text/markdown",
        "text/plain",
    }
)
"""Types that a browser may be told: none of them runs anything in a page."""
_PART = re.compile(r"part-([0-9]{1,18})-([0-9]{1,4})")
_REF = re.compile(r"[0-9a-f]{64}")


def handed_in(given: object, largest: int) -> list[StoredFile]:
    """The files of a message, as its `files` say. Raises Wrong."""
    if not isinstance(given, list):
        raise Wrong(422, "files must be a list")
    if len(given) > MOST_FILES:
        raise Wrong(422, f"a message has at most {MOST_FILES} files")
    found = [_file(each) for each in given]
    if sum(len(file.content) for file in found) > largest:
        raise Wrong(413, f"the files of a message have at most {largest} bytes")
    return found


def _file(given: object) -> StoredFile:
    match given:
        case {"name": str(name), "type": str(mime), "data": str(data)}:
            pass
        case _:
            raise Wrong(422, "a file must have name, type and data, all of them text")
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        raise Wrong(422, "the data of a file must be base64") from None
    if not content:
        raise Wrong(422, "a file must not be empty")
    bare = mime.partition(";")[0].strip().lower()
    known = bare if _MIME.fullmatch(bare) else _UNKNOWN
    return StoredFile(one_line(name, LONGEST_TITLE) or "file", known, content)


async def file_of_chat(desk: Desk, who: Address, ref: str) -> Response:
    """A file of the chat: one that the person handed in, or a document of ours. Raises Wrong."""
    found: StoredFile | None = None
    if part := _PART.fullmatch(ref):
        wire = await desk.part(who, int(part[1]))
        found = _document(wire, int(part[2])) if wire else None  # Old words are deleted.
    elif _REF.fullmatch(ref):
        found = await desk.file(who, ref)
    if found is None:
        raise Wrong(404, "this chat has no such file, or does not keep it any more")
    return Response(found.content, headers=_headers(found))


def _document(wire: str, place: int) -> StoredFile | None:
    """A document that stands in a part of ours."""
    files: list[Mapping[str, Any]] = json.loads(wire).get("files", [])
    if place >= len(files) or not files[place]["content"]:
        return None
    file = files[place]
    return StoredFile(file["name"] or "document.txt", "text/plain", file["content"].encode())


def _headers(file: StoredFile) -> Mapping[str, str]:
    """As a file to save: whatever is in it, no page of ours shows it by itself."""
    mime = file.mime if file.mime in _SHOWN else _UNKNOWN
    return {
        "Content-Type": f"{mime}; charset=utf-8" if mime.startswith("text/") else mime,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
