"""Signing in and out. Each try is recorded before its password is checked, so that no more
passwords are checked than the limit allows, however many processes are asked at once.

Failed tries are counted for each pair of a name and an address, so that somebody who mistypes a
password locks out nobody else. There are higher limits for each address, and for all together.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote, unquote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.domain.message import clean
from bot.leases.runtime import Runtime
from bot.operator.door import PATH, Access
from bot.operator.look import Look
from bot.operator.passwords import Passwords
from bot.operator.sessions import LASTS, Sessions, SignedIn, same_token
from bot.operator.view import ON_PAGE
from storage import audit_log
from storage.statements.tx import Tx

COOKIE = "answerback_operator"
_BROWSER = "answerback_operator_form"
_TRIED, _CAME, _LEFT = "tried to sign in", "signed in", "signed out"
_WITHIN = 300.0
_OF_NAME, _FROM_ONE, _FROM_ALL = 10, 30, 100
"""The most failed tries within `_WITHIN` seconds: with one name from one address, from one address,
and in all."""
_NOBODY = f"somebody@{ON_PAGE}"
_SHARED = (
    "all who come to the operator's page by way of %s count as one address: if it is a proxy of "
    "yours, name it in WEB_PROXIES and have it pass on X-Forwarded-For"
)
_HELD = "after wrong tries sign-in is held off for five minutes %s"
_TELLS = 20
"""The most addresses for which `_SHARED` is logged, once for each."""
_log = logging.getLogger("answerback.operator")


@dataclass(frozen=True, slots=True)
class _Try:
    """A try to sign in, as it is counted. The audit log has it under the name `who`, and if it
    succeeds under `came`. `shared`: others may have the same address."""

    who: str
    came: str
    network: str
    shared: bool

    @property
    def why(self) -> str:
        """The address, in the words of the audit log."""
        return _from(self.network)

    @property
    def source(self) -> str:
        """The address, with a remark if others may have it too."""
        return f"{self.why}, by way of which others come too" if self.shared else self.why


_WRONG = "This is not the password."
_WRONG_PAIR = "This name and password do not belong together."
_WAIT = "Too many tries. Wait five minutes; whoever is signed in stays so."
_OLD_FORM = "This form was old or came from elsewhere. Here is a new one."


@dataclass
class SignIn:
    """Signing in, by a form, and signing out."""

    rt: Runtime
    look: Look
    sessions: Sessions
    one_password: bool
    """True if there is only one operator, so that the form asks for no name."""
    _passwords: Passwords = field(default_factory=Passwords)
    _told: set[str] = field(default_factory=set)

    async def ask(
        self, request: Request, access: Access, *, said: str = "", status: int = 200
    ) -> Response:
        """Show the form. Raises DatabaseUnavailable."""
        browser = request.cookies.get(_BROWSER) or self.rt.clock.token()
        values = {
            "said": said,
            "root": access.root,
            "form_token": await self.sessions.form_token_of(browser),
            "one_password": self.one_password,
            "next": wanted(access, request.query_params.get("next", "")),
        }
        answer = self.look.page("sign_in.html", values, status)
        _set(answer, access, _BROWSER, browser, None)
        return answer

    async def take(self, request: Request, access: Access, form: FormData) -> Response:
        """Take the form, and begin a session if the name and password are right. Raises
        DatabaseUnavailable."""
        browser = request.cookies.get(_BROWSER, "")
        token = await self.sessions.form_token_of(browser)
        if not browser or not same_token(_said(form, "form_token"), token):
            return await self.ask(request, access, said=_OLD_FORM, status=403)
        name, typed = _said(form, "name").strip(), _said(form, "password")
        who = self.sessions.named(name)
        made = await self._try(name, access)
        # By the second check, all tries that are made at the same time are recorded.
        if not await self.rt.db.write(_may_try, made) or await self.rt.db.read(_too_many, made):
            if await self.rt.db.write(_hold_off, made):
                _log.warning(_HELD, made.source)
            return await self.ask(request, access, said=_WAIT, status=429)
        if not await self._passwords.match(who, typed) or who is None:
            wrong = _WRONG if self.one_password else _WRONG_PAIR
            return await self.ask(request, access, said=wrong, status=401)
        await self.rt.db.write(audit_log.note, made.came, _CAME, made.why)
        cookie = await self.sessions.begin(who)
        answer = RedirectResponse(wanted(access, _said(form, "next")), status_code=303)
        _set(answer, access, COOKIE, cookie, round(LASTS))
        return answer

    async def _try(self, name: str, access: Access) -> _Try:
        """A try with this name from the request's address. Raises DatabaseUnavailable."""
        if access.shared and access.network not in self._told and len(self._told) < _TELLS:
            self._told.add(access.network)
            _log.warning(_SHARED, access.network)
        # Unknown names are counted like known ones, so that nobody can find out which exist.
        known = self.sessions.named(name) is not None
        told = name if known else f"an unknown name ({await self.sessions.mark_of(name)})"
        who = f"somebody as {told}@{ON_PAGE}"
        return _Try(who, f"{name}@{ON_PAGE}" if known else "", access.network, access.shared)

    async def leave(self, session: SignedIn, access: Access) -> Response:
        """Sign out: the session is over everywhere. Raises DatabaseUnavailable."""
        await self.sessions.end(session)
        who = f"{session.name}@{ON_PAGE}"
        await self.rt.db.write(audit_log.note, who, _LEFT, _from(access.network))
        answer = RedirectResponse(f"{access.root}{PATH}/sign-in", status_code=303)
        answer.headers["Clear-Site-Data"] = '"cache"'
        _set(answer, access, COOKIE, "", 0)
        return answer


def _said(form: FormData, name: str) -> str:
    """A field of the form, without characters that a database or a comparison would refuse."""
    return clean(str(form.get(name, "")))


def wanted(access: Access, path: str) -> str:
    """The page of ours that was asked for; the first page if the address is not one of ours."""
    start = f"{access.root}{PATH}"
    known = path == start or path.startswith((f"{start}/", f"{start}?"))
    names = re.split(r"[/?]", unquote(path))
    plain = path.isprintable() and "\\" not in path and ".." not in names
    return path if known and plain else start


def address(access: Access, request: Request) -> str:
    """The path and query of a request, as its browser sees them."""
    query = request.scope["query_string"].decode("latin-1")
    return f"{access.root}{request.scope['path']}" + (f"?{query}" if query else "")


def way_in(access: Access, request: Request) -> Response:
    """A redirect to the sign-in form, which leads back afterwards."""
    path, start = address(access, request), f"{access.root}{PATH}"
    way = "" if path.rstrip("/") == start else f"?next={quote(path, safe='/')}"
    return RedirectResponse(f"{start}/sign-in{way}", status_code=303)


def _from(network: str) -> str:
    return f"from {network}"


def _may_try(tx: Tx, made: _Try) -> bool:
    """Record the try, if the limits allow one more. Returns whether they do."""
    if _too_many(tx, made, 1):
        return False
    audit_log.note(tx, made.who, _TRIED, made.why)
    return True


def _hold_off(tx: Tx, made: _Try) -> bool:
    """Record that sign-in is held off. Returns False if that was recorded lately already."""
    return audit_log.note_once(tx, _NOBODY, audit_log.HELD_OFF, made.source, within=_WITHIN)


def _too_many(tx: Tx, made: _Try, more: int = 0) -> bool:
    """Tell whether, with `more` tries added, a limit is exceeded by the tries of late that failed
    or are still under way."""
    tried = partial(audit_log.count_lately, tx, _TRIED, _WITHIN)
    came = partial(audit_log.count_lately, tx, _CAME, _WITHIN)
    counts = (
        (tried(who=made.who, why=made.why) - came(who=made.came, why=made.why), _OF_NAME),
        (tried(why=made.why) - came(why=made.why), _FROM_ONE),
        (tried() - came(), _FROM_ALL),
    )
    return any(failed + more > most for failed, most in counts)


def _set(answer: Response, access: Access, name: str, value: str, seconds: int | None) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=f"{access.root}{PATH}",
        secure=access.secure,
        httponly=True,
        samesite="strict",
    )
