"""The widget's script as it is served: one file, with the texts of all languages in it."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from channels.web.wire import PATH

WIDGET = f"{PATH}/answerback.js"
_PLACE = "const TEXTS = { en: {} }; // The server puts the texts of all languages here."
_KEPT = "public, max-age=300, stale-if-error=604800"
"""A deploy reaches a page within minutes; a page is well served by an old script meanwhile."""

Texts = Mapping[str, Mapping[str, str]]
"""By language tag, the words of the widget by their names in the script."""


_BLOCK = re.compile(r"^\s*/\*.*?\*/[ \t]*$", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"""^//.*|\s+//(?: [^"'`]*)?$""")
"""A comment. At the end of a line it has no quotes: a text with slashes in it could end there."""


def bare(source: str) -> str:
    """A script without its indentation and comments: a sixth of what a browser would load."""
    lines = (_LINE.sub("", line.strip()) for line in _BLOCK.sub("", source).splitlines())
    return "\n".join(line for line in lines if line)


def script(texts: Texts) -> str:
    """The script with these texts in it, as it is served."""
    source = (files("channels.web") / "answerback.js").read_text(encoding="utf-8")
    assert source.count(_PLACE) == 1
    words = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return bare(source).replace(bare(_PLACE), f"const TEXTS = {words};")


class Widget:
    """The answer to whoever loads the script. It is public, the same for every origin, and
    compressed once."""

    def __init__(self, texts: Texts) -> None:
        self._plain = script(texts).encode()
        self._packed = gzip.compress(self._plain, mtime=0)
        self._tag = f'"{hashlib.sha256(self._plain).hexdigest()[:20]}"'

    async def serve(self, request: Request) -> Response:
        """Serve it, or say that the browser's copy is the newest."""
        headers = {
            "ETag": self._tag,
            "Cache-Control": _KEPT,
            "Vary": "Accept-Encoding",
            "Access-Control-Allow-Origin": "*",
            "Cross-Origin-Resource-Policy": "cross-origin",
            "X-Content-Type-Options": "nosniff",
        }
        if self._tag in request.headers.get("If-None-Match", ""):
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self._packed, headers=headers, media_type="text/javascript")
        return Response(self._plain, headers=headers, media_type="text/javascript")
