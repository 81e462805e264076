"""The fake Bot API answers like the real one, and notes what the real one would not take."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, InputFile
from telegram.error import BadRequest

from tests.fakes.clients import telegram_bot, telegram_http
from tests.fakes.recording import Json
from tests.fakes.telegram import FakeTelegram, spec
from tests.fakes.updates import Person, forum, supergroup
from tests.limits import PATIENCE

ADA = 700_100_209
GROUP = -1_007_000_000_501
DESCRIBED = pytest.mark.skipif(spec.load() is None, reason="no description of the Bot API here")


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as running:
        yield running


@pytest_asyncio.fixture
async def http(fake: FakeTelegram) -> AsyncIterator[httpx.AsyncClient]:
    async with telegram_http(fake) as client:
        yield client


@pytest_asyncio.fixture
async def bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with telegram_bot(fake) as client:
        yield client


async def refusal(http: httpx.AsyncClient, method: str, **params: Any) -> str:
    answer = await http.post(method, json=params)
    body: Json = answer.json()
    assert not body["ok"]
    assert body["error_code"] == answer.status_code
    return str(body["description"])


async def test_a_sent_message_comes_back_whole(fake: FakeTelegram, bot: Bot) -> None:
    fake.enqueue(Person(ADA, first_message=90).text("a question"))
    sent = await bot.send_message(ADA, "hi", reply_to_message_id=90)
    assert (sent.chat.id, sent.text, sent.message_id) == (ADA, "hi", 1001)
    assert sent.from_user is not None
    assert sent.from_user.username == "relay_test_bot"
    assert sent.reply_to_message is not None
    assert sent.reply_to_message.text == "a question"
    assert [m.reply_to for m in fake.messages(ADA)] == [90]


async def test_private_chats_share_one_count_of_messages_and_a_supergroup_has_its_own(
    bot: Bot,
) -> None:
    chats = (ADA, ADA + 1, GROUP, ADA, GROUP)
    ids = [(await bot.send_message(chat, "hi")).message_id for chat in chats]
    assert ids == [1001, 1002, 1001, 1003, 1002]


async def test_a_topic_stays_on_the_message(fake: FakeTelegram, bot: Bot) -> None:
    fake.enqueue(Person(5, forum(GROUP), topic=77).text("hi"))
    sent = await bot.send_message(GROUP, "hello", message_thread_id=77)
    assert sent.is_topic_message
    assert sent.chat.is_forum
    assert fake.texts(GROUP, topic=77) == ["hello"]
    assert fake.texts(GROUP, topic=78) == []


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n"}, "message text is empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "x" * 32_769}, "text is too long"),
        ({"text": "*x", "parse_mode": "Markdown"}, "Can't find end of the entity"),
        ({"text": "*x", "parse_mode": "MarkdownV2"}, "Can't find end of Bold entity"),
        ({"text": "1.5", "parse_mode": "MarkdownV2"}, "Character '.' is reserved"),
        ({"text": "`x", "parse_mode": "MarkdownV2"}, "Can't find end of the entity"),
        ({"text": "<b>x", "parse_mode": "HTML"}, "Can't find end tag"),
        ({"text": "<b>x</i>", "parse_mode": "HTML"}, "Unmatched end tag"),
        ({"text": "x</b>", "parse_mode": "HTML"}, "Unexpected end tag"),
        ({"text": "<h1>x</h1>", "parse_mode": "HTML"}, 'Unsupported start tag "h1"'),
        ({"text": "x", "parse_mode": "Word"}, "unsupported parse_mode"),
        ({"text": "👍", "entities": [{"type": "bold", "offset": 0, "length": 3}]}, "after the end"),
        ({"text": "👍", "entities": [{"type": "bold", "offset": 1, "length": 1}]}, "middle of a"),
    ],
)
async def test_a_text_that_the_real_one_refuses_is_refused(
    http: httpx.AsyncClient, fake: FakeTelegram, params: Json, why: str
) -> None:
    assert why in await refusal(http, "sendMessage", chat_id=ADA, **params)
    assert fake.messages(ADA) == []


async def test_b35_markers_without_end_are_refused_in_every_markdown(
    http: httpx.AsyncClient,
) -> None:
    text = "Set max_retry_count and **use_cache to 3 * 2 `x"
    for mode in ("Markdown", "MarkdownV2"):
        why = await refusal(http, "sendMessage", chat_id=ADA, text=text, parse_mode=mode)
        assert "can't parse entities" in why


async def test_length_is_counted_in_code_points(http: httpx.AsyncClient) -> None:
    whole = await http.post("sendMessage", json={"chat_id": ADA, "text": "👍" * 4096})
    assert whole.status_code == 200
    longer = {"chat_id": ADA, "text": "👍" * 4097}
    assert "too long" in await refusal(http, "sendMessage", **longer)


@pytest.mark.parametrize(
    ("mode", "text", "shown", "kinds"),
    [
        ("MarkdownV2", r"*bold _it_* a\.b", "bold it a.b", [("bold", 0, 7), ("italic", 5, 2)]),
        ("MarkdownV2", "👍 ||x|| `c*`", "👍 x c*", [("spoiler", 3, 1), ("code", 5, 2)]),
        ("MarkdownV2", "[a](https://x.test)", "a", [("text_link", 0, 1)]),
        ("Markdown", "*b* 1.5", "b 1.5", [("bold", 0, 1)]),
        ("HTML", "<b>a</b> &lt; <code>c</code>", "a < c", [("bold", 0, 1), ("code", 4, 1)]),
    ],
)
async def test_markup_becomes_text_and_entities(
    bot: Bot, mode: str, text: str, shown: str, kinds: list[tuple[str, int, int]]
) -> None:
    sent = await bot.send_message(ADA, text, parse_mode=mode)
    assert sent.text == shown
    assert [(e.type, e.offset, e.length) for e in sent.entities] == kinds


async def test_an_edit_changes_what_is_shown_and_the_same_edit_again_is_not_modified(
    fake: FakeTelegram, bot: Bot
) -> None:
    sent = await bot.send_message(ADA, "…")
    await bot.edit_message_text("answer", ADA, sent.message_id)
    with pytest.raises(BadRequest, match="not modified"):
        await bot.edit_message_text("answer", ADA, sent.message_id)
    assert fake.texts(ADA) == ["answer"]
    assert fake.messages(ADA)[0].edits == ["…"]
    with pytest.raises(BadRequest, match="to edit not found"):
        await bot.edit_message_text("answer", ADA, 9)


async def test_a_button_can_be_taken_away_and_its_press_answered(
    fake: FakeTelegram, bot: Bot
) -> None:
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Retry", callback_data="retry:1")]])
    sent = await bot.send_message(ADA, "Sorry", reply_markup=keyboard)
    assert sent.reply_markup == keyboard
    await bot.answer_callback_query("cq1", "on it")
    await bot.edit_message_reply_markup(ADA, sent.message_id)
    assert fake.messages(ADA)[0].buttons == []
    assert [a["callback_query_id"] for a in fake.main.answered] == ["cq1"]
    assert fake.violations == []


async def test_button_data_is_at_most_64_bytes(http: httpx.AsyncClient) -> None:
    rows = [[{"text": "x", "callback_data": "y" * 65}]]
    markup = {"inline_keyboard": rows}
    why = await refusal(http, "sendMessage", chat_id=ADA, text="x", reply_markup=markup)
    assert why.endswith("BUTTON_DATA_INVALID")


async def test_a_deleted_message_is_gone(fake: FakeTelegram, bot: Bot) -> None:
    sent = await bot.send_message(ADA, "hi")
    await bot.delete_message(ADA, sent.message_id)
    assert fake.texts(ADA) == []
    with pytest.raises(BadRequest, match="to delete not found"):
        await bot.delete_message(ADA, sent.message_id)


async def test_files_go_out_and_can_be_fetched_again(fake: FakeTelegram, bot: Bot) -> None:
    document = InputFile(b"# words", filename="answer.md")
    sent = await bot.send_document(ADA, document, caption="long")
    assert sent.document is not None
    assert (sent.document.file_name, sent.caption) == ("answer.md", "long")
    again = await bot.get_file(sent.document.file_id)
    assert bytes(await again.download_as_bytearray()) == b"# words"
    assert [m.kind for m in fake.messages(ADA)] == ["document"]


async def test_every_kind_of_file_is_taken_by_its_id(fake: FakeTelegram, bot: Bot) -> None:
    await bot.send_photo(ADA, "photo-1")
    await bot.send_voice(ADA, "voice-1")
    await bot.send_audio(ADA, "audio-1")
    await bot.send_video(ADA, "video-1")
    assert [m.kind for m in fake.messages(ADA)] == ["photo", "voice", "audio", "video"]
    assert fake.violations == []


async def test_a_file_over_twenty_megabytes_cannot_be_fetched(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    file_id = fake.main.add_file(b"x", size=20 * 1024 * 1024 + 1)
    assert "file is too big" in await refusal(http, "getFile", file_id=file_id)
    assert "wrong file_id" in await refusal(http, "getFile", file_id="nothing")


async def test_chats_and_messages_that_the_bot_never_saw_can_be_unknown(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.main.known_chats_only = fake.main.known_messages_only = True
    assert "chat not found" in await refusal(http, "sendMessage", chat_id=ADA, text="x")
    fake.enqueue(Person(ADA, first_message=50).text("hi"))
    reply: Json = {"message_id": 51}
    params: Json = {"chat_id": ADA, "text": "x", "reply_parameters": reply}
    assert "to be replied not found" in await refusal(http, "sendMessage", **params)
    reply["allow_sending_without_reply"] = True
    assert (await http.post("sendMessage", json=params)).status_code == 200


async def test_typing_drafts_reactions_and_commands_are_kept(fake: FakeTelegram, bot: Bot) -> None:
    await bot.send_chat_action(ADA, "typing")
    await bot.send_message_draft(ADA, 1, "so far")
    await bot.set_message_reaction(ADA, 41, "👍")
    await bot.set_my_commands([("stop", "Stop")])
    chat = fake.main.book.chat(ADA)
    assert (chat.actions, chat.drafts) == (["typing"], ["so far"])
    assert chat.reactions[0]["message_id"] == 41
    assert [c.command for c in await bot.get_my_commands()] == ["stop"]
    assert fake.messages(ADA) == []
    assert fake.violations == []


async def test_another_token_is_unauthorized_and_another_bot_has_its_own_chats(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    second = fake.add_bot("7000000002:second", "second_bot")
    body = {"chat_id": ADA, "text": "from the second"}
    async with httpx.AsyncClient(base_url=fake.url, trust_env=False, timeout=PATIENCE) as client:
        assert (await client.post("/bot1:wrong/getMe")).status_code == 401
        assert (await client.post("/bot7000000002:second/sendMessage", json=body)).is_success
    await http.post("sendMessage", json={"chat_id": ADA, "text": "from the first"})
    assert fake.texts(ADA) == ["from the second", "from the first"]
    assert [m.account for m in fake.all_messages()] == ["7000000002", "7000000001"]
    assert [m.text for m in second.messages(ADA)] == ["from the second"]


@DESCRIBED
@pytest.mark.parametrize(
    ("method", "params", "problem"),
    [
        ("sendMessage", {"chat_id": 5, "text": "x", "silent": True}, "unknown field silent"),
        ("sendMessage", {"text": "x"}, "chat_id is missing"),
        ("sendMessage", {"chat_id": 5.5, "text": "x"}, "Integer expected"),
        ("sendMessage", {"chat_id": 5, "text": 7}, "text: String expected"),
        ("sendMessage", {"chat_id": 5, "text": "x", "entities": [{"type": "bold"}]}, "offset is"),
        (
            "sendMessage",
            {"chat_id": 5, "text": "x", "link_preview_options": {"off": True}},
            "unknown field off",
        ),
        ("sendMesage", {"chat_id": 5}, "no such method"),
        ("sendInvoice", {}, "not known to this fake"),
    ],
)
async def test_a_call_that_the_description_does_not_allow_is_a_violation(
    fake: FakeTelegram, http: httpx.AsyncClient, method: str, params: Json, problem: str
) -> None:
    await http.post(method, json=params)
    assert problem in " ".join(fake.violations)


@DESCRIBED
async def test_the_fakes_own_answers_fit_the_description(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    described = spec.load()
    assert described is not None
    fake.enqueue(Person(5, supergroup(GROUP), first_message=7).text("q"))
    calls: list[tuple[str, str, Json]] = [
        ("getMe", "User", {}),
        ("getWebhookInfo", "WebhookInfo", {}),
        ("sendMessage", "Message", {"text": "x", "reply_parameters": {"message_id": 7}}),
        ("sendPhoto", "Message", {"photo": "p1", "caption": "c"}),
        ("sendVoice", "Message", {"voice": "v1"}),
        ("sendDocument", "Message", {"document": "d1", "message_thread_id": 3}),
        ("editMessageText", "Message", {"message_id": 1001, "text": "y"}),
    ]
    for method, type_name, params in calls:
        chat = {} if method.startswith("get") else {"chat_id": GROUP}
        result = (await http.post(method, json=chat | params)).json()["result"]
        assert described.type_problems(type_name, result) == []
    assert fake.violations == []


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"{", "application/json"), (b"[]", "application/json")],
)
async def test_a_body_that_is_no_json_object_is_refused(
    http: httpx.AsyncClient, content: bytes, kind: str
) -> None:
    answer = await http.post("getMe", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
