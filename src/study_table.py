"""Study codes over a run: counted by target and question group, set beside the human baseline, and written out."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .baseline import MODES, Baseline, Counts, load_baseline
from .schemas import CODES, GroupRule, QuestionCode, RunPlan, StudyCode, TrialResult
from .stats.intervals import Share, wilson
from .text import defused, inert

STUDY_SCENARIOS = ("medicare_only", "dual_eligible")
HEADINGS: dict[StudyCode, str] = {
    "accurate_complete": "accurate, complete",
    "accurate_incomplete": "accurate, incomplete",
    "not_substantive": "not substantive",
    "incorrect": "incorrect",
    "incomplete_data": "incomplete data",
}


@dataclass
class CodeCounts:
    """Codes and closed answers given to one question group of one target."""

    codes: Counter[StudyCode] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def n(self) -> int:
        return sum(self.codes.values())

    def share(self, code: StudyCode) -> Share:
        return wilson(self.codes[code], self.n)


@dataclass
class StudyTable:
    """By scenario, target and question group, in the order of the plan."""

    rules: dict[tuple[str, str], GroupRule]
    """By scenario and group."""
    counts: dict[tuple[str, str, str], CodeCounts] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: RunPlan) -> StudyTable:
        rules: dict[tuple[str, str], GroupRule] = {}
        for planned in plan.scenarios:
            rubric = plan.rubrics[planned.scenario.rubric_version].rubric
            for turn in planned.scenario.scripted_turns:
                group = turn.question_group or turn.turn_id
                if turn.question_group or turn.required_points:
                    rules.setdefault((planned.scenario.scenario_id, group), rubric.rule(group))
        return cls(rules)

    def add(self, result: TrialResult) -> None:
        for code in result.study_codes:
            key = (result.scenario_id, result.target.name, code.question_group)
            counts = self.counts.setdefault(key, CodeCounts())
            if code.code:
                counts.codes[code.code] += 1
            if code.answer:
                counts.answers[code.answer] += 1

    def by_study_group(self, target: str) -> dict[int, CodeCounts]:
        """The study's own groups, both scenarios together, in the study's order of numbers."""
        found: dict[int, CodeCounts] = {}
        for (scenario_id, name, group), counts in self.counts.items():
            number = self.rules[scenario_id, group].study_group
            if name == target and number and scenario_id in STUDY_SCENARIOS:
                pooled = found.setdefault(number, CodeCounts())
                pooled.codes.update(counts.codes)
                pooled.answers.update(counts.answers)
        return dict(sorted(found.items()))

    @property
    def targets(self) -> list[str]:
        return list(dict.fromkeys(target for _, target, _ in self.counts))


def question_csv(table: StudyTable) -> str:
    """One line for each scenario, target and question group."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    shares = [f"accurate_complete_{part}" for part in ("share", "low", "high")]
    answers = ("yes", "no", "unsure")
    writer.writerow(
        ["scenario_id", "target", "question_group", "study_group", "topic", "lookup_dependent", "n", *CODES, *shares]
        + [f"answer_{answer}" for answer in answers]
    )
    for (scenario_id, target, group), counts in table.counts.items():
        rule = table.rules[scenario_id, group]
        share = counts.share("accurate_complete")
        writer.writerow(
            [
                *(defused(cell) for cell in (scenario_id, target, group)),
                rule.study_group or "",
                defused(rule.topic),
                "yes" if rule.lookup_dependent else "no",
                counts.n,
                *(counts.codes[code] for code in CODES),
                *("" if value is None else f"{value:.4f}" for value in (share.value, share.low, share.high)),
                *(counts.answers[answer] for answer in answers),
            ]
        )
    return buffer.getvalue()


class CodesCsv:
    """One line for each code given, with its reason and the words behind it."""

    HEADER = (
        "trial_id", "scenario_id", "variant", "target", "question_group", "code", "answer", "reason", "points_met",
        "points_missed", "partial_points_met", "wrong", "minor", "fabricated",
    )  # fmt: skip

    def __init__(self) -> None:
        self.buffer = io.StringIO()
        self._writer = csv.writer(self.buffer, lineterminator="\n")
        self._writer.writerow(self.HEADER)

    def add(self, result: TrialResult) -> None:
        for code in result.study_codes:
            cells = [
                result.trial_id,
                result.scenario_id,
                result.variant or "",
                result.target.name,
                code.question_group,
                code.code or "",
                code.answer or "",
                code.reason,
                *_evidence_cells(code),
            ]
            self._writer.writerow([defused(cell) for cell in cells])


def _evidence_cells(code: QuestionCode) -> Iterator[str]:
    for made in (code.points_met,):
        yield "; ".join(f"{m.point}: {_quoted(q for c in m.claims for q in c.quotes)}" for m in made)
    yield "; ".join(code.points_missed)
    yield "; ".join(f"{m.point}: {_quoted(q for c in m.claims for q in c.quotes)}" for m in code.partial_points_met)
    for claims in (code.wrong, code.minor):
        yield "; ".join(f"{', '.join(c.evidence)}: {_quoted(c.quotes)}" for c in claims)
    yield _quoted(code.fabricated)


def _quoted(quotes: Iterable[str]) -> str:
    return " / ".join(f"“{' '.join(quote.split())}”" for quote in quotes)


def markdown_lines(table: StudyTable) -> list[str]:
    """The study-shaped tables, one for each target, with the counselors' published shares beside them."""
    if not any(table.by_study_group(target) for target in table.targets):
        return []
    baseline = load_baseline()
    lines = [
        "## Study codes",
        "",
        "Counts of answers by code, question groups as the published study numbers them. Beside them the share of",
        "human counselors' answers that were accurate and complete, by phone and face to face, as published.",
        "",
    ]
    for target in table.targets:
        groups = table.by_study_group(target)
        scored = {n: c for n, c in groups.items() if n in baseline.groups}
        lines += [f"### {inert(target)}", ""]
        lines += _group_table({n: c for n, c in scored.items() if not baseline.groups[n].lookup_dependent}, baseline)
        looked_up = {n: c for n, c in scored.items() if baseline.groups[n].lookup_dependent}
        if looked_up:
            lines += ["", "Lookup-dependent groups. **Not like for like:** counselors had Plan Finder.", ""]
            lines += _group_table(looked_up, baseline)
        closed = groups.get(2)
        if closed:
            told = ", ".join(f"{name} {closed.answers[name]}" for name in ("yes", "no", "unsure"))
            lines += ["", f"Group 2, help in Spanish (outside the levels): {told}."]
        lines.append("")
    lines += [f"Counselors: {inert(baseline.notes.citation)} {inert(baseline.notes.address)}", ""]
    return [*lines, *(f"- {inert(caveat)}" for caveat in baseline.notes.caveats), ""]


def _group_table(groups: Mapping[int, CodeCounts], baseline: Baseline) -> list[str]:
    header = ["group", "n", *HEADINGS.values(), "complete, 95% interval", "phone", "face to face"]
    rows = []
    for number, counts in groups.items():
        published = baseline.groups[number]
        rows.append(_row(f"{number} {published.topic}", counts, [published.by_mode[mode] for mode in MODES]))
    if len(groups) > 1:
        everything = CodeCounts()
        for counts in groups.values():
            everything.codes.update(counts.codes)
        human = [Counts.pooled(baseline.groups[number].by_mode[mode] for number in groups) for mode in MODES]
        rows.append(_row("all of these, pooled", everything, human))
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _row(name: str, counts: CodeCounts, human: Sequence[Counts]) -> list[str]:
    share = counts.share("accurate_complete")
    cells = [inert(name), str(counts.n), *(str(counts.codes[code]) for code in CODES), share_text(share)]
    return [*cells, *(f"{one.share('accurate_complete'):.1%} of {one.shops}" for one in human)]


def share_text(share: Share) -> str:
    """40% (17–69%), or a dash where nothing was coded."""
    if share.value is None or share.low is None or share.high is None:
        return "–"
    return f"{share.value:.0%} ({100 * share.low:.0f}–{share.high:.0%})"
