"""Webhooks as a platform delivers them, by connections that stay open.

An HTTP client for people would itself take longer than what is measured: requests are made
beforehand, and an answer is read no further than its status and its end.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import signed_headers
from tests.fakes.updates import Person
from tests.world import PUBLIC, SECRET, SECRET_HEADER

Request = bytes


@dataclass
class Line:
    """One open connection to one process of ours."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def post(self, request: Request) -> tuple[int, float]:
        """(status, seconds until it was there)."""
        began = time.monotonic()
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, *fields = head.decode("latin-1").lower().split("\r\n")
        length = next(int(f[15:]) for f in fields if f.startswith("content-length:"))
        await self.reader.readexactly(length)
        return int(status.split()[1]), time.monotonic() - began


async def open_lines(urls: Sequence[str], count: int) -> list[Line]:
    """So many connections, to each of these processes in turn."""
    places = [urlsplit(urls[n % len(urls)]) for n in range(count)]
    opened = [asyncio.open_connection(p.hostname, p.port, limit=2**16) for p in places]
    return [Line(*pair) for pair in await asyncio.gather(*opened)]


def close_lines(lines: Sequence[Line]) -> None:
    """Hang up."""
    for line in lines:
        line.writer.close()


def telegram(person: Person, text: str) -> Request:
    """A person's next message to the bot."""
    body = json.dumps(person.text(text)).encode()
    kind = {"Content-Type": "application/json", SECRET_HEADER: SECRET}
    return _request("/telegram/webhook", body, kind)


def whatsapp(person: int, number: int, text: str) -> Request:
    """A message of a WhatsApp user, signed by Twilio."""
    path, name = "/whatsapp/webhook", f"whatsapp:+1555{person:07d}"
    form = inbound_form(sid=f"SM{number:032x}", account=ACCOUNT, from_=name, to=SENDER, body=text)
    headers = signed_headers(PUBLIC + path, form, AUTH_TOKEN, None)
    kind = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return _request(path, urlencode(form).encode(), kind)


def _request(path: str, body: bytes, headers: dict[str, Any]) -> Request:
    fields = {"Host": "127.0.0.1", **headers, "Content-Length": len(body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body
