"""Disks that can be filled: small ones in memory, which nobody else sees and which end with us.

They need a name space of mounts of our own. Root has one for the asking; others have one with a
name space of users around it, where the kernel allows that.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_RECURSIVE, _PRIVATE = 0x4000, 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def own_mounts() -> bool:
    """Give this process mounts of its own, before it has a second thread. False: it can't be."""
    root = os.geteuid() == 0
    user, group = os.geteuid(), os.getegid()
    if _libc.unshare(_NEW_MOUNTS if root else _NEW_MOUNTS | _NEW_USERS) != 0:
        return False
    if not root:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    return bool(_libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) == 0)


@contextmanager
def small_disk(place: Path, megabytes: int, owner: int) -> Iterator[Disk | None]:
    """A disk at this folder, for this user. None: nothing may be mounted here."""
    options = f"size={megabytes}m,mode=700,uid={owner}".encode()
    if _libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, options) != 0:
        yield None
        return
    try:
        yield Disk(place)
    finally:
        _libc.umount2(os.fsencode(place), 2)  # Lazily: somebody may still look at it.


class Disk:
    """A folder that can be full."""

    def __init__(self, place: Path) -> None:
        self._ballast = place / "ballast"
        self._place = place

    def fill(self) -> None:
        """Leave no room."""
        with self._ballast.open("ab", buffering=0) as file:
            while (free := shutil.disk_usage(self._place).free) > 0:
                try:
                    os.posix_fallocate(file.fileno(), file.tell(), free)
                except OSError:
                    return  # Somebody was quicker; what is left is less than a page.
                file.seek(0, os.SEEK_END)

    def empty(self) -> None:
        """Let there be room again."""
        self._ballast.unlink(missing_ok=True)
