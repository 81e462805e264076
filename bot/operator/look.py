"""The look of the page: templates, and the static files that a browser caches.

Everything that a template shows is escaped, and characters that could change the direction of
writing are spelled out. A template can't turn that off: only code of ours makes `Markup`, for
pictures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from bot.operations.reports.phrases import counted, safe, span, when
from bot.operator.door import PATH

_KEPT = "public, max-age=31536000, immutable"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_ASSETS = ("operator.css", "operator.js", "inbox.css", "inbox.js", "icon.svg")


class Look:
    """Templates and static files, read once. `menu` has the path and name of each page that the
    frame links to."""

    def __init__(self, menu: Sequence[tuple[str, str]]) -> None:
        kept = files("bot.operator") / "static"
        found = {name: (kept / name).read_bytes() for name in _ASSETS}
        self._names = {name: _with_hash(name, content) for name, content in found.items()}
        self._contents = {self._names[name]: content for name, content in found.items()}
        self._templates = Environment(
            loader=PackageLoader("bot.operator"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        del self._templates.filters["safe"]  # nothing that a template is given is safe as it is
        self._templates.filters |= {"span": span, "when": when, "counted": counted}
        self._templates.globals |= {"menu": menu, "asset": self.asset}
        for name in self._templates.list_templates():
            self._templates.get_template(name)  # an upgrade may change the files any time

    def html(self, template: str, values: Mapping[str, object]) -> str:
        """The HTML of a template with these values."""
        return self._templates.get_template(template).render(values)

    def page(self, template: str, values: Mapping[str, object], status: int = 200) -> Response:
        """The HTML as a response that no browser or proxy stores."""
        headers = {"Cache-Control": "no-store"}
        return HTMLResponse(self.html(template, values), status, headers)

    def asset(self, root: str, name: str) -> str:
        """The address of a static file. It has a hash of the content, so it changes with it."""
        return f"{root}{PATH}/static/{self._names[name]}"

    async def serve(self, request: Request) -> Response:
        """Serve a static file."""
        content = self._contents.get(request.path_params["name"])
        if content is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        kind = _TYPES[request.path_params["name"].rpartition(".")[2]]
        return Response(content, media_type=kind, headers={"Cache-Control": _KEPT})


def _with_hash(name: str, content: bytes) -> str:
    stem, _, kind = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(content).hexdigest()[:12]}.{kind}"


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return value
    return safe(value, lines=True) if isinstance(value, str) else value
