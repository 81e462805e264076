"""The web's part of the environment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode

from bot.domain.decisions.network import Network, networks
from channels.web.access.origins import LOOPBACK, Origins, bare_origin

SHORTEST_SECRET = 32
"""Bytes: a shorter one can be guessed from a token."""


class WebSettings(BaseSettings, defer_build=True):
    """The web's variables.

    `web` turns it on; where nothing at all is configured, `answerback up` serves it on loopback.
    Of the secrets two may be given, comma separated: the first signs, and both are taken, so that
    one can be changed without signing anybody out. Without `web_secret` one is made and kept in
    the database. `web_files` is a folder for files, shared by all processes; without it they are
    kept in the database. `web_file_max` counts bytes, of all files of a message.
    """

    host: str = "127.0.0.1"
    public_url: str = ""
    web: bool | None = None
    web_secret: Annotated[tuple[str, ...], NoDecode] = Field((), repr=False)
    web_identity_secret: Annotated[tuple[str, ...], NoDecode] = Field((), repr=False)
    web_origins: Annotated[frozenset[str], NoDecode] = frozenset()
    web_proxies: Annotated[tuple[Network, ...], NoDecode] = ()
    web_demo: bool | None = None
    web_files: Path | None = None
    web_file_max: int = Field(10_000_000, ge=1_000, le=100_000_000)
    web_visitor_per_minute: int = Field(120, ge=1)
    web_address_per_minute: int = Field(600, ge=1)

    @property
    def web_shows_demo(self) -> bool:
        """Tell whether `/web/` is a page with the widget: where nobody else's visitors come."""
        if self.web_demo is not None:
            return self.web_demo
        return not self.public_url and self.host in LOOPBACK

    @property
    def web_allowed(self) -> Origins:
        """The origins that may use the API."""
        public = bare_origin_of(self.public_url)
        return Origins(self.web_origins, public, only_here=self.web is None)

    @field_validator("web_secret", "web_identity_secret", mode="before")
    @classmethod
    def _web_secrets(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        secrets = tuple(part.strip() for part in value.split(",") if part.strip())
        if not "".join(secrets).isprintable() or any(quote in value for quote in "\"'"):
            raise ValueError("holds quotes or a control character: take them out")
        if len(secrets) > 2:
            raise ValueError("takes one secret, or the new and the old one with a comma between")
        if any(len(secret.encode()) < SHORTEST_SECRET for secret in secrets):
            raise ValueError(
                f"must have {SHORTEST_SECRET} bytes or more, such as from: openssl rand -hex 32"
            )
        return secrets

    @field_validator("web_origins", mode="before")
    @classmethod
    def _web_origins(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        origins = {text: bare_origin(text) for text in _listed(value)}
        wrong = [text for text, origin in origins.items() if origin is None]
        if wrong:
            raise ValueError(
                f"{wrong[0]} is no origin; write scheme, host and port as the browser's address "
                "bar shows them: https://www.example.com,http://localhost:3000"
            )
        return frozenset(origins.values())

    @field_validator("web_proxies", mode="before")
    @classmethod
    def _web_proxies(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return networks(value)

    @field_validator("web_files")
    @classmethod
    def _web_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_absolute():
            raise ValueError("must be a whole path, such as /var/lib/answerback/files")
        return value

    @model_validator(mode="after")
    def _web_fits_together(self) -> WebSettings:
        if set(self.web_secret) & set(self.web_identity_secret):
            raise ValueError(
                "WEB_IDENTITY_SECRET must differ from WEB_SECRET: the site knows it, and could "
                "then make tokens of its own"
            )
        return self


def bare_origin_of(url: str) -> str:
    """The origin of a base with or without a path; empty for none."""
    return bare_origin("/".join(url.split("/")[:3])) or ""


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[,\s]+", value) if part)
