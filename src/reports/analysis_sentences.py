"""Comparisons, drift and variation in plain words: one sentence each, for the terminal and for pages.

Differences are in points: hundredths of a score, or questions of 100. The one with the higher value is named first, so
that a sentence needs no minus sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..findings.compare import ALPHA, FEWEST_FOR_P, Compared, Comparison
from ..findings.drift import DECIDING, KEY_CHANGED, QUESTIONS_CHANGED, TargetDrift
from ..findings.pairs import PairedQuestions
from ..findings.sensitivity import Sensitivity
from ..scoring.definitions import MEASURES
from ..stats.bounded import LEAST_UNITS
from ..stats.comparison import Difference
from ..stats.drift import Drift
from ..stats.power import clusters_needed
from ..stats.variance import Components
from ..text.count import counted
from ..text.rounded import percent
from .document import Cell, say, text_cell

ADJUSTED = ", adjusted for the number of comparisons"


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


@dataclass(frozen=True)
class _Ordered:
    """A difference with the side that has the higher value first."""

    higher: tuple[Cell, ...]
    lower: tuple[Cell, ...]
    difference: Difference


def _ordered(first: tuple[Cell, ...], second: tuple[Cell, ...], found: Difference) -> _Ordered:
    if found.mean is None or found.mean >= 0:
        return _Ordered(first, second, found)
    low, high = found.low, found.high
    turned = replace(found, mean=-found.mean, low=None if high is None else -high, high=None if low is None else -low)
    return _Ordered(second, first, turned)


def compared_sentence(one: Comparison, floor: float) -> tuple[Cell, ...]:
    """What a comparison of two targets says; `floor` is the smallest difference that matters."""
    first, second = (text_cell(one.first),), (text_cell(one.second),)
    found = one.difference
    if found.mean is None:
        about = MEASURES[one.measure].in_sentence
        return say(
            text_cell(one.first), " and ", text_cell(one.second), f" cannot be compared on {about}: nothing in common."
        )
    ordered = _ordered(first, second, found)
    if one.verdict == "no meaningful difference":
        return (*_same(one.measure, ordered), Cell(f"; {points(floor)} or more would matter."))
    if one.verdict != "cannot tell":
        return (*_more(one.measure, ordered), Cell("."))
    return (*_unclear(one.measure, ordered), *_why_not(found, one.p_holm, ADJUSTED), *_needed(found, floor))


def _more(measure: str, one: _Ordered) -> tuple[Cell, ...]:
    """`X answered 8 points more of the questions accurately and completely than Y (3 to 13)`."""
    gap, span = points(one.difference.mean or 0.0), Cell(f"({interval_text(one.difference)})", "whole")
    if adverb := MEASURES[measure].adverb:
        told = say(f" answered {gap} more of the questions {adverb} than ")
        return (*one.higher, *told, *one.lower, Cell(" "), span)
    start = say(f"The {MEASURES[measure].in_sentence} of ")
    return (*start, *one.higher, Cell(f" is {gap} higher than that of "), *one.lower, Cell(" "), span)


def _same(measure: str, one: _Ordered) -> tuple[Cell, ...]:
    adverb = MEASURES[measure].adverb
    what = f"{adverb} answered questions" if adverb else MEASURES[measure].in_sentence
    start = (*say("No difference that matters between "), *one.higher, Cell(" and "), *one.lower)
    return (*start, *say(f" in {what}: {points(one.difference.mean or 0.0)} ({interval_text(one.difference)})"))


def _unclear(measure: str, one: _Ordered) -> tuple[Cell, ...]:
    gap = f"{points(one.difference.mean or 0.0)} ({interval_text(one.difference)})"
    if adverb := MEASURES[measure].adverb:
        verb = Cell(f" answers more of the questions {adverb} than ")
        start = (*say("Cannot tell whether "), *one.higher, verb, *one.lower)
    else:
        start = (*say(f"Cannot tell whether the {MEASURES[measure].in_sentence} of "), *one.higher)
        start = (*start, Cell(" is higher than that of "), *one.lower)
    return (*start, *say(f": the difference is {gap}."))


@dataclass(frozen=True)
class ScenariosNeeded:
    number: int
    to: str
    """What for."""


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
        return ScenariosNeeded(math.ceil(math.log(ALPHA / 2) / math.log1p(-floor)), f"exclude {points(floor)}")
    if found.error is None or found.clusters < 2:
        return None
    fewest = clusters_needed(2 * floor, found.error * math.sqrt(found.clusters), alpha=ALPHA)
    return None if fewest is None else ScenariosNeeded(max(fewest, FEWEST_FOR_P), f"detect {points(2 * floor)}")


def _why_not(found: Difference, p: float | None, how: str = "") -> tuple[Cell, ...]:
    """Why an interval that excludes 0 is not enough."""
    if not found.excludes_zero or p is None or p < ALPHA:
        return ()
    if found.clusters < FEWEST_FOR_P:
        have = counted(found.clusters, "scenario")
        return say(f" The test cannot confirm it with {have}; at least {FEWEST_FOR_P} are needed.")
    return say(f" The test does not confirm it: p is {p:.2f}{how}.")


def _needed(found: Difference, floor: float) -> tuple[Cell, ...]:
    needed = scenarios_needed(found, floor)
    if needed is None or needed.number <= found.clusters or (found.excludes_zero and needed.to.startswith("detect")):
        return ()
    have = f"there {'is' if found.clusters == 1 else 'are'} {found.clusters:,}"
    return say(f" About {needed.number:,} scenarios would be needed to {needed.to}; {have}.")


def comparison_sentences(compared: Compared, measures: Sequence[str], floor: float) -> list[tuple[Cell, ...]]:
    """One sentence for each pair of targets and each of these measures."""
    least = max(floor, compared.noise_floor or 0.0)
    wanted = [one for measure in measures for one in compared.comparisons if one.measure == measure]
    return [compared_sentence(one, least) for one in wanted]


def drift_sentence(target: TargetDrift) -> tuple[Cell, ...]:
    """What the comparison of two runs says about one target."""
    name = text_cell(target.target)
    deciding = {measure: target.measures[measure] for measure in reversed(DECIDING)}
    if target.verdict == "no change":
        return (*say("No change: ", name), *_unchanged(target))
    if target.verdict == "drifted":
        moved = [measure for measure, one in deciding.items() if one.verdict == "drifted"]
        return (*say(name, " has changed. "), *_joined(_moved(measure, deciding[measure]) for measure in moved))
    if target.verdict == "no evidence":
        floor = max(one.floor for one in deciding.values())
        told = _joined(_change(measure, one) for measure, one in deciding.items() if one.difference.mean is not None)
        return (*say("No evidence that ", name, f" has changed by {points(floor)} or more. "), *told)
    return (*say("Cannot tell whether ", name, " has changed: "), *_why_unclear(target, deciding))


def _unchanged(target: TargetDrift) -> tuple[Cell, ...]:
    pairs = target.paired["accurate_complete"]
    asked = pairs if pairs.pairs else target.paired["accuracy"]
    what = counted(asked.answers, "answer" if pairs.pairs else "trial")
    same = f" has the same result in both runs for {what} in "
    clusters = max(one.difference.clusters for one in target.measures.values())
    told = say(same, f"{counted(clusters, 'scenario')}.")
    fewest = target.scenarios_needed
    if fewest is None or clusters >= fewest:
        return told
    floor = points(target.measures["accurate_complete"].floor)
    return (*told, *say(f" {fewest:,} scenarios without a change would exclude a change of {floor}."))


def _moved(measure: str, one: Drift) -> tuple[Cell, ...]:
    """`It answers 8 points fewer of the questions accurately and completely than before (3 to 13).`"""
    ordered = _ordered((), (), one.difference)
    up = (one.difference.mean or 0.0) >= 0
    gap, span = points(ordered.difference.mean or 0.0), f"({interval_text(ordered.difference)})"
    if adverb := MEASURES[measure].adverb:
        return say(f"It now answers {gap} {'more' if up else 'fewer'} of the questions {adverb} than before {span}.")
    return say(f"Its {MEASURES[measure].in_sentence} is now {gap} {'higher' if up else 'lower'} than before {span}.")


def _change(measure: str, one: Drift) -> tuple[Cell, ...]:
    found = one.difference
    name = MEASURES[measure].in_sentence
    change = percent(found.mean or 0.0, 0).replace("-", "−")
    return say(f"Change in {name}: {change} points ({interval_text(found)}).")


def _joined(sentences: Iterator[tuple[Cell, ...]]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for sentence in sentences:
        cells += [*([Cell(" ")] if cells else []), *sentence]
    return tuple(cells)


def _why_unclear(target: TargetDrift, deciding: dict[str, Drift]) -> tuple[Cell, ...]:
    if any(fact.endswith((KEY_CHANGED, QUESTIONS_CHANGED)) for fact in target.facts):
        return say("the answer key or the questions changed, so its answers are not measured by the same thing.")
    if any(one.verdict == "drifted" for one in deciding.values()):
        return say(
            "its scores did, but the judges are not shown to be the same (`rejudge` the old run, then --frozen)."
        )
    told: list[Cell] = []
    for measure, one in deciding.items():
        if one.difference.mean is None:
            continue
        told += [Cell("; ")] if told else []
        change = percent(one.difference.mean).replace("-", "−")
        told += say(f"{MEASURES[measure].in_sentence} changed by {change} points ({interval_text(one.difference)})")
        told += _if_at_the_ends(target.paired[measure])
    if not told:
        return say("there is nothing to compare.")
    first = next(one for one in deciding.values() if one.difference.mean is not None)
    return (*told, Cell("."), *_why_not(first.difference, first.difference.p), *_needed(first.difference, first.floor))


def _if_at_the_ends(paired: PairedQuestions) -> tuple[Cell, ...]:
    """What missing answers could make of a change; pairs are (before, after), and a change is after minus before."""
    if paired.lowest is None or paired.highest is None:
        return ()
    span = point_range(-paired.highest, -paired.lowest)
    missing = counted(paired.one_sided + paired.neither, "missing answer")
    return say(f", or {span} with {missing} at the ends of the scale")


def sensitivity_sentence(one: Sensitivity) -> tuple[Cell, ...]:
    """Where the variation of a target's scores comes from, the largest part first."""
    name = MEASURES[one.measure].in_sentence
    parts = [part for part in one.components.parts if part.share is not None]
    if not one.components.n and one.left_out:
        why = f" varies is not known: none of {counted(one.left_out, 'trial')} has a value."
        return say(f"How much the {name} of ", text_cell(one.target), why)
    if one.components.n < 2 or one.components.total is None:
        return say(f"How much the {name} of ", text_cell(one.target), " varies is not known: there are too few trials.")
    if not parts:
        return say(f"The {name} of ", text_cell(one.target), f" is the same in {counted(one.components.n, 'trial')}.")
    ordered = sorted(parts, key=lambda part: -(part.share or 0.0))
    large = [part for part in ordered if (part.share or 0.0) >= 0.005]
    told = [f"{percent(part.share or 0.0)}% is {level_name(part.name, one.components)}" for part in large]
    if small := [level_name(part.name, one.components) for part in ordered if part not in large]:
        told.append(f"and less than 1% is {' or '.join(small)}")
    start = say(f"Of the variation in the {name} of ", text_cell(one.target), f", {', '.join(told)}.")
    return (*start, *_worst(one))


_LEVELS = {
    "scenario": "between scenarios",
    "variant": "between variants of a scenario",
    "wording": "between wordings of a variant",
    "trial": "between trials",
    "judge": "between judges",
}


def level_name(name: str, components: Components) -> str:
    """What a component of variance is between, in words."""
    if name in _LEVELS:
        return _LEVELS[name]
    if "judge" in (part.name for part in components.parts):
        return "left: how single judges differ on single trials"
    return "between repeats and their wordings" if "wording" in components.merged else "between repeats"


def _worst(one: Sensitivity) -> tuple[Cell, ...]:
    several = [case for case in one.worst.scenarios if case.variants > 1]
    gap = math.fsum(case.gap for case in several) / len(several) if several else 0.0
    if gap < 0.0005:
        return ()
    where = counted(len(several), "scenario")
    return say(f" In {where} with several variants, the worst variant is {points(gap)} worse than the mean.")
