"""The doctor's findings about a number at Meta, from values alone."""

from __future__ import annotations

from typing import Any

import pytest

from bot.domain.findings import Level
from channels.whatsapp_cloud import examine
from channels.whatsapp_cloud.account import AppSubscription, Callbacks, NumberInfo, TokenInfo

NOW = 1_800_003_600.0
BOTH = frozenset({"whatsapp_business_messaging", "whatsapp_business_management"})
WELL: dict[str, Any] = {
    "status": "CONNECTED",
    "quality": "GREEN",
    "name_status": "APPROVED",
    "throughput": "STANDARD",
    "limit": "TIER_2K",
    "health": "AVAILABLE",
    "troubles": (),
    "app": "1",
    "business": "2",
    "callbacks": Callbacks(),
}


@pytest.mark.parametrize(
    ("token", "level", "word"),
    [
        (TokenInfo(True, 0.0, BOTH), Level.OK, "does not expire"),
        (TokenInfo(True, NOW + 30 * 86_400, BOTH), Level.OK, "30 more"),
        (TokenInfo(True, NOW + 3_600, BOTH), Level.WARNING, "0 more"),
        (TokenInfo(True, NOW - 1, BOTH), Level.PROBLEM, "not valid"),
        (TokenInfo(False, 0.0, BOTH), Level.PROBLEM, "not valid"),
        (TokenInfo(True, 0.0, frozenset()), Level.PROBLEM, "whatsapp_business_messaging"),
    ],
)
def test_a_token_is_judged_by_its_end_and_its_permissions(
    token: TokenInfo, level: Level, word: str
) -> None:
    finding = examine.of_token("n", token, NOW)
    assert finding.level is level
    assert word in finding.says
    assert bool(finding.fix) == (level is not Level.OK)


@pytest.mark.parametrize(
    ("changes", "level", "word"),
    [
        ({}, Level.OK, "TIER_2K"),
        ({"status": "BANNED"}, Level.PROBLEM, "BANNED"),
        ({"health": "BLOCKED"}, Level.PROBLEM, "can't send"),
        ({"troubles": ("WABA 141006: no payment method",)}, Level.WARNING, "141006"),
        ({"quality": "RED"}, Level.WARNING, "RED"),
        ({"name_status": "DECLINED"}, Level.WARNING, "DECLINED"),
        ({"status": "", "quality": "", "limit": "", "throughput": ""}, Level.OK, "unknown"),
    ],
)
def test_a_number_is_judged_by_what_keeps_it_from_sending(
    changes: dict[str, Any], level: Level, word: str
) -> None:
    found = list(examine.of_number("n", NumberInfo(**{**WELL, **changes})))
    worst = max(found, key=lambda f: [Level.OK, Level.WARNING, Level.PROBLEM].index(f.level))
    assert worst.level is level
    assert word in worst.says


@pytest.mark.parametrize(
    ("apps", "level"),
    [(("1",), Level.OK), ((), Level.PROBLEM), (("9",), Level.PROBLEM), (("1", "9"), Level.WARNING)],
)
def test_an_account_that_our_app_does_not_hear_of_is_a_problem(
    apps: tuple[str, ...], level: Level
) -> None:
    [finding] = examine.of_apps("n", "1", apps)
    assert finding.level is level


def test_an_app_that_does_not_want_messages_is_a_problem() -> None:
    assert examine.of_fields("n", AppSubscription("", frozenset({"messages"}))).level is Level.OK
    deaf = examine.of_fields("n", AppSubscription("", frozenset({"account_update"})))
    assert (deaf.level, "messages" in deaf.says) == (Level.PROBLEM, True)
