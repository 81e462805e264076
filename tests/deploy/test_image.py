"""The image: its steps replayed without an engine, and an agent of one's own on top of it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path, PurePosixPath

import pytest

from bot.agents.function import load
from bot.threads import Threads
from tests.deploy.dockerfile import Replay, Stage, context, left_out, read
from tests.e2e.forking import Forked
from tests.limits import PATIENCE

ROOT = Path(__file__).parents[2]
HERE = Path(sys.executable).parent
BASE = {
    "pip install --no-cache-dir uv==": ": uv==",
    "--python /usr/local/bin/python3": f"--python {sys.executable}",
    "useradd --system --uid 10001 --create-home --home-dir /data answerback": "mkdir /data",
}
"""Commands of the base image, done by the machine's own programs."""
ONLY_OURS = {
    "uv pip install --require-hashes -r requirements.lock": "test -s requirements.lock",
    "uv pip install --no-deps --no-build-isolation .": (
        f"uv build --quiet --wheel --no-build-isolation --python {sys.executable}"
        " --out-dir /opt/answerback ."
    ),
}
"""In the place of the packages that we need, our own alone, as a wheel."""


def _stages() -> tuple[Stage, Stage]:
    build, final = read((ROOT / "Dockerfile").read_text())
    return build, final


def _replayed(folder: Path, outside: dict[str, str]) -> Replay:
    """Both stages below a folder; what the image is in the end."""
    build, final = _stages()
    files = context(ROOT, (ROOT / ".dockerignore").read_text())
    outside = BASE | outside
    variables = {"PATH": f"{HERE}:{os.environ['PATH']}"}
    first = Replay(folder / "build", ROOT, files, outside=outside, variables=dict(variables))
    first.play(build)
    stages = {build.name: first.root}
    image = Replay(
        folder / "image", ROOT, files, stages, outside=outside, variables=dict(variables)
    )
    image.play(final)
    return image


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return _replayed(tmp_path_factory.mktemp("image"), ONLY_OURS)


@pytest.fixture(scope="module")
def wheel(image: Replay) -> Iterator[zipfile.ZipFile]:
    [file] = (image.root / "opt/answerback").glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def test_the_image_serves_as_a_plain_user_and_waits_where_settings_are_wrong(image: Replay) -> None:
    assert image.user == "10001"
    assert image.folder == "/app"
    assert image.command == ["answerback", "serve", "--stay"]
    assert image.variables["DATABASE_URL"] == "sqlite:////data/answerback.db"


def test_nothing_secret_and_nothing_big_goes_into_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text()
    for kept_out in (".env", "agent/.env", "data/answerback.db", "tests/world.py", ".git/config"):
        assert left_out(PurePosixPath(kept_out), ignored), kept_out
    for let_in in ("agent/my_bot.py", "agent/tools/prices.py", "bot/py.typed", "LICENSE"):
        assert not left_out(PurePosixPath(let_in), ignored), let_in


def test_the_wheel_holds_all_that_it_needs(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for package in ("bot", "channels", "storage"):
        assert f"{package}/py.typed" in names
    assert {"bot/texts/en.toml", "channels/web/answerback.js"} <= names
    assert any(name.startswith("storage/schema/migrations/versions/0001") for name in names)
    [licence] = [name for name in names if name.endswith("/licenses/LICENSE")]
    assert "Apache License" in wheel.read(licence).decode()
    assert not any(name.startswith(("tests/", "benchmarks/", "docs/")) for name in names)


def test_the_wheel_says_whose_it_is_and_that_no_index_may_take_it(wheel: zipfile.ZipFile) -> None:
    [file] = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    told = message_from_string(wheel.read(file).decode())
    assert told["License-Expression"] == "Apache-2.0"
    assert told.get_all("License-File") == ["LICENSE"]
    assert told["Author"] == "The Answerback authors"
    kinds = told.get_all("Classifier") or []
    assert "Private :: Do Not Upload" in kinds
    assert "Operating System :: POSIX" in kinds
    assert not any(kind.startswith("License ::") for kind in kinds)


def test_three_lines_put_an_agent_of_ones_own_into_the_image(
    image: Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/docker.md").read_text()
    [dockerfile] = re.findall(r"```dockerfile\n(FROM answerback\n.*?)```", page, re.DOTALL)
    [module] = re.findall(r"```python\n# agent/my_bot\.py\n(.*?)```", page, re.DOTALL)
    assert len(dockerfile.strip().splitlines()) == 3
    (tmp_path / "my_bot.py").write_text(module)
    [stage] = read(dockerfile)
    assert stage.base == "answerback"
    own = Replay(image.root, tmp_path, [PurePosixPath("my_bot.py")], folder=image.folder)
    own.play(stage)
    assert not own.command  # the image's stays
    assert image.variables["PYTHONPATH"] == "/app"
    monkeypatch.delitem(sys.modules, "my_bot", raising=False)
    monkeypatch.setattr(sys, "path", [str(own.place("/app")), *sys.path])
    assert load(own.variables["AGENT"], Threads(1)).is_async
    sys.modules.pop("my_bot")


async def test_a_missing_module_is_one_sentence_and_no_restart(tmp_path: Path) -> None:
    waiting = await Forked.start(
        *("serve", "--stay"),
        environment={
            "PATH": os.defpath,
            "HOME": str(tmp_path),
            "PORT": "0",
            "TELEGRAM_BOT_TOKEN": "7000000001:TEST-token-not-real-000000000000000",
            "TELEGRAM_MODE": "polling",
            "AGENT": "my_bto:answer",
            "ALLOWED": "@ada",
        },
        folder=tmp_path,
    )
    async with asyncio.timeout(PATIENCE):
        said = [(await waiting.stderr.readline()).decode() for _ in range(2)]
    assert said[0].startswith("answerback: AGENT")
    assert "there is no module 'my_bto'" in said[0]
    assert "waits" in said[1]
    assert waiting.returncode is None
    os.kill(waiting.pid, signal.SIGTERM)
    assert await waiting.wait() == 2
    assert b"Traceback" not in await waiting.stderr.read()
    waiting.close()


@pytest.mark.deep
def test_the_whole_image_can_be_built_and_runs(tmp_path: Path) -> None:
    image = _replayed(tmp_path, {})
    program = (image.root / "opt/answerback/bin/answerback").read_text()
    assert "bot.cli.__main__" in program
    python = tmp_path / "build/opt/answerback/bin/python"
    assert os.spawnv(os.P_WAIT, python, [str(python), "-m", "bot.cli", "--help"]) == 0
