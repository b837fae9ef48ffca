"""The frame of every page, its style and its one script. All text of others goes through `safe` or `safe_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..findings.report.evidence_shell import PAGE_STYLE, safe
from ..findings.report.page_style import STYLE

STYLE_PATH, SCRIPT_PATH = "/static/style.css", "/static/keys.js"
_OWN = """
.bar { display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; align-items: baseline; padding: .6rem 1rem;
  border-bottom: 1px solid var(--line); background: var(--soft); font-size: .875rem; }
.bar strong { font-size: 1rem; }
.bar .grow { flex: 1 1 auto; }
form.claim { display: grid; gap: 1.25rem; max-width: 90rem; }
@media (min-width: 64rem) { form.claim { grid-template-columns: minmax(0, 1fr) minmax(24rem, 34rem); }
  form.claim > .wide { grid-column: 1 / -1; } }
form.claim h1 { font-size: .875rem; color: var(--quiet); margin: 0; } form.claim .claimtext { margin: 0; }
form.claim h2 { margin-top: 0; border: 0; padding: 0; font-size: 1rem; }
fieldset { border: 1px solid var(--line); border-radius: .25rem; margin: 0 0 1rem; padding: .5rem .9rem .8rem;
  min-width: 0; }
legend { font-weight: 600; padding: 0 .3rem; }
fieldset label { display: flex; gap: .5rem; padding: .3rem 0; align-items: baseline; cursor: pointer; }
fieldset label:hover { background: var(--soft); }
input[type=radio], input[type=checkbox] { flex: none; width: 1.1rem; height: 1.1rem; accent-color: var(--link); }
kbd { font: .75rem ui-monospace, "DejaVu Sans Mono", monospace; border: 1px solid var(--line); border-radius: .2rem;
  padding: 0 .3rem; background: var(--soft); }
textarea { width: 100%; min-height: 4.5rem; font: inherit; padding: .4rem; border: 1px solid var(--quiet);
  background: var(--paper); color: var(--ink); border-radius: .2rem; }
button, .button { font: inherit; font-weight: 600; padding: .55rem 1.2rem; border: 2px solid var(--link);
  background: var(--link); color: var(--paper); border-radius: .25rem; cursor: pointer; text-decoration: none;
  display: inline-block; }
button.second, .button.second { background: var(--paper); color: var(--link); }
.problems { border: 2px solid var(--warn); background: var(--warnpaper); padding: .6rem .9rem; margin: 0 0 1rem; }
.problems h2 { border: 0; margin: 0 0 .25rem; padding: 0; font-size: 1rem; }
.saved { border-left: 4px solid #009e73; background: var(--soft); padding: .5rem .9rem; margin: 0 0 1rem; }
.claimtext { font-size: 1.15rem; font-weight: 600; margin: .25rem 0 .75rem; }
form.claim:not(:has(input[value=CONTRADICTED]:checked)) .severity { display: none; }
.beside { display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); }
details.src { font-size: .8125rem; color: var(--quiet); margin: 0 0 .4rem 1.6rem; }
.fact .src { display: block; font-size: .8125rem; color: var(--quiet); }
.said { border: 1px solid var(--line); border-left: 4px solid var(--link); padding: .5rem .9rem; margin: .5rem 0; }
progress { width: 12rem; height: .8rem; accent-color: var(--link); }
table.matrix tbody th { white-space: normal; min-width: 14rem; } table.matrix th.part { padding-top: .8rem; }
table.matrix .quiet { font-weight: 400; } table.matrix td { text-align: left; }
table.runs td, table.runs thead th { white-space: normal; text-align: left; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8125rem; }
form.note { max-width: 42rem; } div.collect { max-width: 48rem; }
div.saved p, div.problems p { margin: .25rem 0; }
.collect label { font-weight: 600; } .collect textarea[readonly] { background: var(--soft); }
.collect [hidden] { display: none; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem .75rem; align-items: center; }
.live { font-weight: 600; }
"""


def style() -> str:
    return f"{STYLE}{PAGE_STYLE}{_OWN}"


def page(title: str, body: Iterable[str], *, bar: Iterable[str] = ()) -> str:
    """A whole page. `title` is plain text; `bar` and `body` are HTML already."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{safe(title)}</title>",
        '<link rel="icon" href="data:,">',
        f'<link rel="stylesheet" href="{STYLE_PATH}">',
        f'<script src="{SCRIPT_PATH}" defer></script>',
        "</head>",
        "<body>",
        '<a class="skip" href="#content">Skip to the text</a>',
        f'<header class="bar">{" ".join(bar)}</header>',
        '<main id="content" tabindex="-1">',
        *body,
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


# The style and the script of the pages: two files, nothing from elsewhere.

_SCRIPT = Path(__file__).parent / "static" / "keys.js"


def static_routes() -> list[Route]:
    return [Route(STYLE_PATH, _style), Route(SCRIPT_PATH, _script)]


async def _style(request: Request) -> Response:
    return Response(style(), media_type="text/css")


async def _script(request: Request) -> Response:
    return Response(_SCRIPT.read_text(encoding="utf-8"), media_type="text/javascript")


# Where pages are, and the way to them at the top of each. Names are quoted.


def _quoted(part: str) -> str:
    return quote(part, safe="", errors="surrogateescape")


def href_of(run: str, *parts: str) -> str:
    """A page of a run."""
    return "/runs/" + "/".join(map(_quoted, (run, *parts)))


def series_href(name: str) -> str:
    return f"/series/{_quoted(name)}"


def way(*steps: tuple[str, str]) -> Iterator[str]:
    """From the list of runs to a page: the text and the address of each step."""
    yield '<strong><a href="/">Runs</a></strong>'
    for text, href in steps:
        yield f'<span>/ <a href="{href}">{safe(text)}</a></span>'
