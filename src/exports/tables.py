"""The exported tables: those of trials, and what a run, its costly errors and human counselors add to them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from .. import storage
from ..findings.dollars import CostlyError, Costs, costs_of, errors_of
from ..findings.human_comparison import (
    MODES,
    Baseline,
    BaselineGroup,
    BaselineNotes,
    Counts,
    Rules,
    kind_of,
    load_baseline,
    study_questions,
    study_rules,
)
from ..findings.read_run import group_rules, has_fake_target, judged_offline, software_version
from ..findings.rule_judge import by_targets
from ..records.base import SEVERITIES
from ..records.run import Isolation
from ..schemas import CostClass, Manifest, RunPlan, StudyCode, TrialResult
from ..scoring.definitions import CODE_HEADINGS, IF_REFUSED_TEXT, MEASURES
from ..text.escape import defused, inert
from ..trials.columns import (
    JOINED,
    MISSING,
    Cells,
    DataColumn,
    DataTable,
    Kind,
    category,
    flag,
    integer,
    listed,
    number,
    text,
)
from ..trials.tables import OF_TRIAL, OF_TRIALS, RUN_ID, TURN_ID, TabledRun
from ..trials.terms import alphabetical


@dataclass(frozen=True)
class Exported(TabledRun):
    """What the rows of a run need to know about it."""

    costs: Costs

    @classmethod
    def of(cls, manifest: Manifest) -> Exported:
        plan = manifest.plan
        rules = group_rules(plan)
        return cls(manifest.run_id, rules, like_for_like(rules, load_baseline()), plan, costs_of(plan))


TableRow = tuple[DataTable[Any], Cells]


def trial_rows(trial: TrialResult, run: Exported) -> Iterator[TableRow]:
    """Everything that one trial adds to the tables."""
    for table in (*OF_TRIALS, DOLLAR):
        yield from ((table, row) for row in table.rows(trial, run))


def run_rows(manifest: Manifest, results: storage.StoredResults, run: Exported) -> Iterator[TableRow]:
    """The rows that belong to no trial; `results` must have been read to the end."""
    yield from ((RUN, row) for row in RUN.rows(manifest, results))
    yield from ((COUNSELOR, row) for row in COUNSELOR.rows(run, load_baseline()))


# run


class RunPart(NamedTuple):
    manifest: Manifest
    plan: RunPlan
    head: str
    sealed: bool
    trials: int


def _who(role: str) -> Callable[[RunPart], str | None]:
    """Who has a role; each of them with its targets, if they have different judges."""

    def who(of: RunPart) -> str | None:
        if of.plan.judges_by_target:
            return by_targets(of.plan, role, "none")
        found = getattr(of.plan, role)
        return listed(found) if isinstance(found, tuple) else found

    return who


RUN: DataTable[RunPart] = DataTable(
    "run",
    "One row: the run, its plan and its settings.",
    (
        text("run_id", RUN_ID.meaning, "manifest.run_id"),
        text("created", "When the run started, UTC", "manifest.created"),
        text("software_version", "Version of medicare-eval", lambda of: software_version(of.manifest), "not recorded"),
        text("python_version", "Version of Python", lambda of: of.manifest.versions.get("python"), "not recorded"),
        text("plan_sha256", "Fingerprint of the whole plan", "manifest.plan_sha256"),
        text("results_head", "Last hash of the exported results; the seal of a complete run has the same value",
            "head"),
        flag("sealed", "Whether the run was complete and sealed", "sealed"),
        integer("trials_planned", "Trials in the plan", "plan.trial_count"),
        integer("trials_here", "Trials in these tables", "trials"),
        integer("plan_year", "Medicare plan year of the answer keys", "plan.plan_year"),
        text("seed", "The run's seed; as text, because it can be too large for some packages to store exactly",
            lambda of: str(of.plan.seed)),
        integer("repeats", "Trials per scenario and target", "plan.repeats"),
        integer("judge_repeats", "How often each verifier judged the sampled trials again", "plan.judge_repeats"),
        number("judge_sample", "Share of trials that are judged again", "plan.judge_sample"),
        text("scenarios", "Scenarios (@variants), in plan order", "plan.scenarios.name"),
        text("targets", "Models under test", "plan.targets"),
        text("verifiers", "The model of each verifier: judge_1, judge_2, ...", _who("verifiers")),
        text("extractor", "The model that splits replies into claims", _who("extractor")),
        text("scorer", "The model that looks for refusals, referrals, hedges and fabricated specifics", _who("scorer")),
        text("adjudicator", "The model that resolves ties", _who("adjudicator"), "none: ties stay open for a person"),
        category("isolation", "How many claims a verifier sees in one call: see --isolation", get_args(Isolation),
            "plan.isolation"),
        number("audit_sample", "Share of replies verified both one claim per call and in shared calls",
            "plan.audit_sample"),
        integer("background_facts", "Facts of the shared library that verifiers could be shown", "plan.background"),
        text("questioner", "The model that rewords questions", "plan.questioner", "no model reworded the questions"),
        number("target_temperature", "Temperature requested from the targets", "plan.target_parameters.temperature",
            "not_set"),
        integer("target_max_tokens", "Token limit of a target's reply", "plan.target_parameters.max_tokens"),
        number("judge_temperature", "Temperature requested from the judges", "plan.judge_parameters.temperature",
            "not_set"),
        integer("judge_max_tokens", "Token limit of a judge's answer", "plan.judge_parameters.max_tokens"),
        text("wording_title", "Title of the file that replaced our question wording", "plan.wording.title",
            "our own wording"),
        text("wording_sha256", "Hash of that file", "plan.wording.sha256", "our own wording"),
        text("expired", "Answer keys that were out of date and that the user allowed", "plan.expired", "none"),
        flag("coming", "Whether the plan year had not begun when the run was planned", "plan.coming"),
        integer("points_left_out", "Points of questions left out because the year's figures are not known",
            "plan.points_left_out"),
        flag("offline_judge", "Whether the rule-based judge took part; do not report such scores as results",
            lambda of: judged_offline(of.plan)),
        flag("fake_target", "Whether a target returns canned text instead of calling a model",
            lambda of: has_fake_target(of.plan)),
        text("transcripts_of", "The earlier run whose transcripts were judged again", "manifest.transcripts.run_id",
            "this run asked the targets"),
        text("registration_sha256", "Hash of the pre-registration", "manifest.registration.sha256",
            "the run was not pre-registered"),
        text("primary_outcome", "The primary outcome as pre-registered", "manifest.registration.primary_outcome",
            "the run was not pre-registered"),
        text("deviations", "How the plan differs from the pre-registration", "manifest.registration.deviations",
            "no difference, or not pre-registered"),
    ),
    ("run_id",),
    lambda manifest, results: [RunPart(manifest, manifest.plan, results.head, results.sealed, results.count)],
)  # fmt: skip


# dollar


class DollarPart(NamedTuple):
    run: Exported
    trial: TrialResult
    error: CostlyError
    years: int


def _no_dollars(of: DollarPart) -> str:
    return "unpriced" if of.error.formula is None else "no_single_amount"


def _amount(of: DollarPart) -> float | None:
    amount = of.error.dollars(of.years)
    return None if amount is None else float(amount)


DOLLAR: DataTable[DollarPart] = DataTable(
    "dollar",
    "One row per error that has a cost, and number of years. Never add amounts of different classes or scenarios.",
    (
        *OF_TRIAL,
        text("turn_id", TURN_ID, "error.turn_id"),
        text("claim_id", "The wrong claim", "error.claim_id"),
        text("fact_id", "The fact of the key that it contradicts", "error.fact.fact_id"),
        text("library_fact", "The same fact in the library", "error.fact.library",
            "it is written in the scenario itself"),
        category("cost_class", "Whether the dollars follow from rules, may come, or are unknown", get_args(CostClass),
            "error.cost_class"),
        category("severity", "How harmful the error is", SEVERITIES, "error.severity"),
        text("formula", "What it costs, in numbers; years is the column of that name", "error.formula",
            "the class is unpriced"),
        number("stated", "The dollar amount that the claim states",
            lambda of: None if of.error.stated is None else float(of.error.stated),
            reasons=("unpriced", "no_single_amount", "none_needed"),
            why=lambda of: _no_dollars(of) if of.error.needs_stated or of.error.formula is None else "none_needed"),
        integer("years", "For how many years", "years"),
        number("dollars", "What the error could cost", _amount, reasons=("unpriced", "no_single_amount"),
            why=_no_dollars),
    ),
    ("run_id", "trial_id", "claim_id", "fact_id", "years"),
    lambda trial, run: [DollarPart(run, trial, error, years)
        for error in errors_of(trial, run.costs) for years in error.horizon],
)  # fmt: skip


# counselor


class CounselorPart(NamedTuple):
    run: TabledRun
    notes: BaselineNotes
    group: BaselineGroup
    mode: str
    counts: Counts
    comparable: bool


def _counselors(run: TabledRun, baseline: Baseline) -> Iterator[CounselorPart]:
    ours = study_rules(run.rules)
    for study_group, group in sorted(baseline.groups.items()):
        comparable = kind_of(group, ours.get(study_group)) == "like"
        for mode, counts in group.by_mode.items():
            yield CounselorPart(run, baseline.notes, group, mode, counts, comparable)


def _coded(code: StudyCode) -> Callable[[CounselorPart], int]:
    return lambda of: of.counts.codes[code]


def like_for_like(rules: Rules, baseline: Baseline) -> frozenset[tuple[str, str]]:
    """The questions, by scenario and group, on which a target and counselors are compared."""
    ours = study_rules(rules)
    return frozenset(
        (question.scenario_id, question.group)
        for study_group, questions in study_questions(rules).items()
        if study_group in baseline.groups and kind_of(baseline.groups[study_group], ours.get(study_group)) == "like"
        for question in questions
    )


COUNSELOR: DataTable[CounselorPart] = DataTable(
    "counselor",
    "One row per question group of the published study and mode: how human counselors answered mystery shoppers.",
    (
        RUN_ID,
        integer("study_group", "The question group's number in the published study", "group.group"),
        text("topic", "The topic", "group.topic"),
        category("mode", "How the shop was made", MODES, "mode"),
        text("scenario", "The study's scenario in which it was asked: medicare_only, dual_eligible or both",
            "group.scenario"),
        integer("shops", "Shops in which it was asked; the five counts add up to it", "counts.shops"),
        *(integer(code, f"Answers coded {heading}", _coded(code)) for code, heading in CODE_HEADINGS.items()),
        flag("lookup_dependent", "Whether counselors could look the answer up, which a bare model cannot",
            "group.lookup_dependent"),
        flag("comparable", "Whether our answers are coded by the study's points and without a lookup: like for like",
            "comparable"),
        text("source", "Where the counts are published",
            lambda of: f"{of.notes.citation} {of.notes.address}, {of.notes.read_in}"),
    ),
    ("run_id", "study_group", "mode"),
    _counselors,
)  # fmt: skip

TABLES: tuple[DataTable[Any], ...] = (RUN, *OF_TRIALS, DOLLAR, COUNSELOR)
TEXT_CUT: DataColumn[Any] = flag(
    "text_cut", "Only in CSV and SPSS files: whether a text of this row was too long and was cut", lambda row: False
)
TEXTS = "texts.jsonl"
"""The whole texts that are cut in CSV files."""


CODEBOOK_CSV, CODEBOOK_MD = "codebook.csv", "codebook.md"
_HEADER = ("table", "column", "type", "meaning", "values", "missing", "missing_stata", "missing_spss")
_TYPES: dict[Kind, str] = {
    "text": "text",
    "category": "category",
    "reason": "reason for a missing value",
    "integer": "integer",
    "number": "number",
    "flag": "yes or no",
}


def _notes() -> list[str]:
    """What the codebook says before its tables: the paragraphs of codebook.txt."""
    text = Path(__file__).with_name("codebook.txt").read_text(encoding="utf-8")
    said = text.format(complete=MEASURES["accurate_complete"].brief, if_refused=IF_REFUSED_TEXT, texts=TEXTS)
    return [" ".join(part.split("\n")).strip() for part in said.split("\n\n")]


def codebook_rows() -> Iterator[dict[str, str]]:
    """One row per column of each table."""
    for table in TABLES:
        for column in (*table.columns, TEXT_CUT):
            yield _row(table, column)


def _row(table: DataTable[Any], column: DataColumn[Any]) -> dict[str, str]:
    if column.missing:
        why = JOINED.join(f"{one.name}: {one.meaning}" for one in column.missing)
    else:
        why = f"empty: {column.absent}" if column.absent else "never"
    coded = column.kind == "category"
    values = [f"{n} = {value}" if coded else value for n, value in enumerate(column.values, 1)]
    return {
        "table": table.name,
        "column": column.name,
        "type": _TYPES[column.kind],
        "meaning": column.meaning,
        "values": JOINED.join(values) or ("0 = no; 1 = yes" if column.kind == "flag" else ""),
        "missing": why,
        "missing_stata": JOINED.join(f".{one.stata} = {one.name}" for one in column.missing),
        "missing_spss": JOINED.join(f"{one.spss} = {one.name}" for one in column.missing),
    }


def codebook_csv() -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _HEADER, lineterminator="\n")
    writer.writeheader()
    for row in codebook_rows():
        writer.writerow({name: defused(cell) for name, cell in row.items()})
    return buffer.getvalue()


def codebook_md() -> str:
    lines = ["# Codebook", ""]
    for note in _notes():
        lines += [note, ""]
    lines += ["## Missing values", "", "| reason | Stata | SPSS | meaning |", "| --- | --- | ---: | --- |"]
    lines += [f"| `{one.name}` | .{one.stata} | {one.spss} | {inert(one.meaning)} |" for one in MISSING.values()]
    for table in TABLES:
        keys = ", ".join(f"`{key}`" for key in table.keys)
        lines += ["", f"## {table.name}", "", f"{table.meaning} Keys: {keys}.", ""]
        lines += ["| column | type | meaning | values | missing |", "| --- | --- | --- | --- | --- |"]
        for column in (*table.columns, TEXT_CUT):
            row = _row(table, column)
            cells = (inert(row[name]) for name in ("type", "meaning", "values", "missing"))
            lines.append(f"| `{column.name}` | {' | '.join(cells)} |")
    lines += ["", "## Words", ""]
    lines += [f"- **{one.name}**: {inert(one.meaning)}" for one in alphabetical("\n".join(lines))]
    return "\n".join([*lines, ""])
