"""The files of a turn on their way to a model: fetched once, when one is really called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.profiles import ModelProfile

from bot.agents.assistant.prompt import described
from bot.domain.errors import AttachmentUnavailable
from bot.domain.turn import AttachmentFile

MAX_FILE = 10_000_000
"""Bytes of a file that is passed on to a model."""
MAX_FILES = 20_000_000
"""Bytes of all files of a turn together."""
_GUESSED = {"photo": "image/jpeg", "voice": "audio/ogg"}
"""Media types of what a platform sends without naming one."""


class Files:
    """Puts the files of a turn in the place of their marks. Once `refused`, in words."""

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
        """The model did not take the request: from now on files are described. False when
        none was in it, so that something else must be wrong."""
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
        return [self._told(item) if isinstance(item, str) else item for item in content]

    def _told(self, item: str) -> UserContent:
        return self._fetched.get(item, item)

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
    """Whether a model takes files of this media type, as far as its profile tells."""
    kind = mime.partition("/")[0]
    if kind == "image":
        return profile.get("supports_image_input", True)
    if kind == "audio":
        return profile.get("supports_audio_file_input", True)
    if mime == "application/pdf":
        return profile.get("supports_document_input", True)
    return False
