"""The door: every request passes it before anything else is done for it.

As a wrapper of the pages it judges where a request comes from, and how many come from there; it
is plain ASGI, since answers stay open for hours. To a route it tells whose session asks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.clients.desk import Desk
from bot.domain.decisions.network import network_name
from bot.domain.ports import Clock
from channels.web.access.limits import Limits
from channels.web.access.origins import Origin, Origins
from channels.web.access.tokens import NotKnown, Session, Tokens
from channels.web.answers import Wrong, error, retry_after
from channels.web.settings import WebSettings

_NETWORK = "answerback_network"
_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
_STRANGE = "pages of this origin may not use the chat: the server's WEB_ORIGINS does not name it"
_TELLS = 20
_TOLD_OF_NAME = 100
"""Warnings about strange origins and unknown proxies, and the characters of each."""
_TOO_MANY = "too many requests; ask again after the seconds of Retry-After"
_log = logging.getLogger("answerback.web")


@dataclass
class Door:
    """The door of one site in this process. `desk` is asked for each time: the channel gets it
    after it was connected."""

    settings: WebSettings
    clock: Clock
    limits: Limits = field(init=False)
    origins: Origins = field(init=False)
    _tokens: Tokens | None = None
    _told: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.origins = self.settings.web_allowed
        self.limits = Limits(
            self.settings.web_visitor_per_minute, self.settings.web_address_per_minute, self.clock
        )

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application behind the door."""

        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            headers = Headers(scope=scope)
            origin = headers.get("origin", "")
            host = headers.get("host", "")
            judged = self.origins.judge(origin, scope["scheme"], host)
            allowed = self.origins.headers(origin, judged)
            if judged is Origin.STRANGE:
                self._tell_once(origin, "pages of %s were refused: WEB_ORIGINS does not name it")
                answer: Response | None = error(403, _STRANGE)
            else:
                answer = self._too_many(scope, headers)
            if answer is None and scope["method"] == "OPTIONS":
                allowed = self.origins.preflight(origin, judged)
                answer = Response(status_code=204)
            await (answer or app)(scope, receive, _adding(send, {**_SECURITY, **allowed}))

        return behind

    def _too_many(self, scope: Scope, headers: Headers) -> Response | None:
        """Count the request; the answer to one too many."""
        peer = (scope.get("client") or ("",))[0]
        forwarded = [
            entry
            for line in headers.getlist("x-forwarded-for")
            for entry in line.split(",")
            if entry.strip()
        ]
        network = network_name(peer, forwarded, self.settings.web_proxies)
        scope[_NETWORK] = network
        wait = self.limits.address_waits(network)
        if not wait:
            return None
        if forwarded and network == peer:
            self._tell_once(
                network,
                "requests by way of %s were refused, since all count as one: if it is a proxy of "
                "yours, name it in WEB_PROXIES",
            )
        return error(429, _TOO_MANY, retry_after(wait))

    def _tell_once(self, name: str, says: str) -> None:
        """Tell the operator, once for each name, of what looks like a setting that is missing."""
        if name not in self._told and len(self._told) < _TELLS:
            self._told.add(name)
            _log.warning(says, name[:_TOLD_OF_NAME])

    async def tokens(self, desk: Desk) -> Tokens:
        """The maker and reader of tokens, with the secrets that were set, or one that was made."""
        if self._tokens is None:
            made = self.clock.token() + self.clock.token()
            secrets = self.settings.web_secret or (await desk.secret("web", made),)
            self._tokens = Tokens(secrets, self.clock)
        return self._tokens

    async def session(self, request: Request, desk: Desk) -> Session:
        """The session that asks, which is not over. Raises NotKnown, Wrong."""
        found = await self.shown(request, desk)
        if found is None or await self.is_over(found, desk):
            raise NotKnown
        return found

    async def shown(self, request: Request, desk: Desk) -> Session | None:
        """The session whose token the request shows, over or not; None for no token at all.
        Raises NotKnown, Wrong."""
        if "token" in request.query_params or "access_token" in request.query_params:
            raise NotKnown  # A URL is written down in too many places.
        said = request.headers.get("authorization")
        if said is None:
            return None
        scheme, _, token = said.partition(" ")
        if scheme.lower() != "bearer":
            raise NotKnown
        found = (await self.tokens(desk)).read(token.strip())
        wait = self.limits.visitor_waits(found.address.chat)
        if wait:
            raise TooMany(wait)
        return found

    async def is_over(self, session: Session, desk: Desk) -> bool:
        """Tell whether its time has run out, it was signed out, or its guest became a user."""
        return self.is_past(session) or bool(await desk.over([(session.address, session.id)]))

    def is_past(self, session: Session) -> bool:
        """Tell whether its time has run out."""
        return self.clock.wall() >= session.ends_at

    def count_message(self, request: Request, session: Session) -> None:
        """Count a message. Raises TooMany."""
        wait = self.limits.message_waits(session.address.chat, network_of(request))
        if wait:
            raise TooMany(wait)


def network_of(request: Request) -> str:
    """The network address from which a request came in through the door."""
    network: str = request.scope[_NETWORK]
    return network


class TooMany(Wrong):
    """More than the limits allow."""

    def __init__(self, wait: float) -> None:
        super().__init__(429, _TOO_MANY, retry_after(wait))


def _adding(send: Send, headers: Mapping[str, str]) -> Send:
    """`send`, with these headers on the answer where it has none of the name."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            _add(message, headers)
        await send(message)

    return sending


def _add(message: MutableMapping[str, Any], headers: Mapping[str, str]) -> None:
    present = {name.lower() for name, _ in message.get("headers", ())}
    further = [
        (name.lower().encode(), value.encode())
        for name, value in headers.items()
        if name.lower().encode() not in present or name == "Vary"
    ]
    message["headers"] = [*message.get("headers", ()), *further]
