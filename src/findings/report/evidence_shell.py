"""The frame, the style and the text functions of evidence pages.

Pages are written as strings, because there can be many. All text of others goes through `safe` or `safe_lines`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple, cast

from ...schemas import StudyCode
from ...scoring.definitions import CODE_HEADINGS
from ...text.escape import plain
from ...text.rounded import rounded
from .links import SAFE_ADDRESS
from .page_style import STYLE, opening

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control and format characters, surrogates, and separators of lines and paragraphs."""
_EMPTY_LINES = re.compile(r"\n[ \n]*\n\n")
CODE_MARKS = {
    "accurate_complete": "AC",
    "accurate_incomplete": "AI",
    "not_substantive": "NS",
    "incorrect": "IN",
    "incomplete_data": "ID",
}
LABEL_MARKS = {"SUPPORTED": "S", "CONTRADICTED": "C", "NOT_IN_KEY": "N", None: "O"}
"""Label to its class; the mark of `N` is shown as a question mark."""
PAGE_STYLE = """
:root { --s: #00785a; --c: #c04a00; --n: #4f6f8f; --o: #a03d78; --cpaper: #fff0e6; }
@media (prefers-color-scheme: dark) { :root { --s: #35c79a; --c: #ff9a57; --n: #9bb8d6; --o: #e9a3cb;
  --cpaper: #3a2416; } }
html { scroll-padding-top: .75rem; }
main { max-width: 84rem; }
h2 { margin-top: 2rem; }
.way { font-size: .875rem; margin: 0 0 1rem; max-width: none; color: var(--quiet); }
.facts, .note { font-size: .875rem; }
.note, .quiet { color: var(--quiet); }
.legend { font-size: .8125rem; max-width: none; }
.say { margin: .5rem 0; padding: .6rem .9rem; max-width: 72ch; white-space: pre-wrap; border-radius: .25rem; }
.asked { background: var(--soft); font-weight: 600; }
.reply { border: 1px solid var(--line); }
.turn { margin: 1.25rem 0; display: grid; gap: .25rem 1.5rem; grid-template-columns: minmax(0, 1fr); }
@media (min-width: 64rem) { .turn { grid-template-columns: minmax(0, 72ch) minmax(18rem, 1fr); }
  .turn > .asked { grid-column: 1 / -1; } }
.who { display: block; font-size: .75rem; font-weight: 400; color: var(--quiet); }
a.m { color: inherit; text-decoration: underline 2px; text-underline-offset: .2em; }
.S { --mark-ink: var(--s); } .C { --mark-ink: var(--c); } .N { --mark-ink: var(--n); } .O { --mark-ink: var(--o); }
a.m { text-decoration-color: var(--mark-ink); }
a.m.C { background: var(--cpaper); text-decoration-style: double; }
a.m.N { text-decoration-style: dotted; } a.m.O { text-decoration-style: dashed; }
.k { outline: 2px dashed var(--warn); }
sup { font-size: .7em; font-weight: 700; color: var(--mark-ink, inherit); line-height: 0; }
.say sup a { color: var(--mark-ink); text-decoration: none; padding: .6em .5em; }
.claims { font-size: .875rem; line-height: 1.4; align-self: start; min-width: 0; }
.claims details { border-left: 3px solid var(--mark-ink); padding: .1rem 0 .1rem .6rem; margin: .3rem 0; }
.claims summary { cursor: pointer; } .claims summary b { color: var(--mark-ink); }
.claims div { margin: .15rem 0 .4rem; padding: .2rem .5rem; background: var(--soft); scroll-margin-top: 4rem; }
.claims p { margin: .2rem 0; } .key { display: block; color: var(--quiet); }
:target { outline: 2px solid var(--link); outline-offset: 2px; }
.coded { margin: 0 0 1.5rem; padding: .5rem .9rem; border: 1px solid var(--line); border-left: 4px solid var(--k);
  max-width: 72ch; font-size: .9375rem; }
.coded h3 { margin: 0 0 .25rem; font-size: .9375rem; } .coded p { margin: .25rem 0; }
.coded ul, .plainlist { margin: .25rem 0; padding-left: 1.2rem; font-size: .875rem; }
.AC { --k: #009e73; } .AI { --k: #56b4e9; } .NS { --k: #9aa1a9; } .IN { --k: #d55e00; } .ID { --k: #cc79a7; }
.code { display: inline-block; min-width: 1.9rem; padding: 0 .25rem; text-align: center; font-weight: 700;
  font-size: .8125rem; border-bottom: 4px solid var(--k, var(--line)); text-decoration: none; color: inherit; }
table.wide td, table.wide tbody th { padding: .2rem .4rem; } table.wide thead th:first-child { text-align: left; }
table.wide tbody th { white-space: nowrap; min-width: 0; } .code { line-height: 1.2; }
td.reason { text-align: left; white-space: normal; overflow-wrap: anywhere; }
article.trial { border: 0; border-top: 3px solid var(--ink); margin: 2.5rem 0 0; padding: 0; max-width: none; }
.trial h2 { border: 0; margin: .5rem 0; padding: 0; }
.sources dt { font-weight: 600; } .sources dd { margin: 0 0 .6rem; max-width: 72ch; }
.sources dl { display: block; }
@media (max-width: 46rem) {
  table.wide, table.wide caption, table.wide tbody, table.wide tr { display: block; border: 0; }
  table.wide thead { position: absolute; left: -9999px; }
  table.wide tr { padding: .4rem 0; border-top: 1px solid var(--line); }
  table.wide tbody th { display: block; position: static; border: 0; white-space: normal; max-width: none; }
  table.wide td { display: inline-block; border: 0; margin-right: .5rem; }
  table.wide td::before { content: attr(data-label) " "; color: var(--quiet); font-size: .75rem; }
  table.wide td.reason { display: block; }
  .say { padding: .5rem .6rem; } }
@media print { .turn { display: block; } article.trial, .turn { break-inside: auto; }
  details::details-content { content-visibility: visible; } }
"""
_STYLE = STYLE + PAGE_STYLE


class Page(NamedTuple):
    title: str
    """Plain text."""
    way: Iterable[str]
    """Links back to the report, as HTML."""
    body: Iterable[str]
    """Lines of HTML."""


def page_bytes(page: Page) -> bytes:
    """A whole page, as a report has it on disk."""
    parts = [
        opening(safe(page.title), _STYLE),
        f'\n<main id="content" tabindex="-1">\n{way_html(page)}\n',
        "\n".join(page.body),
        "\n</main>\n</body>\n</html>\n",
    ]
    return "".join(parts).encode("utf-8", "replace")


def way_html(page: Page) -> str:
    return f'<p class="way">{" / ".join(page.way)}</p>'


def safe(text: str) -> str:
    """Text of others on one line, as HTML: for an element, or an attribute in double quotes."""
    if not text.isprintable():
        text = plain(text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def safe_lines(text: str) -> str:
    """Text of others with its line breaks and spaces, as HTML; at most one empty line in a row."""
    if not text.isprintable():
        lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
        text = "\n".join(line if line.isprintable() else _visible(line) for line in lines)
        if "\n\n\n" in text:
            text = _EMPTY_LINES.sub("\n\n", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _visible(line: str) -> str:
    return "".join(char for char in line if unicodedata.category(char) not in _HIDDEN)


def link(href: str, text: str) -> str:
    """A link to a page of ours; `text` is HTML."""
    return f'<a href="{href}">{text}</a>'


def web_link(address: str) -> str:
    """A link to a source; an address of another form is shown as text."""
    shown = safe(address)
    return f'<a href="{shown}" rel="noopener noreferrer">{shown}</a>' if SAFE_ADDRESS.fullmatch(address) else shown


def code_mark(code: str) -> str:
    """The mark of a study code, or of an answer to a closed question."""
    return CODE_MARKS.get(code) or safe(code)


def code_name(code: str) -> str:
    """A study code in words, as HTML."""
    return CODE_HEADINGS.get(cast(StudyCode, code)) or safe(code)


def code_legend() -> str:
    marks = [f'<span class="code {mark}">{mark}</span> {code_name(code)}' for code, mark in CODE_MARKS.items()]
    return f'<p class="legend">{" &nbsp; ".join(marks)}</p>'


def score_text(score: float | None) -> str:
    return "–" if score is None else rounded(score)
