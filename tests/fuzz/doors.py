"""A request to an application in this process, as a server hands it on, and what came back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

App = Callable[..., Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]
_UNWELCOME = set(b"\r\n\x00")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `target` is path and query in ASCII as they stand in its first line; `body`
    comes in these pieces, and after the last of them the client is gone if it is `cut`."""

    method: str
    target: str
    headers: Headers = ()
    body: Sequence[bytes] = (b"",)
    cut: bool = False

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The parts that count as its size."""
        return {"target": self.target, "headers": list(self.headers), "body": list(self.body)}


@dataclass
class Answer:
    """An answer; a status of 0 for none."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    def take(self, message: MutableMapping[str, Any]) -> None:
        """Take a piece. Raises NotAsAnAnswer."""
        if message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            return
        if self.status:
            raise NotAsAnAnswer("a second answer")
        self.status = message["status"]
        for name, value in message.get("headers", ()):
            if _UNWELCOME & set(name + value):
                raise NotAsAnAnswer(f"a header with a line end: {name!r}: {value!r}")
            self.headers[name.lower()] = value


class NotAsAnAnswer(AssertionError):
    """An application answered as no server of ours may."""


class AskedAgain(NotAsAnAnswer):
    """An application could not store what it was told, and asked to be told again."""


async def ask(app: App, request: Request) -> Answer:
    """The answer to a request. The client of a stream goes when it has read its first piece.
    Raises NotAsAnAnswer for a 5xx and for what no server can hand on."""
    answer = Answer()
    pieces = list(request.body)

    async def receive() -> MutableMapping[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces) or request.cut}

    async def send(message: MutableMapping[str, Any]) -> None:
        answer.take(message)

    await app(_scope(request), receive, send)
    if not answer.status and not request.cut:
        raise NotAsAnAnswer("no answer")
    if answer.status >= 500:
        kind = AskedAgain if answer.status == 503 else NotAsAnAnswer
        raise kind(f"{answer.status}: {bytes(answer.body[:200])!r}")
    return answer


def _scope(request: Request) -> dict[str, Any]:
    path, _, query = request.target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": list(request.headers),
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8080),
        "state": {},
    }
