"""The texts and command words of every language: reading them, checking them, choosing one.

Each file of this folder holds one language. An operator's own file has the same entries, in one
table for each language tag:

    [en]
    APOLOGY = "Oops. Please send that again."
    [en.words]
    stop = ["cancel", "halt"]
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Formatter

from bot.domain.commands import CARRIER_WORDS, DATA, LONGEST_WORD, SLASH, Command, fold
from bot.domain.errors import ConfigurationError
from bot.texts.keys import Text

ENGLISH = "en"
WORDS_TABLE = "words"

_KEYS = {key.value: key for key in Text}
_COMMANDS = {command.value: command for command in Command}


@dataclass(frozen=True, slots=True)
class Language:
    """Some or all texts of a language, and its command words: each is a command if it is a whole
    message."""

    texts: Mapping[Text, str] = field(default_factory=dict)
    words: Mapping[Command, tuple[str, ...]] = field(default_factory=dict)

    def over(self, below: Language) -> Language:
        """This language, with what it lacks taken from `below`. A command's list of words is
        replaced as a whole."""
        return Language({**below.texts, **self.texts}, {**below.words, **self.words})


class Words:
    """All texts and command words, built by `load`.

    A text is looked up under the full tag of a language (`pt-BR`), then under its first part
    (`pt`), then in the default language, then in English, which has all texts: `say` never fails
    for a missing one.
    """

    def __init__(
        self,
        languages: Mapping[str, Language],
        default: str = ENGLISH,
        *,
        word_commands: bool = True,
    ) -> None:
        self._languages = languages
        self._default = default
        self._commands: Mapping[str, Command] = {}
        if word_commands:
            spoken = [words for language in languages.values() for words in language.words.items()]
            self._commands = {_folded(word): command for command, words in spoken for word in words}

    @classmethod
    def load(
        cls, path: Path | None = None, default: str = ENGLISH, *, word_commands: bool = True
    ) -> Words:
        """The built-in languages, overridden by the operator's file if there is one.

        `default` is used if a person's language is unknown or not among ours. Without
        `word_commands` no word is a command, and people are told the slash forms instead.
        Raises ConfigurationError that names the file, and the language and key of every fault.
        """
        languages = dict(_built_in())
        if path is not None:
            _put_over(languages, path)
        chosen = _tag(default)
        if chosen not in languages:
            known = ", ".join(sorted(languages))
            raise ConfigurationError(f"there are no texts in language {default!r}; have: {known}")
        return cls(languages, chosen, word_commands=word_commands)

    @property
    def languages(self) -> tuple[str, ...]:
        """The tags of all languages, the default first."""
        return (self._default, *sorted(self._languages.keys() - {self._default}))

    def say(self, key: Text, language: str = "", **values: str | int) -> str:
        """The text in the person's language, with its placeholders filled in."""
        for candidate in self._chain(language):
            if (template := candidate.texts.get(key)) is not None:
                return template.format(**values)
        raise LookupError(key)

    def table(self, names: Mapping[str, Text]) -> Mapping[str, Mapping[str, str]]:
        """The texts under these names, for each language, the default first. A text that a language
        lacks is left out."""
        return {
            tag: {
                name: text
                for name, key in names.items()
                if (text := self._languages[tag].texts.get(key)) is not None
            }
            for tag in self.languages
        }

    def word(self, command: Command, language: str = "") -> str:
        """The word that a person sends for this command where there is no menu; its slash form if
        there is no word."""
        for candidate in self._chain(language) if self._commands else ():
            if words := candidate.words.get(command):
                return words[0]
        return f"/{command}"

    def told(self, command: Command, language: str = "", *, by_words: bool) -> str:
        """The form of this command that a person is told: its word, or its slash form."""
        return self.word(command, language) if by_words else f"/{command}"

    def help(self, language: str = "", *, by_words: bool, data: bool = False) -> str:
        """The list of commands, with slashes or, on WhatsApp, as words. `data` adds those about a
        person's own data."""
        said = self._help(language, by_words=by_words)
        if not data:
            return said
        ways = {c.value: self.told(c, language, by_words=by_words) for c in DATA}
        return f"{said}\n\n{self.say(Text.HELP_DATA, language, **ways)}"

    def _help(self, language: str, *, by_words: bool) -> str:
        if not by_words or not self._commands:
            return self.say(Text.HELP, language)
        return self.say(
            Text.HELP_WORDS,
            language,
            status=self.word(Command.STATUS, language),
            stop=self.word(Command.STOP, language),
            retry=self.word(Command.RETRY, language),
        )

    def menu(self, language: str = "", *, data: bool = False) -> tuple[tuple[str, str], ...]:
        """The slash commands with their descriptions, for a platform that shows a menu. `data` adds
        those about a person's own data."""
        return tuple(
            (command.value, self.say(Text[f"COMMAND_{command.name}"], language))
            for command in (*SLASH, *(DATA if data else ()))
        )

    def command_words(self) -> Mapping[str, Command]:
        """Every phrase, folded, that is a command as a whole message, from all languages."""
        return self._commands

    def _chain(self, language: str) -> tuple[Language, ...]:
        tag = _tag(language)
        tags = (tag, tag.partition("-")[0], self._default, ENGLISH)
        return tuple(self._languages[t] for t in tags if t in self._languages)


def _tag(language: str) -> str:
    return language.strip().lower().replace("_", "-")


@cache
def _folded(phrase: str) -> str:
    """One of our phrases, in the form that is compared. It is cached, so never for people's
    texts."""
    return fold(phrase)


@cache
def _built_in() -> Mapping[str, Language]:
    tables = {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".toml")
    }
    faults: list[str] = []
    english = _read_language(ENGLISH, tables[ENGLISH], Language(), faults)
    languages = {tag: _read_language(tag, table, english, faults) for tag, table in tables.items()}
    assert not faults, faults
    return languages


def _put_over(languages: dict[str, Language], path: Path) -> None:
    """Put an operator's file over the built-in languages. Raises ConfigurationError that names
    every fault."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8: save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # the parser's own, and others that it lets pass
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error
    faults: list[str] = []
    english = languages[ENGLISH]
    for name, table in tables.items():
        below = languages.pop(_tag(name), Language())
        # The operator's languages come last, so that a collision is reported in their table.
        languages[_tag(name)] = _read_language(name, table, english, faults).over(below)
    faults += _collisions(languages)
    if faults:
        raise ConfigurationError(f"{path} can't be used:\n  " + "\n  ".join(faults))


def _collisions(languages: Mapping[str, Language]) -> Iterator[str]:
    """The phrases with more than one meaning. A phrase must mean the same in all languages, since
    WhatsApp does not tell a person's language."""
    seen: dict[str, tuple[str, Command]] = {}
    for tag, language in languages.items():
        for command, words in language.words.items():
            for word in words:
                first_tag, first = seen.setdefault(fold(word), (tag, command))
                if first is not command:
                    yield (
                        f"[{tag}.words] {command.value}: {word!r} already means "
                        f"{first.value} in [{first_tag}.words]"
                    )


def _read_language(tag: str, table: object, pattern: Language, faults: list[str]) -> Language:
    """The language in a TOML table; what is wrong is added to `faults`. The texts of `pattern` have
    the placeholders that each text must have."""
    if not isinstance(table, dict):
        faults.append(f"[{tag}]: must be a table of texts")
        return Language()
    texts: dict[Text, str] = {}
    words: Mapping[Command, tuple[str, ...]] = {}
    for name, value in table.items():
        if name == WORDS_TABLE:
            words = _read_words(tag, value, faults)
        elif fault := _text_fault(name, value, pattern):
            faults.append(f"[{tag}] {name}: {fault}")
        else:
            texts[_KEYS[name]] = value.strip()
    return Language(texts, words)


def _text_fault(name: str, value: object, pattern: Language) -> str:
    if name not in _KEYS:
        return f"there is no such text{_suggestion(name, _KEYS)}"
    if not isinstance(value, str) or not value.strip():
        return "must be a text in quotes, and not empty"
    try:
        found = placeholders(value)
    except ValueError as error:
        return f"{error}; a brace of your own is written twice"
    template = pattern.texts.get(_KEYS[name])
    expected = found if template is None else placeholders(template)
    if found == expected:
        return ""
    wanted = ", ".join(f"{{{field}}}" for field in sorted(expected)) or "no names in braces"
    return f"must contain {wanted}, and nothing else in braces"


def placeholders(template: str) -> frozenset[str]:
    """The names in braces. Raises ValueError if braces don't match, or hold more than a name."""
    names: set[str] = set()
    for _, name, spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if spec or conversion or not name.isidentifier():
            raise ValueError(f"only a plain name may stand in braces, not {{{name}}}")
        names.add(name)
    return frozenset(names)


def _read_words(tag: str, table: object, faults: list[str]) -> Mapping[Command, tuple[str, ...]]:
    if not isinstance(table, dict):
        faults.append(f"[{tag}.{WORDS_TABLE}]: must be a table of lists")
        return {}
    words: dict[Command, tuple[str, ...]] = {}
    for name, value in table.items():
        faults += (f"[{tag}.{WORDS_TABLE}] {name}: {fault}" for fault in _word_faults(name, value))
        if name in _COMMANDS and isinstance(value, list):
            words[_COMMANDS[name]] = tuple(word for word in value if isinstance(word, str))
    return words


def _word_faults(name: str, words: object) -> Iterator[str]:
    if name not in _COMMANDS:
        yield f"there is no such command{_suggestion(name, _COMMANDS)}"
    elif not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        yield 'must be a list such as ["cancel", "stop it"]'
    else:
        for word in words:
            carrier = CARRIER_WORDS.get(fold(word))
            if not fold(word) or len(word) > LONGEST_WORD:
                yield f"{word!r} is empty or longer than {LONGEST_WORD} characters"
            elif carrier is not None and carrier is not _COMMANDS[name]:
                yield f"{word!r} always means {carrier.value} on WhatsApp"


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
