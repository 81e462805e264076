"""The rule that nothing is lost between what was written and what a person sees.

Taken apart from the product's parser:

* Every visible character of the source stands in what is shown, in order, but for signs.
  The signs are the characters that Markdown gives a meaning. White space and characters that
  nobody can see don't count. What is shown may have more: bullets, rules, a table's grid, an
  address behind its words, WhatsApp's own marks.
* Of the signs, no more may be missing than the styles that are seen can have come from: four
  stars or underscores for words in bold, two for words in italics, four tildes for struck
  ones; one star for a bullet and those of a ruled line; one backslash for a sign behind it;
  and those in a table's rows, which a block of code shows without looks.
* Before comparing, the source loses what has become an attribute: the language behind a fence
  and the colons under a table's head. `&name;` may stand as the character that it names, and
  an address that is its own words stands once.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import regex

SIGNS = frozenset("*_~`#>-+|[]()!\\<=")
ADDED = SIGNS | frozenset("•—:")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][\da-fA-F]+|[A-Za-z]\w*);")
_HEAD_LINE = r"(?m)^[ >\t]*\|?[ :]*-[-:| ]*$"
_INVISIBLE = regex.compile(r"[\s\p{C}\p{Z}\p{Mn}\p{Me}]+")
"""Combining marks stand on letters: they are compared with them by the goldens."""


def lost(source: str, shown: str) -> str:
    """The first visible character of the source that is not shown in its place, with what
    follows it; empty when all is there."""
    wanted, seen, at, place = _visible(_attributes_out(source)), _visible(shown), 0, 0
    while at < len(wanted):
        entity = _ENTITY.match(wanted, at)
        named = _visible(html.unescape(entity.group())) if entity else ""
        if entity and not seen.startswith(entity.group(), place) and seen.startswith(named, place):
            at, place = entity.end(), place + len(named)
        elif seen.startswith(wanted[at], place):
            at, place = at + 1, place + 1
        elif wanted[at] in SIGNS:
            at += 1
        elif place < len(seen) and seen[place] in ADDED:
            place += 1
        else:
            return wanted[at : at + 20]
    return ""


def unexplained(source: str, shown: str, styles: Counter[str]) -> Mapping[str, int]:
    """The signs that are missing beyond what the styles account for."""
    source = _attributes_out(source)
    gone = Counter(source) - Counter(shown)
    lines = source.split("\n")
    ruled = sum(len(line) for line in lines if re.fullmatch(r"[\s>]*([*_-]\s*){3,}", line))
    leads = (re.match(r"(?:[\s>]|(?:[-*+]|\d+[.)])(?=\s|$))*", line) for line in lines)
    bullets = sum(lead.group().count("*") for lead in leads if lead)
    fences = sum(len(m) for m in re.findall(r"~{3,}", source))
    tables = [block for block in re.split(r"\n\s*\n", source) if re.search(_HEAD_LINE, block)]
    rows = Counter("".join(tables))
    allowed = {
        "*_": 4 * styles["bold"] + 2 * styles["italic"] + bullets + ruled + rows["*"] + rows["_"],
        "~": 4 * styles["strike"] + fences + rows["~"],
        "\\": len(re.findall(r"\\(?:_|[^\w\s\\])", source)),
    }
    missing = {signs: sum(gone[sign] for sign in signs) for signs in allowed}
    return {signs: count for signs, count in missing.items() if count > allowed[signs]}


def shown_on_telegram(call: Mapping[str, Any]) -> str:
    """The text of a message with the address of each link behind its words."""
    units: bytes = call["text"].encode("utf-16-le")
    written, at = "", 0
    links = [e for e in call.get("entities", []) if e["type"] == "text_link"]
    for end, url in sorted((e["offset"] + e["length"], e["url"]) for e in links):
        written += units[2 * at : 2 * end].decode("utf-16-le") + f"({url})"
        at = end
    return written + units[2 * at :].decode("utf-16-le")


def _attributes_out(source: str) -> str:
    lines: list[str] = []
    fence = ""
    for line in source.split("\n"):
        found = re.fullmatch(
            r"([ >\t]*(?:[-*+] +|\d+[.)] +)*)(```+|~~~+) *([A-Za-z][A-Za-z0-9+#-]*)? *", line
        )
        if found and (not fence or (found[2].startswith(fence) and not found[3])):
            fence = "" if fence else found[2]
            lines.append(found[1] + found[2])
        else:
            lines.append(line)
    source = "\n".join(lines)
    source = re.sub(r"\[([^\]]+)\]\((?:mailto:)?\1\)", r"\1", source)
    return re.sub(_HEAD_LINE, lambda m: m.group().replace(":", ""), source)


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", text)
