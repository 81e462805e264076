"""Check the types of the Python that pages show: `python -m tests.docs.page_types`.

It stands among the lint and not among the tests: without what mypy has just learned of our code
it takes twenty seconds of CPU, with it two.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.page_blocks import ROOT, blocks


def main() -> int:
    """Check them all at once; the exit status is mypy's."""
    with TemporaryDirectory() as folder:
        files = []
        for block in blocks():
            if block.language == "python":
                name = f"{block.page.replace('.', '_').replace('-', '_')}_{block.line}.py"
                file = Path(folder) / name
                file.write_text(block.text, encoding="utf-8")
                files.append(str(file))
        command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *files]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
