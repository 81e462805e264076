"""Asks an agent's server what a life of turns would ask it: `answerback agent check URL`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.agents.http.answer import AgentFailed, HttpAnswer
from bot.agents.http.client import HttpAgent, HttpAgentConfig
from bot.agents.http.probe import Probe, photo, pressed, said
from bot.agents.http.question import ACTION, request_body
from bot.agents.http.signature import sign
from bot.domain.errors import GiveUp, Retry
from bot.domain.ports import Clock
from bot.domain.reply import Reply

SLOW_SECONDS = 45.0
"""From here on a person is told that it takes longer."""

STALE_SECONDS = 3600


class Level(StrEnum):
    """`problem`: turns would fail; `warning`: they work, and something should be known."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `seconds` is how long the answer took, None where none came."""

    name: str
    level: Level
    detail: str
    seconds: float | None = None


async def check(config: HttpAgentConfig, clock: Clock) -> list[Finding]:
    """Everything that was asked, in order. Raises ConfigurationError for a bad address."""
    agent = HttpAgent(config, clock)
    try:
        plain = Probe.fresh(clock, config.timeout)
        findings = [await _ask(agent, clock, "a plain text", plain)]
        if findings[0].level is Level.PROBLEM:
            return findings
        for name, probe in _kinds(clock, config.timeout):
            findings.append(await _ask(agent, clock, name, probe))
        findings.append(await _two_at_once(agent, clock, config.timeout))
        findings.append(await _same_again(agent, plain))
        findings.extend(await _strangers(agent, config, clock, plain))
        return [*findings, _speed(findings)]
    finally:
        await agent.close()


def _kinds(clock: Clock, timeout: float) -> list[tuple[str, Probe]]:
    fresh = Probe.fresh(clock, timeout)
    cases = [
        ("many scripts and emoji", said("שלום, नमस्ते, 你好 👩‍👩‍👧 \u202eabc\u202c e\u0301")),
        ("a long message", said("All work and no play. " * 500)),
        ("a blank message", said(" ")),
        ("a photo with a caption", photo("What is this?")),
        ("a pressed button", pressed("Yes", "answer-yes")),
    ]
    probes = [(name, replace(fresh, messages=(message,)).renamed(clock)) for name, message in cases]
    several = replace(fresh, messages=(said("First."), said("Second."))).renamed(clock)
    return [*probes, ("two messages in one turn, with history", several.with_history(50))]


async def _ask(agent: HttpAgent, clock: Clock, name: str, probe: Probe) -> Finding:
    began = clock.monotonic()
    level, detail = Level.OK, ""
    try:
        detail = _described(await agent(probe))
    except AgentFailed as error:
        level, detail = Level.PROBLEM, str(error)
    except Retry as error:
        level, detail = Level.WARNING, f"asked to be tried again ({error.after or 'no time'} s)"
    except GiveUp:
        level, detail = Level.WARNING, "gave up"
    return Finding(name, level, detail, clock.monotonic() - began)


def _described(reply: Reply) -> str:
    if reply.silent:
        return "stayed silent"
    said = [f"{len(reply.text)} characters"] if reply.text else []
    said += [f"{len(reply.buttons)} buttons"] if reply.buttons else []
    said += [f"{len(reply.files)} attachments"] if reply.files else []
    return ", ".join(said) or "an empty answer"


async def _two_at_once(agent: HttpAgent, clock: Clock, timeout: float) -> Finding:
    probes = [Probe.fresh(clock, timeout) for _ in range(2)]
    both = await asyncio.gather(*(_ask(agent, clock, "two chats at once", p) for p in probes))
    return max(both, key=lambda finding: (_WORST.index(finding.level), finding.seconds or 0.0))


_WORST = (Level.OK, Level.WARNING, Level.PROBLEM)


async def _same_again(agent: HttpAgent, plain: Probe) -> Finding:
    """A turn whose answer was lost on its way is asked again with the same key."""
    name = "the same turn again, after a cut"
    try:
        first = await agent(plain)
        second = await agent(replace(plain, attempt=2, interrupted=True))
    except (AgentFailed, Retry, GiveUp) as error:
        return Finding(name, Level.WARNING, f"no answer: {type(error).__name__}")
    if first == second:
        return Finding(name, Level.OK, "the same answer")
    hint = "another answer: keep answers by idempotency_key if work must not be done twice"
    return Finding(name, Level.WARNING, hint)


async def _strangers(
    agent: HttpAgent, config: HttpAgentConfig, clock: Clock, plain: Probe
) -> list[Finding]:
    if not config.secret:
        return [Finding("signatures", Level.WARNING, "no secret: anybody can ask this server")]
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


async def _refused(name: str, asked: Awaitable[HttpAnswer], otherwise: Level) -> Finding:
    try:
        got = (await asked).status
    except AgentFailed as error:
        return Finding(name, Level.WARNING, str(error))
    if got in (401, 403):
        return Finding(name, Level.OK, f"refused with {got}")
    if got == 200:
        return Finding(name, otherwise, "was answered; it should be refused with 401")
    return Finding(name, Level.WARNING, f"answered {got}; 401 would be clear")


def _speed(findings: list[Finding]) -> Finding:
    slowest = max(finding.seconds or 0.0 for finding in findings)
    level = Level.OK if slowest < SLOW_SECONDS else Level.WARNING
    return Finding("time", level, f"the slowest answer took {slowest:.1f} s", slowest)
