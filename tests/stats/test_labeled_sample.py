"""A share corrected by people's labels: the estimate by hand, when there is none, and how often its interval holds."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from src.stats.bounded import Unit, bounded_mean
from src.stats.labeled_sample import LEAST_SCENARIOS, LEAST_TRIALS, JudgedAnswer, corrected_by_people
from tests.cases import each_case

from ..helpers import ROOT
from ..suites import sample
from .coverage_of_reviews import DESIGNS, HARD, HEADER, SIMULATIONS, Design, coverage, line, reviewed, true_share

LEAST, MOST = 0.93, 0.97


def study(seed: int, *, labeled: float, trials: int = 60) -> list[JudgedAnswer]:
    draw = random.Random(seed)
    found = []
    for trial in range(trials):
        flagged = draw.random() < 0.2
        shown = flagged or draw.random() < labeled
        for _ in range(draw.randint(1, 3)):
            judged, true = float(draw.random() < 0.6), float(draw.random() < 0.5)
            weight = draw.choice([0.5, 1.0])
            found.append(JudgedAnswer(trial % 15, trial, flagged, judged, true if shown else None, weight))
    return found


@each_case("seed", range(5))
def test_the_estimate_is_the_judges_share_plus_the_weighted_differences(seed: int) -> None:
    answers = study(seed, labeled=0.6)
    weights = np.array([one.weight for one in answers])
    judged = np.array([one.judged for one in answers])
    people = np.array([np.nan if one.labeled is None else one.labeled for one in answers])
    flagged = np.array([bool(one.stratum) for one in answers])
    expected = np.average(judged, weights=weights)
    for stratum in (flagged, ~flagged):
        seen = stratum & ~np.isnan(people)
        mean = np.average((people - judged)[seen], weights=weights[seen])
        expected += mean * weights[stratum].sum() / weights.sum()
    found = corrected_by_people(answers)
    assert found.value == pytest.approx(expected)
    assert found.low is not None and found.high is not None
    assert found.low < expected < found.high


@each_case("seed", range(3))
def test_with_a_label_on_every_answer_judges_do_not_matter(seed: int) -> None:
    answers = study(seed, labeled=1.0)
    turned = [JudgedAnswer(a.scenario, a.trial, a.stratum, 1 - a.judged, a.labeled, a.weight) for a in answers]
    one, two = corrected_by_people(answers), corrected_by_people(turned)
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))
    sums: dict[object, list[tuple[float, float]]] = {}
    for a in answers:
        sums.setdefault(a.scenario, []).append((a.weight, a.labeled or 0.0))
    units = [
        Unit(sum(w * y for w, y in all_) / sum(w for w, _ in all_), sum(w for w, _ in all_)) for all_ in sums.values()
    ]
    plain = bounded_mean(units)
    assert one.value == pytest.approx(plain.value)
    assert one.low == pytest.approx(plain.low, abs=0.03)
    assert one.high == pytest.approx(plain.high, abs=0.03)


def test_fewer_labels_make_the_interval_wider() -> None:
    widths = []
    for labeled in (0.3, 0.6, 1.0):
        found = [corrected_by_people(study(seed, labeled=labeled, trials=150)) for seed in range(20)]
        widths.append(sum((one.high or 0) - (one.low or 0) for one in found) / len(found))
    assert widths[0] > widths[1] > widths[2]


def test_few_labels_without_a_difference_do_not_prove_that_there_is_none() -> None:
    def all_right(labels: int) -> list[JudgedAnswer]:
        return [JudgedAnswer(at % 30, at, "other", 1.0, 1.0 if at < labels else None) for at in range(300)]

    few, many = corrected_by_people(all_right(15)), corrected_by_people(all_right(150))
    assert few.value == many.value == 1.0
    assert few.low is not None and many.low is not None
    assert few.low < many.low < 1.0


@each_case(("labels", "scenarios"), [(0, 30), (LEAST_TRIALS - 1, 30), (30, LEAST_SCENARIOS - 1)])
def test_with_too_few_labels_there_is_no_estimate(labels: int, scenarios: int) -> None:
    answers = [
        JudgedAnswer(at % scenarios if at < labels else at % 30, at, "other", 1.0, 1.0 if at < labels else None)
        for at in range(90)
    ]
    found = corrected_by_people(answers)
    assert (found.value, found.low, found.judged) == (None, None, 1.0)
    assert (found.why_not or "").startswith("too few labeled trials")


def test_without_answers_there_is_nothing_to_correct() -> None:
    assert corrected_by_people([]).why_not == "no answer was coded"


def test_the_simulation_finds_its_own_true_share() -> None:
    design = DESIGNS[-1]
    everyone = Design(400, 2, 1, 800, design.share, design.answers, design.judges)
    found = [reviewed(everyone, np.random.default_rng(seed)).value or 0.0 for seed in range(8)]
    assert sum(found) / len(found) == pytest.approx(true_share(everyone), abs=0.02)


def table_of_the_page(mark: str = "simulated") -> list[str]:
    text = (ROOT / "docs" / "review_coverage.md").read_text(encoding="utf-8")
    return text.split(f"<!-- {mark} -->\n")[1].split("\n\n")[0].splitlines()


@each_case(("mark", "expected"), [("simulated", DESIGNS), ("hard", HARD)])
def test_the_tables_of_the_page_have_every_design(mark: str, expected: tuple[Design, ...]) -> None:
    shown = table_of_the_page(mark)
    assert shown[0] == HEADER
    designs = [tuple(one.strip("| ").split(" | ")[:6]) for one in shown[2:]]
    assert designs == [
        tuple(map(str, (d.scenarios, d.targets, d.repeats, d.sample, d.answers, d.judges))) for d in expected
    ]


@pytest.mark.slow
@pytest.mark.parametrize("place", sample(range(len(DESIGNS)), [0]))
def test_corrected_intervals_cover_as_the_page_says(place: int) -> None:
    """With other random numbers, so that only chance may differ."""
    simulations, shown = 400, table_of_the_page()[2 + place].strip("| ").split(" | ")
    found = coverage(DESIGNS[place], simulations, 7)
    if shown[10] == "–":
        assert found.given < 0.05
        return
    assert found.covered is not None and found.bias is not None
    covered = float(shown[10].rstrip("%")) / 100
    error = math.sqrt(covered * (1 - covered) * (1 / (found.given * simulations) + 1 / SIMULATIONS))
    assert abs(found.covered - covered) <= 4 * error, line(DESIGNS[place], found)
    assert found.covered >= LEAST - 2.5 * math.sqrt(LEAST * (1 - LEAST) / simulations)
    assert abs(found.bias) < 0.03


def test_the_page_claims_no_less_than_it_found() -> None:
    """What the issue asks for: 93 to 97%; a design above it is named below the table."""
    covered = [
        float(one.strip("| ").split(" | ")[10].rstrip("%")) / 100
        for one in table_of_the_page()[2:]
        if "%" in one.strip("| ").split(" | ")[10]
    ]
    assert min(covered) >= LEAST
    assert sum(one > MOST for one in covered) <= 1
