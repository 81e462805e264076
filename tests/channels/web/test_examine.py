"""The doctor on the web: whatever is missing is named with the fix."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from bot.domain.findings import Finding, Level
from channels.web.examine import examine
from channels.web.settings import WebSettings


async def found(**changes: object) -> dict[str, Finding]:
    settings = WebSettings(**changes)  # type: ignore[arg-type]  # as the environment gives them
    return {finding.name: finding for finding in await examine(settings)}


async def test_a_site_whose_pages_are_not_listed_is_told_so() -> None:
    finding = (await found())["web pages"]
    assert finding.level is Level.WARNING
    assert "WEB_ORIGINS" in finding.fix
    listed = (await found(web_origins="https://www.example.com"))["web pages"]
    assert listed.level is Level.OK
    assert "https://www.example.com" in listed.says


async def test_it_says_who_can_be_on_a_page_and_no_secret() -> None:
    secret = "a secret of the site, of 32 bytes or more"[:40].replace(",", ";")
    assert "nobody else" in (await found())["web visitors"].says
    said = (await found(web_identity_secret=secret))["web visitors"].says
    assert "signs in" in said
    assert secret not in said


async def test_few_open_files_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, level in ((1024, Level.WARNING), (65_536, Level.OK), (-1, Level.OK)):
        monkeypatch.setattr(resource, "getrlimit", lambda _what, limit=limit: (limit, limit))
        assert (await found())["open files"].level is level


async def test_a_folder_that_can_not_be_made_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (await found(web_files=tmp_path / "file" / "x"))["WEB_FILES"].level is Level.PROBLEM
    assert (await found(web_files=tmp_path / "new"))["WEB_FILES"].level is Level.OK
