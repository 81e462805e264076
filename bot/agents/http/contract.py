"""The contract with an agent over HTTP: the request, the answers, the signature.

    POST {"request_id", "idempotency_key", "attempt", "interrupted", "deadline", "chat",
          "messages", "history"}
    200  {"text", "buttons", "attachments"} or {"silent": true}; "hand_over": reason, with these or
         alone, asks for a person
    422  {"give_up": text}: the person is told that text
    429, 503 with Retry-After: the turn is tried again after that time
    anything else is a failure; nothing of its body reaches the chat or a log

Times are epoch seconds. A file that fits is sent as `base64`, any other is described with an
`error`. If a secret is configured, the request is signed (`sign`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from bot.domain.errors import AgentFailed, AttachmentUnavailable, GiveUp, Retry
from bot.domain.message import clean
from bot.domain.reply import Button, FileOut, Reply
from bot.domain.turn import AttachmentFile, Turn, TurnMessage

ACTION = "agent"
"""The action whose idempotency key the request carries."""
SIGNATURE_HEADER = "Answerback-Signature"
FILE_KINDS = ("photo", "document", "voice", "audio", "video")


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


def sign(secret: str, body: bytes, at: int) -> str:
    """The header's value: `t=<epoch seconds>,v1=<hex HMAC-SHA256 of "t.body">`.

    The receiver computes the same over the raw body, compares in constant time, and refuses
    a `t` that is minutes away from its own clock.
    """
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response. `retry_after` is the raw header; `body` is read only for 200 and 422."""

    status: int
    body: bytes = b""
    retry_after: str = ""


def read_answer(answer: HttpAnswer, now: float, *, signed: bool = True) -> Reply:
    """The reply in an answer. Raises Retry, GiveUp or AgentFailed, as the contract says. `now` is
    in epoch seconds; `signed`: the request had a signature."""
    match answer.status:
        case 200:
            return _reply(_object(answer.body))
        case 422:
            raise GiveUp(_filled(_object(answer.body), "give_up"))
        case 429 | 503:
            after = retry_after(answer.retry_after, now)
            raise Retry(after, f"the agent's server answered {answer.status}")
        case 401 | 403:
            secret = (
                "compare AGENT_SECRET with the secret by which the agent's server checks signatures"
                if signed
                else "AGENT_SECRET is empty; set it to the secret that the agent's server asks for"
            )
            raise AgentFailed(f"it answered {answer.status}, it refuses our request: {secret}")
        case status if 300 <= status < 400:
            raise AgentFailed(
                f"it answered {status}: redirects are not followed, set the final address"
            )
        case status:
            raise AgentFailed(f"it answered {status}")


def asked_for_person(answer: HttpAnswer) -> str | None:
    """The reason for which the answer asks for a person; None if it asks for none. To be called
    after `read_answer`, which checks the answer."""
    found = _object(answer.body)
    return _text(found, "hand_over").strip() or None


def retry_after(header: str, now: float) -> float | None:
    """Seconds to wait, from either form of Retry-After (RFC 9110, 10.2.3); None if unreadable."""
    value = header.strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    try:
        due = parsedate_to_datetime(value)
        if due.tzinfo is None:
            due = due.replace(tzinfo=UTC)
        return max(0.0, due.timestamp() - now)
    except (ValueError, OverflowError):  # a year of ten digits, or one before the first
        return None


def _object(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise AgentFailed("its answer is not JSON") from None
    if not isinstance(found, dict):
        raise AgentFailed("its answer is not a JSON object")
    return found


def _reply(answer: dict[str, object]) -> Reply:
    silent = answer.get("silent", False)
    if not isinstance(silent, bool):
        raise AgentFailed("silent is not true or false")
    reply = Reply(
        text=_text(answer, "text"),
        buttons=tuple(
            Button(_filled(entry, "label"), _text(entry, "data"), _url(entry))
            for entry in _list(answer, "buttons")
        ),
        files=tuple(_file_out(entry) for entry in _list(answer, "attachments")),
        silent=silent,
    )
    handoff = _text(answer, "hand_over").strip()
    if silent and (reply.text or reply.buttons or reply.files):
        raise AgentFailed("its answer is silent and says something")
    if answer.keys() & {"text", "buttons", "attachments", "silent"}:
        return reply
    if not handoff:
        raise AgentFailed("its answer has no text, buttons, attachments, silent or hand_over")
    return Reply(silent=True)


def _file_out(entry: dict[str, object]) -> FileOut:
    kind, url, content = _filled(entry, "kind"), _url(entry), _text(entry, "content")
    if kind not in FILE_KINDS:
        raise AgentFailed(f"an attachment's kind is none of {', '.join(FILE_KINDS)}")
    if bool(url) == bool(content):
        raise AgentFailed("an attachment needs either url or content")
    return FileOut(kind, url, content, _text(entry, "name"), _text(entry, "caption"))


def _list(answer: dict[str, object], key: str) -> list[dict[str, object]]:
    entries = answer.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise AgentFailed(f"{key} is not a list of objects")
    return entries


def _text(holder: dict[str, object], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise AgentFailed(f"{key} is not a text")
    return clean(value)


def _filled(holder: dict[str, object], key: str) -> str:
    value = _text(holder, key)
    if not value.strip():
        raise AgentFailed(f"{key} is missing or empty")
    return value


def _url(holder: dict[str, object]) -> str:
    url = _text(holder, "url")
    if url and not url.startswith(("https://", "http://")):
        raise AgentFailed("a url does not begin with https:// or http://")
    return url
