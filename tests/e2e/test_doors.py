"""The HTTP routes from outside: secrets, sizes, and the words to a platform."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlencode

import httpx
import pytest

from tests.e2e.processes import Ground, Program
from tests.fakes.recording import Json
from tests.fakes.telegram.server import TOKEN
from tests.fakes.twilio.courier import Form
from tests.fakes.twilio.forms import inbound_form
from tests.fakes.twilio.server import ACCOUNT, AUTH_TOKEN, SENDER
from tests.fakes.twilio.signing import SIGNATURE, signature
from tests.fakes.updates import Person
from tests.limits import until
from tests.world import PUBLIC, SECRET, SECRET_HEADER

ADA = Person(700_100_241)
EVA = "whatsapp:+15550100020"
INBOUND = "/whatsapp/webhook"


def form(number: int, body: str = "hello") -> Form:
    """An inbound message of Eva's."""
    return inbound_form(sid=f"SM{number:032x}", account=ACCOUNT, from_=EVA, to=SENDER, body=body)


async def post_form(
    program: Program,
    fields: Form,
    signed: str = PUBLIC + INBOUND,
    at: str = INBOUND,
    **headers: str,
) -> httpx.Response:
    """Post a form to `at`, with a signature made over `signed` (empty: without one)."""
    if signed:
        headers[SIGNATURE] = signature(signed, fields, AUTH_TOKEN, "sha1")
    headers["content-type"] = "application/x-www-form-urlencoded"
    return await program.client.post(program.url + at, content=urlencode(fields), headers=headers)


async def stored(ground: Ground) -> tuple[int, int]:
    """The numbers of messages and of other payloads."""
    sql = "SELECT (SELECT count(*) FROM inbound), (SELECT count(*) FROM payloads)"
    found = (await ground.world.rows(sql))[0]
    return found[0], found[1]


async def test_b61_only_the_right_secret_and_signature_come_in(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    open_to_all = await ground.spawn("serve", TELEGRAM_WEBHOOK_SECRET="")
    assert await open_to_all.ended() == 2
    assert "TELEGRAM_WEBHOOK_SECRET" in open_to_all.output

    program = await ground.serve("web")
    wrong = {
        (await program.post_update(ADA.text("x"), s)).status_code
        for s in ("", "no", SECRET.upper())
    }
    fields = form(1)
    over_inside = f"{program.url}{INBOUND}"
    for signed in ("", over_inside, PUBLIC + "/whatsapp/status", "https://other.example" + INBOUND):
        wrong.add((await post_form(program, fields, signed)).status_code)
    nonsense = await post_form(program, fields, "", **{SIGNATURE: "not base64"})
    wrong.add(nonsense.status_code)
    wrong.add((await post_form(program, fields, "", "/whatsapp/status")).status_code)
    assert wrong <= {401, 403}
    assert await stored(ground) == (0, 0)
    assert (await program.post_update(ADA.text("x"))).status_code == 200
    assert (await post_form(program, fields)).status_code == 200
    assert await stored(ground) == (2, 0)
    assert SECRET not in program.output
    assert SECRET.upper() not in program.output
    assert AUTH_TOKEN not in program.output


async def test_b63_what_a_platform_is_told_reaches_nobody(sqlite_ground: Ground) -> None:
    program = await sqlite_ground.serve()
    status = [("MessageSid", "SM" + 32 * "0"), ("MessageStatus", "sent"), ("AccountSid", ACCOUNT)]
    answers = [await post_form(program, form(1)), await post_form(program, form(1))]
    answers.append(await post_form(program, form(2, body="")))
    answers.append(
        await post_form(program, form(3), PUBLIC + "/whatsapp/fallback", "/whatsapp/fallback")
    )
    answers.append(
        await post_form(program, status, PUBLIC + "/whatsapp/status", "/whatsapp/status")
    )
    for answer in answers:
        assert answer.status_code in (200, 204), answer.text
        assert answer.headers["content-type"].partition(";")[0] in ("text/xml", "application/xml")
        assert answer.text.endswith("<Response></Response>")
    update = ADA.text("hello")
    for answer in [await program.post_update(update), await program.post_update(update)]:
        assert (answer.status_code, answer.text) == (200, "")
    await sqlite_ground.world.settled()
    assert sqlite_ground.world.telegram.texts(ADA.number) == ["re: hello"]


async def test_b04_the_fallback_takes_the_same_message_once(sqlite_ground: Ground) -> None:
    program = await sqlite_ground.serve()
    assert (await post_form(program, form(1))).status_code == 200
    again = [("NewParameter", "harmless"), ("ErrorCode", "11200"), *reversed(form(1))]
    fallback = "/whatsapp/fallback"
    assert (await post_form(program, again, PUBLIC + fallback, fallback)).status_code == 200
    await sqlite_ground.world.settled()
    assert (await stored(sqlite_ground))[0] == 1
    assert sqlite_ground.world.twilio.texts(EVA) == ["re: hello"]
    assert len(sqlite_ground.world.twilio.calls_of("create")) == 1


async def test_b59_public_url_decides_with_its_path_and_no_header_does(
    sqlite_ground: Ground,
) -> None:
    ground = sqlite_ground
    base = f"{PUBLIC}/hooks"
    program = await ground.serve("web", PUBLIC_URL=f"{base}/")
    signed = base + INBOUND
    forged = {
        "X-Forwarded-Host": "other.example",
        "X-Forwarded-Proto": "https",
        "Forwarded": "host=other.example;proto=https",
        "Host": "other.example",
    }
    other = "https://other.example" + INBOUND
    assert (await post_form(program, form(1), other, **forged)).status_code == 403
    assert (await post_form(program, form(1), PUBLIC + INBOUND)).status_code == 403
    assert (await post_form(program, form(1), program.url + INBOUND)).status_code == 403
    assert await stored(ground) == (0, 0)
    assert (await post_form(program, form(1), signed, **forged)).status_code == 200
    assert (await post_form(program, form(2), signed, "/hooks" + INBOUND)).status_code == 200
    queried = f"{INBOUND}?shop=1&empty="
    assert (await post_form(program, form(3), base + queried, queried)).status_code == 200
    assert (await stored(ground))[0] == 3


STRANGE: list[Json] = [
    {"update_id": 10**30, "message": ADA.text("x")["message"]},
    {"update_id": -1},
    {"update_id": "1", "message": {"text": 5}},
    {"message": None},
    ADA.text("nul \u0000 and half a pair \ud83d"),
    ADA.text("x" * 5000),
    ADA.message(text=None, entities=[{"type": "bold", "offset": -5, "length": 10**9}]),
    ADA.update("message", {"chat": {"id": 2**70}, "message_id": 2**70, "date": 2**70}),
    ADA.update(
        "message", {"chat": {"id": ADA.number, "type": "private"}, "message_id": 1, "date": -1}
    ),
    ADA.update("callback_query", {"id": "1"}),
    ADA.update("something_new", {"nested": [[[[]]]]}),
    ADA.update("message", ADA.content(text="x", caption="y", photo=[], reply_to_message={})),
]


async def test_no_body_makes_it_fail(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    program = await ground.serve()
    url = f"{program.url}/telegram/webhook"
    headers = {SECRET_HEADER: SECRET}

    async def post(content: bytes) -> int:
        return (await program.client.post(url, content=content, headers=headers)).status_code

    deep = b"[" * 100_000 + b"]" * 100_000
    for broken in (b"", b"{", b"not json", b"\xff\xfe\x00", deep):
        assert await post(broken) == 400, broken[:20]
    assert await post(b'"' + b"x" * 1_000_001 + b'"') == 413
    for whole in (b"[]", b"null", b"7", b'"x"', b"NaN", b'{"update_id": 1e999}'):
        assert await post(whole) in (200, 400), whole
    for update in STRANGE:
        assert await post(json.dumps(update).encode()) == 200, update
    long = [*form(1), ("Body", "x" * 1_000_000)]
    assert (await post_form(program, long)).status_code == 413
    many = [(f"F{n}", "") for n in range(2000)]
    assert (await post_form(program, many)).status_code in (400, 403)
    for strange in ([], [("", "")], [*form(2), ("NumMedia", "many")], [("MessageSid", "\u0000")]):
        assert (await post_form(program, strange)).status_code in (200, 400), strange
    bad_host = await program.client.post(url, content=b"{}", headers=headers | {"host": "[::"})
    assert bad_host.status_code < 500
    assert (await program.get("/telegram/webhook")).status_code == 405
    assert (await program.get("/no/such/place")).status_code == 404
    assert (await program.post_update(ADA.text("still well?"))).status_code == 200
    await ground.world.settled()
    assert "still well?" in ground.world.telegram.texts(ADA.number)[-1]
    assert "Traceback" not in program.output
    assert "nobody handled" not in program.output


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
async def test_b91_no_line_of_a_whole_turn_has_a_token_or_what_was_said(
    sqlite_ground: Ground, level: str
) -> None:
    ground = sqlite_ground
    program = await ground.serve(LOG_LEVEL=level)
    await program.post_update(ADA.text("a-very-private-word"))
    await post_form(program, form(1, "a-very-private-word"))
    await ground.world.settled()
    refused, _ = await asyncio.gather(program.post_update(ADA.text("x"), "wrong"), program.stop())
    assert refused.status_code in (200, 403, 503)
    for secret in (TOKEN, "TEST-token", SECRET, AUTH_TOKEN, "a-very-private-word", EVA[-11:]):
        assert secret not in program.output, secret
    assert any("answerback" in line for line in program.said)
    assert any("debug" in line.lower() for line in program.said) == (level == "DEBUG")


async def raw(program: Program, request: bytes) -> str:
    """Send these bytes on a connection of their own; the head of the (last) answer."""
    port = int(program.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head, _, body = request.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        answer = ""
        if b"100-continue" in head:
            answer = (await reader.readuntil(b"\r\n\r\n")).decode()
            assert answer.startswith("HTTP/1.1 100"), answer
        writer.write(body)
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    finally:
        writer.close()


def posted(
    update: Json,
    path: str = "/telegram/webhook",
    version: str = "1.1",
    more: str = "",
    *,
    chunked: bool = False,
) -> bytes:
    """An update as Telegram posts it, byte for byte."""
    body = json.dumps(update).encode()
    length = f"Content-Length: {len(body)}"
    if chunked:
        length = "Transfer-Encoding: chunked"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    head = f"POST {path} HTTP/{version}\r\nHost: evil.example\r\n{SECRET_HEADER}: {SECRET}\r\n"
    return f"{head}{more}{length}\r\n\r\n".encode() + body


async def test_b121_a_slash_too_many_is_refused_and_told_in_one_line(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    program = await ground.serve(PUBLIC_URL=f"{PUBLIC}/")
    strays = [
        ("POST", p)
        for p in (
            *("/telegram/webhook/", "//telegram/webhook", "/Telegram/webhook", "/webhook"),
            *("/telegram-webhook", "/telegram/web hook", "/telegram", "/telegram/webhook/x"),
        )
    ]
    for _, path in 2 * strays:
        head = await raw(program, posted(ADA.text("x"), path.replace(" ", "%20")))
        assert head.startswith("HTTP/1.1 404"), head
        assert "location" not in head.lower()
    assert (await raw(program, posted(ADA.text("x"), "/"))).startswith("HTTP/1.1 404")
    forged = await raw(program, posted(ADA.text("x"), "/telegram/webhook%0Aerror:%20forged%1B[2J"))
    assert forged.startswith("HTTP/1.1 404")
    slashed = await post_form(program, form(1), f"{PUBLIC}{INBOUND}/", f"{INBOUND}/")
    got = await program.get(f"{INBOUND}?MessageSid=SM1&Body=a-very-private-word")
    assert (slashed.status_code, got.status_code) == (404, 405)
    assert "location" not in {*slashed.headers, *got.headers}
    await until(lambda: program.output.count("meets no route") >= 12)
    assert r"/telegram/webhook\nerror: forged\x1b[2J meets no route" in program.output
    for method, path in (*strays, ("POST", "/"), ("POST", f"{INBOUND}/"), ("GET", INBOUND)):
        told = [line for line in program.said if f" {method} {path} meets no route" in line]
        assert len(told) == 1, (path, program.said)
        assert "warning" in told[0]
    assert "a-very-private-word" not in program.output
    assert await stored(ground) == (0, 0)
    assert (await program.get("/elsewhere")).status_code == 404
    assert (await program.get("/")).status_code == 404
    assert program.output.count("meets no route") == 12


async def test_b121_every_way_of_sending_a_request_comes_in(sqlite_ground: Ground) -> None:
    ground = sqlite_ground
    program = await ground.serve()
    for request in (
        posted(ADA.text("chunked"), chunked=True),
        posted(ADA.text("old"), version="1.0"),
        posted(ADA.text("expected"), more="Expect: 100-continue\r\n"),
        posted(ADA.text("absolute"), "http://bot.example.com/telegram/webhook"),
    ):
        assert " 200 " in (await raw(program, request)).splitlines()[0]
    await ground.world.settled()
    said = " ".join(ground.world.telegram.texts(ADA.number))
    assert all(said.count(word) == 1 for word in ("chunked", "old", "expected", "absolute"))
