"""A sender's part of the environment."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

TWILIO_API = "https://api.twilio.com"
TWILIO_MESSAGING = "https://messaging.twilio.com"
SANDBOX_SENDER = "whatsapp:+14155238886"
"""Twilio's shared number; people join it with a code and fall out after 72 hours."""

STATUS_PATH = "/whatsapp/status"

_PREFIX = "whatsapp:"
_NUMBER = re.compile(r"\+[0-9]{5,20}")
_ORNAMENTS = re.compile(r"[ ().-]")
_ACCOUNT = re.compile(r"AC[0-9A-Za-z]+")


def _sender(value: str) -> str:
    bare = value.strip()
    if bare[: len(_PREFIX)].lower() == _PREFIX:
        bare = bare[len(_PREFIX) :]
    number = _ORNAMENTS.sub("", bare)
    if not _NUMBER.fullmatch(number):
        raise ValueError(
            "must be a number in international form, such as whatsapp:+14155238886 or "
            "+14155238886, or several of them, comma separated"
        )
    return _PREFIX + number


class TwilioSettings(BaseSettings, defer_build=True):
    """Twilio's variables: senders, comma separated, of one account. Times in seconds.

    `twilio_second_auth_token` and `twilio_shared_key` are further secrets that sign webhooks.
    `twilio_template_sid` is an approved template (`HX...`) for a closed window; in the values
    of `twilio_template_variables` the word `{reply}` stands for the reply's text.
    `twilio_choice_templates` gives, for a number of choices, the content (`HX...`) that shows
    them as buttons: its variables are 1 the text, then a label and an id for each choice.
    """

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

    @property
    def twilio_messaging_base(self) -> str:
        """The base of the messaging API: Twilio's own, or the only one of a stand-in."""
        return TWILIO_MESSAGING if self.twilio_api_url == TWILIO_API else self.twilio_api_url

    @property
    def twilio_status_callback(self) -> str:
        """The public URL of our status route, empty for none: then statuses are polled."""
        return self.public_url and self.public_url + STATUS_PATH

    @property
    def twilio_senders(self) -> Sequence[str]:
        """Our senders as Twilio writes them, `whatsapp:+1...`."""
        return self.twilio_whatsapp_from.split(",")

    @field_validator("twilio_account_sid")
    @classmethod
    def _twilio_account(cls, value: str) -> str:
        if value and not _ACCOUNT.fullmatch(value):
            raise ValueError("must be the account's SID (AC...)")
        return value

    @field_validator("twilio_whatsapp_from")
    @classmethod
    def _twilio_from(cls, value: str) -> str:
        """Our senders as Twilio writes them: `whatsapp:+1...`, from that or from `+1...`."""
        found = [_sender(one) for one in value.split(",")] if value else []
        if len(set(found)) < len(found):
            raise ValueError("names a sender twice")
        return ",".join(found)

    @field_validator("twilio_template_variables", "twilio_choice_templates", mode="before")
    @classmethod
    def _twilio_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
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
        if "_" in (urlsplit(self.public_url).hostname or ""):
            raise ValueError("PUBLIC_URL: Twilio refuses host names with an underscore")
        return self
