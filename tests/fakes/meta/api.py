"""Graph over HTTP: messages and media here, what an operator asks and sets in `manage`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.fakes.faults import Answer
from tests.fakes.meta.checks import check_send, send_problems, shape_problems
from tests.fakes.meta.errors import GraphRefusal
from tests.fakes.meta.manage import Manage
from tests.fakes.meta.media import Media
from tests.fakes.meta.request import Asked
from tests.fakes.recording import Json
from tests.fakes.windows import Window

if TYPE_CHECKING:
    from tests.fakes.meta.server import FakeMeta

Perform = Callable[[Asked], Awaitable[Answer]]
OUTSIDE = 131047


class Api:
    """The endpoints, each called by the name under which faults and calls know it."""

    def __init__(self, fake: FakeMeta) -> None:
        self._fake = fake
        self._manage = Manage(fake)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/{version}/{node}/{edge}", self._answer, methods=["GET", "POST", "DELETE"]),
            Route("/{version}/{node}", self._answer, methods=["GET", "POST", "DELETE"]),
        ]

    async def _answer(self, request: Request) -> Response:
        fake = self._fake
        node, edge = request.path_params["node"], request.path_params.get("edge", "")
        kind = request.method, edge
        if edge == "messages" and (dropped := fake.drop_unread("send", node)) is not None:
            return dropped
        asked = await _read(request, node)
        name, perform = self._find(kind, asked)
        chat = str(asked.body.get("to") or asked.body.get("recipient") or "")
        account = asked.query.get("phone_number_id", "") or node
        call = fake.record.begin(name, asked.query | asked.body, account, chat)

        async def guarded() -> Answer:
            try:
                return await perform(asked)
            except GraphRefusal as refusal:
                return refusal.answer()

        return await fake.carry_out(call, guarded)

    def _find(self, kind: tuple[str, str], asked: Asked) -> tuple[str, Perform]:
        """The name and the doing of a call, by verb and edge, and by its node where it has none."""
        match kind:
            case ("POST", "messages") if asked.body.get("status") == "read":
                return "read", self._read_mark
            case ("POST", "messages"):
                return "send", self._send
            case ("POST", "media"):
                return "upload", self._upload
            case ("GET", "") if asked.node in self._fake.media_host.all:
                return "media", self._media
            case _:
                return self._manage.find(kind, asked)

    async def _send(self, asked: Asked) -> Answer:
        fake = self._fake
        number = fake.business.acting_for(asked.node, asked.token)
        for problem in send_problems(asked.body):
            fake.record.violate(problem)
        check_send(asked.body)
        to = str(asked.body.get("to") or asked.body.get("recipient"))
        if (limited := fake.rates.refusal(number.id, to)) is not None:
            raise GraphRefusal(limited)
        self._check_file(asked.body)
        outside = asked.body.get("type") != "template" and fake.windows.closed_for(to.lstrip("+"))
        if outside and fake.windows.mode is Window.SYNC:
            raise GraphRefusal(OUTSIDE)
        message = fake.book.add(number.id, to, asked.body, fake.now())
        fake.record.changed()
        await fake.follow(message, OUTSIDE if outside else None)
        known = {"wa_id": to.lstrip("+")} if to.startswith("+") else {"user_id": to}
        answer: Json = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to} | known],
            "messages": [{"id": message.wamid}],
        }
        return Answer.of(200, answer)

    def _check_file(self, body: Json) -> None:
        content = body.get(str(body.get("type", "text")))
        if not isinstance(content, dict) or "id" not in content:
            return
        if content["id"] not in self._fake.media_host.all:
            raise GraphRefusal(100, f"{content['id']} is not a valid media id")

    async def _read_mark(self, asked: Asked) -> Answer:
        fake = self._fake
        number = fake.business.acting_for(asked.node, asked.token)
        for problem in shape_problems("mark_read", asked.body):
            fake.record.violate(problem)
        wamid = str(asked.body.get("message_id", ""))
        if (number.id, wamid) not in fake.written:
            raise GraphRefusal(100, "the message is not known")
        fake.read.append(wamid)
        if "typing_indicator" in asked.body:
            fake.typing.append(wamid)
        return Answer.of(200, {"success": True})

    async def _upload(self, asked: Asked) -> Answer:
        fake = self._fake
        number = fake.business.acting_for(asked.node, asked.token)
        if asked.body.get("messaging_product") != "whatsapp" or asked.file is None:
            raise GraphRefusal(100, "messaging_product and file are required")
        mime, data = asked.file
        media = fake.media_host.take(number.id, str(asked.body.get("type") or mime), data)
        return Answer.of(200, {"id": media.id})

    async def _media(self, asked: Asked) -> Answer:
        fake = self._fake
        media: Media = fake.media_host.all[asked.node]
        fake.business.acting_for(media.number, asked.token)
        return Answer.of(200, fake.media_host.describe(media))


async def _read(request: Request, node: str) -> Asked:
    """The request as it came; what is no object is an empty one."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    query = dict(request.query_params)
    token = query.pop("access_token", token)
    if request.headers.get("content-type", "").startswith(("multipart/", "application/x-www")):
        async with request.form() as form:
            body: Json = {name: value for name, value in form.items() if isinstance(value, str)}
            file = form.get("file")
            if not isinstance(file, UploadFile):
                return Asked(node, token, query, body)
            return Asked(node, token, query, body, (file.content_type or "", await file.read()))
    try:
        told = json.loads(await request.body() or b"{}")
    except ValueError:
        told = {}
    return Asked(node, token, query, told if isinstance(told, dict) else {})
