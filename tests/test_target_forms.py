"""A request whose target has scheme and host is the one that it is without them, at every door."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx
import pytest

from bot.http import build_waiting_app
from bot.main import listen_on_loopback, listening
from tests.fakes.plain import NO_CERTIFICATES
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import SIGNATURE, signature
from tests.kit.agents import repeats
from tests.kit.operator import SETTINGS
from tests.kit.web import WEB
from tests.limits import PATIENCE
from tests.world import PUBLIC, Running, World

pytestmark = pytest.mark.alternating(0)

WEBHOOK = "/whatsapp/webhook"
EVIL = "https://evil.example"


@pytest.fixture
async def running(world: World) -> Running:
    return await world.start(agent=repeats, **WEB, **SETTINGS)


async def ask(
    running: Running, target: str, method: str = "GET", content: str = "", **headers: str
) -> httpx.Response:
    """The answer to a request whose first line has this target, word for word."""
    return await running.client.request(
        method,
        running.url,
        content=content,
        headers=headers,
        extensions={"target": target.encode()},
    )


PATHS = {
    "/healthz": 200,
    "/metrics": 200,
    "/telegram/webhook": 405,
    "/operator": 303,
    "/operator/sign-in?next=%2Foperator%2Fruns": 200,
    "/operator%2Fsign-in": 200,
    "//operator": 404,
    "/web/v1/openapi.json": 200,
    "/web/v1/events": 401,
    "/web/v1/turns/a%2Fb": 404,
    "/nowhere": 404,
    "": 404,
    "?x=/healthz": 404,
}


async def test_each_path_gives_what_it_gives_without_a_host(running: Running) -> None:
    for path, status in PATHS.items():
        bare = await ask(running, path if path.startswith("/") else f"/{path}")
        assert bare.status_code == status, path
        for before in ("http://bot.example.com", "HTTPS://somebody@[::1]:8443", running.url):
            answer = await ask(running, before + path)
            assert answer.status_code == status, (before, path)
            for header in ("location", "content-type", "allow", "content-security-policy"):
                assert answer.headers.get(header) == bare.headers.get(header), (before, path)
    for target in (
        *("http:///healthz", "http:/healthz", "ftp://here/healthz", "http://here%2Fhealthz"),
        *("http://here#/healthz", "http://here/http://here/healthz", "here/healthz", "*"),
    ):
        assert (await ask(running, target)).status_code == 404, target


async def test_the_path_of_public_url_may_stand_before_either_form(world: World) -> None:
    running = await world.start(agent=repeats, public_url=f"{PUBLIC}/bot", **WEB, **SETTINGS)
    for named in ("", "http://bot.example.com"):
        page = await ask(running, f"{named}/bot/operator")
        assert page.headers["location"].startswith("/bot/operator/sign-in"), named
        for path, status in (("/bot/telegram/webhook", 405), ("/bot/web/v1/events", 401)):
            assert (await ask(running, named + path)).status_code == status, (named, path)


async def test_a_signature_is_one_over_public_url_whatever_the_target_calls_us(
    running: Running,
) -> None:
    fields = inbound_form(
        sid=f"SM{1:032x}", account=ACCOUNT, from_="whatsapp:+15550100020", to=SENDER, body="hello"
    )
    for signed, status in ((EVIL, 403), (running.url, 403), (PUBLIC, 200)):
        for named in (EVIL, running.url, PUBLIC):
            made = signature(f"{signed}{WEBHOOK}?shop=1", fields, AUTH_TOKEN, "sha1")
            answer = await ask(
                running,
                f"{named}{WEBHOOK}?shop=1",
                "POST",
                urlencode(fields),
                **{SIGNATURE: made, "content-type": "application/x-www-form-urlencoded"},
            )
            assert answer.status_code == status, (signed, named)


async def test_the_host_in_a_target_opens_no_page_that_the_host_header_does_not(
    running: Running,
) -> None:
    sign_in, session = f"{running.url}/operator/sign-in", f"{running.url}/web/v1/session"
    for elsewhere in ({"Host": "evil.example"}, {"X-Forwarded-For": "203.0.113.9"}):
        assert (await ask(running, sign_in, **elsewhere)).status_code == 404
    foreign = await ask(running, f"{EVIL}/operator/sign-in", "POST", Origin=EVIL)
    assert (foreign.status_code, foreign.text) == (403, "the form came from another page\n")
    strange = await ask(running, f"{EVIL}/web/v1/session", "POST", "{}", Origin=EVIL)
    assert strange.status_code == 403
    assert (await ask(running, session, "POST", "{}", Origin=running.url)).status_code == 200


async def test_a_process_that_starts_says_so_to_both_forms() -> None:
    listener = listen_on_loopback(0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        listening(build_waiting_app(), listener),
        httpx.AsyncClient(verify=NO_CERTIFICATES, trust_env=False, timeout=PATIENCE) as client,
    ):
        for path, status in (("/healthz", 200), ("/telegram/webhook", 503)):
            for named in ("", "http://bot.example.com"):
                target = f"{named}{path}".encode()
                answer = await client.get(url, extensions={"target": target})
                assert answer.status_code == status
