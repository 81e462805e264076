"""Sphinx extension: links from the pages to the code that they name, within the site.

A path in code style (`storage/runs/moves.py`, `tests/crash/test_matrix.py::test_...`) and a link
to a file of the repository become links to a page that shows the file, at the line of the name.
So a reader of the site sees the test that holds a promise, offline too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

_log = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
_ROOMS = "bot|channels|storage|tests|docs|examples|deploy|benchmarks"
_NAMED = re.compile(rf"((?:{_ROOMS})/[\w./-]*\.\w+|\w+\.yaml|\.env\.example)(?:::(\w+))?")
_PICTURES = (".png", ".svg")


class LinksToCode(SphinxTransform):
    """Make links of paths that stand in code style, and of links to files that are no pages."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Change the document in place."""
        for node in list(self.document.findall(nodes.literal)):
            named = _NAMED.fullmatch(node.astext())
            if named is None or isinstance(node.parent, nodes.reference | download_reference):
                continue
            if link := self._link(named[1], named[2] or ""):
                node.replace_self(link)
                link += node
        here = PurePosixPath(self.env.docname).parent
        for node in list(self.document.findall(download_reference)):
            link = self._link(normpath(here / str(node["reftarget"]).partition("#")[0]), "")
            if link:
                node.replace_self(link)
                link += node.children

    def _link(self, path: str, name: str) -> nodes.reference | None:
        """A link to the page of this file; None where it has none."""
        if (page := path.removesuffix(".md")) in self.env.found_docs:
            return self._to(page, "")
        file = ROOT / path
        if not file.is_file() or file.suffix in _PICTURES:
            return None
        shown: set[str] = self.env.__dict__.setdefault("shown_sources", set())
        shown.add(path)
        line = _line(file, name) if name else None
        if name and line is None:
            _log.warning("%s defines no %s", path, name, location=self.env.docname)
        return self._to(f"source/{path}", f"#L-{line}" if line else "")

    def _to(self, page: str, anchor: str) -> nodes.reference:
        where = relative_uri(f"{self.env.docname}.html", f"{page}.html")
        return nodes.reference("", "", internal=True, refuri=where + anchor)


def _line(file: Path, name: str) -> int | None:
    """The line on which a name is defined, if it is."""
    defined = re.compile(rf" *(?:async )?(?:def|class) {name}\b")
    lines = file.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if defined.match(line)), None)


def sources(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that some page leads to."""
    formatter = HtmlFormatter(anchorlinenos=True, linenos="inline", lineanchors="L")
    for path in sorted(app.env.__dict__.get("shown_sources", ())):
        text = (ROOT / path).read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        body = f"<h1>{path}</h1>\n{highlight(text, lexer, formatter)}"
        yield f"source/{path}", {"title": path, "body": body}, "page.html"


def setup(app: Sphinx) -> Mapping[str, object]:
    """Tell Sphinx what is here."""
    app.add_transform(LinksToCode)
    app.connect("html-collect-pages", sources)
    return {"parallel_read_safe": False}
