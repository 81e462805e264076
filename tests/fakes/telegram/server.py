"""The fake Bot API itself: bots, their calls over HTTP, and what a test may ask and do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.fakes.faults import Answer, Misbehaviour
from tests.fakes.recording import Json, Now, machine_time
from tests.fakes.server import FakeProvider, unless_gone
from tests.fakes.telegram import methods, spec
from tests.fakes.telegram.bot import Bot
from tests.fakes.telegram.chats import Shown
from tests.fakes.telegram.checks import Refusal
from tests.fakes.telegram.faults import NAMED
from tests.fakes.telegram.params import UnreadableBody, read_params
from tests.fakes.telegram.queue import UpdateQueue
from tests.fakes.telegram.rates import Limits, Rates
from tests.fakes.telegram.webhook import Delivery, WebhookDriver

TOKEN = "7000000001:TEST-token-not-real-000000000000000"
USERNAME = "relay_test_bot"


class FakeTelegram(FakeProvider):
    """`url` is what TELEGRAM_API_URL takes. There is one bot with `TOKEN` from the start;
    `add_bot()` makes more. `webhook_scale` shortens the waits between redeliveries."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        username: str = USERNAME,
        now: Now = machine_time,
        port: int = 0,
        webhook_scale: float = 0.01,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(now=now, port=port)
        self.spec = spec.load()
        self.bots: dict[str, Bot] = {}
        self.reach: dict[str, str] = {}
        self._scale = webhook_scale
        self._limits = limits or Limits()
        self.main = self.add_bot(token, username)
        self.orders = {"enqueue": self._order_enqueue, "reach": self._order_reach}

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/bot{token}/{method}", self._api, methods=["GET", "POST"]),
            Route("/file/bot{token}/{path:path}", self._download, methods=["GET"]),
        ]

    def named_faults(self) -> Mapping[str, Callable[..., Misbehaviour]]:
        return NAMED

    def shown(self, chat: str) -> list[Json]:
        found = self.messages(int(chat)) if chat else self.all_messages()
        return [
            {
                "chat": m.chat_id,
                "message_id": m.message_id,
                "kind": m.kind,
                "text": m.text,
                "topic": m.topic,
                "reply_to": m.reply_to,
                "buttons": m.buttons,
            }
            for m in found
        ]

    async def _order_enqueue(self, order: Json) -> object:
        return self.enqueue(order["update"], order.get("token", ""))

    async def _order_reach(self, order: Json) -> object:
        self.reach.update(order)
        return self.reach

    def add_bot(self, token: str, username: str) -> Bot:
        """One more bot account. A call with any other token is refused with 401."""
        user: Json = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Relay",
            "username": username,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }
        queue = UpdateQueue(self.now, self.record.changed)
        driver = WebhookDriver(queue, self.now, self.record.changed, self._scale, self.reach)
        rates = Rates(self.now, self._limits)
        self.bots[token] = bot = Bot(token, user, self.record, queue, driver, rates)
        return bot

    def bot(self, token: str = "") -> Bot:
        return self.bots[token] if token else self.main

    async def close(self) -> None:
        for bot in self.bots.values():
            await bot.webhook.close()
        await super().close()

    def messages(self, chat_id: int, topic: int | None = None) -> list[Shown]:
        """Everything that a person sees in a chat, in order, from all bots; deleted messages are
        gone.
        """
        found = [m for bot in self.bots.values() for m in bot.messages(chat_id)]
        found.sort(key=lambda m: m.order)
        return [m for m in found if topic is None or m.topic == topic]

    def texts(self, chat_id: int, topic: int | None = None) -> list[str]:
        """The texts of `messages()`."""
        return [m.text for m in self.messages(chat_id, topic)]

    def all_messages(self) -> list[Shown]:
        """Everything that everybody sees, in order."""
        found = [m for bot in self.bots.values() for m in bot.book.shown() if not m.deleted]
        return sorted(found, key=lambda m: m.order)

    def enqueue(self, update: Json, token: str = "") -> int | None:
        """A person did something: polling gets it, or the webhook until it answers 2xx.

        The update's id; None when `allowed_updates` filters its kind.
        """
        return self.bot(token).enqueue(update)

    async def deliver(
        self, update: Json, *urls: str, times: int = 1, secret: str | None = None, token: str = ""
    ) -> list[Delivery]:
        """POST one update `times` times to every URL, all at once, whatever is answered.

        `secret` None is that of the webhook; an empty one sends no header.
        """
        bot = self.bot(token)
        bot.learn(update)
        posts = [bot.webhook.post(url, update, secret) for _ in range(times) for url in urls]
        return list(await asyncio.gather(*posts))

    async def _api(self, request: Request) -> Response:
        method = methods.canonical(request.path_params["method"])
        bot = self.bots.get(request.path_params["token"])
        account = bot.id if bot else "unknown"
        if (dropped := self.drop_unread(method, account)) is not None:
            return dropped
        params: Json = {}
        trouble: Refusal | None = None
        try:
            params = await read_params(request, method, self.spec)
        except UnreadableBody as error:
            trouble = Refusal(400, f"Bad Request: can't parse JSON: {error}")
        call = self.record.begin(method, params, account, str(params.get("chat_id", "")))

        async def perform() -> Answer:
            running = self._run(bot, method, params, trouble)
            if method == "getUpdates":
                return await unless_gone(request.receive, running)
            return await running

        return await self.carry_out(call, perform)

    async def _run(
        self, bot: Bot | None, method: str, params: Json, trouble: Refusal | None
    ) -> Answer:
        try:
            if bot is None:
                raise Refusal(401, "Unauthorized")
            if trouble is not None:
                raise trouble
            self._check(method, params)
            if method not in methods.METHODS:
                raise Refusal(404, "Not Found: method not found")
            return Answer.of(200, {"ok": True, "result": await methods.run(bot, method, params)})
        except Refusal as refusal:
            return refusal.answer()

    def _check(self, method: str, params: Json) -> None:
        if self.spec is not None:
            for problem in self.spec.problems(method, params):
                self.record.violate(problem)
        if method not in methods.METHODS:
            self.record.violate(f"{method}: not known to this fake")

    async def _download(self, request: Request) -> Response:
        bot = self.bots.get(request.path_params["token"])
        path = request.path_params["path"]
        call = self.record.begin("download", {"path": path}, bot.id if bot else "unknown", "")

        async def perform() -> Answer:
            files = bot.files.values() if bot else ()
            found = next((f for f in files if f.path == path), None)
            if found is None:
                return Refusal(404, "Not Found").answer()
            return Answer(200, found.data, "application/octet-stream")

        return await self.carry_out(call, perform)
