"""Stability over repeats: the same question, asked again in the same words."""

from __future__ import annotations

from src.findings.sensitivity import stability
from src.trials.missing import MISSING
from src.trials.row import NO_SCORES, CodedQuestion, Row


def row(repetition: int, variant: str | None = None, **codes: str) -> Row:
    counted = tuple(CodedQuestion(group, code) for group, code in codes.items())
    return Row(
        trial_id=f"s1@{variant}.r{repetition}", scenario_id="s1", variant=variant, target="fake:careful",
        repetition=repetition, outcome="scored", scores=NO_SCORES, labels=(0, 0, 0), unresolved=0, codes=counted,
        answers=(), errors=(), refusal=False, fabricated=False, review=False, counted=counted,
    )  # fmt: skip


def test_a_question_is_stable_if_all_its_codes_are_the_same() -> None:
    rows = [
        row(1, g1="incorrect", g2="accurate_complete"),
        row(2, g1="incorrect", g2="not_substantive"),
        row(3, g1=MISSING, g2="accurate_complete"),
        row(1, "other", g1="accurate_complete"),
    ]
    found = stability(rows)
    assert (found.repeated, found.same_when_repeated.value) == (2, 0.5)
    assert (found.varied, found.same_when_varied.value) == (1, 0.0)  # g1 is wrong in one variant only
    assert found.same_when_repeated.low is None  # one scenario
    nothing = stability(rows[3:])
    assert (nothing.repeated, nothing.same_when_repeated.value, nothing.varied) == (0, None, 0)
