"""The echo agent says exactly what it got."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.agents.echo import EchoAgent
from bot.domain.message import InboundKind
from bot.texts import Text, Words
from tests.agents.turns import CHAT, FakeTurn, message, turn


@pytest.fixture
def echo() -> EchoAgent:
    return EchoAgent(Words.load())


@pytest.mark.parametrize(
    "text", ["hello", "  two\n lines ", "*a_b*", "👩‍👩‍👧 \u202eabc", "{0}", "0"]
)
async def test_a_text_comes_back_unchanged(echo: EchoAgent, text: str) -> None:
    assert await echo(turn(text)) == text


async def test_several_messages_come_back_in_order_one_a_line(echo: EchoAgent) -> None:
    assert await echo(turn("one", "two", " ", "three")) == "one\ntwo\nthree"


@pytest.mark.parametrize("texts", [("",), (" \n\t",), ("", " ")])
async def test_a_blank_turn_gets_the_fixed_sentence(echo: EchoAgent, texts: tuple[str]) -> None:
    assert await echo(turn(*texts)) == Words.load().say(Text.NOTHING_TO_READ)


async def test_it_speaks_the_language_of_the_chat(echo: EchoAgent) -> None:
    german = replace(CHAT, language="de-AT")
    assert await echo(turn("", chat=german)) == Words.load().say(Text.NOTHING_TO_READ, "de")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (InboundKind.PHOTO, "", "I got: [photo]"),
        (InboundKind.PHOTO, "our cat", "I got: [photo] our cat"),
        (InboundKind.STICKER, "[sticker 😀]", "I got: [sticker 😀]"),
        (InboundKind.BUTTON, "Tea", "Tea"),
    ],
)
async def test_what_has_no_words_is_named(
    echo: EchoAgent, kind: InboundKind, text: str, said: str
) -> None:
    assert await echo(FakeTurn((message(text, kind),))) == said
