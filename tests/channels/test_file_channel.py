"""A channel that nothing in the product names keeps the contract, and serves like any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from bot.domain.errors import ConfigurationError
from bot.domain.findings import Level
from bot.domain.message import ChatKind
from bot.domain.ports import Recipient
from bot.wiring import read_settings
from bot.wiring.channels import configured
from bot.wiring.operator import examine
from tests.channels.contract import ChannelContract, Subject
from tests.channels.file_channel import ADDRESS, LIMIT, FileChannel
from tests.clocks import ShiftedClock
from tests.kit.agents import repeats
from tests.world import World

MODULE = "tests.channels.file_channel"


class TestFileChannel(ChannelContract):
    @pytest.fixture
    async def subject(self, tmp_path: Path) -> Subject:
        channel = FileChannel(tmp_path, ShiftedClock())
        return Subject(
            channel=channel,
            to=Recipient(ADDRESS, ChatKind.PRIVATE),
            payloads={
                "first": {"update_id": 1, "text": "hello"},
                "second": {"update_id": 2, "text": "a\x00b"},
            },
            parse=lambda update: channel.parse(cast("Mapping[str, object]", update)),
            sent=lambda: [line["text"] for line in channel.shown()],
            shown=lambda: len(channel.shown()),
            limit=LIMIT,
        )


async def test_a_message_in_the_folder_is_answered_once(world: World, tmp_path: Path) -> None:
    channel = FileChannel(tmp_path, world.clock)
    changes: dict[str, Any] = {
        "telegram_bot_token": "",
        "twilio_account_sid": "",
        "channels": (MODULE,),
        "file_folder": str(tmp_path),
    }
    running = await world.start(agent=repeats, **changes)
    channel.write(1, "hello")
    await world.until("SELECT count(*) FROM inbound", lambda rows: rows[0][0] == 1)
    await world.settled()
    await running.stop()
    await world.start(agent=repeats, **changes)
    channel.write(2, "again")
    await world.until("SELECT count(*) FROM inbound", lambda rows: rows[0][0] == 2)
    await world.settled()
    assert [line["text"] for line in channel.shown()] == ["hello", "again"]


async def test_the_doctor_asks_it(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", world.database_url)
    monkeypatch.setenv("CHANNELS", MODULE)
    monkeypatch.setenv("FILE_FOLDER", str(tmp_path))
    found = {finding.name: finding for finding in await examine()}
    assert found["file"].level is Level.OK
    assert "platforms" not in found, "it is one"


@pytest.mark.parametrize("module", ["tests.no_such_module", "tests.clocks", "channels.telegram"])
def test_what_is_no_further_channel_is_refused_by_name(module: str) -> None:
    with pytest.raises(ConfigurationError, match="CHANNELS"):
        read_settings(_env_file=None, channels=(module,))


def test_a_channel_without_its_variables_is_off() -> None:
    assert not configured(read_settings(_env_file=None, channels=(MODULE,)))
