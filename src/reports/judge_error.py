"""Judge error beside a share of study codes: the corrected share, or how far split verdicts could move it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial

from ..findings.code_error import CorrectedShare, JudgeBounds, JudgeError, judge_error
from ..findings.estimates import Question, estimate_groups
from ..findings.human_comparison import study_questions
from ..scoring.definitions import MEASURES, SHARES, ShareName
from ..trials.row import Row
from .document import NOTHING, percent, size_of
from .series import Series


def judge_error_cell(error: JudgeError) -> str:
    """In a column named judge error: `corrected 58% (47–68%)`, `59–66% by split verdicts`."""
    if error.share.value is None:
        return NOTHING
    n = size_of(error.share)
    if error.corrected:
        return f"corrected {corrected_text(error.corrected, n)}"
    if error.bounds is None:
        return "unknown"
    return f"{bounds_text(error.bounds, n)} by split verdicts" if error.bounds.questions else "no split verdict"


def judge_error_sentence(errors: Mapping[ShareName, JudgeError]) -> str:
    """The same for the first screen, of 100 answers, complete ones first; empty if there is no share."""
    listed = [errors[code] for code in SHARES]
    if any(one.share.value is None for one in listed):
        return ""
    corrected = [f"{_of_hundred(one.corrected)} {MEASURES[code].word}" for code, one in errors.items() if one.corrected]
    if corrected:
        left = [
            f"{MEASURES[code].word} answers cannot be corrected" for code, one in errors.items() if not one.corrected
        ]
        return f"Corrected for judge error: {'; '.join([' and '.join(corrected), *left])}."
    if any(one.why_not for one in listed):
        return "The judge check cannot correct these numbers; the section on judges says why."
    bounds = [one.bounds for one in listed if one.bounds]
    if len(bounds) < len(listed):
        return "How often the judges erred is unknown: one model judged. Measure it with judge-check."
    if not any(one.questions for one in bounds):
        return "The judges agreed wherever it could have changed these numbers."
    ranges = " and ".join(bounds_text(one, 0).removesuffix("%") for one in bounds)
    return f"If split verdicts had fallen the other way: {ranges}."


def _of_hundred(corrected: CorrectedShare) -> str:
    return corrected_text(corrected, 0).replace("%", "")


def corrected_text(corrected: CorrectedShare, n: int) -> str:
    """58% (47–68%)"""
    assert corrected.value is not None and corrected.low is not None and corrected.high is not None
    value, low, high = (percent(one, n) for one in (corrected.value, corrected.low, corrected.high))
    return f"{value}% ({low}–{high}%)"


def bounds_text(bounds: JudgeBounds, n: int) -> str:
    """59–66%, or 62% if both ends are the same."""
    assert bounds.lowest is not None and bounds.highest is not None
    return "–".join(dict.fromkeys(percent(one, n) for one in (bounds.lowest, bounds.highest))) + "%"


def study_judge_errors(series: Series, numbers: Iterable[int]) -> dict[ShareName, JudgeError]:
    """By code: judge error in the share over these question groups of the published study."""
    questions = study_questions(series.run.found.rules)
    wanted = {question for number in numbers for question in questions.get(number, ())}
    run = series.run
    scenarios = {question.scenario_id for question in wanted}
    rows = [_only(row, wanted) for row in series.rows if row.scenario_id in scenarios]
    return {
        code: judge_error(
            rows,
            code,
            partial(estimate_groups, measure=code, wanted=wanted),
            verifiers=run.found.manifest.plan.verifiers,
            check=run.judging.check if run.judging else None,
        )
        for code in SHARES
    }


def _only(row: Row, wanted: Container[Question]) -> Row:
    """The trial without split codes of other questions."""
    if not row.split_codes:
        return row
    kept = tuple(one for one in row.split_codes if Question(row.scenario_id, one.group) in wanted)
    return row._replace(split_codes=kept)
