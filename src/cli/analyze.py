"""Commands on finished runs: report, compare, drift, sensitivity, power, export."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..api import findings
from ..errors import ExportError
from ..findings.compare import FLOOR
from ..findings.compare_judges import JudgesCompared
from ..findings.power import (
    IF_UNKNOWN,
    Needed,
    Pilot,
    PowerDesign,
    needed,
    planned_design,
    power_by_repeats,
    power_reached,
)
from ..text.count import counted
from ..text.escape import plain_lines
from ..text.rounded import rounded
from . import tables
from .analysis_text import comparison_text, drift_text, judges_json, judges_text, sensitivity_text
from .options import own

DRIFTED, CANNOT_TELL = 7, 8
"""Exit codes of `drift`, for scheduled use; 0 is no change, or no evidence of drift."""


def compare(arguments: argparse.Namespace) -> int:
    found = findings.compare(**own(arguments, without="show json"))
    _say_written(arguments.html)
    if isinstance(found, JudgesCompared):
        return _print(judges_json(found) if arguments.json else judges_text(found, arguments.show))
    return _print(asdict(found) if arguments.json else comparison_text(found, arguments.floor))


def drift(arguments: argparse.Namespace) -> int:
    found = findings.drift(**own(arguments, without="show json"))
    _say_written(arguments.html)
    _print(asdict(found) if arguments.json else drift_text(found, arguments.show))
    return {"drifted": DRIFTED, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def sensitivity(arguments: argparse.Namespace) -> int:
    found = findings.sensitivity(**own(arguments, without="json"))
    _say_written(arguments.html)
    return _print(asdict(found) if arguments.json else sensitivity_text(found))


def power(arguments: argparse.Namespace) -> int:
    design = planned_design(
        arguments.pilot,
        arguments.sd,
        arguments.measure,
        alpha=arguments.alpha,
        power=arguments.power,
        clusters=arguments.clusters,
        icc=arguments.icc,
    )
    return _print(
        power_text(
            design, arguments.difference, measure=arguments.measure, pilot=arguments.pilot, pairs=arguments.trials
        )
    )


def export(arguments: argparse.Namespace) -> int:
    formats = [name.strip() for name in arguments.to.split(",") if name.strip()]
    try:
        return _print(_paths(findings.export(arguments.run, formats, arguments.out)))
    except ExportError as error:
        _print(_paths(error.written))
        raise


def report(arguments: argparse.Namespace) -> int:
    return _print(_paths(findings.report(**own(arguments))))


def _say_written(page: Path | None) -> None:
    """On stderr, so that JSON on stdout stays JSON."""
    if page:
        print(f"Page written: {page}", file=sys.stderr)


def _print(found: dict[str, Any] | Iterator[str]) -> int:
    """Print a JSON document, or lines of text."""
    if isinstance(found, dict):
        print(json.dumps(found, indent=2, ensure_ascii=False, default=str))
    else:
        print(plain_lines("\n".join(found)))
    return 0


def _paths(paths: Sequence[Path]) -> Iterator[str]:
    return map(str, paths)


NOT_ENOUGH = "no number"
MORE_SCENARIOS = (
    "No number: with so few scenarios, so alike within, more repeats do not help. Add scenarios, or give another "
    "--clusters or --icc."
)


def power_text(
    design: PowerDesign, difference: float, *, measure: str, pilot: Path | None, pairs: int | None
) -> Iterator[str]:
    """What a difference needs, or, for a number of pairs, what it detects."""
    if design.pilot:
        yield f"From {pilot}:"
        yield tables.wrapped(_pilot_text(design.pilot, measure))
    if pairs:
        yield _reached_text(design, pairs, difference)
        return
    found = needed(design, difference)
    yield _table(design, found)
    if any(one.pairs is None for one in found):
        yield tables.wrapped(MORE_SCENARIOS)
    yield from _repeats_text(design, difference)
    yield tables.wrapped(_method_text(design))


def _pilot_text(pilot: Pilot, measure: str) -> str:
    where = f"{counted(pilot.pairs, 'pair')} of trials in {counted(pilot.scenarios, 'scenario')}"
    if pilot.between == "repeats":
        return (
            f"{where}, repeats of the only target. Their differences in {measure} have a standard deviation of "
            f"{rounded(pilot.sd, 3)}. Repeats differ by chance alone. Two targets also differ more in some scenarios "
            "than in others, which this pilot cannot show: the numbers below are the least that is needed."
        )
    if pilot.count_as < pilot.scenarios:
        where += f" (which count as {rounded(pilot.count_as, 0)}, because some have many more questions than others)"
    unknown = "there is only one scenario" if pilot.scenarios == 1 else "no scenario has two pairs"
    told = (
        f"{unknown}, so the ICC is not known and taken as {IF_UNKNOWN:g}"
        if pilot.icc is None
        else f"the ICC (how alike differences are within a scenario, from 0 to 1) is {rounded(pilot.icc)}, by REML"
    )
    return (
        f"{where}, of two targets each. Differences in {measure}, centered on the mean of their two targets, have a "
        f"standard deviation of {rounded(pilot.sd, 3)}; {told}."
    )


def _table(design: PowerDesign, found: list[Needed]) -> str:
    if design.clusters is None:
        headings = ["pairs of trials needed"]
        counts = [[one.pairs] for one in found]
    elif design.per_scenario == 1:
        headings = ["scenarios needed, 1 pair each"]
        counts = [[one.scenarios_once] for one in found]
    else:
        headings = ["scenarios needed, 1 pair each", f"scenarios needed, {design.per_scenario} pairs each"]
        counts = [[one.scenarios_once, one.scenarios] for one in found]
    if design.clusters is not None:
        headings.append(f"or pairs in {counted(design.clusters, 'scenario')}")
        counts = [[*row, one.pairs] for row, one in zip(counts, found, strict=True)]
    rows = [[f"{one.difference:.2f}", *map(_count, row)] for one, row in zip(found, counts, strict=True)]
    return tables.plain_table(("difference", *headings), rows, "r")


def _count(value: int | None) -> str:
    return NOT_ENOUGH if value is None else f"{value:,}"


def _reached_text(design: PowerDesign, pairs: int, difference: float) -> str:
    reached = power_reached(design, pairs, difference)
    told = counted(pairs, "pair detects", "pairs detect")
    if reached is None:
        return f"{told} nothing: the power is unknown with fewer than two scenarios."
    where = f" in {counted(min(design.clusters, pairs), 'scenario')}" if design.clusters else ""
    return f"{told} a difference of {difference}{where} with power {rounded(reached)}."


def _repeats_text(design: PowerDesign, difference: float) -> Iterator[str]:
    steps = power_by_repeats(design, difference)
    if not steps or not design.icc or design.clusters is None:
        return
    told = [
        f"{rounded(step.power)} with {step.per_scenario}" if step.per_scenario else f"{rounded(step.power)} at most"
        for step in steps
        if step.power is not None
    ]
    yield tables.wrapped(
        f"Repeats in the same scenarios stop helping. In {counted(design.clusters, 'scenario')}, the power for a "
        f"difference of {difference:.2f} is {', '.join(told[:-1])} pairs each, and {told[-1]}, with any number of them."
    )


def _method_text(design: PowerDesign) -> str:
    test = (
        f"Paired t test, two-sided alpha {design.alpha:g}, power {design.power:g}. compare also needs a mean "
        f"difference of at least its floor ({FLOOR:g}), so it calls a true difference as large as the floor in half of "
        "all studies."
    )
    if design.clusters is None:
        return f"{test} Pairs count as independent, so each needs its own scenario (else: --clusters and --icc)."
    where = f"{counted(design.clusters, 'scenario')}, ICC {rounded(design.icc)}"
    source = "; --clusters and --icc override the pilot's" if design.pilot else ""
    return f"{test} Scenarios are the independent units: {where}{source}."
