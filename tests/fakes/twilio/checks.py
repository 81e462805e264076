"""Twilio's refusals in a create call, and what its description does not allow."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any
from urllib.parse import urldefrag, urlsplit

from tests.fakes.recording import Json
from tests.fakes.specs import TWILIO
from tests.fakes.twilio.courier import Form, field_of
from tests.fakes.twilio.errors import TwilioRefusal

BODY_MAX = 1600
_ADDRESS = re.compile(r"whatsapp:(\+[1-9]\d{5,17}|[A-Z]{2}(\.ENT)?\.[A-Za-z0-9]{1,128})")


def check_create(form: Form, senders: set[str]) -> None:
    """Refuse what the real one refuses at once. Raises TwilioRefusal."""
    to, from_ = field_of(form, "To"), field_of(form, "From")
    body, media = field_of(form, "Body"), field_of(form, "MediaUrl")
    if not to:
        raise TwilioRefusal(21604)
    if not from_ and not field_of(form, "MessagingServiceSid"):
        raise TwilioRefusal(21603)
    if from_ and to.startswith("whatsapp:") != from_.startswith("whatsapp:"):
        raise TwilioRefusal(21910)
    if not _ADDRESS.fullmatch(to):
        raise TwilioRefusal(21211)
    if from_ and from_ not in senders:
        raise TwilioRefusal(63007)
    if not body and not media and not field_of(form, "ContentSid"):
        raise TwilioRefusal(21619)
    if len(body) > BODY_MAX:
        raise TwilioRefusal(21617)
    _check_callback(field_of(form, "StatusCallback"))


def _check_callback(url: str) -> None:
    if not url:
        return
    parts = urlsplit(urldefrag(url).url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "_" in parts.hostname:
        raise TwilioRefusal(21609)


@cache
def description() -> Json | None:
    """Twilio's own description of the Messages API, or None where it is not beside us."""
    return json.loads(TWILIO.read_text()) if TWILIO.exists() else None


def create_problems(form: Form) -> list[str]:
    """Parameters of a create call that do not exist or have a wrong form."""
    spec = description()
    if spec is None:
        return []
    path = spec["paths"]["/2010-04-01/Accounts/{AccountSid}/Messages.json"]
    content = path["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    known = content["schema"]["properties"]
    found = [f"create: unknown parameter {name}" for name, _ in form if name not in known]
    for name, value in form:
        if name in known and not _fits(spec, known[name], value):
            found.append(f"create: {name} has a wrong form")
    return found


def _fits(spec: Json, schema: Json, value: str) -> bool:
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if schema["type"] == "array":
        return _fits(spec, schema["items"], value)
    if schema["type"] == "integer":
        return value.lstrip("-").isdigit()
    if schema["type"] == "boolean":
        return value.lower() in ("true", "false")
    if "enum" in schema and value not in schema["enum"]:
        return False
    return "pattern" not in schema or re.fullmatch(schema["pattern"], value) is not None


def resource_problems(schema_name: str, value: Json) -> list[str]:
    """The places where an answer of this fake differs from the described resource."""
    spec = description()
    if spec is None:
        return []
    known: Json = spec["components"]["schemas"][schema_name]["properties"]
    found = [f"unknown field {name}" for name in value if name not in known]
    found += [f"missing field {name}" for name in known if name not in value]
    for name in known.keys() & value.keys():
        if not _is(spec, known[name], value[name]):
            found.append(f"{name}: {value[name]!r} does not fit")
    return found


def _is(spec: Json, schema: Json, value: Any) -> bool:
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if value is None:
        return bool(schema.get("nullable"))
    kinds: dict[str, type] = {"string": str, "integer": int, "object": dict}
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    return "pattern" not in schema or re.fullmatch(schema["pattern"], str(value)) is not None
