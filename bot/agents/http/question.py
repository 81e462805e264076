"""A turn as the JSON that an agent over HTTP gets (the contract: bot/agents/http/client.py)."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict

from bot.domain.errors import AttachmentUnavailable
from bot.domain.turn import AttachmentFile, Turn, TurnMessage

ACTION = "agent"
"""The action whose idempotency key the request carries."""


async def request_body(turn: Turn, file_bytes: int) -> bytes:
    """The turn as JSON, with the files of its messages up to `file_bytes` in all."""
    messages: list[dict[str, object]] = []
    for message in turn.messages:
        files: list[dict[str, object]] = []
        for attachment in message.attachments:
            file, size = await _file(attachment, file_bytes)
            file_bytes -= size
            files.append(file)
        messages.append(_message(message, files))
    question = {
        "request_id": turn.request_id,
        "idempotency_key": turn.idempotency_key(ACTION),
        "attempt": turn.attempt,
        "interrupted": turn.interrupted,
        "deadline": turn.deadline,
        "chat": asdict(turn.chat),
        "messages": messages,
        "history": [asdict(said) for said in turn.history],
    }
    return json.dumps(question, separators=(",", ":")).encode()


def _message(message: TurnMessage, files: list[dict[str, object]]) -> dict[str, object]:
    return {
        "request_id": message.request_id,
        "kind": message.kind,
        "text": message.text,
        "sender": {"id": message.sender_id, "name": message.sender_name},
        "sent_at": message.sent_at,
        "edited": message.edited,
        "forwarded_from": message.forwarded_from,
        "button": message.button,
        "quoted": None if message.quoted is None else asdict(message.quoted),
        "attachments": files,
    }


async def _file(attachment: AttachmentFile, room: int) -> tuple[dict[str, object], int]:
    info = attachment.info
    described: dict[str, object] = {
        "kind": info.kind,
        "mime": info.mime,
        "name": info.name,
        "size": info.size,
        "seconds": info.seconds,
    }
    too_large = "too large to be sent along"
    if room <= 0 or (info.size is not None and info.size > room):
        return described | {"error": too_large}, 0
    try:
        content = await attachment.read()
    except AttachmentUnavailable as error:
        return described | {"error": str(error)}, 0
    if len(content) > room:
        return described | {"error": too_large}, 0
    return described | {"base64": base64.b64encode(content).decode()}, len(content)
