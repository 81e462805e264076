"""The findings of `answerback doctor` about the web."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from bot.domain.findings import Finding, fine, problem, warning
from channels.web.settings import WebSettings

_ENOUGH_FILES = 10_000
"""Open files: each client that follows a chat is one."""


async def examine(settings: WebSettings) -> Sequence[Finding]:
    """Tell whether pages may use it, who can be on them, and whether files can be kept."""
    found = [_pages(settings), _people(settings), _open_files()]
    if settings.web_files is not None:
        found.append(await asyncio.to_thread(_folder, settings.web_files))
    return found


def _pages(settings: WebSettings) -> Finding:
    if settings.web_origins:
        return fine("web pages", f"those of {', '.join(sorted(settings.web_origins))} may use it")
    fix = "set WEB_ORIGINS=https://www.example.com to the origins of your pages"
    return warning("web pages", "only pages of this server itself may use it", fix)


def _people(settings: WebSettings) -> Finding:
    signed_in = "and whom the site signs in" if settings.web_identity_secret else "and nobody else"
    return fine("web visitors", f"guests, {signed_in}")


def _open_files() -> Finding:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= _ENOUGH_FILES:
        return fine("open files", "enough for thousands who follow a chat")
    fix = f"raise it to {_ENOUGH_FILES}: LimitNOFILE of systemd, ulimits of compose, or ulimit -n"
    return warning("open files", f"at most {limit} connections and files at once here", fix)


def _folder(folder: Path) -> Finding:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return problem("WEB_FILES", f"{folder}: {error.strerror}", "name a folder that can be made")
    if not os.access(folder, os.W_OK | os.X_OK):
        return problem("WEB_FILES", f"{folder} can't be written", "change its owner or its mode")
    return fine("WEB_FILES", f"{folder} can be written")
