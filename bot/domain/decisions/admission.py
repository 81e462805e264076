"""Admission: a recorded message is answered, carried out as a command, or ignored.

An ignored message is recorded all the same, with the reason. A person who is refused because of
a limit, or because the bot is private, is told so once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.commands import Command
from bot.domain.decisions.terms import Burst, IntakeTerms
from bot.domain.ending import Worded
from bot.domain.message import Addressing, ChatKind, Inbound, InboundKind


class Unanswered(Worded):
    """The reason why a message is recorded and not answered."""

    BOT = "bot", "from a bot"
    BROADCAST = "broadcast", "a channel post"
    NOT_ADDRESSED = "not_addressed", "not addressed to this bot"
    OTHER_BOT = "other_bot", "a command for another bot"
    SERVICE = "service", "a service message"
    COMMAND = "command", "a command"
    NOT_ALLOWED = "not_allowed", "the bot is private"
    OPTED_OUT = "opted_out", "the person opted out"
    TOO_FAST = "too_fast", "too many messages a minute"
    TOO_MANY_WAITING = "too_many_waiting", "too many messages wait"
    DAILY_LIMIT = "daily_limit", "the daily limit of turns"
    AWAITED = "awaited", "an edit of it came, and it has not come itself"


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """The facts about the chat. Its numbers do not include the message itself. `names` are all
    addresses of the chat, if there is a list of allowed names."""

    opted_out: bool
    recent_messages: int
    waiting_messages: int
    recent_turns: int
    names: frozenset[str] = frozenset()


_BACK_IN = frozenset({Command.OPT_IN, Command.START})
_ALWAYS = frozenset({Command.STOP, Command.OPT_OUT})
"""Commands that ask for less: they are carried out however fast they come."""
_ADDRESSED = frozenset({Addressing.MENTION, Addressing.REPLY, Addressing.COMMAND})


def admit(
    message: Inbound, command: Command | None, facts: ChatFacts, terms: IntakeTerms
) -> Unanswered | None:
    """The strongest reason to ignore a message that was not recorded before; None: it is answered,
    or carried out if it is a command."""
    not_us = message.addressing is Addressing.NOT_US
    in_group = message.chat_kind is ChatKind.GROUP
    applies = {
        Unanswered.BOT: message.sender.is_bot,
        Unanswered.OTHER_BOT: message.addressing is Addressing.OTHER_BOT,
        Unanswered.SERVICE: message.kind is InboundKind.SERVICE,
        Unanswered.BROADCAST: not_us and message.chat_kind is ChatKind.BROADCAST,
        Unanswered.NOT_ADDRESSED: not_us or (in_group and message.addressing not in _ADDRESSED),
        Unanswered.NOT_ALLOWED: not invited(names_of(message) | facts.names, terms.allowed),
        Unanswered.OPTED_OUT: facts.opted_out and command not in _BACK_IN,
        Unanswered.TOO_FAST: facts.recent_messages >= terms.messages_per_minute
        and command not in _ALWAYS,
        Unanswered.TOO_MANY_WAITING: command is None
        and facts.waiting_messages >= terms.waiting_max,
        Unanswered.DAILY_LIMIT: command is None and 0 < terms.turns_per_day <= facts.recent_turns,
    }
    return next((reason for reason, holds in applies.items() if holds), None)


def names_of(message: Inbound) -> frozenset[str]:
    """The names under which the author of a message, or their chat, may be on the list."""
    sender = message.sender
    username = {f"@{sender.username}"} if sender.username else set()
    return frozenset({message.address.chat, sender.id, *message.aliases} | username)


def invited(names: Iterable[str], allowed: frozenset[str]) -> bool:
    """Tell whether the list of a private bot has one of these names (addresses, ids, @usernames).
    Every door asks here; an empty list lets everybody in."""
    folded = {name.casefold() if name.startswith("@") else name for name in names}
    spelled = folded | {name.partition(":")[2] for name in folded}
    return not allowed or not spelled.isdisjoint(allowed)


_QUIET_LONGEST = 5
"""The most quiet times that a run waits: somebody who never stops writing is answered too."""


def wait_for_more(message: Inbound, terms: IntakeTerms) -> float:
    """Seconds to wait for what may follow: the next member of an album, the next piece of a text,
    or just a further message."""
    if not message.gathers:
        return terms.quiet
    return max(terms.album_quiet if message.album else terms.pieces_quiet, terms.quiet)


def belongs(message: Inbound, began: float | None, now: float, terms: IntakeTerms) -> bool:
    """Tell whether the message belongs to the album that began at `began`, or goes on with what its
    sender wrote then; None: there is neither. Only albums have a name, by which a late member is
    recognised; anything else has to follow soon."""
    return began is not None and (bool(message.album) or now - began <= terms.album_longest)


def joins_until(
    attempts: int,
    made_at: float,
    message: Inbound,
    began: float | None,
    now: float,
    terms: IntakeTerms,
) -> float | None:
    """The moment until which a run that takes this message waits for more; None: the message needs
    a run of its own. `attempts` counts the claims of the run; `began` is that of `belongs`.

    Only a run that was never claimed can take a message: its agent may have read the others.
    """
    together = belongs(message, began, now, terms)
    if attempts > 0 or (terms.burst is Burst.EACH and not together):
        return None
    if message.gathers:
        return (began if message.album and began is not None else now) + terms.album_longest
    return made_at + max(terms.album_longest, _QUIET_LONGEST * terms.quiet)
