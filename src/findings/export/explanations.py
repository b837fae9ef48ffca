"""Why a trial got its scores, in words, for a viewer that shows a sentence beside each number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ...records.base import SEVERITIES
from ...schemas import Confidence, FinalClaim, QuestionCode, Scenario, TrialResult
from ...scoring.definitions import CODE_HEADINGS, MEASURES
from ...text.count import counted
from ...text.escape import plain
from ...trials.columns import MISSING
from ...trials.missing import MISSING as LEFT_OUT
from ...trials.missing import measured_score
from ...trials.tables import counted_of, why_no_score, why_not_counted
from ..analysis.human_comparison import Rules

COMPLETE = "accurate_complete"
LISTED = 10
"""A list of claims or points is cut after this many; all are in the tables and in the sample's metadata."""
_TEXT = 300
_HEADINGS = {str(code): heading for code, heading in CODE_HEADINGS.items()}


@dataclass(frozen=True)
class Explained:
    value: float | None
    answer: str
    """What was counted, in a few words."""
    why: str
    missing: str | None = None
    """A name of `MISSING` if there is no value."""


@dataclass(frozen=True)
class Words:
    """What the ids in a scenario's results stand for."""

    facts: Mapping[str, str]
    topics: Mapping[str, str]
    """By question group."""
    closed: frozenset[str] = frozenset()
    """Question groups that are in no estimate."""

    @classmethod
    def of(cls, scenario: Scenario, rules: Rules) -> Words:
        key = scenario.answer_key
        facts = {fact.fact_id: fact.statement for fact in key.canonical_facts}
        facts |= {fact.library: fact.statement for fact in key.canonical_facts if fact.library}
        facts |= {one.claim_id: f"it is wrong to say: {one.statement}" for one in key.disallowed()}
        mine = {group: rule for (name, group), rule in rules.items() if name == scenario.scenario_id}
        closed = frozenset(group for group, rule in mine.items() if rule.closed)
        return cls(facts, {group: rule.topic for group, rule in mine.items()}, closed)


NO_WORDS = Words({}, {})


def explained(result: TrialResult, name: str, words: Words) -> Explained:
    """A trial's score of this name, or its share of accurate and complete answers, and why it is so."""
    if name == COMPLETE:
        return _complete(result, words)
    score: float | None = getattr(result.final_scores, name) if result.final_scores else None
    value = measured_score(result.outcome, name, score).value
    if value is None:
        reason = why_no_score(result)
        return Explained(None, "", f"No score: {MISSING[reason].meaning}.{_details(result)}", reason)
    if result.outcome != "scored":
        return Explained(value, "", f"Counted as {value:g}: {MISSING[result.outcome].meaning}.")
    explain = {
        "accuracy": _accuracy,
        "completeness": _completeness,
        "safety_risk": _safety_risk,
        "calibration": _calibration,
    }.get(name)
    return explain(result, value, words) if explain else Explained(value, "", _formula(name))


def _formula(name: str) -> str:
    return f"{MEASURES[name].formula.capitalize()}."


def _details(result: TrialResult) -> str:
    found = [f"{one.turn_id}: {one.detail}" for one in result.conversation if one.detail]
    found += [f"{one.stage} on {one.turn_id}: {one.reason}" for one in result.judge_failures]
    return _bullets("Details", found)


def _bullets(title: str, items: Sequence[str]) -> str:
    """A titled list in Markdown; nothing if it is empty."""
    if not items:
        return ""
    lines = [f"- {_short(item)}" for item in items[:LISTED]]
    if len(items) > LISTED:
        lines.append(f"- and {len(items) - LISTED} more")
    return "\n\n".join([f"\n\n{title}:", "\n".join(lines)])


def _short(item: str) -> str:
    """An item in one line."""
    text = plain(" ".join(item.split()))
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _labeled(result: TrialResult, label: str | None) -> list[FinalClaim]:
    return [claim for claim in result.final_claims if claim.label == label]


def _accuracy(result: TrialResult, value: float, words: Words) -> Explained:
    right, wrong = _labeled(result, "SUPPORTED"), _labeled(result, "CONTRADICTED")
    decided = len(right) + len(wrong)
    rest = [f"{len(_labeled(result, 'NOT_IN_KEY'))} more are not in the key"]
    if still_open := len(_labeled(result, None)):
        rest.append(f"the judges left {still_open} open")
    agree = counted(len(right), "claim agrees", "claims agree")
    against = counted(len(wrong), "contradicts", "contradict")
    why = f"{agree} with the answer key, and {against} it; {' and '.join(rest)}."
    return Explained(value, f"{len(right)} of {decided} claims", why + _bullets("Contradicted", _errors(wrong, words)))


def _errors(claims: Iterable[FinalClaim], words: Words) -> list[str]:
    return [
        f"“{claim.text}” (severity {claim.severity}). The key: {'; '.join(_in_words(claim.evidence, words)) or '-'}"
        for claim in claims
    ]


def _in_words(ids: Iterable[str], words: Words) -> list[str]:
    """Points in words; a point that several facts can make has their ids joined by `|`."""
    return [" / ".join(words.facts.get(one, one) for one in point.split("|")) for point in ids]


def _completeness(result: TrialResult, value: float, words: Words) -> Explained:
    missed = _in_words(result.missing_required_points, words)
    names = dict.fromkeys(made.point for code in result.study_codes for made in code.points_met)
    made = _in_words((name for name in names if name not in result.missing_required_points), words)
    why = f"{counted(len(missed), 'required point was', 'required points were')} missed."
    listed = _bullets("Missed", missed) + _bullets("Made", made)
    return Explained(value, f"{len(missed)} missed", why + listed)


def _safety_risk(result: TrialResult, value: float, words: Words) -> Explained:
    wrong = _labeled(result, "CONTRADICTED")
    found = Counter(claim.severity for claim in wrong)
    by_severity = ", ".join(f"{found[one]} {one}" for one in reversed(SEVERITIES) if found[one])
    if not wrong:
        return Explained(value, "no wrong claim", "No claim contradicts the answer key.")
    why = f"{counted(len(wrong), 'claim contradicts', 'claims contradict')} the answer key, by severity: {by_severity}."
    return Explained(value, by_severity, why + _bullets("Contradicted", _errors(wrong, words)))


def _calibration(result: TrialResult, value: float, words: Words) -> Explained:
    sounds = {claim.claim_id: claim.confidence for claim in result.claims}
    found = Counter((sounds.get(claim.claim_id), claim.label) for claim in result.final_claims)
    lines = [
        f"{level} confidence: {found[level, 'SUPPORTED']} right, {found[level, 'CONTRADICTED']} wrong"
        for level in get_args(Confidence)
        if found[level, "SUPPORTED"] or found[level, "CONTRADICTED"]
    ]
    return Explained(value, "", _formula("calibration") + _bullets("Claims that the key decides", lines))


def _coded(result: TrialResult, words: Words) -> list[QuestionCode]:
    return [code for code in result.study_codes if code.code and code.question_group not in words.closed]


def levels_of(result: TrialResult, words: Words) -> dict[str, str]:
    """By question group, the study code as it counts in estimates; closed questions are in none."""
    return {code.question_group: counted_of(code, result) for code in _coded(result, words)}


def _complete(result: TrialResult, words: Words) -> Explained:
    coded = _coded(result, words)
    levels = levels_of(result, words)
    held = [level for level in levels.values() if level != LEFT_OUT]
    lines = []
    for code in coded:
        topic = words.topics.get(code.question_group)
        name = f"{code.question_group} ({topic})" if topic else code.question_group
        level = levels[code.question_group]
        if level == LEFT_OUT:
            lines.append(f"{name}: left out, {MISSING[why_not_counted(code, result)].meaning}")
        else:
            lines.append(f"{name}: {_HEADINGS[level]}. {code.reason}")
    listed = _bullets("By question", lines)
    if not held:
        reason = why_not_counted(coded[0], result) if coded else why_no_score(result)
        return Explained(None, "", f"No question of this trial counts: {MISSING[reason].meaning}.{listed}", reason)
    complete = sum(level == COMPLETE for level in held)
    why = f"{complete} of {counted(len(held), 'question was', 'questions were')} answered accurately and completely."
    return Explained(complete / len(held), f"{complete} of {len(held)} questions", why + listed)
