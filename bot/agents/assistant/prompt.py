"""The prompt: a chat's history within a budget, and the turn's messages with their files.

The prompt holds only a mark for each file. Files are fetched once, when a model is really called,
so that a replay after a crash fetches nothing; a file that the model does not take is described in
words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.profiles import ModelProfile

from bot.domain.errors import AttachmentUnavailable
from bot.domain.message import Attachment, ChatKind, InboundKind, as_name, as_seen, one_line
from bot.domain.turn import AttachmentFile, HistoryMessage, Turn, TurnMessage

MAX_FILE = 10_000_000
"""Bytes of a file that is passed on to a model."""
MAX_FILES = 20_000_000
"""Bytes of all files of a turn together."""
_GUESSED = {"photo": "image/jpeg", "voice": "audio/ogg"}
"""Media types of files that a platform sends without naming one."""
_ABILITIES = {
    "image": "supports_image_input",
    "audio": "supports_audio_file_input",
    "application/pdf": "supports_document_input",
}
"""The key in a model's profile for a media type, or for the part of one before the slash."""
_INVISIBLE_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_SAID = frozenset({InboundKind.TEXT, InboundKind.RICH, InboundKind.BUTTON})
_NOBODY = "Somebody"
"""The name for a speaker in a group whose own name is not visible."""
MAX_QUOTE = 2000
"""Characters of a quoted message."""
_TOKENS_A_MESSAGE = 4
_BYTES_A_TOKEN = 3
"""Too many tokens for English, which has about four bytes a token; about right for scripts with two
or three bytes a letter."""


def is_blank(text: str) -> bool:
    """Tell whether a text has no visible character: providers refuse such blocks."""
    return all(
        unicodedata.category(letter)[0] in "ZC" or letter in _INVISIBLE_LETTERS for letter in text
    )


def tokens(text: str) -> int:
    """An estimate of the tokens that a text costs, rather too high than too low."""
    return len(text.encode(errors="replace")) // _BYTES_A_TOKEN + _TOKENS_A_MESSAGE


def past(turn: Turn) -> list[HistoryMessage]:
    """The history; in a group, each message of a person begins with its sender's name."""
    in_group = turn.chat.kind is ChatKind.GROUP
    return [
        replace(said, text=_said(said.sender_name, _unframed(said.text), in_group=in_group))
        if said.role == "user" and not is_blank(said.text)
        else said
        for said in turn.history
    ]


GOES_ON = "| "
"""The prefix of each further line behind a frame (a note of ours in brackets, or a name), so that
none of these lines can look like the beginning of a frame."""
_OPENED = re.compile(r"/start(?:@\w+)?\s+(\S+)\s*", re.IGNORECASE)
"""A /start with the payload of a link."""
_LIKE_OPENING = frozenset("[\u2045\u27e6\u3010\u3014\u3016\u3018\u301a\ufe47\uff3b")
_AS_OPENING = str.maketrans(dict.fromkeys(_LIKE_OPENING, "["))
_OUR_FRAMES = re.compile(r"\s*\[\s*(?:not\s+written|forwarded|in\s+reply|a\s+file|the\s+person)\b")


def _apart(text: str) -> str:
    """The text with GOES_ON before each line but the first, which follows a frame."""
    return f"\n{GOES_ON}".join(text.splitlines())


def _unframed(text: str) -> str:
    """A person's words, with GOES_ON before each line that looks like a frame of ours."""
    lines = text.splitlines(keepends=True)
    return "".join(f"{GOES_ON}{line}" if _looks_framed(line) else line for line in lines)


def _looks_framed(line: str) -> bool:
    if _LIKE_OPENING.isdisjoint(line):
        return False
    return _OUR_FRAMES.match(as_seen(line.translate(_AS_OPENING))) is not None


def _said(name: str, text: str, *, in_group: bool) -> str:
    """The words, in a group preceded by their author's name."""
    return f"{as_name(name) or _NOBODY}: {_apart(text)}" if in_group else text


def within(history: Sequence[HistoryMessage], budget: int) -> list[HistoryMessage]:
    """The newest visible messages that fit the budget (in tokens), beginning with one of a person;
    neighbours of the same role are joined."""
    kept: list[HistoryMessage] = []
    for said in reversed(history):
        if is_blank(said.text):
            continue
        budget -= tokens(said.text)
        if budget < 0:
            break
        kept.insert(0, said)
    while kept and kept[0].role != "user":
        del kept[0]
    joined: list[HistoryMessage] = []
    for said in kept:
        if joined and joined[-1].role == said.role:
            joined[-1] = replace(said, text=f"{joined[-1].text}\n\n{said.text}")
        else:
            joined.append(said)
    return joined


def as_messages(history: Sequence[HistoryMessage]) -> list[ModelMessage]:
    """The history in pydantic-ai's form: texts alone, so it has no call without its result."""
    return [
        ModelRequest(parts=[UserPromptPart(said.text)])
        if said.role == "user"
        else ModelResponse(parts=[TextPart(said.text)])
        for said in history
    ]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The turn's messages. `content` are texts and marks: a mark is a key in `files`, and stands
    where that file belongs."""

    content: list[str]
    files: dict[str, AttachmentFile]

    @property
    def is_blank(self) -> bool:
        return not self.files and all(is_blank(text) for text in self.content)


def prompt_of(turn: Turn) -> Prompt:
    """The prompt of what the person (or a reminder) says in this turn."""
    content: list[str] = []
    files: dict[str, AttachmentFile] = {}
    for message in turn.messages:
        words = _words(message, in_group=turn.chat.kind is ChatKind.GROUP)
        if not is_blank(words):
            content.append(words)
        for file in message.attachments:
            # No message holds a NUL: nobody can write a mark.
            mark = f"\x00file {len(files)}"
            files[mark] = file
            content.append(mark)
    return Prompt(content, files)


def _words(message: TurnMessage, *, in_group: bool) -> str:
    words = _unframed(message.text)
    if message.kind == InboundKind.REMINDER:
        return (
            "[Not written by the person: the reminder that they had asked for is due now. "
            f"Remind them of it in a friendly sentence.] {_apart(words)}"
        )
    if opened := _OPENED.fullmatch(words):
        words = f"[The person came by a link with this payload: {one_line(opened.group(1))}]"
    if message.kind not in _SAID and not words.startswith("["):
        words = f"[{message.kind}] {words}".strip()
    if is_blank(words):
        return ""
    if message.forwarded_from:
        words = f"[Forwarded, first said by {as_name(message.forwarded_from)}] {_apart(words)}"
    if message.quoted is not None and not is_blank(message.quoted.text):
        whose = "your message" if message.quoted.from_us else "the message"
        words = f"[In reply to {whose}: {one_line(message.quoted.text, MAX_QUOTE)}]\n{words}"
    return _said(message.sender_name, words, in_group=in_group)


def described(file: Attachment, why: str) -> str:
    """The description of a file for a model that does not get the file itself."""
    facts = [one_line(fact) for fact in (file.kind, file.mime, file.name)]
    facts.append("" if file.size is None else f"{file.size} bytes")
    facts.append("" if file.seconds is None else f"{file.seconds} s long")
    return f"[A file: {', '.join(fact for fact in facts if fact)}. You can't see it: {why}]"


class Files:
    """Replaces marks by the files of a turn; once `refused` was called, by their descriptions."""

    def __init__(self, files: Mapping[str, AttachmentFile], profile: ModelProfile) -> None:
        self._files = files
        self._profile = profile
        self._fetched: dict[str, UserContent] = {}
        self._room = MAX_FILES
        self._refused = False

    async def into(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """The same messages with their files."""
        if not self._files:
            return list(messages)
        for mark, file in self._files.items():
            if mark not in self._fetched:
                self._fetched[mark] = await self._content(file)
        return [self._filled(message) for message in messages]

    def refused(self) -> bool:
        """Describe all files from now on, since the model refused the request. False if the request
        had no file in it, so that something else must be the reason."""
        sent = any(isinstance(content, BinaryContent) for content in self._fetched.values())
        if self._refused or not sent:
            return False
        self._refused = True
        self._fetched = {
            mark: described(file.info, "the model does not take it")
            for mark, file in self._files.items()
        }
        return True

    def _filled(self, message: ModelMessage) -> ModelMessage:
        if not isinstance(message, ModelRequest):
            return message
        parts = [
            replace(part, content=self._put(part.content))
            if isinstance(part, UserPromptPart)
            else part
            for part in message.parts
        ]
        return replace(message, parts=parts)

    def _put(self, content: str | Sequence[UserContent]) -> str | Sequence[UserContent]:
        if isinstance(content, str):
            return content if content not in self._fetched else [self._fetched[content]]
        return [self._fetched.get(c, c) if isinstance(c, str) else c for c in content]

    async def _content(self, file: AttachmentFile) -> UserContent:
        info = file.info
        mime = info.mime.partition(";")[0].strip().lower() or _GUESSED.get(info.kind, "")
        if not _takes(self._profile, mime):
            return described(info, "the model does not take such files")
        room = min(MAX_FILE, self._room)
        if info.size is not None and info.size > room:
            return described(info, "it is too large")
        try:
            data = await file.read()
        except AttachmentUnavailable as error:
            return described(info, str(error))
        if len(data) > room:
            return described(info, "it is too large")
        self._room -= len(data)
        return BinaryContent(data, media_type=mime)


def _takes(profile: ModelProfile, mime: str) -> bool:
    """Tell whether a model takes files of this media type, according to its profile."""
    ability = _ABILITIES.get(mime) or _ABILITIES.get(mime.partition("/")[0])
    return ability is not None and bool(profile.get(ability, True))
