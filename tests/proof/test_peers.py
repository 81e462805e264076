"""The bots of other libraries are short, of the versions that we name, and judged like ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.peers import contestants
from benchmarks.peers.contestants import Peer, apologies
from benchmarks.peers.storm import ENTRIES, HEADS, Line, promises, table
from benchmarks.proof.errands import Errand, Fails
from benchmarks.proof.judge import Asked, Claim, judge
from benchmarks.proof.plan import PER_MINUTE, Kind, Misfortune, Plan, Platform
from benchmarks.proof.storm import Found
from tests.e2e.forking import ROOT

BOTS = ROOT / "benchmarks" / "peers" / "bots"
PEERS = [entry.enter for entry in ENTRIES.values() if issubclass(entry.enter, Peer)]
PROGRAMS = {"naive": "polling", "arq": "queued_arq", "taskiq": "queued_taskiq", "dbos": "durable"}


def test_an_apology_that_somebody_was_shown_is_a_claim_and_nothing_else_is() -> None:
    shown = ["re: m1 1/1", "sorry: m2", "I am sorry: m3", "sorry: m4 and m5"]
    assert apologies(shown) == {"m2": Claim.APOLOGISED}


def test_the_row_of_a_storm_tells_what_the_judge_found() -> None:
    one, two, three = (Errand(f"m{n}", 0.1) for n in (1, 2, 3))
    vain = Errand("vain", 0.1, fails=Fails.ALWAYS)
    asked = [Asked("ada", errand) for errand in (one, two, three, vain)]
    shown = {"ada": ["re: m2 1/1", "re: m1 1/1", "re: m1 1/1", "sorry: vain"]}
    found = Found(Plan(1, 1.0, [Platform.TELEGRAM], [], [Misfortune(0, Kind.KILL, 0, 0, 0)]))
    found.verdict = judge(asked, shown, apologies(shown["ada"]))
    found.befell.update({Kind.KILL: 7, Kind.FREEZE: 2, Kind.CLOCK_STEP: 3})
    row = dict(zip(HEADS, Line.of("somebody", found).cells, strict=True))
    assert (row["messages"], row["killed (-9)"], row["frozen, stopped, handed over"]) == (
        *("4", "7"),
        "2",
    )
    assert (row["lost"], row["doubled"], row["out of order"]) == ("1", "1", "1")
    assert (row["apologised without need"], row["agent failed, told"]) == ("0", "1")
    assert "| somebody | 4 | 7 | 2 | 1 | 1 | 1 |" in table([Line.of("somebody", found)])


def test_everybody_is_listed_with_what_it_promises() -> None:
    told = promises([*ENTRIES.values()])
    assert all(f"| {entry.enter.name} |" in told for entry in ENTRIES.values())
    assert all(entry.terms.source for entry in ENTRIES.values())


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.environment)
def test_nobody_meets_what_answerback_does_not_meet(peer: type[Peer]) -> None:
    share = peer.places / 3
    moved = {Kind.RESTART, Kind.HAND_OVER}
    theirs, ours = (sum(rates[kind] for kind in moved) for rates in (peer.kinds, PER_MINUTE))
    assert theirs == pytest.approx(ours * share)
    for kind in (Kind.KILL, Kind.FREEZE):
        assert peer.kinds[kind] == pytest.approx(PER_MINUTE[kind] * share)
    others = set(Kind) - moved - {Kind.KILL, Kind.FREEZE, Kind.REDIS_STOPPED}
    assert all(peer.kinds[kind] in (0.0, PER_MINUTE[kind]) for kind in others)
    assert not peer.durable_redis or peer.kinds[Kind.REDIS_EMPTIED] == 0.0


@pytest.mark.parametrize("bot", PROGRAMS.values())
def test_a_bot_is_short_enough_to_be_read(bot: str) -> None:
    assert len((BOTS / f"{bot}.py").read_text().splitlines()) < 120


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.environment)
def test_a_peers_version_is_the_one_that_is_installed(peer: type[Peer]) -> None:
    locked = (Path(contestants.__file__).parent / f"{peer.environment}.lock").read_text()
    name, version = peer.name.lower().split()
    assert f"\n{name}=={version} \\" in f"\n{locked}"


@pytest.mark.deep
@pytest.mark.parametrize(("environment", "bot"), PROGRAMS.items())
def test_a_bot_can_be_imported_where_its_library_is(environment: str, bot: str) -> None:
    python = ROOT / ".venv-peers" / environment / "bin" / "python"
    if not python.exists():
        pytest.skip("`make prove-peers` installs it")
    subprocess.run([python, "-c", f"import benchmarks.peers.bots.{bot}"], cwd=ROOT, check=True)
