"""An agent in the test's own loop: it sees every turn, and holds, fails or answers to order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.fakes.faults import COMMON, Answer, Misbehaviour
from tests.fakes.recording import Call, Json
from tests.fakes.server import FakeProvider


class FakeAgent(FakeProvider):
    """`agent_url` is what AGENT takes. Each turn is a call `turn` of its chat, and `words`
    makes its answer of its text; `fail("turn", held_before_storing())` holds one."""

    words: Callable[[str], str] = staticmethod(lambda text: f"re: {text}")

    @property
    def agent_url(self) -> str:
        return f"{self.url}/turn"

    def routes(self) -> list[BaseRoute]:
        return [Route("/turn", self._turn, methods=["POST"])]

    def named_faults(self) -> Mapping[str, Callable[..., Misbehaviour]]:
        return COMMON

    def shown(self, chat: str) -> list[Json]:
        return []

    def turns(self, text: str = "") -> list[Call]:
        """The turns so far, or those that ask just this."""
        return [c for c in self.calls if not text or asked(c.params) == text]

    async def _turn(self, request: Request) -> Response:
        question: Json = await request.json()
        chat = str(question["chat"].get("id", ""))
        call = self.record.begin("turn", question, "agent", chat)

        async def perform() -> Answer:
            return Answer.of(200, {"text": self.words(asked(question))})

        return await self.carry_out(call, perform)


def asked(question: Json) -> str:
    """The texts of a turn's messages, one a line."""
    return "\n".join(message["text"] for message in question["messages"])
