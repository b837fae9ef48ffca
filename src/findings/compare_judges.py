"""Two judgings of the same transcripts, claim by claim: which labels and codes changed, and what each side said.

Claims may have been extracted again, so they are matched within a reply by what they quote (`text.quotes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from .. import storage
from ..errors import InputError
from ..schemas import Claim, FinalClaim, Manifest, RunPlan, TrialResult
from ..text.quotes import Pair, Placed, best_pairs, ranked_pairs
from .read_run import software_version
from .rule_judge import offline_notices


def judge_changes(old: Manifest, new: Manifest) -> Iterator[str]:
    """One clause for each difference."""
    before, after = old.plan, new.plan
    for what, was, now in (
        *_who_judged(before, after),
        ("claims per verifier call", before.isolation, after.isolation),
        ("background facts", str(len(before.background)), str(len(after.background))),
        ("judge parameters", _parameters(before), _parameters(after)),
    ):
        if was != now:
            yield f"{what}: {was} before, {now} now"
    for version, rubric in before.rubrics.items():
        if version in after.rubrics and rubric.sha256 != after.rubrics[version].sha256:
            yield f"rubric {version} changed"
    for role, prompt in before.prompts.items():
        if prompt.sha256 != after.prompts[role].sha256:
            yield f"prompt of the {role} changed"
    was_version, now_version = software_version(old), software_version(new)
    if was_version != now_version:
        yield f"medicare-eval {was_version} before, {now_version} now"
    if old.format != new.format:
        yield f"run format {old.format} before, {new.format} now: the rules that turn verdicts into results changed"


def _who_judged(before: RunPlan, after: RunPlan) -> Iterator[tuple[str, str, str]]:
    """What somebody does, and who did before and does now: for all targets, or for each that both have."""
    differ = bool(before.judges_by_target or after.judges_by_target)
    for target in [name for name in after.targets if name in before.targets] if differ else after.targets[:1]:
        one, two, of = before.judges_of(target), after.judges_of(target), f" of {target}" if differ else ""
        yield f"judges{of}", ", ".join(one.verifiers), ", ".join(two.verifiers)
        yield f"adjudicator{of}", one.adjudicator or "none", two.adjudicator or "none"
        yield f"extractor{of}", one.extractor, two.extractor
        yield f"scorer{of}", one.scorer, two.scorer


def _parameters(plan: RunPlan) -> str:
    limits = plan.judge_parameters
    return f"temperature {limits.temperature}, at most {limits.max_tokens} tokens"


@dataclass(frozen=True)
class Side:
    """What one run concluded about a claim."""

    text: str
    label: str | None
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    """One per judge."""


@dataclass(frozen=True)
class Change:
    trial_id: str
    turn_id: str
    quote: str
    before: Side
    after: Side


@dataclass(frozen=True)
class ChangedCode:
    """A question whose study code changed, with the reason for each code; None if a run gave none."""

    trial_id: str
    question_group: str
    before: str | None
    after: str | None
    reason_before: str
    reason_after: str


class LabelChange(NamedTuple):
    first: str | None
    second: str | None


class OutcomeChange(NamedTuple):
    first: str
    second: str


class CodeChange(NamedTuple):
    question_group: str
    first: str
    second: str


@dataclass
class JudgesCompared:
    trials: int = 0
    same: int = 0
    same_by_scenario: Counter[str] = field(default_factory=Counter)
    changed: list[Change] = field(default_factory=list)
    moves: Counter[LabelChange] = field(default_factory=Counter)
    """Labels in the first and the second run, over matched claims."""
    gone: int = 0
    """Claims of the first run that match no claim of the second."""
    new: int = 0
    codes_same: int = 0
    codes_changed: Counter[CodeChange] = field(default_factory=Counter)
    changed_codes: list[ChangedCode] = field(default_factory=list)
    outcomes_changed: Counter[OutcomeChange] = field(default_factory=Counter)
    differences: tuple[str, ...] = ()
    """What differs between the judgings: models, prompts, rules."""
    notices: tuple[str, ...] = ()
    """What every reader must know before the numbers."""


def same_transcripts(first: Path, second: Path) -> bool:
    """Whether one run judged the other's transcripts again, or both judged those of a third."""
    one, two = storage.read_manifest(first), storage.read_manifest(second)
    names = {one.run_id, *((one.transcripts.run_id,) if one.transcripts else ())}
    return bool(two.transcripts and two.transcripts.run_id in names) or bool(
        one.transcripts and one.transcripts.run_id == two.run_id
    )


def compare_judges(first: Path, second: Path) -> JudgesCompared:
    """Compare two judgings claim by claim; InputError if their transcripts differ."""
    manifests = storage.read_manifest(first), storage.read_manifest(second)
    found = JudgesCompared(differences=tuple(judge_changes(*manifests)), notices=offline_notices(manifests))
    for one, two in zip_longest(*_in_common(first, second, manifests)):
        if one is None or two is None or not _same_replies(one, two):
            trial = one or two
            raise InputError(
                f"{first} and {second} have different transcripts (first at trial {trial.trial_id if trial else '?'}). "
                "Judges can only be compared on the same transcripts; make the second run with `medicare-eval rejudge`."
            )
        found.trials += 1
        if one.outcome != two.outcome:
            found.outcomes_changed[OutcomeChange(one.outcome, two.outcome)] += 1
        _compare_claims(found, one, two)
        _compare_codes(found, one, two)
    return found


def _in_common(
    first: Path, second: Path, manifests: tuple[Manifest, Manifest]
) -> tuple[Iterable[TrialResult], Iterable[TrialResult]]:
    """The results of both; if one judged only a part of the trials again, those of that part."""
    parts = [one.transcripts.selected for one in manifests if one.transcripts and one.transcripts.selected]
    if not parts:
        return _results(first), _results(second)
    wanted = set.intersection(*({*part.chosen, *part.sampled} for part in parts))
    one, two = ([trial for trial in _results(run) if trial.trial_id in wanted] for run in (first, second))
    return one, two


def _results(run: Path) -> storage.StoredResults:
    return storage.StoredResults(run, storage.read_manifest(run))


def _same_replies(one: TrialResult, two: TrialResult) -> bool:
    return one.trial_id == two.trial_id and [(e.turn_id, e.reply) for e in one.conversation] == [
        (e.turn_id, e.reply) for e in two.conversation
    ]


def _compare_claims(found: JudgesCompared, one: TrialResult, two: TrialResult) -> None:
    before, after = _judged(one), _judged(two)
    pairs = _matched(before, after)
    for mine, theirs in pairs:
        was, now = one.final_claims[mine], two.final_claims[theirs]
        found.moves[LabelChange(was.label, now.label)] += 1
        if was.label == now.label:
            found.same += 1
            found.same_by_scenario[one.scenario_id] += 1
        else:
            quote = _quote(one, before[mine])
            found.changed.append(Change(one.trial_id, was.turn_id, quote, _side(one, was), _side(two, now)))
    found.gone += len(before) - len(pairs)
    found.new += len(after) - len(pairs)


def _judged(result: TrialResult) -> list[Claim]:
    """The claims that have a final label or none, in the order of these."""
    claims = {claim.claim_id: claim for claim in result.claims}
    return [claims[final.claim_id] for final in result.final_claims]


def _matched(before: Sequence[Claim], after: Sequence[Claim]) -> list[Pair]:
    """The claims that are the same in both, in the order of the first; each claim is in one pair at most."""
    turns = dict.fromkeys(claim.turn_id for claim in before)
    pairs: list[Pair] = []
    for turn_id in turns:
        mine = [at for at, claim in enumerate(before) if claim.turn_id == turn_id]
        theirs = [at for at, claim in enumerate(after) if claim.turn_id == turn_id]
        ranked = ranked_pairs(
            *([Placed(claims[at].text, claims[at].quote_spans) for at in places]
              for claims, places in ((before, mine), (after, theirs)))
        )  # fmt: skip
        pairs += [Pair(mine[one], theirs[two]) for one, two in best_pairs(ranked)]
    return sorted(pairs)


def _quote(result: TrialResult, claim: Claim) -> str:
    reply = next(exchange.reply or "" for exchange in result.conversation if exchange.turn_id == claim.turn_id)
    return " … ".join(reply[span.start : span.end] for span in claim.quote_spans)


def _side(result: TrialResult, final: FinalClaim) -> Side:
    reasons = tuple(
        f"{judge}: {verdict.label}, {verdict.notes}"
        for judge, verdicts in result.verdicts.items()
        for verdict in verdicts
        if verdict.claim_id == final.claim_id
    )
    return Side(final.text, final.label, final.evidence, reasons)


def _compare_codes(found: JudgesCompared, one: TrialResult, two: TrialResult) -> None:
    before = {code.question_group: code for code in one.study_codes}
    after = {code.question_group: code for code in two.study_codes}
    for group in dict.fromkeys((*before, *after)):
        was, now = before.get(group), after.get(group)
        first, second = was.code if was else None, now.code if now else None
        if first == second:
            found.codes_same += first is not None
            continue
        found.codes_changed[CodeChange(group, str(first), str(second))] += 1
        reasons = was.reason if was else "", now.reason if now else ""
        found.changed_codes.append(ChangedCode(one.trial_id, group, first, second, *reasons))
