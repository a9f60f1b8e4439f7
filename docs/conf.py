"""Sphinx site: ``make docs``. Nothing is fetched: no intersphinx, no fonts or scripts from elsewhere."""

import pycct

project = "pycct"
author = "the pycct authors"
copyright = "2026, the pycct authors"
release = pycct.__version__
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3

nitpicky = False
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"pycct {release}"
html_show_sourcelink = False
html_copy_source = False
