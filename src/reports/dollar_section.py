"""What wrong answers could cost the person who asked: a table for each class, the errors, and their CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TextIO, get_args

from ..findings.dollars import CostlyError, spread
from ..records.base import SEVERITIES, severity_rank
from ..schemas import CostClass, TrialResult
from ..store.projection import projection
from ..text.money import dollars_text
from .csv import quoted, safe
from .document import Section
from .exhibits import case_section
from .series import ReportedRun, Runs

DOLLARS_CSV = "dollars.csv"
SHOWN = 4
"""Errors of each class that a report shows in full, for each run; the CSV file has all of them."""
HEADER = (
    "run", "trial_id", "scenario_id", "variant", "target", "claim_id", "fact_id", "library_fact", "class", "severity",
    "claim", "quotes", "fact", "formula", "stated", "years", "dollars", "note",
)  # fmt: skip


def dollar_sections(runs: Runs) -> Iterator[Section]:
    """The section, if a fact of a key says what an error costs."""
    if not runs.have_costs:
        return
    errors = [error for run in runs.runs for error in run.found.dollars.errors]
    yield case_section(
        "dollars",
        runs,
        with_costs=[one for one in runs.series if one.run.found.dollars.costs],
        total=len(errors),
        spreads={name: _horizons(errors, name) for name in ("priced", "exposure")},
        spread=spread,
        severities=[name for name in reversed(SEVERITIES) if name != "none"],
        cases=[
            (run, error, trial, next(claim for claim in trial.final_claims if claim.claim_id == error.claim_id))
            for run in runs.runs
            for name in get_args(CostClass)
            for error in _largest(run, name)
            for trial in [run.found.trial(error.trial_id)]
        ],
        file=DOLLARS_CSV,
        is_number=re.compile(r"[0-9.]+").fullmatch,
        arithmetic=_arithmetic,
        dollars_text=dollars_text,
    )


def _horizons(errors: Sequence[CostlyError], cost_class: str) -> list[int]:
    """For how many years there are amounts; beyond one year only where there is an error."""
    return sorted({1, *(years for error in errors if error.cost_class == cost_class for years in error.horizon)})


def _largest(run: ReportedRun, cost_class: CostClass) -> list[CostlyError]:
    errors = [error for error in run.found.dollars.errors if error.cost_class == cost_class]
    errors.sort(key=lambda error: (-_first_amount(error), -severity_rank(error.severity)))
    seen: dict[str, int] = {}
    order: list[tuple[int, CostlyError]] = []
    for error in errors:
        name = error.fact.statement
        order.append((seen.get(name, 0), error))
        seen[name] = seen.get(name, 0) + 1
    return [error for _, error in sorted(order, key=lambda one: one[0])[:SHOWN]]


def _first_amount(error: CostlyError) -> Decimal:
    return error.amounts[0].dollars if error.amounts else Decimal(-1)


def _arithmetic(formula: str) -> str:
    """A filled formula as people write it: `abs(150 - 202.90) * 12 * 1` as `|150 − 202.90| × 12`."""
    text = re.sub(r"\babs\(([^()]*)\)", r"|\1|", formula)
    text = re.sub(r"\bdime\(([^()]*)\)", r"(\1, rounded to 10 cents)", text)
    return text.removesuffix(" * 1").replace(" * ", " × ").replace(" - ", " − ")


_decode = projection(
    TrialResult,
    {
        "": "trial_id scenario_id variant",
        "target": "name",
        "conversation": "turn_id reply",
        "claims": "claim_id quote_spans",
        "final_claims": "claim_id text",
    },
)


def write_dollars(runs: Runs, file: TextIO) -> None:
    """One line per error and number of years, with the claim's words and the fact; each trial is read once."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    for run in runs.runs:
        by_trial: dict[str, list[CostlyError]] = {}
        for error in run.found.dollars.errors:
            by_trial.setdefault(error.trial_id, []).append(error)
        for trial in run.found.decoded(by_trial, _decode):
            for error in by_trial[trial.trial_id]:
                writer.writerows([safe(cell) for cell in cells] for cells in _lines(run, trial, error))


def _lines(run: ReportedRun, trial: TrialResult, error: CostlyError) -> Iterator[tuple[str, ...]]:
    claim = next(one for one in trial.final_claims if one.claim_id == error.claim_id)
    cost = error.fact.cost_if_wrong
    for years in error.horizon:
        amount = error.dollars(years)
        yield (
            run.name,
            trial.trial_id,
            trial.scenario_id,
            trial.variant or "",
            trial.target.name,
            error.claim_id,
            error.fact.fact_id,
            error.fact.library or "",
            error.cost_class,
            error.severity,
            claim.text,
            quoted(_quotes(trial, error)),
            error.fact.statement,
            error.formula or "",
            "" if error.stated is None else str(error.stated),
            str(years),
            "" if amount is None else str(amount),
            cost.note if cost else "",
        )


def _quotes(trial: TrialResult, error: CostlyError) -> Iterator[str]:
    reply = next((one.reply or "" for one in trial.conversation if one.turn_id == error.turn_id), "")
    for claim in trial.claims:
        if claim.claim_id == error.claim_id:
            yield from (reply[span.start : span.end] for span in claim.quote_spans)
