"""The calls that we make of Meta's Graph API for one number."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from channels.http import ErrorAnswer, NoAnswer, NothingReached, OneExchange, parsed, text_of
from channels.raw import Raw, obj, objs, string, whole
from channels.whatsapp_common.errors import LONGEST_WAIT

UPLOAD_TIMEOUT = 120.0
READ_TIMEOUT = 5.0
ASK_TIMEOUT = 8.0
"""Seconds for a question about a number: several follow each other while an operator waits."""
_BAD_PARAMETER = 100
_NO_SUCH_OBJECT = 33
_USAGE = "x-business-use-case-usage"
_ID = re.compile(r"[0-9A-Za-z_.=-]*[0-9A-Za-z]")


class GraphError(ErrorAnswer):
    """Meta answered outside 2xx. `code` alone says why; `regain` are the seconds after which it
    lets the account call again, None where it names none."""

    def __init__(self, answer: httpx.Response, said: Raw) -> None:
        wait = answer.headers.get("retry-after", "")
        super().__init__(answer.status_code, _code(obj(said, "error")), wait)
        self.regain = _regain(answer.headers.get(_USAGE, ""))


def _code(error: Raw) -> int | None:
    """Meta's code; of a number that is not there, or that the token has no part in, 33."""
    code, subcode = whole(error, "code"), whole(error, "error_subcode")
    return _NO_SUCH_OBJECT if code == _BAD_PARAMETER and subcode == _NO_SUCH_OBJECT else code


def _regain(usage: str) -> float | None:
    """The longest wait that the header names, which counts minutes."""
    used = parsed(usage)
    waits = [
        whole(row, "estimated_time_to_regain_access") or 0
        for account in used
        for row in objs(used, account)
    ]
    longest = min(max(waits, default=0), LONGEST_WAIT / 60)
    return longest * 60.0 if longest > 0 else None


@dataclass(frozen=True, slots=True)
class Media:
    """A file at Meta. `url` lives for minutes; `size` in bytes, None where it is not told;
    `sha256` in hex digits or Base64, as it came."""

    url: str
    sha256: str
    size: int | None


class GraphApi(OneExchange):
    """One number, by its id, with its token. Everything raises `CallFailed` and nothing is tried
    twice; `timeout` are the seconds for a call with its answer."""

    def __init__(self, base: str, version: str, phone_id: str, token: str, timeout: float) -> None:
        super().__init__()
        self._base = f"{base}/{version}"
        self._phone_id = phone_id
        self._token = token
        self._timeout = timeout

    @property
    def authorization(self) -> Mapping[str, str]:
        """The header that carries the token, for hosts of Meta's alone."""
        return _bearer(self._token)

    async def send(self, body: Mapping[str, object]) -> str:
        """Send one message; its id, empty when a good answer names none."""
        answer = await self._message(body, self._timeout)
        return next((string(row, "id") for row in objs(answer, "messages")), "")

    async def read(self, message: str, *, typing: bool) -> None:
        """Mark a person's message as read, and show the typing indicator."""
        shown = {"typing_indicator": {"type": "text"}} if typing else {}
        await self._message({"status": "read", "message_id": message, **shown}, READ_TIMEOUT)

    async def _message(self, body: Mapping[str, object], timeout: float) -> Raw:
        url = f"{self._base}/{self._phone_id}/messages"
        whole = {"messaging_product": "whatsapp", **body}
        return await self._call(_request("POST", url, self.authorization, whole), timeout)

    async def upload(self, data: bytes, content_type: str, name: str) -> str:
        """Keep a file at Meta for 30 days; its id, empty when a good answer names none."""
        request = httpx.Request(
            "POST",
            f"{self._base}/{self._phone_id}/media",
            headers=self.authorization,
            data={"messaging_product": "whatsapp", "type": content_type},
            files={"file": (name, data, content_type)},
        )
        return string(await self._call(request, UPLOAD_TIMEOUT), "id")

    async def media(self, media: str) -> Media:
        """The place of a person's file, by its id."""
        asked = {"phone_number_id": self._phone_id}
        said = await self._ask("GET", media, "", asked, None, self._timeout)
        url = string(said, "url")
        if not url:
            raise NoAnswer("the answer names no address")
        return Media(url, string(said, "sha256"), whole(said, "file_size"))

    async def get(self, path: str, token: str = "", **asked: str) -> Raw:
        """An object or a list; `token` is another than the number's own."""
        limit = min(self._timeout, ASK_TIMEOUT)
        return await self._ask("GET", path, token, asked, None, limit)

    async def post(self, path: str, body: Mapping[str, object], token: str = "") -> Raw:
        """Change an object."""
        return await self._ask("POST", path, token, {}, body, self._timeout)

    async def delete(self, path: str, token: str = "", **asked: str) -> Raw:
        """Take something away."""
        return await self._ask("DELETE", path, token, asked, None, self._timeout)

    async def _ask(
        self,
        method: str,
        path: str,
        token: str,
        asked: Mapping[str, str],
        body: Mapping[str, object] | None,
        limit: float,
    ) -> Raw:
        if not all(_ID.fullmatch(step) for step in path.split("/")):
            raise NothingReached("the id is none of Meta's")
        headers = _bearer(token or self._token)
        request = _request(method, f"{self._base}/{path}", headers, body, asked)
        return await self._call(request, limit)

    async def _call(self, request: httpx.Request, timeout: float) -> Raw:
        async with self.exchange(request, timeout) as answer:
            text = await text_of(answer)
        said = parsed(text)
        if not answer.is_success:
            raise GraphError(answer, said)
        return said


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: Mapping[str, object] | None,
    asked: Mapping[str, str] | None = None,
) -> httpx.Request:
    """JSON in ASCII: whatever a text holds, its bytes can be written."""
    whole = None if body is None else json.dumps(body).encode()
    kind = {"Content-Type": "application/json"} if body is not None else {}
    try:
        return httpx.Request(
            method, url, params=asked or None, headers={**headers, **kind}, content=whole
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        raise NothingReached(type(error).__name__) from None
