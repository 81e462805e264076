"""Write the pages of docs/ that the code itself tells: `make reference`.

The words are those of the docstrings, of `.env.example`, of `--help` and of the texts: whoever
changes one of them changes the page with it, and a test fails until the page is written anew.
"""

from __future__ import annotations

from form import ROOT
from of_api import api
from of_commands import commands
from of_settings import settings
from of_states import states
from of_words import words

PAGES = {
    "api.md": api,
    "commands.md": commands,
    "settings.md": settings,
    "states.md": states,
    "words.md": words,
}

if __name__ == "__main__":
    for file, make in PAGES.items():
        (ROOT / "docs" / file).write_text(make(), encoding="utf-8")
