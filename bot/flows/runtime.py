"""What every flow is handed: the database, the channels, the bounds, the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.domain.commands import Command
from bot.domain.ports import Carrier, Channel, Clock, OutsideWindow
from bot.domain.reminder import Calendar
from bot.domain.terms import Terms
from bot.domain.verdict import Policy, window_closed
from bot.flows.checkpoints import Reached, nowhere
from bot.observe import Observer
from bot.texts import Words
from storage.engine import Database
from storage.wakeup import Wakeups

STATUS_WAIT = 30.0
"""Seconds to wait at most for `sent` before the next part, where parts could swap."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """One process's tools. `channels` are the accounts that it can send for, by their row;
    `carriers` those of them whose platform reports later on what it took."""

    db: Database
    clock: Clock
    channels: Mapping[int, Channel]
    terms: Terms
    words: Words
    wakeups: Wakeups
    calendar: Calendar
    observer: Observer = field(default_factory=Observer)
    carriers: Mapping[int, Carrier] = field(default_factory=dict)
    reached: Reached = nowhere

    @property
    def command_words(self) -> Mapping[str, Command]:
        """The phrases that are commands on channels without slashes."""
        return self.words.command_words() if self.terms.intake.words else {}

    @property
    def mine(self) -> list[int]:
        """The accounts this process claims for."""
        return sorted(self.channels)

    def policy(self, account: int) -> Policy:
        """The bounds of a verdict on this account's channel."""
        channel = self.channels.get(account)
        delivery = self.terms.delivery
        common = {
            "max_failures": self.terms.work.max_failures,
            "answer_max_age": delivery.answer_max_age,
            "uncertain": delivery.uncertain,
        }
        if channel is None:
            return Policy(**common)  # type: ignore[arg-type]
        traits = channel.traits
        return Policy(
            **common,  # type: ignore[arg-type]
            free_text_window=traits.free_text_window,
            templates=traits.outside_window is OutsideWindow.ANSWER,
            looks=traits.looks,
            status_wait=0.0 if traits.ordered else STATUS_WAIT,
        )

    def window_closed(self, account: int, opened_at: float | None, now: float) -> bool:
        """Whether the platform forbids free text to a chat that last wrote at `opened_at`."""
        return window_closed(now if opened_at is None else opened_at, now, self.policy(account))
