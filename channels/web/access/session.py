"""Sessions: a guest begins one, a user signs in, somebody signs out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.domain.clients.desk import Desk
from bot.domain.message import Address
from channels.web.access.door import Door
from channels.web.access.identity import NotIdentified, identify
from channels.web.access.tokens import GUEST_LIFE, NotKnown, Session, Tokens
from channels.web.answers import Wrong, read

_MAX_BODY = 16_000


def chat_name(session: Session) -> str:
    """The chat's name for clients: the same on all devices of a user, and no secret."""
    return hashlib.sha256(session.address.chat.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sessions:
    """The routes of sessions."""

    door: Door

    async def begin(self, request: Request, desk: Desk) -> Response:
        """A token: for a new guest, for the same guest again, or for whom the site identifies; a
        guest who is identified takes the chat along. Raises NotKnown, Wrong."""
        before = await self.door.shown(request, desk)
        identity = (await read(request, _MAX_BODY)).get("identity")
        tokens = await self.door.tokens(desk)
        if identity is not None:
            return await self._sign_in(identity, before, tokens, desk)
        if before is None:
            return _begun(*tokens.guest())
        if await self.door.is_over(before, desk):
            raise NotKnown
        if not before.is_guest:
            raise Wrong(422, "a user's session is renewed by a new identity, signed by the site")
        return _begun(*tokens.guest(before))

    async def _sign_in(
        self, identity: object, before: Session | None, tokens: Tokens, desk: Desk
    ) -> Response:
        try:
            who = identify(identity, self.door.settings.web_identity_secret, self.door.clock.wall())
        except NotIdentified as refused:
            raise Wrong(401, str(refused)) from None
        token, session = tokens.user(who, await self._still_open(before, desk))
        claimed = (
            before is not None
            and before.is_guest
            and not self.door.is_past(before)
            and not await self._was_ended(before, desk)
            and await desk.claim(before.address, session.address)
        )
        return _begun(token, session, claimed=claimed)

    async def _still_open(self, before: Session | None, desk: Desk) -> Session | None:
        if before is None or before.is_guest or await self.door.is_over(before, desk):
            return None
        return before

    async def _was_ended(self, guest: Session, desk: Desk) -> bool:
        """Tell whether the guest signed out, whoever took the chat over before."""
        return bool(await desk.over([(Address(""), guest.id)]))

    async def end(self, request: Request, desk: Desk) -> Response:
        """Sign out: the session's tokens open nothing any more. Raises NotKnown, Wrong."""
        session = await self.door.shown(request, desk)
        if session is None:
            raise NotKnown
        await desk.end_session(session.id, self.door.clock.wall() + GUEST_LIFE)
        return Response(status_code=204)


def _begun(token: str, session: Session, *, claimed: bool = False) -> Response:
    return JSONResponse(
        {
            "token": token,
            "chat": chat_name(session),
            "signed_in": not session.is_guest,
            "claimed": claimed,
            "expires_at": round(session.ends_at),
        }
    )
