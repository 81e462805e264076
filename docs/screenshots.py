"""Pictures of the chat on a page, from a running Answerback: python docs/screenshots.py.

It needs a Chromium of the system's packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

DOCS = Path(__file__).parent
WIDE = {"width": 900, "height": 720}
PHONE = {"width": 390, "height": 720}
ANSWERS = {
    "Where is my order?": """**A-1042** left our house this morning:

1. Packed on Monday
2. Sent, see [the parcel's page](https://parcels.example/A-1042)
3. Expected *tomorrow before noon*

> You can still change the address until tonight.""",
    "أين طلبي؟": "غادر طلبك **A-1042** هذا الصباح، ويصل *غدًا قبل الظهر*.",
}
ASKED = {
    "en": ("Where is my order?", "Can it come on Friday?"),
    "ar": ("أين طلبي؟", "هل يمكن أن يصل يوم الجمعة؟"),
}
PICTURES = {
    "light": ("en", "light", WIDE),
    "dark": ("en", "dark", WIDE),
    "right-to-left": ("ar", "light", WIDE),
    "phone": ("en", "light", PHONE),
}


async def reply(turn: object) -> str:
    """The agent: it knows two questions, and takes its time over all others."""
    text: str = turn.text  # type: ignore[attr-defined]
    if text not in ANSWERS:
        await turn.step("ask", _wait)  # type: ignore[attr-defined]
    return ANSWERS[text]


async def _wait() -> str:
    import asyncio  # noqa: PLC0415 - for the process that is photographed

    await asyncio.Event().wait()
    return ""


def draw() -> None:
    """Start Answerback, and take each picture."""
    with tempfile.TemporaryDirectory() as folder, _serving(folder) as process:
        assert process.stderr is not None
        said = (line.partition("listens on ")[2] for line in process.stderr)
        url = next(place.split()[0] for place in said if place)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
            for name in PICTURES:
                _take(browser, url, name)
        process.terminate()


def _serving(folder: str) -> subprocess.Popen[str]:
    settings = {
        "PATH": os.defpath,
        "HOME": folder,
        "PYTHONPATH": str(DOCS),
        "DATABASE_URL": f"sqlite:///{folder}/answerback.db",
        "AGENT": "screenshots:reply",
        "WEB": "true",
        "PORT": "0",
    }
    program = [str(Path(sys.executable).with_name("answerback")), "serve"]
    return subprocess.Popen(program, env=settings, stderr=subprocess.PIPE, text=True, cwd=folder)  # noqa: S603 - our own program


def _take(browser: Browser, url: str, name: str) -> None:
    language, theme, size = PICTURES[name]
    context = browser.new_context(viewport=size, color_scheme=theme, locale=language)  # type: ignore[arg-type]
    page = context.new_page()
    page.add_init_script(f"window.answerback = {{ lang: '{language}' }}")
    page.goto(f"{url}/web/")
    page.locator("button.launch").click()
    question, further = ASKED[language]
    for text in (question, further):
        page.locator("textarea").fill(text)
        page.locator("textarea").press("Enter")
        expect(page.locator("li.mine .bubble", has_text=text)).to_be_visible()
        if text == question:
            expect(page.locator("li.message")).to_be_visible()
    expect(page.locator("li.busy")).to_be_visible()
    page.screenshot(path=DOCS / f"web-{name}.png", animations="disabled")
    context.close()


if __name__ == "__main__":
    draw()
