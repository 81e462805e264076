"""An HTTP server that can misbehave: in the test's own event loop, or in its own process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from tests.fakes import admin
from tests.fakes.faults import Answer, Fault, FloodWait, How, Misbehaviour, Rule, Script
from tests.fakes.recording import Call, Json, Now, Record, T, machine_time
from tests.limits import PATIENCE
from tests.ports import BACKLOG, held_port

Perform = Callable[[], Awaitable[Answer]]
Order = Callable[[Json], Awaitable[object]]
"""Something that a test in another process may ask of the fake."""


class Listener:
    """One listening socket on 127.0.0.1 whose open connections can be broken one by one.

    Its port is its own from `open` to `close`, also while it is `shut`.
    """

    def __init__(self, app: Starlette, port: int = 0) -> None:
        self.port = port
        self.closing = asyncio.Event()
        self._app = app
        self._peers: dict[object, asyncio.Transport] = {}
        self._server: asyncio.Server | None = None
        self._holder: socket.socket | None = None
        self._state = ServerState()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self) -> None:
        """Listen; on the same port again when it was shut before."""
        peers, state, closing = self._peers, self._state, self.closing
        config = Config(
            self._serve,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            # Later than any caller lets go of it: else the two could meet on the wire.
            timeout_keep_alive=int(PATIENCE),
        )
        config.load()

        class Connection(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                self.access_log = False
                peers[self.client] = transport
                if closing.is_set():
                    transport.abort()  # It was on its way in when the door was shut.

            def connection_lost(self, exc: Exception | None) -> None:
                peers.pop(self.client, None)
                super().connection_lost(exc)

        def connect() -> asyncio.Protocol:
            return Connection(config=config, server_state=state, app_state={})

        if self._holder is None:
            self._holder = held_port(self.port)
            self.port = self._holder.getsockname()[1]
        # Named, because asyncio only then sets TCP_NODELAY; without it every answer takes 40 ms.
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", self.port))
        self.closing.clear()
        self._server = await asyncio.get_running_loop().create_server(
            connect, sock=sock, backlog=BACKLOG
        )

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self.closing.is_set():
                raise

    async def shut(self) -> None:
        """Refuse connections from now on and break the open ones."""
        self.closing.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        for transport in list(self._peers.values()):
            transport.abort()
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Be gone, and let go of the port."""
        await self.shut()
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def transport(self, scope: Scope) -> asyncio.Transport | None:
        client = scope["client"]
        return self._peers.get(tuple(client)) if client else None


GONE = Answer(499, b"")
"""For the record only: the caller hung up before there was an answer."""


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, answering: Coroutine[None, None, Answer]) -> Answer:
    """The answer, or GONE as soon as the caller hangs up; then `answering` is cancelled."""
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else GONE
    finally:
        answer.cancel()
        gone.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)


class Hang(Response):
    """No answer, for as long as the caller stays on the line."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _until_gone(receive)


class Drop(Response):
    """The connection closes; with `head`, after half of an answer."""

    def __init__(self, listener: Listener, head: Answer | None = None) -> None:
        super().__init__()
        self._listener = listener
        self._head = head

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = self._listener.transport(scope)
        if transport is None:
            return
        if self._head is None:
            transport.abort()
        else:
            await self._half(send, self._head)
            transport.close()
        await _until_gone(receive)

    @staticmethod
    async def _half(send: Send, answer: Answer) -> None:
        length = str(len(answer.body)).encode()
        headers = [(b"content-type", answer.content_type.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        half = answer.body[: len(answer.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})


class FakeProvider:
    """The base of the fakes: a listener, a script of faults, a record, waiters.

    Use it as an async context manager; `url` is its base while it runs. `now` gives epoch
    seconds and is all that it knows of time."""

    def __init__(self, *, now: Now = machine_time, port: int = 0) -> None:
        self.now = now
        self.record = Record(now)
        self.script = Script()
        self.orders: dict[str, Order] = {}
        routes = [*admin.routes(self), *self.routes()]
        self.listener = Listener(Starlette(routes=routes), port)

    def routes(self) -> list[BaseRoute]:
        """The provider's own endpoints."""
        raise NotImplementedError

    def named_faults(self) -> Mapping[str, Callable[..., Misbehaviour]]:
        """The faults that a script over HTTP can name."""
        raise NotImplementedError

    def shown(self, chat: str) -> list[Json]:
        """Everything that a person sees in a chat, or everybody in all, for those who ask over
        HTTP.
        """
        raise NotImplementedError

    async def open(self) -> None:
        await self.listener.open()

    async def close(self) -> None:
        await self.listener.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.script.clear()
        await self.close()

    @property
    def url(self) -> str:
        return self.listener.url

    @property
    def calls(self) -> list[Call]:
        return self.record.calls

    @property
    def violations(self) -> list[str]:
        return self.record.violations

    def calls_of(self, method: str = "", chat: int | str = "") -> list[Call]:
        """The calls of one method, of one chat, or of both."""
        return self.record.of(method, chat)

    async def wait_for(self, predicate: Callable[[], T], timeout: float = PATIENCE) -> T:
        """The first true value of `predicate`; AssertionError after `timeout` seconds."""
        return await self.record.wait_for(predicate, timeout)

    async def refuse_connections(self) -> None:
        """Nobody listens any more: connecting is refused until `accept_connections()`."""
        await self.listener.shut()

    async def accept_connections(self) -> None:
        await self.listener.open()

    def fail(
        self,
        method: str,
        fault: Misbehaviour,
        *,
        chat: int | str | None = None,
        nth: int = 1,
        times: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> Rule:
        """Play `fault` on matching calls: from the `nth` on, `times` times (None: for ever).

        A flood wait ends by itself, whatever `times` says.
        """
        address = None if chat is None else str(chat)
        limit = None if isinstance(fault, FloodWait) else times
        return self.script.add(Rule(method, fault, address, nth, limit, when))

    async def carry_out(self, call: Call, perform: Perform) -> Response:
        """Do what the call asks, or what the script makes of it."""
        met = self.script.decide(call, self.now())
        if met is None:
            return self._write(call, await self._perform(call, perform))
        rule, fault = met
        call.fault = fault.name
        self.record.changed()
        if fault.held_before:
            await rule.released.wait()
        answer = await self._perform(call, perform) if fault.stores else None
        if fault.held_after:
            await rule.released.wait()
        return self._misbehave(call, fault, fault.answer or answer)

    async def _perform(self, call: Call, perform: Perform) -> Answer:
        answer = await perform()
        call.stored = answer.ok
        self.record.changed()
        return answer

    def _misbehave(self, call: Call, fault: Fault, answer: Answer | None) -> Response:
        match fault.how:
            case How.ANSWER:
                assert answer is not None, f"{fault.name} has nothing to answer with"
                return self._write(call, answer)
            case How.HANG:
                return Hang()
            case How.DROP:
                return Drop(self.listener)
            case How.CUT:
                return Drop(self.listener, answer)

    def drop_unread(self, method: str, account: str) -> Response | None:
        """The closed connection that a call meets before its body is read, if any."""
        fault = self.script.unread(method)
        if fault is None:
            return None
        self.record.begin(method, {}, account, "").fault = fault.name
        return Drop(self.listener)

    def _write(self, call: Call, answer: Answer) -> Response:
        call.status = answer.status
        call.answer = answer
        self.record.changed()
        headers: dict[str, Any] = dict(answer.headers)
        return Response(answer.body, answer.status, headers, answer.content_type)
