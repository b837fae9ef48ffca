"""Many trials are tallied by their codes: the same as answer by answer."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from src.findings.estimates import answers_of, tallied, tallied_rows
from src.schemas import CODES, TrialOutcome
from src.scoring.definitions import MEASURES
from src.trials.missing import MISSING
from src.trials.row import CodedQuestion, Row

UNIT = st.none() | st.sampled_from([0.0, 1.0]) | st.floats(0, 1)
CODED = st.lists(
    st.builds(CodedQuestion, st.sampled_from("abc"), st.sampled_from([*CODES[:4], MISSING])),
    max_size=3,
    unique_by=lambda one: one.group,
).map(tuple)


@st.composite
def trials(draw: st.DrawFn) -> list[Row]:
    count = draw(st.integers(0, 12))
    return [
        Row(
            trial_id=str(n),
            scenario_id=draw(st.sampled_from("st")),
            variant=draw(st.sampled_from([None, "v", "w"])),
            target="fake:careful",
            repetition=n,
            outcome=draw(st.sampled_from(get_args(TrialOutcome))),
            scores=draw(st.tuples(UNIT, UNIT, UNIT, UNIT)),
            labels=(0, 0, 0),
            unresolved=0,
            codes=(),
            answers=(),
            errors=(),
            refusal=False,
            fabricated=False,
            review=False,
            counted=draw(CODED),
        )
        for n in range(count)
    ]


@given(trials(), st.sampled_from(list(MEASURES)))
def test_trials_tallied_at_once_are_as_tallied_one_by_one(rows: list[Row], measure: str) -> None:
    one_by_one, at_once = tallied(answers_of(rows, measure)), tallied_rows(rows, measure)
    assert at_once == one_by_one
    assert [(question, list(variants)) for question, variants in at_once.items()] == [
        (question, list(variants)) for question, variants in one_by_one.items()
    ], "also in the same order"
