"""A part as it is stored: the call that sends it, fixed down to its parameters.

The address is not in it, because a chat may move between composing and sending.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

NO_PREVIEW = {"is_disabled": True}


@dataclass(frozen=True, slots=True)
class Upload:
    """A text file that is sent along as parameter `field`."""

    field: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Wire:
    """One call. `chat` is the chat that the quoted message is in; message ids mean nothing
    anywhere else. `plain` is what is sent without any formatting when Telegram refuses this
    form, None when there is no plainer one. `presses` is the full data of buttons whose
    data is too long for Telegram, by the key that stands for it."""

    method: str
    params: Mapping[str, object]
    upload: Upload | None = None
    chat: str = ""
    plain: str | None = None
    presses: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        """The same part gives the same JSON, whenever it is encoded."""
        stored: dict[str, object] = {"method": self.method, "params": dict(self.params)}
        if self.upload is not None:
            stored["upload"] = [self.upload.field, self.upload.name, self.upload.content]
        if self.chat:
            stored["chat"] = self.chat
        if self.plain is not None:
            stored["plain"] = self.plain if self.plain != self.params.get("text") else True
        if self.presses:
            stored["presses"] = dict(self.presses)
        return json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def decode(text: str) -> Wire:
        """Raises ValueError for what `encode` did not write."""
        try:
            stored = json.loads(text)
            params, upload, plain = stored["params"], stored.get("upload"), stored.get("plain")
            return Wire(
                method=stored["method"],
                params=params,
                upload=Upload(*upload) if upload else None,
                chat=stored.get("chat", ""),
                plain=params["text"] if plain is True else plain,
                presses=stored.get("presses", {}),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("not a stored Telegram message") from error

    def unquoted(self) -> Wire:
        """The same part that hangs on no message."""
        params = {k: v for k, v in self.params.items() if k != "reply_parameters"}
        return replace(self, params=params, chat="")

    def plainest(self) -> Wire | None:
        """The same words without entities, buttons, file or quote."""
        if self.plain is None:
            return None
        return Wire("sendMessage", {"text": self.plain, "link_preview_options": NO_PREVIEW})
