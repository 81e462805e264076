"""Tables and cards, measured as a terminal measures."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from bot.cli.output.layout import Column, Slot, laid_out, quoted, wrap

COLUMNS = (
    *(Column("run", Slot.NUMBER), Column("request", Slot.TITLE)),
    *(Column("made"), Column("detail", Slot.PROSE)),
)
MADE = "09:00:00Z (12 min ago)"
RECEIPT = "wamid.HBgLMTU1NTAxMDAwMjIVAgARGBI5QTNDQTVCM0Q0Q0Q2RTY3RTcA"


def shown(rows: list[tuple[object, ...]], width: int | None) -> list[str]:
    return [line.plain for line in laid_out(COLUMNS, rows, width)]


def test_a_table_breaks_prose_between_words_and_nothing_else() -> None:
    head, *lines = shown([(12, "tg-7-42", MADE, "the model was overloaded " * 3)], 80)
    assert head.split() == ["run", "request", "made", "detail"]
    assert MADE in lines[0]
    assert max(map(len, lines)) <= 80
    words = " ".join(line[37:].strip() for line in lines).split()
    assert words == ["the", "model", "was", "overloaded"] * 3


def test_what_does_not_fit_becomes_cards_with_whole_ids() -> None:
    lines = shown([(12, "wa-" + "0" * 40, MADE, "the model was overloaded")], 60)
    assert lines == [
        "run 12  wa-" + "0" * 40,
        f"    made: {MADE}",
        "    detail: the model was overloaded",
    ]


def test_a_pipe_has_one_line_a_row_with_every_column_uncut() -> None:
    long = "word " * 100 + "end"
    head, first, second = shown([(1, "", MADE, long), (2, "", MADE, "one\ntwo")], None)
    assert head.split() == ["run", "request", "made", "detail"]
    assert first.endswith(long)
    assert second.endswith("one\\ntwo")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_word_longer_than_its_column_stays_whole_within_the_terminal(width: int) -> None:
    lines = shown([(12, "tg-7-42", MADE, f"receipt {RECEIPT} of part 3")], width)
    [told] = [line for line in lines if RECEIPT in line]
    assert cell_len(told) <= width


def test_columns_stay_under_each_other_whatever_the_script() -> None:
    rows: list[tuple[object, ...]] = [
        (1, "plain", MADE, "x"),
        (2, "你好你好", MADE, "x"),
        (3, "👩\u200d👩\u200d👧 🎉", MADE, "x"),
        (4, "שלום", MADE, "x"),
        (5, "e\u0301t\u0301", MADE, "x"),
    ]
    lines = shown(rows, 80)
    assert {cell_len(line[: line.index("09:")]) for line in lines[1:]} == {15}


def test_wide_script_is_broken_between_characters_and_stays_marked() -> None:
    lines = wrap([quoted("你好" * 30)], 40)
    assert len(lines) > 1
    assert all(line.startswith("> ") and cell_len(line) <= 40 for line in lines)
    assert "".join(line.removeprefix("> ") for line in lines) == "你好" * 30


def test_a_line_that_fits_keeps_its_spaces() -> None:
    assert wrap(["    indented", "a  b", ""], 20) == ["    indented", "a  b", ""]


def test_a_command_stays_whole_and_its_meaning_stands_below() -> None:
    columns = (Column("what", Slot.TITLE), Column("next", Slot.COMMAND))
    act = "answerback outbox resolve 31 --delivered  # after a look at the chat, or not"
    lines = [line.plain for line in laid_out(columns, [("part 31", act)], 48)]
    assert lines == [
        "part 31",
        "    next: answerback outbox resolve 31 --delivered",
        "          after a look at the chat, or not",
    ]


def test_words_of_people_can_neither_move_the_cursor_nor_pass_for_ours() -> None:
    columns = (Column("name", Slot.PROSE), Column("text", Slot.WORDS))
    forged = "\x1b[2Jhello\r\nnext: answerback recover\u202e"
    for width in (30, 200, None):
        lines = [line.plain for line in laid_out(columns, [(forged, quoted(forged))], width)]
        assert not set("\x1b\r\u202e") & set("".join(lines))
        assert not any(line.strip().startswith("next: ") for line in lines)
