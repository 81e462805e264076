"""The agent that repeats what it is sent: for a first try, and for tests of everything else."""

from __future__ import annotations

from bot.domain.message import InboundKind
from bot.domain.turn import Turn, TurnMessage
from bot.texts import Text, Words

_WRITTEN = frozenset({InboundKind.TEXT, InboundKind.RICH, InboundKind.BUTTON, InboundKind.REMINDER})


class EchoAgent:
    """Returns the person's text unchanged; for any other kind of message it says what it got.

    Several messages come back as one line each; a turn without any words gets a fixed sentence.
    """

    def __init__(self, words: Words) -> None:
        self._words = words

    async def __call__(self, turn: Turn) -> str:
        language = turn.chat.language
        lines = [self._line(message, language) for message in turn.messages]
        spoken = "\n".join(line for line in lines if line.strip())
        return spoken or self._words.say(Text.NOTHING_TO_READ, language)

    def _line(self, message: TurnMessage, language: str) -> str:
        if message.kind in _WRITTEN:
            return message.text
        label = f"[{message.kind}]"
        what = message.text if message.text.startswith("[") else f"{label} {message.text}".strip()
        return self._words.say(Text.ECHO_GOT, language, what=what)
