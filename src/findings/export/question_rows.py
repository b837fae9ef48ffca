"""Rows about questions: how each answer is coded and counts in estimates, and how human counselors answered."""

from __future__ import annotations

from collections.abc import Iterator

from ...schemas import CODES, QuestionCode, TrialResult
from ..analysis.baseline import Baseline
from ..analysis.human_comparison import Rules, kind_of, study_questions, study_rules
from ..analysis.missing import MISSING as LEFT_OUT
from ..analysis.missing import counted_code
from .columns import JOINED, Cell, Row

_FAILED = frozenset({"transient", "timeout", "rate_limited", "malformed", "permanent"})
"""Outcomes of a turn after which the tables say `failed`."""


def _turn_outcomes(code: QuestionCode, result: TrialResult) -> list[str]:
    outcomes = {exchange.turn_id: exchange.outcome for exchange in result.conversation}
    return [outcomes.get(turn_id, "not_asked") for turn_id in code.turn_ids]


def counted_of(code: QuestionCode, result: TrialResult) -> str:
    """The study code of a question as it counts in estimates; not for closed questions."""
    return counted_code(code.code or "", _turn_outcomes(code, result))


def _why(code: QuestionCode, result: TrialResult, *, closed: bool) -> str:
    return "closed_question" if closed else why_not_counted(code, result)


def why_not_counted(code: QuestionCode, result: TrialResult) -> str:
    """Why a question is in no estimate: a name of `MISSING`."""
    if code.code is None:
        return "closed_question"
    if result.outcome in ("questioner_failure", "tampered"):
        return result.outcome
    for outcome in _turn_outcomes(code, result):
        if outcome not in ("answered", "skipped"):
            return "failed" if outcome in _FAILED else outcome
    failed = {failure.turn_id for failure in result.judge_failures}
    return "judge_failure" if failed & {*code.turn_ids, "-"} else "unresolved"


def question_row(code: QuestionCode, result: TrialResult, rules: Rules, compared: frozenset[tuple[str, str]]) -> Row:
    """What a question group of a trial adds to the question table."""
    rule = rules.get((result.scenario_id, code.question_group))
    closed = bool(rule and rule.closed) or code.answer is not None
    counted = counted_of(code, result) if code.code and not closed else LEFT_OUT
    level = None if counted == LEFT_OUT else counted
    return {
        "question_group": code.question_group,
        "study_group": rule.study_group if rule else None,
        "topic": rule.topic if rule else None,
        "turn_ids": _list(code.turn_ids),
        "lookup_dependent": code.lookup_dependent,
        "code": code.code,
        "code_missing": "closed_question" if code.code is None else None,
        "counted_code": level,
        "counted_code_missing": _why(code, result, closed=closed) if level is None else None,
        "compared": code.code is not None and (result.scenario_id, code.question_group) in compared,
        "answer": code.answer,
        "answer_missing": None if code.answer else "incomplete_data" if closed else "open_question",
        "reason": code.reason,
        "points_met": _list([made.point for made in code.points_met]),
        "points_missed": _list(code.points_missed),
        "partial_points_met": _list([made.point for made in code.partial_points_met]),
        "wrong": _list([backing.claim_id for backing in code.wrong]),
        "minor": _list([backing.claim_id for backing in code.minor]),
        "fabricated": _list(code.fabricated),
        "looked_up": _list([one.quote for one in code.looked_up]),
        "looked_up_unchecked": sum(not one.checked for one in code.looked_up),
        "own_code": code.own.code if code.own else None,
        "own_points_met": _list([made.point for made in code.own.points_met]) if code.own else None,
        "own_points_missed": _list(code.own.points_missed) if code.own else None,
    }


def _list(parts: tuple[str, ...] | list[str]) -> str | None:
    return JOINED.join(parts) or None


def like_for_like(rules: Rules, baseline: Baseline) -> frozenset[tuple[str, str]]:
    """The questions, by scenario and group, on which a target and counselors are compared."""
    ours = study_rules(rules)
    return frozenset(
        (question.scenario_id, question.group)
        for number, questions in study_questions(rules).items()
        if number in baseline.groups and kind_of(baseline.groups[number], ours.get(number)) == "like"
        for question in questions
    )


def counselor_rows(run_id: str, rules: Rules, baseline: Baseline) -> Iterator[Row]:
    """The human baseline: one row per question group of the published study and mode."""
    ours = study_rules(rules)
    for number, group in sorted(baseline.groups.items()):
        for mode, counts in group.by_mode.items():
            codes: dict[str, Cell] = {code: counts.codes[code] for code in CODES}
            yield {
                "run_id": run_id,
                "study_group": number,
                "topic": group.topic,
                "mode": mode,
                "scenario": group.scenario,
                "shops": counts.shops,
                **codes,
                "lookup_dependent": group.lookup_dependent,
                "comparable": kind_of(group, ours.get(number)) == "like",
                "source": f"{baseline.notes.citation} {baseline.notes.address}, {baseline.notes.read_in}",
            }
