"""What changed between two runs of the same study: known changes first, then changes in the answers.

The judges come first, because a change of judge looks like a change of target. If the old transcripts were judged
again by the new judges (`rejudge OLD`, given as `--frozen`), the labels that changed there measure the judges' drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import storage
from ..errors import InputError
from ..records.model_name import split_name
from ..schemas import Manifest, TrialResult
from ..scoring.definitions import CODE_HEADINGS, MEASURES
from ..stats.clustered import ClusterCount, ClusteredShare, share_by_unit
from ..stats.drift import Drift, QuestionDrift, drift, question_drift
from ..trials.missing import MISSING, NOT_CODED
from ..trials.row import Row
from .compare_judges import compare_judges, judge_changes
from .estimates import key_coverage
from .judge_agreement import SEED
from .pairs import PairedQuestions, System, key, pair_codes, pair_systems, planned_in
from .read_run import Findings, gather
from .rule_judge import run_notices

ALPHA = 0.05
FLOOR = 0.05
JUDGE_FLOOR = 0.02
"""Share of labels on frozen transcripts that may change before the judges themselves count as drifted."""
ANSWERS_KEPT = 20
"""Changed answers kept with both texts, the largest changes first."""
DECIDING = ("accuracy", "accurate_complete")
"""The measures that decide the verdict on a target."""
KEY_CHANGED, QUESTIONS_CHANGED = "the answer key changed", "the questions changed"
BETTER: dict[str, int] = {
    code: rank for rank, code in enumerate(reversed([code for code in CODE_HEADINGS if code != NOT_CODED]))
}
"""Study code to its rank: a higher one is better."""


@dataclass(frozen=True)
class ChangedAnswer:
    """A question whose study code changed, with both answers."""

    trial_id: str
    group: str
    before: str
    after: str
    question: str
    old_reply: str
    new_reply: str


@dataclass(frozen=True)
class JudgeDrift:
    changed: ClusteredShare
    """Scenarios are the independent units."""
    drifted: bool


@dataclass(frozen=True)
class CoverageChange:
    """Key coverage before and after."""

    before: ClusteredShare
    after: ClusteredShare


@dataclass(frozen=True)
class TargetDrift:
    target: str
    facts: tuple[str, ...]
    """Known changes: served model, fingerprint, parameters, plan year, answer key, questions."""
    measures: dict[str, Drift]
    paired: dict[str, PairedQuestions]
    """By measure: what is behind it, and what is missing."""
    coverage: CoverageChange
    questions: tuple[QuestionDrift, ...]
    answers: tuple[ChangedAnswer, ...]
    """Up to `ANSWERS_KEPT` of them, the largest changes first."""
    answers_changed: int
    """How many there are."""
    verdict: str
    scenarios_needed: int | None = None
    """If nothing changed: how many unchanged scenarios would exclude a change as large as the floor."""


@dataclass(frozen=True)
class Drifts:
    judge_facts: tuple[str, ...]
    judge: JudgeDrift | None
    """None if no frozen transcripts were given."""
    targets: tuple[TargetDrift, ...]
    verdict: str
    notices: tuple[str, ...] = ()
    """What every reader must know before the numbers."""


def measure_drift(old_run: Path, new_run: Path, *, frozen: Path | None = None, floor: float = FLOOR) -> Drifts:
    """Compare two runs of the same study over time.

    `frozen` is the old run's transcripts judged again by the new run's judges. InputError: not a run folder, no target
    in common, or frozen transcripts that do not fit.
    """
    old, new = gather(old_run), gather(new_run)
    targets = [target for target in old.plan_targets if target in new.plan_targets]
    if not targets and len(old.plan_targets) == len(new.plan_targets) == 1:
        pairs = [(old.plan_targets[0], new.plan_targets[0])]
    else:
        pairs = [(target, target) for target in targets]
    if not pairs:
        raise InputError("drift: the runs have no target in common. Give two runs of the same target, or of one each.")
    judge_facts = tuple(_judge_facts(old, new))
    judge = _judge_drift(old, new, frozen) if frozen else None
    trusted = _trusted(old, judge_facts, judge)
    found = tuple(_target(old, new, a, b, floor=floor, trusted=trusted) for a, b in pairs)
    notices = run_notices([old, new])
    return Drifts(judge_facts, judge, found, _overall(one.verdict for one in found), notices)


def _overall(verdicts: Iterable[str]) -> str:
    """The most serious of several verdicts."""
    given = set(verdicts)
    order = ("drifted", "cannot tell", "no evidence", "no change")
    return next((verdict for verdict in order if verdict in given), "cannot tell")


def _trusted(old: Findings, facts: Sequence[str], judge: JudgeDrift | None) -> bool:
    """Whether the judges are known to be the same: shown on frozen transcripts, or all the rule-based judge."""
    if judge:
        return not judge.drifted
    models = old.manifest.plan.judge_models()
    return not facts and all(split_name(model).provider == "offline" for model in models)


def _judge_drift(old: Findings, new: Findings, frozen: Path) -> JudgeDrift:
    plan, judged = new.manifest.plan, storage.read_manifest(frozen).plan
    if frozen.resolve() == old.folder.resolve():
        raise InputError(
            f"`frozen`: {frozen} is the old run itself. Judge it again with `medicare-eval rejudge` first."
        )
    if any(judged.judges_of(name).verifiers != plan.judges_of(name).verifiers for name in judged.targets):
        judges = ", ".join(plan.all_verifiers if plan.judges_by_target else plan.verifiers)
        raise InputError(f"`frozen`: {frozen} was not judged by the judges of the new run. Rejudge with {judges}.")
    compared = compare_judges(old.folder, frozen)
    scenarios = {row.trial_id: row.scenario_id for row in old.rows}
    changed = Counter(scenarios[one.trial_id] for one in compared.changed)
    claims = Counter({name: compared.same_by_scenario[name] + changed[name] for name in scenarios.values()})
    share = share_by_unit([ClusterCount(changed[name], n) for name, n in claims.items()])
    low = share.low if share.low is not None else share.value
    return JudgeDrift(share, low is None or low > JUDGE_FLOOR)  # without a common claim, nothing is known


def _judge_facts(old: Findings, new: Findings) -> Iterator[str]:
    before, after = old.manifest.plan, new.manifest.plan
    yield from judge_changes(old.manifest, new.manifest)
    for model in dict.fromkeys((*before.judge_models(), *after.judge_models())):
        yield from _served(old, new, model, model, "judge ")


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
            yield f"{name}: asked before, not asked now"
    for planned in new.plan.scenarios:
        earlier = before.get(planned.name)
        if earlier is None:
            yield f"{planned.name}: asked now, not asked before"
            continue
        if earlier.answer_key != planned.scenario.answer_key:
            yield f"{planned.name}: {KEY_CHANGED}"
        asked = [turn.user_message for turn in earlier.scripted_turns]
        if asked != [turn.user_message for turn in planned.scenario.scripted_turns]:
            yield f"{planned.name}: {QUESTIONS_CHANGED}"


def _target(old: Findings, new: Findings, a: str, b: str, *, floor: float, trusted: bool) -> TargetDrift:
    before, after = old.of_target(a), new.of_target(b)
    systems = (System(before, planned_in(old.manifest.plan, a)), System(after, planned_in(new.manifest.plan, b)))
    paired = {measure: pair_systems(*systems, measure) for measure in MEASURES}
    same = _identical(old, new, before, after)
    measures = {
        measure: one if same else _with_missing(one, paired[measure])
        for measure in MEASURES
        for one in [drift(paired[measure].pairs, floor=floor, alpha=ALPHA, seed=SEED)]
    }
    facts = tuple(_target_facts(old, new, a, b))
    verdict = _overall(measures[name].verdict for name in DECIDING if paired[name].pairs)
    verdict = "no change" if same else verdict
    changed = any(fact.endswith((KEY_CHANGED, QUESTIONS_CHANGED)) for fact in facts)
    if changed or (verdict == "drifted" and not trusted):
        verdict = "cannot tell"
    moves = _moves(before, after)
    if verdict == "no change" and moves:
        # Means of a question can stay the same while single answers move in both directions.
        verdict = "no evidence"
    return TargetDrift(
        a,
        facts,
        measures,
        paired,
        CoverageChange(key_coverage(before), key_coverage(after)),
        _questions(before, after),
        tuple(_answers(old, new, moves[:ANSWERS_KEPT])),
        len(moves),
        verdict,
        measures["accurate_complete"].clusters_needed if verdict == "no change" else None,
    )


def _identical(old: Findings, new: Findings, before: Sequence[Row], after: Sequence[Row]) -> bool:
    """Whether it is the same run, or every trial has the same outcome, scores and codes, and some answers count."""
    if (old.manifest.run_id, old.head) == (new.manifest.run_id, new.head):
        return True
    first, second = ({key(row): (row.outcome, row.scores, row.counted) for row in rows} for rows in (before, after))
    counts = any(code.value != MISSING for row in before for code in row.counted)
    return counts and first == second


def _with_missing(found: Drift, paired: PairedQuestions) -> Drift:
    """That nothing changed cannot be said if what is missing could hide a change that matters."""
    if found.verdict not in ("no change", "no evidence"):
        return found
    ends = [abs(end) for end in (paired.lowest, paired.highest) if end is not None]
    return replace(found, verdict="cannot tell") if max(ends, default=0.0) >= found.floor else found


def _questions(before: Sequence[Row], after: Sequence[Row]) -> tuple[QuestionDrift, ...]:
    """How the codes of each question moved, by the rule for missing data; a missing answer is no grade."""
    return question_drift(
        [
            (f"{question.scenario_id} {question.group}", BETTER.get(one), BETTER.get(two))
            for question, one, two in pair_codes(before, after)
        ]
    )


_CodeMove = tuple[int, str, str, str, str, str]
"""A changed code: its size, so that the largest comes first, old and new trial, group, code before and after."""


def _moves(before: Sequence[Row], after: Sequence[Row]) -> list[_CodeMove]:
    """Questions whose code changed, the largest change first."""
    others = {key(row): row for row in after}
    moves = []
    for row in before:
        other = others.get(key(row))
        theirs = dict(other.counted) if other else {}
        for group, code in row.counted:
            now = theirs.get(group, MISSING)
            if other and now != code and MISSING not in (now, code):
                size = -abs(BETTER[now] - BETTER[code])
                moves.append((size, row.trial_id, other.trial_id, group, code, now))
    return sorted(moves)


def _answers(old: Findings, new: Findings, wanted: Sequence[_CodeMove]) -> Iterator[ChangedAnswer]:
    """Changed answers with both texts."""
    for _, old_trial, new_trial, group, before, after in wanted:
        question, was = _exchange(old.trial(old_trial), group)
        _, now = _exchange(new.trial(new_trial), group)
        yield ChangedAnswer(old_trial, group, before, after, question, was, now)


def _exchange(result: TrialResult, group: str) -> tuple[str, str]:
    """What was asked, and the reply."""
    code = next(code for code in result.study_codes if code.question_group == group)
    asked = [exchange for exchange in result.conversation if exchange.turn_id in code.turn_ids]
    told = [exchange for exchange in asked if exchange.outcome not in ("skipped", "not_asked")]
    return " / ".join(e.user_message for e in told), "\n\n".join(e.reply for e in told if e.reply)
