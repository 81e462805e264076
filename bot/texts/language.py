"""Reads a language: its texts and its command words, checked whole.

The files of this folder and an operator's own file have the same form; the operator's holds
one table per language tag:

    [en]
    APOLOGY = "Oops. Please send that again."
    [en.words]
    stop = ["cancel", "halt"]
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter

from bot.domain.commands import CARRIER_WORDS, LONGEST_WORD, Command, fold
from bot.texts.keys import Text

WORDS_TABLE = "words"

_KEYS = {key.value: key for key in Text}
_COMMANDS = {command.value: command for command in Command}


@dataclass(frozen=True, slots=True)
class Language:
    """Some or all texts of a language, and the whole messages that are commands in it."""

    texts: Mapping[Text, str] = field(default_factory=dict)
    words: Mapping[Command, tuple[str, ...]] = field(default_factory=dict)

    def over(self, below: Language) -> Language:
        """This language where it says something, `below` elsewhere. Lists are replaced whole."""
        return Language({**below.texts, **self.texts}, {**below.words, **self.words})


class Problems:
    """What is wrong with a file, collected so that its author sees everything at once."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, where: str, what: str) -> None:
        self.lines.append(f"{where}: {what}")


def read_language(tag: str, table: object, pattern: Language, problems: Problems) -> Language:
    """The language in a TOML table. `pattern` has the placeholders that each text must have."""
    if not isinstance(table, dict):
        problems.add(f"[{tag}]", "must be a table of texts")
        return Language()
    texts: dict[Text, str] = {}
    words: Mapping[Command, tuple[str, ...]] = {}
    for name, value in table.items():
        where = f"[{tag}] {name}"
        if name == WORDS_TABLE:
            words = _read_words(tag, value, problems)
        elif name not in _KEYS:
            problems.add(where, f"there is no such text{_suggestion(name, _KEYS)}")
        elif not isinstance(value, str) or not value.strip():
            problems.add(where, "must be a text in quotes, and not empty")
        else:
            key = _KEYS[name]
            expected = placeholders(pattern.texts[key]) if key in pattern.texts else None
            if _check_placeholders(where, value, expected, problems):
                texts[key] = value.strip()
    return Language(texts, words)


def placeholders(template: str) -> frozenset[str]:
    """The names in braces. Raises ValueError when the braces don't match or hold more."""
    names: set[str] = set()
    for _, name, spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if spec or conversion or not name.isidentifier():
            raise ValueError(f"only a plain name may stand in braces, not {{{name}}}")
        names.add(name)
    return frozenset(names)


def _check_placeholders(
    where: str, template: str, expected: frozenset[str] | None, problems: Problems
) -> bool:
    try:
        found = placeholders(template)
    except ValueError as error:
        problems.add(where, f"{error}; a brace of your own is written twice")
        return False
    if expected is None or found == expected:
        return True
    wanted = ", ".join(f"{{{name}}}" for name in sorted(expected)) or "no names in braces"
    problems.add(where, f"must contain {wanted}, and nothing else in braces")
    return False


def _read_words(tag: str, table: object, problems: Problems) -> Mapping[Command, tuple[str, ...]]:
    if not isinstance(table, dict):
        problems.add(f"[{tag}.{WORDS_TABLE}]", "must be a table of lists")
        return {}
    words: dict[Command, tuple[str, ...]] = {}
    for name, value in table.items():
        where = f"[{tag}.{WORDS_TABLE}] {name}"
        if name not in _COMMANDS:
            problems.add(where, f"there is no such command{_suggestion(name, _COMMANDS)}")
        elif not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            problems.add(where, 'must be a list such as ["cancel", "stop it"]')
        else:
            words[_COMMANDS[name]] = tuple(value)
            for fault in _word_faults(_COMMANDS[name], value):
                problems.add(where, fault)
    return words


def _word_faults(command: Command, words: list[str]) -> Iterator[str]:
    for word in words:
        carrier = CARRIER_WORDS.get(fold(word))
        if not fold(word) or len(word) > LONGEST_WORD:
            yield f"{word!r} is empty or longer than {LONGEST_WORD} characters"
        elif carrier is not None and carrier is not command:
            yield f"{word!r} always means {carrier.value} on WhatsApp"


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
