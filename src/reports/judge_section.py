"""The judges: how well they agree with each other and with themselves, and what their errors change in a result."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial

from ..findings.code_error import JudgedShare, judge_error
from ..findings.estimates import Question, estimate_groups, key_coverage
from ..findings.human_comparison import study_questions
from ..records.model_name import family
from ..scoring.definitions import CODE_HEADINGS, MEASURES, SHARES, ShareName
from ..trials.row import DECIDED, LABELS, OPEN_TIE, Row
from ..trials.tables import COUNTED
from . import read_sections
from .document import NOTHING, Section, percent, shown, size_of
from .score_section import COVERAGE_COLUMNS, knows_tampered
from .series import ReportedTarget, Runs


def judging_section(runs: Runs) -> Section:
    judged = [run for run in runs.runs if run.judging]
    panels = [one.verifiers for run in judged if run.judging for one in run.judging.agreements]
    errors = [(series, code, error) for series in runs.series for code, error in series.judge_errors.items()]
    coded = [(series, code, error) for series, code, error in errors if error.share.value is not None]
    not_corrected: dict[tuple[ShareName, str], list[str]] = {}
    for series, code, error in coded:
        if error.why_not:
            not_corrected.setdefault((code, error.why_not), []).append(series.label)
    return read_sections.section(
        "judges",
        "judging",
        runs=runs,
        judged=judged,
        apart=[run for run in judged if run.judging and len(run.judging.agreements) > 1],
        tampered=any(knows_tampered(run.found) for run in runs.runs),
        one_family=dict.fromkeys(
            names if len(set(names)) == 1 else () for names in panels if len({family(name) for name in names}) == 1
        ),
        coded=coded,
        unmeasured=any(
            error.bounds is None and not (one.run.judging and one.run.judging.check) for one, _, error in errors
        ),
        not_corrected=not_corrected,
        decided=DECIDED,
        open_tie=OPEN_TIE,
        labels=LABELS,
        counts=COUNTED,
        headings=CODE_HEADINGS,
        coverage_column=COVERAGE_COLUMNS[0],
        key_coverage=key_coverage,
        corrected_text=corrected_text,
        bounds_text=bounds_text,
    )


def judge_error_cell(error: JudgedShare) -> str:
    """In a column named judge error: `corrected 58% (47–68%)`, `59–66% by split verdicts`."""
    if error.share.value is None:
        return NOTHING
    if error.corrected:
        return f"corrected {corrected_text(error)}"
    if error.bounds is None:
        return "unknown"
    return f"{bounds_text(error)} by split verdicts" if error.bounds.questions else "no split verdict"


def judge_error_sentence(errors: Mapping[ShareName, JudgedShare]) -> str:
    """The same for the first screen, of 100 answers, complete ones first; empty if there is no share."""
    found = read_sections.line(
        "judges", "error_sentence", errors=[(MEASURES[code].word, errors[code]) for code in SHARES],
        corrected_text=corrected_text, bounds_text=bounds_text,
    )  # fmt: skip
    return shown(found)


def corrected_text(error: JudgedShare, n: int | None = None) -> str:
    """58% (47–68%); a dash if the share is not corrected. `n` decides on decimals, in place of the share's own."""
    one = error.corrected
    if one is None or one.value is None or one.low is None or one.high is None:
        return NOTHING
    value, low, high = (
        percent(end, size_of(error.share) if n is None else n) for end in (one.value, one.low, one.high)
    )
    return f"{value}% ({low}–{high}%)"


def bounds_text(error: JudgedShare, n: int | None = None) -> str:
    """59–66%, or 62% if both ends are the same; a dash if they are not known."""
    one = error.bounds
    if one is None or one.lowest is None or one.highest is None:
        return NOTHING
    ends = (percent(end, size_of(error.share) if n is None else n) for end in (one.lowest, one.highest))
    return "–".join(dict.fromkeys(ends)) + "%"


def study_judge_errors(series: ReportedTarget, numbers: Iterable[int]) -> dict[ShareName, JudgedShare]:
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
            verifiers=run.found.manifest.plan.judges_of(series.target).verifiers,
            check=run.judging.check_of(series.target) if run.judging else None,
        )
        for code in SHARES
    }


def _only(row: Row, wanted: Container[Question]) -> Row:
    """The trial without split codes of other questions."""
    if not row.split_codes:
        return row
    kept = tuple(one for one in row.split_codes if Question(row.scenario_id, one.group) in wanted)
    return row._replace(split_codes=kept)
