"""Messages that are commands to us, and those that the agent reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.domain.commands import CARRIER_WORDS, Command, CommandForm, command_of, fold, needs_subject
from bot.domain.message import Addressing, Edited, InboundKind, Sender
from tests.domain.messages import said

TELEGRAM, WHATSAPP, CONSOLE = CommandForm.MARKED, CommandForm.WORDS, CommandForm.TYPED
WORDS = {
    fold(word): command
    for word, command in {
        "cancel": Command.STOP,
        "réessayer": Command.RETRY,
        "إلغاء": Command.STOP,
        "रद्द करें": Command.STOP,
        "再发一次": Command.RESEND,
        "status": Command.STATUS,
    }.items()
}


@pytest.mark.parametrize("command", ["start", "help", "stop", "status", "retry"])
def test_telegram_commands_are_the_ones_that_telegram_marked(command: str) -> None:
    marked = said(f"/{command}@our_bot now", command=command)
    assert command_of(marked, TELEGRAM, WORDS) == command


@pytest.mark.parametrize("text", ["stop", "cancel", "/stop", "STOP"])
def test_text_that_telegram_did_not_mark_is_no_command_there(text: str) -> None:
    assert command_of(said(text), TELEGRAM, WORDS) is None


def test_a_command_of_the_agents_own_is_left_to_the_agent() -> None:
    assert command_of(said("/weather", command="weather"), TELEGRAM, WORDS) is None
    assert command_of(said("/opt_out", command="opt_out"), TELEGRAM, WORDS) is None


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("cancel", Command.STOP),
        ("  CANCEL!! ", Command.STOP),
        ("“cancel”", Command.STOP),
        ("\u200fإلغاء\u200f", Command.STOP),
        ("الغاء.", Command.STOP),
        ("रद्द करें।", Command.STOP),
        ("Réessayer", Command.RETRY),
        ("reessayer", Command.RETRY),
        ("re\u0301essayer", Command.RETRY),
        ("再发一次。", Command.RESEND),
        ("\uff33tatus\uff1f", Command.STATUS),
        ("/stop", Command.STOP),
        ("/Resend", Command.RESEND),
    ],
)
def test_on_whatsapp_the_whole_message_is_the_word(text: str, command: Command) -> None:
    assert command_of(said(text), WHATSAPP, WORDS) is command


@pytest.mark.parametrize(
    "text",
    [
        "please cancel",
        "cancel my booking",
        "cancel cancel",
        "",
        "...",
        "//stop",
        "/stop now",
        "/stop@our_bot",
        "cancel" + "!" * 60,
    ],
)
def test_on_whatsapp_a_word_among_others_is_for_the_agent(text: str) -> None:
    assert command_of(said(text), WHATSAPP, WORDS) is None


@pytest.mark.parametrize("text", ["STOP", "stop.", "Stop all", "UNSUBSCRIBE", "End", "opt-out"])
def test_the_carriers_words_opt_out_even_when_words_are_turned_off(text: str) -> None:
    assert command_of(said(text), WHATSAPP, WORDS) is Command.OPT_OUT
    assert command_of(said(text), WHATSAPP, {}) is Command.OPT_OUT


def test_start_ends_an_opt_out_and_yes_is_an_answer() -> None:
    assert command_of(said("START"), WHATSAPP, {}) is Command.OPT_IN
    assert command_of(said("Yes"), WHATSAPP, WORDS) is None


def test_words_that_are_turned_off_leave_the_slash_forms() -> None:
    assert command_of(said("cancel"), WHATSAPP, {}) is None
    assert command_of(said("/stop"), WHATSAPP, {}) is Command.STOP


def test_a_pressed_button_is_the_agents_unless_it_opts_out() -> None:
    button = replace(said("Cancel"), kind=InboundKind.BUTTON, button="cancel-booking")
    assert command_of(button, WHATSAPP, WORDS) is None
    assert command_of(replace(button, text="STOP"), WHATSAPP, WORDS) is Command.OPT_OUT


def test_the_terminal_takes_slash_forms_and_words_and_leaves_the_carriers_words() -> None:
    assert command_of(said("/status "), CONSOLE, WORDS) is Command.STATUS
    assert command_of(said("status"), CONSOLE, WORDS) is Command.STATUS
    assert command_of(said("unsubscribe"), CONSOLE, WORDS) is None


@pytest.mark.parametrize("channel", list(CommandForm))
@pytest.mark.parametrize("text", ["/stop", "stop", "cancel"])
def test_an_edit_a_forward_and_another_bot_command_nothing(channel: CommandForm, text: str) -> None:
    message = said(text, command="stop" if channel is TELEGRAM else "")
    for event in (
        Edited(message, edited_at=1.0),
        replace(message, forwarded_from="Ada"),
        replace(message, sender=Sender("2", is_bot=True)),
        replace(message, addressing=Addressing.NOT_US),
        replace(message, addressing=Addressing.OTHER_BOT),
    ):
        assert command_of(event, channel, WORDS) is None


@pytest.mark.parametrize("channel", [TELEGRAM, WHATSAPP])
def test_a_caption_is_no_command(channel: CommandForm) -> None:
    photo = replace(said("/stop", command="stop"), kind=InboundKind.PHOTO)
    assert command_of(photo, channel, WORDS) is None


def test_only_a_word_may_turn_out_to_be_an_ordinary_message() -> None:
    assert needs_subject(Command.STOP, said("cancel"))
    assert needs_subject(Command.RETRY, said("retry"))
    assert not needs_subject(Command.STOP, said("/stop"))
    assert not needs_subject(Command.STOP, said("/stop@our_bot", command="stop"))
    assert not needs_subject(Command.OPT_OUT, said("STOP"))
    assert not needs_subject(Command.STATUS, said("status"))


def test_the_carriers_words_are_in_the_form_in_which_they_are_compared() -> None:
    assert all(fold(word) == word for word in CARRIER_WORDS)
