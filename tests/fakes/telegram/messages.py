"""The methods that show something to a person, change it or take it away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.recording import Json
from tests.fakes.telegram.bot import Bot
from tests.fakes.telegram.chats import Shown
from tests.fakes.telegram.checks import Refusal, checked_caption, checked_text
from tests.fakes.telegram.spec import Upload

NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are "
    "exactly the same as a current content and reply markup of the message"
)


def chat_of(bot: Bot, params: Json) -> int:
    """The chat that a call concerns. Raises Refusal when there is no such chat."""
    value = params.get("chat_id")
    if isinstance(value, str) and value.lstrip("-").isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        empty = value is None or value == ""
        raise Refusal(400, f"Bad Request: chat{'_id is empty' if empty else ' not found'}")
    if bot.known_chats_only and value not in bot.book.chats:
        raise Refusal(400, "Bad Request: chat not found")
    return value


def send_message(bot: Bot, params: Json) -> Json:
    text, entities = checked_text(params)
    chat_id = chat_of(bot, params)
    return as_message(bot, _show(bot, chat_id, "text", text, entities, params))


def file_sender(kind: str) -> Callable[[Bot, Json], Json]:
    """The method that sends one kind of file: a new one, or one by its id."""

    def send(bot: Bot, params: Json) -> Json:
        value = params.get(kind)
        if not value:
            raise Refusal(400, f"Bad Request: there is no {kind} in the request")
        if isinstance(value, Upload) and not value.data:
            raise Refusal(400, "Bad Request: file must be non-empty")
        text, entities = checked_caption(params)
        shown = _show(bot, chat_of(bot, params), kind, text, entities, params)
        shown.file = value
        return as_message(bot, shown)

    return send


def _show(
    bot: Bot, chat_id: int, kind: str, text: str, entities: list[Json], params: Json
) -> Shown:
    reply_to = _reply_target(bot, chat_id, params)
    bot.paced(chat_id)
    shown = Shown(
        message_id=bot.book.next_id(chat_id),
        chat_id=chat_id,
        account=bot.id,
        kind=kind,
        text=text,
        at=bot.record.now(),
        order=bot.record.next_order(),
        entities=entities,
        topic=params.get("message_thread_id"),
        reply_to=reply_to,
        buttons=_buttons(params.get("reply_markup")),
        markup=params.get("reply_markup"),
    )
    bot.book.chat(chat_id).shown[shown.message_id] = shown
    bot.record.changed()
    return shown


def _reply_target(bot: Bot, chat_id: int, params: Json) -> int | None:
    reply: Any = params.get("reply_parameters") or {}
    target: int | None = reply.get("message_id", params.get("reply_to_message_id"))
    if target is None or not bot.known_messages_only:
        return target
    chat = bot.book.chat(chat_id)
    if target in chat.incoming or bot.book.find(chat_id, target):
        return target
    if reply.get("allow_sending_without_reply") or params.get("allow_sending_without_reply"):
        return None
    raise Refusal(400, "Bad Request: message to be replied not found")


def _buttons(markup: Any) -> list[list[Json]]:
    rows = markup.get("inline_keyboard", []) if isinstance(markup, dict) else []
    for row in rows:
        for button in row:
            data = button.get("callback_data")
            if data is not None and not 1 <= len(str(data).encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return list(rows)


def as_message(bot: Bot, shown: Shown) -> Json:
    """The Message object that the API answers with."""
    chat = bot.book.chat(shown.chat_id)
    user = {k: bot.user[k] for k in ("id", "is_bot", "first_name", "username")}
    message: Json = {
        "message_id": shown.message_id,
        "from": user,
        "chat": chat.info,
        "date": int(shown.at),
    }
    if shown.kind == "text":
        message["text"] = shown.text
    else:
        message[shown.kind] = _file_object(bot, shown)
        if shown.text:
            message["caption"] = shown.text
    if shown.entities:
        message["entities" if shown.kind == "text" else "caption_entities"] = shown.entities
    if shown.topic is not None:
        message |= {"message_thread_id": shown.topic, "is_topic_message": True}
    if shown.reply_to in chat.incoming:
        target = {k: v for k, v in chat.incoming[shown.reply_to].items() if k != "reply_to_message"}
        message["reply_to_message"] = target
    if shown.edits:
        message["edit_date"] = int(bot.record.now())
    if shown.buttons:
        message["reply_markup"] = {"inline_keyboard": shown.buttons}
    return message


def _file_object(bot: Bot, shown: Shown) -> Json | list[Json]:
    upload = shown.file if isinstance(shown.file, Upload) else None
    file_id = bot.add_file(upload.data) if upload else str(shown.file)
    found: Json = {
        "file_id": file_id,
        "file_unique_id": f"unique-{file_id}",
        "file_size": bot.files[file_id].size if file_id in bot.files else 1000,
    }
    if shown.kind == "photo":
        return [found | {"width": 90, "height": 60}, found | {"width": 900, "height": 600}]
    if upload and upload.content_type:
        found["mime_type"] = upload.content_type
    if upload and shown.kind in ("document", "audio", "video", "animation"):
        found["file_name"] = upload.name
    if shown.kind in ("voice", "audio", "video", "animation"):
        found["duration"] = 1
    if shown.kind in ("video", "animation"):
        found |= {"width": 640, "height": 360}
    return found


def _edited(bot: Bot, params: Json) -> Shown:
    chat_id = chat_of(bot, params)
    shown = bot.book.find(chat_id, int(params.get("message_id", 0)))
    if shown is None:
        seen = params.get("message_id") in bot.book.chat(chat_id).incoming
        why = "message can't be edited" if seen else "message to edit not found"
        raise Refusal(400, f"Bad Request: {why}")
    return shown


def edit_message_text(bot: Bot, params: Json) -> Json:
    text, entities = checked_text(params)
    shown = _edited(bot, params)
    markup = params.get("reply_markup")
    if shown.looks_like(text, entities, markup):
        raise Refusal(400, NOT_MODIFIED)
    bot.paced(shown.chat_id)
    shown.edits.append(shown.text)
    shown.text, shown.entities, shown.markup = text, entities, markup
    shown.buttons = _buttons(markup)
    bot.record.changed()
    return as_message(bot, shown)


def edit_message_reply_markup(bot: Bot, params: Json) -> Json:
    shown = _edited(bot, params)
    buttons = _buttons(params.get("reply_markup"))
    if buttons == shown.buttons:
        raise Refusal(400, NOT_MODIFIED)
    shown.buttons, shown.markup = buttons, params.get("reply_markup")
    bot.record.changed()
    return as_message(bot, shown)


def delete_message(bot: Bot, params: Json) -> bool:
    chat_id, number = chat_of(bot, params), int(params.get("message_id", 0))
    shown = bot.book.find(chat_id, number)
    if shown is None and bot.book.chat(chat_id).incoming.pop(number, None) is None:
        raise Refusal(400, "Bad Request: message to delete not found")
    if shown is not None:
        shown.deleted = True
    bot.record.changed()
    return True


def send_chat_action(bot: Bot, params: Json) -> bool:
    if not params.get("action"):
        raise Refusal(400, "Bad Request: wrong parameter action in request")
    bot.book.chat(chat_of(bot, params)).actions.append(str(params["action"]))
    return True


def send_message_draft(bot: Bot, params: Json) -> bool:
    chat_id = chat_of(bot, params)
    if chat_id < 0:
        raise Refusal(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
    if not params.get("draft_id"):
        raise Refusal(400, "Bad Request: draft_id must be non-zero")
    if params.get("text"):
        checked_text(params)
    bot.book.chat(chat_id).drafts.append(str(params.get("text", "")))
    return True


def set_message_reaction(bot: Bot, params: Json) -> bool:
    chat = bot.book.chat(chat_of(bot, params))
    reaction = {"message_id": params["message_id"], "reaction": params.get("reaction", [])}
    chat.reactions.append(reaction)
    return True
