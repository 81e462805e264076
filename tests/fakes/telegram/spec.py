"""The machine-readable description of the Bot API, where it is there, as a checker."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.fakes.recording import Json
from tests.fakes.specs import TELEGRAM


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came in a multipart form."""

    name: str
    content_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    types: tuple[str, ...]
    required: bool
    always: str = ""
    """The one value that it can have, where the description names one."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Methods and types by name; a type has either fields or subtypes."""

    methods: dict[str, dict[str, Field]]
    types: dict[str, dict[str, Field]]
    subtypes: dict[str, tuple[str, ...]]

    def parameter_types(self, method: str, name: str) -> tuple[str, ...]:
        field = self.methods.get(method, {}).get(name)
        return field.types if field is not None else ()

    def problems(self, method: str, params: Json) -> list[str]:
        """The faults in the parameters of one call; empty when nothing is."""
        fields = self.methods.get(method)
        if fields is None:
            return [f"{method}: no such method"]
        return self._object(method, fields, params)

    def type_problems(self, type_name: str, value: Any, where: str = "") -> list[str]:
        """The faults that keep `value` from being one `type_name`; empty when nothing does."""
        return self._value(where or type_name, (type_name,), value)

    def _object(self, where: str, fields: dict[str, Field], value: Json) -> list[str]:
        found = [f"{where}: unknown field {name}" for name in value if name not in fields]
        for field in fields.values():
            if field.name in value:
                path = f"{where}.{field.name}"
                found += self._value(path, field.types, value[field.name])
            elif field.required:
                found.append(f"{where}: {field.name} is missing")
        return found

    def _value(self, where: str, types: tuple[str, ...], value: Any) -> list[str]:
        best: list[str] | None = None
        for type_name in types:
            found = self._one(where, type_name, value)
            if not found:
                return []
            best = found if best is None or len(found) < len(best) else best
        return best or []

    def _one(self, where: str, type_name: str, value: Any) -> list[str]:
        if type_name.startswith("Array of "):
            if not isinstance(value, list):
                return [f"{where}: {type_name} expected, got {type(value).__name__}"]
            element = (type_name.removeprefix("Array of "),)
            return [
                p for i, v in enumerate(value) for p in self._value(f"{where}[{i}]", element, v)
            ]
        if type_name in _PLAIN:
            good = isinstance(value, _PLAIN[type_name])
            if isinstance(value, bool) and type_name != "Boolean":
                good = False
            return [] if good else [f"{where}: {type_name} expected, got {type(value).__name__}"]
        if type_name == "InputFile":
            return [] if isinstance(value, Upload) else [f"{where}: a file expected"]
        if type_name in self.subtypes:
            return self._value(where, self.subtypes[type_name], value)
        if not isinstance(value, dict):
            return [f"{where}: {type_name} expected, got {type(value).__name__}"]
        return self._object(where, self.types.get(type_name, {}), value)


_PLAIN: dict[str, tuple[type, ...]] = {
    "Integer": (int,),
    "Float": (float, int),
    "Boolean": (bool,),
    "True": (bool,),
    "String": (str,),
}


_ALWAYS = re.compile(r'(?:always "|must be (?=\w+$))(\w+)')


def _fields(raw: Json) -> dict[str, Field]:
    found = {}
    for f in raw.get("fields", []):
        named = _ALWAYS.search(f["description"]) if f["types"] == ["String"] else None
        always = named[1] if named else ""
        found[f["name"]] = Field(f["name"], tuple(f["types"]), bool(f["required"]), always)
    return found


@cache
def load() -> Spec | None:
    """The description, or None where it is not beside the project."""
    if not TELEGRAM.exists():
        return None
    raw = json.loads(TELEGRAM.read_text())
    return Spec(
        methods={name: _fields(m) for name, m in raw["methods"].items()},
        types={name: _fields(t) for name, t in raw["types"].items()},
        subtypes={n: tuple(t["subtypes"]) for n, t in raw["types"].items() if t.get("subtypes")},
    )
