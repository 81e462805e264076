"""Telegram updates as they really come: one builder per thing that a person can do."""

from __future__ import annotations

from itertools import count
from typing import Any

from tests.fakes.recording import Json

DATE = 1_800_003_600
ANONYMOUS_ADMIN: Json = {
    "id": 1_087_968_824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}


def user(number: int, first_name: str = "Ada", **more: Any) -> Json:
    return {"id": number, "is_bot": False, "first_name": first_name, **more}


def bot_user(number: int, username: str) -> Json:
    return {"id": number, "is_bot": True, "first_name": username, "username": username}


def private(number: int, first_name: str = "Ada", **more: Any) -> Json:
    return {"id": number, "type": "private", "first_name": first_name, **more}


def group(number: int, title: str = "Friends", **more: Any) -> Json:
    return {"id": number, "type": "group", "title": title, **more}


def supergroup(number: int, title: str = "Friends", **more: Any) -> Json:
    return {"id": number, "type": "supergroup", "title": title, **more}


def forum(number: int, title: str = "Friends") -> Json:
    return supergroup(number, title, is_forum=True)


def channel(number: int, title: str = "News") -> Json:
    return {"id": number, "type": "channel", "title": title}


def entity(kind: str, text: str, part: str, **more: Any) -> Json:
    """An entity over the first occurrence of `part`, in UTF-16 units."""
    start = len(text[: text.index(part)].encode("utf-16-le")) // 2
    return {"type": kind, "offset": start, "length": len(part.encode("utf-16-le")) // 2, **more}


def file(file_id: str, size: int | None = 1000, **more: Any) -> Json:
    """The fields of every kind of file. `size` in bytes, None when Telegram does not say."""
    found = {"file_id": file_id, "file_unique_id": f"unique-{file_id}", **more}
    return found if size is None else found | {"file_size": size}


class Person:
    """Somebody who writes in one chat: every call is one more update of theirs.

    The ids of messages and updates go up by one; two persons have different ones.
    `at` is the time of the next message in epoch seconds; `chat` None is the private chat.
    """

    def __init__(
        self,
        number: int,
        chat: Json | None = None,
        *,
        sender: Json | None = None,
        topic: int | None = None,
        first_message: int | None = None,
        first_update: int | None = None,
        at: int = DATE,
    ) -> None:
        self.number = number
        self.chat = chat or private(number)
        self.sender = sender or user(number)
        self.topic = topic
        self.at = at
        mixed = (abs(number) * 31 + abs(int(self.chat["id"]))) % 1_000_000
        first = 810_000_000 + mixed * 1000
        self._updates = count(first if first_update is None else first_update)
        own_message = 41 if int(self.chat["id"]) > 0 else 41 + (abs(number) % 1000) * 1000
        self._messages = count(own_message if first_message is None else first_message)

    def update(self, kind: str, content: Json) -> Json:
        """Any update of this person's account."""
        return {"update_id": next(self._updates), kind: content}

    def content(self, **content: Any) -> Json:
        """A new Message object with this content."""
        made: Json = {
            "message_id": next(self._messages),
            "from": self.sender,
            "chat": self.chat,
            "date": self.at,
        }
        if self.topic is not None:
            made |= {"message_thread_id": self.topic, "is_topic_message": True}
        return made | {name: value for name, value in content.items() if value is not None}

    def message(self, **content: Any) -> Json:
        """A new message with any content."""
        return self.update("message", self.content(**content))

    def text(self, text: str, *entities: Json, **more: Any) -> Json:
        return self.message(text=text, entities=list(entities) or None, **more)

    def command(self, text: str, **more: Any) -> Json:
        """A text that begins with a command, marked as such."""
        return self.text(text, entity("bot_command", text, text.split(maxsplit=1)[0]), **more)

    def reply(self, text: str, to: Json, quote: str | None = None) -> Json:
        """A reply to a Message object (one level deep, as it comes), quoting a part of it."""
        target = {name: value for name, value in to.items() if name != "reply_to_message"}
        quoted = None if quote is None else {"text": quote, "position": 0, "is_manual": True}
        return self.message(text=text, reply_to_message=target, quote=quoted)

    def forward(self, text: str, origin: Json) -> Json:
        return self.message(text=text, forward_origin=origin)

    def edit(self, original: Json, text: str, after: int = 60) -> Json:
        """The message of an earlier update, changed `after` seconds later."""
        message = original["message"] | {"text": text}
        return self.update("edited_message", message | {"edit_date": message["date"] + after})

    def photo(self, caption: str | None = None, album: str | None = None) -> Json:
        """A photo in two sizes; with `album`, a member of that media group."""
        sizes = [
            file("photo-small", 900, width=90, height=60),
            file("photo-large", 90_000, width=900, height=600),
        ]
        return self.message(photo=sizes, caption=caption, media_group_id=album)

    def album(self, name: str, caption: str, members: int = 3) -> list[Json]:
        """The updates of one album; the caption is on the first."""
        return [self.photo(caption if n == 0 else None, name) for n in range(members)]

    def voice(self, file_id: str = "voice-1", seconds: int = 4, size: int | None = 1000) -> Json:
        return self.message(voice=file(file_id, size, duration=seconds, mime_type="audio/ogg"))

    def document(self, file_id: str = "doc-1", name: str = "a.pdf", size: int = 1000) -> Json:
        mime = "application/pdf"
        return self.message(document=file(file_id, size, file_name=name, mime_type=mime))

    def audio(self, file_id: str = "audio-1") -> Json:
        return self.message(audio=file(file_id, duration=180, title="Song"))

    def video(self, file_id: str = "video-1") -> Json:
        return self.message(video=file(file_id, width=640, height=360, duration=9))

    def video_note(self, file_id: str = "note-1") -> Json:
        return self.message(video_note=file(file_id, length=240, duration=5))

    def animation(self, file_id: str = "gif-1") -> Json:
        """An animation, which also sets `document`."""
        whole = file(file_id, width=320, height=240, duration=2)
        return self.message(animation=whole, document=file(file_id, mime_type="video/mp4"))

    def sticker(self, emoji: str = "👍") -> Json:
        shape: Json = {"type": "regular", "width": 512, "height": 512}
        still = {"is_animated": False, "is_video": False}
        return self.message(sticker=file("sticker-1") | shape | still | {"emoji": emoji})

    def location(self, latitude: float = 52.52, longitude: float = 13.405) -> Json:
        return self.message(location={"latitude": latitude, "longitude": longitude})

    def venue(self, title: str = "Museum") -> Json:
        place = {"latitude": 52.52, "longitude": 13.405}
        return self.message(
            venue={"location": place, "title": title, "address": "Main street 1"}, location=place
        )

    def contact(self, phone: str = "+15550100042") -> Json:
        return self.message(contact={"phone_number": phone, "first_name": "Grace"})

    def poll(self, question: str = "Tea or coffee?") -> Json:
        options = [
            {"persistent_id": word, "text": word, "voter_count": 0} for word in ("Tea", "Coffee")
        ]
        flags = ("is_closed", "allows_multiple_answers", "members_only")
        return self.message(
            poll={
                "id": "poll-1",
                "question": question,
                "options": options,
                "total_voter_count": 0,
                "is_anonymous": True,
                "type": "regular",
                "allows_revoting": True,
                **dict.fromkeys(flags, False),
            }
        )

    def dice(self, value: int = 4) -> Json:
        return self.message(dice={"emoji": "🎲", "value": value})

    def rich(self, text: str = "A heading") -> Json:
        """A rich message: no `text` at all."""
        blocks = [
            {"type": "heading", "size": 1, "text": text},
            {"type": "paragraph", "text": [{"type": "bold", "text": "Bold"}, " and plain"]},
        ]
        return self.message(rich_message={"blocks": blocks})

    def press(self, data: str, on: Json | None = None, query: str = "cq1") -> Json:
        """A button press; `on` is the Message object that bears the button, None: too old."""
        gone = {"message_id": 1, "chat": self.chat, "date": 0}
        return self.update(
            "callback_query",
            {
                "id": query,
                "from": self.sender,
                "chat_instance": "1",
                "message": gone if on is None else on,
                "data": data,
            },
        )

    def member(self, status: str, before: str = "member", bot_id: int = 7_000_000_001) -> Json:
        """The bot was blocked (`kicked`), removed (`left`) or let in (`member`)."""
        bot = bot_user(bot_id, "relay_test_bot")
        return self.update(
            "my_chat_member",
            {
                "chat": self.chat,
                "from": self.sender,
                "date": self.at,
                "old_chat_member": _membership(before, bot),
                "new_chat_member": _membership(status, bot),
            },
        )

    def migrated_to(self, number: int) -> Json:
        """The service message in the old group."""
        return self.message(migrate_to_chat_id=number)

    def migrated_from(self, number: int) -> Json:
        """The service message in the new supergroup."""
        return self.message(migrate_from_chat_id=number)

    def post(self, text: str) -> Json:
        """A channel's post: nobody wrote it but the channel."""
        made = self.content(text=text, sender_chat=self.chat)
        del made["from"]
        return self.update("channel_post", made)


def _membership(status: str, bot: Json) -> Json:
    banned = {"until_date": 0} if status == "kicked" else {}
    return {"status": status, "user": bot, **banned}


def anonymous_admin(chat: Json) -> Person:
    """An administrator who writes as the group itself; give `sender_chat=chat` to each message."""
    return Person(ANONYMOUS_ADMIN["id"], chat, sender=ANONYMOUS_ADMIN)
