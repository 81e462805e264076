"""Replies into parts: limits, quotes, files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.reply import Button, FileOut, PartBody, Reply
from channels.telegram.compose import Wire, compose, full_data, is_key
from channels.text import is_blank, utf16_len
from tests.channels.telegram.kit import Json, StillClock, channel_with, group, params, private
from tests.fakes.telegram import spec


def parts(reply: Reply | str, max_parts: int = 10) -> list[PartBody]:
    whole = Reply(reply) if isinstance(reply, str) else reply
    return list(compose(whole, private(), max_parts))


def keyboard(part: PartBody) -> list[list[Json]]:
    found: list[list[Json]] = params(part)["reply_markup"]["inline_keyboard"]
    return found


def test_b31_a_long_reply_is_cut_into_parts_that_fit_and_lose_nothing() -> None:
    lines = "\n".join("word" * 20 for _ in range(50))
    reply = f"{lines}\n{'x' * 5000}"
    sent = parts(reply)
    assert len(sent) >= 3
    assert all(len(p.text) <= 4096 for p in sent)
    assert "".join(p.text for p in sent).replace("\n", "") == reply.replace("\n", "")
    assert [params(p)["text"] for p in sent] == [p.text for p in sent]


def test_parts_fit_in_utf16_units_too_and_keep_emoji_whole() -> None:
    sent = parts("👨‍👩‍👧" * 2000)
    assert all(utf16_len(p.text) <= 4096 for p in sent)
    assert all(p.text.startswith("👨") and p.text.endswith("👧") for p in sent)


def test_b35_unbalanced_markup_is_sent_as_it_was_written() -> None:
    text = "Set max_retry_count and **use_cache to 3 * 2 `x"
    (part,) = parts(text)
    assert params(part)["text"] == text
    assert "entities" not in params(part)
    assert "parse_mode" not in params(part)


def test_markdown_becomes_entities_in_utf16_units() -> None:
    (part,) = parts("😀 **bold** and [site](https://x.y)")
    assert part.text == "😀 bold and site"
    assert params(part)["entities"] == [
        {"type": "bold", "offset": 3, "length": 4},
        {"type": "text_link", "offset": 12, "length": 4, "url": "https://x.y"},
    ]


def test_a_code_block_over_a_cut_is_closed_and_reopened_with_its_language() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(500))
    sent = parts(f"```python\n{code}\n```")
    assert len(sent) > 1
    for part in sent:
        (block,) = params(part)["entities"]
        assert (block["type"], block["language"], block["offset"]) == ("pre", "python", 0)
        assert block["length"] == utf16_len(part.text)
    assert "\n".join(p.text for p in sent) == code


def test_nothing_overlaps_code_and_a_link_wins_over_it() -> None:
    (part,) = parts("**a `b` c** [`d`](https://x.y)")
    kinds = [(e["type"], e["offset"], e["length"]) for e in params(part)["entities"]]
    assert kinds == [("bold", 0, 2), ("code", 2, 1), ("bold", 3, 2), ("text_link", 6, 1)]


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\u200b\u200d\ufeff", "\u3164\u2800"])
def test_b40_a_reply_in_which_nothing_is_visible_has_no_parts(text: str) -> None:
    assert parts(text) == []


def test_a_silent_reply_has_no_parts() -> None:
    assert parts(Reply("hidden", silent=True)) == []


def test_markup_without_content_is_shown_as_written() -> None:
    (part,) = parts(">")
    assert part.text == ">"


def test_a_reply_of_too_many_parts_is_one_file_with_its_beginning_above() -> None:
    text = "All of it. " * 2000
    (part,) = parts(text, max_parts=3)
    wire = Wire.decode(part.wire)
    assert wire.method == "sendDocument"
    assert wire.upload is not None
    assert (wire.upload.name, wire.upload.content) == ("answer.md", text)
    assert utf16_len(str(wire.params["caption"])) <= 1024
    assert part.text == text


def test_link_previews_are_off() -> None:
    (part,) = parts("https://example.org")
    assert params(part)["link_preview_options"] == {"is_disabled": True}


def test_in_a_group_only_the_first_part_hangs_on_the_question() -> None:
    sent = list(compose(Reply("word " * 1500), group(), 10))
    assert params(sent[0])["reply_parameters"] == {
        "message_id": 41,
        "allow_sending_without_reply": True,
    }
    assert all("reply_parameters" not in params(p) for p in sent[1:])
    assert all("reply_parameters" not in params(p) for p in parts("word " * 1500))


def test_buttons_are_under_the_last_part() -> None:
    reply = Reply("word " * 1500, buttons=(Button("Yes", "y"), Button("Site", url="https://x.y")))
    sent = parts(reply)
    assert "reply_markup" not in params(sent[0])
    assert keyboard(sent[-1]) == [
        [{"text": "Yes", "callback_data": "y"}],
        [{"text": "Site", "url": "https://x.y"}],
    ]


def test_buttons_without_words_still_come_out() -> None:
    (part,) = parts(Reply(buttons=(Button("Yes"),)))
    assert keyboard(part) == [[{"text": "Yes", "callback_data": "Yes"}]]
    assert not is_blank(part.text)


def test_buttons_beyond_the_hundredth_stand_under_further_messages() -> None:
    choices = tuple(Button(f"choice {n}") for n in range(250))
    sent = parts(Reply("Which?", buttons=choices))
    assert [len(keyboard(part)) for part in sent] == [100, 100, 50]
    labels = [row[0]["text"] for part in sent for row in keyboard(part)]
    assert labels == [choice.label for choice in choices]
    assert not any(is_blank(part.text) for part in sent)


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("w" * 4090, [Button("Yes"), Button("Site", url="https://x.y/a b")]),
        ("Which?", [Button("x" * 120, url=f"https://x.y/{n}/{'p' * 200}") for n in range(60)]),
    ],
)
def test_choices_can_be_read_where_telegram_refuses_their_buttons(
    text: str, choices: list[Button]
) -> None:
    plainest = [Wire.decode(part.wire).plainest() for part in parts(Reply(text, tuple(choices)))]
    shown = [str(wire.params["text"]) for wire in plainest if wire is not None]
    assert all(utf16_len(one) <= 4096 for one in shown)
    lines = [line for one in shown for line in one.splitlines() if line.startswith("• ")]
    assert lines == [f"• {choice.label} {choice.url}".rstrip() for choice in choices]


def test_data_too_long_for_telegram_is_found_again_in_the_stored_part() -> None:
    data = json.dumps({"order": "ü" * 60})
    (part,) = parts(Reply("Choose", buttons=(Button("Yes", data), Button("No", "n" * 64))))
    pressed = keyboard(part)[0][0]["callback_data"]
    assert len(pressed.encode()) <= 64
    assert is_key(pressed)
    assert full_data(pressed, [part.wire]) == data
    assert keyboard(part)[1][0]["callback_data"] == "n" * 64
    assert full_data("n" * 64, [part.wire]) == "n" * 64
    assert full_data(pressed, []) == pressed


def test_files_go_by_address_or_as_documents() -> None:
    reply = Reply(
        "See:",
        files=(
            FileOut("photo", url="https://x.y/a.png", caption="*cat*"),
            FileOut("document", content="a,b", name="t.csv"),
            FileOut("unknown", url="https://x.y/z"),
            FileOut("document", caption="only words"),
        ),
    )
    wires = [Wire.decode(p.wire) for p in parts(reply)]
    assert [w.method for w in wires] == [
        "sendMessage",
        "sendPhoto",
        "sendDocument",
        "sendDocument",
        "sendMessage",
    ]
    assert wires[1].params == {
        "photo": "https://x.y/a.png",
        "caption": "cat",
        "caption_entities": [{"type": "italic", "offset": 0, "length": 3}],
    }
    assert wires[1].plain == "cat\nhttps://x.y/a.png"
    assert wires[2].upload is not None


def test_a_caption_too_long_for_a_file_goes_before_it() -> None:
    sent = parts(Reply(files=(FileOut("photo", url="https://x.y/a.png", caption="w " * 900),)))
    assert [Wire.decode(p.wire).method for p in sent] == ["sendMessage", "sendPhoto"]


def test_the_stored_form_is_the_same_every_time_and_comes_back_whole() -> None:
    reply = Reply("**a** `b`", buttons=(Button("x" * 70, "y" * 70),))
    assert parts(reply) == parts(reply)
    for part in parts(reply):
        assert Wire.decode(part.wire).encode() == part.wire


def test_what_no_database_takes_is_replaced_before_it_is_stored() -> None:
    odd = "a\ud800\x00b"
    reply = Reply(odd, (Button(odd, odd),), (FileOut("photo", "https://x.y", "", odd, odd),))
    for part in parts(reply):
        part.wire.encode()
        part.text.encode()
        assert "\x00" not in part.text
        assert "\\u0000" not in part.wire


MARKS = st.sampled_from(
    [
        "**",
        "*",
        "`",
        "```\n",
        "> ",
        "- ",
        "[a](https://b.c)",
        "\n\n",
        "word ",
        "😀",
        "x" * 300,
        "\n",
    ]
)


@given(st.lists(MARKS, max_size=60).map("".join))
def test_every_part_of_every_reply_is_taken_by_telegram(text: str) -> None:
    for part in parts(Reply(text, buttons=(Button("b", "d"),))):
        sent: dict[str, Any] = params(part) | {"chat_id": 5}
        assert 0 < utf16_len(sent["text"]) <= 4096
        assert not is_blank(sent["text"])
        units = sent["text"].encode("utf-16-le")
        for entity in sent.get("entities", []):
            start, end = entity["offset"], entity["offset"] + entity["length"]
            assert 0 <= start < end <= len(units) // 2
            units[2 * start : 2 * end].decode("utf-16-le")


def test_what_is_sent_fits_the_description_of_the_api() -> None:
    api = spec.load()
    if api is None:
        pytest.skip("the description of the Bot API 10.1 is not beside the project")
    reply = Reply(
        "**a** [b](https://c.d)", buttons=(Button("x", "y"), Button("u", url="https://x"))
    )
    for part in compose(reply, group(), 10):
        wire = Wire.decode(part.wire)
        assert api.problems(wire.method, dict(wire.params) | {"chat_id": 5}) == []


def test_the_channel_uses_the_configured_number_of_parts() -> None:
    sent = channel_with(StillClock(), max_parts=2).compose(Reply("word " * 3000), private())
    assert [Wire.decode(p.wire).method for p in sent] == ["sendDocument"]
