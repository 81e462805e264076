"""The history that a model sees: never one that a provider would refuse."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.assistant.prompt import as_messages, is_blank, tokens, within
from bot.agents.assistant.scripted import check_whole
from bot.domain.turn import HistoryMessage

SAID = st.builds(
    HistoryMessage,
    st.sampled_from(["user", "assistant"]),
    st.text(max_size=60) | st.text(alphabet="\u200b\u200d\ufeff \n\u3164", max_size=5),
    st.floats(0, 2e9),
)


@given(st.lists(SAID, max_size=30), st.integers(0, 400))
def test_any_history_becomes_one_that_is_taken(history: list[HistoryMessage], budget: int) -> None:
    kept = within(history, budget)
    assert sum(tokens(said.text) for said in kept) <= budget + len(history)
    assert all(not is_blank(said.text) for said in kept)
    assert all(a.role != b.role for a, b in pairwise(kept))
    assert not kept or kept[0].role == "user"
    if kept:
        check_whole(as_messages(kept))


@given(st.lists(SAID, max_size=30), st.integers(0, 400))
def test_what_is_kept_is_the_newest(history: list[HistoryMessage], budget: int) -> None:
    visible = "".join(said.text for said in history if not is_blank(said.text))
    kept = "".join(said.text for said in within(history, budget)).replace("\n\n", "")
    assert visible.replace("\n\n", "").endswith(kept)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u200d\ufeff", "\u3164", "\u2800", "\u00ad"])
def test_what_nobody_can_see(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "😀", "👩\u200d🚀", "\u200bא", "é", "٣", "\u0301"])
def test_what_somebody_can_see(text: str) -> None:
    assert not is_blank(text)
