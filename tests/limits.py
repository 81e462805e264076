"""How long a test waits."""

from __future__ import annotations

PATIENCE = 120.0
"""Seconds that a test waits for what must happen: no test fails because a machine is slow."""
