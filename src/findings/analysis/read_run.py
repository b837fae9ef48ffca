"""One pass over a run's results: what every table, chart and test needs, and no more.

Lines are decoded to the fields that are counted (msgspec); replies, claims and quotes stay on disk but for a few. A
hundred thousand trials are read in seconds and kept in some tens of megabytes. The chain is checked on the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import cast, get_args
from zlib import crc32

import msgspec

from ... import storage
from ...errors import IntegrityError
from ...records.base import Severity, severity_rank
from ...schemas import (
    GroupRule,
    Label,
    Manifest,
    TrialOutcome,
    TrialResult,
)
from ...store import hash_chain
from ...store.strict_json import sha256

SCORES = ("accuracy", "completeness", "safety_risk", "calibration")
LABELS: tuple[Label, ...] = get_args(Label)
OUTCOMES: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
BLOCKS = 200
"""Trials are dealt into so many blocks, by their id, for resampling of what is counted over claims."""
EXAMPLES = 3
"""Trials kept in mind for each target."""
REVIEWS = 50


class _Target(msgspec.Struct):
    name: str
    served_models: list[str]
    served_as_requested: bool | None
    fingerprints: list[str]
    not_applied: list[str]


class _Exchange(msgspec.Struct):
    turn_id: str
    user_message: str
    outcome: str


class _Verdict(msgspec.Struct):
    claim_id: str
    label: str


class _Final(msgspec.Struct):
    label: str | None
    severity: Severity
    decided_by: str
    labels_given: list[str]


class _Scores(msgspec.Struct):
    accuracy: float | None
    completeness: float | None
    safety_risk: float | None
    calibration: float | None


class _ByJudge(msgspec.Struct):
    scores: _Scores


class _Code(msgspec.Struct):
    question_group: str
    code: str | None
    answer: str | None
    lookup_dependent: bool


class _Flags(msgspec.Struct):
    refusal: bool
    hallucinated_specifics: bool


class _Reading(msgspec.Struct):
    how: str
    sentences: int
    covered_first: int
    covered: int
    typographic_quotes: int


class _Failure(msgspec.Struct):
    stage: str


class _Service(msgspec.Struct):
    model: str
    served_models: list[str]
    served_as_requested: bool | None
    not_applied: list[str]


class _Line(msgspec.Struct):
    trial_id: str
    scenario_id: str
    variant: str | None
    repetition: int
    target: _Target
    outcome: str
    conversation: list[_Exchange]
    rejected_claims: list[msgspec.Raw]
    verdicts: dict[str, list[_Verdict]]
    repeat_verdicts: dict[str, list[list[_Verdict]]]
    scores_by_judge: dict[str, _ByJudge]
    final_claims: list[_Final]
    final_scores: _Scores | None
    study_codes: list[_Code]
    error_categories: list[str]
    needs_manual_review: bool
    readings: list[_Reading]
    severity_disagreements: int
    disagreement: float | None
    flags: _Flags
    judge_failures: list[_Failure]
    judge_services: list[_Service]


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True)
class Row:
    """One trial, as numbers."""

    trial_id: str
    scenario_id: str
    variant: str | None
    target: str
    repetition: int
    outcome: TrialOutcome
    scores: tuple[float | None, float | None, float | None, float | None]
    """In the order of `SCORES`; all None where the trial was not scored."""
    labels: tuple[int, int, int]
    """Final claims by label, in the order of `LABELS`."""
    unresolved: int
    codes: tuple[tuple[str, str], ...]
    """Question group and study code."""
    answers: tuple[tuple[str, str], ...]
    """Closed questions: group and yes, no or unsure."""
    errors: tuple[str, ...]
    refusal: bool
    fabricated: bool
    review: bool
    wording: str = ""
    """A fingerprint of the questions as they were asked: other knobs or words, another fingerprint."""
    by_judge: tuple[float | None, ...] = ()
    """Accuracy by each judge's own verdicts."""

    def score(self, name: str) -> float | None:
        return self.scores[SCORES.index(name)]


@dataclass
class Service:
    """What a model was asked for, and what it really was."""

    called: str
    served: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    not_applied: set[str] = field(default_factory=set)
    differs: bool = False
    """Whether another model than the one called has answered."""


Pattern = tuple[str | None, ...]
"""The labels the judges gave to one claim, in their order; None where a judge gave none."""


@dataclass
class Findings:
    """All that was gathered from one run."""

    folder: Path
    manifest: Manifest
    rows: list[Row] = field(default_factory=list)
    rules: dict[tuple[str, str], GroupRule] = field(default_factory=dict)
    """By scenario and question group."""
    services: dict[str, Service] = field(default_factory=dict)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and outcome of the turn."""
    judged: dict[int, Counter[Pattern]] = field(default_factory=dict)
    """By block: how often the judges gave which labels to a claim."""
    noise: dict[str, dict[int, Counter[tuple[str | None, str | None]]]] = field(default_factory=dict)
    """By judge and block: its first label of a claim and the one when asked again."""
    decided: Counter[str] = field(default_factory=Counter)
    """How final labels came about: unanimous, majority, adjudicator, unresolved."""
    readings: Counter[str] = field(default_factory=Counter)
    """Replies by how they were read, sentences and how many are covered, quotes found only after folding."""
    rejected_claims: int = 0
    severity_disagreements: int = 0
    judge_failures: Counter[str] = field(default_factory=Counter)
    """By stage."""
    review: list[str] = field(default_factory=list)
    """Ids of trials that need a person, the first few."""
    examples: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    """By target: gravity, scenario and id of trials with the gravest wrong claims."""
    offsets: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where those trials stand in results.jsonl: offset and length."""
    head: str = hash_chain.GENESIS

    @property
    def example_ids(self) -> list[tuple[int, str]]:
        """The gravest trials of each target in turn: gravity and id."""
        rounds = zip_longest(*(self.examples[target] for target in sorted(self.examples)))
        return [(one[0], one[2]) for turn in rounds for one in turn if one is not None]

    @property
    def plan_targets(self) -> tuple[str, ...]:
        return self.manifest.plan.targets

    @property
    def planned(self) -> int:
        plan = self.manifest.plan
        return len(plan.scenarios) * len(plan.targets) * plan.repeats

    @property
    def offline(self) -> bool:
        return any(model.startswith("offline:") for model in self.manifest.plan.judge_models())

    @property
    def fake(self) -> bool:
        return any(target.startswith("fake:") for target in self.plan_targets)

    def of_target(self, target: str) -> list[Row]:
        return [row for row in self.rows if row.target == target]

    def trial(self, trial_id: str) -> TrialResult:
        """One of the trials that were kept in mind, in full."""
        offset, length = self.offsets[trial_id]
        with (self.folder / storage.RESULTS).open("rb") as file:
            file.seek(offset)
            return TrialResult.model_validate_json(hash_chain.payload_of(file.read(length)))


def gather(folder: Path, manifest: Manifest | None = None) -> Findings:
    """Read a run's results, complete or not; a broken chain is an integrity error."""
    found = Findings(folder, manifest or storage.read_manifest(folder))
    plan = found.manifest.plan
    found.services = {name: Service(api_id) for name, api_id in plan.api_ids.items()}
    for planned in plan.scenarios:
        rubric = plan.rubrics[planned.scenario.rubric_version].rubric
        for turn in planned.scenario.scripted_turns:
            if turn.question_group or turn.required_points:
                group = turn.question_group or turn.turn_id
                found.rules.setdefault((planned.scenario.scenario_id, group), rubric.rule(group))
    path = folder / storage.RESULTS
    if path.exists():
        reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
        for line in reader:
            _add(found, line)
        found.head = reader.head
    found.review.sort()
    found.offsets = {name: found.offsets[name] for name in {*found.review, *(name for _, name in found.example_ids)}}
    return found


def _add(found: Findings, raw: hash_chain.ChainedLine) -> None:
    try:
        line = _decode(raw.payload)
    except msgspec.ValidationError as error:
        path = found.folder / storage.RESULTS
        raise IntegrityError(f"{path}: line {raw.number} is not a result this version can read ({error}).") from None
    counts = Counter(claim.label for claim in line.final_claims)
    scores = line.final_scores
    found.rows.append(
        Row(
            line.trial_id,
            line.scenario_id,
            line.variant,
            line.target.name,
            line.repetition,
            cast(TrialOutcome, line.outcome),
            (scores.accuracy, scores.completeness, scores.safety_risk, scores.calibration)
            if scores
            else (None, None, None, None),
            (counts["SUPPORTED"], counts["CONTRADICTED"], counts["NOT_IN_KEY"]),
            counts[None],
            tuple((code.question_group, code.code) for code in line.study_codes if code.code),
            tuple((code.question_group, code.answer) for code in line.study_codes if code.answer),
            tuple(line.error_categories),
            line.flags.refusal,
            line.flags.hallucinated_specifics,
            line.needs_manual_review,
            sha256("\n".join(exchange.user_message for exchange in line.conversation))[:12],
            tuple(one.scores.accuracy for one in line.scores_by_judge.values()),
        )
    )
    for exchange in line.conversation:
        found.turns[line.target.name, exchange.outcome] += 1
    _add_services(found, line)
    _add_judging(found, line)
    _keep(found, line, raw)


def _add_services(found: Findings, line: _Line) -> None:
    target = found.services.setdefault(line.target.name, Service(line.target.name))
    target.served.update(line.target.served_models)
    target.fingerprints.update(line.target.fingerprints)
    target.not_applied.update(line.target.not_applied)
    target.differs |= line.target.served_as_requested is False
    for judge in line.judge_services:
        service = found.services.setdefault(judge.model, Service(judge.model))
        service.served.update(judge.served_models)
        service.not_applied.update(judge.not_applied)
        service.differs |= judge.served_as_requested is False


def _add_judging(found: Findings, line: _Line) -> None:
    block = crc32(line.trial_id.encode()) % BLOCKS
    by_judge = [{v.claim_id: v.label for v in verdicts} for verdicts in line.verdicts.values()]
    patterns = found.judged.setdefault(block, Counter())
    for claim_id in dict.fromkeys(name for labels in by_judge for name in labels):
        patterns[tuple(labels.get(claim_id) for labels in by_judge)] += 1
    for judge, repeats in line.repeat_verdicts.items():
        first = {v.claim_id: v.label for v in line.verdicts.get(judge, [])}
        pairs = found.noise.setdefault(judge, {}).setdefault(block, Counter())
        for repeat in repeats:
            again = {v.claim_id: v.label for v in repeat}
            for claim_id in first.keys() | again.keys():
                pairs[first.get(claim_id), again.get(claim_id)] += 1
    for claim in line.final_claims:
        found.decided[claim.decided_by] += 1
    for reading in line.readings:
        found.readings[reading.how] += 1
        found.readings["sentences"] += reading.sentences
        found.readings["covered_first"] += reading.covered_first
        found.readings["covered"] += reading.covered
        found.readings["typographic"] += reading.typographic_quotes
    found.rejected_claims += len(line.rejected_claims)
    found.severity_disagreements += line.severity_disagreements
    found.judge_failures.update(failure.stage for failure in line.judge_failures)


def _keep(found: Findings, line: _Line, raw: hash_chain.ChainedLine) -> None:
    """Keep in mind where the trials stand that a report shows in full."""
    place = (raw.offset, raw.length)
    if line.needs_manual_review and len(found.review) < REVIEWS:
        found.review.append(line.trial_id)
        found.offsets[line.trial_id] = place
    wrong = [severity_rank(c.severity) for c in line.final_claims if c.label == "CONTRADICTED"]
    if not wrong:
        return
    gravity, target = max(wrong), line.target.name
    kept = found.examples.setdefault(target, [])
    fresh = all(scenario != line.scenario_id for _, scenario, _ in kept)
    if len(kept) < EXAMPLES or (fresh and gravity >= kept[-1][0]) or gravity > kept[-1][0]:
        kept.append((gravity, line.scenario_id, line.trial_id))
        kept.sort(key=lambda one: -one[0])
        del kept[EXAMPLES:]
        found.offsets[line.trial_id] = place
