"""Each misbehaviour of the Bot API does what its name says, seen by httpx and by our library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from tests.clocks import Ticker
from tests.fakes.clients import patience, telegram_bot, telegram_http
from tests.fakes.faults import Fault
from tests.fakes.telegram import FakeTelegram, faults
from tests.fakes.telegram.rates import Limits
from tests.limits import PATIENCE

ADA = 700_100_209


@pytest.fixture
def now() -> Ticker:
    return Ticker(1_800_003_600.0)


@pytest_asyncio.fixture
async def fake(now: Ticker) -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(now=now) as running:
        yield running


@pytest_asyncio.fixture
async def http(fake: FakeTelegram) -> AsyncIterator[httpx.AsyncClient]:
    async with telegram_http(fake) as client:
        yield client


@pytest_asyncio.fixture
async def bot(fake: FakeTelegram) -> AsyncIterator[Bot]:
    async with telegram_bot(fake) as client:
        yield client


def named(value: object) -> str | None:
    return value.name if isinstance(value, Fault) else getattr(value, "__name__", None)


async def say(
    http: httpx.AsyncClient, text: str = "hi", chat: int = ADA, timeout: float = PATIENCE
) -> httpx.Response:
    body = {"chat_id": chat, "text": text}
    return await http.post("sendMessage", json=body, timeout=timeout)


@pytest.mark.parametrize(
    ("fault", "seen", "stored"),
    [
        (faults.hang_after_storing(), httpx.ReadTimeout, 1),
        (faults.hang_before_storing(), httpx.ReadTimeout, 0),
        (faults.drop_after_storing(), httpx.RemoteProtocolError, 1),
        (faults.drop_before_storing(), httpx.RemoteProtocolError, 0),
        (faults.drop_unread(), (httpx.RemoteProtocolError, httpx.ReadError), 0),
        (faults.cut_answer(), httpx.RemoteProtocolError, 1),
    ],
    ids=named,
)
async def test_a_call_that_gets_no_answer_has_stored_what_the_fault_says(
    fake: FakeTelegram,
    http: httpx.AsyncClient,
    fault: Fault,
    seen: type[Exception],
    stored: int,
) -> None:
    fake.fail("sendMessage", fault)
    with pytest.raises(seen):
        await say(http, timeout=patience(fault))
    assert len(fake.messages(ADA)) == stored
    assert [(c.fault, c.status) for c in fake.calls] == [(fault.name, None)]
    assert (await say(http, "again")).status_code == 200


@pytest.mark.parametrize(
    ("fault", "error", "stored"),
    [
        (faults.hang_after_storing(), TimedOut, 1),
        (faults.drop_after_storing(), NetworkError, 1),
        (faults.drop_unread(), NetworkError, 0),
        (faults.cut_answer(), NetworkError, 1),
        (faults.not_json(), TelegramError, 1),
        (faults.no_result(), KeyError, 1),
        (faults.bad_gateway(), NetworkError, 1),
        (faults.bad_gateway(stores=False), NetworkError, 0),
        (faults.server_error(), NetworkError, 1),
        (faults.server_error(stores=False), NetworkError, 0),
        (faults.too_many(37), RetryAfter, 0),
        (faults.too_many_unnamed(), NetworkError, 0),
        (faults.blocked(), Forbidden, 0),
        (faults.kicked(), Forbidden, 0),
        (faults.deactivated(), Forbidden, 0),
        (faults.chat_not_found(), BadRequest, 0),
        (faults.migrated(-1_007_000_000_301), ChatMigrated, 0),
        (faults.cant_parse_entities(), BadRequest, 0),
        (faults.topic_not_found(), BadRequest, 0),
        (faults.topic_closed(), BadRequest, 0),
        (faults.reply_not_found(), BadRequest, 0),
        (faults.unauthorized(), InvalidToken, 0),
    ],
    ids=named,
)
async def test_the_library_raises_for_a_fault_what_it_raises_for_the_real_one(
    fake: FakeTelegram,
    bot: Bot,
    fault: Fault,
    error: type[Exception],
    stored: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")
    fake.fail("sendMessage", fault)
    with pytest.raises(error):
        await bot.send_message(ADA, "hi", read_timeout=patience(fault))
    assert len(fake.messages(ADA)) == stored


async def test_a_success_without_a_body_is_no_answer_that_the_library_can_read(
    fake: FakeTelegram, bot: Bot
) -> None:
    fake.fail("sendMessage", faults.empty_body())
    with pytest.raises(TelegramError):
        await bot.send_message(ADA, "hi")
    assert fake.texts(ADA) == ["hi"]


async def test_too_many_requests_names_the_wait_in_body_and_header(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.fail("sendMessage", faults.too_many(37))
    answer = await say(http)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "37"
    assert answer.json()["parameters"] == {"retry_after": 37}


async def test_b43_a_flood_wait_lasts_until_its_time_and_grows_with_every_early_call(
    fake: FakeTelegram, http: httpx.AsyncClient, now: Ticker
) -> None:
    fake.fail("sendMessage", faults.flood_wait(37), chat=ADA)
    assert (await say(http)).json()["parameters"]["retry_after"] == 37
    now.at += 30
    assert (await say(http)).json()["parameters"]["retry_after"] == 17
    assert (await say(http, chat=ADA + 1)).status_code == 200
    now.at += 17
    assert (await say(http, "late")).status_code == 200
    assert fake.texts(ADA) == ["late"]


async def test_a_migrated_group_says_where_it_went(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.fail("*", faults.migrated(-1_007_000_000_301), chat=-700_301, times=None)
    refused = await say(http, chat=-700_301)
    assert refused.status_code == 400
    assert refused.json()["parameters"] == {"migrate_to_chat_id": -1_007_000_000_301}
    assert (await say(http, chat=-1_007_000_000_301)).status_code == 200


async def test_an_answer_that_is_held_comes_when_it_is_released(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    held = fake.fail("sendMessage", faults.held_after_storing())
    sending = asyncio.create_task(say(http))
    await fake.wait_for(lambda: fake.texts(ADA) == ["hi"])
    assert not sending.done()
    held.release()
    assert (await sending).status_code == 200


async def test_a_call_that_is_held_before_storing_shows_nothing_until_released(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    held = fake.fail("sendMessage", faults.held_before_storing())
    sending = asyncio.create_task(say(http))
    await fake.wait_for(lambda: held.hits)
    assert fake.texts(ADA) == []
    held.release()
    assert (await sending).status_code == 200
    assert fake.texts(ADA) == ["hi"]


async def test_a_rule_meets_only_the_nth_call_of_its_chat_that_its_condition_takes(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    fake.fail(
        "sendMessage",
        faults.blocked(),
        chat=ADA,
        nth=2,
        when=lambda call: call.params["text"] != "skip",
    )
    answers = [await say(http, t) for t in ("one", "skip", "two", "three")]
    other = await say(http, "two", ADA + 1)
    assert [a.status_code for a in [*answers, other]] == [200, 200, 403, 200, 200]


async def test_a_rule_without_end_lasts_until_it_is_cancelled(
    fake: FakeTelegram, http: httpx.AsyncClient
) -> None:
    rule = fake.fail("sendMessage", faults.blocked(), chat=ADA, times=None)
    assert [(await say(http)).status_code for _ in range(3)] == [403, 403, 403]
    rule.cancel()
    assert (await say(http)).status_code == 200


def test_a_call_that_is_not_read_cannot_be_chosen_by_its_chat() -> None:
    with pytest.raises(ValueError, match="method only"):
        FakeTelegram().fail("sendMessage", faults.drop_unread(), chat=ADA)


async def test_connections_are_refused_until_they_are_accepted_again(
    fake: FakeTelegram, bot: Bot
) -> None:
    await fake.refuse_connections()
    with pytest.raises(NetworkError) as refused:
        await bot.send_message(ADA, "hi")
    assert isinstance(refused.value.__cause__, httpx.ConnectError)
    await fake.accept_connections()
    await bot.send_message(ADA, "hi")
    assert fake.texts(ADA) == ["hi"]


async def test_what_the_real_one_might_have_refused_for_its_pace_is_listed(
    fake: FakeTelegram, http: httpx.AsyncClient, now: Ticker
) -> None:
    for _ in range(3):
        await say(http)
    assert fake.main.rates.excess == []
    await say(http)
    assert fake.main.rates.excess == [f"chat {ADA}: over 1 messages a second"]
    now.at += 3
    await say(http)
    assert len(fake.main.rates.excess) == 1


async def test_a_group_takes_twenty_messages_a_minute_and_all_chats_thirty_a_second(
    fake: FakeTelegram, http: httpx.AsyncClient, now: Ticker
) -> None:
    for _ in range(21):
        now.at += 1
        await say(http, chat=-5)
    assert fake.main.rates.excess == ["group -5: 21 messages in 60 s"]
    now.at += 60
    for person in range(34):
        await say(http, chat=1000 + person)
    assert fake.main.rates.excess[1:] == ["overall: 34 messages in 1 s"]


async def test_limits_that_are_enforced_refuse_with_a_wait() -> None:
    async with FakeTelegram(limits=Limits(burst=1)) as fake, telegram_http(fake) as http:
        fake.main.rates.enforce = True
        answers = [await say(http) for _ in range(2)]
        assert [a.status_code for a in answers] == [200, 429]
        assert len(fake.messages(ADA)) == 1


async def test_whoever_waits_as_long_as_a_refusal_said_is_taken(now: Ticker) -> None:
    limits = Limits(burst=1)
    async with FakeTelegram(limits=limits, now=now) as fake, telegram_http(fake) as http:
        fake.main.rates.enforce = True
        answers = [await say(http) for _ in range(3)]
        now.at += answers[-1].json()["parameters"]["retry_after"]
        answers.append(await say(http))
        assert [a.status_code for a in answers] == [200, 429, 429, 200]
