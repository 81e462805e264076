"""Pictures of the operator's page, of a service in which everything went wrong that can:
python docs/operator_pictures.py.

It needs a Chromium of the system's packages.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from storage.schema.migrate import upgrade
from tests.kit.operator import PASSWORD, served

DOCS = Path(__file__).parent
WIDE = {"width": 900, "height": 760}
PHONE = {"width": 390, "height": 760}
PICTURES = {
    "now": ("", "light", WIDE),
    "phone": ("", "dark", PHONE),
    "run": ("/runs/12", "light", PHONE),
    "search": ("/search?ending=uncertain", "dark", WIDE),
    "inbox": ("/chats", "light", WIDE),
    "chat": ("/chats/1#talk", "dark", PHONE),
    "act": ("/acts/part/32/delivered", "light", PHONE),
}
"""By the end of their names: a page, a colour scheme and a size."""


async def draw() -> None:
    """Serve the page, and take each picture."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/answerback.db"
        await asyncio.to_thread(upgrade, url)
        async with served(url) as (base, _), async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=shutil.which("chromium"))
            for name in PICTURES:
                await _take(browser, base, name)
            await browser.close()


async def _take(browser: Browser, base: str, name: str) -> None:
    path, theme, size = PICTURES[name]
    # Without its script a page says what the server said when it was loaded.
    context = await browser.new_context(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=theme,  # type: ignore[arg-type]
        java_script_enabled=False,
    )
    page = await context.new_page()
    await page.goto(base)
    await page.locator("input[type=password]").fill(PASSWORD)
    await page.locator("button.main").click()
    await page.wait_for_url(base)
    await page.goto(f"{base}{path}")
    await page.screenshot(path=DOCS / f"operator-{name}.png", animations="disabled")
    await context.close()


if __name__ == "__main__":
    asyncio.run(draw())
