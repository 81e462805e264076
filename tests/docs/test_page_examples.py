"""The examples of the pages work as they are copied: one rule a language, for every page."""

from __future__ import annotations

import asyncio
import inspect
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import typer
from dotenv import dotenv_values
from typer.main import get_command

from bot.cli.app import add_operators, app
from bot.texts.words import Words
from bot.wiring.channels import settings_class
from storage.schema.tables import metadata
from tests.agents.turns import turn
from tests.docs.page_blocks import ROOT, SHELL, Block, blocks

BLOCKS = list(blocks())


def _of(*languages: str) -> pytest.MarkDecorator:
    """Every block in one of these languages, as a test's cases."""
    found = [block for block in BLOCKS if block.language in languages]
    return pytest.mark.parametrize("block", found, ids=str)


# Python: it is run. `make lint` checks its types (tests/docs/page_types.py).


@_of("python")
def test_python_runs_and_an_agent_in_it_answers(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "example.py"
    file.write_text(block.text, encoding="utf-8")
    made = runpy.run_path(str(file))
    agents = [f for f in made.values() if callable(f) and _takes_a_turn(f)]
    for agent in agents:
        said = agent(turn("hello"))
        asyncio.run(said) if inspect.iscoroutine(said) else None


def _takes_a_turn(function: Callable[..., object]) -> bool:
    return inspect.isfunction(function) and list(inspect.signature(function).parameters) == ["turn"]


# Commands: those of a shell are well formed, and ours take what they are given.

_OURS = re.compile(r"(?:[\w./]*/)?answerback")
_MADE = re.compile(r"^([a-z-]+):", re.MULTILINE)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language in SHELL], ids=str)
def test_a_shell_can_read_it(block: Block) -> None:
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)  # noqa: PLW1510
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language in (*SHELL, "console", "")], ids=str
)
def test_our_commands_are_called_as_they_can_be(block: Block) -> None:
    for words in _commands(block):
        if words[0] == "make":
            _make(words[1:])
        else:
            _call(words[1:])


def _commands(block: Block) -> Iterator[list[str]]:
    """The calls of `answerback` and `make` in a block, without variables before them."""
    for words in _calls(_shell(block)):
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and (_OURS.fullmatch(words[0]) or words[0] == "make"):
            yield words


def _shell(block: Block) -> str:
    """The part of a block that is for a shell, without the files that are written in it."""
    lines = block.text.splitlines()
    if block.language == "console":
        return "\n".join(line[2:] for line in lines if line.startswith("$ "))
    if block.language == "":
        # What stands behind a wide gap says what the command does.
        ours = [line.strip() for line in lines if re.match(r" *(?:answerback|make) ", line)]
        return "\n".join(re.split(r" {2,}", line)[0] for line in ours)
    return re.sub(r"<<-?'?(\w+)'?(.*?)\n\1$", r"\2", block.text, flags=re.DOTALL | re.MULTILINE)


def _calls(text: str) -> Iterator[list[str]]:
    """The words of each call."""
    reader = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    reader.whitespace, reader.whitespace_split = " \t\r", True
    words: list[str] = []
    for token in reader:
        if set(token) <= set("();|&\n"):
            yield words
            words = []
        else:
            words.append(token)
    yield words


def _make(words: list[str]) -> None:
    targets = {word for word in words if "=" not in word and not word.startswith("-")}
    assert targets <= set(_MADE.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def _call(words: list[str]) -> None:
    """Have the command line read these words, and do nothing. Raises its error of usage."""
    whole = typer.Typer()
    whole.registered_commands = list(app.registered_commands)
    add_operators(whole)
    command: Any = get_command(whole)
    words = [re.sub(r"^[A-Z]{2,}$", "1", word) for word in words]
    while below := getattr(command, "commands", None):
        if words[:1] in ([], ["--help"], ["--version"]):
            return
        assert words[0] in below, f"there is no command {words[0]}"
        command = below[words.pop(0)]
    command.make_context("answerback", words)


@_of("console")
def test_a_session_in_a_terminal_goes_as_shown(block: Block, tmp_path: Path) -> None:
    """Each block is a session of its own in an empty folder; `...` stands for any lines."""
    commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"echo {shlex.quote(f'$ {c}')}\n{c}" for c in commands)],
        cwd=tmp_path,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    shown = "".join(
        ".*" if line == "..." else re.escape(line) + r" *\n" for line in block.text.splitlines()
    )
    assert re.fullmatch(shown, done.stdout, re.DOTALL), done.stdout + done.stderr


# What is read by us is read by us.


@_of("dotenv")
def test_variables_are_settings_with_values_that_they_take(block: Block) -> None:
    given = dotenv_values(stream=StringIO(block.text))
    assert given
    settings = settings_class()
    assert {name for name in given if name.lower() not in settings.model_fields} == set()
    settings.model_validate({name.lower(): value for name, value in given.items()})


@_of("toml")
def test_a_table_of_texts_is_taken(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "texts.toml"
    file.write_text(block.text, encoding="utf-8")
    assert tomllib.loads(block.text).keys() <= set(Words.load(file).languages)


@_of("sql")
def test_a_statement_fits_the_tables(block: Block) -> None:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        connection.execute(sa.text(block.text))


@_of("html")
def test_a_page_is_closed_as_it_was_opened(block: Block) -> None:
    reader = _Opened()
    reader.feed(block.text)
    assert reader.tags == []


class _Opened(HTMLParser):
    """The tags that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.remove(tag)


# Shown and not copied, or held by a test of their own.

_SHOWN = {"text", "dockerfile", "caddyfile", "ini", "yaml", "diff", ""}
_RULED = {*SHELL, "python", "console", "dotenv", "toml", "sql", "html"}


def test_every_language_has_its_rule() -> None:
    assert {str(b): b.language for b in BLOCKS if b.language not in _SHOWN | _RULED} == {}
