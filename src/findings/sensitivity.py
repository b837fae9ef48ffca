"""How much scores vary with wording, voice, knobs, repeats and judges, and how often codes stay the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..records.ids import scenario_name
from ..scoring.definitions import LESS_IS_BETTER
from ..stats.bounded import Bounded, bounded_by_cluster
from ..stats.clustered import ClusteredShare
from ..stats.variance import Components, crossed, nested
from ..stats.variants import RankChange, WorstCase, rank_changes, variant_means, worst_case
from ..trials.missing import MISSING
from ..trials.row import Row
from .estimates import Estimated, estimate, key_coverage
from .judge_agreement import SEED
from .pairs import value
from .read_run import Findings
from .rule_judge import run_notices


@dataclass(frozen=True)
class Sensitivity:
    target: str
    measure: str
    left_out: int
    """Trials without a value: missing by the rule of `missing`, or without anything to score."""
    components: Components
    """Between scenarios, between variants of a scenario, between wordings of a variant, and between repeats."""
    judges: Components | None
    """Between trials and between judges; only for accuracy, and only if judges scored the same trials."""
    worst: WorstCase
    estimate: Estimated
    """The measure over all questions, with what missing answers could make of it."""
    coverage: ClusteredShare
    """Key coverage, which belongs beside every accuracy."""


@dataclass(frozen=True)
class Sensitivities:
    targets: tuple[Sensitivity, ...]
    ranks: tuple[RankChange, ...]
    """How the order of the targets under one voice differs from their order under the others."""
    styles: dict[str, dict[str, float]]
    """Target to voice to the mean over scenarios."""
    notices: tuple[str, ...] = ()
    """What every reader must know before the numbers."""


LEVELS = ("scenario", "variant", "wording")


def sensitivity(found: Findings, measure: str = "accuracy") -> Sensitivities:
    """Components of variance of a measure for each target, and how its mean depends on the voice."""
    voices = {planned.name: planned.scenario.style or "plain" for planned in found.manifest.plan.scenarios}
    rows = {target: found.of_target(target) for target in found.plan_targets}
    by_voice: dict[str, dict[str, dict[str, list[float]]]] = {target: {} for target in rows}
    for target, listed in rows.items():
        for row in listed:
            one = value(row, measure)
            if one is not None:
                name = scenario_name(row.scenario_id, row.variant)
                voice = by_voice[target].setdefault(voices.get(name, "plain"), {})
                voice.setdefault(row.scenario_id, []).append(one)
    several = sum(bool(values) for values in by_voice.values()) > 1
    return Sensitivities(
        tuple(_of_target(target, listed, measure) for target, listed in rows.items()),
        tuple(rank_changes(by_voice, seed=SEED)) if several else (),
        variant_means(by_voice),
        run_notices([found]),
    )


def _of_target(target: str, rows: list[Row], measure: str) -> Sensitivity:
    scored = [(row, one) for row in rows if (one := value(row, measure)) is not None]
    values = [((row.scenario_id, row.variant or "-", row.wording), one) for row, one in scored]
    judged = {
        (row.trial_id, f"judge_{number}"): accuracy
        for row in rows
        for number, accuracy in enumerate(row.by_judge, 1)
        if accuracy is not None
    }
    judges = crossed(judged) if measure == "accuracy" and judged else None
    variants = [(row.scenario_id, row.variant or row.wording, one) for row, one in scored]
    worst = worst_case(variants, less_is_better=measure in LESS_IS_BETTER)
    left_out = len(rows) - len(scored)
    return Sensitivity(
        target, measure, left_out, nested(values, LEVELS), judges, worst, estimate(rows, measure), key_coverage(rows)
    )


@dataclass(frozen=True)
class Stability:
    repeated: int
    """Questions of a script that were asked at least twice."""
    same_when_repeated: Bounded
    """Of these, the share that got the same code each time; scenarios are the independent units."""
    varied: int
    """Questions that were asked in at least two variants."""
    same_when_varied: Bounded
    """Of these, the share that got the same codes in every variant."""


def stability(rows: Iterable[Row]) -> Stability:
    codes: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        for group, code in row.counted:
            if code != MISSING:
                codes.setdefault((row.scenario_id, group), {}).setdefault(row.variant or "", []).append(code)
    repeated = [
        (scenario_id, _same(answers))
        for (scenario_id, _), variants in codes.items()
        for answers in variants.values()
        if len(answers) > 1
    ]
    varied = [
        (scenario_id, _same([code for answers in variants.values() for code in answers]))
        for (scenario_id, _), variants in codes.items()
        if len(variants) > 1
    ]
    return Stability(len(repeated), bounded_by_cluster(repeated), len(varied), bounded_by_cluster(varied))


def _same(codes: Sequence[str]) -> float:
    return float(len(set(codes)) == 1)
