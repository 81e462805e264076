"""A fake in its own process is scripted and read through its back door."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.fakes.clients import http
from tests.fakes.recording import Json
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.updates import Person
from tests.limits import PATIENCE

ADA = "whatsapp:+15550100015"


@asynccontextmanager
async def running(name: str) -> AsyncIterator[httpx.AsyncClient]:
    command = (sys.executable, "-m", f"tests.fakes.{name}", "--port", "0")
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        async with http(url) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def tell(client: httpx.AsyncClient, path: str, body: Json) -> Any:
    answer = await client.post(f"/_fake/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read(client: httpx.AsyncClient, path: str, **query: str | int) -> Any:
    answer = await client.get(f"/_fake/{path}", params=query, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_bot_api_in_another_process_misbehaves_as_told() -> None:
    async with running("telegram") as client:
        send = f"/bot{TOKEN}/sendMessage"
        fault: Json = {"method": "sendMessage", "fault": "drop_after_storing", "chat": 5}
        await tell(client, "fail", fault)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(send, json={"chat_id": 5, "text": "lost"})
        assert (await read(client, "messages", chat=5))[0]["text"] == "lost"

        named: Json = {"fault": "migrated", "args": {"to": -1007}, "method": "*", "times": None}
        rule = await tell(client, "fail", named)
        assert (await client.post(send, json={"chat_id": -7, "text": "x"})).status_code == 400
        await tell(client, "cancel", rule)
        assert (await client.post(send, json={"chat_id": -7, "text": "x"})).status_code == 200
        calls = await read(client, "calls", method="sendMessage", chat=-7)
        assert [c["status"] for c in calls] == [400, 200]
        assert await read(client, "violations") == []


async def test_a_test_can_wait_for_what_another_process_will_see() -> None:
    async with running("telegram") as client:
        held = await tell(client, "fail", {"method": "getMe", "fault": "held_before_storing"})
        asking = asyncio.create_task(client.post(f"/bot{TOKEN}/getMe", timeout=PATIENCE))
        await read(client, "wait", what="calls", method="getMe", count=1)
        await tell(client, "release", held)
        assert (await asking).status_code == 200
        late = await client.get("/_fake/wait", params={"count": 1, "timeout": "0.01"})
        assert late.status_code == 408


async def test_an_update_that_is_enqueued_from_outside_is_polled() -> None:
    async with running("telegram") as client:
        await tell(client, "do/enqueue", {"update": Person(5).text("hi")})
        polled = await client.post(f"/bot{TOKEN}/getUpdates")
        assert [u["message"]["text"] for u in polled.json()["result"]] == ["hi"]


async def test_a_messages_api_in_another_process_takes_orders() -> None:
    async with running("twilio") as client:
        auth = (ACCOUNT, AUTH_TOKEN)
        path = f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
        form = {"To": ADA, "From": SENDER, "Body": "hello"}
        await tell(client, "do/configure", {"statuses": [], "list_lag": 1})
        sid = (await client.post(path, data=form, auth=auth)).json()["sid"]
        assert (await client.get(path, auth=auth)).json()["messages"] == []
        await tell(client, "do/report", {"sid": sid, "status": "sent"})
        listed = (await client.get(path, auth=auth)).json()["messages"]
        assert [m["status"] for m in listed] == ["sent"]
        await tell(client, "do/inbound", {"body": "hi", "from_": ADA})
        listed = (await client.get(path, auth=auth)).json()["messages"]
        assert [m["direction"] for m in listed] == ["inbound", "outbound-api"]
        assert [m["body"] for m in await read(client, "messages", chat=ADA)] == ["hello"]
        await tell(client, "clear", {})
