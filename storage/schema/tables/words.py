"""The columns that hold words of people, with what stands there once they are deleted."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Table, case

from storage.schema.tables.desk import hand_replies, notes, presence
from storage.schema.tables.followed import followed, journal, shown
from storage.schema.tables.incoming import edits, inbound, payloads
from storage.schema.tables.outgoing import early_statuses, outbox, receipts
from storage.schema.tables.people import (
    accounts,
    chat_addresses,
    chats,
    data_requests,
    reminders,
    told,
)
from storage.schema.tables.processes import events, holders, retention
from storage.schema.tables.visitors import claims, ended_sessions, files, secrets
from storage.schema.tables.work import runs, steps

WORDS: Mapping[Table, Mapping[str, object]] = {
    chats: {"name": "", "offered": None},
    reminders: {"text": ""},
    runs: {"detail": "", "handoff": None, "messages": 0},
    steps: {"result": case((steps.c.state == "done", "null"))},
    inbound: {
        "text": "",
        "sender_name": "",
        "forwarded_from": "",
        "button": "",
        "attachments": "[]",
        "quoted": None,
        "extra": "{}",
        "payload": "",
    },
    payloads: {"body": "", "digest": "", "error": None},
    edits: {"text_before": "", "text": ""},
    outbox: {"text": "", "reply": None, "wire": "", "error": ""},
    events: {"why": ""},
    files: {"name": "", "content": None},
    notes: {"text": ""},
    hand_replies: {"digest": ""},
}
"""The words that people wrote and were told, and sentences that may quote it: agents give reasons,
platforms say what was wrong with a message."""

NO_WORDS: Mapping[Table, str] = {
    accounts: "channel account name menu down_reason down_code cut_off_reason",
    chats: "address topic kind language unreachable_reason",
    chat_addresses: "address topic",
    told: "what",
    data_requests: "what state",
    reminders: "key state rule zone",
    runs: "state album ending cause set_aside request_id",
    steps: "key state",
    inbound: "ignored command request_id provider_id kind sender_id address album",
    payloads: "ignored",
    outbox: "kind state receipt provider_status scope code watched",
    receipts: "receipt",
    early_statuses: "receipt provider_status state code",
    claims: "guest owner",
    ended_sessions: "session",
    secrets: "name value",
    files: "ref address mime",
    holders: "name boot clock host role version",
    events: "who what",
    retention: "what",
    journal: "kind status ending",
    shown: "state",
    followed: "",
    notes: "who key",
    hand_replies: "who key",
    presence: "page who",
}
"""Every other column of text: who and where, ids, our own words and states, what an agent's author
or an operator calls something."""
