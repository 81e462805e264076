"""Figures and sentences that pages repeat in their own words are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from bot.wiring.channels import settings_class
from channels.telegram.channel import FILE_LIMIT, TelegramChannel
from channels.telegram.compose import CAPTION_LIMIT, ENTITY_LIMIT, TEXT_LIMIT
from channels.telegram.content import content_of

ROOT = Path(__file__).parents[2]


def _page(name: str) -> str:
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def _default(setting: str) -> int:
    return int(settings_class().model_fields[setting].default)


def test_the_words_of_the_bot_are_quoted_as_they_are_said() -> None:
    texts = tomllib.loads((ROOT / "bot/texts/en.toml").read_text(encoding="utf-8"))
    section = (ROOT / "docs/people.md").read_text(encoding="utf-8")
    section = section.partition("## What the bot says by itself")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)[1:]
    assert len(quoted) > 5
    assert [said for said in quoted if said not in texts.values()] == []


def test_telegrams_limits_are_those_that_are_kept() -> None:
    page, pace = _page("telegram.md"), TelegramChannel.traits.pace
    assert pace.per_chat == 1
    for said in (
        f"{TEXT_LIMIT:,} characters a message",
        f"{CAPTION_LIMIT:,} characters under a file",
        f"{ENTITY_LIMIT} styles and links a message",
        f"up to {FILE_LIMIT // 1024**2} MB",
        f"`MAX_PARTS` messages an answer ({_default('max_parts')})",
        f"in a chat, {pace.per_group_minute} a minute in a group, {pace.overall} a second in all",
        f"`STILL_WORKING_AFTER` seconds ({_default('still_working_after')})",
        f"waits long for the answer ({_default('telegram_read_timeout')} seconds)",
    ):
        assert said in page, said


@pytest.mark.parametrize(
    "message",
    [
        {"photo": [{"file_id": "p", "width": 90, "height": 90}]},
        {"voice": {"file_id": "v", "duration": 12}},
        {"document": {"file_id": "d", "file_name": "report.pdf"}},
        {"location": {"latitude": 52.5, "longitude": 13.4}},
        {"sticker": {"file_id": "s", "emoji": "👍"}},
    ],
    ids=lambda message: next(iter(message)),
)
def test_what_people_send_is_described_as_the_page_says(message: dict[str, object]) -> None:
    content = content_of(message)
    assert f"| `{content.kind}` | `{content.text}` |" in _page("telegram.md")


def test_a_lease_lasts_as_long_as_the_page_says() -> None:
    lasts = f"its lease every {_default('heartbeat_seconds')} seconds, and is taken for dead after "
    assert f"{lasts}{_default('lease_seconds')}." in _page("how-it-works.md")
