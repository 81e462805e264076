"""Backups from a shell."""

from __future__ import annotations

from pathlib import Path

from tests.cli.asking import call
from tests.e2e.processes import Ground


async def test_a_backup_is_made_and_put_back(sqlite_ground: Ground, tmp_path: Path) -> None:
    file = tmp_path / "backup.db"
    made = await call(sqlite_ground, "db", "backup", str(file), "--json")
    assert made.json == {"file": str(file), "bytes": file.stat().st_size}
    back = await call(sqlite_ground, "db", "restore", str(file))
    assert (back.code, back.err) == (0, "")
    assert "the database that was here is" in back.out
    assert "in which nothing was open" in back.out
