"""Settings of Sphinx, which makes the site of the pages: `make docs`.

The pages are Markdown that can be read where the code is hosted too, so links between them and
to the code are paths within the repository: its root is the source directory. Every warning is
an error. Nothing is fetched from elsewhere, so the site works offline and from a folder.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

project = "Answerback"
author = "The Answerback authors"
version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
release = version
html_title = f"Answerback {version}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_extra_path = ["index.html"]
html_static_path = ["look.css"]
html_css_files = ["look.css"]

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "*.md",
    "benchmarks/peers/README.md",
    "examples/graph_framework.md",
]
exclude_patterns = [".*", "bot", "channels", "storage", "tests", "data", "dist", "build", "deploy"]

extensions = ["myst_parser", "code_links", "navigation", "offline"]
myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
nitpicky = True
# Not every language of a fence is known to what colours it: `dotenv`.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
