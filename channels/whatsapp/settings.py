"""A sender's configuration: its part of the environment, and what is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from bot.domain.errors import ConfigurationError

TWILIO_API = "https://api.twilio.com"
TWILIO_MESSAGING = "https://messaging.twilio.com"
SANDBOX_SENDER = "whatsapp:+14155238886"
"""Twilio's shared number; people join it with a code and fall out after 72 hours."""

_PREFIX = "whatsapp:"
_NUMBER = re.compile(r"\+[0-9]{5,20}")
_ORNAMENTS = re.compile(r"[ ().-]")


def sender_address(value: str) -> str:
    """Our sender as Twilio writes it: `whatsapp:+1...`, from that or from `+1...`.

    Raises ConfigurationError for anything else.
    """
    bare = value.strip()
    if bare[: len(_PREFIX)].lower() == _PREFIX:
        bare = bare[len(_PREFIX) :]
    number = _ORNAMENTS.sub("", bare)
    if not _NUMBER.fullmatch(number):
        raise ConfigurationError(
            "TWILIO_WHATSAPP_FROM must be a number in international form, "
            "such as whatsapp:+14155238886 or +14155238886"
        )
    return _PREFIX + number


def _base(url: str, variable: str) -> str:
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{variable} must be a whole URL such as {TWILIO_API}")
    return url.strip().rstrip("/")


class TwilioSettings(BaseSettings):
    """Twilio's variables. Times in seconds."""

    public_url: str = ""
    twilio_account_sid: str = ""
    twilio_auth_token: str = Field("", repr=False)
    twilio_second_auth_token: str = Field("", repr=False)
    twilio_shared_key: str = Field("", repr=False)
    twilio_whatsapp_from: str = ""
    twilio_api_url: str = TWILIO_API
    twilio_fallback_url: str = ""
    twilio_template_sid: str = ""
    twilio_template_variables: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict)
    twilio_choice_templates: Annotated[dict[int, str], NoDecode] = Field(default_factory=dict)
    twilio_typing: bool = True
    twilio_timeout: float = Field(20.0, gt=0)

    @field_validator("twilio_template_variables", "twilio_choice_templates", mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise ValueError('must be JSON, such as {"1": "{reply}"} or {"3": "HX..."}') from None

    @model_validator(mode="after")
    def _twilio_fits_together(self) -> TwilioSettings:
        if not self.twilio_account_sid:
            return self
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
        return self


@dataclass(frozen=True, slots=True)
class TwilioConfig:
    """One sender and the account that it belongs to. Times are in seconds.

    `status_callback` is the public URL of our status route, empty for none: then statuses
    are polled. `second_auth_token` and `shared_key` are further secrets that sign webhooks.
    `template_sid` is an approved template (`HX...`) for a closed window; in the values of
    `template_variables` the word `{reply}` stands for the reply's text.
    `choice_templates` gives, for a number of choices, the content (`HX...`) that shows them
    as buttons: its variables are 1 the text, then a label and an id for each choice.
    `messaging_url` follows `api_url` where it is empty.
    """

    account_sid: str
    auth_token: str = field(repr=False)
    sender: str
    api_url: str = TWILIO_API
    messaging_url: str = ""
    status_callback: str = ""
    second_auth_token: str = field(default="", repr=False)
    shared_key: str = field(default="", repr=False)
    template_sid: str = ""
    template_variables: Mapping[str, str] = field(default_factory=dict)
    choice_templates: Mapping[int, str] = field(default_factory=dict)
    typing: bool = True
    connect_timeout: float = 5.0
    total_timeout: float = 20.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"AC[0-9A-Za-z]+", self.account_sid):
            raise ConfigurationError("TWILIO_ACCOUNT_SID must be the account's SID (AC...)")
        if not self.auth_token:
            raise ConfigurationError("TWILIO_AUTH_TOKEN is empty: copy it from Twilio's console")
        if self.status_callback:
            host = urlsplit(_base(self.status_callback, "PUBLIC_URL")).hostname or ""
            if "_" in host:
                raise ConfigurationError("PUBLIC_URL: Twilio refuses host names with an underscore")
        object.__setattr__(self, "sender", sender_address(self.sender))
        object.__setattr__(self, "api_url", _base(self.api_url, "TWILIO_API_URL"))

    @property
    def messaging_base(self) -> str:
        """The base of the messaging API: the one given, else Twilio's own, else the only one of
        a stand-in."""
        own = TWILIO_MESSAGING if self.api_url == TWILIO_API else self.api_url
        return self.messaging_url.rstrip("/") or own

    @property
    def sandbox(self) -> bool:
        return self.sender == SANDBOX_SENDER
