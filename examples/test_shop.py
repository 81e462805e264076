"""Kills the built-in assistant within a tool: pytest examples/test_shop.py"""

from pathlib import Path

import pytest

from bot.testing import Bot
from bot.testing.model import ScriptedModel, call
from examples import shop


@pytest.mark.asyncio
async def test_the_shop_gets_one_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shop, "SECONDS", 0)
    model = ScriptedModel(call("order", product="lamp", count=3), "They are on their way.")
    async with Bot("llm", model=model, tools="examples.shop") as bot:
        ada = bot.person("Ada")
        async with bot.killed_in_step("tool:*:order:*"):
            await ada.says("3 lamps, please")
        await bot.restarted()
        assert await ada.hears() == ["They are on their way."]
        assert bot.calls("tool:*:order:*") == 2
        assert shop.ORDERS.read_text().count("lamp") == 1
