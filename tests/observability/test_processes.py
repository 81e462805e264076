"""The whole output of a real process: every level, both forms, no setting but its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.processes import Ground, Program, free_port, open_ground
from tests.fakes.telegram import faults
from tests.fakes.twilio.server import AUTH_TOKEN
from tests.fakes.updates import Person
from tests.limits import until
from tests.world import SECRET

ADA = 700100201
FORBIDDEN = ("TEST-token", "secret-text", "12345678", "15550100015", AUTH_TOKEN, SECRET)


@pytest.fixture
async def ground(sqlite_url: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with open_ground(sqlite_url, tmp_path) as ground:
        yield ground


async def serve(ground: Ground, **changes: str) -> Program:
    """A serving process that is ready, whatever its lines look like."""
    port = free_port()
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
    assert program.said == []


async def test_a_level_that_does_not_exist_is_a_clear_error(ground: Ground) -> None:
    program = await ground.spawn("serve", LOG_LEVEL="loud")
    assert await program.ended() == 2
    assert program.said == [
        "answerback: LOG_LEVEL: Input should be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"
    ]
