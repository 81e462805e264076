"""The text of an HTML page, as a reader would see it.

The page is a stranger's, and parsing it keeps the interpreter from the event loop even in a thread.
So there is one pass, which looks at every character once. The standard library's parser starts
anew at each tag that is not closed, and takes minutes for two megabytes of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_RAW = ("script", "style")
"""Elements in which nothing counts as a tag until their own end tag."""
_SILENT = frozenset({"noscript", "template", "svg", "head"})
_BREAKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre"})
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW}
_NAME = re.compile(r"</?([A-Za-z][^\s/>]{0,40})")
_IN_A_MARK = re.compile("[>\"']")


def words(page: str) -> str:
    """The page's text, one paragraph a line. A tag that is never closed, and all behind it, is
    dropped."""
    lines = (" ".join(line.split()) for line in "".join(_seen(page)).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _seen(page: str) -> Iterator[str]:
    """The pieces of visible text, with line breaks between blocks."""
    at = silent = 0
    while at >= 0:
        start = page.find("<", at)
        text = page[at:] if start < 0 else page[at:start]
        if text and not silent:
            yield html.unescape(text)
        if start < 0:
            return
        named = _NAME.match(page, start)
        if named is None:
            at = _behind_no_tag(page, start)
            if at == start + 1 and not silent:
                yield "<"
            continue
        name, opens = named[1].lower(), page[start + 1] != "/"
        at = _behind(page, named.end())
        if name in _SILENT:
            silent = silent + 1 if opens else max(0, silent - 1)
        elif name == "body":
            silent = 0
        elif name in _BREAKS and not silent:
            yield "\n"
        if name in _RAW and opens and at >= 0:
            end = _ENDS[name].search(page, at)
            at = end.start() if end is not None else -1


def _behind_no_tag(page: str, start: int) -> int:
    """The index behind a comment or a declaration, -1 if it has no end. Any other `<` is text: the
    index behind it."""
    if page.startswith("<!--", start):
        end = page.find("-->", start + 2)
        return end + 3 if end >= 0 else -1
    if page.startswith(("<!", "<?", "</"), start):
        return page.find(">", start) + 1 or -1
    return start + 1


def _behind(page: str, at: int) -> int:
    """The index behind the end of a tag, -1 if it has none. A `>` in quotes does not end it."""
    while (met := _IN_A_MARK.search(page, at)) is not None:
        if met[0] == ">":
            return met.end()
        closing = page.find(met[0], met.end())
        if closing < 0:
            return -1
        at = closing + 1
    return -1
