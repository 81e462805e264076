"""A Dockerfile read as an engine reads it, and its steps carried out without one.

Paths of the image are places below a scratch root: what stands in a command by its absolute path
(`/opt/answerback`) is spelled as a path there. It shows that the steps fit together and what they
leave behind, and nothing about the base image.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from tests.limits import PATIENCE


@dataclass(frozen=True)
class Step:
    """One instruction with its words: of a JSON form its items, else the text."""

    name: str
    text: str

    @property
    def words(self) -> Sequence[str]:
        if self.text.startswith("["):
            listed: list[str] = json.loads(self.text)
            return listed
        return shlex.split(self.text)

    @property
    def options(self) -> Mapping[str, str]:
        given = (word[2:].partition("=") for word in self.words if word.startswith("--"))
        return {name: value for name, _, value in given}

    @property
    def arguments(self) -> Sequence[str]:
        return [word for word in self.words if not word.startswith("--")]


@dataclass(frozen=True)
class Stage:
    """The steps between one FROM and the next."""

    base: str
    name: str
    steps: Sequence[Step]


def read(text: str) -> Sequence[Stage]:
    """The stages of a Dockerfile."""
    stages: list[Stage] = []
    for step in _steps(text):
        if step.name == "FROM":
            base, *rest = step.words
            stages.append(Stage(base, rest[1] if rest else "", []))
        else:
            steps = stages[-1].steps
            assert isinstance(steps, list)
            steps.append(step)
    return stages


def _steps(text: str) -> Iterator[Step]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield Step(name.upper(), rest.strip())


def context(folder: Path, ignored: str) -> Sequence[PurePosixPath]:
    """The files of a folder that its .dockerignore lets into the build: the last rule that names
    a file, or a folder that it is in, decides."""
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    names = [PurePosixPath(name) for name in files.stdout.split("\0") if name]
    return [name for name in names if (folder / name).is_file() and not left_out(name, ignored)]


def left_out(name: PurePosixPath, ignored: str) -> bool:
    """Ask a .dockerignore if it keeps this file out of the build."""
    rules = [line.strip() for line in ignored.splitlines() if line.strip()[:1] not in ("", "#")]
    out = False
    for rule in rules:
        pattern = rule.removeprefix("!").strip("/")
        if any(_matches(place, pattern) for place in (name, *name.parents[:-1])):
            out = not rule.startswith("!")
    return out


def _matches(place: PurePosixPath, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(place.name, pattern[3:])
    return len(place.parts) == len(PurePosixPath(pattern).parts) and fnmatch(str(place), pattern)


@dataclass
class Replay:
    """A stage as it is after its steps: a scratch root, variables, the folder and user at work.

    `programs` are commands that a step may run beside the shell's own; any other RUN is refused.
    """

    root: Path
    source: Path
    files: Sequence[PurePosixPath]
    stages: Mapping[str, Path] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "root"
    command: Sequence[str] = ()
    ran: list[str] = field(default_factory=list)
    outside: Mapping[str, str] = field(default_factory=dict)
    """The stand-ins for commands of the base image, by their first words."""

    def place(self, path: str) -> Path:
        """A path of the image, below the root."""
        absolute = path if path.startswith("/") else f"{self.folder.rstrip('/')}/{path}"
        return self.root / absolute.lstrip("/")

    def play(self, stage: Stage) -> None:
        self.root.mkdir(exist_ok=True)
        for step in stage.steps:
            match step.name:
                case "WORKDIR":
                    self.folder = step.text
                    self.place(".").mkdir(parents=True, exist_ok=True)
                case "ENV":
                    for word in step.words:
                        name, _, value = word.partition("=")
                        self.variables[name] = value
                case "COPY":
                    self._copy(step)
                case "RUN":
                    self._run(step.text)
                case "USER":
                    self.user = step.text
                case "CMD":
                    self.command = step.words
                case "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK":
                    pass
                case other:
                    raise AssertionError(f"{other} is not replayed")

    def _copy(self, step: Step) -> None:
        *sources, target = step.arguments
        to = self.place(target)
        for source in sources:
            if stage := step.options.get("from"):
                self._copy_tree(self.stages[stage] / source.lstrip("/"), to)
                continue
            found = [
                name
                for name in self.files
                if name == PurePosixPath(source) or name.is_relative_to(source)
            ]
            assert found, f"COPY {source}: .dockerignore or the folder lacks it"
            into = target.endswith("/") or target == "." or len(sources) > 1
            for name in found:
                inner = name.relative_to(source)
                path = (
                    to / (name.name if into else "")
                    if name == PurePosixPath(source)
                    else (to / inner)
                )
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.source / name, path)

    def _copy_tree(self, source: Path, to: Path) -> None:
        shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)

    def _run(self, text: str) -> None:
        self.ran.append(text)
        for begins, instead in self.outside.items():
            text = text.replace(begins, instead)
        text = re.sub(r"(?<![\w.=/])/(opt|data|app|src)\b", rf"{self.root}/\1", text)
        variables = {
            name: re.sub(r"(?<![\w.])/(opt|data|app|src)\b", rf"{self.root}/\1", value)
            for name, value in self.variables.items()
        }
        ended = subprocess.run(
            ["sh", "-ec", text],
            cwd=self.place("."),
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, f"RUN {text}: {ended.stderr}"
