"""Components of variance against ANOVA tables, the likelihood written out with matrices, and simulation.

`test_reml.py` has what REML gives for unbalanced nested data.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import optimize

from src.stats.variance import Components, crossed, nested

Nested = list[tuple[tuple[str, str, str], float]]
TRUE = {"scenario": 1.0, "variant": 0.49, "repeat": 0.25, "residual": 0.36}


def unbalanced(draw: random.Random, scenarios: int) -> Nested:
    values: Nested = []
    for s in range(scenarios):
        a = draw.gauss(3, TRUE["scenario"] ** 0.5)
        for v in range(draw.choice([2, 3, 4])):
            b = draw.gauss(0, TRUE["variant"] ** 0.5)
            for r in range(draw.choice([1, 2, 3])):
                c = draw.gauss(0, TRUE["repeat"] ** 0.5)
                for _ in range(draw.choice([1, 2])):
                    values.append(((str(s), str(v), str(r)), a + b + c + draw.gauss(0, TRUE["residual"] ** 0.5)))
    return values


def uncut(found: Components, expected: Sequence[float]) -> None:
    for part, value in zip(found.parts, expected, strict=True):
        assert part.variance == pytest.approx(max(0.0, value), abs=1e-9)
    total = sum(max(0.0, value) for value in expected)
    assert found.total == pytest.approx(total, abs=1e-9)
    assert [part.share for part in found.parts] == pytest.approx(
        [max(0.0, value) / total for value in expected], abs=1e-9
    )


def test_nested_components_are_named_and_say_their_method() -> None:
    found = nested(unbalanced(random.Random(3), 5))
    assert (found.method, found.merged) == ("REML", ())
    assert [part.name for part in found.parts] == ["scenario", "variant", "repeat", "residual"]
    assert found.part("scenario").groups == 5 and found.part("residual").groups == found.n


def test_balanced_nested_components_are_those_of_the_anova_table() -> None:
    draw = random.Random(9)
    a, b, m = 6, 3, 4
    y = np.array([[[draw.gauss(s, 1) + v for _ in range(m)] for v in range(b)] for s in range(a)])
    between = b * m * float(y.mean(axis=(1, 2)).var(ddof=1))
    within = m * float(y.mean(axis=2).var(axis=1, ddof=1).mean())
    error = float(y.var(axis=2, ddof=1).mean())
    values = [((str(s), str(v), str(k)), float(y[s, v, k])) for s in range(a) for v in range(b) for k in range(m)]
    found = nested(values)
    assert (found.merged, found.method) == (("repeat",), "REML")  # one value per repeat
    uncut(found, [(between - within) / (b * m), (within - error) / m, error])
    assert found.parts == nested([(path[:2], value) for path, value in values], ("scenario", "variant")).parts


def test_simulated_components_are_estimated() -> None:
    draw = random.Random(4)
    simulations = 150
    estimates: dict[str, list[float]] = {name: [] for name in TRUE}
    for _ in range(simulations):
        found = nested(unbalanced(draw, 12))
        for name in TRUE:
            variance = found.part(name).variance
            assert variance is not None
            estimates[name].append(variance)
    for name, true in TRUE.items():
        error = statistics.stdev(estimates[name]) / simulations**0.5
        assert statistics.fmean(estimates[name]) == pytest.approx(true, abs=4 * error + 0.01)


def test_a_negative_estimate_is_set_to_zero_and_flagged() -> None:
    values = [
        ((s, v), x)
        for s, v, x in [
            ("a", "1", 0.0),
            ("a", "1", 1.0),
            ("a", "2", 0.0),
            ("a", "2", 1.0),
            ("b", "1", 1.0),
            ("b", "1", 0.0),
            ("b", "2", 0.5),
            ("b", "2", 0.5),
        ]
    ]
    found = nested(values, ("scenario", "variant"))
    assert found.part("variant").variance == 0
    assert found.part("residual").share == 1


def test_nested_components_that_the_data_cannot_separate_are_none() -> None:
    empty = nested([])
    assert (empty.n, empty.total, empty.method) == (0, None, "none")
    assert {part.variance for part in nested([(("a", "b", "c"), 1.0)]).parts} == {None}
    same = nested(
        [((str(s), str(v)), 0.5) for s in range(3) for v in range(2) for _ in range(2)], ("scenario", "variant")
    )
    assert same.total == 0
    assert [(part.variance, part.share) for part in same.parts] == [(0.0, None)] * 3
    # One scenario says nothing about scenarios, but something about its variants.
    draw = random.Random(1)
    single = nested([(("s", str(v)), draw.gauss(v, 1)) for v in range(4) for _ in range(3)], ("scenario", "variant"))
    assert single.part("scenario").variance is None
    alone = nested([(("x",), 1.0), (("x",), 2.0)], ("only",))
    assert alone.part("only").variance is None and alone.part("residual").variance == pytest.approx(0.5)
    variant, residual = single.part("variant").variance, single.part("residual").variance
    assert variant is not None and residual is not None and variant > 0
    # One variant per scenario: the two cannot be separated.
    twice = nested([((str(s), "v"), draw.gauss(s, 1)) for s in range(4) for _ in range(3)], ("scenario", "variant"))
    assert twice.part("variant").variance is None and twice.part("scenario").variance is not None
    with pytest.raises(ValueError, match="does not have one name"):
        nested([(("a",), 1.0)])


def test_crossed_components_and_their_intraclass_correlation() -> None:
    draw = random.Random(3)
    rows, columns = 15, 3
    y = np.array([[draw.gauss(0, 1) + 2 * r / rows + 1.5 * c for c in range(columns)] for r in range(rows)])
    ms_row = columns * float(y.mean(axis=1).var(ddof=1))
    ms_column = rows * float(y.mean(axis=0).var(ddof=1))
    left = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0, keepdims=True) + y.mean()
    ms_error = float((left**2).sum()) / ((rows - 1) * (columns - 1))
    found = crossed({(str(r), str(c)): float(y[r, c]) for r in range(rows) for c in range(columns)})
    uncut(found, [(ms_row - ms_error) / columns, (ms_column - ms_error) / rows, ms_error])
    icc = (ms_row - ms_error) / (ms_row + (columns - 1) * ms_error + columns * (ms_column - ms_error) / rows)
    assert found.part("trial").share == pytest.approx(icc)
    assert found.method == "REML"


@pytest.mark.parametrize("seed", range(12))
def test_no_other_crossed_components_have_a_higher_likelihood(seed: int) -> None:
    """Of 12 tables, several have a component at 0."""
    draw = random.Random(seed)
    n, k = draw.randint(2, 9), draw.randint(2, 4)
    levels = [draw.gauss(0, draw.choice([0, 1])) for _ in range(k)]
    table = np.array([[draw.gauss(0, 1) + level for level in levels] for _ in range(n)])
    found = crossed({(str(r), str(c)): float(table[r, c]) for r in range(n) for c in range(k)})
    best = [part.variance or 0.0 for part in found.parts]
    row, column = np.kron(np.eye(n), np.ones((k, k))), np.kron(np.ones((n, n)), np.eye(k))

    def deviance(components: Sequence[float]) -> float:
        covariance = components[0] * row + components[1] * column + components[2] * np.eye(n * k)
        inverse = np.linalg.inv(covariance)
        weight = float(inverse.sum())
        left = table.ravel() - float(inverse.sum(axis=0) @ table.ravel()) / weight
        return float(np.linalg.slogdet(covariance)[1] + np.log(weight) + left @ inverse @ left)

    bounds = [(0, None), (0, None), (1e-6, None)]
    for start in (best, [0.5, 0.5, 0.5], [0.0, 1.0, 0.2]):
        assert deviance(best) <= optimize.minimize(deviance, start, bounds=bounds, method="L-BFGS-B").fun + 1e-9


def test_trials_that_a_judge_did_not_score_are_left_out_of_crossed_components() -> None:
    whole = {(row, column): draw for draw, (row, column) in enumerate((r, c) for r in "abcd" for c in "xy")}
    found = crossed({**whole, ("e", "x"): 9.0})
    assert found == crossed(whole) and found.n == 8


def test_crossed_components_of_very_few_values() -> None:
    assert crossed({}).total is None
    one = crossed({("a", "x"): 1.0, ("b", "x"): 3.0})
    assert one.part("judge").variance is None  # a single judge; trials cannot be separated from the residual
    assert one.total is None or one.total >= 0
