"""What one WhatsApp sender at Twilio needs to know of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bot.domain.errors import ConfigurationError

TWILIO_API = "https://api.twilio.com"
TWILIO_MESSAGING = "https://messaging.twilio.com"
TWILIO_MONITOR = "https://monitor.twilio.com"
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


@dataclass(frozen=True, slots=True)
class TwilioConfig:
    """One sender and the account that it belongs to. Times are in seconds.

    `status_callback` is the public URL of our status route, empty for none: then statuses
    are polled. `second_auth_token` and `shared_key` are further secrets that sign webhooks.
    `template_sid` is an approved template (`HX...`) for a closed window; in the values of
    `template_variables` the word `{reply}` stands for the reply's text.
    `choice_templates` gives, for a number of choices, the content (`HX...`) that shows them
    as buttons: its variables are 1 the text, then a label and an id for each choice.
    `messaging_url` and `monitor_url` follow `api_url` where they are empty.
    """

    account_sid: str
    auth_token: str = field(repr=False)
    sender: str
    api_url: str = TWILIO_API
    messaging_url: str = ""
    monitor_url: str = ""
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
        return self._beside(self.messaging_url, TWILIO_MESSAGING)

    @property
    def monitor_base(self) -> str:
        return self._beside(self.monitor_url, TWILIO_MONITOR)

    def _beside(self, given: str, at_twilio: str) -> str:
        """A further base: the one given, else Twilio's own, else the stand-in's only one."""
        own = at_twilio if self.api_url == TWILIO_API else self.api_url
        return given.rstrip("/") or own

    @property
    def sandbox(self) -> bool:
        return self.sender == SANDBOX_SENDER
