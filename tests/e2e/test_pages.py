"""Pages from outside: real processes, as they are started by a newcomer and by a site."""

from __future__ import annotations

import asyncio
import html
import json
import re
import signal
from contextlib import AsyncExitStack
from importlib.metadata import version

import httpx
import pytest

from tests.e2e.processes import NO_PLATFORM, Ground, Program
from tests.fakes.telegram.faults import held_after_storing
from tests.kit import web
from tests.kit.line import line_to
from tests.kit.web import API, IDENTITY_SECRET, Following, Visitor, identity
from tests.limits import until

SITE = {**NO_PLATFORM, "WEB": "true", "WEB_IDENTITY_SECRET": IDENTITY_SECRET}


async def page_of(program: Program) -> str:
    """The address of the page that a program beside the terminal has told."""

    def told() -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/web/", program.output)
        return found[0] if found else ""

    return await until(told)


async def test_without_credentials_the_agent_is_met_in_a_browser_too(
    sqlite_ground: Ground,
) -> None:
    ground = sqlite_ground
    program = await ground.spawn("up", **NO_PLATFORM)
    page = await page_of(program)
    shown = await ground.client.get(page)
    assert shown.status_code == 200
    assert f'src="{page}answerback.js"' in html.unescape(shown.text), "a line to copy works"
    [script] = re.findall(r'<script src="([^"]+)"', shown.text)
    served = await ground.client.get(httpx.URL(page).join(script))
    assert served.headers["content-type"].startswith("text/javascript")
    visitor = await Visitor(page.removesuffix("/web/"), ground.client).begin()
    await program.say("hello\n")
    assert (await visitor.say("m1", "from a page")).status_code == 202
    assert (await visitor.answered("m1"))["answer"] == "re: from a page"
    await until(lambda: "re: hello" in program.printed)
    assert "re: from a page" not in program.printed
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        await program.say("", end=True)
        assert await program.ended() == 0
    assert following.retry or following.over
    assert "Traceback" not in program.output


@pytest.mark.parametrize("changes", [{"WEB": "false"}, {}])
async def test_a_pipe_gets_its_answers_and_nothing_else(
    sqlite_ground: Ground, changes: dict[str, str]
) -> None:
    program = await sqlite_ground.talk("up", lines="hello\n", **changes)
    assert await program.ended() == 0
    assert program.printed == ["re: hello"]
    assert ("/web/" in program.output) == (not changes)
    (runs,) = [line for line in program.said if line.startswith("Answerback ")]
    assert runs.startswith(f"Answerback {version('answerback')}: agent http://127.0.0.1:")
    assert f"; channels console{'' if changes else ', web'}; " in runs


async def test_a_platform_without_its_name_is_told_beside_the_terminal(
    sqlite_ground: Ground,
) -> None:
    program = await sqlite_ground.talk("up", lines="hello\n", META_ACCESS_TOKEN="EAAtoken")
    assert await program.ended() == 0
    assert program.printed == ["re: hello"]
    assert "META_PHONE_NUMBER_ID" in program.output
    assert "EAAtoken" not in program.output


async def test_where_the_port_is_taken_the_page_is_at_another(sqlite_ground: Ground) -> None:
    first = await sqlite_ground.spawn("up", **NO_PLATFORM)
    port = (await page_of(first)).split(":")[2].partition("/")[0]
    second = await sqlite_ground.spawn("up", **{**NO_PLATFORM, "PORT": port})
    pages = [await page_of(program) for program in (first, second)]
    assert pages[0] != pages[1]
    for page in pages:
        assert (await sqlite_ground.client.get(page)).status_code == 200


async def test_a_public_site_shows_no_page_of_ours(sqlite_ground: Ground) -> None:
    program = await sqlite_ground.serve(**SITE | {"PUBLIC_URL": "https://bot.example.test"})
    assert (await program.get("/web/")).status_code == 404
    assert (await program.get("/web/answerback.js")).status_code == 200


async def test_b158_no_token_is_in_a_log_a_metric_or_an_error(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    program = await ground.serve(**SITE, LOG_LEVEL="debug")
    visitor = await Visitor(program.url, ground.client).begin()
    secrets = [visitor.token]
    said = []
    await visitor.say("m1", "hello")
    await visitor.answered("m1")
    secrets.append(identity(ground.world.clock, "u1", "Ada"))
    await visitor.sign_in(secrets[1])
    secrets.append(visitor.token)
    for token in secrets:
        wrong = Visitor(program.url, ground.client, token[:-3] + "abc")
        for path in ("/messages", "/turns/m1", "/events", "/files/x", f"/turns/{token}"):
            queries = ("", f"?token={token}", f"?access_token={token}")
            said += [await wrong.ask("GET", path + query) for query in queries]
        said.append(await wrong.ask("POST", "/session", {"identity": token[:-3] + "abc"}))
        said.append(await wrong.ask("POST", "/messages", token.encode()))
        said.append(await ground.client.get(f"{program.url}{API}/{token}"))
        said.append(await ground.client.get(f"{program.url}/telegram/{token}?token={token}"))
    assert {answer.status_code for answer in said} <= {401, 404}
    await visitor.ask("DELETE", "/session")
    metrics = (await program.get("/metrics")).text
    assert await program.stop() == 0
    told = [program.output, metrics, *(f"{a.headers} {a.text}" for a in said)]
    for secret in (*secrets, IDENTITY_SECRET):
        for start in range(len(secret) - 19):
            piece = secret[start : start + 20]
            assert not any(piece in text for text in told), piece


@pytest.mark.long
async def test_b161_a_deploy_under_open_streams_loses_no_event_and_waits_for_no_stream(
    postgres_ground: Ground,
) -> None:
    ground = postgres_ground
    settings = {**SITE, "SHUTDOWN_GRACE": "3600", "WEB_ADDRESS_PER_MINUTE": "100000"}
    leaver, stayer = [await ground.serve(**settings) for _ in range(2)]
    places = [httpx.URL(program.url).port or 0 for program in (leaver, stayer)]
    held = ground.agent.fail("turn", held_after_storing(), times=None)
    async with web.client() as http, line_to(*places) as line, AsyncExitStack() as stack:
        visitors = [await Visitor(line.url, http).begin() for _ in range(20)]
        told: list[list[int]] = [[] for _ in range(200)]

        async def follow() -> list[Following]:
            """All follow, each from where it is, ten of each chat."""
            return [
                await stack.enter_async_context(
                    visitors[place // 10].following(after=numbers[-1] if numbers else None)
                )
                for place, numbers in enumerate(told)
            ]

        async def ended(streams: list[Following]) -> None:
            """All of these streams are over; what they told is kept."""
            for stream, numbers in zip(streams, told, strict=True):
                await stream.until(lambda f: f.over)
                numbers += [one.id for one in stream.events if one.id is not None]

        streams = await follow()
        for visitor in visitors:
            assert (await visitor.say("m1", "hello")).status_code == 202
        for stream in streams:
            await stream.until(lambda f: "working" in f.kinds)
        await until(lambda: len(ground.agent.turns()) == 20)
        late = await begin_to_post(visitors[0], "late", "are you there?")
        leaver.signal(signal.SIGTERM)
        await ended(streams)
        waits = {stream.retry for stream in streams}
        assert len(waits) > 100
        assert all(wait is not None and wait < 5000 for wait in waits)
        line.places = places[1:]  # As a balancer does that asks /readyz.
        again = await follow()
        status = await end_post(*late)
        line.cut()
        await ended(again)
        again = await follow()
        held.release()
        for stream in again:
            await stream.until(lambda f: "ended" in f.kinds)
        assert await leaver.ended() == 0
        assert status in (202, 503)
        if status == 503:
            assert (await visitors[0].turn("late"))["status"] == "unknown"
            assert (await visitors[0].say("late", "are you there?")).status_code == 202
        assert (await visitors[0].answered("late"))["answer"] == "re: are you there?"
        line.cut()
        await ended(again)
        for numbers in told:
            assert numbers[:4] == [1, 2, 3, 4]
            assert numbers == list(range(1, len(numbers) + 1))
        said = [one["text"] for visitor in visitors for one in await visitor.history()]
        assert said.count("re: hello") == 20
    assert len(ground.agent.turns("hello")) == 20
    assert "Traceback" not in leaver.output


async def begin_to_post(
    visitor: Visitor, name: str, text: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A message of which half has left; returns its other half."""
    place = httpx.URL(visitor.url)
    reader, writer = await asyncio.open_connection(place.host, place.port)
    body = json.dumps({"request_id": name, "text": text}).encode()
    writer.write(
        f"POST {API}/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {visitor.token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body[:10]
    )
    await writer.drain()
    return reader, writer, body[10:]


async def end_post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes) -> int:
    """The other half; returns the status of the answer."""
    writer.write(rest)
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status
