"""The messages that the Graph API accepted, and what became of each."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from tests.fakes.recording import Json

_RANK = {"accepted": 0, "sent": 1, "delivered": 2, "read": 3, "played": 4, "failed": 5}


@dataclass
class Message:
    """One accepted message. `body` is the request as it came, `to` its `to` or `recipient`, `tag`
    its `biz_opaque_callback_data`; `at` in the fake's epoch seconds."""

    wamid: str
    number: str
    to: str
    body: Json
    tag: str
    at: float
    status: str = "accepted"
    code: int | None = None
    history: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words that the person reads."""
        kind = self.body.get("type", "text")
        content = self.body[kind]
        match kind:
            case "text":
                return str(content["body"])
            case "interactive":
                return str(content["body"]["text"])
            case "template":
                given = [p for c in content.get("components", []) for p in c.get("parameters", [])]
                return " ".join(p["text"] for p in given if p.get("type") == "text")
            case _:
                return str(content.get("caption", ""))

    def becomes(self, status: str, code: int | None) -> None:
        """Take a status; an older one than it has changes nothing but the history."""
        self.history.append(status)
        if _RANK.get(status, -1) > _RANK[self.status]:
            self.status, self.code = status, code

    def as_json(self) -> Json:
        shown = {"wamid": self.wamid, "number": self.number, "to": self.to, "text": self.text}
        return shown | {"tag": self.tag, "status": self.status, "body": self.body}


class Book:
    """Messages by wamid, in the order of their acceptance. `planned` are the wamids of the next
    ones, where a test names them."""

    def __init__(self) -> None:
        self.all: dict[str, Message] = {}
        self.planned: list[str] = []
        self._numbers = 0

    def add(self, number: str, to: str, body: Json, at: float) -> Message:
        made = self.planned.pop(0) if self.planned else self.wamid(to, ours=True)
        tag = str(body.get("biz_opaque_callback_data", ""))
        message = self.all[made] = Message(made, number, to, body, tag, at)
        return message

    def wamid(self, person: str, *, ours: bool = False) -> str:
        """A fresh id in Meta's form, with the person's digits in it."""
        self._numbers += 1
        digits = person.removeprefix("+").encode()
        head = b"\x1c\x18" + bytes([len(digits)]) + digits + b"\x15\x02\x00"
        tail = (b"\x11" if ours else b"\x12") + b"\x18\x12" + b"%018X\x00" % self._numbers
        return "wamid." + base64.b64encode(head + tail).decode()
