"""A bot's own profile at its platform: asked for at the start, and while the account is down.

The name that an earlier process learned comes from the database, so that a start without the
platform still recognises mentions of us.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.domain.errors import DatabaseUnavailable, PollConflict, PollRefused, PollUnavailable
from bot.domain.plugin import Profile
from bot.leases.runtime import Runtime
from bot.texts import Words
from storage import accounts
from storage.notify import READY

_log = logging.getLogger("answerback.introduction")
_TROUBLE = (PollUnavailable, PollConflict, PollRefused, DatabaseUnavailable)
_MEET_WITHIN = 5.0

Menus = Mapping[str, Sequence[tuple[str, str]]]


def menus_of(words: Words, *, data: bool = True) -> Menus:
    """The menu of commands by two-letter language, the empty one for all others; with `data` those
    about a person's own data are in it."""
    return {tag: words.menu(tag, data=data) for tag in ("", *words.languages) if len(tag) in (0, 2)}


def digest_of(menus: Menus) -> str:
    """A hash of these menus."""
    return hashlib.blake2s(json.dumps(menus).encode()).hexdigest()


@dataclass(slots=True)
class Introduction:
    """Learning the name of one account from its platform, and setting its menu of commands."""

    rt: Runtime
    account: int
    profile: Profile
    _failures: int = 0

    async def meet(self) -> None:
        """Ask once, briefly, if our name is not known: without it no mention is recognised."""
        if self.profile.public_name:
            return
        try:
            async with asyncio.timeout(_MEET_WITHIN):
                await self._learn()
        except (*_TROUBLE, TimeoutError) as error:
            _log.warning("who this bot is could not be asked yet: %s", error)

    async def introduce(self) -> float | None:
        """Learn our name, and set the menu of commands if the platform has another one. Returns the
        seconds until the next try; None: it worked, or was refused for good."""
        try:
            await self._learn()
            await self._show_menu()
        except _TROUBLE as error:
            self._failures += 1
            wait = self.rt.retry.connection.after(self._failures, self.rt.clock.jitter())
            _log.warning(
                "the platform could not be asked who we are: %s; again in %.0f s", error, wait
            )
            return wait
        return None

    async def probe(self) -> None:
        """While the account is down, ask whether its token works again."""
        rt = self.rt
        try:
            rows = await rt.db.read(accounts.listed)
            if not any(row.id == self.account and row.down_since is not None for row in rows):
                return
            await self._learn()
            if await rt.db.write(accounts.mark_up, self.account):
                _log.info("the platform takes the token again")
                rt.wakeups.tell(READY)
        except _TROUBLE as error:
            _log.info("the channel is still down: %s", error)

    async def _learn(self) -> None:
        name = await self.profile.learn()
        await self.rt.db.write(accounts.set_name, self.account, name)

    async def _show_menu(self) -> None:
        menus = menus_of(self.rt.words, data=self.rt.terms.intake.data)
        ours = digest_of(menus)
        try:
            if await self.rt.db.read(accounts.menu, self.account) != ours:
                await self.profile.show_menu(menus)
                await self.rt.db.write(accounts.set_menu, self.account, ours)
        except PollRefused as error:
            _log.warning("there is no menu of commands: %s", error)
