"""Answers that an agent's server may give, and what each becomes."""

from __future__ import annotations

import json

import pytest

from bot.agents.http.contract import HttpAnswer, read_answer, retry_after
from bot.domain.errors import AgentFailed, GiveUp, Retry
from bot.domain.reply import Button, FileOut, Reply

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def answered(answer: object, status: int = 200) -> Reply:
    return read_answer(HttpAnswer(status, json.dumps(answer).encode()), NOW)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ({"text": "Hi"}, Reply("Hi")),
        ({"text": ""}, Reply("")),
        ({"text": "Hi", "buttons": None, "attachments": [], "trace": 1}, Reply("Hi")),
        ({"text": "a\u0000b\ud800c"}, Reply("a\ufffdb\ufffdc")),
        ({"silent": True}, Reply(silent=True)),
        ({"silent": True, "text": ""}, Reply(silent=True)),
        ({"silent": False, "text": "Hi"}, Reply("Hi")),
        ({"hand_over": "wants a refund"}, Reply(silent=True)),
        ({"silent": True, "hand_over": "wants a refund"}, Reply(silent=True)),
        ({"text": "Hi", "hand_over": "wants a refund"}, Reply("Hi")),
        (
            {"text": "?", "buttons": [{"label": "Yes", "data": "y"}, {"label": "No"}]},
            Reply("?", buttons=(Button("Yes", "y"), Button("No"))),
        ),
        (
            {"buttons": [{"label": "Map", "url": "https://map.example/"}]},
            Reply(buttons=(Button("Map", url="https://map.example/"),)),
        ),
        (
            {"attachments": [{"kind": "photo", "url": "https://a.example/1", "caption": "One"}]},
            Reply(files=(FileOut("photo", "https://a.example/1", caption="One"),)),
        ),
        (
            {"attachments": [{"kind": "document", "content": "a,b", "name": "t.csv"}]},
            Reply(files=(FileOut("document", content="a,b", name="t.csv"),)),
        ),
    ],
)
def test_a_good_answer_is_a_reply(answer: object, reply: Reply) -> None:
    assert answered(answer) == reply


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({}, "has no text, buttons, attachments, silent or hand_over"),
        ({"reply": "Hi"}, "has no text, buttons, attachments, silent or hand_over"),
        ({"hand_over": " "}, "has no text, buttons, attachments, silent or hand_over"),
        ({"text": "Hi", "hand_over": True}, "hand_over is not a text"),
        (["Hi"], "not a JSON object"),
        ("Hi", "not a JSON object"),
        ({"text": 3}, "text is not a text"),
        ({"text": ["Hi"]}, "text is not a text"),
        ({"silent": "yes"}, "silent is not true or false"),
        ({"silent": True, "text": "Hi"}, "is silent and says something"),
        ({"text": "Hi", "buttons": {"label": "Yes"}}, "buttons is not a list"),
        ({"text": "Hi", "buttons": ["Yes"]}, "buttons is not a list of objects"),
        ({"text": "Hi", "buttons": [{"data": "y"}]}, "label is missing or empty"),
        ({"buttons": [{"label": "x", "url": "javascript:x"}]}, "a url does not begin with https"),
        ({"attachments": [{"kind": "sticker", "url": "https://a.example"}]}, "kind is none of"),
        ({"attachments": [{"kind": "photo"}]}, "either url or content"),
        ({"attachments": [{"kind": "photo", "url": "file:///etc/passwd"}]}, "a url does not"),
        (
            {"attachments": [{"kind": "photo", "url": "https://a.example", "content": "x"}]},
            "either url or content",
        ),
    ],
)
def test_an_answer_of_another_form_is_a_failure_that_names_the_field(
    answer: object, complaint: str
) -> None:
    with pytest.raises(AgentFailed, match=complaint):
        answered(answer)


@pytest.mark.parametrize("body", [b"", b"Hi", b"\xff", b"{", b"[" * 100_000, b'{"text": "Hi"}x'])
def test_a_body_that_is_no_json_is_a_failure(body: bytes) -> None:
    with pytest.raises(AgentFailed, match="not JSON"):
        read_answer(HttpAnswer(200, body), NOW)


def test_giving_up_carries_the_words_for_the_person() -> None:
    with pytest.raises(GiveUp) as gave_up:
        answered({"give_up": "I only know about tea."}, 422)
    assert gave_up.value.text == "I only know about tea."


@pytest.mark.parametrize("answer", [{}, {"give_up": ""}, {"give_up": 1}, {"detail": "secret"}])
def test_a_422_without_words_for_the_person_is_a_failure(answer: object) -> None:
    with pytest.raises(AgentFailed):
        answered(answer, 422)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("header", "after"), [("4", 4.0), ("", None), ("soon", None)])
def test_b76_a_busy_server_is_asked_again_when_it_says(
    status: int, header: str, after: float | None
) -> None:
    with pytest.raises(Retry) as again:
        read_answer(HttpAnswer(status, retry_after=header), NOW)
    assert again.value.after == after


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Friday, 15-Jan-27 08:00:30 GMT", 30.0),
        ("Fri Jan 15 08:00:30 2027", 30.0),
        ("Fri, 15 Jan 2027 09:00:30 +0100", 30.0),
        ("Thu, 14 Jan 2027 08:00:00 GMT", 0.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("9" * 400, None),
        ("Fri, 99 Jan 2027 08:00:30 GMT", None),
        ("Fri, 15 Jan 2027202720272027 08:00:30 GMT", None),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
    ],
)
def test_both_forms_of_retry_after_are_read(header: str, after: float | None) -> None:
    assert retry_after(header, NOW) == after


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (201, "answered 201"),
        (204, "answered 204"),
        (307, "answered 307: redirects are not followed"),
        (
            401,
            "answered 401, it refuses our request: compare AGENT_SECRET with the secret by which",
        ),
        (403, "answered 403, it refuses our request: compare AGENT_SECRET with"),
        (404, "answered 404"),
        (500, "answered 500"),
        (529, "answered 529"),
    ],
)
def test_anything_else_is_a_failure_without_a_word_of_the_answer(
    status: int, complaint: str
) -> None:
    with pytest.raises(AgentFailed, match=complaint) as failed:
        answered({"error": "Traceback: a word"}, status)
    assert "a word" not in str(failed.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_an_unsigned_request_names_the_setting_that_is_empty(status: int) -> None:
    with pytest.raises(AgentFailed, match=f"answered {status}, .*: AGENT_SECRET is empty; set it"):
        read_answer(HttpAnswer(status), 0.0, signed=False)
