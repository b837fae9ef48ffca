"""Corrected headlines from made-up trials: variants, repeats, refusals, open answers, and answers that people settled."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from src.findings.review import ReadReview, corrected_headline
from src.records.run import SelectedTrials
from src.schemas import TrialOutcome
from src.scoring.definitions import ShareName
from src.trials.missing import MISSING
from src.trials.row import NO_SCORES, CodedQuestion, Row
from tests.cases import each_case

CODE: ShareName = "accurate_complete"
CODES = (CODE, "accurate_incomplete", "incorrect")
SCENARIOS, REPEATS = 20, 3


def row(
    scenario: int,
    variant: str,
    repeat: int,
    codes: list[str],
    *,
    outcome: TrialOutcome = "scored",
    review: bool = False,
) -> Row:
    counted = tuple(CodedQuestion(f"Q{at}", code) for at, code in enumerate(codes))
    name = f"s{scenario}@{variant}.t.r{repeat}"
    return Row(
        name, f"s{scenario}", variant, "t", repeat, outcome, NO_SCORES, (0, 0, 0), 0, (), (), (), False, False, review,
        counted=counted,
    )  # fmt: skip


def made(seed: int, *, open_ones: bool = True) -> tuple[list[Row], list[Row], SelectedTrials]:
    """The judges' trials, the people's, and which were selected."""
    draw = random.Random(seed)
    judged: list[Row] = []
    people: dict[str, Row] = {}
    for scenario in range(SCENARIOS):
        for variant in ("a", "b")[: 1 + scenario % 2]:
            for repeat in range(1, REPEATS + 1):
                if draw.random() < 0.05:
                    judged.append(row(scenario, variant, repeat, ["not_substantive"] * 2, outcome="refused"))
                    continue
                flagged = draw.random() < 0.2
                codes = [draw.choice(CODES) for _ in range(1 + scenario % 3)]
                theirs = [draw.choice((code, code, *CODES)) for code in codes]
                if flagged and open_ones:
                    codes[0] = draw.choice((MISSING, codes[0]))
                    theirs[-1] = draw.choice((MISSING, theirs[-1]))
                judged.append(row(scenario, variant, repeat, codes, review=flagged))
                people[judged[-1].trial_id] = row(scenario, variant, repeat, theirs)
    chosen = [one.trial_id for one in judged if one.review]
    others = [one.trial_id for one in judged if one.outcome == "scored" and not one.review]
    sampled = draw.sample(others, 30)
    selected = SelectedTrials(chosen=tuple(chosen), why="made", sampled=tuple(sampled), of=len(others), seed=seed)
    return judged, [people[name] for name in (*chosen, *sampled)], selected


def review_of(judged: list[Row], people: list[Row], selected: SelectedTrials) -> ReadReview:
    earlier = SimpleNamespace(rows=judged, of_target=lambda target: judged, plan_targets=("t",))
    done = {"flagged": len(selected.chosen), "sampled": len(selected.sampled)}
    return ReadReview(
        cast("None", SimpleNamespace(rows=people)),  # type: ignore[arg-type]
        cast("None", earlier),  # type: ignore[arg-type]
        selected,
        ("r1", "r2"),
        (),
        (),
        done,  # type: ignore[arg-type]
    )


@each_case("seed", range(4))
def test_the_corrected_share_equals_an_independent_computation(seed: int) -> None:
    judged, people, selected = made(seed)
    said = {one.trial_id: dict(one.counted) for one in people}
    answers = []  # scenario, group, variant, judges' value, people's value, stratum
    for one in judged:
        for group, code in one.counted:
            label = said.get(one.trial_id, {}).get(group, MISSING)
            if one.trial_id in selected.chosen:
                if label != MISSING:
                    answers.append((one.scenario_id, group, one.variant, float(label == CODE), float(label == CODE), 0))
            elif code != MISSING:
                value = float(label == CODE) if label != MISSING else np.nan
                drawn = one.outcome == "scored"
                answers.append((one.scenario_id, group, one.variant, float(code == CODE), value, 1 if drawn else 2))
    scripts: dict[tuple[str, str, str | None], int] = {}
    for scenario, group, variant, *_ in answers:
        scripts[scenario, group, variant] = scripts.get((scenario, group, variant), 0) + 1
    variants: dict[tuple[str, str], int] = {}
    for scenario, group, _ in scripts:
        variants[scenario, group] = variants.get((scenario, group), 0) + 1
    weight = np.array([1 / (scripts[s, g, v] * variants[s, g]) for s, g, v, *_ in answers])
    judges = np.array([one[3] for one in answers])
    labels = np.array([one[4] for one in answers])
    stratum = np.array([one[5] for one in answers])
    seen = (stratum == 1) & ~np.isnan(labels)
    difference = np.average((labels - judges)[seen], weights=weight[seen])
    expected = (weight @ judges + weight[stratum == 1].sum() * difference) / weight.sum()
    found = corrected_headline(review_of(judged, people, selected), "t", CODE)
    assert found.corrected.value == pytest.approx(expected)
    assert found.corrected.low is not None and found.corrected.high is not None
    assert found.corrected.low < expected < found.corrected.high
    assert found.outside == sum(one.outcome == "refused" for one in judged)
    assert found.unsettled > 0


def test_people_who_agree_with_the_judges_change_nothing() -> None:
    judged, people, selected = made(1, open_ones=False)
    by_id = {one.trial_id: one for one in judged}
    same = [by_id[one.trial_id] for one in people]
    found = corrected_headline(review_of(judged, same, selected), "t", CODE)
    assert found.corrected.value == pytest.approx(found.judged.value)
    assert found.unsettled == 0


def test_a_review_that_is_not_finished_corrects_nothing() -> None:
    judged, people, selected = made(2)
    review = review_of(judged, people, selected)
    review.done["sampled"] -= 1
    assert corrected_headline(review, "t", CODE).corrected.why_not == "the review is not finished"
