"""Files at Meta: uploaded by us, sent by people, and the host that gives them away."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.meta.errors import GraphRefusal
from tests.fakes.recording import Json, Now, Record
from tests.fakes.server import Listener

LINK_LIVES = 300.0
"""Seconds."""
_MEGABYTE = 1024 * 1024
_LARGEST = {
    "image/jpeg": 5 * _MEGABYTE,
    "image/png": 5 * _MEGABYTE,
    "audio/": 16 * _MEGABYTE,
    "video/mp4": 16 * _MEGABYTE,
    "video/3gpp": 16 * _MEGABYTE,
    "application/": 100 * _MEGABYTE,
    "text/plain": 100 * _MEGABYTE,
    "image/webp": 512_000,
}


@dataclass
class Media:
    """A file. `sha256` is what Meta says of it, which `lie` makes wrong; `size` what it says of
    its length, None for nothing."""

    id: str
    number: str
    mime: str
    data: bytes
    size: int | str | None
    lie: bool = False

    @property
    def sha256(self) -> str:
        told = b"something else" if self.lie else self.data
        return hashlib.sha256(told).hexdigest()

    @property
    def sha256_base64(self) -> str:
        """As a webhook has it."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()


class MediaHost:
    """Another server than the API's: it wants the token as well, and its links live for minutes.

    `lag` links are not found at first.
    """

    def __init__(self, now: Now, record: Record, knows: Callable[[str], bool]) -> None:
        self.all: dict[str, Media] = {}
        self.lag = 0
        self.asked: list[str] = []
        self.listener = Listener(Starlette(routes=[Route("/{media}/{made}", self._give)]))
        self._now = now
        self._record = record
        self._knows = knows

    def add(self, number: str, mime: str, data: bytes) -> Media:
        """Take a file."""
        name = f"{1_000_000_000_000_000 + len(self.all) + 1}"
        self.all[name] = Media(name, number, mime, data, len(data))
        return self.all[name]

    def take(self, number: str, mime: str, data: bytes) -> Media:
        """Take a file for a message of ours. Raises GraphRefusal."""
        most = next((size for kind, size in _LARGEST.items() if mime.startswith(kind)), 0)
        if not 0 < len(data) <= most:
            raise GraphRefusal(131053, "the file's type or size is not supported")
        return self.add(number, mime, data)

    def describe(self, media: Media) -> Json:
        """A file's node, with a link of its own."""
        shown: Json = {
            "messaging_product": "whatsapp",
            "url": f"{self.listener.url}/{media.id}/{self._now():.3f}",
            "mime_type": media.mime,
            "sha256": media.sha256,
            "id": media.id,
        }
        return shown if media.size is None else shown | {"file_size": media.size}

    async def _give(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.asked.append(request.path_params["media"])
        self._record.changed()
        if not self._knows(token):
            return Response("", 401)
        media = self.all.get(request.path_params["media"])
        expired = self._now() - float(request.path_params["made"]) > LINK_LIVES
        if media is None or expired or self.lag > 0:
            self.lag -= 1
            return Response("", 404)
        return Response(media.data, media_type=media.mime)
