"""Aligned tables and lines for a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from ..records.model_name import split_name
from ..text.count import counted
from ..text.escape import plain
from ..text.money import money_text
from ..text.rounded import percent

if TYPE_CHECKING:  # a table of models or of facts needs none of these, and they take long to import
    from ..calls.estimate import EstimateRow
    from ..reporting import CallError, Spending, Summary
    from ..stats.clustered import ClusteredShare

Columns = Sequence[tuple[str, Literal["left", "right"]]]
GAP = "  "
NARROWEST = 8
"""The first column is never made narrower than this."""
ERRORS_SHOWN = 5
"""Kinds of failed calls in the summary of a run."""
ERROR_LINES = 4
"""Lines of one of them."""
_PIECE = re.compile(r"[^:/_.,@-]*[:/_.,@-]+|[^:/_.,@-]+")
"""Part of a long name, with the mark that ends it: compatible: and flaky."""


def plain_table(columns: Columns, rows: Iterable[Sequence[str]], *, caption: str = "", width: int | None = None) -> str:
    """A table no wider than the terminal, or than `width`.

    Cells wrap between words, the widest column first. If that is not enough, long words of the first column break
    after punctuation, and only then anywhere. Line breaks inside a cell are kept.
    """
    limit = width or shutil.get_terminal_size().columns
    cells = [[_lines(cell) for cell in row] for row in ([name for name, _ in columns], *rows)]
    widths = _widths(cells, limit - len(GAP) * (len(columns) - 1))
    lines = [line for row in cells for line in _row(row, columns, widths)]
    return "\n".join([*lines, *([wrapped(caption, limit)] if caption else [])])


def wrapped(text: str, width: int | None = None) -> str:
    """Text in lines no longer than the terminal, or than `width`, if its words allow it. Line breaks are kept."""
    limit = width or shutil.get_terminal_size().columns
    return "\n".join(
        "\n".join(textwrap.wrap(line, max(1, limit), break_long_words=False, break_on_hyphens=False))
        for line in text.split("\n")
    )


def _wrap(line: str, width: int) -> list[str]:
    """A line of a cell, wrapped at spaces; a word that is too long for a line breaks after punctuation if it can."""
    lines = [""]
    for word in line.split():
        gap = " " if lines[-1] else ""
        for piece in _pieces(word, width):
            if lines[-1] and len(lines[-1]) + len(gap) + len(piece) > width:
                lines.append(piece)
            else:
                lines[-1] += gap + piece
            gap = ""
    return lines


def _pieces(word: str, width: int) -> list[str]:
    if len(word) <= width:
        return [word]
    return [
        piece[start : start + width] for piece in _PIECE.findall(word) for start in range(0, len(piece), max(1, width))
    ]


def _lines(cell: str) -> list[str]:
    """The lines of a cell, without control characters."""
    return [plain(line) for line in cell.split("\n")]


def _widths(cells: Sequence[Sequence[Sequence[str]]], limit: int) -> list[int]:
    """How wide each column may be, so that all fit into `limit` if possible."""
    by_column = list(zip(*cells, strict=True))
    widths = [max(len(line) for lines in column for line in lines) for column in by_column]
    words = [
        max(len(word) for lines in column for line in lines for word in (*line.split(), "")) for column in by_column
    ]
    while sum(widths) > limit:
        shrinkable = [place for place, width in enumerate(widths) if width > words[place]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda place: widths[place])] -= 1
    over = sum(widths) - limit
    return [max(widths[0] - over, min(NARROWEST, widths[0])), *widths[1:]] if over > 0 else widths


def _row(cells: Sequence[Sequence[str]], columns: Columns, widths: Sequence[int]) -> list[str]:
    columns_of_lines = [
        [part for line in lines for part in _wrap(line, width)] for lines, width in zip(cells, widths, strict=True)
    ]
    return [
        GAP.join(
            part.rjust(width) if justify == "right" else part.ljust(width)
            for part, width, (_, justify) in zip(parts, widths, columns, strict=True)
        ).rstrip()
        for parts in zip_longest(*columns_of_lines, fillvalue="")
    ]


def summary_table(summary: Summary, width: int | None = None) -> str:
    """The table printed at the end of a run."""
    from ..reporting import coverage_sentence, estimate_text
    from ..scoring.definitions import MEASURES, SCORES
    from ..stats.bounded import LEAST_UNITS

    scores = [MEASURES[name].lines for name in SCORES]
    names = (scores[0], "key\ncover-\nage", *scores[1:], "refu-\nsals", "fabri-\ncated")
    rows = []
    for target, tally in summary.by_target.items():
        accuracy, *others = (estimate_text(tally.estimate(name), two_lines=True) for name in SCORES)
        rows.append(
            [
                f"{target}\n{tally.outcomes['scored']}/{tally.trials} scored",
                accuracy,
                _coverage_text(tally.coverage),
                *others,
                str(tally.refusals),
                str(tally.fabricated),
            ]
        )
    caption = (
        f"Mean over scenarios, then its 95% interval, for which {LEAST_UNITS} scenarios are needed. "
        f"{coverage_sentence(summary.coverage)}"
    )
    return plain_table([("target", "left"), *((name, "right") for name in names)], rows, caption=caption, width=width)


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
    return plain_table([("target", "left"), *((name, "right") for name in names)], rows, caption=caption, width=width)


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
    columns: Columns = [("calls\nlost", "right"), ("tried\nagain", "right"), ("reason", "left")]
    top = errors[:ERRORS_SHOWN]
    counts = [(f"{error.lost:,}", f"{error.tried_again:,}") for error in top]
    taken = sum(max(len("calls"), *map(len, column)) + len(GAP) for column in zip(*counts, strict=True))
    rows = []
    for error, numbers in zip(top, counts, strict=True):
        reason = plain(f"{error.role} {error.model}: {kind_text(error)}. {error.message}")
        lines = textwrap.wrap(reason, max(20, limit - taken), max_lines=ERROR_LINES, placeholder=" …")
        rows.append([*numbers, "\n".join(lines)])
    caption = "Lost: no usable answer, so data is missing. Tried again, or to be on resume: cost only time."
    table = plain_table(columns, rows, caption=caption, width=limit)
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
    names: Columns = [
        ("role", "left"),
        ("model", "left"),
        ("for target", "left"),
        ("calls", "right"),
        ("tokens in", "right"),
        ("tokens out", "right"),
        ("cost", "right"),
    ]
    table = plain_table(names, cells)
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
    table = plain_table([("name", "left"), ("API id", "left")], [[row["name"], _api_id(row)] for row in rows])
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
