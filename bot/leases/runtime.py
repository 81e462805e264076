"""The tools that a process hands to all its rooms: database, clock, channels, bounds, texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bot.domain.commands import DATA, Command, command_of
from bot.domain.decisions.retry import RetryPolicy
from bot.domain.decisions.terms import Terms
from bot.domain.decisions.verdict import Policy, window_closed
from bot.domain.message import Inbound
from bot.domain.ports import Channel, Clock, OutsideWindow, ReportingChannel
from bot.domain.reminders import Calendar
from bot.leases.checkpoints import Reached, nowhere
from bot.observability.context import Fact, chat_tag
from bot.observability.metrics import Observer
from bot.observability.tracing import NoTracer, Tracer, story_of
from bot.texts import Words
from storage.engine.database import Database
from storage.notify import Wakeups, chat_topic


@dataclass(frozen=True, slots=True)
class Runtime:
    """The tools of one process. `channels` has the channel of each account that it can send for, by
    the account's row; `carriers` those whose platform later reports on what it took."""

    db: Database
    clock: Clock
    channels: Mapping[int, Channel]
    terms: Terms
    words: Words
    wakeups: Wakeups
    calendar: Calendar
    observer: Observer = field(default_factory=Observer)
    carriers: Mapping[int, ReportingChannel] = field(default_factory=dict)
    reached: Reached = nowhere
    tracer: Tracer = field(default_factory=NoTracer)

    @property
    def retry(self) -> RetryPolicy:
        """The retry policy."""
        return self.terms.policy.retry

    @property
    def command_words(self) -> Mapping[str, Command]:
        """The phrases that are commands on channels without slashes."""
        return self.words.command_words() if self.terms.intake.words else {}

    def command_of(self, account: int, message: Inbound) -> Command | None:
        """The command that this message is, by the rules of its channel, or None."""
        form = self.channels[account].traits.commands
        command = command_of(message, form, self.command_words)
        return None if command in DATA and not self.terms.intake.data else command

    @property
    def mine(self) -> list[int]:
        """The accounts this process claims for."""
        return sorted(self.channels)

    def names(self, account: int, chat: int | None = None) -> dict[str, Fact]:
        """The names of an account and one of its chats in log lines and spans."""
        channel = self.channels.get(account)
        if channel is None:
            return {"account": account}
        named: dict[str, Fact] = {"account": account, "channel": channel.name}
        return named if chat is None else {**named, "chat": chat_tag(channel.account, chat)}

    def moved(self, account: int, chat: int) -> None:
        """Tell those who follow this chat, on a channel that has followers, that one of its runs
        began or ended."""
        channel = self.channels.get(account)
        if channel is not None and channel.traits.followed:
            self.wakeups.tell(chat_topic(chat))

    def story(self, account: int, run: int) -> str:
        """The trace that all spans of a run belong to, whichever process makes them."""
        channel = self.channels.get(account)
        return story_of(str(account) if channel is None else channel.account, run)

    def policy(self, account: int) -> Policy:
        """The bounds of a verdict on this account's channel."""
        channel = self.channels.get(account)
        if channel is None:
            return self.terms.policy
        traits = channel.traits
        return replace(
            self.terms.policy,
            free_text_window=traits.free_text_window,
            templates=traits.outside_window is OutsideWindow.ANSWER,
            looks=traits.looks,
            witness_wait=traits.witness_wait,
            ordered=traits.ordered,
        )

    def window_closed(self, account: int, opened_at: float | None, now: float) -> bool:
        """Tell whether the platform forbids free text to a chat that last wrote at `opened_at`."""
        return window_closed(now if opened_at is None else opened_at, now, self.policy(account))
