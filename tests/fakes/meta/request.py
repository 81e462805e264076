"""One request to the Graph API, read once."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.recording import Json


@dataclass(frozen=True, slots=True)
class Asked:
    """A node, the caller's token, what the query and the body say; `file` is a type and bytes."""

    node: str
    token: str
    query: dict[str, str]
    body: Json
    file: tuple[str, bytes] | None = None
