"""A chat as an operator sees it: its conversation, its window, notes; and writing to it.

Opening the page means reading people's words, so it is recorded before they are shown. A text that
could not be sent is shown again in the form, whatever the reason; a form that arrives twice is sent
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.domain.clients.desk import StoredFile
from bot.domain.concern import Concern
from bot.domain.errors import ConfigurationError, DatabaseUnavailable, NotAttached
from bot.domain.operators import Role
from bot.domain.reply import FileOut
from bot.operations import chats
from bot.operations.actions import Acted, Result, apply
from bot.operations.attached import LARGEST, MOST, Host, attach
from bot.operations.canned import canned_texts
from bot.operations.chats import Form
from bot.operations.inbox import OpenChat, open_chat, the_chat
from bot.operator.acts import ACTS
from bot.operator.live import Pieces
from bot.operator.pages.talk import lines_of
from bot.operator.view import Asked, View, number_told
from storage import outbox
from storage.operators import presence
from storage.views.conversation import Before

_PATH = "/chats/{chat:int}"
_EVERY = 1.0
"""Seconds between two looks at the rows."""
_LEASE = 15.0
"""Seconds for which a page counts as open after it was last renewed."""
_RENEWED_AFTER = 5.0
_NAME = 40
"""The most characters of the name of an open page."""
LONGEST = 20_000
_LARGEST = LARGEST + 500_000
"""The most bytes of a form: its files together, and its text."""
"""Characters of a reply."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The forms of the page as they are shown. For a reply: its `text`, its `key`, the newest part
    of ours that its writer has `seen`, and the outcome of the last try. For a note: its text and
    its key."""

    text: str
    key: str
    seen: int
    acted: Acted | None = None
    note: str = ""
    note_key: str = ""


async def _opened(asked: Asked, page: str = "", place: Before | None = None) -> OpenChat:
    """The chat that the path names. Raises HTTPException."""
    found = await asked.read(open_chat, asked.rt, asked.number("chat"), page, place)
    if found is None:
        raise HTTPException(404, "there is no such chat")
    return found


async def _there(asked: Asked) -> int:
    """The number of the chat that the path names, or of the chat that it was merged into. Raises
    HTTPException."""
    found = await asked.read(the_chat, asked.number("chat"))
    if found is None:
        raise HTTPException(404, "there is no such chat")
    return found


async def _page(asked: Asked, draft: Draft | None = None, status: int = 200) -> Response:
    """The page of the chat; `draft` is a form that could not be sent. Raises HTTPException."""
    place, page = _place(asked), asked.rt.clock.token()
    await asked.record_reading(chat=await _there(asked))
    found = await _opened(asked, page, place)
    canned, problem = await _canned(asked)
    draft = draft or Draft(
        canned.get(asked.given("canned"), ""),
        asked.rt.clock.token(),
        found.last_said,
    )
    if not draft.note_key:
        draft = replace(draft, note_key=asked.rt.clock.token())
    return asked.page(
        "chat.html",
        status,
        chat=found,
        lines=lines_of(found),
        older=None if found.older is None else _told(found.older),
        earlier=place is not None,
        draft=draft,
        canned=canned,
        problem=problem,
        page=page,
        longest=LONGEST,
        **_WORDS,
    )


_WORDS: Mapping[str, object] = {"Concern": Concern}


async def _canned(asked: Asked) -> tuple[Mapping[str, str], str]:
    """The canned texts, and a sentence on the fault of their file; empty if it has none."""
    try:
        return await asyncio.to_thread(canned_texts, asked.tools.canned), ""
    except ConfigurationError as error:
        return {}, str(error)


def _place(asked: Asked) -> Before | None:
    """The place before which the lines are to end; None for the newest lines. Raises
    HTTPException."""
    told = asked.given("before")
    if not told:
        return None
    try:
        at, heard, said = told.split("-", 2)
        return Before(float(at), number_told(heard), number_told(said))
    except ValueError:
        raise HTTPException(404, "there is no such place in the conversation") from None


def _told(place: Before) -> str:
    return f"{place.heard_at!r}-{place.heard}-{place.said}"


async def chat(asked: Asked) -> Response:
    """The page."""
    return await _page(asked)


async def reply(asked: Asked) -> Response:
    """Write to the chat, once; or show the form again, with its text and the reason."""
    number, rt, by = await _there(asked), asked.rt, asked.operator()
    text, key = asked.said("text"), asked.said("key")
    try:
        seen = number_told(asked.said("seen"))
    except ValueError:
        raise HTTPException(400, "the form does not say what its writer has read") from None
    if not key or len(text) > LONGEST:
        raise HTTPException(400, f"a reply has at most {LONGEST} characters")
    form = Form(key, seen)
    try:
        attached = [await _attached(asked, number, file) for file in asked.files("files")]
    except NotAttached as error:
        acted = Acted(f"chat {number}", Result.REFUSED, str(error))
    else:
        acted = await apply(
            rt, lambda tx: chats.reply(tx, rt, by, number, text, attached=attached, form=form)
        )
    if acted.result is Result.DONE:
        return asked.to(f"/chats/{number}")
    found = await _opened(asked)
    return await _page(asked, Draft(text, rt.clock.token(), found.last_said, acted), 409)


async def _attached(asked: Asked, number: int, file: UploadFile) -> FileOut:
    """A file of the form, stored so that it can be sent. Raises NotAttached."""
    given = StoredFile(file.filename or "file", file.content_type or "", await file.read())
    host = Host(asked.tools.public_url, asked.rt.clock.token() + asked.rt.clock.token())
    return await asked.rt.db.write(attach, asked.rt, host, number, given)


async def note(asked: Asked) -> Response:
    """Store a note for colleagues, once; or show the form again, with its text and the reason."""
    number, by, text = await _there(asked), asked.operator(), asked.said("text")
    key = asked.said("note_key")
    acted = await apply(asked.rt, lambda tx: chats.note(tx, by, number, text, key=key))
    if acted.result is Result.DONE:
        return asked.to(f"/chats/{number}")
    found = await _opened(asked)
    draft = Draft("", asked.rt.clock.token(), found.last_said, acted, note=text)
    return await _page(asked, draft, 409)


_OF_CHAT = ("pause", "resume", "resume-drop", "answered")
_OF_PART = ("delivered", "lost")


async def _part(asked: Asked, chat: int) -> int:
    """The part of this chat that the form names. Raises HTTPException."""
    with suppress(ValueError):
        part = await asked.read(outbox.get, number_told(asked.said("part")))
        if part is not None and part.chat == chat:
            return part.id
    raise HTTPException(404, "this chat has no such part")


async def act(asked: Asked) -> Response:
    """Do one of the acts on this chat, or on one of its uncertain parts."""
    number, name = await _there(asked), asked.said("act")
    if name in _OF_PART:
        of, subject = "part", await _part(asked, number)
    elif name in _OF_CHAT:
        of, subject = "chat", number
    else:
        raise HTTPException(400, "there is no such act")
    rt, by = asked.rt, asked.operator()
    acted = await apply(rt, lambda tx: ACTS[of, name].do(tx, rt, by, subject))
    if acted.result is Result.DONE:
        return asked.to(f"/chats/{number}")
    found = await _opened(asked)
    return await _page(asked, Draft("", rt.clock.token(), found.last_said, acted), 409)


@dataclass
class _Attendance:
    """The presence of an operator at a chat, for as long as a page of it is followed."""

    asked: Asked
    chat: int
    page: str
    _renewed_at: float = field(default=float("-inf"))

    async def renew(self) -> None:
        """Tell other operators, from time to time, that the page is open. Raises
        DatabaseUnavailable."""
        clock = self.asked.rt.clock
        if clock.monotonic() - self._renewed_at >= _RENEWED_AFTER:
            who = self.asked.session.name
            db = self.asked.rt.db
            await db.write(presence.attend, self.chat, self.page, who, _LEASE)
            self._renewed_at = clock.monotonic()

    async def end(self) -> None:
        """Tell other operators that the page is closed."""
        with suppress(DatabaseUnavailable):
            await self.asked.rt.db.write(presence.leave, self.chat, self.page)


async def follow(asked: Asked) -> ASGIApp:
    """The page's live parts. While they are followed, other operators see who is there."""
    page = asked.given("page")[:_NAME] or asked.session.id
    number = await _there(asked)
    await asked.record_reading(chat=number)
    attendance = _Attendance(asked, number, page)

    async def pieces() -> Pieces:
        await attendance.renew()
        found = await _opened(asked, page)
        values = {"chat": found, "lines": lines_of(found), **_WORDS}
        return {
            name: asked.piece(f"chat_{name}.html", **values) for name in ("talk", "state", "notes")
        }

    stream = asked.follow(pieces, _EVERY)

    async def attended(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await stream(scope, receive, send)
        finally:
            await attendance.end()

    return attended


VIEWS = (
    View(_PATH, chat),
    View(f"{_PATH}/reply", reply, method="POST", role=Role.ACTING, largest=_LARGEST, files=MOST),
    View(f"{_PATH}/note", note, method="POST", role=Role.ACTING),
    View(f"{_PATH}/act", act, method="POST", role=Role.ACTING),
    View(f"/live{_PATH}", follow),
)
