"""Aligned tables and lines for a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..records.model_name import split_name
from ..text.count import counted
from ..text.escape import plain
from ..text.money import money_text
from ..text.rounded import percent

if TYPE_CHECKING:  # a table of models or of facts needs none of these, and they take long to import
    from ..calls.estimate import EstimateRow
    from ..findings.estimates import Estimated
    from ..reporting import CallError, Spending, Summary
    from ..stats.clustered import ClusteredShare

GAP = 2
"""Spaces between columns."""
NARROWEST = 8
"""The first column is never made narrower than this."""
ERRORS_SHOWN = 5
"""Kinds of failed calls in the summary of a run."""
ERROR_LINES = 4
"""Lines of one of them."""
_PIECE = re.compile(r"([:/_.,@-]+)(?=[^:/_.,@-])")
"""Where a long name may break, such as after the mark in compatible:flaky."""
_BREAK = "\x1f"
"""Takes no room, and rich breaks lines at it."""


def plain_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], align: str = "l", *, caption: str = "",
    width: int | None = None,
) -> str:  # fmt: skip
    """A table no wider than the terminal, or than `width`.

    `align` has an l or an r for each of the first columns; the others are aligned right. Cells wrap between words, the
    widest column first. If that is not enough, long words of the first column break after punctuation, and only then
    anywhere. Line breaks inside a cell are kept.
    """
    from rich.console import Console  # takes long to import
    from rich.table import Table
    from rich.text import Text

    limit = width or shutil.get_terminal_size().columns
    cells = [["\n".join(map(plain, cell.split("\n"))) for cell in row] for row in (headings, *rows)]
    widths = _widths(cells, limit - GAP * (len(headings) - 1))
    table = Table.grid(padding=(0, GAP, 0, 0))
    for place, size in enumerate(widths):
        table.add_column(justify="left" if align[place : place + 1] == "l" else "right", width=size, overflow="fold")
    long = re.compile(rf"\S{{{widths[0] + 1},}}")
    line = re.compile(rf"[^{_BREAK}]{{{max(1, widths[0])}}}(?=[^{_BREAK}])")
    for first, *others in cells:
        breakable = long.sub(lambda name: line.sub(rf"\g<0>{_BREAK}", _PIECE.sub(rf"\1{_BREAK}", name[0])), first)
        table.add_row(*map(Text, (breakable, *others)))
    console = Console(width=sum(widths) + GAP * len(widths), color_system=None, legacy_windows=False, height=25)
    with console.capture() as drawn:
        console.print(table)
    lines = [line.rstrip() for line in drawn.get().replace(_BREAK, "").splitlines()]
    return "\n".join([*lines, *([wrapped(caption, limit)] if caption else [])])


def _widths(cells: Sequence[Sequence[str]], limit: int) -> list[int]:
    """How wide each column may be, so that all fit into `limit` if possible."""
    from rich.cells import cell_len

    columns = ["\n".join(column) for column in zip(*cells, strict=True)]
    widths = [max(map(cell_len, column.split("\n"))) for column in columns]
    words = [max(map(cell_len, column.split()), default=0) for column in columns]
    while sum(widths) > limit and (wide := [place for place, width in enumerate(widths) if width > words[place]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return [max(widths[0] - max(0, sum(widths) - limit), min(NARROWEST, widths[0])), *widths[1:]]


def wrapped(text: str, width: int | None = None) -> str:
    """Text in lines no longer than the terminal, or than `width`, if its words allow it. Line breaks are kept."""
    limit = width or shutil.get_terminal_size().columns
    return "\n".join(
        "\n".join(textwrap.wrap(line, max(1, limit), break_long_words=False, break_on_hyphens=False))
        for line in text.split("\n")
    )


def summary_table(summary: Summary, width: int | None = None) -> str:
    """The table printed at the end of a run."""
    from ..reporting import coverage_sentence, range_text
    from ..scoring.definitions import MEASURES, SCORES
    from ..stats.bounded import LEAST_UNITS

    scores = [MEASURES[name].lines for name in SCORES]
    names = (scores[0], "key\ncover-\nage", *scores[1:], "refu-\nsals", "fabri-\ncated")
    rows, unsure = [], []
    for target, tally in summary.by_target.items():
        estimates = [tally.estimate(name) for name in SCORES]
        accuracy, *others = map(_estimate_lines, estimates)
        claims = tally.claims
        counts = f"{tally.outcomes['scored']}/{tally.trials} scored\n{counted(claims.judged, 'claim')}"
        if claims.open or any(one.missing for one in estimates):
            ends = (range_text(one.lowest, one.highest) for one in estimates)
            unsure.append([target, f"{max(one.missing for one in estimates):,}", f"{claims.open:,}", *ends])
        rows.append(
            [
                f"{target}\n{counts}",
                accuracy,
                _coverage_text(tally.coverage),
                *others,
                str(tally.refusals),
                str(tally.fabricated),
            ]
        )
    caption = (
        f"Mean over scenarios, then its 95% interval, for which {LEAST_UNITS} scenarios are needed, then the number of "
        f"trials. {coverage_sentence(summary.coverage)}"
    )
    table = plain_table(("target", *names), rows, caption=caption, width=width)
    if not unsure:
        return table
    caption = (
        "Lowest and highest that the means could be: with missing trials at either end, and all claims that judges "
        "left open falling one way or the other. In the means, an open claim counts as each verifier labeled it."
    )
    names = ("trials\nmissing", "claims\nopen", *scores)
    return f"{table}\n\n{plain_table(('target', *names), unsure, caption=caption, width=width)}"


def _estimate_lines(one: Estimated) -> str:
    """A mean, its interval, and of how many trials it is."""
    from ..reporting import estimate_text

    text = estimate_text(one, two_lines=True)
    return text if one.value is None else f"{text}\nn={one.answers:,}"


def _coverage_text(share: ClusteredShare) -> str:
    """33%, then its interval, if it has one, on a second line."""
    if share.value is None:
        return "–"
    if share.low is None or share.high is None:
        return f"{percent(share.value)}%"
    return f"{percent(share.value)}%\n{percent(share.low)}–{percent(share.high)}%"


def code_table(summary: Summary, width: int | None = None) -> str:
    """How the questions were coded, over all scenarios."""
    from ..schemas import CODES
    from ..scoring.definitions import CODE_HEADINGS

    rows = [
        [target, str(sum(tally.codes.values())), *(str(tally.codes[code]) for code in CODES)]
        for target, tally in summary.by_target.items()
    ]
    names = ["ques-\ntions", *(CODE_HEADINGS[code].replace(", ", ",\n").replace(" ", "\n") for code in CODES)]
    caption = "Study codes of the questions. The report gives the reason for each code."
    return plain_table(("target", *names), rows, caption=caption, width=width)


def cost_text(rows: Sequence[Spending], as_of: str) -> str:
    """One sentence: what the targets and the judges cost."""
    parts = []
    for part in ("questioner", "target", "judges"):
        mine = [row for row in rows if row.part == part]
        if mine:
            total = None if any(row.cost is None for row in mine) else sum(row.cost or 0 for row in mine)
            parts.append(f"{part} {money_text(total)} ({sum(row.attempts for row in mine):,} calls)")
    without = sum(row.without_usage for row in rows)
    note = f"; {without} attempts reported no token usage and are not included" if without else ""
    return f"Cost at list prices of {as_of}: {', '.join(parts) or 'no calls'}{note}."


def error_text(errors: Sequence[CallError], width: int | None = None) -> str:
    """Why calls failed: the kinds that lost most, with how often they did and how often another attempt followed."""
    from ..reporting import kind_text

    limit = width or shutil.get_terminal_size().columns
    top = errors[:ERRORS_SHOWN]
    counts = [(f"{error.lost:,}", f"{error.tried_again:,}") for error in top]
    taken = sum(max(len("calls"), *map(len, column)) + GAP for column in zip(*counts, strict=True))
    rows = []
    for error, numbers in zip(top, counts, strict=True):
        reason = plain(f"{error.role} {error.model}: {kind_text(error)}. {error.message}")
        lines = textwrap.wrap(reason, max(20, limit - taken), max_lines=ERROR_LINES, placeholder=" …")
        rows.append([*numbers, "\n".join(lines)])
    caption = "Lost: no usable answer, so data is missing. Tried again, or to be on resume: cost only time."
    table = plain_table(("calls\nlost", "tried\nagain", "reason"), rows, "rrl", caption=caption, width=limit)
    more = len(errors) - ERRORS_SHOWN
    rest = f"and {counted(more, 'more kind')}; --json and the report list all" if more > 0 else ""
    return "\n".join(["Why calls failed:", table, *([wrapped(rest, limit)] if rest else [])])


def estimate_table(rows: Sequence[EstimateRow]) -> str:
    """A plan's calls, tokens and cost by role and target."""
    cells = [
        [
            row.role,
            row.model,
            row.target or "(all)",
            f"{row.calls:,}",
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            money_text(row.cost),
        ]
        for row in rows
    ]
    known = [row.cost for row in rows if row.cost is not None]
    unknown = "" if len(known) == len(rows) else ", plus the models without a known price"
    names = ("role", "model", "for target", "calls", "tokens in", "tokens out", "cost")
    table = plain_table(names, cells, "lll")
    total = f"Total: about {money_text(sum(known))}{unknown}."
    return f"Estimate, from the plan's texts and typical replies:\n{table}\n{_cached_text(rows)}\n{total}"


def _cached_text(rows: Sequence[EstimateRow]) -> str:
    """How much of what judges are sent their providers can read from a cache."""
    judging = [row for row in rows if row.role not in ("target", "questioner")]
    shares = []
    for model in dict.fromkeys(row.model for row in judging):
        mine = [row for row in judging if row.model == model]
        share = sum(row.cached_tokens for row in mine) / sum(row.input_tokens for row in mine)
        shares.append(f"{model} {percent(share)}%")
    return wrapped(
        "Judges' calls about one scenario start alike. Tokens in that providers can read from a cache, if the start is "
        f"long enough for the model's and calls follow each other closely: {', '.join(shares)}. The costs assume it."
    )


def model_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Model names, the ids sent to providers, and which models are retired; then which keys are set."""
    table = plain_table(("name", "API id"), [[row["name"], _api_id(row)] for row in rows], "ll")
    keys = {row["key"]: "set" if row["key_is_set"] else "not set" for row in rows}
    listed = "\n".join(f"  {name} {state}" for name, state in keys.items())
    return f"{table}\nAny other id is sent to the provider unchanged. Keys:\n{listed}"


def _api_id(row: Mapping[str, Any]) -> str:
    """The id sent for a model; for one that is or will be retired, a second line says when and what to use."""
    api_id = "(same)" if split_name(row["name"]).model == row["api_id"] else str(row["api_id"])
    status = {"present": "", "ending": "ends", "retired": "retired"}[row["status"]]
    state = " ".join(filter(None, [status, row["since"]]))
    if row["successors"]:
        state = f"{state}; use {row['successors'][0]}"
    return f"{api_id}\n({state})" if state else api_id
