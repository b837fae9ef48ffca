"""One pass over a run's results: the numbers that every table, chart and test needs, and no more.

Lines are decoded only to the fields that are counted (msgspec); replies, claims and quotes stay on disk, except those
of a few trials that a report shows in full. A hundred thousand trials are read in seconds and take some tens of
megabytes. The hash chain is checked on the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, cast, get_args
from zlib import crc32

import msgspec

from ... import storage
from ...errors import IntegrityError
from ...records.base import severity_rank
from ...records.model_name import split_name
from ...schemas import (
    GroupRule,
    Label,
    Manifest,
    RunPlan,
    TrialOutcome,
    TrialResult,
)
from ...store import hash_chain
from ...store.strict_json import sha256
from .result_fields import TrialFields

SCORES = ("accuracy", "completeness", "safety_risk", "calibration")
LABELS: tuple[Label, ...] = get_args(Label)
OUTCOMES: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
DECIDED = ("unanimous", "majority", "adjudicator", "unresolved")
"""How a claim got its final label, or why it has none."""
BLOCKS = 200
"""Trials are assigned to this many blocks, by their id; statistics over claims resample blocks."""
EXAMPLES = 3
"""Trials with wrong claims remembered for each target."""
REVIEWS_SHOWN = 10
"""Trials that need manual review which a report shows in full, for each run; the others are only counted."""
NOT_RECORDED = "not recorded by release 0.1"
"""In place of review reasons, in runs of format 1."""


_decode = msgspec.json.Decoder(TrialFields).decode


class CodedQuestion(NamedTuple):
    """A question group of a trial with its study code, or with the answer to a closed question."""

    group: str
    value: str


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
    """In the order of `SCORES`; all None if the trial was not scored."""
    labels: tuple[int, int, int]
    """Final claims by label, in the order of `LABELS`."""
    unresolved: int
    codes: tuple[CodedQuestion, ...]
    answers: tuple[CodedQuestion, ...]
    """Closed questions: yes, no or unsure."""
    errors: tuple[str, ...]
    refusal: bool
    fabricated: bool
    review: bool
    wording: str = ""
    """Fingerprint of the questions as asked: a different wording or knob gives a different fingerprint."""
    by_judge: tuple[float | None, ...] = ()
    """Accuracy according to each judge's own verdicts."""

    def score(self, name: str) -> float | None:
        return self.scores[SCORES.index(name)]


@dataclass
class Service:
    """Which model was requested, and which one answered."""

    called: str
    served: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    not_applied: set[str] = field(default_factory=set)
    differs: bool = False
    """Whether a model other than the one requested answered."""


class Example(NamedTuple):
    """A trial with at least one wrong claim."""

    severity: int
    """Of its most severe wrong claim."""
    scenario_id: str
    trial_id: str


class Place(NamedTuple):
    """Where a line is in results.jsonl, in bytes."""

    offset: int
    length: int


Pattern = tuple[str | None, ...]
"""The labels the judges gave to one claim, in their order; None for a judge that gave none."""
LabelPair = tuple[str | None, str | None]
"""A judge's first label of a claim, and its label when asked again."""


@dataclass
class Findings:
    """Everything that was read from one run."""

    folder: Path
    manifest: Manifest
    rows: list[Row] = field(default_factory=list)
    rules: dict[tuple[str, str], GroupRule] = field(default_factory=dict)
    """By scenario and question group."""
    services: dict[str, Service] = field(default_factory=dict)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and outcome of the turn."""
    judged: dict[int, Counter[Pattern]] = field(default_factory=dict)
    """By block: how often the judges gave each pattern of labels to a claim."""
    noise: dict[str, dict[int, Counter[LabelPair]]] = field(default_factory=dict)
    """By judge and block: labels of the same claims when the judge was asked twice."""
    decided: Counter[str] = field(default_factory=Counter)
    """How claims got their final labels: see `DECIDED`."""
    readings: Counter[str] = field(default_factory=Counter)
    """Replies by how they were evaluated; sentences and how many are covered; quotes matched after folding."""
    rejected_claims: int = 0
    severity_disagreements: int = 0
    judge_failures: Counter[str] = field(default_factory=Counter)
    """By stage."""
    review: list[str] = field(default_factory=list)
    """Ids of trials that need manual review, up to `REVIEWS_SHOWN`."""
    review_reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and kind of reason; the kind is `NOT_RECORDED` in runs of format 1."""
    examples: dict[str, list[Example]] = field(default_factory=dict)
    """By target: the trials with the most severe wrong claims."""
    places: dict[str, Place] = field(default_factory=dict)
    """Where the trials of `review` and `examples` are in results.jsonl."""
    head: str = hash_chain.GENESIS
    sealed: bool = False
    """Whether the run is complete."""

    @property
    def example_ids(self) -> list[str]:
        """Trials with the most severe wrong claims, taking the targets in turn."""
        rounds = zip_longest(*(self.examples[target] for target in sorted(self.examples)))
        return [one.trial_id for turn in rounds for one in turn if one is not None]

    @property
    def plan_targets(self) -> tuple[str, ...]:
        return self.manifest.plan.targets

    @property
    def planned(self) -> int:
        return self.manifest.plan.trial_count

    @property
    def offline(self) -> bool:
        return judged_offline(self.manifest.plan)

    @property
    def fake(self) -> bool:
        return has_fake_target(self.manifest.plan)

    def of_target(self, target: str) -> list[Row]:
        return [row for row in self.rows if row.target == target]

    def trial(self, trial_id: str) -> TrialResult:
        """One of the trials listed in `places`, in full."""
        place = self.places[trial_id]
        with (self.folder / storage.RESULTS).open("rb") as file:
            file.seek(place.offset)
            return TrialResult.model_validate_json(hash_chain.payload_of(file.read(place.length)))


def judged_offline(plan: RunPlan) -> bool:
    """Whether the rule-based judge took part."""
    return any(split_name(model).provider == "offline" for model in plan.judge_models())


def has_fake_target(plan: RunPlan) -> bool:
    """Whether a target returns canned text."""
    return any(split_name(target).provider == "fake" for target in plan.targets)


def software_version(manifest: Manifest) -> str | None:
    """The version of this project that wrote a run. Release 0.1 was distributed as ai-medicare-eval."""
    versions = manifest.versions
    return versions.get("medicare-eval") or versions.get("ai-medicare-eval")


def group_rules(plan: RunPlan) -> dict[tuple[str, str], GroupRule]:
    """How each question group of each scenario is coded."""
    rules: dict[tuple[str, str], GroupRule] = {}
    for planned in plan.scenarios:
        rubric = plan.rubrics[planned.scenario.rubric_version].rubric
        for turn in planned.scenario.scripted_turns:
            group = turn.question_group or turn.turn_id
            rules.setdefault((planned.scenario.scenario_id, group), rubric.rule(group))
    return rules


def gather(folder: Path, manifest: Manifest | None = None) -> Findings:
    """Read a run's results, complete or not. A broken hash chain, or a seal that does not fit, is an IntegrityError."""
    found = Findings(folder, manifest or storage.read_manifest(folder))
    plan = found.manifest.plan
    found.services = {name: Service(api_id) for name, api_id in plan.api_ids.items()}
    found.rules = group_rules(plan)
    found.sealed = storage.read_seal(folder, found.manifest) is not None
    path = folder / storage.RESULTS
    if path.exists():
        reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
        for line in reader:
            _add(found, line)
        found.head = reader.head
    found.review.sort()
    found.places = {name: found.places[name] for name in {*found.review, *found.example_ids}}
    return found


def _add(found: Findings, raw: hash_chain.ChainedLine) -> None:
    try:
        line = _decode(raw.payload)
    except msgspec.ValidationError as error:
        path = found.folder / storage.RESULTS
        raise IntegrityError(f"{path}, line {raw.number}: this version cannot read the result ({error}).") from None
    found.rows.append(_row(line))
    for exchange in line.conversation:
        found.turns[line.target.name, exchange.outcome] += 1
    _add_services(found, line)
    _add_judging(found, line)
    _add_review(found, line)
    _remember(found, line, Place(raw.offset, raw.length))


def _row(line: TrialFields) -> Row:
    counts = Counter(claim.label for claim in line.final_claims)
    scores = line.final_scores
    return Row(
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
        tuple(CodedQuestion(code.question_group, code.code) for code in line.study_codes if code.code),
        tuple(CodedQuestion(code.question_group, code.answer) for code in line.study_codes if code.answer),
        tuple(line.error_categories),
        line.flags.refusal,
        line.flags.hallucinated_specifics,
        line.needs_manual_review,
        sha256("\n".join(exchange.user_message for exchange in line.conversation))[:12],
        tuple(one.scores.accuracy for one in line.scores_by_judge.values()),
    )


def _add_services(found: Findings, line: TrialFields) -> None:
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


def _add_judging(found: Findings, line: TrialFields) -> None:
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


def _add_review(found: Findings, line: TrialFields) -> None:
    if not line.needs_manual_review:
        return
    reasons = line.review_reasons
    kinds = {NOT_RECORDED} if reasons is None else {reason.kind for reason in reasons}
    found.review_reasons.update((line.target.name, kind) for kind in kinds)


def _remember(found: Findings, line: TrialFields, place: Place) -> None:
    """Keep the place of a trial that a report shows in full."""
    if line.needs_manual_review and len(found.review) < REVIEWS_SHOWN:
        found.review.append(line.trial_id)
        found.places[line.trial_id] = place
    wrong = [severity_rank(c.severity) for c in line.final_claims if c.label == "CONTRADICTED"]
    if not wrong:
        return
    worst = max(wrong)
    kept = found.examples.setdefault(line.target.name, [])
    new_scenario = all(one.scenario_id != line.scenario_id for one in kept)
    if len(kept) < EXAMPLES or (new_scenario and worst >= kept[-1].severity) or worst > kept[-1].severity:
        kept.append(Example(worst, line.scenario_id, line.trial_id))
        kept.sort(key=lambda one: -one.severity)
        del kept[EXAMPLES:]
        found.places[line.trial_id] = place
