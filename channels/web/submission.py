"""A message as a client hands it in: read, checked, and put into our words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.clients.desk import StoredFile
from bot.domain.message import Attachment, ChatKind, Inbound, InboundKind, Sender, clean
from channels.text import is_blank
from channels.web.access.tokens import Session
from channels.web.answers import Wrong
from channels.web.files import handed_in
from channels.web.names import CLIENT_ID, request_id

LONGEST_TEXT = 16_000
"""Characters of a text, and of a button's data."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A client's message: `minted` is the request id as the client knows it. White space at the
    end of a text says nothing, and is no other content."""

    minted: str
    text: str
    button: str
    files: Sequence[StoredFile]

    def message(
        self, session: Session, language: str, attachments: tuple[Attachment, ...]
    ) -> Inbound:
        """The message, with its files as they are kept."""
        named = request_id(session.address, self.minted)
        text = self.button or self.text
        if attachments and is_blank(text):
            text = " ".join(f"[{file.kind}: {file.name}]" for file in attachments)
        kind = InboundKind(attachments[0].kind) if attachments else InboundKind.TEXT
        return Inbound(
            request_id=named,
            address=session.address,
            chat_kind=ChatKind.PRIVATE,
            kind=InboundKind.BUTTON if self.button else kind,
            text=text,
            sender=Sender(session.address.chat, session.name, language=language),
            provider_id=named,
            chat_name=session.name,
            attachments=attachments,
            button=self.button,
        )

    def kept(self, attachments: Sequence[Attachment]) -> str:
        """A message as it came over the wire, with files by their names alone: they are kept
        elsewhere."""
        body = {"request_id": self.minted, "text": self.text, "button": self.button}
        return json.dumps({**body, "files": [file.ref for file in attachments]})


def submitted(body: Mapping[str, Any], largest_files: int) -> Submission:
    """The message in a body. Raises Wrong."""
    minted, text, button = body.get("request_id"), body.get("text", ""), body.get("button", "")
    if not isinstance(minted, str) or not CLIENT_ID.fullmatch(minted):
        raise Wrong(422, "request_id must be 1 to 59 of A-Z a-z 0-9 _ -, a new one for a message")
    if not isinstance(text, str) or not isinstance(button, str):
        raise Wrong(422, "text and button must be texts")
    text, button = clean(text).rstrip(), clean(button)
    if len(text) > LONGEST_TEXT or len(button) > LONGEST_TEXT:
        raise Wrong(413, f"a text has at most {LONGEST_TEXT} characters")
    files = handed_in(body.get("files", []), largest_files)
    if button and (files or not is_blank(text)):
        raise Wrong(422, "a pressed button comes alone, without text and files")
    if not button and not files and is_blank(text):
        raise Wrong(422, "a message has a text that can be read, a button or files")
    return Submission(minted, text, button, files)
