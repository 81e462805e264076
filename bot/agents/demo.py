"""The demonstration's agent, made to be killed: three slow steps; one is never done twice."""

from __future__ import annotations

from textwrap import shorten

from bot.domain.errors import StepInterrupted
from bot.domain.ports import Clock
from bot.domain.turn import Turn
from bot.texts import Text, Words

READ, PAY, WRITE = "read", "pay", "write"
"""The keys of the steps, in their order; their results are stored under them."""
SHARES = {READ: 0.25, PAY: 0.2, WRITE: 0.55}
"""Each step's share of the time. The last is the longest, so most kills come after the payment."""
_QUOTED = 60
"""Characters of the question that are repeated in its answer."""


class DemoAgent:
    """Works `seconds` on each turn. Nobody is paid: the receipt is random, so if it is the same
    before and after a kill, the payment was made only once."""

    def __init__(self, words: Words, clock: Clock, seconds: float) -> None:
        self._words = words
        self._clock = clock
        self._seconds = seconds

    async def __call__(self, turn: Turn) -> str:
        language = turn.chat.language
        await turn.step(READ, self._read, safe_to_repeat=True)
        try:
            receipt = await turn.step(PAY, self._pay)
        except StepInterrupted:
            return self._words.say(Text.DEMO_IN_DOUBT, language)
        await turn.step(WRITE, self._write, safe_to_repeat=True)
        what = shorten(turn.text, _QUOTED, placeholder=" …") or f"[{turn.messages[0].kind}]"
        said = self._words.say(Text.DEMO_ANSWER, language, what=what, receipt=receipt)
        if turn.interrupted:
            resumed = self._words.say(Text.DEMO_RESUMED, language, count=turn.attempt)
            said = f"{said}\n{resumed}"
        return said

    async def _read(self) -> None:
        await self._work(READ)

    async def _pay(self) -> str:
        await self._work(PAY)
        return f"R-{self._clock.token()[:6].upper()}"

    async def _write(self) -> None:
        await self._work(WRITE)

    async def _work(self, step: str) -> None:
        await self._clock.sleep(self._seconds * SHARES[step])
