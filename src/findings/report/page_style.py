"""The one style sheet of all pages, and the policy that names it by its hash, so that no other style is applied."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape

_COLORS = """
:root { color-scheme: light dark; --ink: #1a1c1f; --quiet: #5a6068; --paper: #ffffff; --soft: #f4f5f7; --line: #d5d8dd;
  --link: #0b57a4; --mark: #ffe08a; --warn: #8a3b00; --warnpaper: #fff5ea; --ai: #0072b2; --people: #d55e00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e9eb; --quiet: #a9b0b9; --paper: #15171a; --soft: #202429;
  --line: #3d434b; --link: #8cc4ff; --mark: #6b5200; --warn: #ffb784; --warnpaper: #2e221a; --ai: #56b4e9;
  --people: #e69f00; } }
"""
_TEXT = """
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 system-ui, "DejaVu Sans", Arial, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 3rem 0 .75rem; padding-top: 1rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, ul { max-width: 46rem; }
a { color: var(--link); text-underline-offset: .15em; text-decoration-thickness: 1px; }
td a, th a, .answer a { color: inherit; text-decoration-color: var(--link); }
td a.number { text-decoration: underline dotted var(--line); }
td a.number:hover { text-decoration: underline var(--link); }
a.skip { position: absolute; left: -99rem; }
a.skip:focus { left: .5rem; top: .5rem; padding: .5rem; background: var(--paper); border: 2px solid var(--link);
  z-index: 3; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
a code { text-underline-offset: .3em; }
code { font: .85em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; overflow-wrap: anywhere; }
mark { background: var(--mark); color: inherit; font-weight: 600; border-bottom: 2px solid currentColor; }
.about { color: var(--quiet); margin: 0 0 .5rem; font-size: .9375rem; max-width: none; }
.answer { line-height: 1.4; margin: .3rem 0; max-width: none; }
.caveat { margin: .4rem 0; padding: .35rem .75rem; border-left: 4px solid var(--warn); background: var(--warnpaper);
  font-size: .9375rem; max-width: none; }
.notices { list-style: none; margin: .5rem 0; padding: .5rem .75rem; background: var(--warnpaper); max-width: none;
  border-left: 4px solid var(--warn); font-size: .9375rem; }
.notices li + li { margin-top: .3rem; }
"""
_LAYOUT = """
main, .top { max-width: 66rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
nav.sections { position: sticky; top: 0; z-index: 2; background: var(--paper); border-bottom: 1px solid var(--line);
  overflow-x: auto; }
nav.sections ul { display: flex; gap: 0 1.1rem; list-style: none; margin: 0; padding: 0 1rem; max-width: none;
  white-space: nowrap; overflow-wrap: normal; }
nav.sections a { display: block; padding: .55rem 0; font-size: .875rem; text-decoration: none; color: var(--ink); }
nav.sections a:hover { text-decoration: underline; }
nav.sections .part { display: none; }
@media (max-width: 70rem) { html { scroll-padding-top: 3.5rem; } }
@media (min-width: 70rem) {
  .page { display: grid; grid-template-columns: 13rem minmax(0, 1fr); }
  nav.sections { align-self: start; height: 100vh; overflow: auto; border-bottom: 0;
    border-right: 1px solid var(--line); background: var(--soft); padding: 1rem 0; }
  nav.sections ul { display: block; white-space: normal; overflow-wrap: anywhere; }
  nav.sections a { padding: .25rem 0; line-height: 1.3; font-size: .8125rem; }
  nav.sections .part { display: block; margin: .9rem 0 .15rem; font-size: .75rem; font-weight: 600; color: var(--quiet);
    text-transform: uppercase; letter-spacing: .05em; }
  nav.sections .part:first-child { margin-top: 0; }
  .page main { margin: 0; padding: .9rem 2rem 4rem; } }
"""
_TABLES = """
.box { overflow-x: auto; margin: .75rem 0 1.5rem; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35; overflow-wrap: normal;
  border-top: 2px solid var(--ink); border-bottom: 1px solid var(--ink); }
caption { text-align: left; font-weight: 600; font-size: .875rem; padding: .25rem 0 .5rem; }
table.cards { min-width: min(100%, 26rem); }
caption span { display: inline-block; position: sticky; left: 0; max-width: min(60rem, calc(100vw - 2rem)); }
th, td { padding: .35rem .4rem; text-align: right; vertical-align: top; white-space: nowrap; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
thead th { vertical-align: bottom; white-space: normal; font-weight: 600; border-bottom: 1px solid var(--ink); }
th.text, td.text, th.word, td.word { text-align: left; }
td code { white-space: nowrap; }
td code.long { white-space: normal; }
td.text { white-space: normal; min-width: 6rem; max-width: 26rem; overflow-wrap: break-word; }
tbody th { font-weight: 400; text-align: left; white-space: normal; min-width: 8rem; max-width: 22rem;
  overflow-wrap: break-word; position: sticky; left: 0; background: var(--paper); }
figure { margin: .75rem 0 1.5rem; }
figure svg { display: block; width: 100%; height: auto; max-width: 54rem; }
figure.forest svg, figure.forest figcaption { max-width: 62rem; }
main > figure.forest { margin: .5rem 0; }
figure svg.narrow { display: none; }
figcaption { font-size: .8125rem; color: var(--quiet); max-width: 54rem; }
svg .ai { fill: var(--ai); stroke: var(--paper); }
svg .people { fill: var(--people); stroke: var(--paper); }
svg .reach.ai { stroke: var(--ai); }
svg .reach.people { stroke: var(--people); }
svg path.reach { fill: none; }
svg .badge, svg .onmark { fill: var(--paper); }
svg .halo { stroke: var(--paper); }
article { border: 1px solid var(--line); border-radius: .25rem; padding: .75rem 1rem; margin: 1rem 0;
  max-width: 58rem; }
article h3, article h4 { margin: 0 0 .5rem; font-size: .9375rem; }
dl { margin: 0; display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .35rem .75rem; }
dt { font-weight: 600; }
dd { margin: 0; min-width: 0; }
article dl { font-size: .9375rem; }
article > p { margin: 0 0 .5rem; font-size: .9375rem; }
dl.sides { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem 1.25rem; }
dl.sides > div { border-left: 3px solid var(--line); padding-left: .75rem; min-width: 0; }
details.terms { margin: 0 0 1rem; font-size: .875rem; max-width: 46rem; }
details.terms summary { cursor: pointer; color: var(--quiet); }
details.terms dl { margin: .5rem 0; padding-left: 1rem; border-left: 2px solid var(--line); }
details.fold { margin: .75rem 0; }
details.fold > summary { cursor: pointer; padding: .35rem 0; color: var(--link); }
details.fold > summary h3, details.fold > summary h4 { display: inline; color: var(--ink); }
.whole { white-space: nowrap; }
footer { margin-top: 3rem; padding-bottom: 2rem; font-size: .875rem; color: var(--quiet); }
"""
_PHONE = """
@media (max-width: 46rem) {
  h1 { font-size: 1.4rem; }
  dl, dl.sides { grid-template-columns: minmax(0, 1fr); gap: 0; } dd { margin-bottom: .5rem; }
  figure.both svg.wide { display: none; } figure.both svg.narrow { display: block; }
  figure:not(.both) svg { min-width: 40rem; }
  figure:not(.both) figcaption::after { content: " Swipe sideways to see the whole chart."; }
  table.cards, table.cards tbody, table.cards caption { display: block; width: 100%; border-bottom: 0; }
  table.cards thead { position: absolute; left: -9999px; width: 1px; height: 1px; overflow: hidden; }
  table.cards tr { display: block; padding: .5rem 0; border-top: 1px solid var(--line); }
  table.cards tbody tr > * { display: flex; gap: 1rem; justify-content: space-between; width: 100%; max-width: none;
    min-width: 0; padding: .12rem 0; border: 0; white-space: normal; text-align: right; position: static;
    overflow-wrap: anywhere; }
  table.cards tbody tr > *::before { content: attr(data-label); flex: 0 1 45%; text-align: left; font-weight: 400;
    color: var(--quiet); overflow-wrap: break-word; }
  table.cards tbody th { font-weight: 600; font-size: .9375rem; }
  table.cards tbody th::before { content: none; } }
"""
_PRINT = """
@page { margin: 15mm 14mm; }
@media print { :root { color-scheme: light; --ink: #000000; --quiet: #333333; --paper: #ffffff; --soft: #ffffff;
  --line: #b0b0b0; --link: #000000; --mark: #ffffff; --warn: #000000; --warnpaper: #ffffff; --ai: #0072b2;
  --people: #d55e00; }
  html { font-size: 9.5pt; } body { font-size: 1rem; line-height: 1.4; } h2 { margin-top: 1.5rem; }
  .page { display: block; } .page main, main, .top { padding: 0; max-width: none; }
  nav.sections, a.skip, details.terms { display: none; }
  details.fold > summary { list-style: none; color: inherit; }
  details.fold::details-content { content-visibility: visible; }
  @supports not selector(::details-content) {
    details.fold:not([open]) > summary::after { content: " (folded; open it on the page to print it)"; } }
  .box { overflow: visible; } p, ul { max-width: none; } .answer { font-size: 1.1rem; }
  table { font-size: 7.5pt; max-width: 100%; } th, td { padding: .15rem .3rem; }
  th, td { white-space: normal; } td.text { min-width: 0; } tbody th { min-width: 26mm; position: static; }
  thead th { overflow-wrap: break-word; }
  tr, figure, article, .caveat { break-inside: avoid; }
  tbody tr:nth-last-child(-n+2):not(:first-child) { break-before: avoid; }
  thead { display: table-header-group; } h2, h3, h4, caption { break-after: avoid; }
  figure svg, figure:not(.both) svg { min-width: 0; max-height: 235mm; } }
"""
GENERATOR = "medicare-eval"
"""The mark by which a page of ours is recognized."""
STYLE = _COLORS + _TEXT + _LAYOUT + _TABLES + _PHONE + _PRINT


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
