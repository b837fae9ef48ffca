"""The report as one HTML file: no script, nothing loaded from elsewhere, and a policy that allows neither.

All text is escaped after control and direction characters are removed. There is one style sheet, named by its hash in
the policy, so that no other style is applied.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from html import escape

from ...text.escape import plain
from .charts import StackChart, svg
from .document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Contents,
    Exhibit,
    Figure,
    Link,
    Linked,
    Paragraph,
    Passage,
    Section,
    Table,
    Text,
    Words,
    shown,
)
from .series import slug

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --soft: #f3f4f6; --line: #c9ccd1; --link: #0b57a4;
  --mark: #ffe08a; --warn: #8a3b00; --warnpaper: #fff4e8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --soft: #22262b; --line: #444a52;
  --link: #8cc4ff; --mark: #6b5200; --warn: #ffb784; --warnpaper: #33241a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "DejaVu Sans", Arial, sans-serif;
  overflow-wrap: anywhere; }
header, main, footer { max-width: 80rem; margin: 0 auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1.5rem 0 1rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; }
p, ul { max-width: 48rem; }
a { color: var(--link); }
a.skip { position: absolute; left: -99rem; }
a.skip:focus { left: .5rem; top: .5rem; padding: .5rem; background: var(--paper); border: 2px solid var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.notices { list-style: none; margin: 0 0 1rem; padding: .75rem 1rem; background: var(--warnpaper); color: var(--warn);
  border-left: 4px solid var(--warn); max-width: none; font-weight: 600; }
.notices li + li { margin-top: .4rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0; max-width: none; }
.box { overflow-x: auto; margin: .75rem 0 1.25rem; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35; overflow-wrap: normal; }
caption { text-align: left; font-weight: 600; font-size: .875rem; padding: .25rem 0 .5rem; }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2rem); }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .45rem; text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th { vertical-align: bottom; background: var(--soft); white-space: normal; }
th.text, td.text, th.word, td.word { text-align: left; }
td code { white-space: nowrap; }
td code.long { white-space: normal; }
td.text { white-space: normal; min-width: 6rem; max-width: 26rem; }
tbody th { font-weight: 600; text-align: left; white-space: normal; min-width: 9.5rem; max-width: 22rem;
  position: sticky; left: 0; background: var(--paper); }
code { font: .85em ui-monospace, "DejaVu Sans Mono", Menlo, monospace; overflow-wrap: anywhere; }
figure { margin: .75rem 0 1.25rem; }
figure svg { display: block; width: 100%; min-width: 40rem; max-width: 54rem; height: auto; }
figcaption { font-size: .875rem; }
article { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; margin: 1rem 0; }
article h3, article h4 { margin: 0 0 .5rem; font-size: 1rem; }
dl { margin: 0; display: grid; grid-template-columns: 7.5rem 1fr; gap: .35rem .75rem; }
dt { font-weight: 600; }
dd { margin: 0; min-width: 0; }
mark { background: var(--mark); color: inherit; font-weight: 600; border-bottom: 2px solid currentColor; }
footer { margin-top: 3rem; padding-bottom: 2rem; font-size: .875rem; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  tbody th { min-width: 7rem; max-width: 9.5rem; overflow-wrap: break-word; } }
@media print { :root { --ink: #000000; --paper: #ffffff; --soft: #eeeeee; --line: #999999; --link: #000000;
  --mark: #ffffff; --warn: #000000; --warnpaper: #ffffff; }
  body { font-size: 10pt; } nav, a.skip { display: none; } .box { overflow: visible; } table { font-size: 7.5pt; }
  th, td { padding: .15rem .3rem; } tr, figure, article { break-inside: avoid; } figure.tall { break-inside: auto; }
  thead { display: table-header-group; }
  figure svg { min-width: 0; } h2, h3, caption { break-after: avoid; } }
"""
_SAFE_ADDRESS = re.compile(r"https?://[^\s\"'<>\\^`{|}]+")


def policy() -> str:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def html(contents: Contents) -> str:
    title = _safe("".join(shown(cell) for cell in contents.title))
    links = [(f"s-{place}-{_id(section)}", section) for place, section in enumerate(contents.sections, 1)]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(), quote=True)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        '<a class="skip" href="#content">Skip to the report</a>',
        "<header>",
        f"<h1>{_line(contents.title)}</h1>",
    ]
    if contents.notices:
        lines.append('<ul class="notices" aria-label="Notices">')
        lines += [f"<li>{_line(notice)}</li>" for notice in contents.notices]
        lines.append("</ul>")
    lines.append('<nav aria-label="Sections"><ul>')
    lines += [f'<li><a href="#{name}">{_line(section.title)}</a></li>' for name, section in links]
    lines += ["</ul></nav>", "</header>", '<main id="content" tabindex="-1">']
    for name, section in links:
        lines += _section(section, 2, name)
    lines += ["</main>", "</body>", "</html>"]
    return "\n".join(lines) + "\n"


def _id(section: Section) -> str:
    return slug("".join(shown(cell) for cell in section.title))


def _section(section: Section, level: int, name: str) -> Iterator[str]:
    yield f'<section aria-labelledby="{name}">'
    yield f'<h{level} id="{name}">{_line(section.title)}</h{level}>'
    for block in section.blocks:
        yield from _block(block, level + 1)
    for place, part in enumerate(section.sections, 1):
        yield from _section(part, level + 1, f"{name}-{place}")
    yield "</section>"


def _block(block: Block, level: int) -> Iterator[str]:
    match block:
        case Paragraph():
            yield f"<p>{_line(block.parts)}</p>"
        case Bullets():
            yield "<ul>"
            yield from (f"<li>{_line(item)}</li>" for item in block.items)
            yield "</ul>"
        case Table():
            yield from _table(block)
        case Exhibit():
            yield "<article>"
            yield f"<h{level}>{_line(block.title)}</h{level}>"
            yield "<dl>"
            for label, cells in block.entries:
                yield f"<dt>{_safe(label)}</dt><dd>{_line(cells)}</dd>"
            yield "</dl>"
            yield "</article>"
        case Figure():
            title = _safe(block.chart.title)
            yield '<figure class="tall">' if isinstance(block.chart, StackChart) else "<figure>"
            yield f'<div class="box" role="region" aria-label="{title}, chart" tabindex="0">'
            yield svg(block.chart, alone=False).rstrip("\n")
            yield "</div>"
            yield f"<figcaption>{title}. {_safe(block.beside)}</figcaption>"
            yield "</figure>"


def _table(table: Table) -> Iterator[str]:
    columns, rows = table.in_report()
    caption = _safe(table.caption)
    if not rows:
        yield f"<p>{caption} (none)</p>"
        return
    yield f'<div class="box" role="region" aria-label="{caption}" tabindex="0">'
    yield "<table>"
    yield f"<caption><span>{caption}</span></caption>"
    heads = [f'<th scope="col"{_aligned(column.kind)}>{_safe(column.heading)}</th>' for column in columns]
    yield f"<thead><tr>{''.join(heads)}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        cells = [f"<td{_aligned(column.kind)}>{_cell(cell)}</td>" for column, cell in zip(columns, row, strict=True)]
        if columns[0].kind == "text":
            cells[0] = f'<th scope="row">{_cell(row[0])}</th>'
        yield f"<tr>{''.join(cells)}</tr>"
    yield from ("</tbody>", "</table>", "</div>")


def _aligned(kind: str) -> str:
    return f' class="{kind}"' if kind in ("text", "word") else ""


def _line(cells: Sequence[Cell]) -> str:
    return "".join(_cell(cell) for cell in cells)


def _cell(cell: Cell) -> str:  # noqa: PLR0911 - one return for each kind of cell
    match cell:
        case Words():
            text = escape(cell.text, quote=True)
            return f"<strong>{text}</strong>" if cell.strong else text
        case Text():
            text = _safe(cell.text)
            long = ' class="long"' if len(text) > 40 else ""
            return f"<code{long}>{text}</code>" if cell.code else f"<bdi>{text}</bdi>"
        case Link():
            address = _safe(cell.address)
            if not _SAFE_ADDRESS.fullmatch(cell.address):
                return address
            return f'<a href="{address}" rel="noopener noreferrer">{address}</a>'
        case Linked():
            href = cell.address()
            return f'<a href="{escape(href, quote=True)}">{_cell(cell.cell)}</a>' if href else _cell(cell.cell)
        case Passage():
            pieces = [f"<mark>{_kept(text)}</mark>" if marked else _kept(text) for text, marked in cell.pieces]
            return f"<bdi>“{''.join(pieces)}”</bdi>" if pieces else NOTHING
        case _:
            return escape(shown(cell), quote=True)


def _safe(text: str) -> str:
    return escape(plain(text), quote=True)


def _kept(text: str) -> str:
    """Escaped text, with a space at either end kept."""
    before, after = " " * (text[:1] == " "), " " * (text[-1:] == " " and len(text) > 1)
    return f"{before}{_safe(text)}{after}"
