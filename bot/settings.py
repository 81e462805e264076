"""Settings: the environment and `.env`, read once, checked whole, handed out in pieces."""

from __future__ import annotations

import json
import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.domain.errors import ConfigurationError
from bot.domain.lease import LeaseTerms
from bot.domain.retry import RetryPolicy
from bot.domain.terms import Burst, IntakeTerms, Terms, WorkTerms
from bot.domain.verdict import Policy, UncertainDelivery

DEFAULT_DATABASE = "sqlite:///data/answerback.db"
_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class TelegramMode(StrEnum):
    """How updates come in."""

    WEBHOOK = "webhook"
    POLLING = "polling"


class LogLevel(StrEnum):
    """From which level on our own lines are written."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


class Settings(BaseSettings):
    """Every variable that Answerback reads. Times in seconds."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    database_url: str = DEFAULT_DATABASE
    database_pool: int = Field(8, ge=1, le=200)
    redis_url: str = ""
    public_url: str = ""
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    agent: str = "echo"
    agent_secret: str = Field("", repr=False)
    agent_timeout: float = Field(600.0, gt=0)
    llm_model: str = ""
    llm_base_url: str = ""
    llm_system_prompt_file: Path | None = None
    llm_history_tokens: int = Field(8000, ge=0)
    llm_timeout: float = Field(120.0, gt=0)
    tools: str = ""
    timezone: str = "UTC"
    texts_file: Path | None = None
    language: str = "en"
    log_level: LogLevel = LogLevel.INFO
    log_format: LogFormat = LogFormat.CONSOLE
    otel_exporter_otlp_endpoint: str = ""
    otel_exporter_otlp_headers: str = Field("", repr=False)
    otel_service_name: str = "answerback"
    holder_name: str = ""

    telegram_bot_token: str = Field("", repr=False)
    telegram_mode: TelegramMode | None = None
    telegram_webhook_secret: str = Field("", repr=False)
    telegram_api_url: str = "https://api.telegram.org"
    telegram_read_timeout: float = Field(60.0, gt=0)
    telegram_channel_posts: bool = False
    max_parts: int = Field(10, ge=1, le=100)

    twilio_account_sid: str = ""
    twilio_auth_token: str = Field("", repr=False)
    twilio_second_auth_token: str = Field("", repr=False)
    twilio_shared_key: str = Field("", repr=False)
    twilio_whatsapp_from: str = ""
    twilio_api_url: str = "https://api.twilio.com"
    twilio_fallback_url: str = ""
    twilio_template_sid: str = ""
    twilio_template_variables: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict)
    twilio_choice_templates: Annotated[dict[int, str], NoDecode] = Field(default_factory=dict)
    twilio_typing: bool = True
    twilio_timeout: float = Field(20.0, gt=0)

    lease_seconds: float = Field(15.0, gt=0)
    heartbeat_seconds: float = Field(5.0, gt=0)
    max_failures: int = Field(3, ge=1)
    run_deadline: float = Field(900.0, gt=0)
    shutdown_grace: float = Field(30.0, ge=0)
    concurrency: int = Field(100, ge=1)
    still_working_after: float = Field(45.0, gt=0)
    answer_max_age: float = Field(86_400.0, gt=0)
    uncertain_delivery: UncertainDelivery = UncertainDelivery.ASK

    burst: Burst = Burst.MERGE
    quiet_ms: int = Field(0, ge=0, le=60_000)
    chat_messages_per_minute: int = Field(60, ge=1)
    chat_waiting_max: int = Field(100, ge=1)
    chat_turns_per_day: int = Field(0, ge=0)
    command_words: bool = True
    allowed: Annotated[frozenset[str], NoDecode] = frozenset()

    @field_validator("log_level", mode="before")
    @classmethod
    def _level(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @field_validator("log_format", mode="before")
    @classmethod
    def _format(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("allowed", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        names = (name.strip() for name in re.split(r"[,\s]+", value))
        return frozenset(n.casefold() if n.startswith("@") else n for n in names if n)

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("is no time zone; write one like UTC or Europe/Berlin") from error
        return value

    @field_validator("twilio_template_variables", "twilio_choice_templates", mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError('must be JSON, such as {"1": "{reply}"} or {"3": "HX..."}') from None

    @field_validator(
        "public_url", "twilio_fallback_url", "telegram_api_url", "twilio_api_url", "llm_base_url"
    )
    @classmethod
    def _bare_base(cls, value: str) -> str:
        if not value:
            return value
        parts = urlsplit(value.strip())
        spaced = re.search(r"\s", value.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname or spaced:
            raise ValueError("must be a base such as https://bot.example.com")
        if parts.query or parts.fragment:
            raise ValueError("must not carry a query or a fragment")
        return value.strip().rstrip("/")

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str) -> str:
        if value and not value.startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("must be such as redis://host:6379/0")
        return value

    @field_validator("telegram_webhook_secret")
    @classmethod
    def _secret_alphabet(cls, value: str) -> str:
        if value and not _SECRET.fullmatch(value):
            raise ValueError("must be 1 to 256 of A-Z a-z 0-9 _ - (Telegram takes no others)")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        if self.heartbeat_seconds * 2 > self.lease_seconds:
            raise ValueError(
                "HEARTBEAT_SECONDS must be at most half of LEASE_SECONDS, "
                "so that one lost heartbeat does not lose the lease"
            )
        by_webhook = self.telegram_bot_token and self.mode is TelegramMode.WEBHOOK
        if by_webhook and not self.telegram_webhook_secret:
            raise ValueError(
                "TELEGRAM_WEBHOOK_SECRET is empty: without it anybody could send updates; "
                "set it to a long random word, or set TELEGRAM_MODE=polling"
            )
        if self.twilio_account_sid:
            self._check_twilio()
        return self

    def _check_twilio(self) -> None:
        if not self.twilio_auth_token:
            raise ValueError("TWILIO_AUTH_TOKEN is empty: copy it from Twilio's console")
        if not self.twilio_whatsapp_from:
            raise ValueError("TWILIO_WHATSAPP_FROM is empty: set it to whatsapp:+<your sender>")
        if self.twilio_template_variables and not self.twilio_template_sid:
            raise ValueError(
                "TWILIO_TEMPLATE_SID is empty, but TWILIO_TEMPLATE_VARIABLES is set: name the "
                "approved template (HX...) that they belong to"
            )
        if not self.public_url:
            raise ValueError(
                "PUBLIC_URL is empty: Twilio's signatures are checked against it; "
                "set it to the https address under which Twilio reaches this service"
            )

    @property
    def mode(self) -> TelegramMode:
        """How Telegram's updates come in: polling where there is no PUBLIC_URL."""
        if self.telegram_mode is not None:
            return self.telegram_mode
        return TelegramMode.WEBHOOK if self.public_url else TelegramMode.POLLING

    @property
    def has_platform(self) -> bool:
        """Whether any platform is configured."""
        return bool(self.telegram_bot_token or self.twilio_account_sid)

    def secrets(self) -> tuple[str, ...]:
        """Everything that must never be printed."""
        return (
            self.telegram_bot_token,
            self.telegram_webhook_secret,
            self.twilio_auth_token,
            self.twilio_second_auth_token,
            self.twilio_shared_key,
            self.agent_secret,
            *self.otlp_headers.values(),
        )

    @property
    def otlp_headers(self) -> dict[str, str]:
        """OTEL_EXPORTER_OTLP_HEADERS, which is written as `name=value,name=value`."""
        pairs = (p.partition("=") for p in self.otel_exporter_otlp_headers.split(",") if "=" in p)
        return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}

    def terms(self) -> Terms:
        """The bounds, as the flows take them."""
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


def lend_to_packages() -> None:
    """Put what `.env` says where other people's packages look for their keys. What the
    environment has stays as it is."""
    for name, value in dotenv_values(".env").items():
        if value:
            os.environ.setdefault(name, value)


def read_settings(**overrides: Any) -> Settings:
    """The settings of this process. Raises ConfigurationError that names every variable that
    is wrong, and the fix."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = [_line(fault) for fault in error.errors(include_url=False, include_input=False)]
        raise ConfigurationError("\n".join(lines)) from None


def _line(fault: Any) -> str:
    name = "_".join(str(part) for part in fault["loc"]).upper()
    said = str(fault["msg"]).removeprefix("Value error, ")
    return f"{name}: {said}" if name else said
