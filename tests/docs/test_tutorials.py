"""Every command of the tutorials runs, in the order of the page, with the kill in the middle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.agents.http.server import Asked, FakeAgentServer, ok
from tests.docs.tutorial import Reader, blocks, environment
from tests.e2e.forking import ROOT
from tests.fakes.meta import FakeMeta
from tests.fakes.meta.server import NUMBER, SECRET
from tests.fakes.meta.server import TOKEN as META_TOKEN
from tests.fakes.telegram.server import TOKEN, FakeTelegram
from tests.fakes.updates import Person
from tests.world import PUBLIC

DOCS = ROOT / "docs"
ADA = 700_100_291


def orders(asked: Asked) -> bytes:
    """A model of OpenAI's: calls the tool first, then says what came of it."""
    said = [one for one in asked.json["input"] if one.get("type") == "function_call_output"]
    if said:
        text = f"Your order is on its way. {said[-1]['output']}"
        shown = {"type": "output_text", "text": text, "annotations": []}
        message = {"id": "m", "role": "assistant", "status": "completed", "content": [shown]}
        return _response({"type": "message", **message})
    arguments = json.dumps({"product": "lamp", "count": 3})
    call = {"id": "f", "call_id": "c", "name": "order", "arguments": arguments}
    return _response({"type": "function_call", "status": "completed", **call})


def _response(*output: object) -> bytes:
    used = {"input_tokens": 70, "output_tokens": 5, "total_tokens": 75}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return ok(
        {
            "id": "r",
            "object": "response",
            "created_at": 1_800_000_000,
            "model": "gpt-5-mini",
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {**used, **details},
        }
    )


@dataclass
class OnTelegram:
    """Ada's chat with the bot of the tutorial."""

    telegram: FakeTelegram
    ada: Person = field(default_factory=lambda: Person(ADA))

    async def write(self, text: str) -> None:
        self.telegram.enqueue(self.ada.text(text))

    def heard(self) -> Sequence[str]:
        return self.telegram.texts(ADA)


@dataclass
class OnWhatsApp:
    """Ada's chat with the number of the tutorial."""

    meta: FakeMeta

    async def write(self, text: str) -> None:
        assert (await self.meta.person_writes(text)).acknowledged

    def heard(self) -> Sequence[str]:
        return self.meta.texts()


def at(model: FakeAgentServer) -> dict[str, str]:
    """The environment's stand-in for OpenAI."""
    return {"OPENAI_BASE_URL": model.url.removesuffix("/turn") + "/v1"}


async def test_a_reader_follows_the_tutorial_for_telegram(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeAgentServer(orders) as model:
        reader = Reader(
            tmp_path,
            OnTelegram(telegram),
            environment(tmp_path, TELEGRAM_API_URL=telegram.url, **at(model)),
            {"<the token>": TOKEN, "<the key>": "sk-of-nobody"},
        )
        await reader.follow(DOCS / "tutorial-telegram.md")
        assert len(model.asked) == 2
        assert len(telegram.texts(ADA)) == 1


async def test_a_reader_follows_the_tutorial_for_whatsapp(tmp_path: Path) -> None:
    async with FakeMeta() as meta, FakeAgentServer(orders) as model:
        meta.business.app.callback = ""
        reader = Reader(
            tmp_path,
            OnWhatsApp(meta),
            environment(tmp_path, META_API_URL=meta.url, **at(model)),
            {
                "<the phone number id>": NUMBER,
                "<the access token>": META_TOKEN,
                "<the app secret>": SECRET,
                "<a word of yours>": "lamplight",
                "https://<your address>": PUBLIC,
                "<the key>": "sk-of-nobody",
            },
            lambda url: meta.reach.update({PUBLIC: url}),
        )
        await reader.follow(DOCS / "tutorial-whatsapp.md")
        assert len(model.asked) == 2
        assert len(meta.texts()) == 1


@pytest.mark.parametrize("page", ["tutorial-telegram.md", "tutorial-whatsapp.md"])
def test_a_tutorial_shows_its_tool_as_it_is(page: str) -> None:
    [shown] = [block.text for block in blocks(DOCS / page) if block.title == "shop.py"]
    assert shown == (ROOT / "examples" / "shop.py").read_text(encoding="utf-8")
