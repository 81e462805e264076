"""People in a test of an agent: their acts, and all that they hear."""

from __future__ import annotations

import asyncio
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.api import Button, FileOut, GiveUp, Reply, Retry, Turn, wait
from bot.domain.errors import ConfigurationError
from bot.testing import AgentError, Bot, Checkpoint, Fault, Upload
from tests.agents.http.server import FakeAgentServer, ok
from tests.limits import until


async def echo(turn: Turn) -> str:
    return f"{turn.messages[-1].sender_name}: {turn.text}"


async def test_several_people_and_a_message_that_comes_twice_get_an_answer_each() -> None:
    async with Bot(echo) as bot:
        ada, bob = bot.person("Ada"), bot.person("Bob")
        await ada.says("one", delivered=2)
        await bob.says("two")
        assert await ada.hears() == ["Ada: one"]
        assert await bob.hears() == ["Bob: two"]
        assert await ada.hears() == []


async def test_what_is_written_while_nothing_runs_waits_for_the_next_process() -> None:
    async with Bot(echo) as bot:
        ada = bot.person()
        await bot.killed()
        await ada.says("hello")
        with pytest.raises(AssertionError, match="no process runs"):
            await ada.hears()
        await bot.restarted()
        assert await ada.hears() == ["Ada: hello"]


async def test_a_deploy_in_the_middle_is_no_failure() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        begun.set()
        if turn.attempt == 1:
            await go.wait()
        return f"attempt {turn.attempt}"

    async with Bot(slow, shutdown_grace=0.0) as bot:
        ada = bot.person()
        await ada.says("hello")
        await begun.wait()
        await bot.restarted()
        assert await ada.hears() == ["attempt 2"]


async def test_buttons_come_back_as_messages() -> None:
    async def choose(turn: Turn) -> Reply:
        if pressed := turn.messages[-1].button:
            return Reply(f"You chose {pressed}.")
        return Reply("Tea or coffee?", buttons=(Button("Tea", "tea"), Button("Coffee", "coffee")))

    async with Bot(choose) as bot:
        ada = bot.person()
        await ada.says("a drink")
        assert await ada.hears() == ["Tea or coffee?"]
        with pytest.raises(AssertionError, match="no button 'Milk'; there is 'Tea', 'Coffee'"):
            await ada.presses("Milk")
        await ada.presses("Tea")
        assert await ada.hears() == ["You chose tea."]


async def test_files_go_both_ways() -> None:
    def measure(turn: Turn) -> Reply:
        [file] = turn.messages[-1].attachments
        size = len(wait(file.read()))
        return Reply(files=(FileOut("document", content=f"{size} bytes", name="size.txt"),))

    async with Bot(measure) as bot:
        ada = bot.person()
        await ada.says(files=[Upload(b"1234", "four.txt")])
        [sent] = (await ada.hears_next()).files
        assert (sent.name, sent.content) == ("size.txt", "4 bytes")


async def test_a_reminder_comes_when_its_time_has_come() -> None:
    async def remind(turn: Turn) -> str:
        if turn.messages[-1].kind == "reminder":
            return f"Time for: {turn.text}"
        set_ = await turn.reminders.add("2030-01-16 09:00", "the pills", key="pills")
        return f"I'll remind you at {set_.due}."

    async with Bot(remind, now=datetime(2030, 1, 15, 8, 0, tzinfo=UTC)) as bot:
        ada = bot.person()
        await ada.says("remind me")
        assert "2030-01-16" in (await ada.hears())[0]
        await bot.later(hours=24)
        assert await ada.hears() == []
        await bot.killed()
        await bot.later(hours=2)
        await bot.restarted()
        assert await ada.hears() == ["Time for: the pills"]


async def test_a_person_stops_what_is_under_way() -> None:
    async def never(turn: Turn) -> str:
        await asyncio.Event().wait()
        return ""

    async with Bot(never) as bot:
        ada = bot.person()
        await ada.says("think")
        await ada.says("/status")
        assert (await ada.hears_next()).text == "I'm working on your answer."
        await ada.says("/stop")
        assert await ada.hears() == ["Okay, I've stopped."]


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_send_that_fails_is_never_doubled(fault: Fault) -> None:
    async with Bot(echo) as bot:
        ada = bot.person()
        bot.next_send(fault)
        await ada.says("hello")
        heard = await ada.hears()
        assert heard.count("Ada: hello") == (fault in (Fault.ARRIVED_UNKNOWN, Fault.NOT_NOW))
        if fault in (Fault.ARRIVED_UNKNOWN, Fault.LOST_UNKNOWN):
            await ada.presses("Send it again")
            assert await ada.hears() == ["Ada: hello"]


async def test_an_error_of_the_agent_fails_the_test_with_its_traceback() -> None:
    async def broken(turn: Turn) -> str:
        stock: dict[str, int] = {}
        return f"{stock[turn.text]} left"

    async with Bot(broken) as bot:
        ada = bot.person()
        await ada.says("lamp")
        with pytest.raises(AgentError, match="KeyError: 'lamp'") as failed:
            await ada.hears()
    assert isinstance(failed.value.__cause__, KeyError)
    [frame] = traceback.extract_tb(failed.value.__cause__.__traceback__)
    assert frame.line == 'return f"{stock[turn.text]} left"'


async def test_an_error_that_nobody_waited_for_fails_the_test_at_its_end() -> None:
    async def broken(turn: Turn) -> str:
        raise ValueError

    async def a_test() -> None:
        async with Bot(broken) as bot:
            await bot.person().says("lamp")
            await until(lambda: bool(bot.errors))

    with pytest.raises(AgentError, match="ValueError"):
        await a_test()


async def test_errors_that_are_fine_lead_to_an_apology_without_any_wait() -> None:
    async def broken(turn: Turn) -> str:
        raise ValueError("no")

    async with Bot(broken, errors_are_fine=True, max_failures=3) as bot:
        ada = bot.person()
        await ada.says("hello")
        [apology] = await ada.hears()
        assert apology.startswith("Sorry")
        assert len(bot.errors) == 3


async def test_what_an_agent_raises_on_purpose_is_no_error() -> None:
    async def busy(turn: Turn) -> str:
        if turn.attempt == 1:
            raise Retry(after=3600)
        raise GiveUp("I can't.")

    async with Bot(busy, run_deadline=7200) as bot:
        ada = bot.person()
        await ada.says("hello")
        assert await ada.hears() == ["I can't."]


async def test_an_agent_over_http_is_asked_as_ever() -> None:
    async with FakeAgentServer(ok({"text": "over there"})) as server, Bot(server.url) as bot:
        ada = bot.person()
        async with bot.killed_at(Checkpoint.AGENT_RETURNED):
            await ada.says("hello")
        await bot.restarted()
        assert await ada.hears() == ["over there"]
        assert [asked.json["attempt"] for asked in server.asked] == [1, 2]


async def test_an_agent_by_its_name_reads_no_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import os\n\ndef reply(turn):\n    return os.environ.get('OF_THE_SHOP', 'nothing')\n"
    (tmp_path / "agent_by_name.py").write_text(source)
    (tmp_path / ".env").write_text("OF_THE_SHOP=a secret\nTELEGRAM_BOT_TOKEN=1:not-used\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    async with Bot("agent_by_name:reply") as bot:
        await bot.person().says("hello")
        assert await bot.person().hears() == ["nothing"]


async def test_what_one_bot_left_in_a_directory_another_one_finds(tmp_path: Path) -> None:
    async def remember(turn: Turn) -> str:
        return " ".join([*(m.text for m in turn.history if m.role == "user"), turn.text])

    async with Bot(remember, directory=tmp_path) as bot:
        await bot.person().says("one")
        assert await bot.person().hears() == ["one"]
    async with Bot(remember, directory=tmp_path) as bot:
        await bot.person().says("two")
        assert await bot.person().hears() == ["one two"]


async def test_a_death_while_it_hands_over_is_one_too() -> None:
    begun = asyncio.Event()

    async def slow(turn: Turn) -> str:
        begun.set()
        if turn.attempt == 1:
            await asyncio.Event().wait()
        return "here I am"

    async with Bot(slow, shutdown_grace=0.0) as bot:
        ada = bot.person()
        await ada.says("hello")
        await begun.wait()
        async with bot.killed_at(Checkpoint.GIVEN_BACK):
            await bot.restarted()
        await bot.restarted()
        assert await ada.hears() == ["here I am"]


async def test_no_death_is_promised_that_can_not_be_had() -> None:
    async with Bot(echo) as bot:
        with pytest.raises(ValueError, match="while it starts"):
            async with bot.killed_at(Checkpoint.RELEASED):
                pass


async def test_what_takes_too_long_says_what_is_under_way() -> None:
    async def never(turn: Turn) -> str:
        await asyncio.Event().wait()
        return ""

    async with Bot(never, patience=0.5) as bot:
        await bot.person().says("hello")
        with pytest.raises(AssertionError, match=r"under way: run 1 .* is running \(attempt 1"):
            await bot.person().hears()


async def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigurationError, match="TIMEZONE"):
        async with Bot(echo, timezone="Nowhere"):
            pass
    with pytest.raises(ConfigurationError, match="no_such_module"):
        async with Bot("no_such_module:reply"):
            pass
