"""A database with one account and somebody in it, moved by hand, one transaction a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import text

from bot.domain.message import Address, ChannelName, ChatKind, Inbound, InboundKind, Sender
from bot.domain.ports import Clock
from bot.domain.reply import PartBody, PartKind
from bot.domain.run import Run
from storage import accounts, chats, holders, inbox, outbox, runs
from storage.chats import NewChat
from storage.engine import postgres, sqlite
from storage.engine.database import Database, DatabaseSettings, parsed_url
from storage.holders import Identity
from storage.inbox import NewMessage
from storage.outbox import Part
from storage.runs import Claimant, NewRun
from storage.statements.tx import POSTGRES, SQLITE, Result, Tx
from tests.clocks import PostgresClock, ShiftedClock

P = ParamSpec("P")
T = TypeVar("T")

LEASE = 600.0
"""Longer than any test lasts: a holder of whom no clock was set forward is alive."""
DEADLINE = 900.0


@dataclass
class Hand:
    """Moves rows as one process with one holder would, without the rest of the program."""

    db: Database
    clock: ShiftedClock
    url: str
    account: int = 0
    holder: int = 0
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self._database_clock = PostgresClock(self.clock)

    def do(self, move: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One transaction of one move."""
        return self.db.now_sync(move, *args, **kwargs)

    def rows(self, sql: str, **params: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.do(lambda tx: [tuple(row) for row in tx.execute(text(sql), params)])

    def value(self, sql: str, **params: object) -> Any:
        """The one value that a query answers."""
        [(value,)] = self.rows(sql, **params)
        return value

    def advance(self, seconds: float) -> None:
        """Set the clock of the database forward."""
        self.clock.advance(seconds)
        self._set_database()

    def stop_time(self) -> None:
        """Let the clock of the database move by `advance` alone."""
        self.clock.stop()
        self._set_database()

    def _set_database(self) -> None:
        if not self.db.is_sqlite:
            self._database_clock.set(self.db)

    def new_account(self, name: str = "bot", channel: str = "telegram") -> int:
        return self.do(accounts.ensure, ChannelName(channel), name).id

    def new_holder(self, name: str = "host/1", role: str = "all") -> int:
        """Another process begins a life."""
        boot = f"boot-{next(self._numbers)}"
        return self.do(holders.register, Identity(name, boot, "host", 1, role, "0.2.0"))

    def mark_dead(self, holder: int) -> None:
        """The holder dies, and somebody noticed."""
        self.do(holders.retire, holder)

    def new_chat(self, address: str = "") -> int:
        name = address or f"chat-{next(self._numbers)}"
        return self.do(first_message, self.account, Address(name))

    def heard(self, chat: int, at: float, address: str) -> None:
        """A person wrote from this address."""

        def write(tx: Tx) -> None:
            chats.heard(tx, [chats.lock(tx, chat).heard(at, "Ada", "en", address)])

        self.do(write)

    def claimant(self, holder: int = 0) -> Claimant:
        return Claimant(holder or self.holder, LEASE, DEADLINE)

    def waiting(self, chat: int, *, order_at: float = 0.0) -> Run:
        """A run that stands behind another."""
        return self.insert(chat, head=False, order_at=order_at)

    def ready(self, chat: int, *, wait: float = 0.0) -> Run:
        """The head of a chat, that nobody has claimed."""
        return self.insert(chat, head=True, wait=wait)

    def running(self, chat: int = 0, holder: int = 0) -> Run:
        """A run that a holder works on."""
        run = self.insert(chat or self.new_chat(), head=True, by=self.claimant(holder))
        assert run.holder == (holder or self.holder)
        return run

    def insert(
        self,
        chat: int,
        *,
        head: bool,
        by: Claimant | None = None,
        order_at: float = 0.0,
        wait: float = 0.0,
    ) -> Run:
        new = NewRun(
            account=self.account,
            chat=chat,
            request_id=f"tg-{chat}-{next(self._numbers)}",
            order_at=order_at or self.clock.wall(),
            head=head,
            by=by,
            wait=wait,
        )

        def make(tx: Tx) -> Run:
            chats.lock(tx, chat)
            return runs.create(tx, [new])[chat]

        return self.do(make)

    def claim(self, room: int = 10, holder: int = 0) -> list[Run]:
        return list(self.do(runs.claim, self.claimant(holder), {self.account: room}, room))

    def find(self, run: Run | int) -> Run:
        found = self.do(runs.find, run if isinstance(run, int) else run.id)
        assert found is not None
        return found

    def parts(self, run: Run, *texts: str, begun: bool = False) -> list[Part]:
        """Store the parts of a running run's reply, the first of them already being sent."""
        to = outbox.PartOwner(self.account, run.chat, run.id)
        bodies = [PartBody(words, "{}") for words in texts or ("hello",)]
        return list(
            self.do(
                outbox.store_parts,
                to,
                PartKind.REPLY,
                bodies,
                self.holder if begun else None,
            )
        )

    def post(self, chat: int, kind: PartKind = PartKind.NOTICE, number: int = 1) -> int:
        """A standalone message of no run."""
        to = outbox.PartOwner(self.account, chat, None)
        part = self.do(outbox.post, to, kind, PartBody("a note", "{}"), number)
        assert part is not None
        return part

    def part(self, part: int) -> Part:
        found = self.do(outbox.get, part)
        assert found is not None
        return found


def first_message(tx: Tx, account: int, address: Address) -> int:
    """Somebody is at this address; returns the chat."""
    chats.create(tx, [NewChat(account, address, ChatKind.PRIVATE, "Ada", "en")])
    found = chats.locate(tx, account, [address])
    assert found is not None
    return found


def store(tx: Tx, account: int, chat: int, said: Inbound) -> int:
    """Store a message. Raises StatementFailed when it was stored before."""
    [stored] = inbox.store_messages(tx, [NewMessage(account, chat, said, said.text)])
    return stored.id


def message(number: int, chat: str = "700", text_: str = "hello") -> Inbound:
    """A message of a person in a private chat."""
    return Inbound(
        request_id=f"tg-{chat}-{number}",
        address=Address(chat),
        chat_kind=ChatKind.PRIVATE,
        kind=InboundKind.TEXT,
        text=text_,
        sender=Sender(chat, "Ada"),
        provider_id=str(number),
    )


@contextmanager
def connected(url: str, clock: Clock, kind: type[Tx] = Tx) -> Iterator[Tx]:
    """A connection of its own, on which nothing has begun."""
    parsed = parsed_url(url)
    if parsed.get_backend_name() == "sqlite":
        connection, dialect = sqlite.connect(parsed, clock), SQLITE
    else:
        connection, dialect = postgres.connect(parsed), POSTGRES
    try:
        yield kind(connection, dialect)
    finally:
        connection.close()


@contextmanager
def opened(url: str, pool: int = 4) -> Iterator[Hand]:
    """A hand on this database, with an account and a holder that is alive."""
    clock = ShiftedClock()
    db = Database(DatabaseSettings(url, pool=pool), clock)
    hand = Hand(db, clock, url)
    try:
        hand.account = hand.new_account()
        hand.holder = hand.new_holder()
        yield hand
    finally:
        db.close()


def lives_through(hand: Hand, move: Any, members: Sequence[Any], statements: int) -> bool:
    """Run the move on a connection that breaks after so many statements."""

    class Dying(Tx):
        left = statements

        def execute(self, *args: Any) -> Result[Any]:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError
            return super().execute(*args)

    with connected(hand.url, hand.clock, Dying) as tx:
        tx.run("BEGIN")
        try:
            move(tx, members)
        except ConnectionError:
            return False
        finally:
            tx.connection.rollback()
    return True
