"""A database with a run of every kind, as the program leaves them, at a fixed moment."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from storage.schema import tables
from storage.statements.tx import Tx

NOW = 1_800_003_600.0
"""2027-01-15 09:00:00 UTC."""
SINCE_BOOT = 500_000.0
BOOT = "boot-of-the-machine"

ADA, TEAM, DAVID, EVE, PAUSED, GONE, FAR, BROKEN, NEW, SHOP, LATE, WANDA = range(1, 13)
MAIN, SECOND, PHONE = 1, 2, 3

HOSTILE = "\x1b[2J\x1b]0;title\x07Eve\u202e\r\nanswerback recover"
CHINESE = "你好，我想知道我的订单什么时候到。上周五下的单，现在还没有收到任何消息，请帮我查一下。"
HEBREW = "שלום, מתי תגיע ההזמנה שלי? הזמנתי ביום שישי"
ANSWER = "It left **today**.\nYou will have it on Monday."
LONG_REQUEST = "web-" + "0123456789abcdef" * 4 + "-9876543210"
WAMID = "wamid.HBgLMTU1NTAxMDAwMjIVAgARGBI5QTNDQTVCM0Q0Q0Q2RTY3RTcA"


def fill(tx: Tx) -> None:
    """Put everything in."""
    for table, rows in _ROWS.items():
        for row in rows:
            tx.execute(sa.insert(table).values(**row))


def _holder(number: int, name: str, role: str, age: float, **other: object) -> dict[str, Any]:
    return {
        "id": number,
        "name": name,
        "boot": f"{name}-{number}",
        "clock": BOOT,
        "host": "bot-1.example.org",
        "pid": 4000 + number,
        "role": role,
        "started_at": NOW - 7200,
        "renewed_at": SINCE_BOOT - age,
        "seen_at": NOW - age,
        **other,
    }


def _chat(number: int, account: int, address: str, name: str, **other: object) -> dict[str, Any]:
    return {
        "id": number,
        "account": account,
        "address": address,
        "topic": "",
        "kind": "private",
        "name": name,
        "language": "en",
        "created_at": NOW - 40 * 86_400,
        "last_inbound_at": NOW - 60 * number,
        **other,
    }


_CHATS = [
    _chat(ADA, MAIN, "700100201", "Ada Lovelace"),
    _chat(TEAM, MAIN, "-1001234567890123", "Team 日本語 🎉", kind="group", topic="77"),
    _chat(DAVID, PHONE, "whatsapp:+15550100022", "דוד לוי"),
    _chat(EVE, MAIN, "700100204", HOSTILE),
    _chat(PAUSED, MAIN, "700100205", "Paula", paused_until=NOW + 1800),
    _chat(
        GONE,
        MAIN,
        "700100206",
        "Gus",
        unreachable_since=NOW - 3 * 86_400,
        unreachable_reason="the person blocked the bot",
    ),
    _chat(FAR, PHONE, "whatsapp:US.1234567890123456789012345678901234567890", "李小龍"),
    _chat(BROKEN, MAIN, "700100208", "Bo", opted_out_at=NOW - 86_400),
    _chat(NEW, MAIN, "700100209", "Noor", last_inbound_at=NOW - 400),
    _chat(SHOP, SECOND, "700100210", "Sam"),
    _chat(LATE, MAIN, "700100211", "Lea"),
    _chat(
        WANDA,
        MAIN,
        "700100212",
        "Wanda",
        paused_until=1e12,
        handoff_at=NOW - 1488,
        handoff_run=51,
    ),
]


def _run(number: int, chat: int, age: float, state: str, **other: object) -> dict[str, Any]:
    account = next(c["account"] for c in _CHATS if c["id"] == chat)
    return {
        "id": number,
        "account": account,
        "chat": chat,
        "order_at": NOW - age,
        "created_at": NOW - age,
        "request_id": "",
        "messages": 1,
        "idle_since": NOW - age,
        "state": state,
        **other,
    }


def _ended(number: int, chat: int, age: float, ending: str, **other: object) -> dict[str, Any]:
    at = NOW - age
    return _run(
        number,
        chat,
        age,
        "ended",
        **{
            "attempts": 1,
            "fence": 1,
            "claimed_at": at + 0.1,
            "deadline_at": at + 900,
            "ended_at": at + 12,
            "ending": ending,
            "replied": True,
        }
        | other,
    )


def _running(number: int, chat: int, age: float, holder: int, **other: object) -> dict[str, Any]:
    return _run(
        number,
        chat,
        age,
        "running",
        **{
            "attempts": 1,
            "fence": 1,
            "holder": holder,
            "claimed_at": NOW - age + 0.1,
            "deadline_at": NOW - age + 900,
        }
        | other,
    )


_RUNS = [
    _ended(
        51,
        WANDA,
        1500,
        "silent",
        cause="chose_silence",
        detail="left to a person",
        handoff="Wanda paid twice and wants the second payment back.",
        replied=False,
    ),
    _run(52, WANDA, 700, "waiting"),
    _ended(1, ADA, 7200, "answered", cause="delivered"),
    _ended(2, ADA, 3600, "uncertain", cause="unconfirmed", detail="read timeout after 20 s"),
    _ended(3, DAVID, 3000, "uncertain", cause="unconfirmed", detail="no status within 120 s"),
    _ended(
        4,
        GONE,
        3 * 86_400,
        "undeliverable",
        cause="unreachable",
        detail="the person blocked the bot",
    ),
    _ended(
        5,
        ADA,
        2400,
        "apologised",
        cause="failures",
        attempts=3,
        failures=3,
        detail="3 failures without progress: HTTP 529 from the model, overloaded",
    ),
    _ended(
        6,
        EVE,
        2000,
        "failed",
        cause="refused",
        failures=3,
        detail="the apology was refused: chat not found",
    ),
    _ended(7, ADA, 1900, "withdrawn", cause="stopped", detail="the person stopped it"),
    _ended(8, ADA, 1800, "cancelled", cause="operator", detail="closed by hand", replied=False),
    _ended(9, LATE, 4 * 86_400, "expired", cause="too_old", replied=False),
    _ended(10, TEAM, 1500, "silent", cause="chose_silence", replied=False),
    _running(11, TEAM, 40, 2),
    _running(12, EVE, 300, 3, deaths=1, attempts=2),
    _run(13, TEAM, 30, "waiting"),
    _run(
        14,
        FAR,
        700,
        "ready",
        not_before=NOW + 540,
        attempts=1,
        detail="the shop is closed",
        request_id=LONG_REQUEST,
    ),
    _run(15, BROKEN, 650, "ready", set_aside="ValueError in the reply's template", attempts=4),
    _run(16, PAUSED, 600, "waiting", messages=2),
    _run(17, NEW, 400, "ready"),
    _run(18, SHOP, 500, "ready", not_before=1e12, replied=True, attempts=1),
    _running(19, DAVID, 50, 2, replied=True),
    _running(20, LATE, 1000, 2),
]


def _heard(number: int, run: int | None, text: str, **other: object) -> dict[str, Any]:
    of = next((r for r in _RUNS if r["id"] == run), None)
    chat = other.pop("chat", None) or (of or {})["chat"]
    address = next(c for c in _CHATS if c["id"] == chat)
    return {
        "id": number,
        "account": address["account"],
        "chat": chat,
        "run": run,
        "request_id": f"tg-{address['address'].lstrip('-')}-{40 + number}"[:80],
        "kind": "text",
        "text": text,
        "received_at": NOW if of is None else of["created_at"],
        **other,
    }


_INBOUND = [
    _heard(51, 51, "You took the money twice."),
    _heard(52, 52, "Is anybody there?"),
    _heard(1, 1, "Where is my order?"),
    _heard(2, 2, "And the invoice?"),
    _heard(3, 3, HEBREW, request_id="wa-SM00000000000000000000000000000003"),
    _heard(4, 4, "hello?"),
    _heard(5, 5, "Please cancel it."),
    _heard(6, 6, HOSTILE, deliveries=3),
    _heard(7, 7, "Never mind"),
    _heard(8, 8, "Are you there?"),
    _heard(9, 9, "good night"),
    _heard(10, 10, "lunch?"),
    _heard(11, 11, "@answerback_bot 明日の会議は何時ですか？", kind="text"),
    _heard(12, 12, "hi"),
    _heard(13, 13, "@answerback_bot and the room?"),
    _heard(14, 14, CHINESE, request_id=LONG_REQUEST),
    _heard(15, 15, "a photo of a receipt", kind="photo"),
    _heard(16, 16, "one"),
    _heard(17, 16, "two", received_at=NOW - 590, edited_at=NOW - 580),
    _heard(18, 17, "Is anybody there?"),
    _heard(19, 18, "Do you have size 42?"),
    _heard(20, 19, "כמה זה עולה?", request_id="wa-SM00000000000000000000000000000020"),
    _heard(21, 20, "Write me a long essay."),
    _heard(22, None, "/start", chat=ADA, ignored="command", received_at=NOW - 1500),
]


def _part(
    number: int, run: int | None, state: str, text: str, after: float = 10.0, **other: object
) -> dict[str, Any]:
    of = next((r for r in _RUNS if r["id"] == run), None)
    chat = other.pop("chat", None) or (of or {})["chat"]
    at = (NOW if of is None else of["created_at"]) + after
    left = state not in ("pending", "dropped")
    arrived = state in ("sent", "delivered", "read")
    return {
        "id": number,
        "account": next(c["account"] for c in _CHATS if c["id"] == chat),
        "chat": chat,
        "run": run,
        "kind": "reply",
        "part": 1,
        "standalone": False,
        "created_at": at,
        "text": text,
        "wire": "{}",
        "attempts": 1 if left else 0,
        "started_at": at if left else 0.0,
        "state": state,
        "sent_at": at + 0.5 if arrived else None,
        "receipt": f"{9000 + number}" if arrived else None,
        **other,
    }


_NOTICE = {"kind": "notice", "part": 2, "standalone": True}
_OUTBOX = [
    _part(31, 1, "delivered", ANSWER, provider_status="delivered"),
    _part(32, 2, "uncertain", "The invoice is attached.", error="read timeout after 20 s"),
    _part(33, 2, "sent", "I do not know whether you got my answer.", after=32.0, **_NOTICE),
    _part(34, 3, "sent", "ההזמנה בדרך.", receipt=WAMID),
    _part(
        35, 3, "uncertain", "היא תגיע ביום ראשון.", after=11.0, part=2, error="HTTP 502", code="502"
    ),
    _part(
        36, 3, "refused", "?", after=140.0, error="the window is closed", code="63016", **_NOTICE
    ),
    _part(37, 4, "refused", "Hello!", error="bot was blocked by the user", scope="chat"),
    _part(38, 5, "sent", "I could not answer. Please send it again.", kind="apology"),
    _part(39, 6, "refused", "Sorry.", kind="apology", error="chat not found", code="400"),
    _part(40, 7, "dropped", "You are welcome."),
    _part(
        41, 18, "pending", "Yes, in blue.", error="the token is not valid", attempts=1,
        started_at=NOW - 480,
    ),
    _part(
        42, 19, "uncertain", "12 ₪", error="connection reset", looks=1, not_before=NOW + 20
    ),
    _part(
        43, None, "sent", "Ann here: your parcel is at the neighbours'.", chat=PAUSED, after=-300.0,
        kind="operator", standalone=True,
    ),
    _part(
        44, None, "pending", "I will call you.", chat=NEW, after=-900.0, kind="operator",
        standalone=True,
    ),
    _part(
        45, None, "pending", "One more thing", chat=ADA, after=-200.0, kind="operator",
        standalone=True, attempts=1, started_at=NOW - 190, not_before=NOW + 95,
        error="the platform limits this chat", code="429",
    ),
]  # fmt: skip


def _event(run: int | None, after: float, who: str, what: str, why: str = "") -> dict[str, Any]:
    of = next(r for r in _RUNS if r["id"] == run)
    at = of["created_at"] + after
    return {"run": run, "chat": of["chat"], "at": at, "who": who, "what": what, "why": why}


_EVENTS = [
    _event(2, 12, "worker", "ended uncertain", "read timeout after 20 s"),
    _event(3, 12, "worker", "ended uncertain", "no status within 120 s"),
    _event(5, 3, "worker", "failed", "HTTP 529 from the model, overloaded"),
    _event(5, 12, "worker", "ended apologised", "3 failures without progress"),
    _event(8, 12, "ann@desk", "ended cancelled", "closed by hand"),
    _event(12, 120, "recovery", "released", "its holder worker-2 is dead"),
    {"chat": WANDA, "at": NOW - 1488, "who": "agent", "what": "asked for a person"},
    {"chat": PAUSED, "at": NOW - 650, "who": "ann@desk", "what": "paused", "why": "I take over"},
]

_ROWS: dict[sa.Table, list[dict[str, Any]]] = {
    tables.accounts: [
        {"id": MAIN, "channel": "telegram", "account": "7001001", "name": "answerback_bot"},
        {
            "id": SECOND,
            "channel": "telegram",
            "account": "7001002",
            "name": "shop_bot",
            "down_since": NOW - 1200,
            "down_reason": "the token is not valid",
        },
        {"id": PHONE, "channel": "whatsapp", "account": "whatsapp:+14155238886"},
    ],
    tables.holders: [
        _holder(1, "web-1", "web", 2.0),
        _holder(2, "worker-1", "worker", 3.0),
        _holder(3, "worker-2", "worker", 180.0),
        _holder(4, "worker-0", "worker", 4000.0, draining=True, gone_at=NOW - 3900),
    ],
    tables.chats: _CHATS,
    tables.chat_addresses: [
        {"account": c["account"], "address": c["address"], "topic": c["topic"], "chat": c["id"]}
        for c in _CHATS
    ],
    tables.runs: _RUNS,
    tables.inbound: _INBOUND,
    tables.notes: [
        {"id": 1, "chat": WANDA, "at": NOW - 900, "who": "ann@desk", "text": "Called twice."},
        {"id": 2, "chat": EVE, "at": NOW - 800, "who": "ben@page", "text": HOSTILE},
    ],
    tables.hand_replies: [
        {"part": 45, "chat": ADA, "at": NOW - 200, "who": "ann@desk", "key": None, "digest": "d"}
    ],
    tables.steps: [
        {
            "run": 1,
            "key": "model-1",
            "state": "done",
            "safe": True,
            "fence": 1,
            "result": '"It left today."',
            "paid": True,
            "input_tokens": 812,
            "output_tokens": 64,
            "started_at": NOW - 7199,
            "done_at": NOW - 7192,
        },
        {
            "run": 12,
            "key": "charge the card",
            "state": "started",
            "safe": False,
            "fence": 1,
            "started_at": NOW - 298,
        },
    ],
    tables.outbox: _OUTBOX,
    tables.receipts: [
        {"outbox": p["id"], "receipt": p["receipt"], "attempt": 1, "at": p["sent_at"]}
        for p in _OUTBOX
        if p["receipt"]
    ],
    tables.events: _EVENTS,
    tables.payloads: [
        {
            "account": MAIN,
            "received_at": NOW - 5000,
            "body": '{"update_id": 1, "message": {"chat": "nonsense"}}',
            "error": "message.chat: not a chat",
            "digest": "d1",
        }
    ],
}
