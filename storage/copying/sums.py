"""A sum over the values of rows, the same on both kinds of database and in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

_BYTES = 16


@dataclass(slots=True)
class RowSum:
    """The number of rows that were added, and the sum of their hashes. Two rows are the same if
    every value has the same type and is written the same: of floats, to the last bit."""

    rows: int = 0
    total: int = 0

    def add(self, row: Iterable[Any]) -> None:
        """Add one row."""
        written = repr(tuple(row)).encode()
        self.rows += 1
        self.total += int.from_bytes(blake2b(written, digest_size=_BYTES).digest())

    @property
    def digest(self) -> str:
        """The sum, for people."""
        return f"{self.total % (1 << 8 * _BYTES):032x}"
