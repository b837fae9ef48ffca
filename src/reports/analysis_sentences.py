"""Comparisons, drift and variation in plain words, for the terminal and for pages. The words are in `analysis.md.j2`.

Differences are in points: hundredths of a score, or questions of 100. The one with the higher value is named first, so
that a sentence needs no minus sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ..findings.compare import ALPHA, FEWEST_FOR_P, Comparison
from ..findings.drift import DECIDING, KEY_CHANGED, QUESTIONS_CHANGED, JudgeDrift, TargetDrift
from ..findings.sensitivity import Sensitivity
from ..scoring.definitions import KEY_COVERAGE, LESS_IS_BETTER, MEASURES, READING_ORDER, SCORES
from ..stats.bounded import LEAST_UNITS
from ..stats.comparison import Difference
from ..stats.power import clusters_needed
from ..stats.variance import Components
from ..text.count import counted
from ..text.rounded import percent, rounded
from . import read_sections, template
from .document import NOTHING, Cell, Line, passage_cell
from .score_section import UNDECIDED

SENTENCES = 6
"""Sentences on the first screen."""
SHOWN_REPLY = 1_200
"""Characters of a reply on a page."""


def points(value: float) -> str:
    """`8 points`, with a decimal below 1 point."""
    text = percent(value, 1 if 0 < abs(value) < 0.0095 else 0)
    return f"{text} point" if text == "1" else f"{text} points"


def point_range(low: float, high: float) -> str:
    """`3 to 13`, `−2 to 6`; one decimal if both ends would round to the same."""
    texts = [percent(one) for one in (low, high)]
    if texts[0] == texts[1]:
        texts = [percent(one, 1) for one in (low, high)]
    return " to ".join(text.replace("-", "−") for text in texts)


def interval_text(found: Difference) -> str:
    """The interval of a difference in points, or why there is none."""
    if found.low is not None and found.high is not None:
        return point_range(found.low, found.high)
    return f"no interval: {counted(found.clusters, 'scenario')}, and {LEAST_UNITS} are needed"


def signed_points(value: float) -> str:
    """`+8`, `−3`, `0`; with a decimal if a whole number would hide it."""
    text = percent(abs(value), 1 if 0 < abs(value) < 0.0095 or abs(value) == 0.025 else 0)
    if not float(text):
        return "0"
    return f"{'+' if value > 0 else '−'}{text}"


def p_text(value: float | None) -> str:
    return NOTHING if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


@dataclass(frozen=True)
class _Ordered:
    """A difference with the side that has the higher value first."""

    higher: str
    lower: str
    difference: Difference


def _ordered(found: Difference, first: str = "", second: str = "") -> _Ordered:
    if found.mean is None or found.mean >= 0:
        return _Ordered(first, second, found)
    low, high = found.low, found.high
    turned = replace(found, mean=-found.mean, low=None if high is None else -high, high=None if low is None else -low)
    return _Ordered(second, first, turned)


@dataclass(frozen=True)
class ScenariosNeeded:
    number: int
    to: Literal["exclude", "detect"]
    change: float


def scenarios_needed(found: Difference, floor: float) -> ScenariosNeeded | None:
    """How many scenarios like these would decide, where they cannot tell; None if that is not known.

    If all differences are small, how many it takes until scenarios unlike these are excluded. Otherwise, how many would
    detect twice the floor with 80% power: a difference just as large as the floor is called one in half of all studies
    only, however large they are.
    """
    small = found.low is not None and found.high is not None and -floor < found.low and found.high < floor
    if small or (found.error is None and found.clusters and not found.mean):
        if floor >= 1:
            return None
        return ScenariosNeeded(math.ceil(math.log(ALPHA / 2) / math.log1p(-floor)), "exclude", floor)
    if found.error is None or found.clusters < 2:
        return None
    fewest = clusters_needed(2 * floor, found.error * math.sqrt(found.clusters), alpha=ALPHA)
    return None if fewest is None else ScenariosNeeded(max(fewest, FEWEST_FOR_P), "detect", 2 * floor)


def compared_sentence(one: Comparison, floor: float) -> Line:
    """What a comparison of two targets says; `floor` is the smallest difference that matters."""
    return read_sections.line("analysis", "compared", one, floor)


def drift_sentence(target: TargetDrift) -> Line:
    """What the comparison of two runs says about one target."""
    deciding = [(measure, target.measures[measure]) for measure in reversed(DECIDING)]
    other_questions = any(fact.endswith((KEY_CHANGED, QUESTIONS_CHANGED)) for fact in target.facts)
    return read_sections.line("analysis", "drifted", target, deciding, other_questions)


def frozen_sentence(judge: JudgeDrift | None) -> Line:
    """What judging the old transcripts again showed."""
    return read_sections.line("analysis", "frozen", judge)


def sensitivity_sentence(one: Sensitivity) -> Line:
    """Where the variation of a target's scores comes from, the largest part first."""
    gaps = [case.gap for case in one.worst.scenarios if case.variants > 1]
    return read_sections.line("analysis", "varied", one, len(gaps), math.fsum(gaps) / len(gaps) if gaps else 0.0)


def method_sentence(components: Components) -> Line:
    """How components were estimated."""
    return read_sections.line("analysis", "method", components.method)


def reply_cell(text: str) -> Cell:
    """A reply, cut if it is long."""
    cut = f"{text[:SHOWN_REPLY]} […]" if len(text) > SHOWN_REPLY else text
    return passage_cell([(cut, False)]) if cut else Cell("no reply")


def _ends(low: float | None, high: float | None, turned: bool = False) -> Cell:
    """Where a difference would be if missing answers had been at one end of the scale."""
    if low is None or high is None:
        return Cell(NOTHING)
    return Cell(" to ".join(percent(-one if turned else one).replace("-", "−") for one in (low, high)))


def _as_cell(text: Callable[..., str], sign: str = "") -> Callable[..., Cell]:
    """A dash if there is no number."""
    return lambda value, *more: Cell(NOTHING if value is None else f"{text(value, *more).replace('-', '−')}{sign}")


template.environment("sections").globals.update(
    ALPHA=ALPHA, DECIDING=DECIDING, FEWEST_FOR_P=FEWEST_FOR_P, KEY_COVERAGE=KEY_COVERAGE, LESS_IS_BETTER=LESS_IS_BETTER,
    MEASURES=MEASURES, READING_ORDER=READING_ORDER, SCORES=SCORES, SENTENCES=SENTENCES, UNDECIDED=UNDECIDED, ends=_ends,
    interval=_as_cell(interval_text), of_fakes=lambda names: any(name.startswith("fake:") for name in names),
    ordered=_ordered, p=_as_cell(p_text), percent=_as_cell(percent), point_range=_as_cell(point_range),
    points=_as_cell(points), reply=reply_cell, rounded=_as_cell(rounded), scenarios_needed=scenarios_needed,
    share_of=_as_cell(percent, "%"),
)  # fmt: skip
