"""No locked release has an advisory that is known here, and one that had would be told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packaging.version import Version

from tests import advisories
from tests.advisories import LOCKS, ROOT, Known, known, pins
from tests.advisories.__main__ import main


@pytest.fixture(scope="module")
def listed() -> Known:
    return known()


@pytest.mark.parametrize("lock", LOCKS)
def test_no_locked_release_has_a_known_advisory_and_each_package_was_looked_up(
    listed: Known, lock: str
) -> None:
    locked = pins((ROOT / lock).read_text(encoding="utf-8"))
    assert locked
    found = listed.of(locked)
    told = [f"{one.package} {at}: {one.id}, fixed in {one.fixed_in}" for one, at in found]
    assert told == []
    assert sorted(locked.keys() - listed.looked_up) == [], "look it up: CONTRIBUTING.md"


def test_every_advisory_is_of_a_locked_package_and_found_at_a_release_that_it_names(
    listed: Known,
) -> None:
    locked = {name for lock in LOCKS for name in pins((ROOT / lock).read_text(encoding="utf-8"))}
    for one in listed.advisories:
        assert one.package in locked, f"{one.id} is of nothing that is locked any more"
        assert one.says.endswith("."), one.id
        for part in one.affected:
            first = part.introduced or Version("0")
            assert one in [told for told, _ in listed.of({one.package: [first]})], one.id
            if part.fixed is not None:
                assert one not in [told for told, _ in listed.of({one.package: [part.fixed]})]


@pytest.mark.parametrize(
    ("release", "told"),
    [
        ("0.9", False),
        ("1.0rc1", False),
        ("1.0", True),
        ("1.9.post1", True),
        ("1.10", False),
        ("2.0b1", True),
        ("2.1", True),
        ("2.1.1", False),
        ("3.5", True),
    ],
)
def test_releases_are_compared_as_packages_are(tmp_path: Path, release: str, told: bool) -> None:
    events = [
        {"introduced": "1.0"},
        {"fixed": "1.10"},
        {"introduced": "2.0b1"},
        {"last_affected": "2.1"},
        {"introduced": "3"},
    ]
    one = {"id": "X-1", "aliases": [], "package": "Some_Thing", "events": events, "says": ""}
    file = tmp_path / "known.json"
    file.write_text(json.dumps({"read_on": "", "looked_up": [], "advisories": [one]}))
    locked = pins(f"some-thing[all]=={release} ; sys_platform == 'linux' \\\n    --hash=sha256:0\n")
    assert [found.id for found, _ in known(file).of(locked)] == ["X-1"] * told


def test_a_vulnerable_release_in_a_lock_file_is_told_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    (tmp_path / "planted.lock").write_text(
        lock.replace(f"starlette=={pins(lock)['starlette'][0]}", "starlette==1.0.0")
        + "leftpad==1.0 \\\n"
    )
    monkeypatch.setattr("tests.advisories.__main__.ROOT", tmp_path)
    monkeypatch.setattr("tests.advisories.__main__.LOCKS", ("planted.lock",))
    assert main() == 1
    said = capsys.readouterr().out
    assert "planted.lock: starlette 1.0.0 has PYSEC-2026-161, CVE-2026-48710" in said
    assert "fixed in 1.0.1" in said
    assert "never looked up, see CONTRIBUTING.md: leftpad\n" in said
    assert advisories.known().read_on in said


def test_the_security_page_says_what_was_looked_up_and_when(listed: Known) -> None:
    page = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    assert f"renewed on {listed.read_on}: all {len(listed.looked_up)} packages" in page
    assert f"any of its {len(listed.advisories)} advisories" in page
