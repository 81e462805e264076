"""Every line comes out through one pipeline, in one form, with the fields of where it belongs."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest
import structlog

from bot.observability.context import about, bind, chat_tag, held_by
from bot.observability.logs import report_from_loop
from tests.observability.conftest import LogsTo

ours = logging.getLogger("answerback.test")
library = logging.getLogger("some.library")


def test_a_line_says_when_how_bad_who_and_what(log: LogsTo) -> None:
    written = log()
    ours.info("gave back %d runs", 3)
    [line] = written.lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("at"))
    assert line == {"level": "info", "logger": "answerback.test", "event": "gave back 3 runs"}


def test_lines_carry_what_was_bound_around_them_and_no_longer(log: LogsTo) -> None:
    written = log()
    with about(run=17, chat="c0ffee", request_id="tg-700100201-5", part=None):
        ours.info("inside")
    ours.info("outside")
    inside, outside = written.lines
    expected = {"run": 17, "chat": "c0ffee", "request_id": "tg-700100201-5"}
    assert expected.items() <= inside.items()
    assert "part" not in inside
    assert not expected.keys() & outside.keys()


async def test_what_a_task_binds_stays_in_it_and_in_those_it_starts(log: LogsTo) -> None:
    written = log()

    async def child() -> None:
        ours.info("child")

    async def turn() -> None:
        bind(run=17)
        await asyncio.create_task(child())

    await asyncio.create_task(turn())
    ours.info("outside")
    assert [line.get("run") for line in written.lines] == [17, None]


async def test_the_holders_name_is_asked_for_each_line(log: LogsTo) -> None:
    written = log()
    names = iter(["host/1", "host/2"])

    async def process() -> None:
        held_by(lambda: next(names))
        ours.info("one")
        ours.info("two")

    await asyncio.create_task(process())
    assert [line["holder"] for line in written.lines] == ["host/1", "host/2"]


def test_libraries_come_out_in_the_same_form_from_warnings_on(log: LogsTo) -> None:
    written = log("DEBUG")
    for name in ("httpx", "telegram.Bot", "twilio.http_client", "sqlalchemy.engine", "openai"):
        logging.getLogger(name).debug("secret-text-XYZ")
        logging.getLogger(name).info("secret-text-XYZ")
    logging.getLogger("apscheduler.scheduler").warning('Run time of job "%s" was missed', "sweep")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert [(line["level"], line["event"]) for line in written.lines] == [
        ("warning", 'Run time of job "sweep" was missed'),
        ("warning", "Invalid HTTP request received."),
    ]


@pytest.mark.parametrize(("level", "shown"), [("DEBUG", 2), ("info", 1), ("WARNING", 0)])
def test_the_level_is_that_of_our_lines(log: LogsTo, level: str, shown: int) -> None:
    written = log(level)
    ours.debug("debug")
    ours.info("info")
    assert len(written.lines) == shown


def test_an_exception_is_fields_of_the_line_without_its_words(log: LogsTo) -> None:
    written = log()
    try:
        int("secret-text-XYZ")
    except ValueError:
        ours.exception("run %s broke its turn", 17)
    [line] = written.lines
    assert line["event"] == "run 17 broke its turn"
    assert line["error"] == "ValueError"
    assert "test_an_exception_is_fields" in line["frames"]
    assert "secret-text-XYZ" not in written.getvalue()


def test_exceptions_among_a_lines_arguments_are_told_the_same_way(log: LogsTo) -> None:
    written = log()
    ours.warning("it failed: %s", ValueError("secret-text-XYZ"))
    library.error("it failed: %(error)s", {"error": ValueError("secret-text-XYZ")})
    library.error(ValueError("secret-text-XYZ"))
    library.error("it failed", extra={"why": ValueError("secret-text-XYZ"), "user": 700100201})
    events = [line["event"] for line in written.lines]
    assert events == ["it failed: ValueError", "it failed: ValueError", "ValueError", "it failed"]
    assert written.lines[-1]["why"] == "ValueError"
    assert written.lines[-1]["user"] == "<number>"
    assert "secret-text-XYZ" not in written.getvalue()


def test_what_libraries_say_is_scrubbed(log: LogsTo) -> None:
    written = log(secrets=["open-sesame"])
    library.warning(
        "to %s with %s", "whatsapp:+15550100001", "open-sesame", extra={"to": "+1555010"}
    )
    [line] = written.lines
    assert line["event"] == "to whatsapp:+…1 with <secret>"
    assert line["to"] == "+…0"


def test_for_people_a_line_is_one_line_too(log: LogsTo) -> None:
    written = log(as_json=False)
    with about(run=17):
        try:
            raise OSError(111, "Connection\nrefused")
        except OSError:
            ours.warning("not\x1b[2J sent\nERROR forged", exc_info=True)
    text = written.getvalue()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "run=17" in text
    assert r"not\x1b[2J sent\nERROR forged" in text
    assert "ConnectionRefusedError" in text


def test_a_line_that_cannot_be_made_is_lost_without_its_arguments(log: LogsTo) -> None:
    written = log()
    ours.warning("%d runs", "secret-text-XYZ")
    assert "was lost: TypeError" in written.getvalue()
    assert "secret-text-XYZ" not in written.getvalue()


def test_an_agents_own_structlog_logger_comes_out_here_with_the_fields(log: LogsTo) -> None:
    written = log()
    with about(run=17):
        structlog.get_logger("answerback.agent").info("asked the shop", items=2)
        structlog.get_logger("my.agent").info("not shown: not one of ours, and no warning")
    [line] = written.lines
    assert (line["event"], line["items"], line["run"]) == ("asked the shop", 2, 17)


async def test_errors_that_the_loop_meets_are_logged_without_what_callbacks_were_given(
    log: LogsTo,
) -> None:
    written = log()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(report_from_loop)
    met = asyncio.Event()

    def broken(text: str) -> None:
        met.set()
        raise ValueError(text)

    loop.call_soon(broken, "secret-text-XYZ")
    await met.wait()
    line = written.about("Exception in callback")
    assert line["error"] == "ValueError"
    assert "broken" in line["frames"]
    assert "secret-text-XYZ" not in written.getvalue()


def test_a_chats_tag_is_its_own_and_says_nothing_of_the_address() -> None:
    tags = {chat_tag(account, chat) for account in ("bot-1", "bot-2") for chat in range(100)}
    assert len(tags) == 200
    assert chat_tag("bot-1", 7) == chat_tag("bot-1", 7)
    assert all(re.fullmatch("c[0-9a-f]{10}", tag) for tag in tags)
