"""The code of the last release, to be run beside that of today.

An archive and not a tag: a clone may be shallow or have no tags. `make keep-release` makes it of
the tagged commit, whose id it holds (`git get-tar-commit-id`).
"""

from __future__ import annotations

import compileall
import hashlib
import re
import shutil
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_HERE = Path(__file__).parent
_BUILD = _HERE.parents[1] / "build" / "releases"
_SCRIPTS = PurePosixPath("storage/schema/migrations/versions")


@dataclass(frozen=True, slots=True)
class Release:
    """A version that was released, in an archive of its packages and `pyproject.toml`."""

    archive: Path

    @property
    def version(self) -> str:
        return self.archive.name.removeprefix("answerback-").removesuffix(".tar.xz")

    def migrations(self) -> dict[str, bytes]:
        """Its migrations by the names of their files."""
        found = {}
        with tarfile.open(self.archive) as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if path.parent == _SCRIPTS and re.match(r"\d{4}_.*\.py", path.name):
                    content = archive.extractfile(member)
                    assert content is not None
                    found[path.name] = content.read()
        return found

    @property
    def revision(self) -> str:
        """The newest revision of its schema."""
        return max(self.migrations())[:4]

    def code(self) -> Path:
        """A folder to put first into PYTHONPATH: it has the packages, compiled, and what tells
        their version. Made once for a checkout."""
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()[:12]
        made = _BUILD / f"{self.version}-{digest}-{sys.implementation.cache_tag}"
        if made.exists():
            return made
        _BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_BUILD) as part:
            folder = Path(part) / "code"
            with tarfile.open(self.archive) as archive:
                archive.extractall(folder, filter="data")
            told = folder / f"answerback-{self.version}.dist-info"
            told.mkdir()
            (told / "METADATA").write_text(
                f"Metadata-Version: 2.4\nName: answerback\nVersion: {self.version}\n"
            )
            compileall.compile_dir(folder, quiet=2)
            try:
                folder.rename(made)
            except OSError:  # another worker of the tests was quicker
                shutil.rmtree(folder)
        return made


def last_release() -> Release:
    """The one that is kept here."""
    [archive] = _HERE.glob("answerback-*.tar.xz")
    return Release(archive)
