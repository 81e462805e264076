"""An operator with a browser: signs in, follows links and sends forms as a page of ours does."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from argon2 import PasswordHasher

from bot.clock import SystemClock
from bot.leases.runtime import Runtime
from bot.main import listening, listening_socket
from bot.operator.app import OperatorPage
from bot.schedule import CronCalendar
from bot.texts import Words
from bot.wiring import Role
from bot.wiring.channels import given_settings
from bot.wiring.operator_page import operator_page
from storage.engine.database import Database, DatabaseSettings
from storage.notify import Wakeups
from tests.cli.seeded import BOOT, NOW, SINCE_BOOT, fill
from tests.fakes.plain import NO_CERTIFICATES
from tests.limits import PATIENCE
from tests.world import Running

_CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""A sign-in takes what the hash in the settings says: 0.1 s of CPU, unless it is cheap."""


def hashed(password: str) -> str:
    """The hash of a password that nobody attacks, in the form that lists of settings take."""
    return _CHEAP.hash(password).translate(str.maketrans("$,", "._")).removeprefix(".")


NOBODYS = _CHEAP.hash("nobody's")
"""Stands in for the hash that is tried in the place of one that is not there."""
PASSWORD = "a password of some length"
SETTINGS: dict[str, Any] = {"operator_password": hashed(PASSWORD)}
"""A process with the operator's page, for one operator."""
PASSWORDS = {"ada": "adas-secret-word", "bob": "bobs-secret-word"}
CREDENTIALS = {name: hashed(password) for name, password in PASSWORDS.items()}
TWO: dict[str, Any] = {
    "operator_users": f"ada:acting:{CREDENTIALS['ada']},bob:reading:{CREDENTIALS['bob']}"
}
"""One for two: ada acts, bob reads."""
_FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]*)"')


@dataclass
class OperatorBrowser:
    """Somebody who looks at the page of one process. `base` is where that listens."""

    base: str
    http: httpx.AsyncClient

    async def sign_in(self, name: str = "operator", password: str = "") -> httpx.Response:
        """Fill in the form and send it, with the password of the name unless one is given."""
        password = password or PASSWORDS.get(name, PASSWORD)
        form = await self.get("/sign-in")
        token = form_token(form)
        fields = {"form_token": token, "name": name, "password": password, "next": ""}
        return await self.send("/sign-in", fields)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        """Look at a page."""
        return await self.http.get(f"{self.base}/operator{path}", headers=headers)

    async def send(
        self, path: str, fields: Mapping[str, Any], files: Any = None, **headers: str
    ) -> httpx.Response:
        """Send a form, as from a page of ours."""
        said = {"Origin": self.base, **headers}
        url = f"{self.base}/operator{path}"
        return await self.http.post(url, data=dict(fields), files=files, headers=said)

    async def submit(self, path: str, **fields: Any) -> httpx.Response:
        """Load a page with a form, fill it in and send it."""
        page = await self.get(path)
        assert page.status_code == 200, page.text
        return await self.send(path, {"form_token": form_token(page), **fields})


def form_token(page: httpx.Response) -> str:
    """The token that stands in the forms of a page."""
    found = _FORM_TOKEN.search(page.text)
    assert found, page.text
    return found[1]


def browser(running: Running) -> OperatorBrowser:
    """A browser of its own at this process; close its `http`."""
    client = httpx.AsyncClient(verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE)
    return OperatorBrowser(running.url, client)


class SeededClock(SystemClock):
    """The moment of the database that `tests/cli/seeded.py` fills, for ever."""

    def wall(self) -> float:
        return NOW

    def boot(self) -> tuple[str, float]:
        return BOOT, SINCE_BOOT


@dataclass(frozen=True)
class Seeded:
    """A page and its database."""

    page: OperatorPage
    db: Database


@asynccontextmanager
async def seeded(sqlite_url: str) -> AsyncIterator[Seeded]:
    """The page of a database with a run of every kind, of which nobody serves anything else. It
    can't send: no account is configured."""
    clock = SeededClock()
    settings = given_settings(database_url=sqlite_url, **SETTINGS)
    db = Database(DatabaseSettings(sqlite_url), clock)
    try:
        await db.write(fill)
        rt = Runtime(
            db=db,
            clock=clock,
            channels={},
            terms=settings.terms(),
            words=Words.load(),
            wakeups=Wakeups(clock, None),
            calendar=CronCalendar("UTC"),
        )
        page = operator_page(settings, Role.ALL, rt)
        assert page is not None
        yield Seeded(page, db)
        page.leave()
    finally:
        db.close()


@asynccontextmanager
async def served(sqlite_url: str) -> AsyncIterator[tuple[str, Seeded]]:
    """Such a page on a port, with its address."""
    listener = listening_socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    async with seeded(sqlite_url) as it, listening(it.page, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/operator", it


@asynccontextmanager
async def seeded_page(sqlite_url: str) -> AsyncIterator[OperatorBrowser]:
    """Somebody signed in to such a page."""
    async with seeded(sqlite_url) as it:
        transport = httpx.ASGITransport(it.page, client=("127.0.0.1", 50_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            ada = OperatorBrowser("http://127.0.0.1", client)
            assert (await ada.sign_in()).status_code == 303
            yield ada
