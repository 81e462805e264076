"""The instants at which a crash is worth a test.

The code reports each of them to the `Reached` that it was given, which in production is `nowhere`.
The crash tests die at every member, so a new one is tested the day it is added.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum


class Checkpoint(Enum):
    """An instant at which a process may die, and what is stored by then."""

    MESSAGE_COMMITTED = "the message is stored, the platform not yet told"
    CLAIMED = "the run is claimed, the agent not yet called"
    STEP_BEGUN = "a step is recorded as begun, its call not yet made"
    STEP_CALLED = "a step's call returned, its result not yet stored"
    STEP_STORED = "a step's result is stored"
    AGENT_RETURNED = "the agent returned, the reply not yet stored"
    REPLY_STORED = "the reply is stored, no part sent"
    BEFORE_SEND = "a part is marked as being sent, the provider not yet called"
    AFTER_SEND = "the provider answered, the receipt not yet stored"
    PART_RECORDED = "a receipt is stored, more parts wait"
    SETTLED = "the run has ended and the next one is promoted"
    APOLOGY_STORED = "the apology is stored, not sent"
    GIVEN_BACK = "the run was given back"
    RELEASED = "a dead holder's runs were released, nobody has claimed them"
    STANDALONE_BEFORE_SEND = "a standalone part is being sent, the provider not yet called"
    STANDALONE_AFTER_SEND = "the provider took a standalone part, its receipt not yet stored"


Reached = Callable[[Checkpoint], Awaitable[None]]


async def nowhere(_checkpoint: Checkpoint) -> None:
    """Production's `Reached`."""
