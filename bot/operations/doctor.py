"""The examination behind `answerback doctor`: everything that a process needs, and each fault with
its fix."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx

from bot.domain.decisions.seals import DatabaseSealed
from bot.domain.errors import ConfigurationError, DatabaseUnavailable
from bot.domain.findings import Finding, Level, fine, problem, warning
from bot.domain.ports import Clock
from bot.operations.reports.stuck import silent_processes
from bot.operations.session import OperatorSession, database_exists, schema_problem
from bot.operations.webhooks import webhook_finding, webhook_states
from bot.settings import FILE, Settings
from bot.version import our_version
from storage import audit_log, holders
from storage.engine.database import parsed_url
from storage.engine.demands import facts_of, judge
from storage.engine.private import open_to_all
from storage.engine.probe import RedisUnreachable, ping_redis
from storage.holders import HolderRow
from storage.views.health import diagnostics

_DISK_LEFT = 500_000_000
"""Bytes."""
_PATIENCE = 5.0
"""Seconds that each question may take."""
_LATELY = 7 * 86_400.0
"""Seconds for which a platform's report is shown."""
_TODAY = 86_400.0
_NOT_FOR_PEOPLE = {
    "echo": "the bot repeats what people write",
    "demo": "the bot works for a while, and answers with a receipt that nobody paid for",
}
"""The agents that are only there for trying things out, with what people get from them."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The process that is examined, as far as it could be put together: a session of it, and
    its agent with how to close it (raises ConfigurationError)."""

    settings: Settings
    clock: Clock
    has_platform: bool
    ways_to_configure: str
    remarks: Sequence[Finding]
    session: Callable[[], AbstractAsyncContextManager[OperatorSession]]
    close_agent: Callable[[], Awaitable[None]]


def settings_problems(error: ConfigurationError) -> Sequence[Finding]:
    """The findings if the settings can't be read."""
    fix = "correct the variable in the environment or in .env (see .env.example)"
    return [_program(), *(problem("settings", line, fix) for line in str(error).splitlines())]


async def examine(process: Examined) -> Sequence[Finding]:
    """All findings, in an order in which later ones depend on earlier ones. Never raises."""
    settings, clock = process.settings, process.clock
    found = [_program(), *_settings(process), _disk(settings), *_open_to_all(settings)]
    stored = await _database(settings, clock)
    found += stored
    found += await _redis(settings, clock)
    if all(finding.level is not Level.PROBLEM for finding in stored):
        found += await _platforms(process)
    found.append(await _agent(process))
    return found


def _program() -> Finding:
    return fine("answerback", f"{our_version()}, on Python {platform.python_version()}")


def _settings(process: Examined) -> Sequence[Finding]:
    settings = process.settings
    found = [fine("settings", "they fit together")]
    if not process.has_platform:
        fix = f"set {process.ways_to_configure}"
        says = "none is configured: there is only the chat of `answerback up`"
        found.append(warning("platforms", says, fix))
    found += process.remarks
    public = settings.public_url
    if public and not public.startswith("https://"):
        fix = "use https, with a certificate that the platforms trust"
        found.append(warning("PUBLIC_URL", f"{public} is not https", fix))
    if process.has_platform and settings.agent in _NOT_FOR_PEOPLE:
        fix = "set AGENT to llm, package.module:function or https://..."
        says = f"{settings.agent}: {_NOT_FOR_PEOPLE[settings.agent]}"
        found.append(warning("AGENT", says, fix))
    sqlite = parsed_url(settings.database_url).get_backend_name() == "sqlite"
    if sqlite and settings.redis_url:
        fix = "use PostgreSQL for several machines, or drop REDIS_URL"
        found.append(warning("REDIS_URL", "SQLite serves one machine; Redis adds little", fix))
    return found


def _disk(settings: Settings) -> Finding:
    parsed = parsed_url(settings.database_url)
    place = Path(str(parsed.database)) if parsed.get_backend_name() == "sqlite" else Path()
    folders = (place.absolute(), *place.absolute().parents)
    folder = next(p for p in folders if os.path.isdir(p))  # noqa: PTH112 - Path's raises where this user may not look
    if parsed.get_backend_name() == "sqlite" and not os.access(folder, os.W_OK):
        return problem("disk", f"{folder} can't be written", "let this user write in that folder")
    left = shutil.disk_usage(folder).free
    if left < _DISK_LEFT:
        said = f"{left // 1_000_000} MB are left in {folder}"
        return problem("disk", said, "make room: a full disk refuses every message")
    return fine("disk", f"{left // 1_000_000_000} GB are left in {folder}")


def _open_to_all(settings: Settings) -> Sequence[Finding]:
    """The files with secrets or people's words that other users of this machine may read."""
    parsed = parsed_url(settings.database_url)
    files = [Path(FILE)]
    if parsed.get_backend_name() == "sqlite":
        files.append(Path(str(parsed.database)))
    return [
        warning(file.name, "every user of this machine may read it", f"chmod o= {file}")
        for file in files
        if open_to_all(file)
    ]


async def _database(settings: Settings, clock: Clock) -> Sequence[Finding]:
    name = "database"
    url = settings.database_url
    if not database_exists(url):
        fix = "answerback db upgrade, or start the service once"
        return [problem(name, f"there is no file {parsed_url(url).database} yet", fix)]
    found: Sequence[Finding] = []
    try:
        found = judge(await asyncio.to_thread(facts_of, url, clock))
        if said := await asyncio.to_thread(schema_problem, url):
            return [*found, problem("schema", said, "answerback db upgrade")]
        return [*found, fine("schema", "this version works on it")]
    except DatabaseSealed as sealed:
        return [*found, problem("schema", sealed.seal.says, sealed.seal.fix)]
    except DatabaseUnavailable as error:
        if any(finding.level is Level.PROBLEM for finding in found):
            return found  # They say why.
        return [*found, problem(name, str(error), "is it running, and is DATABASE_URL right?")]


async def _redis(settings: Settings, clock: Clock) -> Sequence[Finding]:
    if not settings.redis_url:
        return []
    began = clock.monotonic()
    try:
        await ping_redis(settings.redis_url, _PATIENCE)
    except RedisUnreachable as error:
        fix = "is it running, and is REDIS_URL right? Without it wake-ups take up to a second"
        return [problem("redis", f"no answer: {error}", fix)]
    return [fine("redis", f"answers in {(clock.monotonic() - began) * 1000:.0f} ms")]


async def _platforms(process: Examined) -> Sequence[Finding]:
    try:
        async with process.session() as session, session.opened():
            found = [*await _holders(session), *await _here(process.settings)]
            found += await _sending(session)
            # All at once: where a platform does not answer, each waits for its time-out.
            examined = asyncio.gather(*(endpoint.examine() for endpoint in session.endpoints))
            told, states = await asyncio.gather(examined, webhook_states(session.endpoints))
            found += [finding for findings in told for finding in findings]
            found += map(webhook_finding, states)
            found += await _reported(session)
            found += await held_off(session)
    except ConfigurationError as error:
        return [problem("settings", str(error), "correct the variable in the environment")]
    except DatabaseUnavailable as error:
        return [problem("database", str(error), "is it running?")]
    return found


async def _reported(session: OperatorSession) -> Sequence[Finding]:
    """The latest reports of the platforms on our accounts, from their webhooks."""
    told = await session.rt.db.read(audit_log.lately, audit_log.ACCOUNT_REPORT, _LATELY)
    fix = "see the account at its platform; this is shown for a week"
    return [warning("platform report", f"{why} ({age / 3600:.0f} h ago)", fix) for why, age in told]


async def held_off(session: OperatorSession) -> Sequence[Finding]:
    """The addresses from which sign-ins to the operator's page were refused lately."""
    told = await session.rt.db.read(audit_log.lately, audit_log.HELD_OFF, _TODAY)
    fix = (
        "if it is a proxy of yours, name it in WEB_PROXIES and have it pass on X-Forwarded-For; "
        "else somebody mistypes or guesses. This is shown for a day"
    )
    return [
        warning("operator's page", f"sign-in was held off {why}, {age / 60:.0f} min ago", fix)
        for why, age in told
    ]


async def _holders(session: OperatorSession) -> Sequence[Finding]:
    lease = session.settings.lease_seconds
    rows = await session.rt.db.read(holders.listed, lease)
    found = [
        problem("processes", silent.why, "look at its /readyz and at its log")
        for silent in await session.rt.db.read(silent_processes, lease)
    ]
    alive = [row for row in rows if not row.gone]
    if all(row.role == "web" for row in alive):
        said = "no process works on runs now"
        return [*found, warning("processes", said, "answerback serve")]
    said = f"alive: {', '.join(f'{row.name} ({row.role})' for row in alive)}"
    return [*found, *_of_other_versions(alive), fine("processes", said)]


def _of_other_versions(alive: Sequence[HolderRow]) -> Sequence[Finding]:
    """The processes that still run another version."""
    others = [row for row in alive if row.version != our_version()]
    if not others:
        return []
    named = ", ".join(f"{row.name} ({row.version or 'before 0.2.0'})" for row in others)
    says = f"{named} beside this {our_version()}: both work on the database"
    return [warning("versions", says, "restart them when you have seen that this one works")]


async def _sending(session: OperatorSession) -> Sequence[Finding]:
    """The accounts that can't send, with the platform's reason."""
    fix = "put it right; a restart and `answerback webhook set` try the account again at once"
    down = await session.rt.db.read(diagnostics.accounts_down)
    return [problem("sending", fact.says or "", fix) for fact in down]


async def _here(settings: Settings) -> Sequence[Finding]:
    """The checks that only the running process can make, asked of it on our own port."""
    place = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - read
    url = httpx.URL(scheme="http", host=place, port=settings.port, path="/readyz")
    try:
        async with httpx.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
            checks = (await client.get(url)).json()["checks"]
        failed = [f"{name}: {check['says']}" for name, check in checks.items() if not check["ok"]]
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return []  # Nobody listens there, or somebody else.
    if failed:
        fix = "see what it says; docs/operating.md explains the checks"
        return [
            problem("readiness", f"the process at {url} is not ready: {'; '.join(failed)}", fix)
        ]
    return [fine("readiness", f"the process at {url} is ready")]


async def _agent(process: Examined) -> Finding:
    name, agent = "agent", process.settings.agent
    try:
        await process.close_agent()
    except ConfigurationError as error:
        return problem(name, str(error), "put right what it names, in the environment or in .env")
    if not agent.startswith(("http://", "https://")):
        return fine(name, f"{agent} loads")
    url = httpx.URL(agent)
    try:
        async with httpx.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
            answer = await client.get(url)
    except httpx.HTTPError as error:
        # Of an address its host alone: the rest of one may be a secret.
        place = f"{url.scheme}://{url.netloc.decode()}"
        said = f"{place} can't be reached: {type(error).__name__}"
        return problem(name, said, "is it running, and is AGENT its address?")
    return fine(name, f"reached, answered {answer.status_code}; `agent check` asks it more")
