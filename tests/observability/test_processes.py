"""The whole output of a real process: every level, both forms, no setting but its own."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.e2e.processes import PROGRAM, Ground, Program, open_ground
from tests.fakes.telegram import faults
from tests.fakes.twilio.server import AUTH_TOKEN
from tests.fakes.updates import Person
from tests.limits import PATIENCE, until
from tests.ports import own_port
from tests.world import SECRET

ADA = 700100201
PIPE = 4096
"""Bytes that a log may be ahead of its reader: the least that the kernel gives, full soon."""
FORBIDDEN = ("TEST-token", "secret-text", "12345678", "15550100015", AUTH_TOKEN, SECRET)


@pytest.fixture
async def ground(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(sqlite_url, tmp_path) as ground:
        yield ground


async def serve(ground: Ground, **changes: str) -> Program:
    """A serving process that is ready, whatever its lines look like."""
    port = own_port()
    program = await ground.spawn("serve", PORT=str(port), **changes)
    await program.accepts(port)
    await until(program.is_ready)
    ground.lead_to(program)
    return program


@pytest.mark.parametrize(("level", "form"), [("INFO", "console"), ("DEBUG", "json")])
async def test_b91_a_process_prints_neither_token_nor_text(
    ground: Ground, level: str, form: str
) -> None:
    world = ground.world
    world.telegram.fail("sendMessage", faults.bad_gateway(stores=False))
    ground.agent.fail("turn", faults.drop_before_storing())
    program = await serve(ground, LOG_LEVEL=level, LOG_FORMAT=form)
    await program.post_update(Person(ADA).text("secret-text-XYZ +49 151 12345678"))
    await world.twilio.inbound("secret-text-XYZ", from_="whatsapp:+15550100015")
    await world.settled()
    limits = Path(f"/proc/{program.pid}/limits")
    if limits.exists():  # An image of the process would hold both.
        assert re.search(r"^Max core file size +0 ", limits.read_text(), re.MULTILINE)
    assert await program.stop() == 0
    assert "the run ended: " in program.output
    assert [word for word in FORBIDDEN if word in program.output] == []
    if form == "json":
        assert all(
            json.loads(line)["level"] in ("debug", "info", "warning") for line in program.said
        )


async def test_the_terminal_chat_logs_nothing_when_all_is_well(ground: Ground) -> None:
    program = await ground.talk("chat", lines="hello\n", LOG_LEVEL="DEBUG")
    assert await program.ended() == 0
    assert program.printed == ["re: hello"]
    slow = "the database took too long; trying again"  # Or else the machine.
    runs, *logged = [line for line in program.said if line != slow]
    assert runs.startswith("Answerback ")
    assert logged == []


async def test_a_level_that_does_not_exist_is_a_clear_error(ground: Ground) -> None:
    program = await ground.spawn("serve", LOG_LEVEL="loud")
    assert await program.ended() == 2
    assert program.said == ["answerback: LOG_LEVEL: must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"]


@contextmanager
def unread(ground: Ground, **changes: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A serving process, and the end of the pipe that it writes to, from which nobody reads."""
    end, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, PIPE)
    environment = ground.environment(LOG_LEVEL="DEBUG", BURST="each", **changes)
    with subprocess.Popen(
        (str(PROGRAM), "serve"), cwd=ground.folder, env=environment, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            yield process, end
        finally:
            process.kill()


async def posted(ground: Ground, port: int, numbers: range) -> None:
    """Post an update of each number, over 50 chats, and wait for the answers."""
    here = Program(None, ground.client, url=f"http://127.0.0.1:{port}")  # type: ignore[arg-type]  # its pipes are ours
    await here.accepts(port)
    await until(here.is_ready)
    people = [Person(ADA + n) for n in range(50)]
    for number in numbers:
        await here.takes(people[number % 50].text(f"number {number}"))
    assert (await here.get("/healthz")).status_code == 200
    await ground.world.settled()


@pytest.mark.long
async def test_b122_a_log_that_nobody_reads_stops_nothing(ground: Ground) -> None:
    port = own_port()
    with unread(ground, PORT=str(port)) as (process, end):
        await posted(ground, port, range(400))
        assert len(ground.world.telegram.calls_of("sendMessage")) == 400
        assert await ground.world.rows("SELECT count(*) FROM holders") == [(1,)]
        with os.fdopen(end, "rb") as drained:
            lines = await asyncio.to_thread(_read_until, drained, b"lines were dropped")
            told = re.search(rb"(\d+) lines were dropped", lines[-1])
            assert told is not None
            assert int(told[1]) > 0
            process.send_signal(signal.SIGTERM)
            rest = await asyncio.to_thread(drained.read)
        assert process.wait(PATIENCE) == 0
        assert b"handed over" in rest


@pytest.mark.long
async def test_b122_it_leaves_while_nobody_reads_and_goes_on_when_the_reader_has_gone(
    ground: Ground,
) -> None:
    port = own_port()
    with unread(ground, PORT=str(port)) as (process, end):
        await posted(ground, port, range(30))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0
        os.close(end)
    port = own_port()
    with unread(ground, PORT=str(port)) as (process, end):
        os.close(end)
        await posted(ground, port, range(30, 40))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


def _read_until(file: IO[bytes], word: bytes) -> list[bytes]:
    lines = []
    for line in file:
        lines.append(line)
        if word in line:
            break
    return lines
