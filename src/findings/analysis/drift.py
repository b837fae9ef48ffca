"""What changed between two runs of the same study: as fact first, then in the answers, and whether one can tell.

The judge is looked at first: a change of judge looks like a change of target. Where the old transcripts were judged
again by the new judges (`rejudge OLD`, given as `--frozen`), the labels that changed there measure the judges' drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import storage
from ...errors import InputError
from ...schemas import Manifest, TrialResult
from ...stats.drift import (
    Drift,
    QuestionDrift,
    drift,
    question_drift,
)
from ...stats.intervals import Share, wilson
from ...store import hash_chain
from .compare_judges import compare_judges
from .judge_agreement import SEED
from .pairs import (
    MEASURES,
    key,
    pair,
    pair_codes,
)
from .read_run import Findings, Row

ALPHA = 0.05
FLOOR = 0.05
JUDGE_FLOOR = 0.02
"""Share of labels on frozen transcripts that may change before the judge itself is said to have drifted."""
SHOWN = 20
_BETTER = {
    code: rank for rank, code in enumerate(("incorrect", "not_substantive", "accurate_incomplete", "accurate_complete"))
}


@dataclass(frozen=True)
class SideBySide:
    """One question that was answered differently, with both answers."""

    trial_id: str
    group: str
    before: str
    after: str
    question: str
    old_reply: str
    new_reply: str


@dataclass(frozen=True)
class JudgeDrift:
    changed: Share
    drifted: bool


@dataclass(frozen=True)
class TargetDrift:
    target: str
    facts: tuple[str, ...]
    """What changed as fact: served model, fingerprint, parameters, prompts, key."""
    measures: dict[str, Drift]
    questions: tuple[QuestionDrift, ...]
    answers: tuple[SideBySide, ...]
    verdict: str


@dataclass(frozen=True)
class Drifts:
    judge_facts: tuple[str, ...]
    judge: JudgeDrift | None
    """None where no frozen transcripts were given."""
    targets: tuple[TargetDrift, ...]
    verdict: str


def compare_runs(old: Findings, new: Findings, frozen: Path | None = None, *, floor: float = FLOOR) -> Drifts:
    targets = [target for target in old.plan_targets if target in new.plan_targets]
    if not targets and len(old.plan_targets) == len(new.plan_targets) == 1:
        pairs = [(old.plan_targets[0], new.plan_targets[0])]
    else:
        pairs = [(target, target) for target in targets]
    if not pairs:
        raise InputError("drift: the two runs share no target; give runs of the same target, or of one target each.")
    judge_facts = tuple(_judge_facts(old, new))
    judge = _judge_drift(old, new, frozen) if frozen else None
    trusted = _trusted(old, judge_facts, judge)
    found = tuple(_target(old, new, a, b, floor=floor, trusted=trusted) for a, b in pairs)
    words = [one.verdict for one in found]
    overall = next((word for word in ("drifted", "cannot tell") if word in words), "no evidence")
    return Drifts(judge_facts, judge, found, overall)


def _trusted(old: Findings, facts: Sequence[str], judge: JudgeDrift | None) -> bool:
    """Whether the judges can be taken to be the same: shown on frozen transcripts, or made of the same rules."""
    if judge:
        return not judge.drifted
    return not facts and all(model.startswith("offline:") for model in old.manifest.plan.judge_models())


def _judge_drift(old: Findings, new: Findings, frozen: Path) -> JudgeDrift:
    judges = new.manifest.plan.verifiers
    if frozen.resolve() == old.folder.resolve():
        raise InputError(f"--frozen {frozen}: is the old run itself, which shows nothing; make one by `rejudge`.")
    if storage.read_manifest(frozen).plan.verifiers != judges:
        raise InputError(f"--frozen {frozen}: was judged by others than the new run; rejudge by {', '.join(judges)}.")
    compared = compare_judges(old.folder, frozen)
    changed = len(compared.changed)
    share = wilson(changed, compared.same + changed)
    return JudgeDrift(share, share.low is None or share.low > JUDGE_FLOOR)  # no claim in common shows nothing


def _judge_facts(old: Findings, new: Findings) -> Iterator[str]:
    before, after = old.manifest.plan, new.manifest.plan
    if before.verifiers != after.verifiers or before.adjudicator != after.adjudicator:
        yield f"judges: {', '.join(before.verifiers)} before, {', '.join(after.verifiers)} now"
    for what in ("extractor", "scorer"):
        if getattr(before, what) != getattr(after, what):
            yield f"{what}: {getattr(before, what)} before, {getattr(after, what)} now"
    for version, rubric in before.rubrics.items():
        if version in after.rubrics and rubric.sha256 != after.rubrics[version].sha256:
            yield f"rubric {version} changed"
    for role, prompt in before.prompts.items():
        if prompt.sha256 != after.prompts[role].sha256:
            yield f"prompt of the {role} changed"
    for model in dict.fromkeys((*before.judge_models(), *after.judge_models())):
        yield from _served(old, new, model, model, "judge ")
    versions = old.manifest.versions.get("ai-medicare-eval"), new.manifest.versions.get("ai-medicare-eval")
    if versions[0] != versions[1]:
        yield f"harness {versions[0]} before, {versions[1]} now"


def _served(old: Findings, new: Findings, a: str, b: str, what: str = "") -> Iterator[str]:
    one, two = old.services.get(a), new.services.get(b)
    if not one or not two:
        return
    for name, before, after in (
        ("called as", {one.called}, {two.called}),
        ("served by", one.served, two.served),
        ("fingerprint", one.fingerprints, two.fingerprints),
        ("parameters not applied", one.not_applied, two.not_applied),
    ):
        if before != after:
            yield f"{what}{b}: {name} {_list(before)} before, {_list(after)} now"


def _list(values: set[str]) -> str:
    return ", ".join(sorted(values)) or "nothing"


def _target_facts(old: Findings, new: Findings, a: str, b: str) -> Iterator[str]:
    if a != b:
        yield f"target {a} before, {b} now"
    yield from _served(old, new, a, b)
    before, after = old.manifest.plan, new.manifest.plan
    if before.target_parameters != after.target_parameters:
        yield f"parameters {before.target_parameters.model_dump()} before, {after.target_parameters.model_dump()} now"
    if before.plan_year != after.plan_year:
        yield f"plan year {before.plan_year} before, {after.plan_year} now"
    yield from _key_facts(old.manifest, new.manifest)


def _key_facts(old: Manifest, new: Manifest) -> Iterator[str]:
    before = {planned.name: planned.scenario for planned in old.plan.scenarios}
    names = {planned.name for planned in new.plan.scenarios}
    for name in before:
        if name not in names:
            yield f"{name}: was asked before and is not now"
    for planned in new.plan.scenarios:
        earlier = before.get(planned.name)
        if earlier is None:
            yield f"{planned.name}: is asked now and was not before"
            continue
        if earlier.answer_key != planned.scenario.answer_key:
            yield f"{planned.name}: the key changed"
        asked = [turn.user_message for turn in earlier.scripted_turns]
        if asked != [turn.user_message for turn in planned.scenario.scripted_turns]:
            yield f"{planned.name}: the questions changed"


def _target(old: Findings, new: Findings, a: str, b: str, *, floor: float, trusted: bool) -> TargetDrift:
    before, after = old.of_target(a), new.of_target(b)
    measures = {
        measure: drift(pair(before, after, measure).pairs, floor=floor, alpha=ALPHA, seed=SEED) for measure in MEASURES
    }
    facts = tuple(_target_facts(old, new, a, b))
    words = {name: one.verdict for name, one in measures.items() if name in ("accuracy", "accurate_complete")}
    verdict = next((word for word in ("drifted", "cannot tell") if word in words.values()), "no evidence")
    if not trusted and verdict == "drifted":
        verdict = "cannot tell"
    if any("the key changed" in fact or "the questions changed" in fact for fact in facts):
        verdict = "cannot tell"
    return TargetDrift(a, facts, measures, _questions(before, after), tuple(_answers(old, new, before, after)), verdict)


def _questions(before: Sequence[Row], after: Sequence[Row]) -> tuple[QuestionDrift, ...]:
    """How the codes of each question moved; a code that is no grade (incomplete data) is missing."""
    return question_drift(
        [
            (f"{scenario_id} {group}", _BETTER.get(one), _BETTER.get(two))
            for scenario_id, group, one, two in pair_codes(before, after)
        ]
    )


def _answers(old: Findings, new: Findings, before: Sequence[Row], after: Sequence[Row]) -> Iterator[SideBySide]:
    """Questions whose code changed, the gravest change first, with both answers."""
    others = {key(row): row for row in after}
    changed = []
    for row in before:
        other = others.get(key(row))
        theirs = dict(other.codes) if other else {}
        for group, code in row.codes:
            now = theirs.get(group)
            if other and now and now != code and now in _BETTER and code in _BETTER:
                changed.append((-abs(_BETTER[now] - _BETTER[code]), row.trial_id, other.trial_id, group, code, now))
    wanted = sorted(changed)[:SHOWN]
    old_trials = _read(old.folder, {one[1] for one in wanted})
    new_trials = _read(new.folder, {one[2] for one in wanted})
    for _, mine, theirs_id, group, code, now in wanted:
        question, said = _exchange(old_trials[mine], group)
        _, says = _exchange(new_trials[theirs_id], group)
        yield SideBySide(mine, group, code, now, question, said, says)


def _read(folder: Path, wanted: set[str]) -> dict[str, TrialResult]:
    if not wanted:
        return {}
    found = {}
    for line in hash_chain.ChainReader(folder / storage.RESULTS, hash_chain.GENESIS):
        if storage.trial_id(line.payload) in wanted:
            result = TrialResult.model_validate_json(line.payload)
            found[result.trial_id] = result
    return found


def _exchange(result: TrialResult, group: str) -> tuple[str, str]:
    code = next(code for code in result.study_codes if code.question_group == group)
    asked = [exchange for exchange in result.conversation if exchange.turn_id in code.turn_ids and exchange.reply]
    return " / ".join(e.user_message for e in asked), "\n\n".join(e.reply or "" for e in asked)
