"""Variables that nobody reads, with the setting that may be meant.

A machine's environment holds other programs' variables: there only names like ours are told. `.env`
is ours, so every name in it that is no setting is told, by its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

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
        "TELEGRAM_CHAT_ID", "TELEGRAM_API_ID", "TELEGRAM_API_HASH", "META_API_KEY", "META_APP_ID",
        "TWILIO_API_KEY", "TWILIO_API_SECRET", "TWILIO_REGION", "TWILIO_EDGE",
    }
)  # fmt: skip
"""Names of other programs: build servers, hosts, providers' own packages."""
OTHERS_HERE = frozenset(
    {
        "DATABASE_SSL", "DATABASE_USER", "LOG_FORMATTER", "PUBLIC_API_URL", "REDIS_USER",
        "TELEGRAM_TO", "TWILIO_LOG_LEVEL", "TWILIO_PROFILE",
    }
)  # fmt: skip
"""The same in a machine's environment; in `.env` they are meant for us."""
OTHERS_END = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
"""Endings, or `_PORT_` within, of what orchestrators set for every service."""
HANDED_ON_BEGIN = (
    "AWS_", "AZURE_", "CADDY_", "COMPOSE_", "DOCKER_", "GOOGLE_", "OPENAI_", "OLLAMA_", "OTEL_",
    "POSTGRES_", "PYTHON", "UV_", "UVICORN_",
)  # fmt: skip
HANDED_ON_END = ("_API_KEY", "_BASE_URL")
HANDED_ON = frozenset(
    {
        "HF_TOKEN", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "TZ", "LANG", "PATH",
        "AGENT_FOLDER", "IMAGE", "MEMORY", "WEB_PORT",
    }
)  # fmt: skip
"""Names in `.env` for compose, for providers' packages or for Python: known, so not told."""

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
    told: list[Finding] = []
    others = []
    for line in file:
        place = f".env, line {line.number}"
        if not line.name:
            told.append(
                warning(place, "it can't be read", "write NAME=value, and # before a remark")
            )
        elif line.name not in known and not _is_handed_on(line.name):
            found = _judged(line.name, _near(line.name, known), place, given)
            told += found
            others += [] if found else [f"{line.name} (line {line.number})"]
    told += _twice(file)
    for name in sorted(set(environment) - {line.name for line in file} - set(known)):
        if name.startswith(OURS_ALONE + SHARED) and not _is_anothers(name):
            told += _judged(name, _near(name, known), "the environment", given)
    if others:
        told.append(Finding(".env", Level.OK, f"no settings of Answerback: {', '.join(others)}"))
    return told


def _judged(name: str, meant: str, place: str, given: Collection[str]) -> Sequence[Finding]:
    """A name that no setting has, if it must be told. Where the right one has a value too, it is
    another program's."""
    if meant:
        says, fix = f"{place} sets it, and nothing reads it", f"did you mean {meant}?"
        return [] if meant in given else [warning(name, says, fix)]
    if not name.startswith(OURS_ALONE):
        return []
    fix = "see .env.example for the names, or take it away"
    if name.endswith("_API_KEY"):
        fix = "a model's key has the name that its provider gives it, such as OPENAI_API_KEY"
    return [warning(name, f"{place} sets it, and no setting has this name", fix)]


def _twice(file: Sequence[Line]) -> Sequence[Finding]:
    found = []
    last: dict[str, int] = {}
    for line in file:
        if line.name and line.name in last:
            says = f".env has it in line {last[line.name]} and in line {line.number}"
            found.append(warning(line.name, says, "the last one counts: take the other away"))
        last[line.name] = line.number
    return found


def _is_anothers(name: str) -> bool:
    return name in OTHERS | OTHERS_HERE or name.endswith(OTHERS_END) or "_PORT_" in name


def _is_handed_on(name: str) -> bool:
    if name in MEANT or (name.startswith(OURS_ALONE) and name not in OTHERS):
        return False
    begins = name.startswith(HANDED_ON_BEGIN) or name.endswith(HANDED_ON_END)
    return begins or name in HANDED_ON or name in OTHERS


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
