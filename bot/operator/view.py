"""A view: one route of the operator's page, with the role that it needs; and the request to it.

To add a page, make a list of views and name it in `bot/operator/app.py`. When a view is called, its
operator is signed in and has the role, and a form was sent by a page of ours and is within the size
that the view allows.

    async def notes(asked: Asked) -> Response:
        found = await asked.read(notes_of, asked.number("chat"))
        return asked.page("notes.html", notes=found)

    VIEWS = (
        View("/chats/{chat:int}/notes", notes),
        View("/chats/{chat:int}/notes", add_note, method="POST", role=Role.ACTING),
    )
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from bot.domain.message import clean
from bot.domain.operators import Role
from bot.leases.runtime import Runtime
from bot.operations.actions import Operator
from bot.operator.door import PATH, Access
from bot.operator.live import EVERY, Streams
from bot.operator.live import Look as LookAgain
from bot.operator.look import Look
from bot.operator.sessions import SignedIn
from storage import audit_log
from storage.statements.tx import Tx
from storage.views.lookup import number_of

P = ParamSpec("P")
T = TypeVar("T")
FORM = 64_000
"""The most bytes of a form without files."""
ON_PAGE = "page"
"""The word behind the @ of an operator's name in the audit log, where commands have their host."""
READ_WORDS = "read the words"
_FETCHED = 4
"""The most files of people that are fetched at the same time."""
_ONE_READING = 60.0
"""Seconds within which loading a page again counts as the same reading."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of all views. `heartbeat` is in seconds; `canned` is the file of canned texts;
    `public_url` may be empty. `fetching` limits the files of people that are in memory at once: a
    file stays there until its browser has it."""

    rt: Runtime
    look: Look
    streams: Streams
    lease_seconds: float
    heartbeat: float
    canned: Path | None = None
    public_url: str = ""
    fetching: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_FETCHED))


@dataclass
class Asked:
    """A request to a view, by somebody who has the role for it. `form` is empty if none was
    sent."""

    request: Request
    tools: Tools
    session: SignedIn
    access: Access
    form: FormData = field(default_factory=FormData)

    @property
    def rt(self) -> Runtime:
        """The process's tools."""
        return self.tools.rt

    @property
    def who(self) -> str:
        """The operator's name, as the audit log has it."""
        return f"{self.session.name}@{ON_PAGE}"

    @property
    def acts(self) -> bool:
        """Tell whether the operator may do more than read."""
        return self.session.role.may(Role.ACTING)

    def operator(self) -> Operator:
        """The operator as the author of an act, with the reason from the form."""
        return Operator(self.who, self.said("reason"))

    def number(self, name: str) -> int:
        """A number in the path. Raises HTTPException for one that no row can have."""
        try:
            return number_told(str(self.request.path_params[name]))
        except ValueError:
            raise HTTPException(404, "there is nothing like it") from None

    def given(self, name: str) -> str:
        """A parameter of the query, cleaned for any database; empty if it is not given."""
        return clean(self.request.query_params.get(name, ""))

    def said(self, name: str) -> str:
        """A text field of the form, stripped, and cleaned for any database; empty if it is not
        given."""
        value = self.form.get(name, "")
        return clean(value).strip() if isinstance(value, str) else ""

    def files(self, name: str) -> Sequence[UploadFile]:
        """The files in a field of the form."""
        return [f for f in self.form.getlist(name) if isinstance(f, UploadFile) and f.filename]

    def url(self, path: str, /, **query: object) -> str:
        """The address of a page of ours. `path` is the part behind /operator. Empty values are left
        out of the query."""
        given = {name: value for name, value in query.items() if value not in ("", None)}
        return f"{self.access.root}{PATH}{path}" + (
            f"?{urlencode(given, doseq=True)}" if given else ""
        )

    async def read(
        self, question: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer of the database to `question`. Raises DatabaseUnavailable."""
        return await self.rt.db.read(question, *args, **kwargs)

    async def record_reading(self, *, run: int | None = None, chat: int | None = None) -> None:
        """Record that this operator reads what people wrote, before they are shown it. Raises
        DatabaseUnavailable."""

        of = "" if chat is None else f" of chat {chat}"
        why = f"{self.who}{of}, session {self.session.id[:8]}"

        def note(tx: Tx) -> None:
            audit_log.note_once(
                tx, self.who, READ_WORDS, why, within=_ONE_READING, run=run, chat=chat
            )

        await self.rt.db.write(note)

    def page(self, template: str, /, status: int = 200, **values: object) -> Response:
        """A page made from a template, with the frame that all pages have."""
        return self.tools.look.page(template, self._frame() | values, status)

    def piece(self, template: str, /, **values: object) -> str:
        """The HTML of a template without the frame, for a live part."""
        return self.tools.look.html(template, self._frame() | values)

    def follow(self, look: LookAgain, every: float = EVERY, *, shared: bool = False) -> ASGIApp:
        """A stream of the pieces that `look` gives, each sent when it has changed. `shared`: they
        are the same for everybody with this role at this address, so that one look serves all."""
        query = self.request.scope["query_string"]
        name = (self.request.url.path, query, self.acts, self.access.root) if shared else None
        streams, network = self.tools.streams, self.access.network
        return streams.follow(self.session, network, look, every, name)

    def to(self, path: str, /, **query: object) -> Response:
        """A redirect to another page, after something was done."""
        return RedirectResponse(self.url(path, **query), status_code=303)

    def _frame(self) -> dict[str, object]:
        return {
            "me": self.session,
            "acts": self.acts,
            "url": self.url,
            "here": self.request.url.path,
            "root": self.access.root,
        }


def number_told(text: str) -> int:
    """The number in an address or a form. Raises ValueError."""
    number = number_of(text)
    if number is None:
        raise ValueError("no number of ours")
    return number


Answer = Callable[[Asked], Awaitable[Response | ASGIApp]]


@dataclass(frozen=True, slots=True)
class View:
    """A route behind the door. `path` is the part behind /operator. `largest` bounds the bytes of a
    form with its files, `files` the number of files."""

    path: str
    answer: Answer
    method: str = "GET"
    role: Role = Role.READING
    largest: int = FORM
    files: int = 0
