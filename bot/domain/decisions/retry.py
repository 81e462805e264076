"""Every number of trying again: the tries, the waits between them, and their end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Backoff:
    """A wait that doubles with every failure, from `base` up to `cap` seconds."""

    base: float
    cap: float

    def after(self, tries: int, jitter: float) -> float:
        """Seconds to wait after `tries` failures (1 or more).

        `jitter` in [0, 1) spreads the wait over its upper half, so that many chats that
        failed together do not come back together.
        """
        whole = min(self.cap, self.base * 2.0 ** min(max(tries - 1, 0), 30))
        return whole * (0.5 + jitter / 2)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The numbers for everything that is tried again. Seconds, or numbers of times.

    What a platform says of itself (its limits, the times at which its list is asked) are the
    traits of its channel.
    """

    max_failures: int = 3
    """Failures of the agent without progress until the apology."""
    suspect_after: int = 2
    """Deaths of its holders during the agent that make a run a suspect."""
    breaks_until_set_aside: int = 3
    """Failures after which a run whose turn breaks our own code is kept from being claimed."""
    max_resends: int = 1
    """Sends of one part after the first, unasked."""
    soonest: float = 1.0
    """The wait before an agent that asked to be tried again is called anew, however soon it
    wants that: a turn that comes round at once would come round for ever."""
    short_wait: float = 3.0
    """A wait up to this is spent in place; a longer one gives the run back."""
    status_wait: float = 30.0
    """The longest wait for `sent` before the next part, where parts could swap."""
    ask_status_every: float = 2.0
    """Until a provider is asked where a part stands on which it does not report."""
    look_again: float = 30.0
    """Until a provider's list is asked again that could not be asked now."""
    witness_step: float = 20.0
    """A step in the wait for a status that tells of an uncertain attempt: as long as somebody
    listened at its end, it counts."""
    look_patience: float = 900.0
    """From an attempt until a list that can't be asked is given up."""
    agent: Backoff = Backoff(1.0, 60.0)
    """Between two calls of an agent that failed or asked to be tried again."""
    model: Backoff = Backoff(2.0, 60.0)
    """Between two turns whose model was not available."""
    delivery: Backoff = Backoff(1.0, 60.0)
    """Before a part that was not sent goes again, where the provider names no wait."""
    connection: Backoff = Backoff(1.0, 30.0)
    """Between two tries to reach a platform."""
    task: Backoff = Backoff(1.0, 30.0)
    """Before a background task that met an unexpected error goes on."""
    poll_conflict: float = 5.0
    """While somebody else takes an account's updates."""
    poll_refused: float = 30.0
    """While a platform refuses an account's token."""
    hint: Backoff = Backoff(0.01, 0.2)
    """Before a process follows another's hint whose last ones found nothing left to do."""
    redis: Backoff = Backoff(0.2, 5.0)
    """Between two tries to reach Redis."""
    database: Backoff = Backoff(0.1, 1.0)
    """Between two tries to write what must not be lost, while the database is away."""


RETRY: Final = RetryPolicy()
"""The numbers as they are where no setting changes them."""
