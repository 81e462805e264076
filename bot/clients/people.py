"""The people of an account: sessions that were ended, and guests whose chats became a user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.message import Address
from bot.leases.runtime import Runtime
from storage import claims, ended_sessions, secrets
from storage.notify import READY
from storage.views import sessions


@dataclass(frozen=True, slots=True)
class People:
    """The people of one account, by the addresses that their sessions open."""

    rt: Runtime
    account: int

    async def claim(self, guest: Address, user: Address) -> bool:
        """The guest's chat becomes the user's, once. False: it is another user's already."""
        owner, just_now = await self.rt.db.write(claims.claim, self.account, guest, user)
        if just_now:
            self.rt.wakeups.tell(READY)
        return owner == user

    async def end_session(self, session: str, until: float) -> None:
        """Refuse a session from now on; its token runs out at `until`."""
        await self.rt.db.write(ended_sessions.end, session, until)

    async def over(self, asked: Sequence[tuple[Address, str]]) -> frozenset[str]:
        """Those of these sessions, given with the addresses that they open, that are over."""
        return await self.rt.db.ask(sessions.over, self.account, asked)

    async def secret(self, name: str, fresh: str) -> str:
        """A secret of the account, made once: `fresh`, unless there is one."""
        return await self.rt.db.write(secrets.ensure, f"{name}/{self.account}", fresh)
