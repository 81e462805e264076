"""The widget's script as it is served: one file, with the texts of all languages in it."""

from __future__ import annotations

import gzip
import hashlib
import json
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


def script(texts: Texts) -> str:
    """The script with these texts in it."""
    source = (files("channels.web") / "answerback.js").read_text(encoding="utf-8")
    assert source.count(_PLACE) == 1
    words = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    return source.replace(_PLACE, f"const TEXTS = {words};")


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
