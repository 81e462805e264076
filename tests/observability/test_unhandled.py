"""Errors that nobody handles end up in the log, in its form, from wherever they come."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_SET_UP = """
import sys, threading
from bot.observability.logs import set_up_logs
set_up_logs("INFO", as_json=True, secrets=())
class Broken:
    def __del__(self):
        raise ValueError("secret-text-XYZ")
def fail():
    raise ValueError("secret-text-XYZ")
"""
_IN_PROCESS = "fail()"
_IN_THREAD = "thread = threading.Thread(target=fail); thread.start(); thread.join()"
_IN_FINALIZER = "Broken()"
_AS_WARNING = "import warnings; warnings.warn('this will go away', UserWarning)"


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _SET_UP + code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("code", "level", "status"),
    [(_IN_PROCESS, "critical", 1), (_IN_THREAD, "error", 0), (_IN_FINALIZER, "error", 0)],
    ids=["process", "thread", "finalizer"],
)
def test_an_unhandled_error_is_one_line_without_its_words(
    code: str, level: str, status: int
) -> None:
    ended = run(code)
    [line] = [json.loads(line) for line in ended.stderr.splitlines()]
    assert (line["level"], line["error"]) == (level, "ValueError")
    assert line["frames"]
    assert "secret-text-XYZ" not in ended.stderr + ended.stdout
    assert ended.returncode == status


def test_warnings_of_python_come_out_in_the_same_form() -> None:
    [line] = [json.loads(line) for line in run(_AS_WARNING).stderr.splitlines()]
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
