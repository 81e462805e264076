"""Sphinx extension: a site that would load anything from another host is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(?:https?:)?//"
    r"|<link\b(?![^>]*\brel=\"(?:canonical|prev|next)\")[^>]*\bhref=\"(?:https?:)?//"
    r"|@import\b|url\([\"']?(?:https?:)?//"
)
"""Everything that a browser would load by itself from another host."""


def offline(app: Sphinx, exception: Exception | None) -> None:
    """Refuse a site that needs another host to be shown."""
    if exception is not None:
        return
    made = (file for kind in ("html", "css") for file in sorted(app.outdir.rglob(f"*.{kind}")))
    wrong = [str(file) for file in made if _FETCHED.search(file.read_text(encoding="utf-8"))]
    if wrong:
        raise ExtensionError(f"these would load something from elsewhere: {', '.join(wrong)}")


def setup(app: Sphinx) -> Mapping[str, object]:
    """Tell Sphinx what is here."""
    app.connect("build-finished", offline)
    return {"parallel_read_safe": True}
