"""Pages of `compare`, `drift` and `sensitivity`: the answer first, then a chart, tables, methods and notices.

They have the frame and the look of the report; their words are in templates of these names. `write_page` never replaces
a file that is not such a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..findings.compare import Compared, best_first
from ..findings.compare_judges import JudgesCompared
from ..findings.drift import Drifts
from ..findings.sensitivity import Sensitivities, Sensitivity
from ..scoring.definitions import MEASURES, READING_ORDER, SHARES
from ..stats.comparison import Difference
from ..stats.drift import QuestionDrift
from ..stats.variants import RankChange, WorstVariant
from ..text.rounded import percent
from . import read_sections
from .analysis_sentences import (
    compared_sentence,
    drift_sentence,
    interval_text,
    point_range,
    sensitivity_sentence,
    signed_points,
)
from .charts import ForestChart, ForestRow, Mark
from .document import ChartBlock, Contents, Paragraph, shown
from .drawing import Group, Panel, Tick
from .first_section import OF_HUNDRED
from .html import GENERATOR, html
from .report_folder import require_own, write_own

CHART_ROWS = 24
SHOWN = 200
"""Changed claims, and changed codes, on the page of two judgings."""
LEAST_GAP = 0.0005
"""A smaller gap would be shown as 0."""
_MARK = f'<meta name="generator" content="{GENERATOR}">'
_STEPS = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
"""Ends of the scale of differences."""
_LEVELS = {
    "scenario": "Between scenarios",
    "variant": "Between variants",
    "wording": "Between wordings",
    "residual": "Between repeats",
}


def require_page(path: Path) -> None:
    """Refuse a place that a page cannot be written to, before anything is computed. Errors as of `require_own`."""
    require_own(path, _MARK, "page")


def write_page(page: Contents, path: Path) -> Path:
    """Write a page to a file; only an earlier page of ours is replaced. Errors as of `require_own`."""
    require_page(path)
    return write_own(path, html(page))


def compare_page(found: Compared, *, floor: float) -> Contents:
    """Which target is better; `floor` is the smallest difference that matters."""
    measures = [name for name in READING_ORDER if name in found.measures]
    least = max(floor, found.noise_floor or 0.0)
    sentences = {
        name: [compared_sentence(one, least) for one in found.comparisons if one.measure == name] for name in measures
    }
    return read_sections.contents(
        "compare",
        found=found,
        floor=floor,
        measures=measures,
        sentences=sentences,
        first=[one for listed in sentences.values() for one in listed],
        chart=_compare_chart(found, measures[:2]),
        best_first=best_first,
    )


def compare_methods(found: Compared, floor: float) -> list[str]:
    """How it was done, for the terminal; the page has it, too."""
    blocks = read_sections.blocks("analysis", "compare_methods", found=found, floor=floor)
    return [shown(block.parts) for block in blocks if isinstance(block, Paragraph)]


def _compare_chart(found: Compared, measures: Sequence[str]) -> list[ChartBlock]:
    """The first measures side by side, one row for each pair of targets."""
    by_pair = {(one.measure, one.first, one.second): one.difference for one in found.comparisons}
    rows = [
        (f"{first}\nminus {second}", [by_pair[measure, first, second] for measure in measures])
        for first, second in dict.fromkeys((one.first, one.second) for one in found.comparisons)
    ]
    beside = "Dots are differences, the first target minus the second; lines are 95% intervals."
    title = "Differences between targets"
    return _difference_chart("differences", title, measures, rows, beside=beside, of="pairs of targets")


def judges_page(found: JudgesCompared, *, first: str, second: str) -> Contents:
    """Which labels and codes changed between two judgings of the same replies; `first` and `second` name the runs."""
    return read_sections.contents(
        "judgings",
        found=found,
        first=first,
        second=second,
        moves=sorted(found.moves.items(), key=lambda move: (-move[1], str(move[0]))),
        codes=sorted(found.codes_changed.items(), key=lambda change: (-change[1], str(change[0]))),
        SHOWN=SHOWN,
    )


def drift_page(found: Drifts, *, old: str, new: str) -> Contents:
    """Whether the answers changed between two runs of the same study; `old` and `new` name the runs."""
    return read_sections.contents(
        "drift",
        found=found,
        old=old,
        new=new,
        sentences={target.target: drift_sentence(target) for target in found.targets},
        chart=_drift_chart(found),
        changed_questions=changed_questions,
    )


def _drift_chart(found: Drifts) -> list[ChartBlock]:
    of_each = [(one.target, [one.measures[name].difference for name in SHARES]) for one in found.targets]
    rows = [(target, gaps) for target, gaps in of_each if any(one.mean is not None for one in gaps)]
    beside = "Dots are changes, new minus old; lines are 95% intervals."
    title = "Changes from the old run to the new"
    return _difference_chart("changes", title, SHARES, rows, beside=beside, of="targets")


def changed_questions(questions: Sequence[QuestionDrift]) -> list[QuestionDrift]:
    """Questions whose code changed, those with the most changes first."""
    moved = [one for one in questions if one.better or one.worse]
    return sorted(moved, key=lambda one: (-(one.better + one.worse), one.question))


def _difference_chart(
    name: str,
    title: str,
    measures: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Difference]]],
    *,
    beside: str,
    of: str,
) -> list[ChartBlock]:
    """A panel per measure and a row per name of `rows`, with a difference for each panel."""
    if not rows or not measures:
        return []
    panels = tuple(
        difference_panel(f"{MEASURES[measure].caption}, points", (gaps[place] for _, gaps in rows))
        for place, measure in enumerate(measures)
    )
    drawn = tuple(ForestRow(label, tuple(map(difference_mark, gaps))) for label, gaps in rows[:CHART_ROWS])
    cut = f" {CHART_ROWS} of {len(rows)} {of} shown." if len(rows) > CHART_ROWS else ""
    return [ChartBlock(ForestChart(name, title, panels, (Group("", drawn),)), f"{beside}{cut}")]


def difference_panel(title: str, found: Iterable[Difference]) -> Panel:
    """A scale in points that is as long to the left as to the right, with a line at no difference."""
    ends = [abs(end) for one in found for end in (one.mean, one.low, one.high) if end is not None]
    reach = next((step for step in _STEPS if step >= max(ends, default=0.0)), 1.0)
    ticks = tuple(Tick(part * reach, signed_points(part * reach)) for part in (-1.0, -0.5, 0.0, 0.5, 1.0))
    return Panel(title, ticks, reference=0.0)


def difference_mark(found: Difference) -> Mark:
    if found.mean is None:
        return Mark(None, None, None, "nothing to compare")
    value = signed_points(found.mean)
    if found.low is None or found.high is None:
        return Mark(found.mean, None, None, value, interval_text(found).split(",")[0])
    # A comma takes less room than a word.
    span = point_range(found.low, found.high).replace(" to ", ", ")
    return Mark(found.mean, found.low, found.high, f"{value} ({span})")


def sensitivity_page(found: Sensitivities) -> Contents:
    """How much scores vary with scenario, variant, wording, repeats and judges."""
    by_method: dict[str, list[str]] = {}
    for one in found.targets:
        by_method.setdefault(one.components.method, []).append(one.target)
    return read_sections.contents(
        "sensitivity",
        found=found,
        measure=MEASURES[found.targets[0].measure if found.targets else "accuracy"],
        sentences=list(map(sensitivity_sentence, found.targets)),
        chart=_variance_chart(found),
        by_method=by_method,
        worst_first=worst_first,
        swapped=swapped,
    )


def _variance_chart(found: Sensitivities) -> list[ChartBlock]:
    each = [(one.target, [part for part in one.components.parts if part.share is not None]) for one in found.targets]
    known = [(target, parts) for target, parts in each if parts]
    groups = tuple(
        Group(
            target,
            tuple(
                ForestRow(
                    _LEVELS.get(part.name, part.name), (Mark(part.share, None, None, f"{percent(part.share or 0.0)}%"),)
                )
                for part in parts
            ),
        )
        for target, parts in known[: CHART_ROWS // 4]
    )
    cut = f" {len(groups)} of {len(known)} targets shown." if len(groups) < len(known) else ""
    panel = Panel("Part of the variance, %", OF_HUNDRED)
    chart = ForestChart("variance", "Where the variation comes from", (panel,), groups)
    return [ChartBlock(chart, f"The parts of one target sum to 100%.{cut}")] if groups else []


def worst_first(one: Sensitivity) -> list[WorstVariant]:
    """Scenarios whose worst variant differs from their mean, the largest gap first."""
    cases = [case for case in one.worst.scenarios if case.gap >= LEAST_GAP]
    return sorted(cases, key=lambda case: (-case.gap, case.scenario))


def swapped(change: RankChange) -> str:
    """The pairs of targets that swap places; empty if none do."""
    return "; ".join(f"{a} and {b}" for a, b in change.swapped)
