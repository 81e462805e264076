"""The operator's side of the Graph API: numbers, tokens, callbacks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import httpx

from tests.fakes.faults import Answer
from tests.fakes.meta.courier import Unreachable
from tests.fakes.meta.errors import GraphRefusal
from tests.fakes.meta.payloads import WABA
from tests.fakes.meta.request import Asked
from tests.fakes.recording import Json

if TYPE_CHECKING:
    from tests.fakes.meta.server import FakeMeta

Perform = Callable[[Asked], Awaitable[Answer]]
DONE = Answer.of(200, {"success": True})


class Manage:
    """The calls beside messages and media."""

    def __init__(self, fake: FakeMeta) -> None:
        self._fake = fake

    def find(self, kind: tuple[str, str], asked: Asked) -> tuple[str, Perform]:
        """The name and the doing of a call, by verb and edge."""
        table: dict[tuple[str, str], tuple[str, Perform]] = {
            ("GET", "debug_token"): ("debug_token", self._debug_token),
            ("GET", WABA): ("account", self._account),
            ("GET", ""): ("number", self._number),
            ("POST", ""): ("configure_number", self._configure_number),
            ("GET", "phone_numbers"): ("phone_numbers", self._phone_numbers),
            ("GET", "subscribed_apps"): ("subscribed", self._subscribed),
            ("POST", "subscribed_apps"): ("subscribe", self._subscribe),
            ("DELETE", "subscribed_apps"): ("unsubscribe", self._unsubscribe),
            ("GET", "subscriptions"): ("subscriptions", self._subscriptions),
            ("POST", "subscriptions"): ("set_subscriptions", self._set_subscriptions),
            ("DELETE", "subscriptions"): ("delete_subscriptions", self._delete_subscriptions),
        }
        verb, edge = kind
        named = (verb, asked.node) if not edge and (verb, asked.node) in table else kind
        return table.get(named, ("unknown", self._unknown))

    async def _number(self, asked: Asked) -> Answer:
        business = self._fake.business
        number = business.acting_for(asked.node, asked.token)
        whole = number.as_json(business.app, business.subscribed.get(business.app.id, ""))
        return Answer.of(200, _fields(whole, asked.query))

    async def _configure_number(self, asked: Asked) -> Answer:
        number = self._fake.business.acting_for(asked.node, asked.token)
        asked_for = _object(asked.body.get("webhook_configuration"))
        url = str(asked_for.get("override_callback_uri", ""))
        await self._prove(url, str(asked_for.get("verify_token", "")))
        number.override = url
        return DONE

    async def _account(self, asked: Asked) -> Answer:
        self._fake.business.of(asked.token)
        return Answer.of(200, _fields({"id": WABA, "name": "Relay"}, asked.query))

    async def _phone_numbers(self, asked: Asked) -> Answer:
        business = self._fake.business
        self._owned(asked)
        app, account = business.app, business.subscribed.get(business.app.id, "")
        nodes = [n.as_json(app, account) for n in business.numbers.values()]
        return Answer.of(200, {"data": [_fields(node, asked.query) for node in nodes]})

    def _owned(self, asked: Asked) -> None:
        self._fake.business.of(asked.token)
        if asked.node != WABA:
            raise GraphRefusal(100, f"Object with ID '{asked.node}' does not exist", subcode=33)

    async def _subscribed(self, asked: Asked) -> Answer:
        self._owned(asked)
        data = [
            {"whatsapp_business_api_data": {"id": app, "name": "Relay", "link": ""}}
            | ({"override_callback_uri": url} if url else {})
            for app, url in self._fake.business.subscribed.items()
        ]
        return Answer.of(200, {"data": data})

    async def _subscribe(self, asked: Asked) -> Answer:
        self._owned(asked)
        business = self._fake.business
        url = str(asked.body.get("override_callback_uri", ""))
        if url and business.app.id not in business.subscribed:
            raise GraphRefusal(100, "Before override the current callback uri, subscribe the app")
        await self._prove(url, str(asked.body.get("verify_token", "")))
        business.subscribed[business.app.id] = url
        return DONE

    async def _unsubscribe(self, asked: Asked) -> Answer:
        self._owned(asked)
        self._fake.business.subscribed.pop(self._fake.business.app.id, None)
        return DONE

    async def _prove(self, url: str, verify_token: str) -> None:
        """Ask the address whether it is ours, as for every callback that is set."""
        if not url:
            return
        query = {
            "hub.mode": "subscribe",
            "hub.challenge": "1158201444",
            "hub.verify_token": verify_token,
        }
        try:
            answer = await self._fake.courier.challenge(url, query)
        except (httpx.TransportError, Unreachable, asyncio.InvalidStateError):
            raise GraphRefusal(100, "the callback URL could not be reached") from None
        if answer.status_code != 200 or answer.text != query["hub.challenge"]:
            raise GraphRefusal(100, "the callback URL did not answer the challenge")

    def _as_app(self, asked: Asked) -> None:
        app = self._fake.business.app
        if asked.token != f"{app.id}|{app.secret}":
            raise GraphRefusal(190)

    async def _subscriptions(self, asked: Asked) -> Answer:
        self._as_app(asked)
        app = self._fake.business.app
        one = {
            "object": "whatsapp_business_account",
            "callback_url": app.callback,
            "active": True,
            "fields": [{"name": name, "version": "v26.0"} for name in app.fields],
        }
        return Answer.of(200, {"data": [one] if app.callback else []})

    async def _set_subscriptions(self, asked: Asked) -> Answer:
        self._as_app(asked)
        app, url = self._fake.business.app, str(asked.body.get("callback_url", ""))
        await self._prove(url, str(asked.body.get("verify_token", "")))
        app.callback = url
        if "fields" in asked.body:
            told = asked.body["fields"]
            app.fields = told.split(",") if isinstance(told, str) else list(told)
        return DONE

    async def _delete_subscriptions(self, asked: Asked) -> Answer:
        self._as_app(asked)
        self._fake.business.app.callback = ""
        return DONE

    async def _debug_token(self, asked: Asked) -> Answer:
        business = self._fake.business
        token = asked.query.get("input_token", "")
        if not business.knows(asked.token) and asked.token != (
            f"{business.app.id}|{business.app.secret}"
        ):
            raise GraphRefusal(190, subcode=463)
        valid = business.knows(token)
        data: Json = {
            "app_id": business.app.id,
            "type": "SYSTEM_USER",
            "application": "Relay",
            "is_valid": valid,
            "expires_at": business.expires,
            "data_access_expires_at": 0,
            "scopes": business.permissions if valid else [],
            "granular_scopes": [
                {"scope": scope, "target_ids": [WABA]} for scope in business.permissions if valid
            ],
        }
        if not valid:
            data["error"] = {"code": 190, "message": "the session has expired", "subcode": 463}
        return Answer.of(200, {"data": data})

    async def _unknown(self, asked: Asked) -> Answer:
        self._fake.record.violate(f"{asked.node}: a call that this fake does not know")
        raise GraphRefusal(100, "Unsupported request")


def _fields(node: Json, query: Mapping[str, str]) -> Json:
    """The fields that were asked for, and the id; Graph gives a few fields where nothing was."""
    asked = query.get("fields", "")
    wanted = {"id", *(name.partition("{")[0].strip() for name in asked.split(","))}
    if not asked:
        wanted |= {"display_phone_number", "verified_name", "quality_rating", "name"}
    return {name: value for name, value in node.items() if name in wanted}


def _object(value: object) -> Json:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
