"""Canned texts: the words that operators write again and again, in a file of theirs.

The file is TOML, a name and its words a line, and is read anew whenever somebody asks: who edits it
restarts nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from bot.domain.errors import ConfigurationError

LONGEST = 10_000
"""Characters of one text."""


def canned_texts(file: Path | None) -> Mapping[str, str]:
    """The texts by their names, in the order of the file; none without one. Raises
    ConfigurationError that says what is wrong with it."""
    if file is None:
        return {}
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"CANNED_TEXTS: {file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"CANNED_TEXTS: {file} is not UTF-8: save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"CANNED_TEXTS: {file} is no TOML: {error}") from error
    for name, text in told.items():
        if not isinstance(text, str) or not text.strip():
            raise ConfigurationError(f'CANNED_TEXTS: {name} in {file} must be a text in "quotes"')
        if len(text) > LONGEST:
            raise ConfigurationError(
                f"CANNED_TEXTS: {name} in {file} has more than {LONGEST} characters"
            )
    return {name: text.strip() for name, text in told.items()}
