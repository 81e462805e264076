"""Cost of clients' questions with a long past: a journal is read from its end, by index."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.clients import moves
from bot.domain.message import Address
from bot.domain.ports import SendRef
from storage import journal
from storage.views import lookup
from tests.storage.cost.plans import BIG, Reading, fill, reading, write
from tests.storage.kit import Hand

_FOLLOWED = """
INSERT INTO journal (chat, n, at, kind, message) SELECT chat,
    row_number() OVER (PARTITION BY chat ORDER BY id) * 2 - 1, received_at, 'accepted', id
    FROM inbound;
INSERT INTO journal (chat, n, at, kind, part) SELECT chat,
    row_number() OVER (PARTITION BY chat ORDER BY id) * 2, created_at, 'message', id FROM outbox;
INSERT INTO shown (message, chat, state) SELECT id, chat, 'over' FROM inbound;
INSERT INTO followed (chat, n) SELECT chat, max(n) FROM journal GROUP BY chat
"""
MANY = 100
PAGES = 120
MORE = {"prune": 2_000, "before": 800, "unread": 800}
"""Of what is about two hundred rows."""

QUESTIONS: dict[str, Callable[[Hand, list[int]], Reading]] = {
    "lacking": lambda hand, chats: reading(hand, journal.lacking, chats[:1]),
    "project": lambda hand, chats: reading(hand, journal.project, chats[0]),
    "after": lambda hand, chats: reading(hand, journal.after, {chats[0]: 250}, 100),
    "before": lambda hand, chats: reading(hand, journal.before, chats[0], 1 << 62, 51),
    "unread": lambda hand, chats: reading(hand, journal.unread, chats[0]),
    "part_of": lambda hand, chats: reading(hand, journal.part_of, 7, 1),
    "write_part": lambda hand, chats: reading(hand, moves.write_part, SendRef(7, 1, 0.0)),
    "words_under": lambda hand, chats: reading(
        hand, lookup.words_under, hand.account, ["past-7", "past-8"]
    ),
    "recorded_under": lambda hand, chats: reading(
        hand, lookup.recorded_under, "past-7", hand.account
    ),
    "stands": lambda hand, chats: reading(hand, moves.stands, hand.account, Address("past-7")),
    "prune": lambda hand, chats: reading(hand, journal.prune, 86_400.0),
}


@pytest.fixture
def full(hand: Hand) -> Hand:
    """Chats with a long past, all of which was told."""
    fill(hand, ended=20_000, waiting=1_000)
    write(hand, _FOLLOWED)
    return hand


def test_clients_questions_read_the_end_of_a_journal_by_index(full: Hand) -> None:
    chats = [row[0] for row in full.rows("SELECT chat FROM followed ORDER BY chat DESC LIMIT 100")]
    grows = BIG | {"journal", "shown"}
    wrong = {}
    for name, ask in QUESTIONS.items():
        found = ask(full, chats)
        at_most = MORE.get(name, PAGES)
        if found.whole_tables & grows or found.pages > at_most:
            wrong[name] = found
    assert not wrong, "\n".join(map(str, wrong.items()))


def test_a_look_at_many_chats_costs_a_few_pages_each(full: Hand) -> None:
    # The last ones: behind the rows of all others in the order of any index.
    rows = full.rows("SELECT chat, n FROM followed ORDER BY chat DESC LIMIT 100")
    found = reading(full, moves.look, full.account, dict(rows), [])
    if full.db.is_sqlite:
        assert not found.whole_tables & (BIG | {"journal", "shown"})
    assert found.statements == 4
    assert found.pages <= 40 * MANY
