"""What one point of a series has: values by scenario from a run, labels by reply from a judge check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from ...records.judge_check import JudgeCheck, JudgeMeasured
from ...records.series import MissingAnswers, Outcome, RightLabels, ScenarioValue, TargetPoint
from ...trials.row import Row
from .estimates import question_values, tallied_rows
from .read_run import Findings

END_TO_END = "all judges, end to end"


def values_by_scenario(rows: Sequence[Row], outcome: Outcome) -> dict[str, ScenarioValue]:
    """Each question is averaged over repeats, then over variants; a scenario over its questions."""
    found: dict[str, list[float]] = {}
    for one in question_values(tallied_rows(rows, outcome)):
        found.setdefault(one.question.scenario_id, []).append(one.value)
    return {
        name: ScenarioValue(value=fsum(values) / len(values), questions=len(values))
        for name, values in sorted(found.items())
    }


def missing_answers(rows: Sequence[Row], outcome: Outcome) -> MissingAnswers:
    tallies = [tally for variants in tallied_rows(rows, outcome).values() for tally in variants.values()]
    missing = sum(tally.missing for tally in tallies)
    return MissingAnswers(missing=missing, of=missing + sum(tally.n for tally in tallies))


def target_points(found: Findings, outcomes: Iterable[Outcome]) -> dict[str, TargetPoint]:
    chosen = tuple(outcomes)
    points = {}
    for target in found.plan_targets:
        rows = found.of_target(target)
        service = found.services.get(target)
        points[target] = TargetPoint(
            values={name: values_by_scenario(rows, name) for name in chosen},
            missing={name: missing_answers(rows, name) for name in chosen},
            served=tuple(sorted(service.served)) if service else (),
            fingerprints=tuple(sorted(service.fingerprints)) if service else (),
        )
    return points


def values_of_targets(
    found: Findings, outcomes: Iterable[Outcome]
) -> dict[str, dict[Outcome, dict[str, ScenarioValue]]]:
    """What the judges made of each target's transcripts."""
    chosen = tuple(outcomes)
    return {
        target: {name: values_by_scenario(found.of_target(target), name) for name in chosen}
        for target in found.plan_targets
    }


def served_judges(found: Findings) -> dict[str, tuple[str, ...]]:
    judges = found.manifest.plan.judge_models()
    return {name: tuple(sorted(found.services[name].served)) for name in judges if name in found.services}


def anchor_labels(record: JudgeCheck) -> dict[str, dict[str, RightLabels]]:
    """Of each verifier, and of all judges end to end: how many claims of each reply got the right label."""
    found = {name_of(one): _labels(one) for one in record.judges if one.model}
    if record.end_to_end:
        found[END_TO_END] = _labels(record.end_to_end)
    return found


def name_of(judge: JudgeMeasured) -> str:
    return str(judge.model)


def _labels(judge: JudgeMeasured) -> dict[str, RightLabels]:
    return {
        reply.reply_id: RightLabels(
            right=sum(one.claims for one in reply.confusion if one.given == one.gold),
            of=sum(one.claims for one in reply.confusion),
        )
        for reply in sorted(judge.replies, key=lambda one: one.reply_id)
        if reply.confusion
    }
