"""The terminal of the chat, while answers come in and something is being typed."""

from __future__ import annotations

from collections.abc import Callable

import pyte
import pytest

from bot.cli.talk.screen import Screen
from bot.cli.talk.terminal import Piped, Plain

LONG = "one two three four five six seven eight nine ten eleven twelve"


class Glass:
    """A terminal in which a person types, as its emulator shows it."""

    def __init__(self, columns: int = 40, lines: int = 8) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text
        self.type(text)

    def type(self, text: str) -> None:
        """Show what the kernel echoes: a line break becomes two characters on its way."""
        self._stream.feed(text.replace("\n", "\r\n"))

    @property
    def size(self) -> tuple[int, int]:
        return self._screen.columns, self._screen.lines

    @property
    def lines(self) -> list[str]:
        shown = [line.rstrip() for line in self._screen.display]
        return shown[: max((at for at, line in enumerate(shown, 1) if line), default=0)]

    @property
    def column(self) -> int:
        return int(self._screen.cursor.x)


def opened(glass: Glass, *, colored: bool = False) -> Screen:
    screen = Screen(glass.write, lambda: glass.size, colored=colored)
    screen.welcome(["it runs"], ["try it"])
    return screen


def test_an_answer_stands_above_what_is_being_typed() -> None:
    glass = Glass()
    screen = opened(glass)
    glass.type("half a li")
    screen.answer("here it is")
    assert glass.lines == ["it runs", "try it", "bot> here it is", "you> half a li"]
    glass.type("ne\n")
    screen.entered()
    assert glass.lines[-2:] == ["you> half a line", "you>"]
    assert glass.column == len("you> ")


def test_a_line_about_work_changes_in_its_place_and_the_last_one_stays() -> None:
    glass = Glass()
    screen = opened(glass)
    glass.type("typed")
    screen.show("pay", "  pay: 1 s")
    screen.show("pay", "  pay: 2 s")
    screen.tell("  pay: done")
    screen.show("write", "  write: 1 s")
    assert glass.lines[2:] == ["  pay: done", "  write: 1 s", "you> typed"]
    assert glass.column == len("you> typed")


def test_at_the_bottom_it_scrolls_and_keeps_what_is_typed() -> None:
    glass = Glass(lines=5)
    screen = opened(glass)
    glass.type("typed")
    for number in range(4):
        screen.answer(f"answer {number}\nwith a second line")
    screen.show("pay", "  pay: 1 s")
    screen.show("pay", "  pay: 2 s")
    assert glass.lines[-4:] == [
        "bot> answer 3",
        "with a second line",
        "  pay: 2 s",
        "you> typed",
    ]
    assert glass.column == len("you> typed")


def test_a_line_that_was_entered_or_a_log_in_between_is_never_overwritten() -> None:
    glass = Glass()
    screen = opened(glass)
    screen.show("pay", "  pay: 1 s")
    glass.type("next\n")
    screen.entered()
    screen.show("pay", "  pay: 2 s")
    assert glass.lines[2:] == ["  pay: 1 s", "you> next", "  pay: 2 s", "you>"]
    glass.type("WARNING: a log\n")
    screen.disturbed()
    screen.show("pay", "  pay: 3 s")
    screen.show("pay", "  pay: 4 s")
    assert glass.lines[-3:] == ["you> WARNING: a log", "  pay: 4 s", "you>"]


@pytest.mark.parametrize("columns", [24, 40])
def test_long_words_are_wrapped_and_a_line_about_work_is_cut(columns: int) -> None:
    glass = Glass(columns, lines=12)
    screen = opened(glass)
    screen.show("pay", LONG)
    screen.show("pay", f"{LONG} more")
    screen.answer(LONG)
    (cut,) = [line for line in glass.lines if line.endswith("...")]
    assert len(cut) < columns
    at = glass.lines.index(cut)
    assert " ".join(glass.lines[at + 1 : -1]) == f"bot> {LONG}"


def test_wide_characters_take_the_room_that_they_need() -> None:
    glass = Glass(24, lines=12)
    screen = opened(glass)
    screen.show("pay", "火" * 30)
    screen.show("pay", "水" * 30)
    assert [line for line in glass.lines if "火" in line] == []
    assert len([line for line in glass.lines if "水" in line]) == 1


@pytest.mark.parametrize("size", [(40, 3), (12, 8)])
def test_where_there_is_no_room_it_goes_on_below(size: tuple[int, int]) -> None:
    glass = Glass(*size)
    opened(glass).answer("one\ntwo\nthree")
    assert glass.lines[-2:] == ["three", "you>"]


def test_an_answer_moves_no_cursor_of_its_own() -> None:
    glass = Glass()
    opened(glass).answer("a\x1b[2Jb\x1b]0;title\x07\rc")
    assert glass.lines[0] == "it runs"
    assert "\\x1b" in glass.lines[2]


@pytest.mark.parametrize("colored", [True, False])
def test_colours_are_used_only_where_they_are_wanted(colored: bool) -> None:
    glass = Glass()
    screen = opened(glass, colored=colored)
    screen.answer("x")
    screen.show("pay", "y")
    assert ("\x1b[0m" in glass.written) is colored


def test_a_plain_terminal_only_goes_on() -> None:
    glass = Glass(lines=12)
    plain = Plain(glass.write)
    plain.welcome(["it runs"], ["try it"])
    glass.type("question\n")
    plain.entered()
    for second in range(3):
        plain.show("pay", f"  pay: {second} s")
    plain.tell("  pay: done")
    plain.answer("here it is")
    assert "\x1b" not in glass.written
    assert glass.lines[2:] == [
        "you> question",
        "  pay: 0 s",
        "  pay: done",
        "bot> here it is",
        "you>",
    ]


@pytest.mark.parametrize(
    ("watched", "noted"), [(False, ["it runs\n"]), (True, ["it runs\n", "  pay: done\n"])]
)
def test_a_pipe_gets_answers_as_they_are_and_nothing_else(watched: bool, noted: list[str]) -> None:
    answers: list[str] = []
    notes: list[str] = []
    write: Callable[[str], None] = answers.append
    piped = Piped(write, notes.append, watched=watched)
    piped.welcome(["it runs"], ["try it"])
    piped.entered()
    piped.show("pay", "  pay: 0 s")
    piped.tell("  pay: done")
    piped.answer("a\x1b[1mb")
    assert answers == ["a\x1b[1mb\n"]
    assert notes == noted
