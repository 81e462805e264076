"""Files and folders that hold people's words: made for our own user alone, whatever the umask is.

What is there already keeps its mode, which somebody may have meant; `doctor` tells of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FOLDER = 0o700
_FILE = 0o600


def make_folder(folder: Path) -> None:
    """Make a folder that is not there, and those above it. Raises OSError."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=_FOLDER, exist_ok=True)


def make_file(file: Path) -> None:
    """Make an empty file that is not there. Raises OSError."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, _FILE))


def open_to_all(file: Path) -> bool:
    """Tell whether every user of this machine may read a file; False for none."""
    try:
        return bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
