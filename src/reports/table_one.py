"""Table 1 of a paper: what was asked, by theme, voice, state and language, and what became of each target's trials."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from ..schemas import PlannedScenario, RunPlan
from ..text.rounded import percent
from ..trials.missing import MISSING
from .csv import safe
from .run_section import key_facts
from .score_section import ANSWERED, OUTCOME_NAMES, UNANSWERED, knows_tampered
from .series import ReportedRun, ReportedTarget, Runs

TABLE_ONE_CSV = "table1.csv"
NOT_STATED = "not stated"
NOTHING = "–"
HEADER = ("part", "characteristic", "level", "run", "target", "value")


@dataclass(frozen=True)
class Value:
    """One cell: a characteristic of the study, or of one of its targets."""

    characteristic: str
    """Text of this project."""
    level: str
    """May be text of others."""
    text: str
    of_others: bool = False
    """Whether the text is not this project's."""


@dataclass(frozen=True)
class Part:
    title: str
    columns: tuple[str, ...]
    """Names of runs or targets: text of others."""
    values: tuple[tuple[Value, ...], ...]
    """For each column, in the same order of characteristics and levels."""

    def rows(self) -> Iterator[tuple[str, str, list[Value | None]]]:
        """A characteristic is named once, and comes with the levels of every column."""
        found = [{(one.characteristic, one.level): one for one in values} for values in self.values]
        every = dict.fromkeys(name for column in found for name in column)
        for characteristic in dict.fromkeys(name for name, _ in every):
            named = characteristic
            for key in (one for one in every if one[0] == characteristic):
                yield named, key[1], [column.get(key) for column in found]
                named = ""


def study_values(run: ReportedRun) -> tuple[Value, ...]:
    """Characteristics of a run's study."""
    plan = run.found.manifest.plan
    scripts = plan.scenarios
    scenarios = {planned.scenario.scenario_id: planned for planned in scripts}
    return (
        Value("Scenarios", "", f"{len(scenarios):,}"),
        *_shares("Scenarios by theme", _themes(scenarios.values()), len(scenarios)),
        Value("Scripts", "", f"{len(scripts):,}"),
        *_shares("Scripts by voice", [str(p.scenario.style or NOT_STATED) for p in scripts], len(scripts)),
        *_shares("Scripts by state", [_persona(p, "state") for p in scripts], len(scripts)),
        *_shares("Scripts by language", [_persona(p, "language") for p in scripts], len(scripts)),
        Value("Different questions that get a code", "", f"{run.found.coded_questions:,}"),
        Value("Question groups of the published study", "", f"{run.found.study_groups:,}"),
        *_fact_values(plan),
        Value("Targets", "", f"{len(plan.targets):,}"),
        Value("Repeats of each script with each target", "", f"{plan.repeats:,}"),
        Value("Trials planned", "", f"{plan.trial_count:,}"),
    )


def _fact_values(plan: RunPlan) -> Iterator[Value]:
    facts = key_facts(plan)
    yield Value("Facts in the answer keys", "", f"{len(facts):,}")
    yield from _shares("Facts in the answer keys", [fact.confirmed_by or NOT_STATED for fact in facts], len(facts))
    yield Value("Background facts", "", f"{len(plan.background):,}")
    yield from _shares("Background facts", [fact.confirmed_by for fact in plan.background], len(plan.background))


def _themes(scenarios: Iterable[PlannedScenario]) -> list[str]:
    return [theme for planned in scenarios for theme in dict.fromkeys(planned.scenario.themes or (NOT_STATED,))]


def _persona(planned: PlannedScenario, field: str) -> str:
    value = getattr(planned.scenario.persona, field)
    return str(value) if value else NOT_STATED


def _shares(characteristic: str, levels: Sequence[str], of: int) -> Iterator[Value]:
    """Each level with its count and share, the most frequent first."""
    for level, count in sorted(Counter(levels).items(), key=lambda one: (one[0] == NOT_STATED, -one[1], one[0])):
        yield Value(characteristic, level, f"{count:,} ({percent(count / of)}%)")


def target_values(series: ReportedTarget, *, tampered: bool) -> tuple[Value, ...]:
    """What happened to the trials of one target."""
    outcomes = Counter(row.outcome for row in series.rows)
    answered = [outcome for outcome in ANSWERED if tampered or outcome != "tampered"]
    codes = Counter(code.value for row in series.rows for code in row.counted)
    found = series.run.found.services.get(series.target)
    served = ", ".join(sorted(found.served)) if found else ""
    calls = [one for one in series.run.calls.spending if one.part == "target" and one.model == series.target]
    times = series.run.calls.times.get(series.target) if calls else None
    unscored = [*UNANSWERED, *(outcome for outcome in answered if outcome != "scored")]
    return (
        Value("Version that answered", "", served or NOT_STATED, of_others=True),
        Value("Trials", "planned", f"{series.planned:,}"),
        Value("Trials", "answered", f"{sum(outcomes[outcome] for outcome in answered):,}"),
        Value("Trials", "scored", f"{outcomes['scored']:,}"),
        *(Value("Trials not scored", OUTCOME_NAMES[outcome], f"{outcomes[outcome]:,}") for outcome in unscored),
        Value("Trials not scored", "not yet run", f"{max(0, series.planned - len(series.rows)):,}"),
        Value("Questions of these trials", "with a study code", f"{codes.total() - codes[MISSING]:,}"),
        Value("Questions of these trials", "missing", f"{codes[MISSING]:,}"),
        Value("Calls", "", f"{sum(one.attempts for one in calls):,}" if calls else NOTHING),
        Value("First call (UTC)", "", times.first[:10] if times else NOTHING),
        Value("Last call (UTC)", "", times.last[:10] if times else NOTHING),
    )


def table_one(runs: Runs) -> tuple[Part, Part]:
    """The study, with one column per run; and the targets, with one column each."""
    tampered = any(knows_tampered(run.found) for run in runs.runs)
    study = Part(
        "Characteristics of the study",
        tuple(run.name for run in runs.runs),
        tuple(study_values(run) for run in runs.runs),
    )
    targets = Part(
        "Trials of each target",
        tuple(series.label for series in runs.series),
        tuple(target_values(series, tampered=tampered) for series in runs.series),
    )
    return study, targets


def table_one_csv(runs: Runs) -> str:
    """Both parts as one table, with one line per cell."""
    study, targets = table_one(runs)
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEADER)
    for run, values in zip(runs.runs, study.values, strict=True):
        writer.writerows(_csv_row("study", one, run.name, "") for one in values)
    for series, values in zip(runs.series, targets.values, strict=True):
        writer.writerows(_csv_row("target", one, series.run.name, series.target) for one in values)
    return buffer.getvalue()


def _csv_row(part: str, one: Value, run: str, target: str) -> list[str]:
    return [safe(cell) for cell in (part, one.characteristic, one.level, run, target, one.text)]
