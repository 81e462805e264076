"""The part of the environment of our numbers at Meta."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

META_API = "https://graph.facebook.com"
PATH = "/whatsapp-cloud/webhook"

_ID = re.compile(r"[0-9]{1,32}")
_WORD = re.compile(r"(?![\"'`])[\x21-\x7e]+")
_VERSION = re.compile(r"v[0-9]{1,3}\.[0-9]{1,2}")


class Number(NamedTuple):
    """One of our numbers: Meta's id of it, and the token that it is used with."""

    id: str
    token: str


class MetaSettings(BaseSettings, defer_build=True):
    """Meta's variables: numbers of one app. Times in seconds.

    `meta_phone_number_id` are the numbers' ids, comma separated, and `meta_access_token` as many
    tokens, or one for all. `meta_app_secret` signs webhooks: two, comma separated, while one is
    changed. `meta_template_name` is an approved template for a closed window; in the values of
    `meta_template_parameters`, those of its body, the word `{reply}` stands for the reply's text.
    """

    public_url: str = ""
    meta_phone_number_id: str = ""
    meta_access_token: str = Field("", repr=False)
    meta_app_secret: str = Field("", repr=False)
    meta_verify_token: str = Field("", repr=False)
    meta_api_url: str = META_API
    meta_api_version: str = "v26.0"
    meta_template_name: str = ""
    meta_template_language: str = "en"
    meta_template_parameters: Annotated[tuple[str, ...], NoDecode] = ()
    meta_typing: bool = True
    meta_timeout: float = Field(20.0, gt=0)

    @property
    def numbers(self) -> Sequence[Number]:
        """Our numbers, each with its token."""
        ids, tokens = _split(self.meta_phone_number_id), _split(self.meta_access_token)
        each = tokens if len(tokens) == len(ids) else tokens * len(ids)
        return [Number(*pair) for pair in zip(ids, each, strict=True)]

    @property
    def meta_app_secrets(self) -> Sequence[str]:
        """The secrets by one of which a webhook is signed."""
        return _split(self.meta_app_secret)

    @field_validator("meta_phone_number_id")
    @classmethod
    def _meta_numbers(cls, value: str) -> str:
        ids = _split(value)
        if not all(map(_ID.fullmatch, ids)):
            raise ValueError(
                "must be the numbers' ids, digits as in the app's API Setup, comma separated"
            )
        if len(set(ids)) < len(ids):
            raise ValueError("names a number twice")
        return ",".join(ids)

    @field_validator("meta_access_token", "meta_app_secret", "meta_verify_token")
    @classmethod
    def _meta_words(cls, value: str) -> str:
        words = _split(value)
        if not all(map(_WORD.fullmatch, words)):
            raise ValueError("may have no blanks, no quotes around it and no signs beyond ASCII")
        return ",".join(words)

    @field_validator("meta_api_version")
    @classmethod
    def _meta_version(cls, value: str) -> str:
        if not _VERSION.fullmatch(value):
            raise ValueError("must be a version of the Graph API, such as v26.0")
        return value

    @field_validator("meta_template_parameters", mode="before")
    @classmethod
    def _meta_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError('must be a JSON list, such as ["{reply}"]') from None

    @model_validator(mode="after")
    def _meta_fits_together(self) -> MetaSettings:
        if not self.meta_phone_number_id:
            return self
        if not self.meta_access_token:
            raise ValueError(
                "META_ACCESS_TOKEN is empty: set the token of a system user, or for a first try "
                "the one in the app's API Setup"
            )
        ids, tokens = _split(self.meta_phone_number_id), _split(self.meta_access_token)
        if len(tokens) not in (1, len(ids)):
            raise ValueError(
                f"META_ACCESS_TOKEN has {len(tokens)} tokens for {len(ids)} numbers of "
                "META_PHONE_NUMBER_ID: give one for each, in their order, or one for all"
            )
        if not self.meta_app_secret:
            raise ValueError("META_APP_SECRET is empty: copy it from the app's basic settings")
        if not self.meta_verify_token:
            raise ValueError("META_VERIFY_TOKEN is empty: set a long random word")
        if self.meta_template_parameters and not self.meta_template_name:
            raise ValueError(
                "META_TEMPLATE_NAME is empty, but META_TEMPLATE_PARAMETERS is set: name the "
                "approved template that they belong to"
            )
        if not self.public_url:
            raise ValueError(
                "PUBLIC_URL is empty: Meta delivers to it; set it to the https address under "
                "which Meta reaches this service"
            )
        return self


def _split(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]
