"""The Graph API's refusals of a request to send, and what its description does not allow."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from tests.fakes.meta.errors import GraphRefusal
from tests.fakes.recording import Json
from tests.fakes.specs import META

TYPES = frozenset(
    {
        *("text", "image", "video", "audio", "document", "sticker", "location", "contacts"),
        *("interactive", "template", "reaction"),
    }
)
_ADDRESS = re.compile(r"\+[1-9]\d{5,17}")
_SCOPED_ID = re.compile(r"[A-Z]{2}\.[A-Za-z0-9.]{1,128}")
_LIMITS = {"button": (3, 20, 256, 1024), "list": (10, 24, 200, 4096)}
"""Of a choice: how many, and the characters of a title, an id, the text above."""


def check_send(body: Json) -> None:
    """Refuse what the real one refuses at once. Raises GraphRefusal."""
    if body.get("messaging_product") != "whatsapp":
        raise GraphRefusal(100, "messaging_product must be whatsapp")
    if not body.get("to") and not body.get("recipient"):
        raise GraphRefusal(131008, "to or recipient is required")
    if len(str(body.get("biz_opaque_callback_data", ""))) > 512:
        raise GraphRefusal(100, "biz_opaque_callback_data is too long")
    kind = body.get("type", "text")
    content = body.get(kind)
    if kind not in TYPES:
        raise GraphRefusal(131051)
    if not isinstance(content, dict | list):
        raise GraphRefusal(131008, f"{kind} is required")
    if isinstance(content, list):
        return
    if kind == "text":
        _check_length("text.body", content.get("body"), 4096)
    elif kind == "interactive":
        _check_choices(content)
    elif "caption" in content:
        _check_length("caption", content["caption"], 1024)


def _check_length(name: str, text: object, longest: int) -> None:
    if not isinstance(text, str) or not text.strip():
        raise GraphRefusal(131008, f"{name} is required")
    if len(text) > longest:
        raise GraphRefusal(100, f"{name} must be at most {longest} characters long")


def _check_choices(content: Json) -> None:
    kind = content.get("type")
    if kind not in _LIMITS:
        return
    most, title, name, above = _LIMITS[str(kind)]
    _check_length("body.text", (content.get("body") or {}).get("text"), above)
    action = content.get("action") or {}
    if kind == "button":
        rows = [button.get("reply", {}) for button in action.get("buttons", [])]
    else:
        _check_length("action.button", action.get("button"), 20)
        rows = [row for section in action.get("sections", []) for row in section.get("rows", [])]
    if not 1 <= len(rows) <= most:
        raise GraphRefusal(131009, f"between 1 and {most} choices")
    for row in rows:
        _check_length("title", row.get("title"), title)
        _check_length("id", row.get("id"), name)
        if len(row.get("description", "")) > 72:
            raise GraphRefusal(131009, "description must be at most 72 characters long")
    unique = ("id", "title") if kind == "button" else ("id",)
    if any(len({row[field] for row in rows}) < len(rows) for field in unique):
        raise GraphRefusal(131009, "choices must differ")


def send_problems(body: Json) -> list[str]:
    """The places where a request to send is not as it should be, though it may be taken."""
    found = []
    to, recipient = body.get("to", ""), body.get("recipient", "")
    if to and not _ADDRESS.fullmatch(str(to)):
        found.append("send: `to` is not + and digits, and would be given our country's code")
    if recipient and not _SCOPED_ID.fullmatch(str(recipient)):
        found.append("send: `recipient` is no scoped id")
    if to is None or recipient is None or "" in (body.get("to"), body.get("recipient")):
        found.append("send: an address is there and empty")
    if not body.get("biz_opaque_callback_data"):
        found.append("send: without a tag no status can be its witness")
    return [*found, *shape_problems("send", body)]


@cache
def description() -> Json | None:
    """The shapes of the Cloud API, or None where they are not beside us."""
    return json.loads(META.read_text()) if META.exists() else None


def shape_problems(shape: str, value: object) -> list[str]:
    """The places where a value does not fit the described shape of this name."""
    spec = description()
    if spec is None:
        return []
    return [f"{shape}: {why}" for why in _problems(spec, spec["shapes_2026"][shape], value)]


_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


def _problems(spec: Json, schema: Json, value: Any) -> list[str]:
    """Complaints by JSON Schema, as far as the description uses it."""
    if "$ref" in schema:
        schema = spec["shapes_2026"][schema["$ref"].rpartition("/")[2]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        return [f"{value!r} is no {' or '.join(kinds)}"]
    return [
        *_constraints(schema, value),
        *_members(spec, schema, value),
        *(why for each in schema.get("allOf", []) for why in _problems(spec, each, value)),
        *_choices(spec, schema, value),
    ]


def _members(spec: Json, schema: Json, value: Any) -> list[str]:
    why = []
    if isinstance(value, dict):
        why += [f"{name} is missing" for name in schema.get("required", []) if name not in value]
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                why += [f"{name}: {each}" for each in _problems(spec, inner, value[name])]
    if isinstance(value, list):
        why += [each for item in value for each in _problems(spec, schema.get("items", {}), item)]
    return why


def _choices(spec: Json, schema: Json, value: Any) -> list[str]:
    def fitting(name: str) -> int:
        return sum(not _problems(spec, each, value) for each in schema[name])

    why = []
    if "anyOf" in schema and not fitting("anyOf"):
        why.append("fits none of the forms")
    if "oneOf" in schema and (fit := fitting("oneOf")) != 1:
        why.append(f"fits {fit} of the forms, instead of one")
    return why


def _is(kind: str, value: object) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _KINDS[kind])


def _constraints(schema: Json, value: Any) -> list[str]:
    why = []
    if "const" in schema and value != schema["const"]:
        why.append(f"{value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        why.append(f"{value!r} is none of {schema['enum']}")
    if isinstance(value, str | list):
        unit = "Length" if isinstance(value, str) else "Items"
        if not schema.get(f"min{unit}", 0) <= len(value) <= schema.get(f"max{unit}", 1e9):
            why.append(f"{len(value)} are too few or too many")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        why.append(f"{value!r} has a wrong form")
    return why
