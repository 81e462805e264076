"""An agent behind a URL: AGENT=https://... Each attempt on a turn is one POST, in the form of
bot/agents/http/contract.py."""

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
    """The agent's address and its limits.

    `timeout` bounds a whole exchange, in seconds (the caller also ends it at the turn's deadline);
    `max_body` bounds an answer, and `file_bytes` all files sent with a turn, in bytes. With 0 files
    are only described.
    """

    url: str
    secret: str = ""
    timeout: float = 600.0
    max_body: int = 1_000_000
    file_bytes: int = 5_000_000


class HttpAgent:
    """Asks the server, and keeps its errors away from the chat.

    It follows no redirects, uses no proxy from the environment, keeps no cookies (they would mix
    chats up) and does not retry: the turn's run does, with the same key.
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
                # Many servers close an idle connection after 5 s, so ours is dropped before that.
                keepalive_expiry=4.0,
            ),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        )

    async def __call__(self, turn: Turn) -> Reply:
        """Raises Retry, GiveUp, or AgentFailed with the server's address and what went wrong."""
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
        """Make one exchange, signed unless `signature` is empty. Raises AgentFailed if it breaks
        off, or if the answer is too large or compressed."""
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
            # The last two: httpx parses a redirect's address, although it is not followed.
            raise AgentFailed(f"{self.place}: {type(error).__name__}") from error

    async def _body(self, response: httpx.Response) -> bytes:
        """The body, up to `max_body` bytes; empty for a status whose body is not used."""
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
    """The address without the parts that may be secret: user, password, query."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"AGENT: the address can't be read: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError("AGENT: an address looks like https://agent.example/turn")
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"
