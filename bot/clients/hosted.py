"""Kept files as platforms and people fetch them: by an address that cannot be guessed."""

from __future__ import annotations

import logging
import re
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.domain.clients.desk import App
from bot.domain.clients.hosted import PATH, SIGNED_WITH, file_at
from bot.domain.errors import DatabaseUnavailable
from bot.leases.runtime import Runtime
from storage import files, secrets
from storage.files import KeptFile
from storage.statements.tx import Tx

_MIME = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,100}")
_log = logging.getLogger("answerback.files")


class HostedFiles:
    """The files of one process, under `path`."""

    path = PATH

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt

    def app(self) -> App:
        """The application."""
        app = Starlette(routes=[Route(f"{PATH}/{{token}}", self._serve, methods=["GET"])])
        app.router.redirect_slashes = False
        return app

    async def _serve(self, request: Request) -> Response:
        try:
            found = await self._rt.db.read(_find, request.path_params["token"])
        except DatabaseUnavailable as error:
            _log.warning("a file could not be read: %s", error)
            return PlainTextResponse("come again\n", 503, {"Retry-After": "2"})
        if found is None or found.content is None:
            return PlainTextResponse("there is no such file, or it is not kept any more\n", 404)
        # As a file to save: whatever is in it, no page of ours shows it by itself.
        headers = {
            "Content-Type": found.mime if _MIME.fullmatch(found.mime) else _UNKNOWN,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
        }
        return Response(found.content, headers=headers)


_UNKNOWN = "application/octet-stream"


def _find(tx: Tx, token: str) -> KeptFile | None:
    """The file that a path names."""
    secret = secrets.find(tx, SIGNED_WITH)
    named = None if secret is None else file_at(secret, token)
    return None if named is None else files.find(tx, named.account, named.ref)
