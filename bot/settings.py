"""Settings: read once from the environment and `.env`, checked together, handed out in parts.

A channel's own variables are defined with the channel; `settings_of` joins these parts to this one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from bot.domain.decisions.network import Network, networks
from bot.domain.decisions.retry import RETRY, RetryPolicy
from bot.domain.decisions.terms import Burst, IntakeTerms, LeaseTerms, Terms, WorkTerms
from bot.domain.decisions.verdict import Policy, UncertainDelivery
from bot.domain.errors import ConfigurationError
from bot.domain.operators import OperatorAccount, operators_of

T = TypeVar("T", bound="ChannelList")
DEFAULT_DATABASE = "sqlite:///data/answerback.db"
FILE = ".env"
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u00ab": "\u00bb"}
_REFERENCE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{[^}]*\}\}")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]+)|([0-9]+(?:[, ][0-9]+)+)")
"""A number with its unit, or one with separators."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_BYTES = {"b": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_IN_WORDS = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number, in digits",
    "int_from_float": "must be a whole number, in digits",
    "float_parsing": "must be a number, in digits",
}
"""Our words for a wrong value, by pydantic's type of error."""
_NOT_A_BASE = ("database_url", "redis_url")
"""The `..._url` settings that are not a base to which paths are added."""


class LogLevel(StrEnum):
    """The lowest level at which our own lines are logged."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class LogFormat(StrEnum):
    """The look of log lines."""

    CONSOLE = "console"
    JSON = "json"


class ChannelList(BaseSettings):
    """The one variable on which the set of all others depends: further channels, by their
    modules."""

    model_config = SettingsConfigDict(
        env_file=FILE,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
        # Only the class that `settings_of` makes of all parts is ever instantiated.
        defer_build=True,
    )

    channels: Annotated[tuple[str, ...], NoDecode] = ()

    @field_validator("channels", mode="before")
    @classmethod
    def _modules(cls, value: Any) -> Any:
        return tuple(_names(value)) if isinstance(value, str) else value


class Settings(ChannelList):
    """Every variable that Answerback reads, except those of the channels. Times are in seconds."""

    # Before the address: its validator puts the password into it.
    database_password: str = Field("", repr=False)
    database_url: str = DEFAULT_DATABASE
    database_pool: int = Field(8, ge=1, le=200)
    redis_url: str = ""
    public_url: str = ""
    host: str = "127.0.0.1"
    port: int = Field(8080, ge=0, le=65535)
    web_proxies: Annotated[tuple[Network, ...], NoDecode] = ()
    timezone: str = "UTC"
    texts_file: Path | None = None
    language: str = "en"
    holder_name: str = ""
    development: bool = False

    agent: str = "echo"
    agent_secret: str = Field("", repr=False)
    agent_timeout: float = Field(600.0, gt=0)
    demo_seconds: float = Field(20.0, gt=0)
    llm_model: str = ""
    llm_base_url: str = ""
    llm_system_prompt_file: Path | None = None
    llm_history_tokens: int = Field(8000, ge=0)
    llm_timeout: float = Field(120.0, gt=0)
    llm_hand_over: bool = False
    tools: str = ""

    operator_password: str = Field("", repr=False)
    operator_users: Annotated[tuple[str, ...], NoDecode] = Field((), repr=False)
    operator_open: bool = False
    canned_texts: Path | None = None

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
    handoff_patience: float = Field(3600.0, ge=0)
    answer_max_age: float = Field(86_400.0, gt=0)
    uncertain_delivery: UncertainDelivery = UncertainDelivery.ASK
    retention_days: int = Field(90, ge=0)

    burst: Burst = Burst.MERGE
    quiet_ms: int = Field(0, ge=0, le=60_000)
    chat_messages_per_minute: int = Field(60, ge=1)
    chat_waiting_max: int = Field(100, ge=1)
    chat_turns_per_day: int = Field(0, ge=0)
    command_words: bool = True
    data_commands: bool = True
    allowed: Annotated[frozenset[str], NoDecode] = frozenset()

    @field_validator("log_level", "log_format", mode="before")
    @classmethod
    def _any_case(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        value = value.strip()
        return value.upper() if info.field_name == "log_level" else value.lower()

    @field_validator("agent")
    @classmethod
    def _form(cls, value: str) -> str:
        return value if ":" in value else value.lower()

    @field_validator("allowed", mode="before")
    @classmethod
    def _people(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return frozenset(n.casefold() if n.startswith("@") else n for n in _names(value))

    @field_validator("web_proxies", mode="before")
    @classmethod
    def _proxies(cls, value: Any) -> Any:
        return networks(value) if isinstance(value, str) else value

    @field_validator("operator_users", mode="before")
    @classmethod
    def _operators(cls, value: Any) -> Any:
        return tuple(_names(value)) if isinstance(value, str) else value

    @field_validator("operator_password", "operator_users")
    @classmethod
    def _may_sign_in(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that the credentials are long enough, and that nobody is named twice."""
        if info.field_name == "operator_password":
            operators_of(value, ())
        else:
            operators_of(info.data.get("operator_password", ""), value)
        return value

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
        """Check that no text, also in a list and in a channel's variable, is in quotes, on several
        lines, or an unfilled reference: a file that no shell reads passes on all of these."""
        members = value if isinstance(value, tuple | frozenset) else (value,)
        for text in (member for member in members if isinstance(member, str)):
            if wrong := _not_meant(text):
                raise ValueError(wrong)
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _bare_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that no number, also of a channel's variable, has a unit or separators."""
        name = info.field_name or ""
        found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
        if found is None or cls.model_fields[name].annotation not in (int, float):
            return value
        number, unit, parted = found.groups()
        if parted:
            raise ValueError("takes digits alone, and a dot before decimals")
        raise ValueError(_without_unit(name, cls.model_fields[name].annotation, number, unit))

    @field_validator("*")
    @classmethod
    def _bare_base(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that each `..._URL`, also of a channel, is an address to which paths can be
        added."""
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
        """The address, with DATABASE_PASSWORD put into it, percent-encoded."""
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
        """Everything that must never be printed: each field with `repr=False`, and the values and
        credentials in them."""
        hidden = [name for name, field in type(self).model_fields.items() if not field.repr]
        values = [getattr(self, name) for name in hidden]
        listed = chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values)
        credentials = (one.credential for one in self.operators)
        return (*listed, *self.otlp_headers.values(), *credentials)

    @property
    def operators(self) -> Sequence[OperatorAccount]:
        """Those who may sign in to the operator's page. If there is nobody, there is no page."""
        return operators_of(self.operator_password, self.operator_users)

    @property
    def otlp_headers(self) -> dict[str, str]:
        """OTEL_EXPORTER_OTLP_HEADERS, which is written as `name=value,name=value`."""
        pairs = (p.partition("=") for p in self.otel_exporter_otlp_headers.split(",") if "=" in p)
        return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}

    def terms(self) -> Terms:
        """The settings that bound intake, work and decisions, as values for those parts."""
        return Terms(
            work=WorkTerms(
                lease=LeaseTerms(self.lease_seconds, self.heartbeat_seconds),
                run_deadline=self.run_deadline,
                concurrency=self.concurrency,
                shutdown_grace=self.shutdown_grace,
                still_working_after=self.still_working_after,
                handoff_patience=self.handoff_patience,
            ),
            intake=IntakeTerms(
                burst=self.burst,
                quiet=self.quiet_ms / 1000,
                messages_per_minute=self.chat_messages_per_minute,
                waiting_max=self.chat_waiting_max,
                turns_per_day=self.chat_turns_per_day,
                words=self.command_words,
                data=self.data_commands,
                allowed=self.allowed,
            ),
            policy=Policy(
                answer_max_age=self.answer_max_age,
                uncertain=self.uncertain_delivery,
                retry=RetryPolicy(max_failures=self.max_failures),
            ),
        )


def _without_unit(name: str, kind: object, number: str, unit: str) -> str:
    """Advice on a number with a unit: the same amount in the unit of this setting."""
    if name.endswith("file_max"):
        counts, factor = "bytes", _BYTES.get(unit[0].lower())
    else:
        short = "ms" if unit.lower().startswith(("ms", "mil")) else unit[0].lower()
        factor = _SECONDS.get(short)
        if name.endswith("_ms"):
            counts, factor = "milliseconds", factor and factor * 1000
        elif name.endswith("_days"):
            counts, factor = "days", factor and factor / _SECONDS["d"]
        elif kind is float:
            counts = "seconds"
        else:
            return f"takes a number alone, without a unit: {number}"
    if factor is None:
        return f"takes a number of {counts}, without a unit"
    meant = f"{float(number) * factor:.3f}".rstrip("0").rstrip(".")
    return f"takes a number of {counts}, without a unit: {meant}"


def _names(listed: str) -> list[str]:
    """The names in a list, separated by commas or blanks."""
    return [name for name in re.split(r"[,\s]+", listed) if name]


def settings_of(parts: Iterable[type[BaseSettings]]) -> type[Settings]:
    """Settings with these parts: one class, so that one error names everything that is wrong."""
    # Given again: of several bases, the `model_config` of the last one would win.
    given = {"__module__": __name__, "model_config": Settings.model_config}
    return type("Settings", (Settings, *parts), given)


def read(kind: type[T], **overrides: Any) -> T:
    """The settings of this process. Raises ConfigurationError that names every wrong variable and
    the fix."""
    # dotenv warns of a line that it can't read at each reading, and does not say how to mend it.
    logging.getLogger("dotenv.main").setLevel(logging.ERROR)
    try:
        return kind(**overrides)
    except ValidationError as error:
        lines = []
        for fault in error.errors(include_url=False, include_input=False):
            name = "_".join(str(part) for part in fault["loc"]).upper()
            said = _IN_WORDS.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
            said = said.replace("Input should be", "must be", 1)
            lines.append(f"{name}: {said}" if name else said)
        raise ConfigurationError("\n".join(lines)) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{FILE} is not UTF-8: save it as UTF-8") from error
    except UnicodeEncodeError:
        raise ConfigurationError(
            "a variable of the environment is not UTF-8: write its value anew"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{FILE} can't be read: {error.strerror}") from error


class Line(NamedTuple):
    """A line of `.env`. `name` is in capitals, and empty if the line can't be read; `given`: the
    name has a value."""

    number: int
    name: str
    given: bool


def environment_names() -> frozenset[str]:
    """The names, in capitals, that have a value in the environment."""
    return frozenset(name.upper() for name, value in os.environ.items() if value.strip())


def file_lines() -> Sequence[Line]:
    """The lines of `.env`; none if there is no such file."""
    try:
        text = Path(FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []  # `read` reports a file that can't be read
    lines = []
    for found in parse_stream(StringIO(text)):
        if found.key is not None:
            # The parser counts the blank lines before a statement as part of it.
            before = found.original.string
            number = found.original.line + before[: len(before) - len(before.lstrip())].count("\n")
            lines.append(Line(number, found.key.upper(), bool((found.value or "").strip())))
        elif found.error:
            lines.append(Line(found.original.line, "", given=False))
    return lines


def _not_meant(text: str) -> str:
    """The reason why a variable's text can't be meant as it is; empty if it can."""
    if not text.isprintable():
        return "holds a line break or another control character: take it out"
    if text[1:] and _QUOTES.get(text[0]) == text[-1]:
        return "stands in quotes, which would be a part of it: take them off"
    if _REFERENCE.fullmatch(text):
        return "is a reference that nobody filled in: write what it stands for"
    return ""


def lend_to_packages() -> None:
    """Put the values of `.env` into the environment, where other people's packages, and agents,
    look for their keys. A value that the environment has already is kept; only a key
    (`..._API_KEY`) is stripped. Raises ConfigurationError for a key that can't be meant as it is,
    such as one in quotes."""
    for name, value in {**dotenv_values(FILE), **os.environ}.items():
        if not value or (name in os.environ and not name.endswith("_API_KEY")):
            continue
        bare = value.strip()
        if name.endswith("_API_KEY") and (wrong := _not_meant(bare)):
            raise ConfigurationError(f"{name}: {wrong}")
        os.environ[name] = bare
