"""What a run knows for the reporting checklists about its judges, its results and how stable they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..findings.cost import Spending
from ..findings.estimates import Estimated, estimate, key_coverage
from ..findings.judge_agreement import Judging
from ..findings.read_run import Findings
from ..findings.sensitivity import stability
from ..scoring.definitions import KEY_COVERAGE, MEASURES, READING_ORDER, SCORES, SHARES
from ..stats.agreement import Agreement
from ..text.count import counted
from ..text.escape import inert
from ..text.money import money_text
from ..text.rounded import percent, rounded
from ..trials.row import LABELS, OUTCOMES, Row
from .document import estimate_text, share_text
from .methods import DIFFERENCES, INTERVALS, MISSING_RULE
from .score_section import OUTCOME_NAMES, knows_tampered
from .series import Run, Series

Value = str | list[str] | None
"""None leaves out every line with this placeholder, a list repeats the line; an empty text just keeps it."""


def judge_facts(run: Run) -> dict[str, Value]:
    found, plan = run.found, run.found.manifest.plan
    assert run.judging is not None
    rejected, reviews = found.counts["trial.rejected_claims"], sum(row.review for row in found.rows)
    return {
        "verifiers": f"{counted(len(plan.verifiers), 'verifier')}: {inert(', '.join(plan.verifiers))}",
        "extractor": inert(plan.extractor),
        "ties": f"were settled by {inert(plan.adjudicator)}" if plan.adjudicator else "stay open for a person",
        "claims": counted(run.judging.claims, "claim"),
        "agreement": [f"{name}: {_agreement(value)}" for name, value in run.judging.coefficients.items()],
        "noise": _noise(run.judging),
        "judge_failures": counted(sum(found.judge_failures.values()), "time"),
        "rejected_claims": f"{counted(rejected, 'claim')} {was(rejected)}",
        "reviews": f"{counted(reviews, 'trial')} {was(reviews)}",
        **_check_facts(run.judging),
    }


def _noise(measured: Judging) -> list[str]:
    """One line per judge; that no label changed is a count, because nothing measured is exactly 0%."""
    return [
        f"{judge.judge} ({inert(judge.model)}), asked again, changed its label: {judge.changed.count} of "
        f"{counted(judge.changed.n, 'label')}{f', {share_text(judge.changed)}' if judge.changed.count else ''}"
        for judge in measured.noise
    ]


def _check_facts(measured: Judging) -> dict[str, Value]:
    """What is known about the judges' errors."""
    check = measured.check
    if check is None:
        text = (
            "The judges were not checked against labeled replies for this checklist. Run `medicare-eval judge-check` "
            "with the same judges, then `report --judge-check DIR`."
        )
        return {"judge_check": None, "no_judge_check": text}
    lines = [
        f"Judge check {inert(check.check_id)}: the same judges, end to end, on "
        f"{counted(check.replies, 'labeled reply', 'labeled replies')} with {counted(check.claims, 'claim')}"
    ]
    for label in LABELS if check.end_to_end else ():
        matrix = check.end_to_end.matrix() if check.end_to_end else {}
        of_label = sum(n for (gold, _), n in matrix.items() if gold == label)
        lines.append(
            f"{label.replace('_', ' ')}: {matrix.get((label, label), 0)} of {counted(of_label, 'claim')} found"
        )
    return {"judge_check": lines, "no_judge_check": None}


def stability_facts(series: Sequence[Series]) -> dict[str, Value]:
    repeats, variants = [], []
    for one in series:
        found, name = stability(one.rows), inert(one.target)
        same = "got the same study code each time"
        if found.repeated:
            questions = counted(found.repeated, "question")
            repeats.append(f"{name} {same} for {share_text(found.same_when_repeated)} of {questions}")
        if found.varied:
            questions = counted(found.varied, "question")
            variants.append(f"{name} {same} for {share_text(found.same_when_varied)} of {questions}")
    unknown = (
        "Each question was asked once in the same words, so stability over repeats is not known (`run --repeats`)."
    )
    return {
        "stability_repeats": list(repeats),
        "stability_variants": list(variants),
        "stability_unknown": None if repeats else unknown,
    }


def result_facts(found: Findings) -> dict[str, Value]:
    each = found.planned // max(1, len(found.plan_targets))
    ends = [outcome for outcome in OUTCOMES if outcome != "tampered" or knows_tampered(found)]
    flow, results, harm, bounds = [], [], [], []
    for target in found.plan_targets:
        rows, name = found.of_target(target), inert(target)
        outcomes = Counter(row.outcome for row in rows)
        flow.append([name, str(each), *(str(outcomes[outcome]) for outcome in ends), str(each - len(rows))])
        codes, scores = ([estimate(rows, one) for one in measures] for measures in (SHARES, SCORES))
        units = max(one.units for one in (*codes, *scores))
        cells = (*map(share_text, codes), *map(estimate_text, scores), share_text(key_coverage(rows)), str(units))
        results.append([name, *cells])
        bounds += [f"{name}: {line}" for line in _bounds(codes)]
        harm.append(f"{name}: {_harm([row for row in rows if row.outcome == 'scored'])}")
    names = [*(MEASURES[name].heading for name in READING_ORDER), KEY_COVERAGE.heading, "scenarios"]
    return {
        "flow_table": markdown_table(["model", "planned", *(OUTCOME_NAMES[one] for one in ends), "not yet run"], flow),
        "result_table": markdown_table(["model", *names], results),
        "missing_bounds": bounds,
        "harm": harm,
        "examples": ", ".join(inert(name) for name in found.example_ids) or None,
        "interval_rule": INTERVALS,
        "missing_rule": MISSING_RULE,
        "difference_rule": DIFFERENCES if any(rule.study_group for rule in found.rules.values()) else None,
    }


def _bounds(codes: Sequence[Estimated]) -> list[str]:
    """What missing answers could change."""
    return [
        f"{MEASURES[name].heading}: {percent(one.lowest)}% if none of {counted(one.missing, 'missing answer')} had "
        f"been so, {percent(one.highest)}% if all had"
        for name, one in zip(SHARES, codes, strict=True)
        if one.missing and one.lowest is not None and one.highest is not None
    ]


def _harm(scored: Sequence[Row]) -> str:
    wrong = sum(row.labels[LABELS.index("CONTRADICTED")] > 0 for row in scored)
    fabricated = sum(row.fabricated for row in scored)
    trials = counted(len(scored), "scored trial")
    return (
        f"at least one claim contradicts the key in {wrong} of {trials}; specifics that cannot be known without a "
        f"lookup in {fabricated}"
    )


def spending_lines(spending: Sequence[Spending]) -> list[str]:
    """What the calls of each model took."""
    return [
        f"{inert(one.model)} ({one.part}): {counted(one.attempts, 'call')}, {one.input_tokens:,} tokens in, "
        f"{one.output_tokens:,} tokens out, cost at list prices {money_text(one.cost)}"
        for one in spending
    ]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    rule = ["---", *(["---:" if numbers else "---"] * (len(headings) - 1))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headings, rule, *rows))


def was(number: int) -> str:
    return "was" if number == 1 else "were"


def _agreement(value: Agreement) -> str:
    if value.value is None:
        return "not defined"
    if value.low is None or value.high is None:
        return f"{rounded(value.value)} (no interval)"
    return f"{rounded(value.value)} ({rounded(value.low)} to {rounded(value.high)})"
