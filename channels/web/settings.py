"""A page's part of the environment."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class WebSettings(BaseSettings):
    """The web's variables. `web_secret` signs the tokens of clients; without it one is made."""

    web: bool = False
    web_secret: str = Field("", repr=False)
