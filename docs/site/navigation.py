"""Sphinx extension: the navigation, read from the lists of docs/index.md.

So that page stays an ordinary one where the code is hosted, and a page that no list names is an
error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sphinx.application import Sphinx

FRONT = "docs/index"
_HEADING = re.compile(r"^## (.+)$")
_ENTRY = re.compile(r"^[-*] \[([^\]]+)\]\(([\w./-]+)\.md\)")


def navigation(front: str) -> str:
    """The lists of the front page as trees of contents, each under its heading."""
    trees: dict[str, list[str]] = {}
    heading = ""
    for line in front.splitlines():
        if found := _HEADING.match(line):
            heading = found[1]
        elif heading and (entry := _ENTRY.match(line)):
            trees.setdefault(heading, []).append(f"{entry[1]} <{entry[2]}>")
    return "\n\n".join(
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```"])
        for caption, entries in trees.items()
    )


def add_navigation(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the front page its trees, which hosts of code would show as they are written."""
    if docname == FRONT:
        source[0] += "\n\n" + navigation(source[0]) + "\n"


def setup(app: Sphinx) -> Mapping[str, object]:
    """Tell Sphinx what is here."""
    app.connect("source-read", add_navigation)
    return {"parallel_read_safe": True}
