"""Many answers, in many scripts, as they were seen to arrive; and none loses a character."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.reply import Reply
from channels.markdown import render
from channels.telegram.compose import compose
from channels.text import is_blank, utf16_len
from channels.whatsapp.compose import LIMIT, pieces
from tests.channels import corpus
from tests.channels.completeness import lost, shown_on_telegram, unexplained
from tests.channels.telegram.kit import params, private

ANSWERS = corpus.read("answers")


def test_the_corpus_is_large() -> None:
    assert len(ANSWERS) >= 150


@pytest.mark.parametrize("platform", corpus.PLATFORMS)
def test_every_answer_arrives_as_it_was_read_through(platform: str) -> None:
    arrives = corpus.PLATFORMS[platform]
    assert {name: arrives(text) for name, text in ANSWERS.items()} == corpus.read(platform)


def check_complete(text: str) -> None:
    calls = [params(part) for part in compose(Reply(text), private(), 50)]
    assert lost(text, "".join(map(shown_on_telegram, calls))) == ""
    bodies = pieces(text)
    assert lost(text, "".join(bodies)) == ""
    page = render(text)
    styles = Counter(span.style.value for span in page.spans)
    assert unexplained(text, page.written_out(), styles) == {}
    assert all(utf16_len(call["text"]) <= 4096 for call in calls)
    assert all(len(call.get("entities", [])) <= 100 for call in calls)
    assert all(utf16_len(body) <= LIMIT for body in bodies)


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_of_the_corpus_loses_a_character(name: str) -> None:
    check_complete(ANSWERS[name])


@pytest.mark.parametrize("copies", [3, 40])
def test_no_character_is_lost_where_a_long_answer_is_cut(copies: int) -> None:
    long = [text for text in ANSWERS.values() if text.count("```") % 2 == 0 and "````" not in text]
    for first in range(0, len(long), copies):
        check_complete("\n\n".join(long[first : first + copies]))


WORDS = st.sampled_from(
    [
        *("word", "Größe", "слово", "λέξη", "كلمة", "מילה", "शब्द", "คำ", "词语", "言葉", "단어"),
        *("__init__.py", "snake_case", "2*3*4", "x**2", "a_1*b_1", "C:\\new\\_tmp", "\\d+\\.\\d+"),
        *("*.py", "src/**/*.ts", "https://x.test/_a_/b*c*", "https://x.test/?q=__f__&r=a"),
        *("f(*args)", "i[j](k)", "$a_1*b$", "\\(x_1*y\\)", "&amp;", "Vec<std::string>", "it's"),
        *(
            "👨\u200d👩\u200d👧",
            "🇩🇪",
            "1️⃣",
            "~~gone~~",
            "`co_de*`",
            "**bold**",
            "*italic*",
            "_italic_",
        ),
        *("***both***", "**词语**", "**多「字」**", "[link](https://x.test/a_(b))"),
        *(
            '[t](https://x.test "title")',
            "![i](https://x.test/i.png)",
            "\\*",
            "\\_",
            "*",
            "**",
            "_",
        ),
        *("__", "~~", "`", "[", "]", "(", ")", "|", ">", "#", "-", "\\", "$", "<"),
    ]
)
LINES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
GLUED = st.lists(WORDS, min_size=1, max_size=4).map("".join)
BLOCKS = st.one_of(
    LINES,
    GLUED,
    st.tuples(
        st.sampled_from(["# ", "- ", "* ", "1. ", "> ", "  - ", "> > ", "- [ ] "]), LINES
    ).map("".join),
    LINES.map(lambda line: f"```py\n{line}\n```"),
    LINES.map(lambda line: f"$$\n{line}\n$$"),
    st.just("---"),
)


@given(st.lists(BLOCKS, max_size=12).map("\n".join))
def test_no_visible_character_is_lost_but_marks_that_became_styles(text: str) -> None:
    if not is_blank(text):
        check_complete(text)
