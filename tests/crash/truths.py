"""Invariants of the rows, and of what people were shown, when nothing moves any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bot.domain.ending import Ending
from channels.web.names import minted
from tests.crash.mayhem import CHATS, CLOUD, PAGE, PHONE, Mayhem
from tests.kit.receipts import RECEIPTS
from tests.world import World

_ARRIVED = ("sent", "delivered", "read")


async def hold(mayhem: Mayhem) -> None:
    """Raises AssertionError at the first truth that does not hold."""
    await _one_row_and_one_run(mayhem)
    await _nothing_is_live(mayhem.world)
    await _receipts_are_single(mayhem.world)
    assert mayhem.answered_again == [], "5: the agent was called for a run with a stored reply"
    for chat in CHATS:
        await _parts_are_shown_once(mayhem, chat)
        if not mayhem.by_hand and not mayhem.unseen:
            _replies_are_in_order(mayhem, chat)
    await _the_page_was_told_everything(mayhem)
    assert mayhem.world.telegram.violations == []
    assert mayhem.world.twilio.violations == []
    assert mayhem.world.meta.violations == []


async def _the_page_was_told_everything(mayhem: Mayhem) -> None:
    """Each number once and in order, each part once, and of each message how it is by now."""
    numbers = [told.id for told in mayhem.told]
    assert numbers == list(range(1, len(numbers) + 1)), "a number is missing, or came twice"
    shown = [told.data["text"] for told in mayhem.told if told.kind in ("message", "notice")]
    assert shown == mayhem.page
    last = {told.data["request_id"]: told for told in mayhem.told if told.kind in _STATES}
    rows = await mayhem.world.rows(
        "SELECT i.request_id, r.ending FROM inbound i LEFT JOIN runs r ON r.id = i.run "
        "WHERE i.sender_id = :page",
        page=PAGE,
    )
    assert {minted(name) for name, _ in rows} == set(last)
    for name, ending in rows:
        told = last[minted(name)]
        assert told.kind in ("ended", "withdrawn"), f"{told.about} is over, and nobody was told"
        if told.data["ending"] != ending:  # Corrected after it was told.
            assert Ending(told.data["ending"]).correctable_to(Ending(ending))


_STATES = ("accepted", "working", "ended", "withdrawn")


async def _one_row_and_one_run(mayhem: Mayhem) -> None:
    """Invariants 1 and 2: what was acknowledged is recorded, once, and leads to one thing."""
    rows = await mayhem.world.rows("SELECT text, count(*) FROM inbound GROUP BY text")
    recorded = {text: count for text, count in rows if not text.startswith("/stop")}
    said = {text for texts in mayhem.said.values() for text in texts}
    assert recorded == dict.fromkeys(said, 1), "1, 2: every message is recorded, and once"
    standalone = await mayhem.world.rows(
        "SELECT text FROM inbound WHERE (run IS NULL) = (ignored IS NULL)"
    )
    assert standalone == [], "2: a message without an outcome, or with two"


async def _nothing_is_live(world: World) -> None:
    """Invariant 7: every run has its one ending, nothing is on its way, no chat is stuck."""
    live = await world.rows("SELECT id, state, detail FROM runs WHERE state <> 'ended'")
    assert live == [], "7: live after everything was quiet"
    pending = await world.rows("SELECT id FROM outbox WHERE state IN ('pending', 'sending')")
    assert pending == []
    twice = await world.rows(
        "SELECT run FROM outbox WHERE kind = 'apology' GROUP BY run HAVING count(*) > 1"
    )
    assert twice == [], "8: apologised twice"


async def _receipts_are_single(world: World) -> None:
    double = await world.rows(
        f"SELECT outbox FROM {RECEIPTS} r GROUP BY outbox HAVING count(*) > 1"
    )
    assert double == [], "6: two receipts for one part"


async def _parts_are_shown_once(mayhem: Mayhem, chat: str) -> None:
    """Invariant 6: a part with a receipt was shown exactly once, an uncertain one at most."""
    shown = Counter(_shown(mayhem, chat))
    rows = await mayhem.world.rows(
        "SELECT o.text, o.state, o.attempts FROM outbox o JOIN chats c ON c.id = o.chat "
        "WHERE c.address = :chat AND o.kind = 'reply'",
        chat=chat,
    )
    for text, state, attempts in rows:
        times = shown.pop(text, 0)
        if state in _ARRIVED:
            assert times == 1, f"6: {text[:20]!r} arrived and was shown {times} times"
        elif state == "uncertain":
            assert times <= 1, f"6: {text[:20]!r} after {attempts} attempts: {times} times"
        else:
            assert times == 0, f"6: {text[:20]!r} is {state} and was shown"
    assert not [text for text in shown if text.startswith("re ")], "shown and not in the outbox"


def _replies_are_in_order(mayhem: Mayhem, chat: str) -> None:
    """Invariant 9: by message, and by part within a message."""
    order = {text: number for number, text in enumerate(mayhem.said[chat])}
    keys = []
    for text in _shown(mayhem, chat):
        if text.startswith("re "):
            _, part, how, number = text.rstrip(".").split()[:4]
            keys.append((order[f"{how} {number}"], int(part)))
    assert keys == sorted(keys), f"9: {chat} got {keys}"


def _shown(mayhem: Mayhem, chat: str) -> Sequence[str]:
    if chat == PHONE:
        return mayhem.world.twilio.texts(PHONE)
    if chat == CLOUD:
        return mayhem.world.meta.texts(CLOUD)
    if chat == PAGE:
        return mayhem.page
    return mayhem.world.telegram.texts(int(chat))
