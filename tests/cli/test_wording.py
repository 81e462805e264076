"""People's words can't disturb an operator's terminal, and stay readable."""

from __future__ import annotations

import json

import pytest

from bot.cli.output import render
from bot.cli.output.layout import Column, Slot
from bot.cli.output.wording import moment
from bot.operations.reports.phrases import safe, span, when
from bot.operations.reports.shortening import without_numbers


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain words", "plain words"),
        ("Grüße, नमस्ते, 你好, שלום", "Grüße, नमस्ते, 你好, שלום"),
        ("👩\u200d👩\u200d👧 می\u200cخواهم", "👩\u200d👩\u200d👧 می\u200cخواهم"),
        ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
        ("\x1b]0;a title\x07", "\\x1b]0;a title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("over\rwritten", "over\\x0dwritten"),
        ("one\ntwo\tthree", "one\\x0atwo\\x09three"),
        ("back\x08\x7f", "back\\x08\\x7f"),
        ("nul\x00", "nul\\x00"),
        ("\u202eevil\u202c", "\\u202eevil\\u202c"),
        ("\u2066isolate\u2069", "\\u2066isolate\\u2069"),
        ("\u200emark\u200f\u061c", "\\u200emark\\u200f\\u061c"),
        ("line\u2028paragraph\u2029", "line\\u2028paragraph\\u2029"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("private\ue000", "private\\ue000"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_what_could_move_a_terminal_is_spelled_out(written: str, shown: str) -> None:
    assert safe(written) == shown


def test_lines_stay_lines_where_they_are_asked_for() -> None:
    assert safe("one\n\ttwo\x1b", lines=True) == "one\n\ttwo\\x1b"


def test_tables_take_names_and_texts_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("\x1b[31m[red]Ada[/red]\u202e", 1), (None, None)]
    render.table((Column("name", Slot.PROSE), Column("bell")), rows)
    printed = capsys.readouterr().out
    assert "\\x1b[31m[red]Ada[/red]\\u202e" in printed
    assert not set("\x1b\x07\u202e") & set(printed)


def test_json_is_ascii_and_keeps_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    written = "\x1b[31m\u202e\x7f\x9b 👋"
    render.as_json({"text": written})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "\x7f" not in printed
    assert json.loads(printed) == {"text": written}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3661, "1 h 1 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
    ],
)
def test_ages_are_told_in_two_units(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_moments_are_told_in_utc() -> None:
    assert moment(1_800_003_600.25) == "2027-01-15T09:00:00.250Z"


@pytest.mark.parametrize(
    ("away", "words"),
    [
        (0, "09:00:00Z (0 s ago)"),
        (-59, "08:59:01Z (59 s ago)"),
        (-3599, "08:00:01Z (59 min ago)"),
        (-86_399, "09:00:01Z (23 h ago)"),
        (-86_400, "2027-01-14 09:00Z (1 d ago)"),
        (95, "09:01:35Z (in 1 min 35 s)"),
        (3 * 86_400, "2027-01-18 09:00Z (in 3 d)"),
    ],
)
def test_a_time_is_told_by_the_clock_and_by_its_distance(away: float, words: str) -> None:
    assert when(1_800_003_600.0 + away, 1_800_003_600.0) == words


def test_a_name_that_holds_a_phone_number_is_cut() -> None:
    wamid = "wamid.HBgLMTU1NTAxMDAxODEVAgARGBIwMDAwMDAwMDAwMDAwMDAwNUEA"
    assert without_numbers(f"receipt {wamid}, part 1") == "receipt wamid.…AwNUEA, part 1"
    assert without_numbers(without_numbers(wamid)) == without_numbers(wamid)
    assert without_numbers("SM0123456789") == "SM0123456789"
