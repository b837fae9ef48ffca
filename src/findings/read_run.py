"""One pass over a run's results: the numbers that every table, chart and test needs, and no more.

Lines are decoded only to the fields that are counted (msgspec); replies, claims and quotes stay on disk, except those
of a few trials that a report shows in full. docs/bench_reports.md has the time and memory for a hundred thousand
trials. The hash chain is checked on the way.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from .. import storage
from ..errors import IntegrityError
from ..planning.trials import trials_of
from ..records.base import severity_rank
from ..records.model_name import is_person, is_version_of, names_another, split_name
from ..schemas import GroupRule, JudgeFailure, Manifest, RunPlan, TrialResult, Verdict
from ..store import hash_chain
from ..store.strict_json import fingerprint
from ..trials.missing import has_scores
from ..trials.row import NOT_RECORDED, OPEN_TIE, ClaimCount, Row, claim_counts, is_open_tie, row_of
from ..trials.split_codes import NO_KEYS, Keys, keys_of, split_codes
from ..trials.tables import counts_of, decode
from .cost import CallError, CallTotals, ErrorCounts, count_judge_failure, errors_of, read_calls
from .dollars import Dollars, costs_of
from .isolation import Audit
from .processes import collector_paused, joined, read_in_parts

NOTICES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("notices.toml").read_text(encoding="utf-8"))
EXAMPLES = 3
"""Trials with wrong claims remembered for each target."""
REVIEWS_SHOWN = 10
"""Trials that need manual review which a report shows in full, for each run; the others are only counted."""
MARKED_SHOWN = 10
"""Trials with marked replies which a report shows, for each run."""


@dataclass
class Service:
    """Which model was requested, and which one answered."""

    called: str
    served: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    not_applied: set[str] = field(default_factory=set)
    differs: bool = False
    """Whether a known model other than the one requested answered."""
    unlike: bool = False
    """Whether an id came back that is neither the one requested nor that of a known model."""

    @property
    def as_requested(self) -> Literal["yes", "no", "unknown"]:
        if self.differs:
            return "no"
        return "yes" if self.served and not self.unlike else "unknown"


class GroupKey(NamedTuple):
    target: str
    scenario_id: str
    group: str


class Example(NamedTuple):
    """A trial with at least one wrong claim."""

    severity: int
    """Of its most severe wrong claim."""
    scenario_id: str
    trial_id: str


class PooledRun(NamedTuple):
    """A run whose trials count as further repeats of another's."""

    folder: Path
    before: int
    """Repeats that come before its own."""


class Place(NamedTuple):
    """Where a line is in results.jsonl, in bytes."""

    offset: int
    length: int
    of: PooledRun | None = None
    """None: it is in the run's own file."""


Verifiers = tuple[str, ...]
"""The models of the verifiers of a target, in their order: judge_1, judge_2, ..."""
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
    keys: Keys = NO_KEYS
    """What study codes rest on."""
    closed: frozenset[tuple[str, str]] = frozenset()
    """Scenario and question group of closed questions."""
    services: dict[str, Service] = field(default_factory=dict)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and outcome of the turn."""
    judged: dict[Verifiers, dict[str, Counter[Pattern]]] = field(default_factory=dict)
    """By the models of the verifiers and by scenario: how often they gave each pattern of labels to a claim."""
    noise: dict[Verifiers, dict[str, dict[str, Counter[LabelPair]]]] = field(default_factory=dict)
    """By these models, judge and scenario: labels of the same claims when the judge was asked twice."""
    decided: Counter[str] = field(default_factory=Counter)
    """How claims got their final labels: see `DECIDED`; and of the unresolved ones, `OPEN_TIE`."""
    group_claims: dict[GroupKey, Counter[ClaimCount]] = field(default_factory=dict)
    """By question group: how many scored trials have such counts of claims."""
    audit: Audit = field(default_factory=Audit)
    """Claims that were verified both one per call and in shared calls."""
    dollars: Dollars = field(default_factory=Dollars)
    """Errors that have a cost."""
    readings: Counter[str] = field(default_factory=Counter)
    """Replies by how they were evaluated; sentences and how many are covered."""
    counts: Counter[str] = field(default_factory=Counter)
    """The sums of columns that a report shows: see `trials.tables.COUNTED`."""
    severity_disagreements: int = 0
    judge_failures: Counter[str] = field(default_factory=Counter)
    """By stage."""
    failed_judges: ErrorCounts = field(default_factory=dict)
    """The same by kind of reason."""
    review: list[str] = field(default_factory=list)
    """Ids of trials that need manual review, up to `REVIEWS_SHOWN`."""
    review_reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and kind of reason; the kind is `NOT_RECORDED` in runs of format 1."""
    marked: list[str] = field(default_factory=list)
    """Ids of trials with marked replies, up to `MARKED_SHOWN`."""
    wrong: list[tuple[str, Example]] = field(default_factory=list)
    """While a run is read: target and example of every trial with a wrong claim; examples are taken from them."""
    examples: dict[str, list[Example]] = field(default_factory=dict)
    """By target: the trials with the most severe wrong claims."""
    places: dict[str, Place] = field(default_factory=dict)
    """Where each trial is in results.jsonl."""
    head: str = hash_chain.GENESIS
    sealed: bool = False
    """Whether the run is complete."""
    pooled_as: PooledRun | None = None
    """While a run is read whose trials are pooled with another's."""
    others: tuple[Findings, ...] = ()
    """The runs that are pooled with this one. The plan in the manifest then has the repeats of all."""

    @cached_property
    def calls(self) -> CallTotals:
        """From the journal, which is read once."""
        return read_calls(self.folder, self.manifest, [(one.folder, one.manifest) for one in self.others])

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(one.manifest.run_id for one in (self, *self.others))

    @cached_property
    def errors(self) -> tuple[CallError, ...]:
        """Why calls failed and judges gave no usable answer, those that lost most first."""
        return errors_of(self.calls.errors, self.failed_judges)

    @property
    def nothing_scored(self) -> bool:
        """Whether there are trials, but none that has scores or was refused."""
        return bool(self.rows) and not any(has_scores(row.outcome) for row in self.rows)

    @property
    def example_ids(self) -> list[str]:
        """Trials with the most severe wrong claims, taking the targets in turn."""
        rounds = zip_longest(*(self.examples[target] for target in sorted(self.examples)))
        return [one.trial_id for turn in rounds for one in turn if one is not None]

    @property
    def plan_targets(self) -> tuple[str, ...]:
        """The targets of the study; of a review, those of the selected trials."""
        targets = self.manifest.plan.targets
        if not (self.manifest.transcripts and self.manifest.transcripts.selected):
            return targets
        asked = {trial.target for trial in trials_of(self.manifest)}
        return tuple(target for target in targets if target in asked)

    @property
    def planned(self) -> int:
        """Trials of the study, also if this is a shard of it; of a review, those that were selected."""
        selected = self.manifest.transcripts and self.manifest.transcripts.selected
        return self.manifest.trial_count if selected else self.manifest.plan.trial_count

    @property
    def fake(self) -> bool:
        return has_fake_target(self.manifest.plan)

    @property
    def coded_questions(self) -> int:
        """Different questions that get a study code: question groups of scenarios, without closed ones."""
        return len(self.rules) - len(self.closed)

    @property
    def study_groups(self) -> int:
        """Question groups of the published study among them, each counted once."""
        return len({rule.study_group for rule in self.rules.values() if rule.study_group is not None})

    @property
    def incomplete(self) -> str:
        """That planned trials have no result here; empty if all have."""
        done, shard = len(self.rows), self.manifest.shard
        if done >= self.planned:
            return ""
        text: str = NOTICES["incomplete_shard" if shard else "incomplete"]
        return text.format(done=done, planned=self.planned, shard=shard)

    def open_tie(self, target: str, decided_by: str, labels_given: Sequence[str]) -> bool:
        """Whether a claim has no label because verifiers are tied and the run has no adjudicator."""
        return is_open_tie(self.manifest.plan, target, decided_by, labels_given)

    def of_target(self, target: str) -> list[Row]:
        return [row for row in self.rows if row.target == target]

    def trial(self, trial_id: str) -> TrialResult:
        """One trial, in full."""
        return next(self.decoded([trial_id], TrialResult.model_validate_json))

    def decoded(self, trial_ids: Iterable[str], decode: Callable[[bytes], TrialResult]) -> Iterator[TrialResult]:
        """These trials one by one, read from disk and decoded as the caller needs them."""
        files: dict[Path, BinaryIO] = {}
        try:
            for trial_id in trial_ids:
                place = self.places[trial_id]
                path = (place.of.folder if place.of else self.folder) / storage.RESULTS
                if path not in files:  # without any trial, there may be no file
                    files[path] = path.open("rb")
                files[path].seek(place.offset)
                line = files[path].read(place.length)
                yield _decoded(path, trial_id, line, partial(_decode_renamed, decode, place.of))
        finally:
            for file in files.values():
                file.close()


_TRIAL_ID = re.compile(rb'("trial_id":"[^"\\]*\.r)(\d+)(")')
_REPETITION = re.compile(rb'("repetition":)(\d+)()')


def _renamed(payload: bytes, run: PooledRun | None) -> bytes:
    """A result with the repetition that it has among pooled runs."""
    if run is None:
        return payload
    for number in (_TRIAL_ID, _REPETITION):
        payload = number.sub(lambda found: b"%s%d%s" % (found[1], int(found[2]) + run.before, found[3]), payload, 1)
    return payload


def _decode_renamed(decode: Callable[[bytes], TrialResult], run: PooledRun | None, payload: bytes) -> TrialResult:
    return decode(_renamed(payload, run))


def _decoded(path: Path, trial_id: str, line: bytes, decode: Callable[[bytes], TrialResult]) -> TrialResult:
    split = hash_chain.split_line(line)
    try:
        trial = decode(split[1]) if split else None
    except ValueError as error:  # of msgspec or of Pydantic
        raise IntegrityError(f"{path}: this version cannot read trial {trial_id} ({error}).") from None
    if trial is None or trial.trial_id != trial_id:
        raise IntegrityError(f"{path} changed while it was read.")
    return trial


def judged_offline(plan: RunPlan) -> bool:
    """Whether the rule-based judge took part; not if people judged what it found in replies."""
    if all(map(is_person, plan.all_verifiers)):
        return False
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


@collector_paused()
def gather(folder: Path, manifest: Manifest | None = None, *, pooled_as: PooledRun | None = None) -> Findings:
    """Read a run's results, complete or not. A broken hash chain, or a seal that does not fit, is an IntegrityError."""
    found = Findings(folder, manifest or storage.read_manifest(folder), pooled_as=pooled_as)
    plan = found.manifest.plan
    found.services = {name: Service(api_id) for name, api_id in plan.api_ids.items()}
    found.rules = group_rules(plan)
    found.closed = frozenset(name for name, rule in found.rules.items() if rule.closed)
    found.keys = keys_of(plan, found.rules)
    found.dollars.costs = costs_of(plan)
    found.sealed = storage.read_seal(folder, found.manifest) is not None
    path = folder / storage.RESULTS
    if path.exists() and not _read_in_parts(found, path):
        reader = hash_chain.ChainReader(path, hash_chain.GENESIS)
        for line in reader:
            _add(found, line)
        found.head = reader.head
    for example in found.wrong:
        _remember_example(found, *example)
    found.wrong.clear()
    found.review.sort()
    found.marked.sort()
    return found


_APART = ("folder", "manifest", "rules", "closed", "keys", "head", "sealed", "pooled_as", "others")


def gather_all(folders: Sequence[Path]) -> list[Findings]:
    """Read runs; those of one study are pooled, each counting as further repeats of the first."""
    manifests = [storage.read_manifest(folder) for folder in folders]
    studies: dict[str, list[int]] = {}
    seen: set[tuple[str, str]] = set()
    for place, (folder, manifest) in enumerate(zip(folders, manifests, strict=True)):
        results = folder / storage.RESULTS
        run = manifest.run_id, storage.file_sha256(results) if len(folders) > 1 and results.exists() else ""
        study = None if run in seen else study_of(manifest)
        studies.setdefault(study or f"run {place}", []).append(place)
        seen.add(run)
    return [_pooled([(folders[one], manifests[one]) for one in places]) for places in studies.values()]


def study_of(manifest: Manifest) -> str | None:
    """A fingerprint of what two runs must share to be pooled: all of the plan but seed and repeats.

    None: it is a part of a study, or its replies are not its own, so that it is no repeat of another run.
    """
    plan = manifest.plan
    if manifest.transcripts or manifest.shard or any(plan.settings_of(target).recorded for target in plan.targets):
        return None
    return fingerprint([manifest.format, _compared(plan)])


def why_apart(one: Findings, two: Findings) -> str:
    """Why two runs are not pooled."""
    if set(one.run_ids) & set(two.run_ids) and set(one.head.split(", ")) & set(two.head.split(", ")):
        return "they are the same run"
    if study_of(one.manifest) is None or study_of(two.manifest) is None:
        return "one of them is a part of a study, or judges replies that were recorded before"
    before, after = ({"format": of.manifest.format, **_compared(of.manifest.plan)} for of in (one, two))
    names = [name.replace("_", " ") for name in {**before, **after} if before.get(name) != after.get(name)]
    return f"they differ in {', '.join(names)}"


def _compared(plan: RunPlan) -> dict[str, Any]:
    kept = plan.model_dump(mode="json", exclude={"seed", "repeats"})
    return {**kept, "scenarios": [{**one, "path": ""} for one in kept["scenarios"]]}


def _pooled(runs: Sequence[tuple[Path, Manifest]]) -> Findings:
    (folder, manifest), *others = runs
    found, before = gather(folder, manifest), manifest.plan.repeats
    read = []
    for folder, own in others:
        other = gather(folder, own, pooled_as=PooledRun(folder, before))
        before += own.plan.repeats
        other.dollars.costs = {}
        for name in set(vars(other)) - {*_APART, "services"}:
            setattr(found, name, joined(getattr(found, name), getattr(other, name)))
        joined(found.services, other.services)
        found.sealed = found.sealed and other.sealed
        found.head = f"{found.head}, {other.head}"
        read.append(other)
    if read:
        found.others = tuple(read)
        found.manifest = manifest.model_copy(update={"plan": manifest.plan.model_copy(update={"repeats": before})})
        for examples in found.examples.values():
            examples.sort(key=lambda one: -one.severity)
            del examples[EXAMPLES:]
        found.review.sort()
        found.marked.sort()
        del found.review[REVIEWS_SHOWN:], found.marked[MARKED_SHOWN:]
    return found


def _read_in_parts(found: Findings, path: Path) -> bool:
    """Read a large file in several processes; whether it was done."""
    parts = read_in_parts(path, lambda lines: _read_part(found, lines))
    for part, found.head in parts:
        for name, value in part.items():
            setattr(found, name, joined(getattr(found, name), value))
    del found.review[REVIEWS_SHOWN:], found.marked[MARKED_SHOWN:]
    return bool(parts)


def _read_part(empty: Findings, lines: Iterator[hash_chain.ChainedLine]) -> dict[str, Any]:
    """What is found in some of a run's lines: the fields of `Findings` that lines add to."""
    part = Findings(empty.folder, empty.manifest, keys=empty.keys, closed=empty.closed, pooled_as=empty.pooled_as)
    part.dollars.costs = empty.dollars.costs
    for line in lines:
        _add(part, line)
    part.dollars.costs = {}
    return {name: value for name, value in vars(part).items() if name not in _APART}


def _add(found: Findings, raw: hash_chain.ChainedLine) -> None:
    try:
        payload = _renamed(raw.payload, found.pooled_as)
        line = decode(payload)
        split = split_codes(line, payload, found.keys)
    except msgspec.ValidationError as error:
        path = found.folder / storage.RESULTS
        raise IntegrityError(f"{path}, line {raw.number}: this version cannot read the result ({error}).") from None
    by_group = claim_counts(line)
    found.rows.append(row_of(line, by_group, split, found.closed))
    for group, counts in by_group.items() if line.outcome == "scored" else ():
        key = GroupKey(line.target.name, line.scenario_id, group)
        found.group_claims.setdefault(key, Counter())[counts] += 1
    for exchange in line.conversation:
        found.turns[line.target.name, exchange.outcome] += 1
    _add_services(found, line)
    _add_judging(found, line)
    found.audit.add(line, found.manifest.plan.judges_of(line.target.name).verifiers)
    _add_review(found, line)
    found.dollars.add(line)
    found.places[line.trial_id] = Place(raw.offset, raw.length, found.pooled_as)
    _remember(found, line)


def _add_services(found: Findings, line: TrialResult) -> None:
    target = found.services.setdefault(line.target.name, Service(line.target.name))
    target.served.update(line.target.served_models)
    target.fingerprints.update(line.target.fingerprints)
    target.not_applied.update(line.target.not_applied)
    if line.target.served_as_requested is False:
        _compare(target, line.target.name, line.target.served_models)
    for judge in line.judge_services:
        service = found.services.setdefault(judge.model, Service(judge.model))
        service.served.update(judge.served_models)
        service.not_applied.update(judge.not_applied)
        if judge.served_as_requested is False:
            _compare(service, judge.model, judge.served_models)


def _compare(service: Service, name: str, served: Sequence[str]) -> None:
    """Note the served ids that are not the one requested, of which the record says that there are some."""
    for other in [one for one in served if not is_version_of(one, service.called)] or served:
        named = names_another(name, other)
        service.differs |= named
        service.unlike |= not named


def _add_judging(found: Findings, line: TrialResult) -> None:
    verifiers = found.manifest.plan.judges_of(line.target.name).verifiers
    patterns = found.judged.setdefault(verifiers, {}).setdefault(line.scenario_id, Counter())
    patterns.update(_label_patterns(list(line.verdicts.values())))
    for judge, repeats in line.repeat_verdicts.items():
        first = {v.claim_id: v.label for v in line.verdicts.get(judge, ())}
        by_judge = found.noise.setdefault(verifiers, {})
        pairs = by_judge.setdefault(judge, {}).setdefault(line.scenario_id, Counter())
        for repeat in repeats:
            again = {v.claim_id: v.label for v in repeat}
            for claim_id in first.keys() | again.keys():
                pairs[first.get(claim_id), again.get(claim_id)] += 1
    found.decided.update([claim.decided_by for claim in line.final_claims])
    unresolved = [claim for claim in line.final_claims if claim.decided_by == "unresolved"]
    target = line.target.name
    found.decided[OPEN_TIE] += sum(found.open_tie(target, one.decided_by, one.labels_given) for one in unresolved)
    for reading in line.readings:
        found.readings[reading.how] += 1
        found.readings["sentences"] += reading.sentences
        found.readings["covered_first"] += reading.covered_first
        found.readings["covered"] += reading.covered
    for name, n in counts_of(line):
        found.counts[name] += n
    found.severity_disagreements += line.severity_disagreements
    for failure in line.judge_failures:
        found.judge_failures[failure.stage] += 1
        model = _judge_model(found.manifest.plan, line.target.name, failure)
        example = f"{line.trial_id}|{failure.stage}|{failure.turn_id}|{failure.judge}"
        count_judge_failure(found.failed_judges, failure.stage, model, failure.reason, example)


def _judge_model(plan: RunPlan, target: str, failure: JudgeFailure) -> str:
    judges = plan.judges_of(target)
    if failure.stage == "verifier":
        return dict(enumerate(judges.verifiers, 1)).get(failure.judge, "")
    models = {
        "questioner": plan.questioner,
        "extractor": judges.extractor,
        "scorer": judges.scorer,
        "adjudicator": judges.adjudicator,
    }
    return models.get(failure.stage) or ""


def _label_patterns(by_judge: list[tuple[Verdict, ...]]) -> Iterable[tuple[str | None, ...]]:
    """The labels that the judges gave to each claim; None where a judge gave none."""
    ids = [[verdict.claim_id for verdict in verdicts] for verdicts in by_judge]
    labels = [[verdict.label for verdict in verdicts] for verdicts in by_judge]
    if all(one == ids[0] for one in ids[1:]):
        return zip(*labels, strict=True)
    known = [dict(zip(*both, strict=True)) for both in zip(ids, labels, strict=True)]
    return [tuple(one.get(name) for one in known) for name in dict.fromkeys(name for some in ids for name in some)]


def _add_review(found: Findings, line: TrialResult) -> None:
    if not line.needs_manual_review:
        return
    reasons = line.review_reasons
    kinds = {NOT_RECORDED} if reasons is None else {reason.kind for reason in reasons}
    found.review_reasons.update((line.target.name, kind) for kind in kinds)


def _remember(found: Findings, line: TrialResult) -> None:
    """Keep the id of a trial that a report shows in full."""
    if line.needs_manual_review and len(found.review) < REVIEWS_SHOWN:
        found.review.append(line.trial_id)
    if any(reading.marked for reading in line.readings) and len(found.marked) < MARKED_SHOWN:
        found.marked.append(line.trial_id)
    wrong = [severity_rank(c.severity) for c in line.final_claims if c.label == "CONTRADICTED"]
    if wrong:
        found.wrong.append((line.target.name, Example(max(wrong), line.scenario_id, line.trial_id)))


def _remember_example(found: Findings, target: str, new: Example) -> None:
    """Keep a trial among the examples of its target if it is more severe, or as severe and of another scenario."""
    kept = found.examples.setdefault(target, [])
    new_scenario = all(one.scenario_id != new.scenario_id for one in kept)
    if len(kept) < EXAMPLES or (new_scenario and new.severity >= kept[-1].severity) or new.severity > kept[-1].severity:
        kept.append(new)
        kept.sort(key=lambda one: -one.severity)
        del kept[EXAMPLES:]
