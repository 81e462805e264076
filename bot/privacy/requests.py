"""Requests of people about their own data, done by the first process that comes.

A request that was confirmed is a row. Its last transaction does three things at once: it takes the
last words, says so to the person, and marks the row as done. A process that dies before it leaves
the row to another, which begins anew; one that dies after it has told the person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.delivery import notices
from bot.domain.commands import Command
from bot.domain.reply import FileOut, PartBody, PartKind, Reply
from bot.leases.runtime import Runtime
from bot.privacy.forget import erase
from bot.privacy.readable import TooLarge, copied, labels_of
from bot.texts import Text
from storage import audit_log, chats, erasure, outbox
from storage.chats import Chat, DataRequest, requests
from storage.notify import READY, chat_topic
from storage.outbox import FIRST_OF_EXPORT, PartOwner
from storage.retention import owe_compaction
from storage.statements.tx import Tx

LARGEST = 1_000_000
"""Characters of a copy that a person is sent; who wrote more has to ask an operator."""
MOST_PARTS = 10
"""Messages in which a platform without files is sent one."""
_AT_ONCE = 10
_PERSON = "person"
_NAME = "chat.txt"


async def fulfil(rt: Runtime) -> int:
    """Do what people asked for and confirmed, in chats that this process can write to; returns how
    many were done. One that has to wait for its chat holds up none behind it. Raises
    DatabaseUnavailable."""
    done, after = 0, requests.FIRST
    while page := await rt.db.read(requests.to_do, rt.mine, _AT_ONCE, after):
        for request in page:
            done += await _fulfil(rt, request)
        after = page[-1].mark
    return done


async def _fulfil(rt: Runtime, request: DataRequest) -> bool:
    match request.what:
        case Command.FORGET:
            return await _forget(rt, request)
        case Command.EXPORT:
            return await _export(rt, request)
        case other:
            raise AssertionError(other)


async def _forget(rt: Runtime, request: DataRequest) -> bool:
    chat = (await rt.db.read(chats.get, request.chat)).id
    if await rt.db.read(erasure.in_use, chat, request.until):
        return False  # A send has not ended: its outcome would be written after the words went.
    await erase(rt, chat, request.until)
    if not await rt.db.write(_forgotten, rt, request):
        return False
    rt.wakeups.tell(READY)
    rt.wakeups.tell(chat_topic(chat))
    return True


def _forgotten(tx: Tx, rt: Runtime, request: DataRequest) -> bool:
    chat = chats.lock(tx, request.chat)
    if not requests.finish(tx, request):
        return False
    erasure.finish(tx, chat.id)
    owe_compaction(tx)
    audit_log.note(tx, _PERSON, "forgotten", "asked for", chat=chat.id)
    notices.say(tx, rt, chat, notices.plain(rt, chat, Text.FORGOTTEN))
    return True


async def _export(rt: Runtime, request: DataRequest) -> bool:
    chat = await rt.db.read(chats.get, request.chat)
    try:
        copy = await rt.db.read(copied, chat.id, labels_of(rt, chat), LARGEST)
    except TooLarge:
        copy = ""
    bodies = await asyncio.to_thread(_composed, rt, chat, copy)
    if not await rt.db.write(_exported, rt, request, bodies):
        return False
    rt.wakeups.tell(READY)
    return True


def _exported(tx: Tx, rt: Runtime, request: DataRequest, bodies: Sequence[PartBody]) -> bool:
    chat = chats.lock(tx, request.chat)
    if not requests.finish(tx, request):
        return False
    if chat.opted_out_at is not None:
        return True
    fits = 0 < len(bodies) <= MOST_PARTS
    audit_log.note(tx, _PERSON, "exported", "sent" if fits else "too large", chat=chat.id)
    if not fits:
        notices.say(tx, rt, chat, notices.plain(rt, chat, Text.EXPORT_TOO_LARGE))
        return True
    outbox.blank_copies(tx, chat.id)
    to = PartOwner(chat.account, chat.id, None)
    for number, body in enumerate(bodies, FIRST_OF_EXPORT):
        outbox.post(tx, to, PartKind.NOTICE, body, number)
    return True


def _composed(rt: Runtime, chat: Chat, copy: str) -> Sequence[PartBody]:
    """The copy as the channel carries it: a file, or else as words. Empty where it is too large."""
    if not copy:
        return ()
    caption = rt.words.say(Text.EXPORTED, chat.language)
    file = FileOut("document", content=copy, name=_NAME, caption=caption)
    return rt.channels[chat.account].compose(Reply(files=(file,)), notices.to_chat(chat))
