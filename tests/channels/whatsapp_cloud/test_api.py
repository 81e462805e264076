"""Calls to Meta: each once, with an answer or a reason that names nobody."""

from __future__ import annotations

import json

import httpx
import pytest

from channels.http import CallFailed, ErrorAnswer, NoAnswer, NothingReached
from channels.whatsapp_cloud.account import CloudNumber
from channels.whatsapp_cloud.api import GraphApi, GraphError
from tests.channels.whatsapp_cloud.kit import settings_with
from tests.channels.whatsapp_cloud.number import number_line
from tests.clocks import ShiftedClock
from tests.fakes.faults import Fault
from tests.fakes.meta import faults
from tests.fakes.meta.server import NUMBER, TOKEN
from tests.fakes.receiver import Receiver, Reply

ADA = "+15550100181"
HELLO = {"to": ADA, "type": "text", "text": {"body": "hello \ud800 \x00 ä"}}


async def test_a_message_is_sent_once_and_its_id_comes_back() -> None:
    async with number_line() as line:
        sent = await line.number._api.send({**HELLO, "biz_opaque_callback_data": "ab1.7.1"})
        [message] = line.fake.messages()
        assert (message.wamid, message.tag) == (sent, "ab1.7.1")


@pytest.mark.parametrize(
    ("fault", "raises"),
    [
        (faults.drop_after_storing(), NoAnswer),
        (faults.bad_gateway(), ErrorAnswer),
        (faults.server_error(), ErrorAnswer),
        (faults.unauthorized(), ErrorAnswer),
    ],
)
async def test_a_call_that_fails_is_made_once_and_its_reason_names_nobody(
    fault: Fault, raises: type[CallFailed]
) -> None:
    async with number_line() as line:
        line.fake.fail("send", fault)
        with pytest.raises(raises) as caught:
            await line.number._api.send(HELLO)
        assert len(line.fake.calls_of("send")) == 1
    assert not any(secret in str(caught.value) for secret in (TOKEN, ADA, "hello"))


@pytest.mark.parametrize("fault", [faults.without_id(), faults.not_json(), faults.empty_body()])
async def test_a_good_answer_that_names_no_message_gives_no_id(fault: Fault) -> None:
    async with number_line() as line:
        line.fake.fail("send", fault)
        assert await line.number._api.send(HELLO) == ""


async def test_nothing_reached_is_told_apart_from_nothing_heard() -> None:
    api = GraphApi("http://127.0.0.1:1", "v26.0", NUMBER, TOKEN, 5.0)
    with pytest.raises(NothingReached):
        await api.send(HELLO)
    await api.close()


@pytest.mark.parametrize(
    ("code", "subcode", "read"), [(100, 33, 33), (100, None, 100), (190, 463, 190), (33, None, 33)]
)
async def test_a_number_that_is_not_there_is_told_apart_from_a_bad_parameter(
    code: int, subcode: int | None, read: int
) -> None:
    async with number_line() as line:
        line.fake.fail("send", faults.refused(code, subcode=subcode))
        with pytest.raises(GraphError) as caught:
            await line.number._api.send(HELLO)
    assert caught.value.code == read


async def test_the_wait_that_a_header_names_is_read_in_seconds() -> None:
    async with number_line() as line:
        line.fake.fail("send", faults.busy_account(minutes=2))
        with pytest.raises(GraphError) as caught:
            await line.number._api.send(HELLO)
    assert (caught.value.code, caught.value.regain) == (80007, 120.0)


@pytest.mark.parametrize(
    ("minutes", "seconds"),
    [("5", 300.0), (-5, None), (0, None), (10**30, 86_400.0), (10**400, 86_400.0)],
    ids=lambda value: str(value)[:9],
)
def test_a_number_may_be_a_string_and_no_wait_is_longer_than_a_day(
    minutes: object, seconds: float | None
) -> None:
    usage = json.dumps({"1": [{"estimated_time_to_regain_access": minutes}]})
    answer = httpx.Response(400, headers={"x-business-use-case-usage": usage})
    error = GraphError(answer, {"error": {"code": "80007"}})
    assert (error.code, error.regain) == (80007, seconds)


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ('{"error": "a text"}', ""),
        ('{"error": {"code": true}}', "[]"),
        (
            '{"error": {"code": "dead"}}',
            '{"1": 2, "3": [4, {"estimated_time_to_regain_access": "x"}]}',
        ),
        ("<html>", "{" * 5_000),
        ("", "null"),
    ],
)
async def test_an_error_of_any_form_is_an_error_without_a_code(body: str, usage: str) -> None:
    headers = (("x-business-use-case-usage", usage),) if usage else ()
    async with Receiver((Reply(400, body, headers=headers),)) as meta:
        api = GraphApi(meta.url, "v26.0", NUMBER, TOKEN, 60.0)
        with pytest.raises(GraphError) as caught:
            await api.send(HELLO)
        await api.close()
    error = caught.value
    assert (error.status, error.code, error.regain) == (400, None, None)


async def test_a_file_goes_up_and_is_found_by_its_id() -> None:
    async with number_line() as line:
        media = await line.number._api.upload(b"\x00png", "image/png", 'a "b"\r\n.png')
        found = await line.number._api.media(media)
        assert found.size == 4


async def test_a_message_is_marked_as_read_with_and_without_typing() -> None:
    async with number_line() as line:
        wrote = line.fake.message("hi")
        line.fake._note(line.fake.written_by(wrote))
        await line.number._api.read(str(wrote["id"]), typing=False)
        assert (line.fake.read, line.fake.typing) == ([wrote["id"]], [])
        await line.number._api.read(str(wrote["id"]), typing=True)
        assert line.fake.typing == [wrote["id"]]


@pytest.mark.parametrize("media", ["", "..", "../me", "1/2/..", "a?b", "a b", "é"])
async def test_an_id_that_would_lead_elsewhere_is_asked_of_nobody(media: str) -> None:
    async with number_line() as line:
        with pytest.raises(NothingReached):
            await line.number._api.media(media)
        assert line.fake.calls == []


@pytest.mark.parametrize("told", [10**400, -1, True, "soon", 1.5, None])
async def test_a_token_that_ends_at_no_time_is_one_that_never_ends(told: object) -> None:
    answer = json.dumps({"data": {"is_valid": True, "expires_at": told, "scopes": ["a\ud800"]}})
    async with Receiver((Reply(200, answer),)) as meta:
        settings = settings_with(meta_api_url=meta.url)
        number = CloudNumber(settings, NUMBER, TOKEN, ShiftedClock())
        info = await number.token_info()
        await number._api.close()
    assert (info.valid, info.expires_at, info.permissions) == (True, 0.0, frozenset({"a\ufffd"}))
