"""The work that a process does of all that there is."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The work of a process."""

    ALL = "all"
    WEB = "web"
    WORKER = "worker"
