"""The judge of the proof finds what is planted, and excuses only what is claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from benchmarks.proof.errands import Errand, Failed, Fails, answered
from benchmarks.proof.judge import Asked, Claim, Outcome, Verdict, Wrong, judge

ONE, TWO, THREE = (Errand(f"m{n}", 0.1) for n in (1, 2, 3))
LONG = Errand("long", 0.1, parts=3)
VAIN = Errand("vain", 0.1, fails=Fails.ALWAYS)


def told(*errands: Errand) -> Sequence[str]:
    """The answers of these, as people are shown them."""
    return [text for errand in errands for text in errand.answer(2)]


def judged(
    asked: Sequence[Errand],
    shown: Sequence[str],
    claims: Mapping[str, Claim] | None = None,
    by_hand: Sequence[str] = (),
) -> Verdict:
    """The verdict on one chat."""
    return judge([Asked("ada", errand) for errand in asked], {"ada": shown}, claims or {}, by_hand)


def wrongs(verdict: Verdict) -> list[tuple[Wrong, str]]:
    return [(one.wrong, one.name) for one in verdict.findings]


def test_what_is_answered_once_and_in_order_is_right() -> None:
    verdict = judged((ONE, LONG, TWO), [*told(ONE, LONG), "a notice of ours", *told(TWO)])
    assert wrongs(verdict) == []
    assert verdict.outcomes == {Outcome.ANSWERED: 3}


def test_a_message_without_an_answer_is_lost() -> None:
    assert wrongs(judged((ONE, TWO), told(TWO))) == [(Wrong.LOST, "m1")]


def test_a_chat_that_was_shown_nothing_has_lost_everything() -> None:
    verdict = judge([Asked("ada", ONE), Asked("bob", TWO)], {"bob": told(TWO)}, {})
    assert wrongs(verdict) == [(Wrong.LOST, "m1")]


def test_an_answer_without_one_of_its_parts_is_lost() -> None:
    first, _, last = told(LONG)
    assert wrongs(judged((LONG,), [first, last])) == [(Wrong.LOST, "long")]


def test_an_answer_that_is_shown_twice_is_doubled_whatever_is_claimed() -> None:
    for claim in ({}, {"m1": Claim.UNCERTAIN}):
        assert wrongs(judged((ONE,), told(ONE, ONE), claim)) == [(Wrong.DOUBLED, "m1")]


def test_a_part_that_is_shown_twice_is_doubled() -> None:
    first, second, third = told(LONG)
    shown = [first, second, second, third]
    assert wrongs(judged((LONG,), shown)) == [(Wrong.DOUBLED, "long")]


def test_answers_that_are_swapped_are_out_of_order() -> None:
    assert wrongs(judged((ONE, TWO, THREE), told(ONE, THREE, TWO))) == [(Wrong.ORDER, "m2")]


def test_parts_that_are_swapped_are_out_of_order() -> None:
    first, second, third = told(LONG)
    assert wrongs(judged((LONG,), [first, third, second])) == [(Wrong.ORDER, "long")]


def test_what_was_said_to_be_uncertain_arrives_when_it_arrives_and_is_counted_as_late() -> None:
    verdict = judged((ONE, TWO, THREE), told(TWO, THREE, ONE), {"m1": Claim.UNCERTAIN})
    assert wrongs(verdict) == []
    assert verdict.outcomes == {Outcome.LATE: 1, Outcome.ANSWERED: 2}
    assert verdict.uncertain == 1
    # It excuses nobody else.
    verdict = judged((ONE, TWO, THREE), told(TWO, THREE, ONE), {"m2": Claim.UNCERTAIN})
    assert wrongs(verdict) == [(Wrong.ORDER, "m1")]


def test_chats_have_no_order_among_each_other() -> None:
    asked = [Asked("ada", ONE), Asked("bob", TWO), Asked("ada", THREE)]
    assert wrongs(judge(asked, {"bob": told(TWO), "ada": told(ONE, THREE)}, {})) == []


def test_what_an_operator_had_answered_anew_may_come_late_but_not_twice() -> None:
    asked = (ONE, TWO)
    assert wrongs(judged(asked, told(TWO, ONE), by_hand=["m1"])) == []
    assert wrongs(judged(asked, told(TWO, ONE, ONE), by_hand=["m1"])) == [(Wrong.DOUBLED, "m1")]


def test_an_answer_in_another_s_chat_misleads_and_counts_for_nobody() -> None:
    asked = [Asked("ada", ONE), Asked("bob", TWO)]
    verdict = judge(asked, {"ada": told(ONE, TWO)}, {})
    assert sorted(wrongs(verdict)) == [(Wrong.LOST, "m2"), (Wrong.MISLED, "m2")]


def test_an_apology_beside_the_answer_misleads() -> None:
    assert wrongs(judged((ONE,), told(ONE), {"m1": Claim.APOLOGISED})) == [(Wrong.MISLED, "m1")]


@pytest.mark.parametrize(
    ("errand", "shown", "claim", "outcome"),
    [
        (ONE, told(ONE), Claim.UNCERTAIN, Outcome.ARRIVED),
        (ONE, [], Claim.UNCERTAIN, Outcome.MISSING),
        (ONE, [], Claim.APOLOGISED, Outcome.NEEDLESS),
        (VAIN, [], Claim.APOLOGISED, Outcome.IN_VAIN),
        (ONE, [], Claim.BY_HAND, Outcome.BY_HAND),
    ],
)
def test_a_claim_excuses_what_is_missing(
    errand: Errand, shown: Sequence[str], claim: Claim, outcome: Outcome
) -> None:
    verdict = judged((errand,), shown, {errand.name: claim})
    assert wrongs(verdict) == []
    assert verdict.outcomes == {outcome: 1}


def test_a_message_on_which_the_agent_fails_each_time_is_lost_where_nobody_says_so() -> None:
    assert wrongs(judged((VAIN,), [])) == [(Wrong.LOST, "vain")]


@pytest.mark.parametrize("errand", [ONE, LONG, VAIN, Errand("m4", 0.25, 3, Fails.ONCE)])
def test_an_errand_is_read_from_its_words(errand: Errand) -> None:
    assert Errand.read(errand.words) == errand


def test_an_agent_fails_as_often_as_it_was_told_to() -> None:
    once = Errand("m5", 0.1, fails=Fails.ONCE)
    with pytest.raises(Failed):
        once.answer(1)
    assert [*answered(once.answer(2)[0])] == [("m5", 1)]
    with pytest.raises(Failed):
        VAIN.answer(9)


def test_answers_in_one_text_are_all_found() -> None:
    assert [*answered("re: m1 1/1\nre: m2 1/1")] == [("m1", 1), ("m2", 1)]
