"""Damage to recorded payloads: to their bytes, to the values of their JSON, to their forms.

Everything takes a `Random`: the same seed does the same damage.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes

Pairs = list[tuple[str, str]]

STRANGE_TEXT = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\u202e\u2066gnp.exe",
    "\u200b\u2060",
    "\r\nSet-Cookie: a=b",
    "\x1b[2J\x1b]0;owned\x07",
    "\x85\u2028\u2029",
    "e\u0301" * 50,
    "👨‍👩‍👧‍👦" * 40,
    "﷽" * 300,
    "x" * 300,
    "x" * 5_000,
    "whatsapp:+0",
    "-1",
    "1e999",
    "NaN",
    "9" * 25,
    "٣",
    "²",
    "<script>alert(1)</script>",
    "'; DROP TABLE runs; --",
    "%s%n%(name)s{0}",
    "../../../../etc/passwd",
    "http://169.254.169.254/latest/meta-data",
    "https://xn--a/",
    "http://[::1]:99999/",
    "*_`~[](){}|\\>#" * 40,
    "```" * 100,
    "[" * 2_000,
    "/stop",
    "/status@bot",
)
STRANGE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    10**400,
    1.5,
    -0.0,
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    [],
    {},
    [[]],
    [None],
    {"": {}},
)
TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\r\n",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"9" * 400,
    b"9" * 5_000,
    b"[" * 500,
    b'{"a":' * 500,
    b"%00",
    b"%ff",
    b"%",
    b"&",
    b"&&=",
    b"=",
    b";",
    b"+",
)


def strange_text(chance: Random) -> str:
    """A text that somebody wrote to break things, or any letters at all."""
    if chance.random() < 0.7:
        return chance.choice(STRANGE_TEXT)
    most = chance.choice((0x7F, 0x2FF, 0xFFFF, 0x10FFFF))
    return "".join(chr(chance.randrange(most + 1)) for _ in range(chance.randrange(40)))


def strange_value(chance: Random) -> Any:
    """A JSON value of another kind or size than anybody expects."""
    roll = chance.random()
    if roll < 0.5:
        return copy.deepcopy(chance.choice(STRANGE_VALUES))
    if roll < 0.95:
        return strange_text(chance)
    value: Any = strange_text(chance)
    for _ in range(chance.choice((2, 20, 200))):
        value = [value] if chance.random() < 0.5 else {"a": value}
    return value


def damaged_bytes(chance: Random, whole: bytes, others: Sequence[bytes] = ()) -> bytes:
    """A payload with some of its bytes changed, lost, doubled or moved."""
    made = bytearray(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        chance.choice(_DAMAGES)(chance, made, others)
    return bytes(made)


def _flip(chance: Random, made: bytearray, _others: Sequence[bytes]) -> None:
    if made:
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)


def _lose(chance: Random, made: bytearray, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(made) + 1)
    del made[at : at + chance.choice((1, 2, 8, 64, 100_000))]


def _double(chance: Random, made: bytearray, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(made) + 1)
    piece = made[at : at + chance.choice((1, 4, 16, 64, 512))]
    made[at:at] = piece * chance.choice((1, 1, 2, 20))


def _insert(chance: Random, made: bytearray, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(made) + 1)
    made[at:at] = chance.choice(TOKENS)


def _any_byte(chance: Random, made: bytearray, _others: Sequence[bytes]) -> None:
    at = chance.randrange(len(made) + 1)
    made[at:at] = chance.randbytes(chance.randrange(1, 9))


def _splice(chance: Random, made: bytearray, others: Sequence[bytes]) -> None:
    if others:
        other = chance.choice(others)
        cut = chance.randrange(len(other) + 1)
        del made[chance.randrange(len(made) + 1) :]
        made += other[cut:]


_DAMAGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip,
    _lose,
    _double,
    _insert,
    _insert,
    _any_byte,
    _splice,
)


def damaged_json(chance: Random, whole: Any) -> Any:
    """A JSON value of which some members are gone, doubled or something else."""
    made = copy.deepcopy(whole)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        holder, key = _place(chance, made)
        if holder is None:
            return strange_value(chance)
        roll = chance.random()
        if roll < 0.15:
            del holder[key]
        elif roll < 0.25 and isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[key]) for _ in range(chance.choice((1, 3, 40))))
        elif roll < 0.35 and isinstance(holder, dict):
            holder[strange_text(chance)] = strange_value(chance)
        else:
            holder[key] = strange_value(chance)
    return made


def _place(chance: Random, whole: Any) -> tuple[Any, Any]:
    """Any object or array within a value, and one of its keys; None for a value with none."""
    found: list[tuple[Any, Any]] = []
    waiting = [whole]
    while waiting:
        holder = waiting.pop()
        keys = (
            list(holder)
            if isinstance(holder, dict)
            else list(range(len(holder)))
            if isinstance(holder, list)
            else []
        )
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return chance.choice(found) if found else (None, None)


def dumped(chance: Random, value: Any) -> bytes:
    """A value as JSON, in one of the ways in which it can be written."""
    if chance.random() < 0.5:
        return json.dumps(value, separators=(",", ":")).encode()
    text = json.dumps(value, ensure_ascii=False, indent=chance.choice((None, 1)))
    return text.encode("utf-8", "surrogatepass")


def damaged_document(chance: Random, values: Sequence[Any], largest: int) -> bytes:
    """One of some recorded values: its members damaged, or its bytes, or neither; one of some
    hundreds is about as large as a body may be."""
    roll = chance.random()
    if roll < 0.001:
        return _huge(chance, chance.choice(values), largest)
    if roll < 0.03:
        return dumped(chance, chance.choice(values))
    if roll < 0.62:
        return dumped(chance, damaged_json(chance, chance.choice(values)))
    others = [dumped(chance, chance.choice(values))]
    return damaged_bytes(chance, dumped(chance, chance.choice(values)), others)


def _huge(chance: Random, value: Any, largest: int) -> bytes:
    """A document of about the largest size: one long text, deep, or of many members."""
    room = largest + chance.choice((-largest // 2, -200, 1, 200))
    made = copy.deepcopy(value)
    holder, key = _place(chance, made)
    if holder is None:
        return b"[" * room
    kind = chance.randrange(5)
    if kind == 0:
        holder[key] = chance.choice(("x", "\U0001f600", "*", "\x00", "a ", "[", "&#")) * (
            room // 12
        )
    elif kind == 1:
        holder[key] = [copy.deepcopy(holder[key])] * (room // (len(json.dumps(holder[key])) + 1))
    elif kind == 2:
        holder[key] = {f"k{n}": n for n in range(room // 14)}
    elif kind == 3:
        whole = json.dumps(made).encode()
        at = chance.randrange(len(whole))
        return whole[:at] + chance.choice((b"[", b'{"a":', b'"', b"\\", b"{}", b"9")) * room
    else:
        holder[key] = [[]] * (room // 4)
    return json.dumps(made, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


def damaged_pairs(chance: Random, pairs: Pairs) -> Pairs:
    """A form of which some fields are gone, doubled or something else."""
    made = list(pairs)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(made)) if made else 0
        roll = chance.random()
        if roll < 0.2 and made:
            del made[at]
        elif roll < 0.4 and made:
            made.insert(chance.randrange(len(made) + 1), made[at])
        elif roll < 0.9 and made:
            made[at] = (made[at][0], strange_text(chance))
        else:
            made.append((strange_text(chance), strange_text(chance)))
    return made


def as_form(chance: Random, pairs: Pairs) -> bytes:
    """The pairs as a form in ASCII; what is no letter of UTF-8 stands as the bytes that a careless
    writer would have made of it."""

    def written(text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        return quote_from_bytes(raw, safe="").replace("%20", chance.choice(("+", "%20")))

    return "&".join(f"{written(name)}={written(value)}" for name, value in pairs).encode()
