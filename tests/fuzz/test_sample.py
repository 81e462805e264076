"""A few inputs for every target, and that what is broken would be found."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz.engine import Bench, Target
from tests.fuzz.million import alone, run_routes
from tests.fuzz.mutations import damaged_document, damaged_json

INPUTS = 600
DEEP = 20_000


def test_no_input_of_a_sample_is_unhandled_and_every_target_had_some(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path, sqlite_url: str
) -> None:
    deep = request.config.getoption("--deep")
    bench, inputs = (Bench(Random().randrange(10**6)), DEEP) if deep else (Bench(1), INPUTS)
    names = alone(bench, tmp_path, sqlite_template, inputs)
    names |= run_routes(bench, sqlite_url, inputs)
    assert [(f.target, f.number, f.what, f.given) for f in bench.findings] == [], bench.seed
    assert bench.tallies.keys() == names
    given = sum(tally.inputs for tally in bench.tallies.values())
    assert abs(given - inputs) < len(names)  # Each share is rounded.


async def test_whatever_is_raised_takes_long_or_is_large_is_found() -> None:
    def raises(_given: object) -> str:
        raise KeyError("x")

    def large(given: int) -> str:
        return str(len(bytes(given * 10**6)))

    bench = Bench(seed=1)
    await bench.run(Target("raises", 1, raises, lambda _chance: 1), range(3))
    await bench.run(Target("slow", 1, large, lambda _chance: 1, most_seconds=0.0), range(3))
    await bench.run(Target("large", 1, large, lambda _chance: 60), range(3))
    assert {f.target for f in bench.findings} == {"raises", "slow", "large"}
    assert bench.tallies["raises"].became == {"!KeyError": 3}


def test_the_same_seed_does_the_same_damage() -> None:
    value = {"message": {"chat": {"id": 1}, "text": "hello"}}
    for seed in range(50):
        made = [damaged_document(Random(seed), [value], 1_000) for _ in range(2)]
        assert made[0] == made[1]
    assert value == {"message": {"chat": {"id": 1}, "text": "hello"}}
    assert any(damaged_json(Random(seed), value) != value for seed in range(5))
