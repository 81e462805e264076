"""A seed is a plan."""

from __future__ import annotations

from collections import Counter, defaultdict

from benchmarks.proof.plan import PER_MINUTE, Kind, Load, Platform, draw

MINUTE = 60.0


def test_a_seed_repeats_its_plan_and_another_one_does_not() -> None:
    first, again, other = (draw(seed, MINUTE, tuple(Platform)) for seed in (7, 7, 8))
    assert first == again
    assert first.misfortunes != other.misfortunes
    assert first.sayings != other.sayings


def test_another_rate_of_one_kind_moves_none_of_the_others() -> None:
    kinds = {Kind.KILL: 30.0, Kind.FREEZE: 10.0}
    calm, wild = (draw(7, MINUTE, tuple(Platform), kinds | more) for more in ({}, {Kind.KILL: 60}))
    freezes = [[m for m in plan.misfortunes if m.kind is Kind.FREEZE] for plan in (calm, wild)]
    assert freezes[0] == freezes[1]
    assert (calm.of(Kind.KILL), wild.of(Kind.KILL)) == (30, 60)


def test_the_whole_hour_has_a_thousand_kills_and_twenty_thousand_messages() -> None:
    plans = [draw(7, 27 * MINUTE, tuple(Platform)) for _ in range(2)]
    assert sum(plan.of(Kind.KILL) for plan in plans) >= 1000
    assert sum(len(plan.sayings) for plan in plans) >= 20_000


def test_every_kind_befalls_within_its_time() -> None:
    plan = draw(7, 10 * MINUTE, tuple(Platform))
    assert {one.kind for one in plan.misfortunes} == set(PER_MINUTE)
    assert all(0 < one.at < plan.seconds for one in plan.misfortunes)


def test_everybody_writes_in_order_and_on_every_platform() -> None:
    plan = draw(7, MINUTE, tuple(Platform), load=Load(rate=10.0, chats=8))
    names, moments = defaultdict[int, list[str]](list), defaultdict[int, list[float]](list)
    for saying in plan.sayings:
        names[saying.chat].append(saying.errand.name)
        moments[saying.chat].append(saying.at)
    assert all(said == sorted(said) for said in names.values())
    assert all(when == sorted(when) for when in moments.values())
    assert len(plan.sayings) == len(set().union(*names.values())) == 600
    assert Counter(plan.platforms) == dict.fromkeys(Platform, 2)
