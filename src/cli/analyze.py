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
from ..findings.analysis.compare_judges import JudgesCompared
from ..findings.analysis.power import planned_design
from ..text.escape import plain_lines
from .analysis_text import comparison_text, drift_text, sensitivity_text
from .judges_text import judges_json, judges_text
from .power_text import power_text

DRIFTED, CANNOT_TELL = 7, 8
"""Exit codes of `drift`, for scheduled use; 0 is no change, or no evidence of drift."""


def compare(arguments: argparse.Namespace) -> int:
    found = findings.compare(
        arguments.run, by=arguments.by, measures=arguments.measure, floor=arguments.floor, html=arguments.html
    )
    _say_written(arguments.html)
    if isinstance(found, JudgesCompared):
        return _print(judges_json(found) if arguments.json else judges_text(found, arguments.show))
    return _print(asdict(found) if arguments.json else comparison_text(found, arguments.floor))


def drift(arguments: argparse.Namespace) -> int:
    found = findings.drift(
        arguments.old, arguments.new, frozen=arguments.frozen, floor=arguments.floor, html=arguments.html
    )
    _say_written(arguments.html)
    _print(asdict(found) if arguments.json else drift_text(found, arguments.show))
    return {"drifted": DRIFTED, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def sensitivity(arguments: argparse.Namespace) -> int:
    found = findings.sensitivity(arguments.run, arguments.measure, html=arguments.html)
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
    written = findings.report(
        arguments.run,
        arguments.out,
        judge_check=arguments.judge_check,
        checklist=arguments.checklist,
        evidence=arguments.evidence,
    )
    return _print(_paths(written))


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
