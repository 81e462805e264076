"""Benchmarks count order and doubles, and the floor does its own job. Nothing is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import floor
from benchmarks.job import Answers, Job, quantile, text_of
from benchmarks.plot import plot
from benchmarks.report import page
from tests.e2e.forking import ROOT

LANES = 3


def test_every_message_is_in_one_lane_and_a_chat_in_one_alone() -> None:
    job = Job(messages=50, chats=7)
    lanes = [list(job.lane(n, LANES)) for n in range(LANES)]
    assert sorted(number for lane in lanes for _, number in lane) == list(range(50))
    chats = [{chat for chat, _ in lane} for lane in lanes]
    assert sum(map(len, chats)) == len(set().union(*chats)) == 7
    assert all(lane == sorted(lane, key=lambda message: message[1]) for lane in lanes)


def test_answers_that_are_doubled_or_out_of_order_are_counted() -> None:
    answers = Answers(Job(messages=4))
    last = [
        answers.show(text_of(chat, number)) for chat, number in ((0, 0), (0, 2), (0, 1), (0, 1))
    ]
    found = answers.result()
    assert last == [False, False, False, True]
    assert (found["answered"], found["doubled"], found["out_of_order"]) == (3, 1, 1)


def test_a_quantile_of_nothing_is_zero_and_of_one_is_that_one() -> None:
    assert quantile([], 0.99) == 0.0
    assert quantile([2.0], 0.5) == 2.0


def test_the_floor_answers_every_message_once_and_in_order(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'floor.db'}"
    floor.create(url)
    job = Job(messages=60, chats=5)
    command = [sys.executable, "-m", "benchmarks.floor", "both", url, str(job)]
    done = subprocess.run(
        command, cwd=ROOT, input="\n\n", capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[1])
    assert (found["answered"], found["doubled"], found["out_of_order"]) == (60, 0, 0)


def test_a_job_survives_the_way_to_another_process() -> None:
    job = Job(messages=3, agent=0.2)
    assert Job.read(str(job)) == job


def test_the_floor_is_short_enough_to_be_read() -> None:
    assert len((ROOT / "benchmarks" / "floor.py").read_text().splitlines()) <= 150


@pytest.mark.parametrize("part", ["pipeline", "latency", "agents_200ms"])
def test_the_page_tells_a_part_with_the_command_that_measures_it(part: str) -> None:
    names = ("rate", "cpu_ms", "commits", "wal_bytes", "round_trips", "floor", "ratio")
    stages = ("taken", "claimed", "stored", "sent", "settled", "answered")
    spreads = [f"{stage}_{rank}_ms" for stage in stages for rank in ("p50", "p99")]
    floors = dict.fromkeys((*names, *spreads), 2.0)
    ours = dict.fromkeys((*names, *spreads), 1.0) | {"floor_figures": floors}
    figures = {"command": "make bench", "machine": "two cores", part: {"postgresql": ours}}
    assert f"`make bench ARGS='--only {part}'`" in page(figures, "picture.svg")
    assert "PostgreSQL" in plot(figures)
