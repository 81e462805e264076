"""Records for lists and screens: phone numbers cut short, and names that hold one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from bot.domain.message import shortened
from bot.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from bot.operations.reports.explain import Explained
    from storage.views.timeline import Moment

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

_WRITTEN = ("text", "body")
_NAMES_A_NUMBER = re.compile(r"\bwamid\.[\w+/=-]{7,}")
"""A name of WhatsApp's for a message: it holds the phone number, in base64."""


def shortened_in(record: Record) -> Record:
    """The record with every phone number cut short, but for what people wrote."""
    said = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in _WRITTEN}
    short = {name: shortened(value) for name, value in said.items() if type(value) is str}
    return replace(record, **short)


def shown(found: Sequence[Record], *, whole: bool) -> Sequence[Record]:
    """The records of a list, with their phone numbers `whole` or cut short."""
    return found if whole else [shortened_in(record) for record in found]


def without_numbers(text: str) -> str:
    """The text with all but the ends of names that hold a phone number left out."""
    return _NAMES_A_NUMBER.sub(lambda name: f"wamid.…{name[0][-6:]}", text)


def shown_course(course: Sequence[Moment], *, whole: bool) -> Sequence[Moment]:
    """The course of a run with its phone numbers `whole` or cut short."""
    if whole:
        return course
    return [replace(m, what=without_numbers(m.what)) for m in shown(course, whole=False)]


def shown_verdict(why: Explained, *, whole: bool) -> Explained:
    """A verdict and its evidence with their phone numbers `whole` or cut short."""
    if whole:
        return why
    evidence = [(name, shortened(value)) for name, value in why.evidence]
    return replace(shortened_in(why), evidence=evidence)
