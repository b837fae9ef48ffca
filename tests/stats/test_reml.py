"""REML estimates of nested components against lme4, statsmodels and the likelihood written out with matrices."""

from __future__ import annotations

import csv
import importlib
import random
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from src.stats.variance import reml
from tests.cases import each_case

Paths = list[tuple[str, ...]]
LMER = """
suppressMessages(library(lme4))
data <- read.csv(commandArgs(TRUE)[1], colClasses = c("character", "character", "character", "numeric"))
control <- lmerControl(optCtrl = list(ftol_abs = 1e-14, xtol_abs = 1e-14), calc.derivs = FALSE)
fit <- suppressMessages(lmer(y ~ 1 + (1 | s) + (1 | s:v) + (1 | s:v:w), data = data, REML = TRUE, control = control))
found <- as.data.frame(VarCorr(fit))
cat(format(setNames(found$vcov, found$grp)[c("s", "s:v", "s:v:w", "Residual")], digits = 12))
"""


def made(seed: int, scenarios: int, true: tuple[float, float, float, float]) -> tuple[Paths, list[float]]:
    """An unbalanced design with these components."""
    draw = random.Random(seed)
    paths: Paths = []
    values = []
    for s in range(scenarios):
        a = draw.gauss(3, true[0] ** 0.5)
        for v in range(draw.choice([1, 2, 3, 4])):
            b = draw.gauss(0, true[1] ** 0.5)
            for w in range(draw.choice([1, 2, 3])):
                c = draw.gauss(0, true[2] ** 0.5)
                for _ in range(draw.choice([1, 2, 5])):
                    paths.append((str(s), str(v), str(w)))
                    values.append(a + b + c + draw.gauss(0, true[3] ** 0.5))
    return paths, values


DESIGNS = [
    (seed, scenarios, true)
    for seed, scenarios in enumerate((4, 8, 20))
    for true in ((1.0, 0.5, 0.25, 0.36), (1.0, 0.0, 0.1, 1.0), (0.0, 0.0, 0.0, 1.0), (0.1, 0.01, 0.0, 0.2))
]


def deviance(paths: Paths, values: list[float], components: list[float]) -> float:
    """-2 log of the restricted likelihood, with whole matrices."""
    n = len(values)
    covariance = components[-1] * np.eye(n)
    for depth in range(len(paths[0])):
        names = [path[: depth + 1] for path in paths]
        covariance += components[depth] * np.array([[float(a == b) for b in names] for a in names])
    inverse = np.linalg.inv(covariance)
    weight = float(inverse.sum())
    left = np.array(values) - float(inverse.sum(axis=0) @ np.array(values)) / weight
    return float(np.linalg.slogdet(covariance)[1] + np.log(weight) + left @ inverse @ left)


@each_case("design", DESIGNS[:8])
def test_no_other_components_have_a_higher_likelihood(
    design: tuple[int, int, tuple[float, float, float, float]],
) -> None:
    paths, values = made(*design)
    found = reml(paths, values)
    assert found is not None and min(found) >= 0
    best = deviance(paths, values, found)
    searched = optimize.minimize(
        lambda x: deviance(paths, values, list(x)), found, bounds=[(0, None)] * 3 + [(1e-6, None)], method="L-BFGS-B"
    )
    assert best <= searched.fun + 1e-9
    for at in range(4):
        for factor in (0.98, 1.02):
            near = [one * factor if place == at else one for place, one in enumerate(found)]
            assert deviance(paths, values, near) >= best - 1e-9
        assert deviance(paths, values, [one + 0.01 * (place == at) for place, one in enumerate(found)]) > best


@each_case("seed", range(3))
def test_two_components_agree_with_statsmodels(seed: int) -> None:
    mixed = importlib.import_module("statsmodels.regression.mixed_linear_model")
    paths, values = made(seed, 12, (1.0, 0.0, 0.0, 0.5))
    outer = [path[:1] for path in paths]
    found = reml(outer, values)
    assert found is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = mixed.MixedLM(np.array(values), np.ones((len(values), 1)), groups=[one[0] for one in outer]).fit(
            reml=True
        )
    assert found[0] == pytest.approx(float(np.asarray(fit.cov_re).item()), rel=1e-3)
    assert found[1] == pytest.approx(float(fit.scale), rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "design", [pytest.param(one, marks=() if one[1] == 8 else pytest.mark.nightly) for one in DESIGNS]
)
def test_four_components_agree_with_lme4(
    design: tuple[int, int, tuple[float, float, float, float]], tmp_path: Path
) -> None:
    program = shutil.which("Rscript")
    if program is None or subprocess.run([program, "-e", "library(lme4)"], capture_output=True, check=False).returncode:
        pytest.skip("needs Rscript with the package lme4")
    paths, values = made(*design)
    table, script = tmp_path / "values.csv", tmp_path / "fit.R"
    with table.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["s", "v", "w", "y"])
        rows.writerows([*path, repr(value)] for path, value in zip(paths, values, strict=True))
    script.write_text(LMER, encoding="utf-8")
    told = subprocess.run([program, str(script), str(table)], capture_output=True, text=True, check=True).stdout
    assert reml(paths, values) == pytest.approx([float(one) for one in told.split()], rel=1e-3, abs=1e-4)


def test_values_that_are_equal_within_groups_have_no_residual() -> None:
    paths = [(str(s), str(v)) for s in range(5) for v in range(3) for _ in range(2)]
    level = {path: 0.1 * int(path[0]) + 0.05 * (int(path[1]) ** 2) for path in paths}
    values = [level[path] for path in paths]
    found = reml(paths, values)
    outer = reml([path[:1] for path in level], list(level.values()))
    assert found is not None and outer is not None
    assert found == [*outer, 0.0]
    assert reml([path[:1] for path in paths], [float(path[0]) for path in paths]) == pytest.approx([2.5, 0.0])


def test_means_that_do_not_differ_leave_the_residual_alone() -> None:
    # The average information of the level is 0 here.
    found = reml([("a",), ("a",), ("a",), ("b",), ("b",), ("c",), ("c",)], [0.5, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    assert found is not None and found[0] == 0 and found[1] == pytest.approx(1.5 / 6)


def test_what_has_no_estimate() -> None:
    assert reml([], []) is None
    assert reml([("a",), ("b",)], [0.0, 1.0]) is None
    assert reml([("a",), ("a",), ("b",)], [0.4, 0.4, 0.4]) == [0.0, 0.0]


def test_the_unit_of_the_values_does_not_matter() -> None:
    paths, values = made(1, 8, (1.0, 0.5, 0.25, 0.36))
    found, scaled = reml(paths, values), reml(paths, [1_000 * value + 7 for value in values])
    assert found is not None and scaled is not None
    assert scaled == pytest.approx([1e6 * one for one in found], rel=1e-6)


def test_many_values_need_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("src.stats.variance.MOST_STEPS", 25)
    draw = random.Random(2)
    paths = [(str(s), str(v), str(w)) for s in range(40) for v in range(5) for w in range(10) for _ in range(3)]
    effects = {path[:depth]: draw.gauss(0, 0.2) for path in paths for depth in (1, 2, 3)}
    values = [sum(effects[path[:depth]] for depth in (1, 2, 3)) + draw.gauss(0, 0.3) for path in paths]
    found = reml(paths, values)
    assert found is not None and found == pytest.approx([0.04, 0.04, 0.04, 0.09], rel=0.6)
