"""Variables that nobody reads, with the setting that may be meant.

A machine's environment holds other programs' variables: there only names like ours are told. `.env`
is ours, so every name in it that is no setting is told, by its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from itertools import chain

from bot.domain.findings import Finding, Level, warning
from bot.settings import Line

OURS_ALONE = ("TELEGRAM_", "TWILIO_", "META_", "WHATSAPP_", "LLM_")
"""Beginnings that no other program of a machine should use: each such name is told."""
SHARED = (
    "AGENT", "ALLOW", "ANSWER_", "BURST", "CHAT_", "COMMAND_WORD", "DATABASE_",
    "HEARTBEAT", "HOLDER_", "LEASE_", "LOG_", "MAX_FAIL", "MAX_PART", "PUBLIC_", "QUIET_", "REDIS_",
    "RETENTION", "RUN_DEAD", "SHUTDOWN_", "STILL_", "TEXTS_", "UNCERTAIN_", "WEB_",
)  # fmt: skip
"""Beginnings that others use too: such a name is told where it is hardly different from ours."""
ALIKE = 0.83
"""The likeness, of at most 1, from which on a name is taken for another one misspelt."""
_REST_ALIKE = 0.6
"""The same for what stands behind a beginning that is ours alone."""
OTHERS = frozenset(
    {
        "AGENT_ID", "AGENT_OS", "AGENT_NAME", "AGENT_VERSION", "WEB_CONCURRENCY", "LOG_DIR",
        "TELEGRAM_CHAT_ID", "TELEGRAM_API_ID", "TELEGRAM_API_HASH", "META_API_KEY",
        "TWILIO_API_KEY", "TWILIO_API_SECRET", "TWILIO_REGION", "TWILIO_EDGE",
    }
)  # fmt: skip
"""Names of other programs: build servers, hosts, providers' own packages."""
OTHERS_END = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT_TCP", "_TCP_ADDR", "_TCP_PORT", "_TCP_PROTO")
"""Endings of what orchestrators set for every service, whatever it is called."""
HANDED_ON_BEGIN = (
    "AWS_", "AZURE_", "CADDY_", "COMPOSE_", "DOCKER_", "GOOGLE_", "OPENAI_", "OLLAMA_", "OTEL_",
    "POSTGRES_", "PYTHON", "UV_", "UVICORN_",
)  # fmt: skip
HANDED_ON_END = ("_API_KEY", "_BASE_URL")
HANDED_ON = frozenset(
    {"HF_TOKEN", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "TZ", "LANG", "PATH"}
)
"""Names in `.env` that are for compose, for providers' packages or for Python: never told."""

MEANT = {
    "ALLOWED_USERS": "ALLOWED",
    "ALLOWLIST": "ALLOWED",
    "ANTHROPIC_KEY": "ANTHROPIC_API_KEY",
    "BASE_URL": "PUBLIC_URL",
    "BOT_TOKEN": "TELEGRAM_BOT_TOKEN",
    "DB_URL": "DATABASE_URL",
    "LLM": "LLM_MODEL",
    "LLM_API_BASE": "LLM_BASE_URL",
    "LLM_PROMPT": "LLM_SYSTEM_PROMPT_FILE",
    "LLM_SYSTEM_PROMPT": "LLM_SYSTEM_PROMPT_FILE",
    "LLM_URL": "LLM_BASE_URL",
    "LOGLEVEL": "LOG_LEVEL",
    "META_APP_ID": "META_APP_SECRET",
    "META_PHONE_ID": "META_PHONE_NUMBER_ID",
    "META_TOKEN": "META_ACCESS_TOKEN",
    "META_WEBHOOK_VERIFY_TOKEN": "META_VERIFY_TOKEN",
    "MODEL": "LLM_MODEL",
    "OPENAI_KEY": "OPENAI_API_KEY",
    "OPENAI_TOKEN": "OPENAI_API_KEY",
    "TELEGRAM_API_KEY": "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_KEY": "TELEGRAM_BOT_TOKEN",
    "TELEGRAM_SECRET": "TELEGRAM_WEBHOOK_SECRET",
    "TELEGRAM_WEBHOOK_URL": "PUBLIC_URL",
    "TG_BOT_TOKEN": "TELEGRAM_BOT_TOKEN",
    "TG_TOKEN": "TELEGRAM_BOT_TOKEN",
    "TWILIO_FROM": "TWILIO_WHATSAPP_FROM",
    "TWILIO_NUMBER": "TWILIO_WHATSAPP_FROM",
    "TWILIO_PHONE_NUMBER": "TWILIO_WHATSAPP_FROM",
    "TWILIO_SID": "TWILIO_ACCOUNT_SID",
    "TWILIO_TOKEN": "TWILIO_AUTH_TOKEN",
    "TWILIO_WHATSAPP_NUMBER": "TWILIO_WHATSAPP_FROM",
    "WEBHOOK_SECRET": "TELEGRAM_WEBHOOK_SECRET",
    "WEBHOOK_URL": "PUBLIC_URL",
    "WHATSAPP_ACCESS_TOKEN": "META_ACCESS_TOKEN",
    "WHATSAPP_APP_SECRET": "META_APP_SECRET",
    "WHATSAPP_FROM": "TWILIO_WHATSAPP_FROM",
    "WHATSAPP_PHONE_NUMBER_ID": "META_PHONE_NUMBER_ID",
    "WHATSAPP_TOKEN": "META_ACCESS_TOKEN",
    "WHATSAPP_VERIFY_TOKEN": "META_VERIFY_TOKEN",
}
"""Names that other programs and guides give to what we call otherwise."""


def misnamed(
    known: Collection[str], environment: Collection[str], file: Sequence[Line]
) -> Sequence[Finding]:
    """The names that no setting has, and lines that say nothing. `known` are the settings' names,
    in capitals; so are those of the file, and the environment's where they were given a value."""
    given = {line.name for line in file if line.given} | set(environment)
    in_file = {line.name for line in file}
    found = [
        *chain.from_iterable(_of_line(line, known, given) for line in file),
        *_twice(file),
        *_others(file, known),
    ]
    for name in sorted(set(environment) - in_file):
        meant = _meant_by(name, known)
        if meant and meant not in given:
            found.append(_told(name, "the environment", meant))
        elif not meant and _is_ours(name, known):
            says = "no setting has this name"
            found.append(warning(name, says, "see .env.example for the names, or take it away"))
    return found


def _of_line(line: Line, known: Collection[str], given: Collection[str]) -> Sequence[Finding]:
    place = f".env, line {line.number}"
    if not line.name:
        return [warning(place, "it can't be read", "write NAME=value, and # before a remark")]
    if line.name in known or _is_handed_on(line.name):
        return []
    meant = _near(line.name, known)
    if meant and meant not in given:
        return [_told(line.name, place, meant)]
    return []


def _told(name: str, place: str, meant: str) -> Finding:
    return warning(name, f"{place} sets it, and nothing reads it", f"did you mean {meant}?")


def _twice(file: Sequence[Line]) -> Sequence[Finding]:
    found = []
    last: dict[str, int] = {}
    for line in file:
        if line.name and line.name in last:
            says = f".env has it in line {last[line.name]} and in line {line.number}"
            found.append(warning(line.name, says, "the last one counts: take the other away"))
        last[line.name] = line.number
    return found


def _others(file: Sequence[Line], known: Collection[str]) -> Sequence[Finding]:
    """All names of the file that are no settings and like none, in one line: an agent may read
    them."""
    names = [
        f"{line.name} (line {line.number})"
        for line in file
        if line.name
        and line.name not in known
        and not _is_handed_on(line.name)
        and not _near(line.name, known)
    ]
    if not names:
        return []
    says = f"no settings of Answerback: {', '.join(names)}"
    return [Finding(".env", Level.OK, says)]


def _meant_by(name: str, known: Collection[str]) -> str:
    """The setting that a name of the environment may stand for; empty for none, or where the name
    is somebody else's."""
    if name in known or _is_anothers(name):
        return ""
    return _near(name, known) if name.startswith(OURS_ALONE + SHARED) else ""


def _is_ours(name: str, known: Collection[str]) -> bool:
    return name.startswith(OURS_ALONE) and name not in known and not _is_anothers(name)


def _is_anothers(name: str) -> bool:
    return name in OTHERS or name.endswith(OTHERS_END) or "_PORT_" in name


def _is_handed_on(name: str) -> bool:
    return (
        name in HANDED_ON or name.startswith(HANDED_ON_BEGIN) or name.endswith(HANDED_ON_END)
    ) and name not in MEANT


def _near(name: str, known: Collection[str]) -> str:
    """The setting that is meant by a name, as far as can be told."""
    if name in MEANT:
        return MEANT[name]
    for begin in OURS_ALONE:
        if name.startswith(begin):
            rests = [setting.removeprefix(begin) for setting in known if setting.startswith(begin)]
            near = difflib.get_close_matches(name.removeprefix(begin), rests, 1, _REST_ALIKE)
            return begin + near[0] if near else ""
    return next(iter(difflib.get_close_matches(name, known, 1, ALIKE)), "")
