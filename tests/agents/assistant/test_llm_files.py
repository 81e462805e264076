"""Pictures, documents and voices: passed on when the model takes them, described when not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile

from bot.agents.assistant.prompt import MAX_FILE
from bot.domain.message import Attachment, InboundKind
from tests.agents.assistant.models import assistant, call
from tests.agents.turns import FakeFile, FakeTurn, message

PHOTO = Attachment("photo", "ref", "", "", 4)
VOICE = Attachment("voice", "ref", "audio/ogg; codecs=opus", seconds=7)
PDF = Attachment("document", "ref", "application/pdf", "menu.pdf")
ZIP = Attachment("document", "ref", "application/zip", "all.zip")


@dataclass
class Seeing:
    """A model that keeps what it saw and, if told so, refuses files."""

    refuses: bool = False
    answers: list[ModelResponse] = field(default_factory=list)
    seen: list[list[Any]] = field(default_factory=list)

    def model(self, profile: ModelProfile | None = None) -> FunctionModel:
        return FunctionModel(self._answer, profile=profile)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        content: list[Any] = []
        for sent in messages:
            if isinstance(sent, ModelRequest):
                for part in sent.parts:
                    if isinstance(part, UserPromptPart):
                        content += [part.content] if isinstance(part.content, str) else part.content
        self.seen.append(content)
        if self.refuses and any(isinstance(item, BinaryContent) for item in content):
            raise ModelHTTPError.for_category(
                ModelRequestRejectedError, status_code=400, model_name="m"
            )
        return self.answers.pop(0) if self.answers else ModelResponse(parts=[TextPart("ok")])


def sent(*files: FakeFile, text: str = "look", kind: InboundKind = InboundKind.PHOTO) -> FakeTurn:
    return FakeTurn((message(text, kind, attachments=files),))


@pytest.mark.parametrize(
    ("info", "mime"), [(PHOTO, "image/jpeg"), (VOICE, "audio/ogg"), (PDF, "application/pdf")]
)
async def test_a_file_is_passed_on_with_its_type(info: Attachment, mime: str) -> None:
    seeing = Seeing()
    assert await assistant(seeing.model())(sent(FakeFile(info, b"1234"))) == "ok"
    words, file = seeing.seen[0]
    assert words == "[photo] look"
    assert (file.data, file.media_type) == (b"1234", mime)


async def test_a_picture_without_words_is_a_turn() -> None:
    seeing = Seeing()
    assert await assistant(seeing.model())(sent(FakeFile(PHOTO, b"1"), text="")) == "ok"


@pytest.mark.parametrize(
    ("file", "profile", "said"),
    [
        (FakeFile(PHOTO, b"1"), ModelProfile(supports_image_input=False), "does not take such"),
        (FakeFile(VOICE, b"1"), ModelProfile(supports_audio_file_input=False), "7 s long"),
        (FakeFile(PDF, b"1"), ModelProfile(supports_document_input=False), "menu.pdf"),
        (FakeFile(ZIP, b"1"), None, "all.zip"),
        (FakeFile(PHOTO, gone="the platform keeps it no longer"), None, "keeps it no longer"),
        (FakeFile(replace(PHOTO, size=MAX_FILE + 1)), None, "too large"),
        (FakeFile(replace(PHOTO, size=None), b"x" * (MAX_FILE + 1)), None, "too large"),
    ],
)
async def test_what_can_not_be_passed_on_is_described(
    file: FakeFile, profile: ModelProfile | None, said: str
) -> None:
    seeing = Seeing()
    assert await assistant(seeing.model(profile))(sent(file)) == "ok"
    described = seeing.seen[0][1]
    assert isinstance(described, str)
    assert described.startswith("[A file: ")
    assert said in described


async def test_a_model_that_refuses_a_file_after_all_gets_it_described() -> None:
    seeing = Seeing(refuses=True)
    assert await assistant(seeing.model())(sent(FakeFile(PHOTO, b"1"))) == "ok"
    assert len(seeing.seen) == 2
    assert "the model does not take it" in seeing.seen[1][1]


@dataclass(frozen=True)
class CountedFile(FakeFile):
    reads: list[int] = field(default_factory=list)

    async def read(self) -> bytes:
        self.reads.append(1)
        return await super().read()


async def test_files_are_read_once_and_not_at_all_for_what_is_stored() -> None:
    async def look() -> str:
        """Look."""
        return "seen"

    seeing = Seeing(answers=[call("look")])
    file = CountedFile(PHOTO, b"1")
    asked = sent(file)
    assert await assistant(seeing.model(), look)(asked) == "ok"
    assert len(seeing.seen) == 2
    assert isinstance(seeing.seen[1][1], BinaryContent)
    assert len(file.reads) == 1
    assert await assistant(seeing.model(), look)(asked.again()) == "ok"
    assert len(file.reads) == 1
