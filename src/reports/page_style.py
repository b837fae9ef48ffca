"""The one style sheet of all pages, and the policy that names it by its hash, so that no other style is applied."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path
from string import Template

GENERATOR = "medicare-eval"
"""The mark by which a page of ours is recognized."""
_START = Template(Path(__file__).with_name("page_start.html").read_text(encoding="utf-8").rstrip("\n"))
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


@cache
def policy(style: str = STYLE) -> str:
    """The content security policy of a page: nothing is loaded, run or sent, and only this style is applied."""
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def opening(title: str, style: str = STYLE) -> str:
    """The lines of a page up to its text, with a title that is HTML already."""
    given = {"policy": escape(policy(style), quote=True), "generator": GENERATOR, "title": title, "style": style}
    return _START.substitute(given)
