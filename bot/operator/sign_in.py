"""Signing in and out. Each try is written down before the password is looked at, so that however
many processes are asked at once, no more are looked at than the limit allows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.domain.message import clean
from bot.leases.runtime import Runtime
from bot.operator.door import PATH, Place
from bot.operator.look import Look
from bot.operator.passwords import Passwords
from bot.operator.sessions import LASTS, Sessions, SignedIn, same_token
from bot.operator.view import ON_PAGE
from storage import audit_log
from storage.statements.tx import Tx

COOKIE = "answerback_operator"
_BROWSER = "answerback_operator_form"
_TRIED, _CAME, _HELD_OFF, _LEFT = "tried to sign in", "signed in", "held off", "signed out"
_WITHIN = 300.0
_FROM_ONE, _FROM_ALL = 10, 100
"""Tries within so many seconds that did not succeed, from one address and from all."""
_NOBODY = f"somebody@{ON_PAGE}"
_WRONG = "This is not the password."
_WRONG_PAIR = "This name and password do not belong together."
_WAIT = "Too many tries. Wait five minutes; whoever is signed in stays so."
_OLD_FORM = "This form was old or came from elsewhere. Here is a new one."


@dataclass
class SignIn:
    """The two forms of whoever is outside, and the way out."""

    rt: Runtime
    look: Look
    sessions: Sessions
    one_password: bool
    """True where there is nobody to choose."""
    _passwords: Passwords = field(default_factory=Passwords)

    async def ask(
        self, request: Request, place: Place, *, said: str = "", status: int = 200
    ) -> Response:
        """The form. Raises DatabaseUnavailable."""
        browser = request.cookies.get(_BROWSER) or self.rt.clock.token()
        values = {
            "said": said,
            "root": place.root,
            "form_token": await self.sessions.form_token_of(browser),
            "one_password": self.one_password,
            "next": wanted(place, request.query_params.get("next", "")),
        }
        answer = self.look.page("sign_in.html", values, status)
        _set(answer, place, _BROWSER, browser, None)
        return answer

    async def take(self, request: Request, place: Place, form: FormData) -> Response:
        """Somebody's name and password. Raises DatabaseUnavailable."""
        browser = request.cookies.get(_BROWSER, "")
        token = await self.sessions.form_token_of(browser)
        if not browser or not same_token(_said(form, "form_token"), token):
            return await self.ask(request, place, said=_OLD_FORM, status=403)
        if not await self.rt.db.write(_may_try, place.network):
            return await self.ask(request, place, said=_WAIT, status=429)
        if await self.rt.db.read(_too_many, place.network):
            return await self.ask(request, place, said=_WAIT, status=429)
        name, typed = _said(form, "name").strip(), _said(form, "password")
        who = self.sessions.named(name)
        if not await self._passwords.match(who, typed) or who is None:
            wrong = _WRONG if self.one_password else _WRONG_PAIR
            return await self.ask(request, place, said=wrong, status=401)
        came, why = f"{who.name}@{ON_PAGE}", _from(place.network)
        await self.rt.db.write(audit_log.note, came, _CAME, why)
        cookie = await self.sessions.begin(who)
        answer = RedirectResponse(wanted(place, _said(form, "next")), status_code=303)
        _set(answer, place, COOKIE, cookie, round(LASTS))
        return answer

    async def leave(self, session: SignedIn, place: Place) -> Response:
        """Sign out: the session is over everywhere. Raises DatabaseUnavailable."""
        await self.sessions.end(session)
        who = f"{session.name}@{ON_PAGE}"
        await self.rt.db.write(audit_log.note, who, _LEFT, _from(place.network))
        answer = RedirectResponse(f"{place.root}{PATH}/sign-in", status_code=303)
        answer.headers["Clear-Site-Data"] = '"cache"'
        _set(answer, place, COOKIE, "", 0)
        return answer


def _said(form: FormData, name: str) -> str:
    """A field of the form, of letters that can be written down and compared."""
    return clean(str(form.get(name, "")))


def wanted(place: Place, path: str) -> str:
    """The page of ours that somebody wanted; any other address leads to the first one."""
    start = f"{place.root}{PATH}"
    known = path == start or path.startswith((f"{start}/", f"{start}?"))
    names = re.split(r"[/?]", unquote(path))
    plain = path.isprintable() and "\\" not in path and ".." not in names
    return path if known and plain else start


def address(place: Place, request: Request) -> str:
    """The address of a request, as its browser has it."""
    query = request.scope["query_string"].decode("latin-1")
    return f"{place.root}{request.scope['path']}" + (f"?{query}" if query else "")


def way_in(place: Place, request: Request) -> Response:
    """The way to the form, and from there back."""
    path, start = address(place, request), f"{place.root}{PATH}"
    way = "" if path.rstrip("/") == start else f"?next={quote(path, safe='/')}"
    return RedirectResponse(f"{start}/sign-in{way}", status_code=303)


def _from(network: str) -> str:
    return f"from {network}"


def _may_try(tx: Tx, network: str) -> bool:
    """Write the try down, if there may be another one."""
    if _too_many(tx, network, 1):
        audit_log.note_once(tx, _NOBODY, _HELD_OFF, _from(network), within=_WITHIN)
        return False
    audit_log.note(tx, _NOBODY, _TRIED, _from(network))
    return True


def _too_many(tx: Tx, network: str, more: int = 0) -> bool:
    """Tell whether more tries failed lately than may, with those that are under way."""
    why = _from(network)
    failed, of_all = (
        audit_log.count_lately(tx, _TRIED, _WITHIN, one)
        - audit_log.count_lately(tx, _CAME, _WITHIN, one)
        for one in (why, None)
    )
    return failed + more > _FROM_ONE or of_all + more > _FROM_ALL


def _set(answer: Response, place: Place, name: str, value: str, seconds: int | None) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=f"{place.root}{PATH}",
        secure=place.secure,
        httponly=True,
        samesite="strict",
    )
