"""Sphinx site: ``make docs``. It fetches nothing: no intersphinx, no external fonts or scripts."""

import sys
from pathlib import Path

import pycct

project = "pycct"
author = "the pycct authors"
copyright = "2026, the pycct authors"
release = pycct.__version__
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]

source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [f"api/{page}.rst" for page, name in {"crowd": "Crowd", "installation": "show_config"}.items()
                    if not hasattr(pycct, name)]
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
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"pycct {release}"
html_show_sourcelink = False
html_copy_source = False


def without_self(app, what, name, obj, options, signature, returns):
    """Remove self from the signatures of compiled methods."""
    if signature and what == "method":
        for start in ("(self, ", "(self"):
            if signature.startswith(start):
                return "(" + signature[len(start):], returns
    return None


def embed_recordings(app, problem):
    """Make the recordings that pages of the site embed."""
    if problem is None and app.builder.format == "html" and hasattr(pycct, "CrowdMember"):
        sys.path.insert(0, str(Path(app.srcdir)))
        from embedded_recordings import write_all

        write_all(Path(app.outdir) / "_recordings")


def setup(app):
    """Register the hooks."""
    # Runs before numpydoc, which would return a signature first.
    app.connect("autodoc-process-signature", without_self, priority=100)
    app.connect("build-finished", embed_recordings)
