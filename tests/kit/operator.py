"""An operator with a browser: signs in, follows links and sends forms as a page of ours does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from tests.fakes.plain import NO_CERTIFICATES
from tests.limits import PATIENCE
from tests.world import Running

PASSWORD = "a password of some length"
SETTINGS: dict[str, Any] = {"operator_password": PASSWORD}
"""A process with the operator's page."""
_FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]*)"')


@dataclass
class OperatorBrowser:
    """Somebody who looks at the page of one process. `base` is where that listens."""

    base: str
    http: httpx.AsyncClient

    async def sign_in(self, name: str = "operator", password: str = PASSWORD) -> httpx.Response:
        """Fill in the form and send it."""
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
