"""Twilio's HTTP interface: messages, media, typing, senders."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.fakes.faults import Answer
from tests.fakes.recording import Json
from tests.fakes.twilio.book import VERSION, Message, Query
from tests.fakes.twilio.callbacks import StatusPlan
from tests.fakes.twilio.checks import check_create, create_problems
from tests.fakes.twilio.courier import Form, field_of
from tests.fakes.twilio.errors import TwilioRefusal
from tests.fakes.twilio.media import media_json
from tests.fakes.windows import Window

if TYPE_CHECKING:
    from tests.fakes.twilio.server import FakeTwilio

Perform = Callable[["Asked"], Awaitable[Answer]]
OUTSIDE = 63016


class Asked:
    """One authenticated request: its path parameters and the fields that it brought."""

    def __init__(self, request: Request, form: Form, body: bytes) -> None:
        self.path: dict[str, Any] = request.path_params
        self.query = list(request.query_params.multi_items())
        self.form = form
        self.body = body


class Api:
    """The endpoints, each called by the name under which faults and calls know it."""

    def __init__(self, fake: FakeTwilio) -> None:
        self._fake = fake

    def routes(self) -> list[BaseRoute]:
        messages = f"/{VERSION}/Accounts/{{account}}/Messages"
        one = messages + "/{sid}"
        table: list[tuple[str, str, str, Perform]] = [
            ("POST", messages + ".json", "create", self._create),
            ("GET", messages + ".json", "list", self._list),
            ("GET", one + "/Media.json", "media_list", self._media_list),
            ("GET", one + "/Media/{media}.json", "media", self._media),
            ("GET", one + "/Media/{media}", "download", self._download),
            ("GET", one + ".json", "fetch", self._fetch),
            ("POST", "/v2/Indicators/Typing.json", "typing", self._typing),
            ("GET", "/v2/Channels/Senders", "senders", self._senders),
            ("GET", "/v2/Channels/Senders/{sid}", "sender", self._sender),
            ("POST", "/v2/Channels/Senders/{sid}", "update_sender", self._update_sender),
        ]
        found: list[BaseRoute] = [
            Route(path, self._endpoint(name, perform), methods=[verb])
            for verb, path, name, perform in table
        ]
        unknown = self._endpoint("unknown", self._unknown)
        return [*found, Route("/{path:path}", unknown, methods=["GET", "POST", "DELETE"])]

    def _endpoint(self, name: str, perform: Perform) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            fake = self._fake
            if (dropped := fake.drop_unread(name, fake.account)) is not None:
                return dropped
            body = await request.body()
            kind = request.headers.get("content-type", "")
            form = await _form(request) if kind.startswith("application/x-www-form") else []
            asked = Asked(request, form, body)
            params: Json = dict(asked.query) | dict(form) | asked.path
            chat = str(params.get("To", ""))
            call = fake.record.begin(name, params, str(params.get("account", "")), chat)

            async def guarded() -> Answer:
                try:
                    self._authenticate(request, asked)
                    return await perform(asked)
                except TwilioRefusal as refusal:
                    return refusal.answer()

            return await fake.carry_out(call, guarded)

        return answer

    def _authenticate(self, request: Request, asked: Asked) -> None:
        known = f"{self._fake.account}:{self._fake.auth_token}".encode()
        expected = "Basic " + base64.b64encode(known).decode()
        if request.headers.get("authorization") != expected:
            raise TwilioRefusal(20003)
        if asked.path.get("account", self._fake.account) != self._fake.account:
            raise TwilioRefusal(20404)

    async def _create(self, asked: Asked) -> Answer:
        fake = self._fake
        for problem in create_problems(asked.form):
            fake.record.violate(problem)
        check_create(asked.form, fake.senders)
        to, template = field_of(asked.form, "To"), field_of(asked.form, "ContentSid")
        outside = not template and fake.windows.closed_for(to)
        if outside and fake.window is Window.SYNC:
            raise TwilioRefusal(OUTSIDE)
        message = fake.book.add(self._message(asked.form))
        fake.record.changed()
        first = message.as_json()
        failing = StatusPlan.failing(OUTSIDE, "undelivered") if outside else None
        await fake.follow(message, failing)
        return Answer.of(201, first)

    def _message(self, form: Form) -> Message:
        media = [value for name, value in form if name == "MediaUrl"]
        service = field_of(form, "MessagingServiceSid") or None
        return Message(
            sid=self._fake.book.number("MM" if media else "SM"),
            account=self._fake.account,
            direction="outbound-api",
            from_=field_of(form, "From"),
            to=field_of(form, "To"),
            body=field_of(form, "Body"),
            status="accepted" if service else "queued",
            created_at=self._fake.now(),
            service=service,
            media_urls=media,
            callback=field_of(form, "StatusCallback"),
            content_sid=field_of(form, "ContentSid"),
            content_variables=field_of(form, "ContentVariables"),
        )

    async def _list(self, asked: Asked) -> Answer:
        given = dict(asked.query)
        size = int(given.get("PageSize", 50))
        query = Query(
            to=given.get("To", ""),
            from_=given.get("From", ""),
            sent_on=given.get("DateSent", ""),
            sent_before=given.get("DateSent<", ""),
            sent_after=given.get("DateSent>", ""),
            page_size=min(max(size, 1), 1000),
            page=int(given.get("Page", 0)),
            token=given.get("PageToken", ""),
        )
        try:
            shown = self._fake.book.page(query)
            return Answer.of(200, shown, ("Date", formatdate(self._fake.now(), usegmt=True)))
        except ValueError:
            raise TwilioRefusal(20001) from None

    def _found(self, asked: Asked) -> Message:
        message = self._fake.book.all.get(asked.path["sid"])
        if message is None:
            raise TwilioRefusal(20404)
        return message

    async def _fetch(self, asked: Asked) -> Answer:
        return Answer.of(200, self._found(asked).as_json())

    async def _media_list(self, asked: Asked) -> Answer:
        message = self._found(asked)
        uri = f"{message.uri}/Media.json?PageSize=50&Page=0"
        return Answer.of(
            200,
            {
                "media_list": [media_json(message, m) for m in message.media],
                "end": max(len(message.media) - 1, 0),
                "start": 0,
                "page": 0,
                "page_size": 50,
                "first_page_uri": uri,
                "next_page_uri": None,
                "previous_page_uri": None,
                "uri": uri,
            },
        )

    async def _media(self, asked: Asked) -> Answer:
        message = self._found(asked)
        for media in message.media:
            if media.sid == asked.path["media"]:
                return Answer.of(200, media_json(message, media))
        raise TwilioRefusal(20404)

    async def _download(self, asked: Asked) -> Answer:
        for media in self._found(asked).media:
            if media.sid == asked.path["media"]:
                location = self._fake.media_host.location(media)
                if location is not None:
                    return Answer(302, b"", headers=(("Location", location),))
        raise TwilioRefusal(20404)

    async def _typing(self, asked: Asked) -> Answer:
        sid = field_of(asked.form, "messageId")
        if field_of(asked.form, "channel") != "whatsapp" or not sid.startswith(("SM", "MM")):
            raise TwilioRefusal(20001)
        self._fake.typing.append(sid)
        return Answer.of(200, {"success": True})

    def _sender_json(self) -> Json:
        fake = self._fake
        return {
            "sid": "XE" + "1" * 32,
            "status": "ONLINE",
            "sender_id": fake.sender,
            "configuration": {},
            "webhook": {
                "callback_url": fake.webhook_url,
                "callback_method": "POST",
                "fallback_url": fake.fallback_url,
                "fallback_method": "POST",
                "status_callback_url": fake.status_url,
                "status_callback_method": "POST",
            },
            "profile": {"name": "Relay"},
            "properties": {"messaging_limit": "1K"},
            "offline_reasons": None,
            "url": f"{fake.url}/v2/Channels/Senders/XE{'1' * 32}",
        }

    async def _senders(self, asked: Asked) -> Answer:
        url = f"{self._fake.url}/v2/Channels/Senders?Channel=whatsapp&PageSize=50&Page=0"
        meta = {
            "page": 0,
            "page_size": 50,
            "first_page_url": url,
            "previous_page_url": None,
            "next_page_url": None,
            "url": url,
            "key": "senders",
        }
        return Answer.of(200, {"senders": [self._sender_json()], "meta": meta})

    async def _sender(self, asked: Asked) -> Answer:
        if asked.path["sid"] != "XE" + "1" * 32:
            raise TwilioRefusal(20404)
        return Answer.of(200, self._sender_json())

    async def _update_sender(self, asked: Asked) -> Answer:
        try:
            given = json.loads(asked.body).get("webhook") or {}
        except ValueError:
            raise TwilioRefusal(20001) from None
        fake = self._fake
        fake.webhook_url = given.get("callback_url", fake.webhook_url)
        fake.fallback_url = given.get("fallback_url", fake.fallback_url)
        fake.status_url = given.get("status_callback_url", fake.status_url)
        return Answer.of(202, self._sender_json())

    async def _unknown(self, asked: Asked) -> Answer:
        self._fake.record.violate(f"{asked.path['path']}: not known to this fake")
        raise TwilioRefusal(20404)


async def _form(request: Request) -> Form:
    return [(name, str(value)) for name, value in (await request.form()).multi_items()]
