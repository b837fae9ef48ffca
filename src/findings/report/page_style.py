"""The one style sheet of all pages, and the policy that names it by its hash, so that no other style is applied."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path

GENERATOR = "medicare-eval"
"""The mark by which a page of ours is recognized."""
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


@cache
def policy(style: str = STYLE) -> str:
    """The content security policy of a page: nothing is loaded, run or sent, and only this style is applied."""
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def opening(title: str, style: str = STYLE) -> str:
    """The lines of a page up to its text, with a title that is HTML already."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(style), quote=True)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f'<meta name="generator" content="{GENERATOR}">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        '<a class="skip" href="#content">Skip to the text</a>',
    ]
    return "\n".join(lines)
