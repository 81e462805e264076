"""Every request that we make exists in Twilio's own description, with parameters that fit."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.domain.reply import FileOut, Reply
from tests.channels.whatsapp.kit import NOON, line, nothing_known, part, ref, to
from tests.fakes.recording import Call
from tests.fakes.specs import TWILIO

MESSAGES = "/2010-04-01/Accounts/{AccountSid}/Messages"
DESCRIBED = {
    "create": (f"{MESSAGES}.json", "post"),
    "list": (f"{MESSAGES}.json", "get"),
    "fetch": (f"{MESSAGES}/{{Sid}}.json", "get"),
    "media_list": (f"{MESSAGES}/{{MessageSid}}/Media.json", "get"),
}
IN_THE_PATH = {"account", "sid"}


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    if not TWILIO.exists():
        pytest.skip(f"Twilio's description is not at {TWILIO}")
    found: dict[str, Any] = json.loads(TWILIO.read_text())
    return found


def known_parameters(spec: dict[str, Any], call: Call) -> dict[str, dict[str, Any]]:
    path, verb = DESCRIBED[call.method]
    operation = spec["paths"][path][verb]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/x-www-form-urlencoded"]
        found: dict[str, dict[str, Any]] = content["schema"]["properties"]
        return found
    return {p["name"]: p["schema"] for p in operation["parameters"] if p["in"] == "query"}


def fits(schema: dict[str, Any], value: str) -> bool:
    match schema.get("type"):
        case "array":
            return fits(schema["items"], value)
        case "integer":
            return int(value) in range(schema.get("minimum", 0), schema.get("maximum", 10**9) + 1)
        case _:
            pass
    if schema.get("format") == "date-time":
        datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    pattern: str = schema.get("pattern", ".*")
    return re.fullmatch(pattern, value, re.DOTALL) is not None


async def test_every_request_fits_twilios_description(spec: dict[str, Any]) -> None:
    async with line(
        twilio_template_sid="HX" + "1" * 32,
        twilio_template_variables={"1": "{reply}"},
    ) as at:
        file = FileOut("photo", url="https://files.example/cat.jpg", caption="A cat")
        template = at.channel.outside_window("hello")
        assert template is not None
        parts = [part("hello"), template, *at.channel.compose(Reply(files=(file,)), to())]
        for number, body in enumerate(parts, 1):
            await at.channel.send(to(), body, ref(number))
        at.clock.at += 1
        await at.fake.inbound("see", media=[("image/jpeg", b"jpeg")], webhook=False)
        await at.channel.look_up(to(), part("hello"), ref(), frozenset())
        await at.channel.status(at.fake.messages()[0].sid)
        since = datetime.fromtimestamp(NOON, UTC)
        assert len([m async for m in at.channel.inbound_since(since, nothing_known)]) == 1
        calls, violations = at.fake.calls, at.fake.violations
    assert {call.method for call in calls} == DESCRIBED.keys()
    for call in calls:
        known = known_parameters(spec, call)
        asked = {name: v for name, v in call.params.items() if name not in IN_THE_PATH}
        assert asked.keys() <= known.keys()
        assert all(fits(known[name], value) for name, value in asked.items())
    assert violations == []
