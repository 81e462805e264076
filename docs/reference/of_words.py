"""The page of the words that are commands, from the texts."""

from __future__ import annotations

import tomllib

from form import MADE, ROOT, page, table

from bot.texts.words import ENGLISH, WORDS_TABLE

_WORDS = """\
A whole message that is one of these words is a command on WhatsApp, on a page and in the terminal;
case, accents and marks around it don't count. They hold in every language at once, since a platform
may not tell which one a person speaks. How they are changed: [what people can
say](people.md#other-words)."""


def words() -> str:
    """The page of the words that are commands, by language."""
    folder = ROOT / "bot" / "texts"
    tables = {
        file.stem: tomllib.loads(file.read_text(encoding="utf-8"))[WORDS_TABLE]
        for file in sorted(folder.glob("*.toml"))
    }
    commands = tuple(tables[ENGLISH])
    rows = [(tag, *(", ".join(said[one]) for one in commands)) for tag, said in tables.items()]
    return page("# Words that are commands", MADE, _WORDS, table(("", *commands), rows))
