"""The page of the settings, from `.env.example` and the classes that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from form import MADE, ROOT, page, plain
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bot.wiring.channels import settings_class

_SETTINGS = """\
Settings come from the environment, or from the file `.env` in the folder where `answerback` is
started; the environment wins. [`.env.example`](../.env.example) is a file to copy. A wrong value
stops the start with a line that names the variable and the fix, and `answerback doctor` looks at
all of them."""


def settings() -> str:
    """The page of all settings: words and order of `.env.example`, values of the code."""
    fields = {name.upper(): field for name, field in settings_class().model_fields.items()}
    pieces = ["# Settings", MADE, _SETTINGS]
    text = (ROOT / ".env.example").read_text(encoding="utf-8")
    examples = dict(re.findall(r"^#([A-Z0-9_]+)=(.+)$", text, re.MULTILINE))
    for number, section in enumerate(text.strip().split("\n\n")):
        groups = list(_groups(section.splitlines()))
        if number:
            pieces.append(f"## {_heading(groups)}")
        for said, names in groups:
            pieces.append(said)
            known = [
                f"- {_setting(name, fields.get(name), examples.get(name, ''))}" for name in names
            ]
            if known:
                pieces.append("\n".join(known))
    return page(*pieces)


def _groups(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Comments, each with the variables below it."""
    said: list[str] = []
    names: list[str] = []
    for line in lines:
        if variable := re.match(r"#?([A-Z][A-Z0-9_]+)=", line):
            names.append(variable[1])
            continue
        if names:
            yield " ".join(said), names
            said, names = [], []
        said.append(line.removeprefix("#").strip())
    yield " ".join(said), names


HEADINGS = {
    "AGENT": "The agent",
    "TELEGRAM_BOT_TOKEN": "Telegram",
    "META_PHONE_NUMBER_ID": "WhatsApp through Meta",
    "TWILIO_ACCOUNT_SID": "WhatsApp through Twilio",
    "WEB": "The web",
    "OPERATOR_PASSWORD": "The operator's page",
    "CHANNELS": "Channels of your own",
    "PUBLIC_URL": "Where it is reached",
    "DATABASE_URL": "The database",
    "LOG_LEVEL": "Logs and traces",
    "LEASE_SECONDS": "Leases, limits and people",
}
"""By the first variable of a section of `.env.example`."""


def _heading(groups: list[tuple[str, list[str]]]) -> str:
    first = next(name for _, names in groups for name in names)
    return HEADINGS.get(first, f"`{first}` and what belongs to it")


def _setting(name: str, field: FieldInfo | None, example: str) -> str:
    """A variable with its default or an example, and what it takes. One without a field is read
    by compose.yaml alone."""
    if field is None:
        return f"`{name}`"
    if default := _default(field):
        return f"`{name}={default}`: {_takes(field)}"
    takes = "JSON" if example.startswith(("{", "[")) else _takes(field)
    return f"`{name}`: {takes}" + (f", such as `{example}`" if example else "")


def _default(field: FieldInfo) -> str:
    value = field.default
    if value in (None, "", (), frozenset(), PydanticUndefined):
        return ""
    return str(value).lower() if isinstance(value, bool) else plain(value)


def _takes(field: FieldInfo) -> str:
    """The values that may be written, in words."""
    kind = field.annotation
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    secret = "" if field.repr else ", a secret"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{member.value}`" for member in kind)
    words: dict[object, str] = {
        bool: "`true` or `false`",
        str: "text",
        Path: "a path",
        dict: "JSON",
        tuple: "several, with commas between",
        frozenset: "several, with commas between",
    }
    if kind in (int, float):
        whole = "a whole number" if kind is int else "a number"
        return whole + _bounds(field)
    base = get_origin(kind) or kind
    return words.get(base, "text") + secret


def _bounds(field: FieldInfo) -> str:
    found = [
        words.format(plain(getattr(rule, mark)))
        for rule in field.metadata
        for of, mark, words in _RULES
        if isinstance(rule, of)
    ]
    return "".join(f", {words}" for words in found)


_RULES = (
    (Ge, "ge", "{} or more"),
    (Gt, "gt", "above {}"),
    (Le, "le", "at most {}"),
    (Lt, "lt", "below {}"),
)
