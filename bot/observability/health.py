"""Whether a process can do its job: what `/readyz` tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be so for this process to do its job."""

    name: str
    well: bool
    says: str
