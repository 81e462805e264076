"""No token leaves the headers that it is for."""

from __future__ import annotations

import json
from time import time

import jwt
import pytest

from tests.browser.site import IDENTITY_SECRET, Site, Tab

pytestmark = pytest.mark.asyncio(loop_scope="session")


def signed(sub: str) -> str:
    """The site's word on who its visitor is."""
    return jwt.encode({"sub": sub, "name": sub, "exp": int(time()) + 600}, IDENTITY_SECRET, "HS256")


def _pieces(secret: str) -> set[str]:
    return {secret[at : at + 20] for at in range(len(secret) - 19)}


async def token_of(tab: Tab) -> str:
    """The token that the tab's browser holds."""
    stored = await tab.stored()
    session = next(value for key, value in stored.items() if key.endswith(":session"))
    token: str = json.loads(session)["token"]
    return token


async def test_b158_no_token_is_in_a_line_a_referrer_or_a_log(site: Site) -> None:
    program = await site.serve(LOG_LEVEL="debug")
    tab = await site.tab()
    await tab.write("as a guest")
    await tab.becomes("as a guest", "Answered")
    secrets = [await token_of(tab)]
    secrets.append(signed("ada"))
    await tab.page.evaluate("(jwt) => answerback.identify(jwt)", secrets[1])
    await tab.write("as ada")
    await tab.becomes("as ada", "Answered")
    secrets.append(await token_of(tab))
    await tab.reload()
    await tab.becomes("as ada", "Answered")
    await tab.page.evaluate("() => answerback.signOut()")
    pieces = set().union(*map(_pieces, secrets))
    for asked in site.proxy.asked:
        allowed = asked.headers.pop("authorization", "")
        assert allowed == "" or allowed.startswith("Bearer ")
        assert not _any(pieces, asked.line)
        assert not _any(pieces, json.dumps(asked.headers))
        assert asked.is_for("POST session") or not _any(pieces, asked.body.decode())
    assert not _any(pieces, program.output)
    assert not _any(pieces, (await program.get("/metrics")).text)


def _any(pieces: set[str], text: str) -> bool:
    return any(text[at : at + 20] in pieces for at in range(len(text) - 19))
