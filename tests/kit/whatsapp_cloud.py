"""Numbers at Meta, and questions to the rows, for tests of WhatsApp's Cloud API."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.meta.book import Message
from tests.fakes.meta.server import NUMBER, OTHER_NUMBER, OTHER_TOKEN, TOKEN
from tests.fakes.recording import Json
from tests.world import META, World

ALONE: dict[str, Any] = {**META, "telegram_bot_token": "", "twilio_account_sid": ""}
"""Settings of a process that speaks through one number at Meta and nowhere else."""
TWO: dict[str, Any] = {
    **ALONE,
    "meta_phone_number_id": f"{NUMBER},{OTHER_NUMBER}",
    "meta_access_token": f"{TOKEN},{OTHER_TOKEN}",
}
"""The same with two numbers, each with a token of its own."""


async def taken(world: World, count: int, to: str = "") -> list[Message]:
    """Wait until Meta has taken so many messages of ours, and returns them."""
    await world.meta.wait_for(lambda: len(world.meta.messages(to)) >= count)
    found = world.meta.messages(to)
    assert len(found) == count
    return found


async def parts(world: World, kind: str = "reply") -> list[tuple[Any, ...]]:
    """(state, attempts, code) of the parts of this kind, in order."""
    sql = "SELECT state, attempts, code FROM outbox WHERE kind = :kind ORDER BY id"
    return [tuple(row) for row in await world.rows(sql, kind=kind)]


def wamids(body: bytes) -> list[str]:
    """The names of the messages in the body of a webhook."""
    whole: Json = json.loads(body)
    changes = [change for entry in whole["entry"] for change in entry["changes"]]
    return [m["id"] for change in changes for m in change["value"].get("messages", ())]
