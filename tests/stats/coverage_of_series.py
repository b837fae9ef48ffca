"""How often a series without a change has an alarm or a claim, and how often a drop is found, by simulation.

`python -m tests.stats.coverage_of_series` writes the tables of docs/series_coverage.md (about 12 minutes on one core).

Answers are simulated one by one, not by the model inside `monitoring_limits`. Each scenario is asked its questions in two
conversations per point. A logistic model has normal effects of the scenario, of the question, and of each conversation,
so that answers of one conversation depend on each other, and no two questions are alike.

Answers: `usual`; `sure`, where scenarios and questions differ so much that most answers are always right or always wrong;
`right`, which are right nearly always; `heavy`, where a scenario has a large effect of its own at every point, so that all
of its answers tend to change at once; `rare`, independent answers of which one in a thousand is wrong. At each point a scenario is
right or wrong as a whole in `whole` (wrong one time in 50), in `seldom` (one time in 200), and in `few` (one scenario is wrong one
time in ten, the others never).
Four kinds break an assumption: `shared`, where all scenarios have an effect of the point in common; `moved`, where after six
points one scenario in five has new effects, drawn like the old ones; `erratic`, which are usual at first; later
all answers of a scenario are a matter of the same luck, and as often good as before; and `sticky`, where at each point
three scenarios in ten have the answers of the point before, as from a cache.
Drops: `even` lowers the odds of all answers alike; `some` takes a few scenarios and makes all of their answers wrong.
Either way the weighted mean of the scenarios falls by the drop.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
from scipy import stats

from src.series.points import series_simulated
from src.stats.monitoring import ChanceVariance, Cluster, Cusum, Design, Direction, Monitor
from src.stats.monitoring_limits import threshold

FALSE_SERIES = 1_500
HARD_SERIES = 1_000
POWER_SERIES = 500
FAMILY_SERIES = 500
POINTS = 24
"""Besides the first run."""
LEVEL = 0.05
FLOOR = 0.05
REPEATS = 2
SEED = 20_262
PAGE = Path(__file__).parents[2] / "docs" / "series_coverage.md"

Random = np.random.Generator
Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Answers = Literal[
    "usual", "sure", "right", "heavy", "rare", "whole", "seldom", "few", "shared", "moved", "erratic", "sticky"
]
Sizes = Literal["3 each", "16, 8, 2 each", "60, 1 each", "1 each"]
Drop = Literal["even", "some"]


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the effects in the logistic model."""

    center: float
    scenario: float
    question: float
    conversation: float
    moment: float
    """Of a scenario at one point, in all conversations."""


SPREADS: dict[Answers, Spread] = {
    "usual": Spread(0.8, 1.0, 0.8, 0.8, 0.0),
    "sure": Spread(2.5, 6.0, 6.0, 0.8, 0.0),
    "right": Spread(5.0, 0.5, 0.5, 0.8, 0.0),
    "heavy": Spread(0.8, 1.0, 0.8, 0.8, 3.0),
}
SPREADS |= dict.fromkeys(("shared", "moved", "erratic", "sticky"), SPREADS["usual"])
SHARED = 0.1
"""Standard deviation of the effect of a point, in the odds; about 0.02 in the mean share."""
MOVED = 1 / 5
STICKY = 0.3
WHOLE: dict[Answers, float] = {"whole": 0.98, "seldom": 0.995, "few": 0.9}
"""How often a scenario is right, if it is right or wrong as a whole."""
RARE = 0.999
"""How often an answer is right, if answers are independent and alike."""


@dataclass(frozen=True)
class Case:
    scenarios: int
    sizes: Sizes
    answers: Answers
    drop: float = 0.0
    how: Drop = "even"
    after: int = 6
    """Points before the drop, the first run included."""
    points: int = POINTS
    """Points that are followed; the threshold is always for 24."""
    segments: int = 0
    """Earlier ones that noise was learned from, each of a first run and 24 points, with levels of their own."""

    @property
    def questions(self) -> tuple[int, ...]:
        match self.sizes:
            case "3 each":
                return (3,) * self.scenarios
            case "1 each":
                return (1,) * self.scenarios
            case "60, 1 each":
                return (60,) + (1,) * (self.scenarios - 1)
            case "16, 8, 2 each":
                return (16, 8) + (2,) * (self.scenarios - 2)

    @property
    def design(self) -> Design:
        return Design({f"s{at}": Cluster(one, one * REPEATS) for at, one in enumerate(self.questions)}, FLOOR)


FALSE = (
    *(Case(count, "3 each", answers) for count in (2, 10, 34) for answers in ("usual", "sure", "heavy")),
    *(Case(count, "16, 8, 2 each", answers) for count in (10, 34) for answers in ("usual", "sure")),
)
"""Nothing changes."""
HARD = (
    Case(34, "3 each", "right"),
    Case(34, "1 each", "right"),
    Case(10, "3 each", "rare"),
    Case(34, "3 each", "rare"),
    Case(1, "3 each", "heavy"),
    Case(10, "3 each", "few"),
    Case(34, "3 each", "few"),
    Case(10, "3 each", "seldom"),
    Case(34, "3 each", "seldom"),
    Case(10, "3 each", "whole"),
    Case(10, "16, 8, 2 each", "whole"),
    Case(34, "3 each", "whole"),
    Case(34, "16, 8, 2 each", "whole"),
    Case(34, "60, 1 each", "whole"),
    Case(34, "3 each", "usual", points=2 * POINTS),
)
"""Nothing changes, either; chosen to break the method."""
LEARNED = (
    *(Case(count, "3 each", "usual", segments=1) for count in (2, 10, 34)),
    *(Case(count, "3 each", answers, segments=1) for answers in ("rare", "seldom") for count in (10, 34)),
    Case(34, "3 each", "right", segments=1),
    Case(34, "16, 8, 2 each", "whole", segments=1),
)
"""Nothing changes in the second segment of a series."""
BROKEN = (
    *(Case(count, "3 each", answers) for answers in ("shared", "moved") for count in (10, 34)),
    *(Case(count, "3 each", "erratic", after=12) for count in (10, 34)),
)
"""The mean of scenarios like these does not change, but an assumption does not hold."""
STALE = tuple(Case(count, "3 each", "sticky") for count in (10, 34))
"""Another one: points depend on each other."""
POWER = (
    *(
        Case(n, "3 each", "usual", drop, "even", after)
        for n in (2, 10, 34)
        for drop in (0.05, 0.08)
        for after in (1, 6, 12)
    ),
    *(Case(n, "3 each", "usual", drop, "some") for n in (10, 34) for drop in (0.05, 0.08)),
    *(Case(n, "3 each", answers, drop) for answers in ("sure", "heavy") for n in (10, 34) for drop in (0.05, 0.08)),
    *(Case(34, "16, 8, 2 each", "usual", drop) for drop in (0.05, 0.08)),
)
NODES = np.polynomial.hermite_e.hermegauss(25)
FAMILY = (2, 10, 34)
"""Numbers of scenarios of series with two targets and two outcomes."""


def _logistic(x: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-x)))


def _draw(random: Random, *shape: int) -> Numbers:
    return random.standard_normal(shape)


def values(case: Case, random: Random) -> Numbers:
    """One series: the share of good answers by point and scenario."""
    if case.answers in WHOLE:
        good = random.random((case.points + 1, case.scenarios)) < WHOLE[case.answers]
        return np.asarray(good | ((case.answers == "few") & (np.arange(case.scenarios) > 0)), float)
    if case.answers == "rare":
        sizes = REPEATS * np.array(case.questions)
        return np.asarray(random.binomial(sizes, RARE, (case.points + 1, case.scenarios)) / sizes)
    spread, scenarios, most = SPREADS[case.answers], case.scenarios, max(case.questions)
    asked = np.arange(most) < np.array(case.questions)[:, None]
    fixed = (
        spread.center + spread.scenario * _draw(random, scenarios, 1) + spread.question * _draw(random, scenarios, most)
    )
    kept: Numbers = np.ones(scenarios)
    shift = 0.0
    if case.drop and case.how == "even":
        shift = _shift(fixed, asked, spread, case.drop)
    elif case.drop:
        kept = _kept(fixed, asked, spread, case.drop, random)
    late = (np.arange(case.points + 1) >= case.after)[:, None, None, None]
    shape = (case.points + 1, scenarios, REPEATS, most)
    odds = fixed[None, :, None, :] + spread.conversation * _draw(random, *shape[:3], 1)
    odds = odds + spread.moment * _draw(random, *shape[:2], 1, 1) - shift * late
    if case.answers == "shared":
        odds = odds + SHARED * _draw(random, shape[0], 1, 1, 1)
    elif case.answers == "moved":
        other = (
            spread.center
            + spread.scenario * _draw(random, scenarios, 1)
            + spread.question * _draw(random, *fixed.shape)
        )
        here = random.random((scenarios, 1)) < MOVED
        odds = odds + late * (here * (other - fixed))[None, :, None, :]
    luck = random.random(shape)
    if case.answers == "erratic":
        luck = np.where(late, random.random((*shape[:2], 1, 1)), luck)
    good = luck < _logistic(odds)
    good &= ~late | (random.random(shape) < kept[None, :, None, None])
    found = np.asarray((good & asked[None, :, None, :]).sum(axis=(2, 3)) / (REPEATS * np.array(case.questions)))
    if case.answers == "sticky":
        for at in range(1, len(found)):
            found[at] = np.where(random.random(scenarios) < STICKY, found[at - 1], found[at])
    return found


def _shares(fixed: Numbers, spread: Spread) -> Numbers:
    """The chance of a good answer over all conversations."""
    chance = math.hypot(spread.conversation, spread.moment) * NODES[0]
    return np.asarray((_logistic(fixed[..., None] + chance) * (NODES[1] / NODES[1].sum())).sum(axis=-1))


def _shift(fixed: Numbers, asked: Flags, spread: Spread, drop: float) -> float:
    """In the odds of all answers, so that their mean falls by the drop; if there is less to lose, nearly all is lost."""
    before = _shares(fixed, spread)[asked].mean()
    low, high = 0.0, 30.0
    for _ in range(25):
        middle = (low + high) / 2
        if before - _shares(fixed - middle, spread)[asked].mean() < drop:
            low = middle
        else:
            high = middle
    return high


def _kept(fixed: Numbers, asked: Flags, spread: Spread, drop: float, random: Random) -> Numbers:
    """What is left of the good answers of each scenario: of a few nothing, of one a part, and of the others all."""
    parts = (_shares(fixed, spread) * asked).sum(axis=1) / asked.sum()
    kept, lost = np.ones(len(parts)), drop
    for at in random.permutation(len(parts)):
        take = min(lost, parts[at])
        kept[at] = 1 - take / parts[at]
        lost -= take
    return kept


@lru_cache(maxsize=64)
def limit(questions: tuple[int, ...], level: float) -> float:
    """As the program computes it."""
    design = Design({f"s{at}": Cluster(one, one * REPEATS) for at, one in enumerate(questions)}, FLOOR)
    return round(
        threshold(design, points=POINTS, level=level, series=series_simulated(len(questions), level), seed=SEED), 4
    )


@dataclass(frozen=True)
class Said:
    """The first point at which each rule says that something changed, and in which direction."""

    alarm: tuple[int, Direction] | None
    claim: tuple[int, Direction] | None
    t_test: tuple[int, Direction] | None


def said(design: Design, series: Numbers, *, limit: float, level: float, learned: ChanceVariance | None = None) -> Said:
    monitor = Monitor(design, limit=limit, level=level, learned=learned)
    steps = [monitor.add(row) for row in _rows(design, series)]
    return Said(_first([one.alarm for one in steps]), _first([one.claim for one in steps]), _paired(series, LEVEL))


def _rows(design: Design, series: Numbers) -> list[dict[str, float]]:
    return [dict(zip(design.clusters, map(float, row), strict=True)) for row in series]


def learned(case: Case, random: Random) -> ChanceVariance | None:
    """What the segments before show of chance."""
    noise = None
    for _ in range(case.segments):
        cusum = Cusum(case.design, noise)
        for row in _rows(case.design, values(case, random)):
            cusum.add(row)
        noise = cusum.noise
    return noise


def _first(said: Sequence[Direction | None]) -> tuple[int, Direction] | None:
    return next(((at, one) for at, one in enumerate(said) if one), None)


def _paired(series: Numbers, level: float) -> tuple[int, Direction] | None:
    """Every run against the first one, by a paired t-test over scenarios."""
    differences = series[1:] - series[0]
    n = differences.shape[1]
    if n == 1:
        return None
    error = differences.std(axis=1, ddof=1) / math.sqrt(n)
    mean = differences.mean(axis=1)
    passed = np.abs(mean) > stats.t.isf(level / 2, n - 1) * error + 1e-12
    if not passed.any():
        return None
    at = int(passed.argmax())
    return at + 1, "up" if mean[at] > 0 else "down"


@dataclass(frozen=True)
class Rate:
    share: float
    delay: float | None
    """Median number of points over all series, the first changed one included; None if fewer than half were found."""


@dataclass(frozen=True)
class Rates:
    alarm: Rate
    claim: Rate
    t_test: Rate


def rates(case: Case, series: int, seed: int) -> Rates:
    """Without a drop: series with a false one. With a drop: series that say "down" after it, and nothing before."""
    random = np.random.default_rng([seed, (*FALSE, *HARD, *POWER, *BROKEN, *LEARNED, *STALE).index(case)])
    high = limit(case.questions, LEVEL)
    found = []
    for _ in range(series):
        noise = learned(case, random)
        found.append(said(case.design, values(case, random), limit=high, level=LEVEL, learned=noise))
    return Rates(*(_rate([getattr(one, rule) for one in found], case) for rule in ("alarm", "claim", "t_test")))


def _rate(found: Sequence[tuple[int, Direction] | None], case: Case) -> Rate:
    if not case.drop:
        return Rate(sum(one is not None for one in found) / len(found), None)
    delays = [
        float(one[0] - case.after + 1) if one and one[0] >= case.after and one[1] == "down" else math.inf
        for one in found
    ]
    middle = median(delays)
    return Rate(sum(map(math.isfinite, delays)) / len(found), None if math.isinf(middle) else middle)


@dataclass(frozen=True)
class Family:
    """Shares of unchanged series with two targets and two outcomes in which at least one line says something."""

    alarm: float
    claim: float
    t_test: float
    """Each line at 5%."""
    t_split: float
    """Each line at 5% / 4."""


LINES = 4
PARTLY = 1.5
"""An answer is not good, but not wrong either, if it misses by less than this in the odds."""


def family_values(scenarios: int, random: Random) -> list[Numbers]:
    """For two targets: the shares of good answers and of wrong ones. Targets share scenarios and questions."""
    spread, shape = SPREADS["usual"], (POINTS + 1, scenarios, REPEATS, 3)
    fixed = spread.scenario * _draw(random, scenarios, 1) + spread.question * _draw(random, scenarios, 3)
    found = []
    for target in range(2):
        own = fixed + spread.center - 0.5 * target + 0.6 * _draw(random, scenarios, 1)
        odds = own[None, :, None, :] + spread.conversation * _draw(random, *shape[:3], 1)
        latent = odds + random.logistic(size=shape)
        found += [(latent > 0).mean(axis=(2, 3)), (latent < -PARTLY).mean(axis=(2, 3))]
    return found


def family(scenarios: int, series: int, seed: int) -> Family:
    random = np.random.default_rng([seed, 999, scenarios])
    case = Case(scenarios, "3 each", "usual")
    level = LEVEL / LINES
    high = limit(case.questions, level)
    counts = np.zeros(4)
    for _ in range(series):
        lines = family_values(scenarios, random)
        each = [said(case.design, one, limit=high, level=level) for one in lines]
        split = [_paired(one, level) for one in lines]
        counts += [
            any(one.alarm for one in each),
            any(one.claim for one in each),
            any(one.t_test for one in each),
            any(split),
        ]
    return Family(*(float(one) for one in counts / series))


# Tables


FALSE_HEADER = "| scenarios | questions | answers | points | threshold | alarm | claim | t-test against the first run |"
POWER_HEADER = (
    "| scenarios | questions | answers | drop | of | points before | alarm | points until then | claim | points until then "
    "| t-test against the first run |"
)
FAMILY_HEADER = "| scenarios | threshold | alarm | claim | t-tests, each at 5% | t-tests, each at 1.25% |"


def false_line(case: Case, found: Rates) -> str:
    cells = [*false_design(case), f"{limit(case.questions, LEVEL):.2f}"]
    cells += [f"{one.share:.1%}" for one in (found.alarm, found.claim)]
    cells.append("–" if case.scenarios == 1 else f"{found.t_test.share:.1%}")
    return f"| {' | '.join(cells)} |"


def false_design(case: Case) -> list[str]:
    return [str(case.scenarios), case.sizes, case.answers, str(case.points)]


def power_line(case: Case, found: Rates) -> str:
    cells = power_design(case)
    for one in (found.alarm, found.claim):
        cells += [f"{one.share:.0%}", "–" if one.delay is None else f"{one.delay:g}"]
    return f"| {' | '.join([*cells, f'{found.t_test.share:.0%}'])} |"


def power_design(case: Case) -> list[str]:
    of = "all answers" if case.how == "even" else "some scenarios"
    return [str(case.scenarios), case.sizes, case.answers, f"{case.drop:.2f}", of, str(case.after)]


def family_line(scenarios: int, found: Family) -> str:
    cells = [str(scenarios), f"{limit((3,) * scenarios, LEVEL / LINES):.2f}"]
    cells += [f"{one:.1%}" for one in (found.alarm, found.claim, found.t_test, found.t_split)]
    return f"| {' | '.join(cells)} |"


def false_lines(cases: Sequence[Case], series: int) -> Iterator[str]:
    yield from (FALSE_HEADER, "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for case in cases:
        yield false_line(case, rates(case, series, SEED))


def power_lines() -> Iterator[str]:
    yield from (POWER_HEADER, "| ---: | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for case in POWER:
        yield power_line(case, rates(case, POWER_SERIES, SEED))


def family_lines() -> Iterator[str]:
    yield from (FAMILY_HEADER, "| ---: | ---: | ---: | ---: | ---: | ---: |")
    for scenarios in FAMILY:
        yield family_line(scenarios, family(scenarios, FAMILY_SERIES, SEED))


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "false": lambda: false_lines(FALSE, FALSE_SERIES),
    "family": family_lines,
    "power": power_lines,
    "hard": lambda: false_lines(HARD, HARD_SERIES),
    "learned": lambda: false_lines(LEARNED, HARD_SERIES),
    "broken": lambda: false_lines(BROKEN, HARD_SERIES),
    "stale": lambda: false_lines(STALE, HARD_SERIES),
}


def main(marks: Sequence[str]) -> None:
    """All tables, or those that are named. Each goes between its mark and the next empty line."""
    for mark in marks or TABLES:
        table = []
        for one in TABLES[mark]():
            print(one, flush=True)
            table.append(one)
        text = PAGE.read_text(encoding="utf-8")
        start = text.index(f"<!-- {mark} -->\n") + len(f"<!-- {mark} -->\n")
        end = text.index("\n\n", start)
        PAGE.write_text(text[:start] + "\n".join(table) + text[end:], encoding="utf-8")
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
