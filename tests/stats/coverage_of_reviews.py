"""How often the interval of a share that people corrected contains the truth, by simulation.

`python -m tests.stats.coverage_of_reviews` writes the table of docs/review_coverage.md (about 4 minutes on one core).

Studies are simulated vote by vote, not by the model of the estimator. An answer is good or not (`people` would say so).
Two verifiers vote on every answer; a third settles what they disagree about. A trial with a disagreement is flagged, and
some others are, too. People label all flagged trials and a simple random sample of the others, over all targets. The
interval is for the first target, and the truth is the share over all scenarios that could have been written.

Answers: `logistic`, a logistic model with normal effects of the scenario, the question, the target in the scenario and
the repeat; or `kinds`, scenarios of three kinds (easy, mixed, hard) whose repeats are mostly the same. `single` is to break the
method: one question per scenario, and scenarios that hardly differ, so that all depends on the labels.
Judges: `fair` err both ways; `lenient` call bad answers good; `harsh` call good answers bad; `misled` are fair, but in one
scenario in eight all of them misread the key in the same way; `alike` are one model three times that calls good answers
bad, so that no disagreement ever shows an error. A scenario has its own rate of errors, except where judges
are `steady`.

The constants of the method were chosen on other studies: beta-distributed scenarios, and errors that are independent of
each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from src.stats.labeled_sample import CorrectedByPeople, JudgedAnswer, corrected_by_people

SIMULATIONS = 2_000
SEED = 20_261
Random = np.random.Generator
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Answers = Literal["logistic", "kinds", "single"]
Judges = Literal["fair", "lenient", "harsh", "misled", "steady", "alike"]
SPREAD = {"scenario": 1.0, "question": 0.8, "target": 0.6, "repeat": 0.5}
"""Standard deviations of the effects in the logistic model."""
RATES: dict[Judges, tuple[float, float]] = {
    "fair": (0.08, 0.08),
    "lenient": (0.02, 0.25),
    "harsh": (0.15, 0.02),
    "misled": (0.05, 0.05),
    "steady": (0.10, 0.10),
    "alike": (0.12, 0.0),
}
"""How often a verifier errs on a good answer, and on a bad one."""
MISLED = 1 / 8
KINDS = ((0.9, 0.5, 0.1), (0.4, 0.3, 0.3))
"""Chances of a good answer by kind of scenario, and how many scenarios are of the kind."""


@dataclass(frozen=True)
class Design:
    scenarios: int
    targets: int
    repeats: int
    sample: int
    """Trials drawn from those not flagged, over all targets."""
    share: float
    """About the true share; ignored for `kinds`."""
    answers: Answers
    judges: Judges
    flagged: float = 0.05
    """Of the trials on which the verifiers agree."""


DESIGNS = (
    Design(10, 3, 4, 90, 0.6, "logistic", "fair"),
    Design(11, 2, 2, 30, 0.4, "logistic", "lenient"),
    Design(14, 2, 5, 60, 0.6, "kinds", "misled"),
    Design(14, 5, 1, 20, 0.6, "logistic", "fair"),
    Design(18, 2, 4, 40, 0.7, "logistic", "harsh"),
    Design(18, 5, 2, 140, 0.3, "logistic", "lenient"),
    Design(20, 2, 5, 30, 0.6, "logistic", "steady"),
    Design(22, 3, 2, 80, 0.6, "kinds", "harsh"),
    Design(28, 2, 3, 50, 0.1, "logistic", "fair"),
    Design(28, 3, 1, 60, 0.85, "logistic", "fair"),
    Design(34, 2, 1, 30, 0.5, "logistic", "misled"),
    Design(34, 2, 4, 60, 0.6, "logistic", "lenient"),
    Design(34, 4, 3, 160, 0.75, "logistic", "harsh"),
    Design(40, 2, 5, 50, 0.5, "kinds", "lenient"),
    Design(40, 3, 2, 90, 0.3, "logistic", "misled"),
    Design(49, 2, 1, 40, 0.6, "kinds", "fair"),
    Design(49, 5, 1, 120, 0.6, "logistic", "steady"),
    Design(49, 5, 3, 200, 0.15, "logistic", "harsh"),
)


HARD = (
    Design(34, 2, 5, 26, 0.8, "single", "alike"),
    Design(34, 2, 5, 34, 0.8, "single", "alike"),
    Design(34, 2, 5, 50, 0.8, "single", "alike"),
    Design(34, 2, 5, 80, 0.8, "single", "alike"),
    Design(34, 2, 5, 120, 0.8, "single", "alike"),
    Design(34, 2, 5, 34, 0.3, "single", "lenient"),
)
"""Chosen to break the method."""


def _logistic(x: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-x))


def _points() -> tuple[Numbers, Numbers]:
    x, w = np.polynomial.hermite_e.hermegauss(81)
    return x, w / w.sum()


def true_share(design: Design) -> float:
    """The share of good answers over all scenarios that could have been written."""
    if design.answers == "kinds":
        return math.fsum(chance * share for chance, share in zip(*KINDS, strict=True))
    if design.answers == "single":
        return design.share
    x, w = _points()
    spread = math.sqrt(math.fsum(one * one for one in SPREAD.values()))
    return float((w * _logistic(_center(design.share) + spread * x)).sum())


def _center(share: float) -> float:
    return math.log(share / (1 - share))


@dataclass(frozen=True)
class Study:
    """By target, scenario, repeat and question; questions that a scenario does not have are False in `asked`."""

    asked: Flags
    good: Flags
    judged: Flags
    flagged: Flags
    """By target, scenario and repeat."""


def simulated(design: Design, random: Random) -> Study:
    questions = random.integers(1, 2 if design.answers == "single" else 7, design.scenarios)
    shape = (design.targets, design.scenarios, design.repeats, 6)
    asked = np.broadcast_to((np.arange(6) < questions[:, None])[None, :, None, :], shape)
    good = _good(design, shape, random)
    first, second, third = (good ^ one for one in _errors(design, good, random))
    judged = np.where(first == second, first, third)
    split = ((first != second) & asked).any(axis=3)
    flagged = split | (random.random(shape[:3]) < design.flagged)
    return Study(asked, good, judged, flagged)


def _good(design: Design, shape: tuple[int, int, int, int], random: Random) -> Flags:
    targets, scenarios, repeats, questions = shape
    if design.answers == "kinds":
        kind = random.choice(3, size=scenarios, p=KINDS[1])
        chance = np.asarray(KINDS[0])[kind][None, :, None, None]
        once = random.random((targets, scenarios, 1, questions)) < chance
        again = random.random(shape) < chance
        return np.where(random.random(shape) < 0.7, once, again)
    if design.answers == "single":
        chances = random.beta(19 * design.share, 19 * (1 - design.share), (1, scenarios, 1, 1))
        return random.random(shape) < chances
    effects = [
        SPREAD["scenario"] * random.standard_normal((1, scenarios, 1, 1)),
        SPREAD["question"] * random.standard_normal((1, scenarios, 1, questions)),
        SPREAD["target"] * random.standard_normal((targets, scenarios, 1, 1)),
        SPREAD["repeat"] * random.standard_normal((targets, scenarios, repeats, 1)),
    ]
    return random.random(shape) < _logistic(_center(design.share) + sum(effects, np.zeros(shape)))


def _errors(design: Design, good: Flags, random: Random) -> list[Flags]:
    """Where each of three judges errs."""
    scenarios, questions = good.shape[1], good.shape[3]
    on_good, on_bad = RATES[design.judges]
    factor = np.ones(scenarios) if design.judges == "steady" else random.lognormal(-0.32, 0.8, scenarios)
    hard = random.lognormal(-0.18, 0.6, (1, scenarios, 1, questions))
    rate = np.minimum(0.6, np.where(good, on_good, on_bad) * factor[None, :, None, None] * hard)
    shared = random.random(good.shape) < rate / 2
    if design.judges == "alike":
        return [shared | (random.random(good.shape) < rate / 2)] * 3
    found = [shared | (random.random(good.shape) < rate / 2) for _ in range(3)]
    if design.judges == "misled":
        where = random.random(scenarios) < MISLED
        place = np.arange(questions)[None, :] == 0
        misread = np.broadcast_to((where[:, None] & place)[None, :, None, :], good.shape)
        turned = misread & ~good  # Every judge takes what is wrong for right.
        found = [np.where(misread, turned, one) for one in found]
    return found


def reviewed(design: Design, random: Random) -> CorrectedByPeople:
    """One study, its review, and the estimate for the first target."""
    study = simulated(design, random)
    others = np.flatnonzero(~study.flagged)
    drawn = np.zeros(study.flagged.size, bool)
    drawn[random.choice(others, min(design.sample, others.size), replace=False)] = True
    labeled = (drawn.reshape(study.flagged.shape) | study.flagged)[0]
    answers = [
        JudgedAnswer(
            int(scenario),
            (int(scenario), int(repeat)),
            bool(study.flagged[0, scenario, repeat]),
            float(study.judged[0, scenario, repeat, question]),
            float(study.good[0, scenario, repeat, question]) if labeled[scenario, repeat] else None,
        )
        for scenario, repeat, question in np.argwhere(study.asked[0])
    ]
    return corrected_by_people(answers)


@dataclass(frozen=True)
class Covered:
    given: float
    """Share of studies with an interval."""
    covered: float | None
    """Of these, the share that contain the truth."""
    width: float | None
    judges_bias: float
    """Mean of the judges' share minus the truth."""
    bias: float | None
    """Mean of the corrected share minus the truth."""


def coverage(design: Design, simulations: int, seed: int) -> Covered:
    random = np.random.default_rng([seed, (*DESIGNS, *HARD).index(design)])
    true = true_share(design)
    found = [reviewed(design, random) for _ in range(simulations)]
    given = [one for one in found if one.value is not None and one.low is not None and one.high is not None]
    judged = float(np.mean([one.judged for one in found])) - true
    if not given:
        return Covered(0.0, None, None, judged, None)
    covered = sum((one.low or 0.0) <= true <= (one.high or 0.0) for one in given) / len(given)
    width = float(np.mean([(one.high or 0.0) - (one.low or 0.0) for one in given]))
    return Covered(
        len(given) / simulations, covered, width, judged, float(np.mean([one.value for one in given])) - true
    )


HEADER = (
    "| scenarios | targets | repeats | sampled trials | answers | judges | true share | judges' share is off by | "
    "studies with an interval | corrected share is off by | interval contains the truth | mean width |"
)


def lines(designs: Sequence[Design] = DESIGNS, simulations: int = SIMULATIONS) -> Iterator[str]:
    yield HEADER
    yield "| ---: | ---: | ---: | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for design in designs:
        yield line(design, coverage(design, simulations, SEED))


def line(design: Design, found: Covered) -> str:
    cells = [
        *map(str, (design.scenarios, design.targets, design.repeats, design.sample, design.answers, design.judges)),
        f"{true_share(design):.0%}",
        f"{100 * found.judges_bias:+.1f}",
        f"{found.given:.0%}",
        "–" if found.bias is None else f"{100 * found.bias:+.1f}",
        "–" if found.covered is None else f"{found.covered:.1%}",
        "–" if found.width is None else f"{found.width:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    for designs in (DESIGNS, HARD):
        for one in lines(designs):
            print(one, flush=True)
        print()


if __name__ == "__main__":
    main()
