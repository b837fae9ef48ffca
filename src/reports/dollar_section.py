"""What wrong answers could cost the person who asked: a table for each class, the errors, and their CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TextIO

from ..findings.dollars import CostlyError, spread
from ..records.base import SEVERITIES, severity_rank
from ..schemas import CostClass, TrialResult
from ..store.projection import projection
from ..text.count import counted
from ..text.money import dollars_text
from .csv import safe
from .document import Block, Bullets, Cell, Column, Exhibit, Paragraph, Section, Table, count_cell, text_cell, words
from .exhibits import claim_title, contradicted, in_reply
from .series import Run, Runs, Series

DOLLARS_CSV = "dollars.csv"
SHOWN = 4
"""Errors of each class that a report shows in full, for each run; the CSV file has all of them."""
ABOUT = (
    "Some facts of the answer keys say what a person would lose by acting on the opposite. The amounts are first-order "
    "ones: one person, one error, today’s prices, nothing discounted, for the number of years shown. They do not enter "
    "accuracy, safety risk or study codes. Amounts of different classes or scenarios are never added up. A median "
    "describes only these errors on these questions."
)
CLASSES: dict[CostClass, str] = {
    "priced": "Priced: dollars that follow from the rules of Medicare.",
    "exposure": "Exposure: a bill that may come, at most or for an assumed case. It is not a forecast.",
    "unpriced": "Unpriced: no amount can be defended, so these errors are only counted, by severity.",
}
COUNTED = (
    "An error is a claim that contradicts a fact of the scenario’s own key that has a cost, unless the claim sounds "
    "uncertain (low confidence). Background facts never count, because the person did not ask about them. The same "
    "loss counts once in a trial. Some amounts depend on the amount that the answer stated; if it states none of its "
    "own, or several, no amount can be computed. An error that costs nothing counts as “no loss”, and the median and "
    "the percentile leave it out."
)
HEADER = (
    "run", "trial_id", "scenario_id", "variant", "target", "claim_id", "fact_id", "library_fact", "class", "severity",
    "claim", "quotes", "fact", "formula", "stated", "years", "dollars", "note",
)  # fmt: skip


def dollar_sections(runs: Runs) -> Iterator[Section]:
    """The section, if a fact of a key says what an error costs."""
    if not runs.have_costs:
        return
    series = [one for one in runs.series if one.run.found.dollars.costs]
    blocks: list[Block] = [
        Paragraph(words(ABOUT)),
        Bullets(tuple(words(text) for text in CLASSES.values())),
        Paragraph(words(COUNTED)),
    ]
    if any(run.found.dollars.errors for run in runs.runs):
        blocks += [_spread_table(runs, series, "priced"), _spread_table(runs, series, "exposure")]
        blocks += [_unpriced_table(runs, series), *_shown(runs)]
    else:
        blocks.append(Paragraph(words("None: no claim contradicts a fact that has a cost.")))
    yield Section(words("What wrong answers could cost"), tuple(blocks))


def _spread_table(runs: Runs, series: Sequence[Series], cost_class: CostClass) -> Table:
    """One row for each target and number of years; beyond one year only where there is an error."""
    horizons = sorted({1, *(year for run in runs.runs for year in _horizon(run, cost_class))})
    rows: list[tuple[Cell, ...]] = []
    for each in series:
        errors = each.run.found.dollars.of(each.target, cost_class)
        for years in horizons:
            found = spread(errors, years)
            if years > 1 and not found.errors:
                continue
            amounts = (Cell("–" if one is None else dollars_text(one)) for one in (found.median, found.high))
            counts = (count_cell(n) for n in (years, found.errors, found.trials, found.with_dollars, found.no_loss))
            rows.append((*runs.lead(each), *counts, *amounts))
    columns = (
        *runs.lead_columns(),
        Column("years"),
        Column("errors"),
        Column("in trials"),
        Column("with an amount"),
        Column("no loss"),
        Column("median", "other"),
        Column("90th percentile", "other"),
    )
    later = " Rows for more than 1 year have only what is lost every year." if len(horizons) > 1 else ""
    return Table(f"{cost_class.capitalize()}: dollars per error.{later}", columns, tuple(rows))


def _horizon(run: Run, cost_class: CostClass) -> Iterator[int]:
    for error in run.found.dollars.errors:
        if error.cost_class == cost_class:
            yield from error.horizon


def _unpriced_table(runs: Runs, series: Sequence[Series]) -> Table:
    severities = [name for name in reversed(SEVERITIES) if name != "none"]
    rows = []
    for one in series:
        errors = one.run.found.dollars.of(one.target, "unpriced")
        by_severity = (count_cell(sum(error.severity == name for error in errors)) for name in severities)
        rows.append(
            (*runs.lead(one), count_cell(len(errors)), count_cell(len({e.trial_id for e in errors})), *by_severity)
        )
    columns = (*runs.lead_columns(), Column("errors"), Column("in trials"), *(Column(name) for name in severities))
    return Table("Unpriced: errors without an amount, by severity.", columns, tuple(rows))


def _shown(runs: Runs) -> Iterator[Block]:
    """Some errors of each class in full: the largest amounts first, and each fact once before any twice."""
    total = sum(len(run.found.dollars.errors) for run in runs.runs)
    chosen = [(run, error) for run in runs.runs for name in CLASSES for error in _largest(run, name)]
    note = f"{len(chosen):,} of {counted(total, 'error')} shown: those with the largest amounts in each class."
    rest = f" {DOLLARS_CSV} has all of them." if len(chosen) < total else ""
    yield Paragraph(words(f"{note}{rest}"))
    yield from (_exhibit(runs, run, error) for run, error in chosen)


def _largest(run: Run, cost_class: CostClass) -> list[CostlyError]:
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


def _exhibit(runs: Runs, run: Run, error: CostlyError) -> Exhibit:
    trial = run.found.trial(error.trial_id)
    claim = next(one for one in trial.final_claims if one.claim_id == error.claim_id)
    cost = error.fact.cost_if_wrong
    assert cost is not None
    entries = [
        ("Target", (text_cell(trial.target.name),)),
        *in_reply(trial, claim),
        ("Claim", (text_cell(claim.text),)),
        *(("Contradicts", cells) for cells in contradicted(run.found, trial, [error.fact.fact_id])),
        ("Class", words(f"{error.cost_class}, severity {error.severity}")),
        ("Cost", tuple(_cost(error))),
        *([("Note", (text_cell(cost.note),))] if cost.note else []),
    ]
    return Exhibit(claim_title(runs, run, trial, error.claim_id), tuple(entries))


def _cost(error: CostlyError) -> Iterator[Cell]:
    """The formula in numbers, and what it gives."""
    if error.formula is None:
        yield Cell("no amount can be defended")
        return
    computed = not re.fullmatch(r"[0-9.]+", error.formula)
    if computed or not error.amounts:
        yield text_cell(_arithmetic(error.formula))
    if not error.amounts:
        yield Cell(": no amount can be computed")
        if error.needs_stated and error.stated is None:
            yield Cell(", because the claim states no single amount of its own")
    for place, (years, amount) in enumerate(error.amounts):
        if place or computed:
            yield Cell(", " if place else " = ")
        yield Cell(dollars_text(amount))
        if len(error.amounts) > 1 or years > 1:
            yield Cell(f" in {counted(years, 'year')}")


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


def _lines(run: Run, trial: TrialResult, error: CostlyError) -> Iterator[tuple[str, ...]]:
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
            " / ".join(_quotes(trial, error)),
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
            yield from (f"“{' '.join(reply[span.start : span.end].split())}”" for span in claim.quote_spans)
