"""Chooses the sentence: by key and by the person's language."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from bot.domain.commands import SLASH, Command, fold
from bot.domain.errors import ConfigurationError
from bot.texts.keys import Text
from bot.texts.language import Language, Problems, read_language

ENGLISH = "en"


class Words:
    """All texts and command words. Built by `load`; `say` never fails for a missing text.

    A language is looked for as it is tagged (`pt-BR`), then by its first part (`pt`), then
    as the default language, then in English.
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
        self._commands = _commands(languages) if word_commands else {}

    @classmethod
    def load(
        cls, path: Path | None = None, default: str = ENGLISH, *, word_commands: bool = True
    ) -> Words:
        """The built-in languages, under the operator's file if there is one.

        `default` is used where a person's language is unknown or not among ours. Without
        `word_commands` no word is a command, and people are told the slash forms instead.
        Raises ConfigurationError that names the file, the language and the key of every
        fault.
        """
        languages = _built_in()
        if path is not None:
            _put_over(languages, path)
        chosen = _tag(default)
        if chosen not in languages:
            known = ", ".join(sorted(languages))
            raise ConfigurationError(f"there are no texts in language {default!r}; have: {known}")
        return cls(languages, chosen, word_commands=word_commands)

    @property
    def languages(self) -> tuple[str, ...]:
        """The tags that have texts, the default first."""
        return (self._default, *sorted(self._languages.keys() - {self._default}))

    def say(self, key: Text, language: str = "", **values: str | int) -> str:
        """The text in the person's language with its placeholders filled in."""
        for candidate in self._chain(language):
            if (template := candidate.texts.get(key)) is not None:
                return template.format(**values)
        raise LookupError(key)

    def word(self, command: Command, language: str = "") -> str:
        """What a person is told to send for this command where there is no menu."""
        for candidate in self._chain(language) if self._commands else ():
            if words := candidate.words.get(command):
                return words[0]
        return f"/{command}"

    def help(self, language: str = "", *, by_words: bool) -> str:
        """What a person can do, with slashes or, on WhatsApp, with words."""
        if not by_words or not self._commands:
            return self.say(Text.HELP, language)
        return self.say(
            Text.HELP_WORDS,
            language,
            status=self.word(Command.STATUS, language),
            stop=self.word(Command.STOP, language),
            retry=self.word(Command.RETRY, language),
        )

    def menu(self, language: str = "") -> tuple[tuple[str, str], ...]:
        """The slash commands with their descriptions, for a platform that shows a menu."""
        return tuple(
            (command.value, self.say(Text[f"COMMAND_{command.name}"], language))
            for command in SLASH
        )

    def command_words(self) -> Mapping[str, Command]:
        """Every folded phrase of every language that is a command as a whole message."""
        return self._commands

    def _chain(self, language: str) -> tuple[Language, ...]:
        tag = _tag(language)
        tags = (tag, tag.partition("-")[0], self._default, ENGLISH)
        return tuple(self._languages[t] for t in tags if t in self._languages)


def _tag(language: str) -> str:
    return language.strip().lower().replace("_", "-")


def _built_in() -> dict[str, Language]:
    tables = {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in files(__package__).iterdir()
        if entry.name.endswith(".toml")
    }
    problems = Problems()
    english = read_language(ENGLISH, tables[ENGLISH], Language(), problems)
    languages = {t: read_language(t, table, english, problems) for t, table in tables.items()}
    assert not problems.lines, problems.lines
    return languages


def _put_over(languages: dict[str, Language], path: Path) -> None:
    problems = Problems()
    english = languages[ENGLISH]
    tables = _read_file(path)
    for name, table in tables.items():
        below = languages.pop(_tag(name), Language())
        # Put last, so that a collision is reported where the operator can change it.
        languages[_tag(name)] = read_language(name, table, english, problems).over(below)
    _find_collisions(languages, problems)
    if problems.lines:
        raise ConfigurationError(f"{path} can't be used:\n  " + "\n  ".join(problems.lines))


def _read_file(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from error


def _find_collisions(languages: Mapping[str, Language], problems: Problems) -> None:
    """A phrase means one thing in all languages: WhatsApp does not tell a person's language."""
    seen: dict[str, tuple[str, Command]] = {}
    for tag, language in languages.items():
        for command, words in language.words.items():
            for word in words:
                first_tag, first = seen.setdefault(fold(word), (tag, command))
                if first is not command:
                    problems.add(
                        f"[{tag}.words] {command.value}",
                        f"{word!r} already means {first.value} in [{first_tag}.words]",
                    )


def _commands(languages: Mapping[str, Language]) -> Mapping[str, Command]:
    return {
        fold(word): command
        for language in languages.values()
        for command, words in language.words.items()
        for word in words
    }
