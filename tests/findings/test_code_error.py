"""Judge error in the shares of study codes: corrected by a check, or bounded by split verdicts, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from src.findings.code_error import LEAST_REPLIES, JudgeBounds, JudgedShare, code_rates, corrected_share, judge_bounds
from src.findings.estimates import Estimated, estimate
from src.records.judge_check import CodesMeasured, ReplyCode
from src.reports.judge_section import bounds_text, judge_error_cell, judge_error_sentence
from src.scoring.definitions import ShareName
from src.stats.bounded import mid_p_limits
from src.stats.confusion import Corrected
from src.stats.intervals import wilson
from src.trials.row import NO_SCORES, CodedQuestion, Row
from src.trials.split_codes import COMPLETE, INCORRECT, OTHER, SplitCode
from tests.cases import each_case


def share(count: int, n: int) -> Estimated:
    limits = mid_p_limits(count / n, n)
    return Estimated(count / n, limits.low, limits.high, n, "scenario", n, n, 0, float(n))


def measured(**pairs: int) -> CodesMeasured:
    """Replies by `gold__given`, as `complete__other=3`."""
    codes = {"complete": COMPLETE, "incorrect": INCORRECT, "other": "not_substantive", "open": "incomplete_data"}
    replies = [
        ReplyCode.model_validate(
            {"reply_id": f"{pair}-{n}", "scenario_id": "s", "question_group": "g",
             "gold": codes[pair.split("__")[0]], "given": codes[pair.split("__")[1]]}
        )
        for pair, number in pairs.items()
        for n in range(number)
    ]  # fmt: skip
    return CodesMeasured(replies=tuple(replies), left_out={})


GOOD = measured(
    complete__complete=36, complete__other=4, incorrect__incorrect=38, incorrect__complete=2, other__other=40
)


def test_rates_leave_out_what_the_judges_left_without_a_code() -> None:
    codes = measured(complete__complete=9, complete__open=5, complete__other=1, other__complete=2, incorrect__other=6)
    assert code_rates(codes, "accurate_complete") == (wilson(9, 10), wilson(2, 8))
    assert code_rates(codes, "incorrect") == (wilson(0, 6), wilson(0, 12))


def test_a_share_is_corrected_for_both_kinds_of_error() -> None:
    one = corrected_share(share(31, 50), GOOD, "accurate_complete")
    assert (one.raw, one.why_not) == (0.62, None)
    assert one.value is not None and one.low is not None and one.high is not None
    assert one.value == pytest.approx((0.62 - 2 / 80) / (36 / 40 - 2 / 80))
    assert one.low < one.value < one.high
    as_judged = share(31, 50)
    assert as_judged.low is not None and as_judged.high is not None
    assert one.high - one.low > as_judged.high - as_judged.low
    assert one == corrected_share(share(31, 50), GOOD, "accurate_complete")


def test_a_corrected_share_stays_in_range() -> None:
    """Judges who wrongly give a code to 2 of 80 replies gave it to 1 of 200."""
    one = corrected_share(share(1, 200), GOOD, "accurate_complete")
    assert (one.value, one.low) == (0.0, 0.0)
    assert one.high is not None and 0 < one.high < 0.1


@each_case(
    ("codes", "estimated", "said"),
    [
        (measured(complete__complete=LEAST_REPLIES - 1, other__other=30), share(5, 10), "9 gold replies that are “accurate, complete”, and 10"),
        (measured(complete__complete=30, other__other=LEAST_REPLIES - 1), share(5, 10), "9 gold replies that are not “accurate, complete”, and 10"),
        (measured(complete__complete=4, complete__other=16, other__other=20), share(5, 10), "do not tell “accurate, complete” from other answers: on the gold set they find 4 of 20 and wrongly give it to 0 of 20"),
        (GOOD, Estimated(0.5, None, None, 2, "scenario", 4, 4, 0, 2.0, why_no_interval="2 scenarios: 3 are needed"), "2 scenarios: 3 are needed"),
        (GOOD, Estimated(None, None, None, 0, "scenario", 0, 0, 0, None), "no question was coded"),
        (measured(complete__complete=30, other__complete=15, other__other=15), share(0, 500), "do not fit how many answers of this run are “accurate, complete”"),
    ],
)  # fmt: skip
def test_a_share_that_cannot_be_corrected_says_why(codes: CodesMeasured, estimated: Estimated, said: str) -> None:
    one = corrected_share(estimated, codes, "accurate_complete")
    assert one.why_not is not None and said in one.why_not
    assert (one.raw, one.value, one.low, one.high) == (estimated.value, None, None, None)


# --- bounds ---


def row(scenario: str, *codes: str, split: Sequence[SplitCode] = ()) -> Row:
    counted = tuple(CodedQuestion(f"g{n}", code) for n, code in enumerate(codes, 1))
    return Row(
        trial_id=f"{scenario}.r1", scenario_id=scenario, variant=None, target="fake:careful", repetition=1,
        outcome="scored", scores=NO_SCORES, labels=(0, 0, 0), unresolved=0, codes=counted, answers=(), errors=(),
        refusal=False, fabricated=False, review=False, counted=counted, split_codes=tuple(split),
    )  # fmt: skip


def bounds(rows: Sequence[Row], code: ShareName) -> JudgeBounds:
    return judge_bounds(rows, code, partial(estimate, measure=code), estimate(rows, code))


def test_bounds_take_every_split_code_at_each_end() -> None:
    rows = [
        row("s1", COMPLETE, INCORRECT, split=[SplitCode("g1", (COMPLETE, INCORRECT)), SplitCode("g2", (INCORRECT, OTHER))]),
        row("s2", COMPLETE, "not_substantive", split=[SplitCode("g2", (OTHER, COMPLETE))]),
    ]  # fmt: skip
    assert bounds(rows, "accurate_complete") == JudgeBounds(0.25, 0.75, 2)
    assert bounds(rows, "incorrect") == JudgeBounds(0.0, 0.5, 2)


def test_bounds_without_a_split_code_are_the_share_itself() -> None:
    rows = [row("s1", COMPLETE, INCORRECT), row("s2", COMPLETE, COMPLETE)]
    assert bounds(rows, "accurate_complete") == JudgeBounds(0.75, 0.75, 0)
    assert bounds([], "incorrect") == JudgeBounds(None, None, 0)


def test_bounds_count_answers_that_were_left_open() -> None:
    """They are missing in the share, which is 100%; they could have been wrong."""
    rows = [row("s1", COMPLETE, "missing", split=[SplitCode("g2", (INCORRECT, OTHER))])]
    assert estimate(rows, "accurate_complete").value == 1.0
    assert bounds(rows, "accurate_complete") == JudgeBounds(0.5, 1.0, 1)
    assert bounds(rows, "incorrect") == JudgeBounds(0.0, 0.5, 1)


# --- in words ---


def test_what_stands_beside_a_share() -> None:
    given = share(31, 50)
    corrected = Corrected(0.62, 0.58, 0.47, 0.68)
    split, agreed = JudgeBounds(0.59, 0.66, 4), JudgeBounds(0.62, 0.62, 0)
    assert bounds_text(JudgedShare(given, None, agreed)) == "62%"
    nothing = Estimated(None, None, None, 0, "scenario", 0, 0, 0, None)
    assert judge_error_cell(JudgedShare(given, corrected, split)) == "corrected 58% (47–68%)"
    assert judge_error_cell(JudgedShare(given, None, split)) == "59–66% by split verdicts"
    assert judge_error_cell(JudgedShare(given, None, agreed)) == "no split verdict"
    assert judge_error_cell(JudgedShare(given, None, None)) == "unknown"
    assert judge_error_cell(JudgedShare(nothing, None, split)) == "–"


def sentence(complete: Corrected | JudgeBounds | None, wrong: Corrected | JudgeBounds | None, given: Estimated) -> str:
    errors = [
        JudgedShare(given, one if isinstance(one, Corrected) else None, one if isinstance(one, JudgeBounds) else SPLIT)
        if one
        else JudgedShare(given, None, None)
        for one in (complete, wrong)
    ]
    return judge_error_sentence({"accurate_complete": errors[0], "incorrect": errors[1]})


SPLIT = JudgeBounds(0.59, 0.66, 4)


def test_one_sentence_for_the_first_screen() -> None:
    given, corrected, agreed = share(31, 50), Corrected(0.62, 0.58, 0.47, 0.68), JudgeBounds(0.08, 0.08, 0)
    both = "Corrected for judge error: 58 (47–68) complete and 58 (47–68) wrong."
    assert sentence(corrected, corrected, given) == both
    one = "Corrected for judge error: 58 (47–68) complete; wrong answers cannot be corrected."
    assert sentence(corrected, SPLIT, given) == one
    assert sentence(SPLIT, agreed, given) == "If split verdicts had fallen the other way: 59–66 and 8."
    assert sentence(agreed, agreed, given) == "The judges agreed wherever it could have changed these numbers."
    assert sentence(None, None, given).startswith("How often the judges erred is unknown")
    refused = JudgedShare(given, None, None, "the check is too small")
    told = judge_error_sentence({"accurate_complete": refused, "incorrect": refused})
    assert told == "The judge check cannot correct these numbers; the section on judges says why."
    assert sentence(SPLIT, SPLIT, Estimated(None, None, None, 0, "scenario", 0, 0, 0, None)) == ""
