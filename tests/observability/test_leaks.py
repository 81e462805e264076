"""Nothing that a process writes holds a person's words, a token, or a whole number.

The whole program runs between the providers. The pipeline is told no secrets, so that what
is not found was left out by rule, not because a setting was known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from bot.domain.turn import Turn
from bot.leases.checkpoints import Checkpoint
from tests.fakes.meta import faults as meta
from tests.fakes.meta.server import NUMBER, VERIFY_TOKEN
from tests.fakes.meta.server import SECRET as META_SECRET
from tests.fakes.meta.server import TOKEN as META_TOKEN
from tests.fakes.telegram import faults as telegram
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio import faults as twilio
from tests.fakes.twilio.server import AUTH_TOKEN
from tests.fakes.updates import Person
from tests.kit.whatsapp_cloud import ALONE
from tests.limits import until
from tests.observability.conftest import LogsTo, Written
from tests.world import SECRET, World

TEXT = "secret-text-XYZ call +49 151 12345678"
ANSWER = "hidden-answer-QRS"
ADA = 700100201
ADAS_PHONE = "whatsapp:+15550100015"
FORBIDDEN = (
    "secret-text",
    "12345678",
    "hidden-answer",
    "TEST-token",
    TOKEN.partition(":")[0],
    AUTH_TOKEN,
    SECRET,
    "15550100015",
    "0100099",
    META_TOKEN,
    META_SECRET,
    VERIFY_TOKEN,
    "15550100186",
    "wamid.",
)


@pytest.fixture(params=["INFO", "DEBUG"])
def written(
    request: pytest.FixtureRequest, log: LogsTo, capfd: pytest.CaptureFixture[str]
) -> Iterator[Written]:
    """Everything that is logged at this level; at the end all of it, and whatever else was
    printed.
    """
    written = log(request.param)
    yield written
    out, err = capfd.readouterr()
    everything = written.getvalue() + out + err
    assert [word for word in FORBIDDEN if word in everything] == []
    without_requests = [{**line, "request_id": ""} for line in written.lines]
    assert str(ADA) not in str(without_requests)


async def answer(turn: Turn) -> str:
    await turn.step("look", lambda: turn.text)
    return f"{ANSWER} {turn.text}"


async def fail(turn: Turn) -> str:
    raise ValueError(f"can't answer {turn.text!r} of {turn.messages[0].sender_id}")


async def fail_in_a_step(turn: Turn) -> str:
    def broken() -> str:
        raise LookupError(f"nothing known of {turn.text!r}")

    return str(await turn.step(f"look up {turn.text}", broken))


async def test_b91_a_whole_turn_prints_neither_text_nor_token(
    world: World, written: Written
) -> None:
    process = await world.start(agent=answer)
    await process.post_update(Person(ADA).text(TEXT))
    await world.twilio.inbound(TEXT, from_=ADAS_PHONE)
    await world.settled()
    assert world.telegram.texts(ADA) == [f"{ANSWER} {TEXT}"]
    await process.stop()
    assert len([line for line in written.lines if line["event"] == "the run ended: answered"]) == 2


@pytest.mark.parametrize("agent", [fail, fail_in_a_step])
async def test_an_agents_exception_may_quote_the_person(
    world: World, written: Written, agent: object
) -> None:
    process = await world.start(agent=agent, max_failures=1)  # type: ignore[arg-type]
    await process.post_update(Person(ADA).text(TEXT))
    await world.settled()
    await process.stop()
    line = written.about("the agent failed")
    assert line["error"] in ("ValueError", "LookupError")
    assert "tests/observability/test_leaks.py:" in line["frames"]
    assert "bot" not in line["frames"]
    written.about("the run ended: apologised")


async def test_a_provider_may_quote_the_person_or_the_token(world: World, written: Written) -> None:
    quoting = telegram.refused(400, f"Bad Request: can't parse {TEXT} for bot{TOKEN}")
    world.telegram.fail("sendMessage", quoting, times=None)
    world.twilio.fail("messages.create", twilio.refused(63016), times=None)
    process = await world.start(agent=answer)
    await process.post_update(Person(ADA).text(TEXT))
    await world.twilio.inbound(TEXT, from_=ADAS_PHONE)
    await world.settled()
    assert "Refused" in written.about("the provider said: Refused (400)")["event"]


async def test_b147_a_turn_through_meta_names_neither_person_nor_token_nor_message(
    world: World, written: Written
) -> None:
    """Meta's name of a message holds the person's number."""
    process = await world.start(agent=answer, **ALONE)
    await world.meta.person_writes(TEXT, from_="15550100186")
    await world.settled()
    [sent] = world.meta.messages()
    await world.meta.report(sent.wamid, "failed", 131026)
    unreadable = world.meta.message(TEXT, from_="15550100186") | {"text": None}
    await world.meta.deliver(world.meta.written_by(unreadable))
    elsewhere = world.meta.message(TEXT, from_="15550100186")
    await world.meta.deliver(world.meta.written_by(elsewhere, "1065403522429"), NUMBER)
    world.meta.fail("*", meta.unauthorized(), times=None)
    await world.meta.person_writes(TEXT, from_="15550100186")
    await world.until("SELECT down_reason FROM accounts", lambda rows: bool(rows[0][0]))
    await process.stop()
    assert written.about("the provider said: ChannelDown (190)")


async def test_a_connection_that_breaks_names_no_address(world: World, written: Written) -> None:
    world.telegram.fail("sendMessage", telegram.drop_after_storing())
    process = await world.start(agent=answer)
    await process.post_update(Person(ADA).text(TEXT))
    await world.settled()
    assert written.about("the provider said: Unknown")["channel"] == "telegram"


@pytest.mark.parametrize("where", [Checkpoint.AGENT_RETURNED, Checkpoint.MESSAGE_COMMITTED])
async def test_an_error_of_our_own_may_quote_the_person(
    world: World, written: Written, where: Checkpoint
) -> None:
    left = 1

    async def reached(checkpoint: Checkpoint) -> None:
        nonlocal left
        if checkpoint is where and left:
            left = 0
            raise ValueError(TEXT)

    process = await world.start(agent=answer, reached=reached)
    await process.post_update(Person(ADA).text(TEXT))
    await world.settled()
    assert [line["error"] for line in written.lines if "frames" in line].count("ValueError") == 1


async def test_a_payload_that_cannot_be_read_is_not_quoted(world: World, written: Written) -> None:
    process = await world.start(agent=answer)
    await process.post_update({"update_id": 1, "message": {"text": TEXT, "message_id": TEXT}})
    await process.post_update(Person(ADA).text(TEXT), secret="")
    assert written.about("dead letter")["level"] == "warning"
    assert written.about("was refused")["level"] == "warning"


async def test_lines_of_a_turn_say_whose_it_is(world: World, log: LogsTo) -> None:
    written = log("DEBUG")
    one = await world.start(agent=answer, holder_name="alpha")
    await world.start(agent=answer, holder_name="beta")
    await asyncio.gather(*(one.post_update(Person(ADA).text(f"number {n}")) for n in range(3)))
    await world.settled()
    await until(lambda: any(line["event"].startswith("the run ended") for line in written.lines))
    whose = {"run", "chat", "request_id", "account", "channel", "holder"}
    within = ("recorded: run", "the provider said", "the run ended")
    lines = [line for line in written.lines if line["event"].startswith(within)]
    assert len(lines) >= 3
    for line in lines:
        assert whose <= line.keys(), line
    assert len({line["chat"] for line in lines}) == 1
    assert {line["holder"] for line in lines} <= {"alpha/1", "beta/1"}
