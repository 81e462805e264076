"""The back door under `/_fake/`: script a fake in another process, and read what it saw.

GET  `/_fake/calls?method=&chat=`, `/_fake/messages?chat=`, `/_fake/violations`
GET  `/_fake/wait?what=calls|messages&count=&method=&chat=&timeout=`: 200 when there are so
     many, 408 after `timeout` seconds
POST `/_fake/fail` `{method, fault, args, chat, nth, times}`: the rule's number
POST `/_fake/release`, `/_fake/cancel` `{rule}`; `/_fake/clear`
POST `/_fake/do/<order>`: what the fake's own `orders` offer
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from tests.fakes.recording import Call, Json

if TYPE_CHECKING:
    from tests.fakes.server import FakeProvider


def routes(fake: FakeProvider) -> list[BaseRoute]:
    """The back door of one fake."""
    door = _Door(fake)
    return [
        Route("/_fake/calls", door.calls),
        Route("/_fake/messages", door.messages),
        Route("/_fake/violations", door.violations),
        Route("/_fake/wait", door.wait),
        Route("/_fake/fail", door.fail, methods=["POST"]),
        Route("/_fake/release", door.release, methods=["POST"]),
        Route("/_fake/cancel", door.cancel, methods=["POST"]),
        Route("/_fake/clear", door.clear, methods=["POST"]),
        Route("/_fake/do/{order}", door.do, methods=["POST"]),
    ]


class _Door:
    def __init__(self, fake: FakeProvider) -> None:
        self._fake = fake

    def _calls(self, request: Request) -> list[Call]:
        asked = request.query_params
        return self._fake.calls_of(asked.get("method", ""), asked.get("chat", ""))

    def _shown(self, request: Request) -> list[Json]:
        return self._fake.shown(request.query_params.get("chat", ""))

    async def calls(self, request: Request) -> Response:
        return _json([_plain(call) for call in self._calls(request)])

    async def messages(self, request: Request) -> Response:
        return _json(self._shown(request))

    async def violations(self, request: Request) -> Response:
        return _json(self._fake.violations)

    async def wait(self, request: Request) -> Response:
        asked = request.query_params
        count = int(asked.get("count", 1))
        look = self._calls if asked.get("what", "messages") == "calls" else self._shown
        try:
            await self._fake.wait_for(
                lambda: len(look(request)) >= count, float(asked.get("timeout", 10))
            )
        except AssertionError as error:
            return _json({"why": str(error)}, 408)
        return _json(len(look(request)))

    async def fail(self, request: Request) -> Response:
        asked = await request.json()
        fault = self._fake.named_faults()[asked["fault"]](**asked.get("args", {}))
        rule = self._fake.fail(
            asked["method"],
            fault,
            chat=asked.get("chat"),
            nth=asked.get("nth", 1),
            times=asked.get("times", 1),
        )
        return _json({"rule": rule.number})

    async def release(self, request: Request) -> Response:
        number = (await request.json())["rule"]
        self._fake.script.numbered(number).release()
        return _json(None)

    async def cancel(self, request: Request) -> Response:
        number = (await request.json())["rule"]
        self._fake.script.numbered(number).cancel()
        return _json(None)

    async def clear(self, request: Request) -> Response:
        self._fake.script.clear()
        return _json(None)

    async def do(self, request: Request) -> Response:
        order = self._fake.orders[request.path_params["order"]]
        body = await request.body()
        return _json(await order(json.loads(body or b"{}")))


def _plain(call: Call) -> Json:
    found = asdict(call)
    del found["answer"]
    return found


def _json(value: object, status: int = 200) -> Response:
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return Response(text.encode(), status, media_type=JSONResponse.media_type)
