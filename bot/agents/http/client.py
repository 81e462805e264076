"""An agent behind an address: AGENT=https://... One POST a turn (bot/agents/http/contract.py)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from bot.agents.http.contract import (
    ACTION,
    SIGNATURE_HEADER,
    HttpAnswer,
    asked_for_person,
    read_answer,
    request_body,
    sign,
)
from bot.domain.errors import AgentFailed, ConfigurationError
from bot.domain.ports import Clock
from bot.domain.reply import Reply
from bot.domain.turn import Turn

CONNECT_SECONDS = 10.0
_READ = frozenset({200, 422})


@dataclass(frozen=True, slots=True)
class HttpAgentConfig:
    """The agent's address and its bounds.

    `timeout` in seconds bounds a whole exchange (whoever asks ends it at the turn's deadline),
    `max_body` an answer, `file_bytes` the files sent with a turn (0: described only).
    """

    url: str
    secret: str = ""
    timeout: float = 600.0
    max_body: int = 1_000_000
    file_bytes: int = 5_000_000


class HttpAgent:
    """Asks the server, and keeps its errors away from the chat.

    No redirects, no proxies of the environment, no cookies (they would tie chats together)
    and no retries of its own: the turn is tried again by its run, with the same key.
    """

    def __init__(self, config: HttpAgentConfig, clock: Clock) -> None:
        self.place = _place(config.url)
        self._config = config
        self._clock = clock
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=20,
                # Many servers close an idle connection after 5 s: a call must not meet that.
                keepalive_expiry=4.0,
            ),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    async def __call__(self, turn: Turn) -> Reply:
        """Raises Retry, GiveUp, or AgentFailed that names the place and what was wrong."""
        patience = self._config.timeout
        try:
            async with asyncio.timeout(patience):
                body = await request_body(turn, self._config.file_bytes)
                secret, now = self._config.secret, int(self._clock.wall())
                signature = sign(secret, body, now) if secret else ""
                answer = await self.post(body, turn.idempotency_key(ACTION), signature)
        except TimeoutError as error:
            raise AgentFailed(f"{self.place}: no answer within {patience:.1f} s") from error
        try:
            reply = read_answer(answer, self._clock.wall(), signed=bool(secret))
            handoff = asked_for_person(answer)
        except AgentFailed as error:
            raise AgentFailed(f"{self.place}: {error}") from None
        if handoff is not None:
            turn.hand_over(handoff)
        return reply

    async def post(self, body: bytes, key: str, signature: str) -> HttpAnswer:
        """One exchange, signed unless `signature` is empty. Raises AgentFailed when there was
        none, or the answer is too large."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": "answerback",
            "idempotency-key": key,
        }
        if signature:
            headers[SIGNATURE_HEADER] = signature
        request = self._client.build_request(
            "POST", self._config.url, content=body, headers=headers
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                after = response.headers.get("retry-after", "")
                return HttpAnswer(response.status_code, await self._body(response), after)
            finally:
                await response.aclose()
        except httpx.ConnectError as error:
            raise AgentFailed(f"{self.place}: can't connect ({error})") from error
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            # The last two: httpx reads where a redirect leads, though none is followed.
            raise AgentFailed(f"{self.place}: {type(error).__name__}") from error

    async def _body(self, response: httpx.Response) -> bytes:
        """The bounded body; nothing is read for a status that has no use for it."""
        if response.status_code not in _READ:
            return b""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise AgentFailed(f"{self.place}: its answer is compressed, which was not asked for")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._config.max_body:
                most = self._config.max_body
                raise AgentFailed(f"{self.place}: its answer is longer than {most} bytes")
        return bytes(body)

    async def close(self) -> None:
        await self._client.aclose()


def _place(address: str) -> str:
    """The address without what may be secret in it: user, password, query."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"AGENT: the address can't be read: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError("AGENT: an address looks like https://agent.example/turn")
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"
