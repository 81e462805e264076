"""A reply becomes messages as Graph takes them: words, choices, files, templates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.ports import OutsideWindow
from bot.domain.reply import Button, FileOut, PartBody, Reply
from bot.settings import read, settings_of
from channels.text import utf16_len
from channels.whatsapp_cloud.compose import (
    Wire,
    compose,
    compose_template,
    fallback_of,
    is_template,
    outside_window,
)
from channels.whatsapp_cloud.settings import MetaSettings
from channels.whatsapp_common.choices import choice_of, offered
from tests.fakes.meta.checks import send_problems

LINK = "https://files.example/cat"


def settings_with(**values: Any) -> MetaSettings:
    made = read(settings_of([MetaSettings]), _env_file=None, **values)
    assert isinstance(made, MetaSettings)
    return made


def wires(*args: Any, **kwargs: Any) -> list[Wire]:
    return [Wire.loads(part.wire) for part in compose(Reply(*args, **kwargs))]


def problems_of(part: PartBody) -> list[str]:
    """The faults of the message by Meta's description; a file is named as after its upload."""
    wire = Wire.loads(part.wire)
    content = dict(wire.content) | ({"id": "1"} if wire.upload else {})
    whole = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "+15550100186",
        "type": wire.type,
        wire.type: content,
        "biz_opaque_callback_data": "ab1.1.1.1",
    }
    return list(send_problems(json.loads(json.dumps(whole))))


def buttons(*labels: str) -> tuple[Button, ...]:
    return tuple(Button(label, f"d{n}") for n, label in enumerate(labels))


def test_b33_words_go_into_as_few_messages_as_they_fit() -> None:
    assert [w.content["body"] for w in wires("a" * 4096)] == ["a" * 4096]
    assert [len(str(w.content["body"])) for w in wires("word " * 1000)] == [4094, 904]
    assert wires("**bold** and _more_")[0].content["body"] == "*bold* and _more_"
    assert wires("", silent=True) == []


def test_three_choices_are_buttons_and_more_a_list() -> None:
    [asked] = wires("Which?", buttons("Yes", "No", "Later"))
    assert (asked.type, asked.content["type"]) == ("interactive", "button")
    assert asked.fallback == "Which?\n\n1. Yes\n2. No\n3. Later"
    [asked] = wires("Which?", buttons(*map(str, range(10))))
    assert asked.content["type"] == "list"
    [asked] = wires("Which?", buttons("A label of more than twenty", "No"))
    assert asked.content["type"] == "list"
    action = asked.content["action"]
    assert isinstance(action, dict)
    row = action["sections"][0]["rows"][0]
    assert row["description"] == "A label of more than twenty"
    assert len(row["title"]) <= 24


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("Which?", buttons(*map(str, range(11)))),
        ("Which?", buttons("same", "same")),
        ("Which?", (Button("x" * 73, "d"),)),
        ("Which?", (Button("Yes", "d" * 300),)),
        ("Which?", (*buttons("Yes"), Button("Site", url=LINK))),
        ("w" * 1025, buttons("Yes")),
        ("", buttons("Yes")),
    ],
)
def test_choices_that_whatsapp_would_refuse_are_numbered(
    text: str, choices: tuple[Button, ...]
) -> None:
    [asked] = wires(text, choices)
    assert asked.type == "text"
    assert "1. " in str(asked.content["body"])


def test_signs_in_labels_and_names_are_seen_where_they_stand_in_words() -> None:
    [asked] = wires("Which?", (*buttons("__init__", "*args"), Button("Site", url=LINK)))
    assert asked.content["body"] == f"Which?\n\n1. `__init__`\n2. *args\nSite: {LINK}"
    file = FileOut("document", url=LINK, name="__init__.py")
    (part,) = compose(Reply(files=(file,)))
    assert Wire.loads(part.wire).fallback == f"`__init__.py`\n{LINK}"


def test_a_choice_is_named_by_its_number_or_label_too() -> None:
    offer = offered(compose(Reply("Which?", buttons("Yes", "No"))))
    assert choice_of(offer, " 2. ") == Button("No", "d1")
    assert choice_of(offer, "yes") == Button("Yes", "d0")
    assert choice_of(offer, "maybe") is None


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("photo", "image"),
        ("video", "video"),
        ("voice", "audio"),
        ("audio", "audio"),
        ("document", "document"),
    ],
)
def test_a_file_goes_by_its_link_and_as_words_where_it_is_refused(kind: str, sent: str) -> None:
    files = (FileOut(kind, url=LINK, name="cat.bin", caption="A *cat*"),)
    last = compose(Reply(files=files))[-1]
    wire = Wire.loads(last.wire)
    assert (wire.type, wire.content["link"]) == (sent, LINK)
    assert ("caption" in wire.content) == (sent != "audio")
    plain = fallback_of(last)
    assert plain is not None
    assert LINK in plain.text
    assert fallback_of(plain) is None


def test_text_as_a_file_is_uploaded_or_shown_as_words() -> None:
    [wire] = wires(files=(FileOut("document", content="a,b\n1,2", name="table.csv"),))
    assert (wire.type, wire.upload, wire.content["filename"]) == (
        "document",
        "a,b\n1,2",
        "table.csv",
    )
    assert wire.fallback == "*table.csv*\n```\na,b\n1,2\n```"
    [wire] = wires(files=(FileOut("document", content="long " * 2000, name="long.txt"),))
    assert wire.fallback == ""


def test_a_template_takes_the_reply_on_one_line() -> None:
    configured = settings_with(
        meta_template_name="answer",
        meta_template_language="de",
        meta_template_parameters='["{reply}"]',
    )
    part = compose_template("**Two**\nlines", configured)
    assert part is not None
    assert is_template(part)
    assert part.text == "Two lines"
    assert problems_of(part) == []
    assert outside_window(configured) is OutsideWindow.ANSWER
    invites = settings_with(meta_template_name="hello")
    assert outside_window(invites) is OutsideWindow.INVITATION
    assert compose_template("words", settings_with()) is None
    assert not any(is_template(part) for part in compose(Reply("words")))


labels = st.text(min_size=1, max_size=100)


@given(
    st.text(max_size=3000),
    st.lists(st.builds(Button, labels, st.text(max_size=300)), max_size=12),
    st.lists(
        st.builds(
            FileOut,
            st.sampled_from(["photo", "document", "voice"]),
            url=st.sampled_from(["", LINK]),
            content=st.text(max_size=50),
            name=st.text(max_size=20),
            caption=st.text(max_size=1500),
        ),
        max_size=2,
    ),
)
def test_whatever_an_agent_answers_meta_takes_each_part(
    text: str, choices: list[Button], files: list[FileOut]
) -> None:
    for part in compose(Reply(text, tuple(choices), tuple(files))):
        assert problems_of(part) == []
        wire = Wire.loads(part.wire)
        assert wire.type != "text" or 0 < utf16_len(str(wire.content["body"])) <= 4096
        plainer = fallback_of(part)
        assert plainer is None or problems_of(plainer) == []
