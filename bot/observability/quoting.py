"""Finding the words of a turn in a text that may quote them.

An exception of an agent may carry what a person wrote: whole or in part, in capitals, behind
`repr`, in a URL, as JSON, Base64 or bytes. A text passes only if no word of the turn is found in
any of its readings, that is, in the text or in any decoding of it. Common words (`the`, `is`) count
only where three words in a row are the same as in the turn. Mistakes are meant to fall on the safe
side: a message is withheld that could have been shown, and its place in the code is still told.
"""

from __future__ import annotations

import binascii
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from urllib.parse import unquote_plus

from bot.domain.turn import HistoryMessage, TurnChat, TurnMessage

_LONGEST = 4_000
"""The most characters of a text that is examined; a longer one counts as a quotation."""
_MOST_SPOKEN = 300_000
"""The most characters of a turn to compare with; if it has more, every text counts as a
quotation."""
_ROUNDS = 3
"""Rounds of decoding, for nested encodings: a URL in a URL, JSON in JSON."""
_PIECE = 3
"""The fewest characters of a piece of a word that counts."""
_PHRASE = 3
"""Words in a row that count if they stand so in the turn, even if all are common."""

_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        a an and any are as at be but by can could did do does for from had has have he her him his
        how i if in into is it its me my no not of off on or our out she so than that the their them
        then there these they this to too up us was we were what when where which who why will with
        would you your
        """,
    )
)
"""Words that occur in English sentences on any subject."""
_ESCAPE = re.compile(
    r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{3})|N\{([^}]+)\}|(.))",
    re.DOTALL,
)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " ", "v": " ", "a": " "}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){3,}")
_QUOTED_PRINTABLE = re.compile(r"(?:=[0-9A-F]{2})+")


class Spoken:
    """Everything that an agent has of its people's words and of our answers: texts, names,
    addresses, files. More can be added while the agent works."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._characters = 0
        self._unknown = False
        self._compared: _Plain | None = None
        for text in texts:
            self.hear(text)

    def hear(self, text: str) -> None:
        """Add a text."""
        self._characters += len(text)
        self._unknown = self._unknown or self._characters > _MOST_SPOKEN
        if text and not self._unknown:
            self._texts.append(text)
            self._compared = None

    def hear_file(self, content: bytes) -> None:
        """Add a file. If it is not text (a scan, a voice message), its words can't be compared:
        from then on every text counts as a quotation."""
        try:
            self.hear(content[: _MOST_SPOKEN + 1].decode())
        except UnicodeDecodeError:
            self._unknown = True

    def hear_from(self, other: Spoken) -> None:
        """Add everything that `other` has heard."""
        for text in other._texts:
            self.hear(text)
        self._unknown = self._unknown or other._unknown

    def quoted_in(self, text: str) -> bool:
        """True when the text may hold some of these words."""
        if not self._texts and not self._unknown:
            return False
        if self._unknown or len(text) > _LONGEST:
            return True
        spoken = self._compared = self._compared or _Plain(" \n ".join(self._texts))
        return any(_shares(_Plain(reading), spoken) for reading in _readings(text))


def spoken_in(
    chat: TurnChat, messages: Iterable[TurnMessage], history: Iterable[HistoryMessage] = ()
) -> Spoken:
    """The words of a turn: its texts, the names and addresses of people and chats, and the names of
    files."""
    spoken = Spoken((chat.address, chat.topic, chat.name))
    for message in messages:
        names = (message.sender_id, message.sender_name, message.forwarded_from)
        for text in (message.text, message.button, *names):
            spoken.hear(text)
        if message.quoted is not None:
            spoken.hear(message.quoted.text)
            spoken.hear(message.quoted.provider_id)
        for file in message.attachments:
            spoken.hear(file.info.name)
            spoken.hear(file.info.ref)
    for before in history:
        spoken.hear(before.text)
        spoken.hear(before.sender_name)
    return spoken


def _folded(text: str) -> str:
    shown = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(c for c in shown if unicodedata.category(c) not in ("Mn", "Cf"))


class _Plain:
    """A text in the form that is compared: without case and accents, and with variants of one
    character made the same."""

    def __init__(self, text: str) -> None:
        self.text = text.casefold() if text.isascii() else _folded(text)

    @cached_property
    def words(self) -> list[str]:
        return re.findall(r"[^\W_]+", self.text)

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def telling(self) -> frozenset[str]:
        return self.known - _COMMON

    @cached_property
    def squeezed(self) -> str:
        """All words joined, with nothing between them."""
        return "".join(self.words)

    @cached_property
    def signs(self) -> frozenset[str]:
        """Emoji and other symbols."""
        others = (c for c in self.text if not c.isascii())
        return frozenset(c for c in others if unicodedata.category(c).startswith("S"))

    @cached_property
    def pairs(self) -> frozenset[str]:
        """Two letters in a row, in scripts that need not part their words."""
        return frozenset(
            word[n : n + 2]
            for word in self.words
            if not word.isascii()
            for n in range(max(len(word) - 1, 1))
        )

    @cached_property
    def phrases(self) -> frozenset[tuple[str, ...]]:
        rows = range(len(self.words) - _PHRASE + 1)
        return frozenset(tuple(self.words[n : n + _PHRASE]) for n in rows)


def _shares(text: _Plain, spoken: _Plain) -> bool:
    """Tell whether one of the two has a word, or a piece of a word, of the other."""
    same = text.telling & spoken.known or text.signs & spoken.signs or text.phrases & spoken.phrases
    if same:
        return True
    if any(pair in spoken.squeezed for pair in text.pairs):
        return True
    if any(len(word) >= _PIECE and word in spoken.text for word in text.telling):
        return True
    # The shortest words are not looked for in the squeezed text: there they would be found across
    # the border of two words.
    shortest = (text.text, text.squeezed)
    within = ((word, shortest[len(word) > _PIECE]) for word in spoken.telling)
    return any(len(word) >= _PIECE and word in place for word, place in within)


def _readings(text: str) -> Iterator[str]:
    """The text, and every text that it may be an encoding of."""
    seen = {text}
    new = [text]
    for _ in range(_ROUNDS):
        new = [r for one in new for r in _unwrapped(one) if r not in seen and len(r) <= _LONGEST]
        new = list(dict.fromkeys(new))
        seen.update(new)
    yield from seen


def _unwrapped(text: str) -> Iterator[str]:
    plain = _ESCAPE.sub(_sign, text)
    yield _joined(plain)
    yield _from_bytes(plain)
    yield unquote_plus(text)
    yield html.unescape(text)
    yield _QUOTED_PRINTABLE.sub(lambda m: _text_of(bytes.fromhex(m[0].replace("=", ""))), text)
    yield _HEX.sub(lambda m: _text_of(bytes.fromhex(m[0])) or m[0], text)
    yield _BASE64.sub(lambda m: _decoded(m[0]) or m[0], text)


def _sign(found: re.Match[str]) -> str:
    short, long, byte, octal, name, other = found.groups()
    if code := short or long or byte:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else " "
    if octal:
        return chr(int(octal, 8))
    if name:
        try:
            return unicodedata.lookup(name)
        except KeyError:
            return name
    return _SIGNS.get(other, other)


def _joined(text: str) -> str:
    """The text with surrogate pairs, as JSON escapes them, joined into characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_bytes(text: str) -> str:
    """The text with characters that are the bytes of UTF-8, as in the `repr` of bytes, decoded."""
    return re.sub(r"[\x80-\xff]{2,}", lambda m: _text_of(m[0].encode("latin-1")) or m[0], text)


def _decoded(text: str) -> str:
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    # The Base64 may be cut off in the middle of a character.
    ends = (end for end in range(len(bare), max(len(bare) - 4, 0), -1) if end % 4 != 1)
    found = (_text_of(binascii.a2b_base64(bare[:end] + "=" * (-end % 4))) for end in ends)
    return next(filter(None, found), "")


def _text_of(content: bytes) -> str:
    try:
        found = content.decode()
    except UnicodeDecodeError:
        return ""
    return found if all(c.isprintable() or c.isspace() for c in found) else ""
