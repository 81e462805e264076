"""Redaction: keep people's words in exceptions, and secrets in any text, out of the log.

An exception of other people's code may quote anything: the message that could not be read,
the row that could not be written, the URL with the token. No pattern can find a person's words
in it. So a line has the exception's type and the places in the code, and its message only if that
is known to come from us or from the operating system. `scrub` is for all other texts of such code,
which may quote their input.
"""

from __future__ import annotations

import itertools
import re
import sysconfig
import traceback
import unicodedata
from collections.abc import Iterable, Iterator

from bot.domain.errors import ForOperators

_OURS = frozenset({"bot", "channels", "storage"})
_FROM_THE_SYSTEM = frozenset(
    {
        ("httpx", "TransportError"),
        ("httpcore", "NetworkError"),
        ("httpcore", "TimeoutException"),
        ("pysqlite3", "Error"),
        ("redis", "RedisError"),
        ("sqlite3", "Error"),
    }
)
"""Packages, and their classes of errors whose messages come from the operating system, from SQLite
or from Redis."""

_MOST_FRAMES = 12
_MOST_CAUSES = 4
_INSTALLED = ("site-packages", "dist-packages")
_STDLIB = sysconfig.get_path("stdlib")


def explain(error: BaseException) -> str:
    """The error's type, and its message if that can't hold a person's words."""
    name = type(error).__qualname__
    words = _words(error)
    return f"{name}: {words}" if words else name


def causes(error: BaseException) -> Iterator[str]:
    """The errors that led to this one, each explained; of a group, its members first."""
    return itertools.islice(map(explain, led_to(error)), _MOST_CAUSES)


def frames(error: BaseException) -> str:
    """The places that the error came through, innermost last: those in our code and the agent's,
    and the innermost in any case. It has no source line, no variable and no path of this
    machine."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    steps = list(traceback.walk_tb(error.__traceback__))
    places = [
        f"{frame.f_globals.get('__name__', '?')}:{line} {frame.f_code.co_qualname}"
        for number, (frame, line) in enumerate(steps, 1)
        if number == len(steps)
        or is_ours(frame.f_globals.get("__name__", ""))
        or not is_installed(frame.f_code.co_filename)
    ]
    return " > ".join(places[-_MOST_FRAMES:])


def is_ours(module: str) -> bool:
    """True for a module of Answerback's own."""
    return module.partition(".")[0] in _OURS


def is_installed(file: str) -> bool:
    """True for a file that came with Python or with a package."""
    return file.startswith((_STDLIB, "<frozen")) or any(mark in file for mark in _INSTALLED)


def led_to(error: BaseException) -> Iterator[BaseException]:
    """The errors that led to this one: the members of a group, then its causes."""
    if isinstance(error, BaseExceptionGroup):
        yield from error.exceptions
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    if cause is not None:
        yield cause
        yield from led_to(cause)


def _words(error: BaseException) -> str:
    if isinstance(error, ForOperators):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or ""
    kinds = {(k.__module__.partition(".")[0], k.__name__) for k in type(error).__mro__}
    package = type(error).__module__.partition(".")[0]
    if any(package == of and (of, kind) in kinds for of, kind in _FROM_THE_SYSTEM):
        return str(error)
    return _of_database(error)


def _of_database(error: BaseException) -> str:
    """A database's own code for the error, since its message may hold values of the row."""
    orig = getattr(error, "orig", None)
    if isinstance(orig, BaseException):
        return explain(orig)
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str):
        return ""
    constraint = getattr(getattr(error, "diag", None), "constraint_name", None)
    return f"SQLSTATE {state}" + (f", constraint {constraint}" if constraint else "")


_SHORTEST_SECRET = 4
_ACTING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of control, formatting, surrogate and line-separator characters. They are written as
escapes, so that they neither end a line nor act on a terminal."""
_WORD = r"(?:auth[_-]?token|bot[_-]?token|token|secret|password|passwd|api[_-]?key)"
_HEADER = r"(?:x-twilio-signature|x-hub-signature-256|x-telegram-bot-api-secret-token|x-api-key)"

# The order matters: the most specific patterns come first, so that no later one matches a part of
# what they would replace.
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Telegram's bot tokens, in URLs of methods and files too.
    (re.compile(r"(?<!\d)\d{5,20}(?::|%3A)[\w-]{20,}", re.IGNORECASE), "<token>"),
    # JSON Web Tokens, of any issuer.
    (re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]+){0,2}"), "<token>"),
    # Meta's access tokens, and its message ids: a person's number is in their Base64.
    (re.compile(r"\bEAA[0-9A-Za-z]{16,}"), "<token>"),
    (re.compile(r"\bwamid\.[\w+/=-]+"), "<message>"),
    (re.compile(r"\b(?:sk|pk|xox[abp]|ghp)[-_][\w-]{16,}"), "<key>"),
    (re.compile(r"\b(Basic|Bearer)\s+[\w.~+/-]+=*", re.IGNORECASE), r"\1 <key>"),
    # user:password@ of any URL, a database's or Twilio's.
    (re.compile(r"(?<=://)[^\s/@\"']*:[^\s/\"']*@(?=[\w\[./])"), "<login>@"),
    # The query of any URL: it may hold anything that a person asked.
    (
        re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?\"'<>]*)\?[^\s\"'<>]*", re.IGNORECASE),
        r"\1?<query>",
    ),
    (re.compile(rf"({_HEADER}[\"']?\s*[:=,]\s*b?[\"']?)[^\s\"',)}}]+", re.IGNORECASE), r"\1<key>"),
    (re.compile(rf"({_WORD}[\"']?\s*=\s*b?[\"']?)[^\s\"'&,)}}]+", re.IGNORECASE), r"\1<key>"),
    (re.compile(rf"([\"']{_WORD}[\"']\s*:\s*b?[\"'])[^\"']+", re.IGNORECASE), r"\1<key>"),
    # Twilio's auth tokens, and anything else of 128 bits in hex.
    (re.compile(r"(?<![\w-])[0-9a-f]{32}(?![\w-])", re.IGNORECASE), "<hex>"),
    # Meta's business-scoped user ids: CC.<up to 128>, CC.ENT.<...>.
    (re.compile(r"(?<![\w.])[A-Z]{2}\.(?:ENT\.)?(?=\w*\d)\w{6,}"), "<user>"),
    # Phone numbers: with a plus, as people write them, and in North America's form.
    (re.compile(r"(?:\+|%2B)\d(?:[\s().-]{0,2}\d){4,}(\d)(?!\d)", re.IGNORECASE), r"+…\1"),
    (re.compile(r"(?<![\w.-])\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?![\w.-])"), "<number>"),
    # Ids of people and chats. Our own numbers are kept: they follow a word that names them.
    (
        re.compile(r"(?<![\w-])(?<!run )(?<!part )(?<!port )(?<!whatsapp-cloud )-?\d{8,}(?![\w])"),
        "<number>",
    ),
)


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text as one line, without secrets, tokens, passwords, phone numbers and long ids."""
    text = _hidden(text, secrets)
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    if text.isascii() and text.isprintable():
        return text
    return _inert(text)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with its line breaks, without these secrets and without characters that act on a
    terminal."""
    return "\n".join(map(_inert, _hidden(text, secrets).split("\n")))


def _hidden(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "<secret>")
    return text


def _inert(line: str) -> str:
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _ACTING else c
        for c in line
    )
