"""Taking out of a line what must not stand in it: tokens, passwords, whole numbers.

Patterns can't know a person's words: those never get as far as here
(`bot/observability/exceptions.py`).
This is for texts of other people's code, which quotes what it was given.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SHORTEST_SECRET = 4
_WORD = r"(?:auth[_-]?token|bot[_-]?token|token|secret|password|passwd|api[_-]?key)"
_HEADER = r"(?:x-twilio-signature|x-telegram-bot-api-secret-token|x-api-key)"

# In this order: what is most telling first, so that no later pattern meets a half of it.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Telegram's bot tokens, in URLs of methods and files too.
    (re.compile(r"(?<!\d)\d{5,20}(?::|%3A)[\w-]{20,}", re.IGNORECASE), "<token>"),
    (re.compile(r"\b(?:sk|pk|xox[abp]|ghp)[-_][\w-]{16,}"), "<key>"),
    (re.compile(r"\b(Basic|Bearer)\s+[\w.~+/-]+=*", re.IGNORECASE), r"\1 <key>"),
    # user:password@ of any URL, a database's or Twilio's.
    (re.compile(r"(?<=://)[^\s/@\"']*:[^\s/\"']*@(?=[\w\[./])"), "<login>@"),
    # A query carries what was asked, whoever asked it.
    (
        re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?\"'<>]*)\?[^\s\"'<>]*", re.IGNORECASE),
        r"\1?<query>",
    ),
    (re.compile(rf"({_HEADER}[\"']?\s*[:=,]\s*b?[\"']?)[^\s\"',)}}]+", re.IGNORECASE), r"\1<key>"),
    (re.compile(rf"({_WORD}[\"']?\s*=\s*b?[\"']?)[^\s\"'&,)}}]+", re.IGNORECASE), r"\1<key>"),
    (re.compile(rf"([\"']{_WORD}[\"']\s*:\s*b?[\"'])[^\"']+", re.IGNORECASE), r"\1<key>"),
    # Twilio's auth tokens, and whatever else is 128 bits of hex.
    (re.compile(r"(?<![\w-])[0-9a-f]{32}(?![\w-])", re.IGNORECASE), "<hex>"),
    # Meta's business-scoped user ids: CC.<up to 128>, CC.ENT.<...>.
    (re.compile(r"(?<![\w.])[A-Z]{2}\.(?:ENT\.)?(?=\w*\d)\w{6,}"), "<user>"),
    # Phone numbers: with a plus, as people write them, and in North America's form.
    (re.compile(r"(?:\+|%2B)\d(?:[\s().-]{0,2}\d){4,}(\d)(?!\d)", re.IGNORECASE), r"+…\1"),
    (re.compile(r"(?<![\w.-])\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?![\w.-])"), "<number>"),
    # Ids of people and chats; our own numbers follow a word that says which they are.
    (re.compile(r"(?<![\w-])(?<!run )(?<!part )(?<!port )-?\d{8,}(?![\w])"), "<number>"),
)


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text as one line, without secrets, tokens, passwords and whole numbers."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "<secret>")
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return _one_line(text)


def _one_line(text: str) -> str:
    """Control, direction and line characters as escapes: they neither end a line nor act."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character
