"""The webhooks at the platforms: reading, setting and deleting them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from bot.domain.errors import (
    ConfigurationError,
    PollConflict,
    PollRefused,
    PollUnavailable,
    RecordsUnavailable,
)
from bot.domain.findings import Finding, Level, fine, problem, warning
from bot.domain.plugin import Endpoint, Webhook, WebhookState
from bot.leases.runtime import Runtime
from bot.operations.reports.stuck import Stuck, Trouble
from storage import accounts
from storage.notify import READY

REFUSALS = (PollConflict, PollRefused, PollUnavailable, RecordsUnavailable, ConfigurationError)
"""The errors that asking a platform about our account may raise."""

FRESH_ERROR = 3600.0
"""Seconds for which a webhook's last error matters; the platform keeps it for ever."""

_MANY_PENDING = 50
_LOOK_EVERY = 20.0
"""Seconds between two looks of a process at its webhook."""
_FAILS_NOW = 120.0
"""Seconds for which an error says that a webhook fails now, while something waits behind it."""

_log = logging.getLogger("answerback.webhooks")
_FIXES = {
    "401": "the secret differs: answerback webhook set",
    "403": "the secret differs: answerback webhook set",
    "404": "the path differs: answerback webhook set",
    "502": "the proxy does not reach this service",
    "503": "the database was away: answerback doctor",
}
"""By the status in words such as "Wrong response from the webhook: 403 Forbidden"."""


async def webhook_states(endpoints: Sequence[Endpoint]) -> Sequence[WebhookState]:
    """Every platform's webhook. A platform that can't be asked is a state too."""
    webhooks = [e.webhook for e in endpoints if e.webhook is not None]
    return await asyncio.gather(*(webhook.state() for webhook in webhooks))


def webhook_finding(state: WebhookState) -> Finding:
    """A webhook's state as a line of an examination."""
    name = f"{state.channel} webhook"
    put_right = "answerback webhook set"
    if state.trouble:
        return problem(name, state.trouble, "check the token, the account and the network")
    if state.by_hand:
        return warning(name, state.by_hand, f"it should be {state.wanted or 'none'}")
    if state.url and not state.wanted:
        mode = f"{state.channel.upper()}_MODE=webhook"
        fix = f"answerback webhook delete, or set PUBLIC_URL and {mode}"
        return problem(name, f"set to {state.url} while updates are polled", fix)
    if state.url != state.wanted:
        return problem(name, f"is {state.url or 'not set'}, not {state.wanted}", put_right)
    if state.missing:
        said = f"it does not deliver {', '.join(state.missing)}"
        return problem(name, f"{said}: somebody else set it too", put_right)
    if state.error_age is not None and state.error_age < FRESH_ERROR:
        said = f"failed {state.error_age:.0f} s ago: {state.error}; {state.pending} pending"
        fixes = (_FIXES[word] for word in state.error.split() if word in _FIXES)
        return problem(name, said, next(fixes, "is PUBLIC_URL reachable and this service running?"))
    if state.error and state.error_age is None:
        return warning(name, state.error, put_right)
    if (state.pending or 0) > _MANY_PENDING:
        return warning(name, f"{state.pending} updates are pending", "is the service running?")
    pending = "" if state.pending is None else f", {state.pending} pending"
    return fine(name, f"{state.url or 'none, updates are polled'}{pending}")


def cut_off(state: WebhookState) -> str:
    """The reason that nothing comes in by this webhook until somebody acts; empty where something
    does."""
    elsewhere = not state.by_hand and state.url != state.wanted
    return webhook_finding(state).says if state.refused or elsewhere else ""


def failing(state: WebhookState) -> str:
    """The trouble of a webhook that is as it should be and does not get through just now."""
    now = state.error_age is not None and state.error_age < _FAILS_NOW
    return webhook_finding(state).says if state.trouble or (now and state.pending) else ""


@dataclass(slots=True)
class WebhookWatch:
    """One account's webhook, looked at again and again by a process that it should deliver to:
    another program with the same token may have set it otherwise."""

    webhook: Webhook
    cut_off: str = ""
    """The reason that nothing comes in until somebody acts; empty as long as it was never ours."""
    failing: str = ""
    """The reason that nothing comes in just now. Readiness only names it: who turns away from a
    process for a delivery that failed would make the next one fail."""
    _was_ours: bool = False
    _told: object = None

    async def look(self) -> float:
        """Look once, put right what we may, tell what is new; returns the seconds until the
        next time."""
        state = await self.webhook.state()
        if state.missing and state.url == state.wanted:
            state = await self._repaired(state)
        self._was_ours = self._was_ours or state.url == state.wanted != ""
        self.failing = failing(state)
        if state.refused or (self._was_ours and not state.trouble):
            self.cut_off = cut_off(state)
        finding = webhook_finding(state)
        new = (finding.level, state.url, state.error, state.trouble)
        if finding.level is Level.PROBLEM and new != self._told:
            level = logging.ERROR if self.cut_off else logging.WARNING
            _log.log(level, "%s: %s; %s", finding.name, finding.says, finding.fix)
        elif finding.level is not Level.PROBLEM and self._told is not None:
            _log.info("%s: %s", finding.name, finding.says)
        self._told = new if finding.level is Level.PROBLEM else None
        return _LOOK_EVERY

    async def _repaired(self, state: WebhookState) -> WebhookState:
        """The state after the webhook was set as it should be, at the URL that it has."""
        try:
            await self.webhook.set(drop_pending=False)
        except REFUSALS as error:
            _log.warning("the webhook of %s could not be set again: %s", state.channel, error)
            return state
        kinds = ", ".join(state.missing)
        _log.warning("%s did not deliver %s: its webhook was set again", state.channel, kinds)
        return replace(state, missing=())


async def stuck_webhooks(endpoints: Sequence[Endpoint]) -> Sequence[Stuck]:
    """Webhooks that fail now, as what is stuck."""
    found = []
    for state in await webhook_states(endpoints):
        finding = webhook_finding(state)
        if finding.level == "problem":
            since = state.error_age or 0.0
            act = "answerback doctor  # examines the account and says the fix"
            found.append(Stuck(Trouble.WEBHOOK, state.channel, since, finding.says, act))
    return found


Then = Callable[[Endpoint], Awaitable[Sequence[str]]]


async def _nothing(_endpoint: Endpoint) -> Sequence[str]:
    return ()


async def set_webhooks(
    endpoints: Sequence[Endpoint], public_url: str, *, drop_pending: bool, then: Then = _nothing
) -> Sequence[str]:
    """Point every platform at PUBLIC_URL, and do what follows `then` for an account of which that
    was taken; returns what was done, line by line.

    Raises one of REFUSALS.
    """
    if not public_url:
        raise ConfigurationError(
            "PUBLIC_URL is empty: set it to the https address under which this service is reached, "
            "such as https://bot.example.com. Telegram needs none: without it updates are polled"
        )

    async def point(endpoint: Endpoint, webhook: Webhook) -> Sequence[str]:
        done = await webhook.set(drop_pending=drop_pending)
        return [*done, *await then(endpoint)]

    return await _of_each(endpoints, point)


async def try_again(rt: Runtime, endpoint: Endpoint) -> Sequence[str]:
    """Try an account again that could not send; returns a line for one that was so. Raises
    DatabaseUnavailable."""
    rows = {(c.name, c.account): row for row, c in rt.channels.items()}
    row = rows.get((endpoint.channel.name, endpoint.channel.account))
    if row is None or not await rt.db.write(accounts.mark_up, row):
        return ()
    rt.wakeups.tell(READY)
    return ["  it could not send: it is tried again now, with the answers that were kept"]


async def delete_webhooks(endpoints: Sequence[Endpoint]) -> Sequence[str]:
    """Take our webhooks away from every platform. Raises one of REFUSALS."""
    return await _of_each(endpoints, lambda _endpoint, webhook: webhook.delete())


async def _of_each(
    endpoints: Sequence[Endpoint],
    act: Callable[[Endpoint, Webhook], Awaitable[Sequence[str]]],
) -> Sequence[str]:
    """Do it to every webhook; one that is refused keeps none of the others from it, and the error
    then also says what was done."""
    done: list[str] = []
    failed: list[Exception] = []
    for endpoint in endpoints:
        if endpoint.webhook is None:
            continue
        try:
            done += await act(endpoint, endpoint.webhook)
        except REFUSALS as error:
            failed.append(error)
    if not failed:
        return done
    wrong = any(isinstance(error, ConfigurationError) for error in failed)
    said = "; ".join([*map(str, failed), *done])
    raise ConfigurationError(said) if wrong else RecordsUnavailable(said)
