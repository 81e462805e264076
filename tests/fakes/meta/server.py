"""The fake Graph API itself: a business with two numbers, and what a test may ask and do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.routing import BaseRoute

from tests.clocks import ShiftedClock
from tests.fakes.faults import Misbehaviour
from tests.fakes.meta import payloads
from tests.fakes.meta.api import Api
from tests.fakes.meta.book import Book, Message
from tests.fakes.meta.courier import Courier, Delivery, Sleep
from tests.fakes.meta.errors import ERRORS
from tests.fakes.meta.faults import NAMED
from tests.fakes.meta.media import Media, MediaHost
from tests.fakes.meta.numbers import App, Business, Number
from tests.fakes.meta.payloads import DISPLAY, NUMBER, PERSON, WABA
from tests.fakes.meta.rates import Rates
from tests.fakes.recording import Json, Now, machine_time
from tests.fakes.server import FakeProvider
from tests.fakes.windows import Windows

OTHER_NUMBER = "106540352242933"
OTHER_DISPLAY = "15550100901"
APP = "670843887433847"
TOKEN = "EAAtest-token-of-number-a"
OTHER_TOKEN = "EAAtest-token-of-number-b"
SECRET = "s3cret-new"
VERIFY_TOKEN = "a-word-for-the-challenge"

__all__ = [
    "APP",
    "DISPLAY",
    "NUMBER",
    "OTHER_DISPLAY",
    "OTHER_NUMBER",
    "OTHER_TOKEN",
    "PERSON",
    "SECRET",
    "TOKEN",
    "VERIFY_TOKEN",
    "WABA",
    "FakeMeta",
    "StatusPlan",
]


@dataclass(frozen=True, slots=True)
class StatusPlan:
    """The fate of a message after it was accepted, without further ado.

    `statuses` are told in this order, whatever it is, and may repeat; `code` goes with `failed`.
    `before_answer`: all that happens before the POST is answered. `tagged` False: they come
    without our tag. `together`: in one POST.
    """

    statuses: tuple[str, ...] = ("sent", "delivered")
    code: int | None = None
    before_answer: bool = False
    tagged: bool = True
    together: bool = False

    @staticmethod
    def nothing() -> StatusPlan:
        """The message stays as it was accepted until the test reports something."""
        return StatusPlan(())

    @staticmethod
    def failing(code: int) -> StatusPlan:
        """Accepted, and failed later with this code."""
        return StatusPlan(("failed",), code)


class FakeMeta(FakeProvider):
    """`url` is what META_API_URL takes. Set `webhook_url`; `reach` maps public URLs to where they
    really listen. `plan` decides what becomes of each message that is accepted; the default is
    sent and delivered at once. `sleep` is what its repeats wait by.
    """

    def __init__(
        self, *, now: Now = machine_time, sleep: Sleep | None = None, port: int = 0
    ) -> None:
        self.business = Business(
            App(APP, SECRET),
            {
                NUMBER: Number(NUMBER, DISPLAY, TOKEN),
                OTHER_NUMBER: Number(OTHER_NUMBER, OTHER_DISPLAY, OTHER_TOKEN),
            },
            subscribed={APP: ""},
        )
        self.plan: Callable[[Message], StatusPlan] = lambda _message: StatusPlan()
        self.read: list[str] = []
        self.typing: list[str] = []
        self.written: set[tuple[str, str]] = set()
        self.windows = Windows(now)
        self.rates = Rates(now)
        self.book = Book()
        self._tasks: set[asyncio.Task[None]] = set()
        self._api = Api(self)
        super().__init__(now=now, port=port)
        self.media_host = MediaHost(now, self.record, self.business.knows)
        self.courier = Courier(now, sleep or ShiftedClock().sleep, self.record.changed, SECRET)
        self.reach = self.courier.reach
        self.orders = {
            "inbound": self._order_inbound,
            "report": self._order_report,
            "configure": self._order_configure,
        }

    def routes(self) -> list[BaseRoute]:
        return self._api.routes()

    def named_faults(self) -> Mapping[str, Callable[..., Misbehaviour]]:
        return NAMED

    def shown(self, chat: str) -> list[Json]:
        return [message.as_json() for message in self.messages(chat)]

    async def open(self) -> None:
        await self.media_host.listener.open()
        await self.courier.open()
        await super().open()

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().close()
        await self.courier.close()
        await self.media_host.listener.close()

    @property
    def numbers(self) -> dict[str, Number]:
        return self.business.numbers

    @property
    def webhook_url(self) -> str:
        return self.business.app.callback

    @webhook_url.setter
    def webhook_url(self, url: str) -> None:
        self.business.app.callback = url

    def callback_of(self, number: str) -> str:
        """The address to which webhooks of this number go: its own address, the account's, the
        app's."""
        business = self.business
        own = business.numbers[number].override if number in business.numbers else ""
        return own or business.subscribed.get(business.app.id, "") or business.app.callback

    def messages(self, to: str = "", number: str = "") -> list[Message]:
        """The messages that were accepted and have not failed: to one person, from one number, in
        order. `to` is an address as it was sent to."""
        return [
            message
            for message in self.book.all.values()
            if (not to or message.to == to)
            and (not number or message.number == number)
            and message.status != "failed"
        ]

    def texts(self, to: str = "") -> list[str]:
        """The words of `messages()`."""
        return [message.text for message in self.messages(to)]

    def put_media(self, data: bytes, mime: str, number: str = NUMBER) -> Media:
        """A file that a person sends."""
        return self.media_host.add(number, mime, data)

    def message(
        self,
        text: str = "",
        *,
        from_: str = PERSON,
        user_id: str = "",
        kind: str = "text",
        content: object = None,
        **more: object,
    ) -> Json:
        """One message as a webhook has it, with a wamid of its own."""
        told = {"body": text} if kind == "text" and content is None else content
        wamid = self.book.wamid(from_ or user_id)
        made = payloads.message(wamid, self.now(), kind, told, from_=from_, user_id=user_id)
        return made | more

    async def person_writes(
        self, text: str = "", *, number: str = NUMBER, name: str = "Ada", **more: object
    ) -> Delivery:
        """A person writes; the rest as `message` takes it."""
        return await self.deliver(self.written_by(self.message(text, **more), number, name))  # type: ignore[arg-type]

    def written_by(self, message: Json, number: str = NUMBER, name: str = "Ada") -> Json:
        """The payload of one message."""
        who = payloads.contact(message.get("from", ""), name, message.get("from_user_id", ""))
        display = self.numbers[number].display if number in self.numbers else DISPLAY
        return payloads.envelope(
            payloads.change(messages=[message], contacts=[who], number=number, display=display)
        )

    async def deliver(self, payload: Json | bytes, number: str = NUMBER) -> Delivery:
        """Call the webhook, and again until it says 200; returns after the first answer."""
        prepared = self.prepare(payload, number)
        return await self.courier.deliver(prepared.url, prepared.body)

    def prepare(self, payload: Json | bytes, number: str = NUMBER) -> Delivery:
        """A delivery that nobody makes yet."""
        if isinstance(payload, dict):
            self._note(payload)
        body = payload if isinstance(payload, bytes) else payloads.raw(payload)
        return Delivery(self.callback_of(number), body)

    def _note(self, payload: Json) -> None:
        """Remember who wrote what: it opens a window and can be marked as read."""
        for entry in payload["entry"]:
            for change in entry["changes"]:
                value = change["value"]
                for message in value.get("messages") or ():
                    number = value["metadata"]["phone_number_id"]
                    self.written.add((number, message["id"]))
                    self.windows.opened(message.get("from") or message.get("from_user_id", ""))

    async def follow(self, message: Message, outside: int | None = None) -> None:
        """Let the plan for a new message happen; before this returns if it says so."""
        plan = self.plan(message) if outside is None else StatusPlan.failing(outside)
        if plan.before_answer:
            await self._play(message, plan)
            return
        task = asyncio.get_running_loop().create_task(self._play(message, plan))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play(self, message: Message, plan: StatusPlan) -> None:
        if plan.together:
            told = [self.becomes(message, s, plan.code, tagged=plan.tagged) for s in plan.statuses]
            await self._tell(message.number, *told)
            return
        for status in plan.statuses:
            await self.report(message.wamid, status, plan.code, tagged=plan.tagged)

    async def report(
        self, wamid: str, status: str, code: int | None = None, *, tagged: bool = True
    ) -> Delivery | None:
        """A message of ours reached this status, and we are told."""
        message = self.book.all[wamid]
        told = self.becomes(message, status, code, tagged=tagged)
        return await self._tell(message.number, told)

    def becomes(
        self, message: Message, status: str, code: int | None = None, *, tagged: bool = True
    ) -> Json:
        """A message of ours reached this status; the status as a webhook has it."""
        failed = code if status == "failed" else None
        message.becomes(status, failed)
        self.record.changed()
        return payloads.status(
            message.wamid,
            status,
            self.now(),
            to=message.to.lstrip("+"),
            tag=message.tag if tagged else "",
            code=failed,
            words=ERRORS.get(failed or -1, (400, ""))[1],
        )

    async def _tell(self, number: str, *statuses: Json) -> Delivery | None:
        if not self.callback_of(number):
            return None
        display = self.numbers[number].display
        told = payloads.change(statuses=statuses, number=number, display=display)
        return await self.deliver(payloads.envelope(told), number)

    async def _order_inbound(self, order: Json) -> object:
        return (await self.person_writes(**order)).answers

    async def _order_report(self, order: Json) -> object:
        told = await self.report(**order)
        return told and told.answers

    async def _order_configure(self, order: Json) -> object:
        self.webhook_url = order.get("webhook_url", self.webhook_url)
        self.reach.update(order.get("reach", {}))
        self.courier.first_repeat = order.get("first_repeat", self.courier.first_repeat)
        if "statuses" in order:
            plan = StatusPlan(tuple(order["statuses"]), order.get("code"))
            self.plan = lambda _message: plan
        return None
