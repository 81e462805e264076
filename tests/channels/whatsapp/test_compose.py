"""A reply becomes messages: words, choices, files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.message import clean
from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.text import utf16_len
from channels.whatsapp.compose import (
    LIMIT,
    Wire,
    compose,
    compose_template,
    fallback_of,
)
from channels.whatsapp_common.choices import choice_of, offered
from tests.channels.whatsapp.kit import settings_with

PHOTO = "https://files.example/cat.jpg"


def wires(reply: Reply, **changes: Any) -> list[Wire]:
    return [Wire.loads(part.wire) for part in compose(reply, settings_with(**changes))]


def texts(parts: Sequence[PartBody]) -> list[str]:
    return [part.text for part in parts]


@pytest.mark.parametrize(
    "reply", [Reply(), Reply("  "), Reply("words", silent=True), Reply("\u200b\ufeff")]
)
def test_nothing_visible_is_no_message(reply: Reply) -> None:
    assert compose(reply, settings_with()) == []


@given(text=st.text(st.characters(), max_size=40))
def test_whatever_an_agent_writes_can_be_stored_and_sent(text: str) -> None:
    file = FileOut("photo", url=f"https://files.example/{text}", caption=text, name=text)
    reply = Reply(text, (Button(text, text),), (file, FileOut("document", content=text)))
    for part in compose(reply, settings_with()):
        sent = Wire.loads(part.wire)
        for stored in (part.text, part.wire, sent.body, sent.media, sent.fallback):
            assert clean(stored) == stored
        assert utf16_len(sent.body) <= LIMIT


def test_the_same_reply_is_composed_to_the_same_bytes() -> None:
    reply = Reply("**hi**", (Button("One"),), (FileOut("photo", url=PHOTO),))
    assert compose(reply, settings_with()) == compose(reply, settings_with())


def test_what_is_stored_is_what_is_read_back() -> None:
    wire = Wire("b", "m", "f", "HX1", {"1": "ä"}, options=(Button("l", "d"),))
    assert Wire.loads(wire.dumps()) == wire


@pytest.mark.parametrize("stored", ["", "[]", "3", '{"body"', '{"new": 1}', '{"options": [1]}'])
def test_a_stored_part_of_another_shape_is_an_error(stored: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        Wire.loads(stored)


def test_choices_are_numbered_and_come_back_by_number_or_label() -> None:
    reply = Reply("Which one?", (Button("Red", "r"), Button("Blue", "b"), Button("All", url="u")))
    (part,) = compose(reply, settings_with())
    assert part.text == "Which one?\n\n1. Red\n2. Blue\nAll: u"
    for said in ("2", " 2.", "(2)", "blue", "BLUE "):
        assert choice_of(part.wire, said) == Button("Blue", "b")
    for said in ("3", "0", "green", "", "2 please"):
        assert choice_of(part.wire, said) is None


def test_signs_in_labels_and_names_are_seen() -> None:
    labels = ("__init__", "*args", "~old~ or *new*")
    [asked] = wires(Reply("Which?", tuple(Button(label) for label in labels)))
    assert asked.body == "Which?\n\n1. `__init__`\n2. *args\n3. `~old~` or `*new*`"
    assert choice_of(asked.dumps(), "__init__") == Button("__init__", "__init__")
    [file] = wires(Reply(files=(FileOut("document", url="https://x.test/a", name="__init__.py"),)))
    assert file.fallback == "`__init__.py`\nhttps://x.test/a"


def test_choices_that_do_not_fit_under_the_words_are_a_message_of_their_own() -> None:
    words, choices = "word " * 318, tuple(Button(f"Choice {n}") for n in range(9))
    parts = compose(Reply(words, choices), settings_with())
    assert len(parts) == 2
    assert choice_of(offered(parts), "9") == Button("Choice 8", "Choice 8")


def test_choices_without_words_are_shown() -> None:
    assert texts(compose(Reply("", (Button("Go"),)), settings_with())) == ["1. Go"]


def test_more_choices_than_one_message_holds_are_all_shown() -> None:
    parts = compose(
        Reply("Pick", tuple(Button("x" * 60 + str(n)) for n in range(99))), settings_with()
    )
    shown = "\n".join(texts(parts))
    assert all(f"{n + 1}. {'x' * 60}{n}" in shown for n in range(99))
    assert all(utf16_len(Wire.loads(p.wire).body) <= LIMIT for p in parts)


def test_with_a_content_template_two_choices_are_buttons() -> None:
    reply = Reply("Sure?", (Button("Yes", "y"), Button("No", "n")))
    (wire,) = wires(reply, twilio_choice_templates={2: "HX2"})
    assert wire.content == "HX2"
    assert dict(wire.variables) == {"1": "Sure?", "2": "Yes", "3": "y", "4": "No", "5": "n"}
    assert wire.fallback == "Sure?\n\n1. Yes\n2. No"


@pytest.mark.parametrize(
    "reply",
    [
        Reply("two\nlines", (Button("Yes"), Button("No"))),
        Reply("Sure?", (Button("a label that is far too long"), Button("No"))),
        Reply("Sure?", (Button("Yes"), Button("No", url="https://x.example"))),
        Reply("Sure?", (Button("Yes"), Button("No"), Button("Maybe"))),
        Reply("", (Button("Yes"), Button("No"))),
    ],
)
def test_what_buttons_can_not_carry_is_a_numbered_list(reply: Reply) -> None:
    assert not any(wire.content for wire in wires(reply, twilio_choice_templates={2: "HX2"}))


def test_each_file_is_a_message_with_a_link_to_fall_back_to() -> None:
    reply = Reply("Here:", files=(FileOut("photo", url=PHOTO, caption="A **cat**"),) * 2)
    words, first, second = wires(reply)
    assert (words.body, words.media) == ("Here:", "")
    assert first == second
    assert (first.media, first.body) == (PHOTO, "A *cat*")
    assert first.fallback == f"A *cat*\n{PHOTO}"


def test_words_for_a_file_that_shows_none_go_before_it() -> None:
    file = FileOut("document", url="https://files.example/a.pdf", name="a.pdf", caption="See")
    words, document = wires(Reply(files=(file,)))
    assert (words.body, words.media) == ("See", "")
    assert (document.body, document.media) == ("", "https://files.example/a.pdf")
    assert document.fallback == "a.pdf\nhttps://files.example/a.pdf"


def test_a_file_without_an_address_goes_out_as_its_words() -> None:
    content = "\n".join(f"row {n}" for n in range(500))
    found = compose(
        Reply(files=(FileOut("document", content=content, name="t.csv"),)), settings_with()
    )
    assert found[0].text.startswith("*t.csv*\n```\nrow 0\n")
    shown = "\n".join(texts(found)).replace("```", "")
    assert [line for line in shown.split("\n") if line.startswith("row")] == content.split("\n")


def test_an_address_that_whatsapp_can_not_fetch_is_shown() -> None:
    file = FileOut("photo", url="ftp://files.example/cat.jpg", name="cat")
    assert texts(compose(Reply(files=(file,)), settings_with())) == [
        "cat: ftp://files.example/cat.jpg"
    ]


def test_a_refused_file_falls_back_to_words_and_words_to_nothing() -> None:
    photo, words = compose(
        Reply(files=(FileOut("photo", url=PHOTO), FileOut("photo", caption="only words"))),
        settings_with(),
    )
    again = fallback_of(photo)
    assert again is not None
    assert Wire.loads(again.wire) == Wire(body=f"photo\n{PHOTO}")
    assert fallback_of(words) is None


def test_a_closed_window_takes_a_template_only() -> None:
    assert compose_template("hello", settings_with()) is None
    fixed = compose_template("hello", settings_with(twilio_template_sid="HX1"))
    assert fixed is not None
    assert Wire.loads(fixed.wire) == Wire(content="HX1")


def test_a_template_takes_the_reply_as_one_line_cut_if_need_be() -> None:
    variables = {"1": "{reply}", "2": "Relay"}
    made = compose_template(
        "**two**\nlines",
        settings_with(twilio_template_sid="HX1", twilio_template_variables=variables),
    )
    assert made is not None
    assert made.text == "two lines"
    assert Wire.loads(made.wire).variables == {"1": "two lines", "2": "Relay"}
    long = compose_template(
        "w " * 2000, settings_with(twilio_template_sid="HX1", twilio_template_variables=variables)
    )
    assert long is not None
    assert long.text.endswith("…")
    assert utf16_len(long.text) <= 900
