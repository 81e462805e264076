"""Trying an agent's server with every kind of turn: `answerback agent check`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.agents.http.contract import ACTION, HttpAnswer, request_body, sign
from bot.domain.errors import AgentFailed, GiveUp, Retry
from bot.domain.findings import Level
from bot.domain.message import Attachment, ChannelName, ChatKind, InboundKind
from bot.domain.ports import Clock
from bot.domain.reminders import Reminders
from bot.domain.reply import Reply
from bot.domain.turn import HistoryMessage, TurnChat, TurnMessage

SLOW_SECONDS = 45.0
"""Seconds after which a person is told that the answer takes longer."""
STALE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Trial:
    """One line of the report. `seconds` is the time that the answer took, None for no answer."""

    name: str
    level: Level
    detail: str
    seconds: float | None = None


async def check(config: HttpAgentConfig, clock: Clock) -> list[Trial]:
    """Try the server; returns all trials in order. After a failure of the first, nothing else is
    tried. Raises ConfigurationError for a bad address."""
    agent = HttpAgent(config, clock)
    try:
        plain = Probe.fresh(clock, config.timeout)
        trials = [await _ask(agent, clock, "a plain text", plain)]
        if trials[0].level is Level.PROBLEM:
            return trials
        for name, probe in kinds(clock, config.timeout):
            trials.append(await _ask(agent, clock, name, probe))
        pair = [Probe.fresh(clock, config.timeout) for _ in range(2)]
        both = await asyncio.gather(*(_ask(agent, clock, "two chats at once", p) for p in pair))
        trials.append(max(both, key=lambda t: (list(Level).index(t.level), t.seconds or 0.0)))
        trials.append(await _same_again(agent, plain))
        trials.extend(await _strangers(agent, config, clock, plain))
        slowest = max(trial.seconds or 0.0 for trial in trials)
        level = Level.OK if slowest < SLOW_SECONDS else Level.WARNING
        return [*trials, Trial("time", level, f"the slowest answer took {slowest:.1f} s", slowest)]
    finally:
        await agent.close()


def kinds(clock: Clock, timeout: float) -> list[tuple[str, Probe]]:
    """Turns with messages of each kind, each with a name for what it tries."""
    fresh = Probe.fresh(clock, timeout)
    cases = [
        ("many scripts and emoji", said("שלום, नमस्ते, 你好 👩‍👩‍👧 \u202eabc\u202c e\u0301")),
        ("a long message", said("All work and no play. " * 500)),
        ("a blank message", said(" ")),
        (
            "a photo with a caption",
            replace(said("What is this?"), kind=InboundKind.PHOTO, attachments=(_Picture(),)),
        ),
        ("a pressed button", replace(said("Yes"), kind=InboundKind.BUTTON, button="answer-yes")),
    ]
    probes = [(name, replace(fresh, messages=(message,)).renamed(clock)) for name, message in cases]
    began, roles = clock.wall() - 86_400, ("user", "assistant")
    past = tuple(HistoryMessage(roles[n % 2], f"Message {n}", began + n) for n in range(50))
    pair = (said("First."), said("Second."))
    several = replace(fresh, messages=pair, history=past).renamed(clock)
    return [*probes, ("two messages in one turn, with history", several)]


async def _ask(agent: HttpAgent, clock: Clock, name: str, probe: Probe) -> Trial:
    began = clock.monotonic()
    level, detail = Level.OK, ""
    try:
        detail = described(await agent(probe), probe)
    except AgentFailed as error:
        level, detail = Level.PROBLEM, str(error)
    except Retry as error:
        level, detail = Level.WARNING, f"asked to be tried again ({error.after or 'no time'} s)"
    except GiveUp:
        level, detail = Level.WARNING, "gave up"
    return Trial(name, level, detail, clock.monotonic() - began)


def described(reply: Reply | None, probe: Probe) -> str:
    """An answer in words: its size, and a note if the agent asked for a person."""
    handoff = ["asked for a person"] if probe.handoffs else []
    if reply is None or reply.silent:
        return ", ".join(["stayed silent", *handoff])
    said = [f"{len(reply.text)} characters"] if reply.text else []
    said += [f"{len(reply.buttons)} buttons"] if reply.buttons else []
    said += [f"{len(reply.files)} attachments"] if reply.files else []
    return ", ".join([*(said or ["an empty answer"]), *handoff])


async def _same_again(agent: HttpAgent, plain: Probe) -> Trial:
    """Ask the same turn twice with the same key, as when its first answer was lost on the way."""
    name = "the same turn again, after a cut"
    try:
        first = await agent(plain)
        second = await agent(replace(plain, attempt=2, interrupted=True))
    except (AgentFailed, Retry, GiveUp) as error:
        return Trial(name, Level.WARNING, f"no answer: {type(error).__name__}")
    if first == second:
        return Trial(name, Level.OK, "the same answer")
    hint = "another answer: keep answers by idempotency_key if work must not be done twice"
    return Trial(name, Level.WARNING, hint)


async def _strangers(
    agent: HttpAgent, config: HttpAgentConfig, clock: Clock, plain: Probe
) -> list[Trial]:
    if not config.secret:
        return [Trial("signatures", Level.WARNING, "no secret: anybody can ask this server")]
    body = await request_body(plain, 0)
    now = int(clock.wall())
    forged = sign(f"{config.secret}?", body, now)
    stale = sign(config.secret, body, now - STALE_SECONDS)
    cases = [
        ("no signature", "", Level.PROBLEM),
        ("a forged signature", forged, Level.PROBLEM),
        ("a signature of an hour ago", stale, Level.WARNING),
    ]
    key = plain.idempotency_key(ACTION)
    return [await _refused(n, agent.post(body, key, sig), level) for n, sig, level in cases]


async def _refused(name: str, asked: Awaitable[HttpAnswer], otherwise: Level) -> Trial:
    try:
        got = (await asked).status
    except AgentFailed as error:
        return Trial(name, Level.WARNING, str(error))
    if got in (401, 403):
        return Trial(name, Level.OK, f"refused with {got}")
    if got == 200:
        return Trial(name, otherwise, "was answered; it should be refused with 401")
    return Trial(name, Level.WARNING, f"answered {got}; 401 would be clear")


_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
"""A PNG of one transparent pixel."""
_CHAT = TurnChat(0, ChannelName("console"), "check", "", ChatKind.PRIVATE, "Check", "en")


@dataclass(frozen=True, slots=True)
class Probe:
    """A turn in the shape of `bot.domain.turn.Turn`, with made-up messages."""

    request_id: str
    deadline: float
    messages: Sequence[TurnMessage]
    history: Sequence[HistoryMessage] = ()
    attempt: int = 1
    interrupted: bool = False
    run_id: int = 0
    chat: TurnChat = _CHAT
    handoffs: list[str] = field(default_factory=list)

    @staticmethod
    def fresh(clock: Clock, seconds: float) -> Probe:
        """A plain turn that was never asked before; its deadline is `seconds` away."""
        probe = Probe("", clock.wall() + seconds, (said("Hello, who are you?"),))
        return probe.renamed(clock)

    def renamed(self, clock: Clock) -> Probe:
        """The same turn with a new request id, sent now."""
        name, now = f"check-{clock.token()}", clock.wall()
        messages = [replace(message, request_id=name, sent_at=now) for message in self.messages]
        return replace(self, request_id=name, messages=tuple(messages), handoffs=[])

    @property
    def reminders(self) -> Reminders:
        raise NotImplementedError("a server has no reminders of ours")

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)

    async def step(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("a server has no steps of ours")

    def idempotency_key(self, action: str) -> str:
        return f"{self.request_id}-{action}"

    def hand_over(self, reason: str) -> None:
        self.handoffs.append(reason)


class _Picture:
    """A picture of one pixel, as a file of a message."""

    info = Attachment("photo", "", "image/png", "pixel.png", len(_PIXEL))

    async def read(self) -> bytes:
        return _PIXEL


def said(text: str) -> TurnMessage:
    """A text message."""
    return TurnMessage("", text, InboundKind.TEXT, "check", "Check", 0.0)
