"""A call's parameters, whether they came as a query, a form, multipart or JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from tests.fakes.recording import Json
from tests.fakes.telegram.spec import Spec, Upload


class UnreadableBody(Exception):
    """The body is not what its content type says."""


async def read_params(request: Request, method: str, spec: Spec | None) -> Json:
    """The parameters with their JSON types. Raises UnreadableBody."""
    params: Json = {
        name: _typed(value, _types(spec, method, name))
        for name, value in request.query_params.items()
    }
    kind = request.headers.get("content-type", "").split(";")[0].strip()
    if kind == "application/json":
        body = await request.body()
        try:
            value = json.loads(body or b"{}")
        except ValueError as error:
            raise UnreadableBody(str(error)) from error
        if not isinstance(value, dict):
            raise UnreadableBody("object expected as request body")
        return params | value
    if kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
        async with request.form() as form:
            params |= await _form(form, method, spec)
    return params


async def _form(form: FormData, method: str, spec: Spec | None) -> Json:
    params: Json = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            params[name] = Upload(
                value.filename or "", value.content_type or "", await value.read()
            )
        else:
            params[name] = _typed(value, _types(spec, method, name))
    return params


def _types(spec: Spec | None, method: str, name: str) -> tuple[str, ...]:
    known = spec.parameter_types(method, name) if spec is not None else ()
    return known or (("String",) if name in _WORDS else ())


_WORDS = {
    "text",
    "caption",
    "parse_mode",
    "url",
    "secret_token",
    "callback_query_id",
    "file_id",
    "message_effect_id",
    "business_connection_id",
    "action",
}


def _typed(raw: str, types: tuple[str, ...]) -> Any:
    """A form's string as the JSON value that it stands for."""
    if types == ("String",):
        return raw
    if raw in ("True", "true"):
        return True
    if raw in ("False", "false"):
        return False
    try:
        value = json.loads(raw)
    except ValueError:
        return raw
    if isinstance(value, str) or (types and "String" in types and isinstance(value, float)):
        return raw
    return value
