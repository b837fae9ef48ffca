"""Judge error beside a share of study codes: the corrected share, or how far split verdicts could move it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..analysis.code_error import (
    CORRECTED_CODES,
    CorrectedCode,
    CorrectedShare,
    JudgeBounds,
    JudgeError,
    judge_error,
)
from ..analysis.estimates import estimate_groups
from ..analysis.human_comparison import study_questions
from .document import percent, size_of
from .series import Series

UNKNOWN = "judge error unknown: one model judged, and no judge check corrects it"


def judge_error_text(error: JudgeError) -> str:
    """What to say beside a share, without a full stop; empty if there is no share.

    `corrected for judge error 58% (47–68%)`, or `could be 59–66% if split verdicts fell the other way`.
    """
    if error.share.value is None:
        return ""
    n = size_of(error.share)
    if error.corrected:
        return f"corrected for judge error {corrected_text(error.corrected, n)}"
    if error.bounds is None:
        return UNKNOWN
    if not error.bounds.questions:
        return "the judges agreed wherever it could have changed this"
    return f"could be {bounds_text(error.bounds, n)} if split verdicts fell the other way"


def corrected_text(corrected: CorrectedShare, n: int) -> str:
    """58% (47–68%)"""
    assert corrected.value is not None and corrected.low is not None and corrected.high is not None
    value, low, high = (percent(one, n) for one in (corrected.value, corrected.low, corrected.high))
    return f"{value}% ({low}–{high}%)"


def bounds_text(bounds: JudgeBounds, n: int) -> str:
    """59–66%, or 62% if both ends are the same."""
    assert bounds.lowest is not None and bounds.highest is not None
    return "–".join(dict.fromkeys(percent(one, n) for one in (bounds.lowest, bounds.highest))) + "%"


def study_judge_errors(series: Series, numbers: Iterable[int]) -> dict[CorrectedCode, JudgeError]:
    """By code: judge error in the share over these question groups of the published study."""
    questions = study_questions(series.run.found.rules)
    wanted = {question for number in numbers for question in questions.get(number, ())}
    run = series.run
    scenarios = {question.scenario_id for question in wanted}
    rows = [row for row in series.rows if row.scenario_id in scenarios]
    return {
        code: judge_error(
            rows,
            code,
            partial(estimate_groups, measure=code, wanted=wanted),
            verifiers=run.found.manifest.plan.verifiers,
            check=run.judging.check if run.judging else None,
        )
        for code in CORRECTED_CODES
    }
