"""An agent's exception is whole for its builder, and elsewhere without a word of the turn."""

from __future__ import annotations

import json
import logging
import os
import pty
from collections.abc import Callable
from typing import Any

import pytest

from bot.domain.errors import AgentFailed, StepInterrupted
from bot.observability.faults import Fault, places, whole
from bot.observability.logs import set_up_logs
from bot.observability.quoting import Spoken
from tests.observability.conftest import LogsTo

PERSON = "cancel the appointment of Okonkwo"
HERE = "tests/observability/test_faults.py"

_log = logging.getLogger("answerback.test")


def read_order(text: str) -> object:
    return json.loads(text)


def answer(text: str) -> object:
    try:
        return read_order(text)
    except ValueError as error:
        raise LookupError("no order was found") from error


def shout(text: str) -> object:
    raise LookupError(f"nothing known of {text.upper()}")


def refuse(text: str) -> object:
    raise LookupError(text)


def raised(call: Callable[[str], object], text: str = PERSON) -> Exception:
    with pytest.raises(LookupError) as caught:
        call(text)
    return caught.value


def tell(error: Exception, spoken: str = PERSON) -> None:
    _log.warning("the agent failed", extra={"fault": Fault(error, Spoken([spoken]))})


def test_elsewhere_type_words_and_the_builders_own_places_are_told(log: LogsTo) -> None:
    written = log()
    tell(raised(answer))
    line = written.about("the agent failed")
    assert line["error"] == "LookupError: no order was found"
    assert line["causes"] == "JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    steps = line["frames"].split(" > ")
    assert [step.split(":")[0] for step in steps] == [HERE] * len(steps)
    assert [step.split(" ")[1] for step in steps][-1] == "answer"
    assert "exception" not in line


def test_elsewhere_words_of_the_person_are_left_out_with_the_whole_message(log: LogsTo) -> None:
    written = log()
    tell(raised(shout))
    line = written.about("the agent failed")
    assert line["error"] == "LookupError"
    assert "shout" in line["frames"]
    assert "APPOINTMENT" not in written.getvalue()


def test_a_message_without_the_persons_words_loses_its_secrets(log: LogsTo) -> None:
    written = log(secrets=("hunter-hunter",))
    tell(raised(refuse, "key hunter-hunter, postgres://me:word@db.example/shop, +49 151 12345678"))
    error = written.about("the agent failed")["error"]
    assert error == "LookupError: key <secret>, postgres://<login>@db.example/shop, +…8"


def test_a_long_message_is_cut() -> None:
    said = Fault(raised(refuse, "zero " * 200), Spoken([PERSON])).said
    assert said.endswith("zero ...")
    assert len(said) < 330


def test_an_error_that_came_through_no_file_of_the_builders_keeps_its_words() -> None:
    assert Fault(ValueError("the provider says: no"), Spoken([PERSON])).said == "ValueError"


def test_an_exception_that_cannot_be_told_is_told_by_its_type() -> None:
    class Odd(LookupError):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def odd(_text: str) -> object:
        raise Odd

    assert Fault(raised(odd), Spoken()).said.endswith("Odd")


def test_our_own_errors_keep_their_words_unless_a_step_is_named_after_the_person() -> None:
    spoken = Spoken([PERSON])
    said = "https://agent.example: it answered 500"
    assert Fault(AgentFailed(said), spoken).said == f"AgentFailed: {said}"
    assert Fault(StepInterrupted("book appointment"), spoken).said == "StepInterrupted"


@pytest.mark.parametrize("as_json", [True, False])
def test_who_develops_is_shown_the_exception_whole(log: LogsTo, as_json: bool) -> None:
    written = log(as_json=as_json, development=True, secrets=("Okonkwo",))
    tell(raised(shout, f"{PERSON}\x1b[2J"))
    said = written.lines[0]["exception"] if as_json else written.getvalue()
    assert "Traceback (most recent call last):" in said
    assert 'raise LookupError(f"nothing known of {text.upper()}")' in said
    assert "LookupError: nothing known of CANCEL THE APPOINTMENT" in said
    assert "\x1b" not in said
    assert ("frames" in written.getvalue()) is as_json


def test_a_builder_is_told_of_what_looks_like_a_fault_only_where_somebody_develops(
    log: LogsTo,
) -> None:
    for development in (False, True):
        written = log("WARNING", development=development)
        logging.getLogger("answerback.builders").info("nothing is said")
        assert len(written.lines) == int(development)


def test_on_a_terminal_the_exception_is_shown_whole(log: LogsTo) -> None:
    log()
    reader, terminal = pty.openpty()
    set_up_logs("WARNING", as_json=False, secrets=(), to=terminal)
    tell(raised(shout))
    for handler in logging.getLogger().handlers:
        handler.flush()
    shown = os.read(reader, 65_536).decode()
    os.close(reader)
    os.close(terminal)
    assert "CANCEL THE APPOINTMENT" in shown
    assert "in shout" in shown


OURS = """
def ours(call):
    try:
        call("x")
    except LookupError as error:
        return error
"""


def test_the_traceback_begins_in_the_builders_code() -> None:
    namespace: dict[str, Any] = {"__name__": "bot.somewhere"}
    exec(OURS, namespace)
    error = namespace["ours"](shout)
    assert "in shout" in whole(error)
    assert "in ours" not in whole(error)
    assert places(error).endswith(" shout")
    assert "ours" not in places(error)
