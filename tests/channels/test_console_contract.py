"""The terminal keeps the contract of all channels."""

from __future__ import annotations

import pytest

from bot.domain.message import ChatKind
from bot.domain.ports import Recipient
from bot.domain.reply import FileOut, Reply
from channels.console.channel import ADDRESS, ConsoleChannel, parse
from tests.channels.contract import ChannelContract, Subject


class TestConsole(ChannelContract):
    @pytest.fixture
    async def subject(self) -> Subject:
        lines: list[str] = []

        async def write(text: str, _answers: str) -> None:
            lines.append(text)

        return Subject(
            channel=ConsoleChannel(write),
            to=Recipient(ADDRESS, ChatKind.PRIVATE),
            payloads={"first": ("hello", "1"), "second": ("a\x00b", "2")},
            parse=lambda payload: (parse(*payload),),  # type: ignore[misc]
            sent=lambda: lines,
            shown=lambda: len(lines),
        )


def test_a_file_is_shown_with_the_text_that_is_in_it() -> None:
    files = (
        FileOut("document", content="Ada: hello\nbot: hi\n", name="chat.txt", caption="Your chat"),
        FileOut("photo", url="https://example.com/lamp.jpg"),
    )
    [part] = ConsoleChannel(None).compose(
        Reply("Here:", files=files), Recipient(ADDRESS, ChatKind.PRIVATE)
    )
    assert part.text.splitlines() == [
        "Here:",
        "[document] Your chat",
        "Ada: hello",
        "bot: hi",
        "[photo] https://example.com/lamp.jpg",
    ]
