"""Settings: the environment and `.env`, read once, checked whole, handed out in pieces.

A channel's variables stand with the channel: `settings_of` puts its part and this one together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.domain.errors import ConfigurationError
from bot.domain.retry import RETRY, RetryPolicy
from bot.domain.terms import Burst, IntakeTerms, LeaseTerms, Terms, WorkTerms
from bot.domain.verdict import Policy, UncertainDelivery

T = TypeVar("T", bound="ChannelList")
DEFAULT_DATABASE = "sqlite:///data/answerback.db"
_NOT_A_BASE = ("database_url", "redis_url")
"""The addresses that are no base to which paths are added."""


class LogLevel(StrEnum):
    """The level from which on our own lines are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """The look of log lines."""

    CONSOLE = "console"
    JSON = "json"


class ChannelList(BaseSettings):
    """The one variable that says which others there are: further channels, by their modules."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
        # Of these classes and those of the channels only the one that is made of all is read.
        defer_build=True,
    )

    channels: Annotated[tuple[str, ...], NoDecode] = ()

    @field_validator("channels", mode="before")
    @classmethod
    def _modules(cls, value: Any) -> Any:
        return tuple(_names(value)) if isinstance(value, str) else value


class Settings(ChannelList):
    """Every variable that Answerback reads but those of the channels. Times in seconds."""

    # Before the address, which it becomes a part of.
    database_password: str = Field("", repr=False)
    database_url: str = DEFAULT_DATABASE
    database_pool: int = Field(8, ge=1, le=200)
    redis_url: str = ""
    public_url: str = ""
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    timezone: str = "UTC"
    texts_file: Path | None = None
    language: str = "en"
    holder_name: str = ""

    agent: str = "echo"
    agent_secret: str = Field("", repr=False)
    agent_timeout: float = Field(600.0, gt=0)
    llm_model: str = ""
    llm_base_url: str = ""
    llm_system_prompt_file: Path | None = None
    llm_history_tokens: int = Field(8000, ge=0)
    llm_timeout: float = Field(120.0, gt=0)
    tools: str = ""

    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.CONSOLE
    otel_exporter_otlp_endpoint: str = ""
    otel_exporter_otlp_headers: str = Field("", repr=False)
    otel_service_name: str = "answerback"

    lease_seconds: float = Field(15.0, gt=0)
    heartbeat_seconds: float = Field(5.0, gt=0)
    max_failures: int = Field(RETRY.max_failures, ge=1)
    run_deadline: float = Field(900.0, gt=0)
    shutdown_grace: float = Field(30.0, ge=0)
    concurrency: int = Field(100, ge=1)
    still_working_after: float = Field(45.0, gt=0)
    answer_max_age: float = Field(86_400.0, gt=0)
    uncertain_delivery: UncertainDelivery = UncertainDelivery.ASK
    retention_days: int = Field(90, ge=0)

    burst: Burst = Burst.MERGE
    quiet_ms: int = Field(0, ge=0, le=60_000)
    chat_messages_per_minute: int = Field(60, ge=1)
    chat_waiting_max: int = Field(100, ge=1)
    chat_turns_per_day: int = Field(0, ge=0)
    command_words: bool = True
    allowed: Annotated[frozenset[str], NoDecode] = frozenset()

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _any_case(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        value = value.strip()
        return value.upper() if info.field_name == "log_level" else value.lower()

    @field_validator("allowed", mode="before")
    @classmethod
    def _people(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return frozenset(n.casefold() if n.startswith("@") else n for n in _names(value))

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("is no time zone; write one like UTC or Europe/Berlin") from error
        return value

    @field_validator("*")
    @classmethod
    def _as_meant(cls, value: Any) -> Any:
        """No variable, the channels' neither, stands in quotes or in several lines: a file that
        was not read by a shell hands on both."""
        if isinstance(value, str) and not value.isprintable():
            raise ValueError("holds a line break or another control character: take it out")
        if isinstance(value, str) and value[1:] and value[0] == value[-1] and value[0] in "\"'":
            raise ValueError("stands in quotes, which would be a part of it: take them off")
        return value

    @field_validator("*")
    @classmethod
    def _bare_base(cls, value: Any, info: ValidationInfo) -> Any:
        """Every `..._URL`, the channels' too, is an address to which paths are added."""
        name = info.field_name or ""
        if not value or not name.endswith("_url") or name in _NOT_A_BASE:
            return value
        parts = urlsplit(value)
        spaced = re.search(r"\s", value)
        if parts.scheme not in ("http", "https") or not parts.hostname or spaced:
            raise ValueError("must be a base such as https://bot.example.com")
        if parts.query or parts.fragment:
            raise ValueError("must not carry a query or a fragment")
        return value.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _with_password(cls, value: str, info: ValidationInfo) -> str:
        """The address, with DATABASE_PASSWORD in it as addresses spell such characters."""
        scheme, _, rest = value.partition("://")
        if scheme.startswith("sqlite"):
            return value
        before, at, place = rest.rpartition("@")
        if re.search(r"[/?#@]", before):
            raise ValueError(
                "holds a /, ?, # or @ before the host: write the password, as it is, into "
                "DATABASE_PASSWORD"
            )
        password = info.data.get("database_password")
        if not password:
            return value
        if not at or not before or ":" in before:
            raise ValueError(
                "must name a user and no password while DATABASE_PASSWORD is set: "
                "postgresql://user@host/database"
            )
        return f"{scheme}://{before}:{quote(password, safe='')}@{place}"

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        if value and not value.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must be such as redis://host:6379/0")
        return value

    @model_validator(mode="after")
    def _lease_fits_heartbeat(self) -> Settings:
        if self.heartbeat_seconds * 2 > self.lease_seconds:
            raise ValueError(
                "HEARTBEAT_SECONDS must be at most half of LEASE_SECONDS, "
                "so that one lost heartbeat does not lose the lease"
            )
        return self

    def secrets(self) -> tuple[str, ...]:
        """Everything that must never be printed: each field that its class keeps out of `repr`."""
        hidden = [name for name, field in type(self).model_fields.items() if not field.repr]
        values = [getattr(self, name) for name in hidden]
        listed = chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values)
        return (*listed, *self.otlp_headers.values())

    @property
    def otlp_headers(self) -> dict[str, str]:
        """OTEL_EXPORTER_OTLP_HEADERS, which is written as `name=value,name=value`."""
        pairs = (p.partition("=") for p in self.otel_exporter_otlp_headers.split(",") if "=" in p)
        return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}

    def terms(self) -> Terms:
        """The bounds, as the rooms take them."""
        return Terms(
            work=WorkTerms(
                lease=LeaseTerms(self.lease_seconds, self.heartbeat_seconds),
                run_deadline=self.run_deadline,
                concurrency=self.concurrency,
                shutdown_grace=self.shutdown_grace,
                still_working_after=self.still_working_after,
            ),
            intake=IntakeTerms(
                burst=self.burst,
                quiet=self.quiet_ms / 1000,
                messages_per_minute=self.chat_messages_per_minute,
                waiting_max=self.chat_waiting_max,
                turns_per_day=self.chat_turns_per_day,
                words=self.command_words,
                allowed=self.allowed,
            ),
            policy=Policy(
                answer_max_age=self.answer_max_age,
                uncertain=self.uncertain_delivery,
                retry=RetryPolicy(max_failures=self.max_failures),
            ),
        )


def _names(listed: str) -> list[str]:
    """The names between commas or blanks."""
    return [name for name in re.split(r"[,\s]+", listed) if name]


def settings_of(parts: Iterable[type[BaseSettings]]) -> type[Settings]:
    """Settings with these parts: one class, so that one error names everything that is wrong."""
    # Named again: of several bases the last one's `model_config` would count.
    given = {"__module__": __name__, "model_config": Settings.model_config}
    return type("Settings", (Settings, *parts), given)


def read(kind: type[T], **overrides: Any) -> T:
    """The settings of this process. Raises ConfigurationError that names every variable that
    is wrong, and the fix."""
    try:
        return kind(**overrides)
    except ValidationError as error:
        lines = []
        for fault in error.errors(include_url=False, include_input=False):
            name = "_".join(str(part) for part in fault["loc"]).upper()
            said = fault["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {said}" if name else said)
        raise ConfigurationError("\n".join(lines)) from None


def lend_to_packages() -> None:
    """Put what `.env` says where other people's packages look for their keys. What the
    environment has stays as it is, but for line breaks and blanks around a key."""
    for name, value in {**dotenv_values(".env"), **os.environ}.items():
        if value and (name not in os.environ or name.endswith("_API_KEY")):
            os.environ[name] = value.strip()
