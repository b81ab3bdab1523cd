"""Sphinx's settings for the site of the documents; docs/site/make.py runs it."""
import os
import re
import sys

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import navigation  # noqa: E402

project = "Sluice"
author = copyright = "the Sluice authors"
extensions = ["myst_parser", "breathe"]
include_patterns = ["index.md", "docs/*.md", "api/*.md", *navigation.OUTSIDE]
root_doc = "index"
html_theme = "furo"
html_title = "Sluice"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
breathe_projects = {"sluice": "xml"}
breathe_default_project = "sluice"
breathe_domain_by_extension = {"h": "c"}
c_id_attributes = ["SLUICE_API"]
primary_domain = "c"
highlight_language = "none"
myst_heading_anchors = 4
# names of the C library, and settings, which look as macros do
nitpick_ignore_regex = [("c:identifier", r"u?int\d+_t|size_t|bool|SLUICE_[A-Z0-9_]+")]
suppress_warnings = ["misc.highlighting_failure"]  # a piece of JSON with `...` in it

LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def link_in_site(match, folder, source):
    """A link to a public header leads to its page in the reference, one to README.md to the first page. A link to a
    folder becomes the folder's name, as a site of pages has no listing."""
    text, target, anchor = match.groups()
    place = os.path.normpath(os.path.join(folder, target))
    if place == "README.md":
        return f"[{text}]({os.path.relpath('index.md', folder or '.')}{anchor or ''})"
    header = re.fullmatch(r"include/(sluice/.*)\.h", place)
    if header:
        return f"[{text}]({os.path.relpath('api/' + header[1].replace('/', '-') + '.md', folder or '.')})"
    if "://" not in target and os.path.isdir(os.path.join(source, place)):
        return text
    return match[0]


def before_reading(app, name, text):
    folder = os.path.dirname(name)
    text[0] = LINK.sub(lambda match: link_in_site(match, folder, app.srcdir), text[0])


class NamesOfTheInterface(SphinxTransform):
    """A public name in a page's text, in backticks and whole, leads to its place in the reference: one that the
    reference lacks is warned about. Names in capitals may be settings' instead, and stay text then."""
    default_priority = 210

    def apply(self):
        if self.env.docname.startswith("api/"):
            return
        for literal in list(self.document.findall(nodes.literal)):
            name = re.fullmatch(r"(sluice_[a-z0-9_]+|SLUICE_[A-Z0-9_]+)(?:\(\))?", literal.astext())
            if name and not isinstance(literal.parent, nodes.reference):
                link = addnodes.pending_xref("", refdomain="c", reftype="identifier", reftarget=name[1],
                                             refwarn=False, refdoc=self.env.docname)
                literal.replace_self(link)
                link += literal


def setup(app):
    app.connect("source-read", before_reading)
    app.add_transform(NamesOfTheInterface)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
