"""The keys of the JSON that commands print stay, whatever becomes of the records behind them."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from bot.cli.output import shapes
from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.findings import Finding
from bot.operations.actions import Acted
from bot.operations.reports.stuck import Stuck
from storage.copying import Copied, CopiedTable
from storage.holders import HolderRow
from storage.views.chats import ChatLine
from storage.views.conversation import Heard, Said
from storage.views.parts import DeadLetter, PartLine
from storage.views.runs import RunLine
from storage.views.timeline import Moment

RUN = """id request_id requests channel chat address topic state ending cause detail set_aside
    attempts failures deaths holder holder_alive age_s created_at ended_at"""
PART = """id run chat channel address kind part state receipt attempts error code provider_status
    since_s"""
CHAT = """id channel account address topic kind name language last_inbound_at paused_until
    unreachable_since unreachable_reason opted_out_at live_runs handoff_at wants_person"""

HEARD = "direction id at run request_id kind ignored state ending edited_at"
SAID = "direction id at run kind state error who"


def made(kind: type[Any], **given: object) -> Any:
    """A record of this kind with something in every field."""
    hints = get_type_hints(kind)
    return kind(**{f.name: given.get(f.name, _some(hints[f.name])) for f in fields(kind)})


def _some(hint: Any) -> object:
    if isinstance(hint, UnionType):
        hint = next(one for one in get_args(hint) if one is not NoneType)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    return (get_origin(hint) or hint)(1) if hint in (int, float, str, bool) else ()


@pytest.mark.parametrize(
    ("shown", "keys"),
    [
        (shapes.run_shape(made(RunLine)), RUN),
        (shapes.part_shape(made(PartLine), text=False), PART),
        (shapes.part_shape(made(PartLine), text=True), f"{PART} text"),
        (shapes.chat_shape(made(ChatLine), wants_person=True), CHAT),
        (shapes.moment_shape(made(Moment), text=False), "at who what detail"),
        (shapes.moment_shape(made(Moment), text=True), "at who what detail text"),
        (shapes.said_shape(made(Heard), text=False), HEARD),
        (shapes.said_shape(made(Heard), text=True), f"{HEARD} text sender_name"),
        (shapes.said_shape(made(Said), text=False), SAID),
        (shapes.said_shape(made(Said), text=True), f"{SAID} text"),
        (shapes.letter_shape(made(DeadLetter), text=False), "id channel age_s error bytes"),
        (shapes.letter_shape(made(DeadLetter), text=True), "id channel age_s error bytes body"),
        (
            shapes.holder_shape(made(HolderRow)),
            "id name host pid role lease_age_s draining alive version",
        ),
        (shapes.stuck_shape(made(Stuck)), "kind id since_s why act"),
        (shapes.shape(made(TurnAnswer)), "request_id status queued ending answer text"),
        (shapes.shape(made(Acted), "wake"), "subject result said"),
        (shapes.shape(made(Finding)), "name level says fix"),
        (shapes.shape(made(CopiedTable)), "name rows digest cleaned"),
        (shapes.shape(made(Copied)), "source target tables"),
    ],
)
def test_the_keys_are_those_that_are_promised(shown: shapes.Shape, keys: str) -> None:
    assert set(shown) == set(keys.split())


def test_a_part_that_stands_still_says_of_which_run_it_is() -> None:
    told = shapes.stuck_shape(made(Stuck, why="unknown", run=12))
    assert told["why"] == "unknown (run 12)"
    assert shapes.stuck_shape(made(Stuck, why="unknown", run=0))["why"] == "unknown"


def test_a_part_that_is_tried_again_says_when_as_programs_read_it() -> None:
    told = shapes.moment_shape(made(Moment, detail="limited", due=1_800_003_600.0), text=False)
    assert told["detail"] == "limited, due again at 2027-01-15T09:00:00.000Z"
    told = shapes.moment_shape(made(Moment, detail="limited", due=None), text=False)
    assert told["detail"] == "limited"


def test_times_are_iso_or_null_and_a_pause_may_have_no_end() -> None:
    chat = made(ChatLine, paused_until=1e12, opted_out_at=None, last_inbound_at=1_800_003_600.25)
    shown = shapes.chat_shape(chat)
    assert shown["paused_until"] == "resumed"
    assert shown["opted_out_at"] is None
    assert shown["last_inbound_at"] == "2027-01-15T09:00:00.250Z"


def test_values_of_enums_and_rounded_spans_are_plain() -> None:
    shown = shapes.part_shape(made(PartLine, since=1.23456), text=False)
    assert shown["since_s"] == 1.235
    assert type(shown["state"]) is str
