"""The version of this program, as its package's metadata have it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def our_version() -> str:
    """The version, such as 0.1.0; `unknown` for a folder of code that nobody installed."""
    try:
        return version("answerback")
    except PackageNotFoundError:
        return "unknown"
