"""Files that people sent, for an operator to save: the channel fetches each from its platform.

A browser saves a file and never shows it: it is not told the type that the file claims to have. The
address has the chat, the message and the file's place in it, and no token: a session is needed to
open it.
"""

from __future__ import annotations

import asyncio
import mimetypes
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import LONGEST_TITLE, Attachment, one_line
from bot.operations.actions import NOT_CONFIGURED
from bot.operations.inbox import the_chat
from bot.operator.view import Asked, View
from storage.views.conversation import files_of

_WITHIN = 300.0
"""Seconds within which a browser must have taken a file."""
PATH = "/chats/{chat:int}/files/{message:int}/{place:int}"


def named(file: Attachment) -> str:
    """The name of a file, on the page and on a disk; if it has none, a name made of its kind."""
    told = one_line(file.name, LONGEST_TITLE).replace("/", "_").replace("\\", "_").lstrip(". ")
    return told or f"{file.kind or 'file'}{mimetypes.guess_extension(file.mime) or ''}"


async def file(asked: Asked) -> Response | ASGIApp:
    """The file, to be saved; or a page that says why it can't be fetched."""
    chat = await asked.read(the_chat, asked.number("chat"))
    found = None if chat is None else await asked.read(files_of, chat, asked.number("message"))
    if chat is None or found is None or asked.number("place") >= len(found.files):
        raise HTTPException(404, "this chat has no such file, or does not keep it any more")
    wanted = found.files[asked.number("place")]
    channel = asked.rt.channels.get(found.account)
    if channel is None:
        return _told(asked, chat, wanted, NOT_CONFIGURED)
    if asked.tools.fetching.locked():
        raise HTTPException(503, "other files are being fetched; try again", {"Retry-After": "5"})
    await asked.record_reading(chat=chat)
    async with AsyncExitStack() as place:
        await place.enter_async_context(asked.tools.fetching)
        try:
            content = await channel.fetch(wanted)
        except AttachmentUnavailable as why:
            return _told(asked, chat, wanted, str(why))
        return _Saved(named(wanted), content, place.pop_all())


@dataclass(frozen=True, slots=True)
class _Saved:
    """A response with a file. It holds its `place` among the fetched files until the browser has
    it, since the file is in memory until then."""

    name: str
    content: bytes
    place: AsyncExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name, safe='')}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        async with self.place:
            with suppress(TimeoutError):  # the browser is too slow; leaving closes the connection
                async with asyncio.timeout(_WITHIN):
                    await Response(self.content, headers=headers)(scope, receive, send)


def _told(asked: Asked, chat: int, wanted: Attachment, why: str) -> Response:
    return asked.page("file.html", 404, chat=chat, name=named(wanted), why=why)


VIEWS = (View(PATH, file),)
