"""Nobody gets in who may not: every route, without signing in, from elsewhere, with other forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import unquote

import httpx
import pytest

from bot.operator.app import VIEWS, OperatorPage
from bot.operator.door import Door
from bot.operator.view import View
from bot.wiring import Role
from tests.kit.operator import (
    CREDENTIALS,
    PASSWORD,
    SETTINGS,
    TWO,
    OperatorBrowser,
    form_token,
)
from tests.operator.conftest import Browsers
from tests.world import PUBLIC, Running, World

pytestmark = pytest.mark.alternating(0)

OPEN_TO_ALL = {("GET", "/operator/sign-in"), ("POST", "/operator/sign-in")}
OUTSIDE = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
async def running(world: World) -> Running:
    return await world.start(**SETTINGS)


def page_of(running: Running) -> OperatorPage:
    page = running.process.operator_page
    assert page is not None
    return page


def routes(running: Running) -> Iterator[tuple[str, str]]:
    """Every route that the application has, with something for each part of its path."""
    for route in page_of(running).routes:
        path = re.sub(r"\{\w+:int\}", "1", route.path)
        for name, value in (("of", "run"), ("act", "requeue"), ("name", "x.css")):
            path = path.replace(f"{{{name}}}", value)
        for method in sorted((route.methods or set()) - {"HEAD"}):
            yield method, path


async def test_no_route_shows_or_does_anything_for_somebody_who_is_not_signed_in(
    running: Running, browsers: Browsers
) -> None:
    asked = list(routes(running))
    assert len(asked) > len(VIEWS)
    for cookie in ("", "nonsense", "a.b.c", "e30.e30.", "x" * 5000):
        stranger = browsers(running)
        for method, path in asked:
            if (method, path) in OPEN_TO_ALL or path.startswith("/operator/static/"):
                continue
            answer = await stranger.http.request(
                method,
                running.url + path,
                headers={"Origin": running.url, "Cookie": f"answerback_operator={cookie}"},
            )
            if method == "GET" and "/live/" not in path:
                assert answer.status_code == 303, path
                assert answer.headers["location"].startswith("/operator/sign-in"), path
            else:
                assert answer.status_code in (303, 401), (method, path)
            assert len(answer.content) < 100, path


async def test_without_a_password_every_path_is_unknown(world: World, browsers: Browsers) -> None:
    running = await world.start()
    assert running.process.operator_page is None
    stranger = browsers(running)
    for path in ("", "/", "/sign-in", "/runs/1", "/static/operator.css"):
        assert (await stranger.get(path)).status_code == 404
    worker = await world.start(role=Role.WORKER, **SETTINGS)
    assert (await browsers(worker).get("/sign-in")).status_code == 404


async def test_a_page_for_this_machine_is_unknown_to_whoever_comes_from_elsewhere(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    await ada.sign_in()
    for elsewhere in (
        OUTSIDE,
        {"X-Forwarded-For": "127.0.0.1, 203.0.113.9"},
        {"X-Forwarded-For": "unknown"},
        {"Forwarded": "for=203.0.113.9"},
        {"X-Real-IP": "203.0.113.9"},
        {"Via": "1.1 proxy"},
        {"Host": "bot.example.test"},
        {"Host": "evil.test:8080"},
        {"Host": "localhost.evil.test"},
    ):
        for method, path in routes(running):
            answer = await ada.http.request(method, running.url + path, headers=elsewhere)
            assert answer.status_code == 404, (elsewhere, path)
            assert "Content-Security-Policy" not in answer.headers
    for name in ("localhost", "127.0.0.1", "[::1]:8080", "LOCALHOST:1"):
        assert (await ada.get("/sign-in", Host=name)).status_code == 200, name
    assert (await ada.get("", **{"X-Forwarded-For": "127.0.0.1"})).status_code == 200


async def test_a_proxy_that_says_nothing_of_whom_it_asks_for_is_no_browser_of_this_machine(
    running: Running,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(running.url).port)
    writer.write(b"GET /operator/sign-in HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
    assert b" 404 " in await reader.readline()
    writer.close()


async def test_where_it_is_open_others_come_in_by_tls_alone_with_cookies_that_stay_there(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(operator_open=True, **SETTINGS)
    there = {"Host": "bot.example.test", **OUTSIDE}
    ada = browsers(running)
    form = await ada.get("/sign-in", **there)
    [browser] = form.headers.get_list("set-cookie")
    fields = {"form_token": form_token(form), "name": "operator", "password": PASSWORD}
    named = {"Cookie": browser.partition(";")[0]}
    refused = await ada.send("/sign-in", fields, **there, **named)
    assert refused.status_code == 403  # The origin is that of the process and not PUBLIC_URL's.
    for other in ("203.0.113.7:8080", "other.example.test"):
        plain = {"Host": other, "Origin": f"http://{other}"}
        assert (await ada.send("/sign-in", fields, **plain, **named)).status_code == 404, other
    # As by the published port of a container, or over ssh.
    assert (await ada.get("/sign-in", Host="localhost:8080")).status_code == 200
    answer = await ada.send("/sign-in", fields, **there, **named, Origin=PUBLIC)
    assert answer.status_code == 303
    cookies = "\n".join([browser, *answer.headers.get_list("set-cookie")])
    for word in ("HttpOnly", "Secure", "SameSite=strict", "Path=/operator"):
        assert cookies.count(word) == 2, word


@pytest.mark.parametrize("said", ["bot.example.test", "bot.example.test:443"])
def test_the_usual_port_in_public_url_is_the_one_that_browsers_leave_out(said: str) -> None:
    door = Door(f"{PUBLIC}:443/bot", open_=True, proxies=())
    found = door.access({"type": "http", "headers": [(b"host", said.encode())]})
    assert found is not None
    assert (found.origin, found.root) == (PUBLIC, "/bot")


async def test_a_form_from_another_page_or_session_does_nothing(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**TWO)
    ada, other = browsers(running), browsers(running)
    await ada.sign_in("ada")
    await other.sign_in("ada")
    token = form_token(await ada.get(""))
    theirs = form_token(await other.get(""))
    assert token != theirs
    for method, path in routes(running):
        if method != "POST" or path == "/operator/sign-in":
            continue
        for fields, headers in (
            ({}, {}),
            ({"form_token": theirs}, {}),
            ({"form_token": ""}, {}),
            ({"form_token": "ключ"}, {}),
            ({"form_token": token}, {"Origin": "https://evil.test"}),
            ({"form_token": token}, {"Origin": "null"}),
            ({"form_token": token}, {"Origin": running.url.replace("http:", "https:")}),
        ):
            answer = await ada.send(path.removeprefix("/operator"), fields, **headers)
            assert answer.status_code == 403, (path, fields, headers)
        answer = await ada.http.post(running.url + path, data={"form_token": token})
        assert answer.status_code == 403, "neither an Origin nor the browser's word"
    assert (await ada.get("")).status_code == 200, "nobody was signed out"
    assert await deeds(world) == ["signed in", "signed in"]


async def test_who_may_only_read_sees_no_button_and_can_do_nothing(
    world: World, browsers: Browsers
) -> None:
    running = await world.start(**TWO)
    bob = browsers(running)
    await bob.sign_in("bob")
    page = await bob.get("")
    assert "(reads)" in page.text
    token = form_token(page)
    acting = [view for view in VIEWS if view.role.value == "acting"]
    assert {view.method for view in acting} == {"GET", "POST"}
    for view in acting:
        path = path_of(view)
        answer = (
            await bob.get(path)
            if view.method == "GET"
            else await bob.send(path, {"form_token": token})
        )
        assert answer.status_code == 403, path
        assert "bob may read" in answer.text
    changing = [view for view in VIEWS if view.method != "GET" and view.role.value == "reading"]
    assert changing == []


def path_of(view: View) -> str:
    path = re.sub(r"\{\w+:int\}", "1", view.path)
    return path.replace("{of}", "run").replace("{act}", "requeue")


async def test_every_answer_keeps_scripts_and_frames_of_others_out(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    stranger = browsers(running)
    await ada.sign_in()
    css = re.search(r'href="/operator(/static/operator\.[0-9a-f]+\.css)"', (await ada.get("")).text)
    assert css
    for answer in (
        await ada.get(""),
        await ada.get("/nothing"),
        await ada.get(css[1]),
        await stranger.get(""),
        await stranger.get("/sign-in"),
        await stranger.send("/sign-in", {"name": "operator", "password": "wrong"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        kept = "immutable" if answer.url.path.endswith(".css") else "no-store"
        assert kept in answer.headers["cache-control"]
    assert (await ada.get("/static/operator.000000000000.css")).status_code == 404


async def test_a_form_that_is_too_large_or_damaged_is_refused_as_such(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    await ada.sign_in()
    token = form_token(await ada.get(""))
    large = await ada.send("/acts/recover", {"form_token": token, "x": "y" * 70_000})
    assert large.status_code == 413
    file = await ada.send("/acts/recover", {"form_token": token}, files={"f": ("a", b"b")})
    assert file.status_code == 400
    damaged = await ada.http.post(
        f"{running.url}/operator/acts/recover",
        content=b"--x\r\nnonsense",
        headers={"Origin": running.url, "Content-Type": "multipart/form-data; boundary=x"},
    )
    assert damaged.status_code in (400, 403)
    for kind in ("multipart/form-data", "application/json", "text/plain"):
        other = await ada.http.post(
            f"{running.url}/operator/acts/recover",
            content=b"form_token=x",
            headers={"Origin": running.url, "Content-Type": kind},
        )
        assert other.status_code in (400, 403), kind


@pytest.mark.parametrize("charset", ["punycode", "undefined", "unicode_escape"])
async def test_a_form_in_a_character_set_that_cannot_be_read_is_refused_as_such(
    running: Running, browsers: Browsers, charset: str
) -> None:
    content = b"\\ud800" if charset == "unicode_escape" else b"\xff..a"
    part = (
        b'--x\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n%s\r\n--x--\r\n' % content
    )
    headers = {
        "Origin": running.url,
        "Content-Type": f"multipart/form-data; boundary=x; charset={charset}",
    }
    ada = browsers(running)
    await ada.get("/sign-in")
    sent = await ada.http.post(f"{running.url}/operator/sign-in", content=part, headers=headers)
    assert sent.status_code == (403 if charset == "unicode_escape" else 400)


@pytest.mark.parametrize("number", ["9223372036854775808", "9" * 5000])
async def test_a_number_that_nothing_can_have_names_nothing(
    running: Running, browsers: Browsers, number: str
) -> None:
    ada = browsers(running)
    await ada.sign_in()
    for _, path in routes(running):
        if "/1" in path:
            named = path.removeprefix("/operator").replace("/1", f"/{number}")
            assert (await ada.get(named)).status_code in (404, 405), path
    for path in (f"/chats?before={number}", f"/chats?after=asked-1-{number}"):
        assert (await ada.get(path)).status_code == 404, path
    assert "No run matches" in (await ada.get(f"/search?q={number}")).text


async def test_somebody_who_was_sent_a_link_lands_there_after_signing_in(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    away = await ada.get("/search?q=a%20b&state=ready")
    form = await ada.http.get(running.url + away.headers["location"])
    fields = {"form_token": form_token(form), "name": "operator", "password": PASSWORD}
    fields["next"] = re.findall(r'name="next" value="([^"]*)"', form.text)[0].replace("&amp;", "&")
    answer = await ada.send("/sign-in", fields)
    assert answer.headers["location"] == "/operator/search?q=a%20b&state=ready"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.test",
        "//evil.test",
        "/operator/../telegram",
        "/operator/.%2E/telegram",
        "/operator/%2e%2e?x",
        "/operatorx",
        "/operator\\evil",
        "/operator/\r\nX: y",
    ],
)
async def test_signing_in_leads_nowhere_else(
    running: Running, browsers: Browsers, elsewhere: str
) -> None:
    ada = browsers(running)
    form = await ada.get("/sign-in")
    fields = {"form_token": form_token(form), "name": "operator", "password": PASSWORD}
    answer = await ada.send("/sign-in", {**fields, "next": elsewhere})
    assert httpx.URL(answer.headers["location"]).path.startswith("/operator")
    assert ".." not in unquote(answer.headers["location"])
    assert httpx.URL(answer.headers["location"]).host == ""


async def test_a_link_from_elsewhere_is_opened_once_more_from_here(
    running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    page = await ada.get("/runs/1?words=1", **{"Sec-Fetch-Site": "cross-site"})
    assert page.status_code == 200
    assert 'content="0;url=/operator/runs/1?words=1"' in page.text


async def deeds(world: World) -> list[str]:
    """Everything that was written down of operators, but tries."""
    rows = await world.rows("SELECT what FROM events WHERE who LIKE '%@page' ORDER BY id")
    return [row[0] for row in rows if row[0] != "tried to sign in"]


async def test_each_sign_in_and_try_is_written_down_without_what_was_typed(
    world: World, running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    refused = await ada.sign_in("my password by mistake", "wrong")
    assert refused.status_code == 401
    assert "This is not the password." in refused.text
    await ada.sign_in()
    await ada.send("/sign-out", {"form_token": form_token(await ada.get(""))})
    rows = await world.rows("SELECT who, what, why FROM events WHERE who LIKE '%@page' ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (rows[0][0], "tried to sign in", "from 127.0.0.1"),
        ("somebody as operator@page", "tried to sign in", "from 127.0.0.1"),
        ("operator@page", "signed in", "from 127.0.0.1"),
        ("operator@page", "signed out", "from 127.0.0.1"),
    ]
    assert re.fullmatch(r"somebody as an unknown name \([0-9a-f]{3}\)@page", rows[0][0])


def other_cookie(browser: OperatorBrowser) -> str:
    return browser.http.cookies["answerback_operator"]


async def test_a_session_is_known_to_every_process_and_over_everywhere_once_it_is_left(
    world: World, running: Running, browsers: Browsers
) -> None:
    second = await world.start(**SETTINGS)
    ada, elsewhere, kept = browsers(running), browsers(second), browsers(running)
    await ada.sign_in()
    await kept.sign_in()
    elsewhere.http.cookies.set("answerback_operator", other_cookie(ada))
    assert (await elsewhere.get("")).status_code == 200
    await ada.send("/sign-out", {"form_token": form_token(await ada.get(""))})
    assert (await elsewhere.get("")).status_code == 303
    assert (await kept.get("")).status_code == 200, "another browser stays signed in"


async def test_another_password_ends_the_sessions_of_the_old_one_and_no_others(
    world: World, browsers: Browsers
) -> None:
    before = await world.start(**TWO)
    ada, bob = browsers(before), browsers(before)
    await ada.sign_in("ada")
    await bob.sign_in("bob")
    after = await world.start(
        operator_users=f"ada:acting:another-password bob:acting:{CREDENTIALS['bob']}"
    )
    for one, status in ((ada, 303), (bob, 200)):
        there = browsers(after)
        there.http.cookies.set("answerback_operator", other_cookie(one))
        assert (await there.get("")).status_code == status
        if status == 200:
            assert (await there.get("/acts/recover")).status_code == 200, "the role is today's"


async def test_a_session_is_over_after_a_working_day(
    world: World, running: Running, browsers: Browsers
) -> None:
    ada = browsers(running)
    await ada.sign_in()
    world.advance(11 * 3600)
    assert (await ada.get("")).status_code == 200
    world.advance(2 * 3600)
    assert (await ada.get("")).status_code == 303
