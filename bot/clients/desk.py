"""The desk: the service of a process to the clients of one account."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bot.clients import moves
from bot.clients.files import Files
from bot.clients.followers import Follower, Followers
from bot.clients.people import People
from bot.domain.clients.desk import Accepted, Conflict, Named, Page, Pages, StoredFile
from bot.domain.clients.turn_answer import TurnAnswer
from bot.domain.ending import TurnStatus
from bot.domain.errors import DatabaseUnavailable
from bot.domain.message import Address, Attachment, Inbound
from bot.domain.ports import SendRef
from bot.domain.run import RunState
from bot.intake.accept import Intake
from bot.intake.arrival import Arrival, Became, Recorded
from bot.intake.commands import withdraw
from bot.intake.status import turn_status
from bot.leases.runtime import Runtime
from storage import chats
from storage.notify import READY, chat_topic, stop_topic
from storage.statements.tx import Tx
from storage.views.lookup import RecordedWords, words_under

_ASK_AGAIN = 1.0
"""Seconds until a question that is held is answered from the rows anew, where no hint comes."""


class ClientDesk:
    """The desk of one account."""

    def __init__(self, rt: Runtime, account: int, intake: Intake, pages: Pages) -> None:
        self._rt = rt
        self._account = account
        self._intake = intake
        self._people = People(rt, account)
        self.files = Files(rt.db, account, Path(pages.folder) if pages.folder else None)
        self.followers = Followers(rt, account, pages.wire)

    async def take(self, message: Inbound, named: Named, body: str) -> Accepted | Conflict:
        """Record a message, once."""
        via = self._rt.channels[self._account].name
        arrival = Arrival(self._account, body, via=via, named=named)
        [recorded] = await self._intake.take(arrival, [message])
        if recorded.became is Became.DUPLICATE:
            return await self._again(message, named)
        if recorded.became is Became.DEAD_LETTER:
            raise DatabaseUnavailable("the message could not be recorded")
        await self._tell(message.address)
        return Accepted(await self._begun(message, recorded, named), again=False)

    async def _again(self, message: Inbound, named: Named) -> Accepted | Conflict:
        known = await self._rt.db.read(_recorded, self._account, message.address, named)
        assert known is not None
        if not _same(message, known):
            return Conflict()
        return Accepted(await self.turn(message.address, named), again=True)

    async def _begun(self, message: Inbound, recorded: Recorded, named: Named) -> TurnAnswer:
        if recorded.became not in (Became.RUN, Became.JOINED):
            return await self.turn(message.address, named)
        queued = recorded.run is None or recorded.run.state is not RunState.RUNNING
        pending = TurnStatus.PENDING
        return TurnAnswer(message.request_id, pending, pending.says, queued=queued)

    async def _tell(self, who: Address) -> None:
        """Have what became of a message of theirs shown."""
        chat = await self._rt.db.ask(chats.locate, self._account, [who])
        if chat is not None:
            self.followers.came(who, chat)
            self._rt.wakeups.tell(chat_topic(chat))

    async def turn(self, who: Address, named: Named, wait: float = 0.0) -> TurnAnswer:
        """The turn status of a message."""
        rt = self._rt
        until = rt.clock.monotonic() + wait
        while True:
            chat = await rt.db.ask(chats.locate, self._account, [who]) if wait else None
            async with rt.wakeups.expecting(chat_topic(chat or 0)) as hint:
                answer = await self._turn(who, named)
                left = until - rt.clock.monotonic()
                held = answer.status is TurnStatus.PENDING and left > 0
                if not held or self.followers.leaving.is_set():
                    return answer
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, _ASK_AGAIN)):
                        await hint.wait()

    async def _turn(self, who: Address, named: Named) -> TurnAnswer:
        """The turn status, of a message that was handed in at another address of the chat too."""
        answer = await self._rt.db.ask(turn_status, named(who), self._account)
        if answer.status is not TurnStatus.UNKNOWN:
            return answer
        known = await self._rt.db.read(_recorded, self._account, who, named)
        if known is None:
            return answer
        answer = await self._rt.db.ask(turn_status, known.request_id, self._account)
        return replace(answer, request_id=named(who))

    async def history(self, who: Address, before: int | None, limit: int) -> Page:
        """Messages before an event, or the latest."""
        chat, lacks = await self._rt.db.read(moves.stands, self._account, who)
        if chat is None:
            return Page((), more=False)
        if lacks:
            await self._rt.db.write(moves.project, chat)
        return await self._rt.db.read(moves.history, chat, before, limit)

    async def seen(self, who: Address, n: int) -> int:
        """A client has shown everything up to this event."""
        return await self._rt.db.write(moves.see, self._account, who, n)

    async def stop(self, who: Address) -> int:
        """Withdraw what runs and waits."""
        chat, stopped = await self._rt.db.write(_stop, self._rt, self._account, who)
        for run in stopped:
            self._rt.wakeups.tell(stop_topic(run))
        if chat is not None and stopped:
            self._rt.wakeups.tell(READY)
            self._rt.wakeups.tell(chat_topic(chat))
        return len(stopped)

    def follow(self, who: Address, after: int | None, session: str, until: float) -> Follower:
        """Follow the chat."""
        return self.followers.follow(who, after, session, until)

    async def write(self, ref: SendRef) -> bool:
        """Write a part into its chat's journal, once."""
        chat = await self._rt.db.write(moves.write_part, ref)
        if chat is not None:
            self._rt.wakeups.tell(chat_topic(chat))
        return chat is not None

    async def written(self, ref: SendRef) -> bool:
        """Tell whether the part is in the journal."""
        return await self._rt.db.write(moves.is_written, ref)

    async def claim(self, guest: Address, user: Address) -> bool:
        """The guest's chat becomes the user's; who follows it as the guest does so no more."""
        claimed = await self._people.claim(guest, user)
        self.followers.end_guest(guest)
        await self._tell(user)
        return claimed

    async def end_session(self, session: str, until: float) -> None:
        """Refuse a session from now on, and end what it follows here."""
        await self._people.end_session(session, until)
        self.followers.end_session(session)

    async def over(self, sessions: Sequence[tuple[Address, str]]) -> frozenset[str]:
        """Those of the sessions that are over."""
        return await self._people.over(sessions)

    async def secret(self, name: str, fresh: str) -> str:
        """A secret of the account."""
        return await self._people.secret(name, fresh)

    async def keep_file(self, who: Address, file: StoredFile) -> Attachment:
        """Keep a file."""
        return await self.files.keep(who, file)

    async def file(self, who: Address, ref: str) -> StoredFile | None:
        """A file of this chat."""
        return await self.files.of_chat(who, ref)

    async def part(self, who: Address, part: int) -> str | None:
        """The wire of a part that this chat was sent."""
        return await self.files.part(who, part)

    async def attachment(self, ref: str) -> bytes | None:
        """A file's content, for the agent."""
        return await self.files.content(ref)


def _addresses(tx: Tx, account: int, who: Address) -> Sequence[Address]:
    chat = chats.locate(tx, account, [who])
    return () if chat is None else chats.addresses(tx, chat)


def _names(tx: Tx, account: int, who: Address, named: Named) -> Sequence[str]:
    """The request ids of a message under all addresses of its chat, that of `who` first."""
    return list(dict.fromkeys(map(named, (who, *_addresses(tx, account, who)))))


def _recorded(tx: Tx, account: int, who: Address, named: Named) -> RecordedWords | None:
    return words_under(tx, account, _names(tx, account, who, named))


def _same(message: Inbound, known: RecordedWords) -> bool:
    """Tell whether a message says what was recorded; words that were deleted are taken for it."""
    if not known.text:
        return True
    files = [file.ref for file in message.attachments]
    if [file["ref"] for file in json.loads(known.attachments)] != files:
        return False
    return known.button == message.button and (bool(known.button) or known.text == message.text)


def _stop(tx: Tx, rt: Runtime, account: int, who: Address) -> tuple[int | None, tuple[int, ...]]:
    chat = chats.locate(tx, account, [who])
    if chat is None:
        return None, ()
    chat = chats.lock(tx, chat).id
    return chat, withdraw(tx, rt, chat)
