"""The Bot API by method names and JSON parameters, through python-telegram-bot's Bot."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from telegram import Bot, InputFile
from telegram.request import BaseRequest

from channels.telegram.config import TelegramConfig
from channels.telegram.http import BotHttp

_CONNECTIONS = 256
_POLLING_CONNECTIONS = 8
"""More than one: a call that hangs must not keep the next one from starting."""


class BotApi(Bot):
    """A Bot whose calls take and give JSON, so that what goes out is exactly what was stored
    and an odd answer is never an error. Raises what `BotHttp` raises."""

    @property
    def pools(self) -> tuple[BaseRequest, BaseRequest]:
        return self._request

    async def call(
        self,
        method: str,
        params: Mapping[str, object],
        files: Mapping[str, InputFile] | None = None,
        read_timeout: float | None = None,
    ) -> object:
        """The `result` of one call."""
        data = {**params, **(files or {})}
        limit = self.request.read_timeout if read_timeout is None else read_timeout
        result: object = await self._post(method, data, read_timeout=limit)
        return result

    async def download(self, path: str) -> bytes:
        """The bytes behind a `file_path` of getFile."""
        return await self.request.retrieve(f"{self.base_file_url}/{quote(path)}")


def bot_api(config: TelegramConfig) -> BotApi:
    """The client for one bot: one pool for sending, another for getUpdates."""
    base = config.api_url.rstrip("/")
    return BotApi(
        config.token,
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=BotHttp(_CONNECTIONS, config.connect_timeout, config.read_timeout),
        get_updates_request=BotHttp(
            _POLLING_CONNECTIONS, config.connect_timeout, config.read_timeout
        ),
    )
