"""How Sphinx builds the site: `make docs`; what is generated is written below docs/generated first."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent)]

from docs.generate import write  # noqa: E402
from syncscan.version import __version__  # noqa: E402

write(DOCS / "generated")

project = "syncscan"
author = "The authors of syncscan"
project_copyright = "the authors of syncscan; Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "generated/tables", "__pycache__"]
html_theme = "furo"
html_title = f"syncscan {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"top_of_page_buttons": []}
html_show_sphinx = False
html_show_sourcelink = False
smartquotes = False  # `--option` stays as it is typed

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Docstrings are plain text with `names` in backticks, in Google's style.
default_role = "code"
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
