"""The fake Twilio itself: the account, its calls over HTTP, and what a test may ask and do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from tests.fakes.faults import Misbehaviour
from tests.fakes.recording import Json, Now, machine_time
from tests.fakes.server import FakeProvider
from tests.fakes.twilio.api import Api
from tests.fakes.twilio.book import FAILED, Media, Message, MessageBook
from tests.fakes.twilio.callbacks import StatusPlan, advance, callback_form
from tests.fakes.twilio.courier import Attempt, Courier, Form, field_of
from tests.fakes.twilio.faults import NAMED
from tests.fakes.twilio.forms import PERSON, Fields, inbound_form, message_type
from tests.fakes.twilio.media import MediaHost
from tests.fakes.windows import Window, Windows

ACCOUNT = "AC00000000000000000000000000000001"
AUTH_TOKEN = "test-auth-token-0001"
SENDER = "whatsapp:+15550100099"


@dataclass(frozen=True, slots=True)
class Delivered:
    """An inbound message and how its webhook fared, attempt by attempt."""

    sid: str
    form: Form
    attempts: list[Attempt]

    @property
    def acknowledged(self) -> bool:
        return any(a.acknowledged for a in self.attempts)


class FakeTwilio(FakeProvider):
    """`url` is what TWILIO_API_URL takes. Set `webhook_url` (with its fragment), and
    `fallback_url` if there is one; `reach` maps public URLs to where they really listen.

    `plan` decides what becomes of each message that is created; the default is sent and
    delivered at once. `list_lag` hides a new message from so many list calls.
    """

    def __init__(
        self,
        *,
        account: str = ACCOUNT,
        auth_token: str = AUTH_TOKEN,
        sender: str = SENDER,
        now: Now = machine_time,
        port: int = 0,
    ) -> None:
        self.account = account
        self.auth_token = auth_token
        self.sender = sender
        self.senders = {sender}
        self.webhook_url = ""
        self.fallback_url = ""
        self.status_url = ""
        self.plan: Callable[[Message], StatusPlan] = lambda _message: StatusPlan()
        self.debugger: list[str] = []
        self.typing: list[str] = []
        self.windows = Windows(now)
        self.book = MessageBook(account, now)
        self._tasks: set[asyncio.Task[None]] = set()
        self._api = Api(self)
        super().__init__(now=now, port=port)
        self.media_host = MediaHost(self.record)
        self.courier = Courier(auth_token, now, self.record.changed)
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
        return [m.as_json() for m in self.messages(chat)]

    async def _order_inbound(self, order: Json) -> object:
        done = await self.inbound(**order)
        return {"sid": done.sid, "statuses": [a.status for a in done.attempts]}

    async def _order_report(self, order: Json) -> object:
        return [a.status for a in await self.report(**order)]

    async def _order_configure(self, order: Json) -> object:
        self.webhook_url = order.get("webhook_url", self.webhook_url)
        self.fallback_url = order.get("fallback_url", self.fallback_url)
        self.status_url = order.get("status_url", self.status_url)
        self.list_lag = order.get("list_lag", self.list_lag)
        self.reach.update(order.get("reach", {}))
        if "statuses" in order:
            plan = StatusPlan(tuple(order["statuses"]), order.get("code"))
            self.plan = lambda _message: plan
        return None

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
    def list_lag(self) -> float:
        return self.book.lag

    @list_lag.setter
    def list_lag(self, calls: float) -> None:
        self.book.lag = calls

    def hide_from_list(self) -> None:
        """Keep what is created from now on out of the list until `reveal_list()`."""
        self.book.lag = math.inf

    def reveal_list(self) -> None:
        self.book.lag = 0
        self.book.reveal()

    @property
    def window(self) -> Window:
        return self.windows.mode

    @window.setter
    def window(self, mode: Window) -> None:
        self.windows.mode = mode

    def messages(self, to: str = "") -> list[Message]:
        """Everything that a person gets from us, in order; failed messages are not among it."""
        ours = [m for m in self.book.all.values() if m.direction != "inbound"]
        return [m for m in ours if (not to or m.to == to) and m.status not in FAILED]

    def texts(self, to: str = "") -> list[str]:
        """The bodies of `messages()`."""
        return [m.body for m in self.messages(to)]

    async def inbound(
        self,
        body: str = "",
        *,
        from_: str = PERSON,
        to: str = "",
        sid: str = "",
        media: Sequence[tuple[str, bytes]] = (),
        user_id: str = "",
        webhook: bool = True,
        fields: Fields | None = None,
    ) -> Delivered:
        """A person writes. It is in the list at once, whether or not the webhook works.

        `media` are content types and bytes. `webhook` False: nobody is called.
        """
        message = self.take(body, from_=from_, to=to or self.sender, sid=sid, media=media)
        form = inbound_form(
            sid=message.sid,
            account=self.account,
            from_=from_,
            to=message.to,
            body=body,
            user_id=user_id,
            fields=self._media_fields(message) | (fields or {}),
        )
        attempts = await self.deliver(form) if webhook else []
        return Delivered(message.sid, form, attempts)

    def take(
        self,
        body: str,
        *,
        from_: str = PERSON,
        to: str = "",
        sid: str = "",
        media: Sequence[tuple[str, bytes]] = (),
    ) -> Message:
        """Record an inbound message as the account's list will show it."""
        now = self.now()
        message = Message(
            sid=sid or self.book.number("MM" if media else "SM"),
            account=self.account,
            direction="inbound",
            from_=from_,
            to=to or self.sender,
            body=body,
            status="received",
            created_at=now,
            sent_at=now,
            media=[Media(self.book.number("ME"), kind, data) for kind, data in media],
        )
        self.windows.opened(from_)
        return self.book.add(message)

    def _media_fields(self, message: Message) -> Fields:
        if not message.media:
            return {}
        found = {
            "NumMedia": str(len(message.media)),
            "MessageType": message_type(message.media[0].content_type),
        }
        for number, media in enumerate(message.media):
            found[f"MediaUrl{number}"] = f"{self.url}{message.uri}/Media/{media.sid}"
            found[f"MediaContentType{number}"] = media.content_type
        return found

    async def deliver(self, form: Form) -> list[Attempt]:
        """Call the inbound webhook as Twilio does: retries as asked, then the fallback."""
        if not self.webhook_url:
            return []
        attempts = await self.courier.deliver(self.webhook_url, form)
        if not attempts[-1].acknowledged:
            self.debugger.append("11200")
            if self.fallback_url:
                more = [("ErrorCode", "11200"), ("ErrorUrl", self.webhook_url)]
                attempts += await self.courier.deliver(self.fallback_url, form + more)
        if attempts[-1].acknowledged:
            self._heed(attempts[-1], form)
        return attempts

    async def repeat(self, form: Form, *urls: str, times: int = 1) -> list[Attempt]:
        """POST one form `times` times to every URL at once (none named: the webhook)."""
        targets = urls or (self.webhook_url,)
        posts = [
            self.courier.post(url, form, f"repeat-{n}") for n in range(times) for url in targets
        ]
        return list(await asyncio.gather(*posts))

    def _heed(self, attempt: Attempt, form: Form) -> None:
        """Words in the answer reach the person, whoever put them there."""
        text = attempt.body.strip()
        kind = attempt.content_type.partition(";")[0]
        spoken = text if kind == "text/plain" else ""
        if kind in ("text/xml", "application/xml") and "<Message" in text:
            spoken = text
        elif text and kind not in ("text/plain", "text/xml", "application/xml"):
            self.debugger.append("12300")
        if spoken:
            self.record.violate("webhook: the answer itself speaks to the person")
            self._say(spoken, field_of(form, "From"), field_of(form, "To"))

    def _say(self, body: str, to: str, from_: str) -> None:
        sid, now = self.book.number("SM"), self.now()
        reply = Message(sid, self.account, "outbound-reply", from_, to, body, "sent", now, now)
        self.book.add(reply)

    async def follow(self, message: Message, instead: StatusPlan | None = None) -> None:
        """Let the plan for a new message happen; before this returns if it says so."""
        plan = instead or self.plan(message)
        if plan.before_answer:
            await self._play(message, plan)
            return
        task = asyncio.get_running_loop().create_task(self._play(message, plan))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _play(self, message: Message, plan: StatusPlan) -> None:
        for status in plan.statuses:
            await self.report(message.sid, status, plan.code, told=plan.told)

    async def report(
        self, sid: str, status: str, code: int | None = None, *, told: bool = True
    ) -> list[Attempt]:
        """A message of ours reached this status; its callback's attempts, if it has one."""
        message = self.book.all[sid]
        advance(message, status, code, self.now())
        self.record.changed()
        url = message.callback or self.status_url
        if not url or not told:
            return []
        return await self.courier.deliver(url, callback_form(message, status, code))
