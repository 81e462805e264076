"""The words to clients: parts, events and answers as JSON, and as lines of an event stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.domain.clients.desk import Accepted, Page
from bot.domain.clients.journal import ChatEvent, EventKind, Snapshot
from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.ending import TurnStatus
from bot.domain.message import Attachment
from bot.domain.reply import PartKind, Reply
from channels.web.names import minted

PATH = "/web"
API = f"{PATH}/v1"


def part_wire(text: str, reply: Reply | None = None) -> str:
    """A part as it is stored; `reply` is there for the last one, which has the choices."""
    buttons = (
        []
        if reply is None
        else [{"label": b.label, "data": b.data or b.label, "url": b.url} for b in reply.buttons]
    )
    files = (
        []
        if reply is None
        else [
            {
                "kind": f.kind,
                "name": f.name,
                "caption": f.caption,
                "url": f.url,
                "content": f.content,
            }
            for f in reply.files
        ]
    )
    return json.dumps({"text": text, "buttons": buttons, "files": files}, ensure_ascii=False)


def as_json(event: ChatEvent) -> Mapping[str, Any]:
    """An event as clients read it."""
    told: dict[str, Any] = {
        "n": event.n,
        "at": round(event.at, 3),
        "request_id": minted(event.request_id),
    }
    match event.kind:
        case EventKind.ACCEPTED:
            told |= {"text": event.text, "button": event.button}
            told |= {"status": event.status, "ending": event.ending, "queued": event.queued}
            told["files"] = [_handed_in(file) for file in event.attachments]
        case EventKind.WORKING:
            pass
        case EventKind.ENDED | EventKind.WITHDRAWN:
            status = event.status or TurnStatus.COMPLETED
            told |= {"status": status.value, "ending": event.ending, "text": status.says}
        case EventKind.MESSAGE:
            told |= _part(event)
            told["by"] = "operator" if event.part_kind is PartKind.OPERATOR else "agent"
        case EventKind.STILL_WORKING | EventKind.NOTICE:
            told |= _part(event)
    return told


def _part(event: ChatEvent) -> Mapping[str, Any]:
    """A part of ours. A file that is stored with it is fetched by its `ref`."""
    wire = json.loads(event.wire) if event.wire else {}
    files = [
        {"kind": file["kind"], "name": file["name"], "caption": file["caption"]}
        | ({"url": file["url"]} if file["url"] else {"ref": f"part-{event.part}-{place}"})
        for place, file in enumerate(wire.get("files", ()))
    ]
    return {"text": wire.get("text", ""), "buttons": wire.get("buttons", []), "files": files}


def _handed_in(file: Attachment) -> Mapping[str, Any]:
    return {"name": file.name, "mime": file.mime, "size": file.size, "ref": file.ref}


def turn_json(turn: TurnAnswer) -> Mapping[str, Any]:
    """The answer to whoever asks about a message."""
    return {
        "request_id": minted(turn.request_id),
        "status": turn.status.value,
        "queued": turn.queued,
        "ending": turn.ending,
        "answer": turn.answer,
        "text": turn.text,
    }


def accepted_json(accepted: Accepted) -> Mapping[str, Any]:
    """The answer to a message that was handed in."""
    return {**turn_json(accepted.turn), "already_accepted": accepted.again}


def page_json(page: Page) -> Mapping[str, Any]:
    """A page of messages, oldest first."""
    return {"messages": [_said(event) for event in page.messages], "more": page.more}


def _said(event: ChatEvent) -> Mapping[str, Any]:
    return {"kind": event.kind.value, **as_json(event)}


class SseWire:
    """Events as lines of an event stream."""

    beat = b":\n\n"
    resync = b'event: resync\ndata: {"n":0}\n\n'

    def event(self, event: ChatEvent) -> bytes:
        """One event, under its number."""
        return _lines(event.kind.value, event.n, as_json(event))

    def snapshot(self, snapshot: Snapshot) -> bytes:
        """The chat as it is now."""
        turns = [
            {
                "request_id": minted(t.request_id),
                "status": "pending",
                "queued": t.queued,
                "answering": t.answering,
            }
            for t in snapshot.open
        ]
        said = [_said(event) for event in snapshot.messages]
        whole = {
            "n": snapshot.n,
            "unread": snapshot.unread,
            "messages": said,
            "more": snapshot.more,
            "turns": turns,
        }
        return _lines("snapshot", snapshot.n, whole)

    def goodbye(self, wait: float) -> bytes:
        """A client that obeys comes back after so many milliseconds."""
        return f"retry: {wait * 1000:.0f}\n\n".encode()


def _lines(kind: str, n: int, data: Mapping[str, Any]) -> bytes:
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\nid: {n}\ndata: {written}\n\n".encode("utf-8", "replace")


WIRE = SseWire()
