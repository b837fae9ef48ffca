"""What must stay the same within a segment, and the thresholds of its lines, from the plan of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from math import ceil
from typing import Any

from ..findings.read_run import group_rules
from ..records.series import ClusterDesign, LineLimit, Outcome, PlanParts, Segment, Series, SimulatedPower
from ..schemas import RunPlan
from ..scoring.definitions import SCORES
from ..stats.monitoring import Cluster, Design
from ..stats.monitoring_limits import Drop, power, threshold
from ..store.strict_json import fingerprint

CLUSTERS_SIMULATED = 24_000
"""For each kind of chance; so many series that a threshold takes some seconds, however many clusters there are."""
LEAST_SIMULATED, MOST_SIMULATED = 1_000, 2_000
"""Series for each kind of chance, unless the level needs more."""
LEAST_PASSING = 10
"""Simulated series beyond the threshold."""
POWER_SERIES = 400
AFTER = 6
"""Points before the change whose power is recorded: half a year of monthly points, or half of a shorter series."""
_DECIMALS = 4
"""Of recorded thresholds: more would differ between machines."""
_JUDGING = ("verifiers", "extractor", "scorer", "adjudicator", "judge_parameters", "isolation", "audit_sample")
_ASKING = ("repeats", "seed", "questioner")


def plan_parts(plan: RunPlan) -> PlanParts:
    whole = plan.model_dump(mode="json")
    judges = plan.judge_models()
    own = whole.get("model_parameters", {})
    return PlanParts(
        plan_year=plan.plan_year,
        key=fingerprint([_scripts(whole, _key), whole.get("citation_checks")]),
        rubric=fingerprint({name: {**rubric["rubric"], "note": ""} for name, rubric in whole["rubrics"].items()}),
        judging=fingerprint(
            [
                {name: whole.get(name) for name in _JUDGING},
                {model: [whole["api_ids"].get(model), own.get(model)] for model in judges},
                {role: prompt["text"] for role, prompt in whole["prompts"].items() if role != "questioner"},
            ]
        ),
        asking=fingerprint(
            [
                {name: whole.get(name) for name in _ASKING},
                _scripts(whole, lambda one, turns: [[turn["turn_id"] for turn in turns]]),
            ]
        ),
        questions=fingerprint(
            _scripts(whole, lambda one, turns: [one["scenario"]["persona"], [turn["user_message"] for turn in turns]])
        ),
        files=fingerprint([one["sha256"] for one in whole["scenarios"]]),
        targets={target: fingerprint(_target(whole, target)) for target in plan.targets},
    )


def _target(whole: Mapping[str, Any], target: str) -> list[Any]:
    """A target as it is asked; recorded conversations are another set at every point."""
    settings = dict(whole.get("target_settings", {}).get(target, {}))
    settings.pop("recorded", None)
    own = whole.get("model_parameters", {}).get(target) or whole["target_parameters"]
    return [whole["api_ids"].get(target), own, settings]


def _scripts(whole: Mapping[str, Any], read: Callable[[dict[str, Any], list[dict[str, Any]]], list[Any]]) -> list[Any]:
    """Every planned script with its name, and what `read` finds in it and its turns."""
    return [
        [one["scenario"]["scenario_id"], one.get("variant"), *read(one, one["scenario"]["scripted_turns"])]
        for one in whole["scenarios"]
    ]


def _key(one: dict[str, Any], turns: list[dict[str, Any]]) -> list[Any]:
    """All that decides what an answer is worth: the key, and what each question requires."""
    required = [{name: value for name, value in turn.items() if name != "user_message"} for turn in turns]
    return [one.get("state_code"), one["scenario"]["answer_key"], one["scenario"]["rubric_version"], required]


def facts_sha256(plan: RunPlan) -> str:
    """Of the library's facts that verifiers may use beyond the keys. Facts come and go with their dates."""
    return fingerprint([fact.model_dump(mode="json") for fact in plan.background])


def changes(before: PlanParts, after: PlanParts) -> Iterator[str]:
    """Why points of the two cannot be compared, apart from the judges and what is asked."""
    if before.plan_year != after.plan_year:
        yield f"plan year {after.plan_year}"
        if before.files != after.files:
            yield "the scenario files changed"
    elif before.key != after.key:
        yield "the answer key changed"
    if before.rubric != after.rubric:
        yield "the rubric changed"


def other_study(before: PlanParts, after: PlanParts) -> Iterator[str]:
    """Why two plans are not of the same study."""
    if before.asking != after.asking:
        yield "the scenarios, their turns, the number of repeats or the seed changed"
    if before.plan_year == after.plan_year and before.questions != after.questions:
        yield "the questions changed"
    for target, settings in after.targets.items():
        if target not in before.targets:
            yield f"{target} is a new target"
        elif before.targets[target] != settings:
            yield f"the model id, the parameters or the settings of {target} changed"


def segment_of(
    series: Series,
    plan: RunPlan,
    study: Mapping[str, Any],
    *,
    number: int,
    judging: int,
    reasons: Sequence[str],
    anchors: Mapping[str, int] | None,
) -> Segment:
    """A segment with its thresholds. `anchors`: labeled replies and how many claims each has."""
    targets = {outcome: Design(_clusters(plan, outcome), series.floor) for outcome in series.outcomes}
    lines = len(plan.targets) * len(series.outcomes)
    of_judges = lines + (len(set(plan.verifiers)) + 1 if anchors else 0)
    return Segment(
        number=number,
        reasons=tuple(reasons),
        judging=judging,
        parts=plan_parts(plan),
        study=dict(study),
        verifiers=plan.verifiers,
        extractor=plan.extractor,
        scorer=plan.scorer,
        adjudicator=plan.adjudicator,
        targets={name: _limit(series, one, lines, with_power=True) for name, one in targets.items()},
        frozen={name: _limit(series, one, of_judges, with_power=False) for name, one in targets.items()},
        anchors=_limit(series, _of_replies(series, anchors), of_judges, with_power=False) if anchors else None,
    )


def _clusters(plan: RunPlan, outcome: Outcome) -> dict[str, Cluster]:
    scripts = Counter(planned.scenario.scenario_id for planned in plan.scenarios)
    questions: dict[str, int] = dict.fromkeys(scripts, 0)
    for (name, _), rule in group_rules(plan).items():
        questions[name] += not rule.closed
    if outcome in SCORES:
        questions = dict.fromkeys(scripts, 1)
    return {
        name: Cluster(questions[name], questions[name] * scripts[name] * plan.repeats)
        for name in sorted(scripts)
        if questions[name]
    }


def _of_replies(series: Series, anchors: Mapping[str, int]) -> Design:
    return Design({name: Cluster(claims, claims) for name, claims in sorted(anchors.items())}, series.floor)


def _limit(series: Series, design: Design, lines: int, *, with_power: bool) -> LineLimit:
    sizes = _sizes(design)
    level = series.alpha / lines
    count = series_simulated(len(sizes), level)
    limit = _threshold(sizes, design.floor, series.points, level=level, seed=series.seed, series=count)
    simulate = partial(_power, sizes, design.floor, series.points, level=level, seed=series.seed, limit=limit)
    return LineLimit(
        clusters={name: ClusterDesign(weight=weight, answers=answers) for name, weight, answers in sizes},
        points=series.points,
        level=level,
        limit=limit,
        series=count,
        seed=series.seed,
        power=simulate() if with_power else None,
    )


def series_simulated(clusters: int, level: float) -> int:
    """How many series are simulated for each kind of chance."""
    return max(LEAST_SIMULATED, min(MOST_SIMULATED, CLUSTERS_SIMULATED // clusters), ceil(LEAST_PASSING / level))


_Sizes = tuple[tuple[str, float, float], ...]


def _sizes(design: Design) -> _Sizes:
    return tuple((name, one.weight, one.answers) for name, one in design.clusters.items())


@lru_cache(maxsize=64)
def _threshold(sizes: _Sizes, floor: float, points: int, *, level: float, seed: int, series: int) -> float:
    design = Design({name: Cluster(weight, answers) for name, weight, answers in sizes}, floor)
    return round(threshold(design, points=points, level=level, series=series, seed=seed), _DECIMALS)


@lru_cache(maxsize=64)
def _power(sizes: _Sizes, floor: float, points: int, *, level: float, seed: int, limit: float) -> SimulatedPower:
    """For a drop of the floor."""
    design = Design({name: Cluster(weight, answers) for name, weight, answers in sizes}, floor)
    change = Drop(floor, min(AFTER, max(1, points // 2)))
    alarm, claim = power(design, limit=limit, level=level, points=points, change=change, series=POWER_SERIES, seed=seed)
    return SimulatedPower(drop=change.drop, after=change.after, alarm=alarm, claim=claim)


def simulated_limit(design: Design, limit: LineLimit) -> float:
    """The threshold of a line, computed again."""
    return _threshold(
        _sizes(design), design.floor, limit.points, level=limit.level, seed=limit.seed, series=limit.series
    )


def design_of(limit: LineLimit, floor: float) -> Design:
    return Design({name: Cluster(one.weight, one.answers) for name, one in limit.clusters.items()}, floor)
