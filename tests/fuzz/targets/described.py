"""The routes of the API of pages by its own description: requests that it allows, and others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core import NotSet
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.clients.test_openapi import DESCRIBED
from tests.fuzz.doors import NotAsAnAnswer, Request, ask
from tests.fuzz.engine import Target
from tests.fuzz.targets.routes import Stage
from tests.kit.web import API

_CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


def _cases() -> st.SearchStrategy[Any]:
    """Requests to every operation, as it is described and otherwise."""
    schema = schemathesis.openapi.from_dict(DESCRIBED)
    operations: list[Any] = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
    modes = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
    return st.one_of([o.as_strategy(generation_mode=mode) for o in operations for mode in modes])


class Described:
    """Asks as a visitor, or as whoever the case says."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._asked = 0

    async def take(self, case: Any) -> str:
        """An answer with a status, headers and a body that the description names."""
        self._asked += 1
        headers = {name.lower(): str(value) for name, value in (case.headers or {}).items()}
        if self._asked % 4 and case.operation.label != "DELETE /session":
            token = self.stage.tokens[self._asked % len(self.stage.tokens)]
            headers["authorization"] = f"Bearer {token}"
        query = {n: 0 if n == "wait" else v for n, v in (case.query or {}).items()}
        asked = urlencode(query, doseq=True, encoding="utf-8", errors="surrogatepass")
        path = quote(case.formatted_path, safe="/%")
        if "\n" in unquote(path):
            return "no route"  # A line end is in no route's path.
        answer = await ask(
            self.stage.app,
            Request(case.method, f"{API}{path}?{asked}", _raw(headers), (_body(case.body),)),
        )
        told = self._response(case, answer.status, answer.headers, bytes(answer.body))
        # The description tells of a stream as of one text, and the check of its events.
        streams = "event-stream" in told.headers.get("content-type", "")
        checks = [c for c in _CHECKS if not (streams and c is response_schema_conformance)]
        try:
            case.validate_response(told, checks=checks)
        except BaseExceptionGroup as failed:
            raise NotAsAnAnswer(" ".join(map(str, failed.exceptions))) from None
        return f"{case.operation.label} {answer.status}"

    def _response(
        self, case: Any, status: int, headers: Mapping[bytes, bytes], body: bytes
    ) -> httpx.Response:
        response = httpx.Response(
            status,
            headers=list(headers.items()),
            content=body,
            request=httpx.Request(case.method, f"http://here{API}"),
        )
        response.elapsed = timedelta(0)
        return response


def _body(made: object) -> bytes:
    match made:
        case NotSet():
            return b""
        case bytes():
            return made
        case _:
            return json.dumps(made).encode()


def _raw(headers: Mapping[str, str]) -> Sequence[tuple[bytes, bytes]]:
    unwelcome = b"\r\n\x00"
    return [
        (
            name.encode("latin-1", "replace"),
            value.encode("latin-1", "replace").translate(None, unwelcome),
        )
        for name, value in headers.items()
    ]


def targets(stage: Stage) -> Sequence[Target]:
    """The routes that `openapi.json` describes."""
    return [Target("route: as described", 10, Described(stage).take, like=_cases())]
