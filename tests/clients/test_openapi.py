"""The description of the API is true: every route, every status, every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

import channels.web
from channels.web.access.door import Door
from channels.web.app import Site
from channels.web.channel import WebChannel
from channels.web.settings import WebSettings
from channels.web.widget import Widget
from tests.clocks import ShiftedClock
from tests.kit.agents import Gated
from tests.kit.web import API, WEB, Visitor, identity
from tests.world import World

DESCRIBED: dict[str, Any] = json.loads(
    (Path(channels.web.__file__).parent / "openapi.json").read_text("utf-8")
)
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in DESCRIBED["paths"].items()
    for method, operation in methods.items()
}


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, followed to where it stands."""
    while "$ref" in schema:
        found: Any = DESCRIBED
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    return schema


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def faults(value: Any, schema: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """The places where a value is not as the schema says: a key that it does not name is a fault
    too."""
    schema = resolved(schema)
    if "oneOf" in schema:
        tried = [list(faults(value, each, at)) for each in schema["oneOf"]]
        if [] not in tried:
            yield from min(tried, key=len)
        return
    if "allOf" in schema:
        schema = _together(schema["allOf"])
    named = schema.get("type", "object")
    allowed = [named] if isinstance(named, str) else named
    of_type = any(
        isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
        for name in allowed
    )
    if not of_type:
        yield f"{at} is {value!r}, not {allowed}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r}, none of {schema['enum']}"
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from faults(item, schema["items"], f"{at}[{place}]")
    if isinstance(value, dict) and "properties" in schema:
        yield from (f"{at}.{key} is missing" for key in schema["required"] if key not in value)
        yield from (f"{at}.{key} is not described" for key in value.keys() - schema["properties"])
        for key in value.keys() & schema["properties"]:
            yield from faults(value[key], schema["properties"][key], f"{at}.{key}")


def _together(schemas: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """One object of several schemas, which may be put together themselves."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    for schema in map(resolved, schemas):
        each = _together(schema["allOf"]) if "allOf" in schema else schema
        properties |= each["properties"]
        required += each["required"]
    return {"type": "object", "properties": properties, "required": required}


def as_described(answer: httpx.Response, method: str, path: str) -> httpx.Response:
    """The answer, whose status and body are as described."""
    responses = OPERATIONS[method, path]["responses"]
    assert str(answer.status_code) in responses, (answer.status_code, answer.text)
    described = resolved(responses[str(answer.status_code)])
    for name in described.get("headers", ()):
        assert answer.headers[name]
    content = described.get("content", {})
    if "application/json" in content:
        told = list(faults(answer.json(), content["application/json"]["schema"]))
        assert told == [], (method, path, answer.text)
    return answer


def test_every_route_is_described_and_nothing_else() -> None:
    clock = ShiftedClock()
    site = Site(WebChannel(), Door(WebSettings(), clock), Widget({}))
    served = {
        (method, route.path)
        for route in site.api_routes()
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert served == OPERATIONS.keys()


def test_what_is_referred_to_is_there_and_everything_there_is_referred_to() -> None:
    text = json.dumps(DESCRIBED)
    for kind in ("schemas", "responses"):
        named = set(re.findall(rf"#/components/{kind}/(\w+)", text))
        spoken_of = {"Event", "Snapshot"} if kind == "schemas" else set()
        assert named | spoken_of == set(DESCRIBED["components"][kind]) | spoken_of


@pytest.mark.alternating(1)
async def test_a_whole_visit_is_as_described(world: World, http: httpx.AsyncClient) -> None:
    agent = Gated()
    running = await world.start(agent=agent, **WEB)
    visitor = await Visitor(running.url, http).begin()
    picture = {"name": "a.png", "type": "image/png", "data": "iVBORw0="}
    sent = {"request_id": "m1", "text": "hello", "files": [picture]}
    kinds = set()
    async with visitor.following() as following:
        await following.until(lambda f: f.told)
        for body, status in ((sent, 202), (sent, 200), ({**sent, "text": "other"}, 409)):
            answer = as_described(await visitor.post("/messages", body), "POST", "/messages")
            assert answer.status_code == status
        agent.go.set()
        await visitor.answered("m1")
        await following.until(lambda f: "ended" in f.kinds)
        agent.go.clear()
        await visitor.say("m2", "stop me")
        as_described(await visitor.get("/turns/m2"), "GET", "/turns/{id}")
        stopped = as_described(await visitor.post("/stop", {}), "POST", "/stop")
        assert stopped.json() == {"stopped": 1}
        await following.until(lambda f: "withdrawn" in f.kinds)
        for told in following.told:
            kinds.add(told.kind)
            schema = "Snapshot" if told.kind == "snapshot" else "Event"
            if told.kind != "resync":
                assert list(faults(told.data, {"$ref": f"#/components/schemas/{schema}"})) == []
    assert {"snapshot", "accepted", "message", "ended", "withdrawn"} <= kinds
    page = as_described(await visitor.get("/messages"), "GET", "/messages").json()
    [ref] = [file["ref"] for message in page["messages"] for file in message["files"]]
    as_described(await visitor.get(f"/files/{ref}"), "GET", "/files/{ref}")
    as_described(await visitor.get("/files/none"), "GET", "/files/{ref}")
    as_described(await visitor.post("/seen", {"n": 1}), "POST", "/seen")
    for turn in ("m1", "m2", "unknown"):
        as_described(await visitor.get(f"/turns/{turn}"), "GET", "/turns/{id}")
    named = {"identity": identity(world.clock, "u1")}
    as_described(await visitor.ask("POST", "/session", named), "POST", "/session")
    as_described(await visitor.ask("DELETE", "/session"), "DELETE", "/session")


@pytest.mark.alternating(0)
async def test_the_description_is_served_to_everybody(
    world: World, http: httpx.AsyncClient
) -> None:
    running = await world.start(**WEB)
    answer = await http.get(
        f"{running.url}{API}/openapi.json", headers={"Origin": "https://anywhere.test"}
    )
    assert answer.json() == DESCRIBED
    assert answer.headers["access-control-allow-origin"] == "*"
