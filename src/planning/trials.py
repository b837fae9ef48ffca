"""The trials of a plan, in plan order, and the calls they need."""

from __future__ import annotations

from dataclasses import dataclass
from re import sub
from typing import TYPE_CHECKING

from ..records.ids import repeats_in, repeats_of, scenario_name
from ..store.strict_json import derive_seed

if TYPE_CHECKING:
    from ..records.run import Manifest, PlannedScenario, RunPlan


@dataclass(frozen=True)
class Trial:
    """One scenario asked of one target once."""

    trial_id: str
    planned: PlannedScenario
    target: str
    repetition: int
    question_set: int = 0
    """Counts the scenarios and repetitions of the plan. The trials of one set are asked the same."""

    @property
    def questions_id(self) -> str:
        """Names the wording that all targets of one scenario and repetition share."""
        return f"{self.planned.name}.r{self.repetition}"

    def question_seed(self, run_seed: int) -> int:
        """The same for every target and variant, so that all are asked the same."""
        return derive_seed(run_seed, self.planned.scenario.scenario_id, self.repetition, "questioner")

    def seed(self, run_seed: int, *use: object) -> int:
        return derive_seed(run_seed, self.planned.name, self.target, self.repetition, *use)


def slug(name: str) -> str:
    return sub(r"[^A-Za-z0-9_-]+", "-", name)


def trials(plan: RunPlan) -> list[Trial]:
    """All trials in plan order: by scenario, then repetition, then target, so that targets are asked close together."""
    sets = [
        (planned, name, repetition)
        for planned in plan.scenarios
        for name in (scenario_name(planned.scenario.scenario_id, planned.variant),)
        for repetition in range(1, repeats_in(plan, name) + 1)
    ]
    return [
        Trial(f"{name}.{slug(target)}.r{repetition}", planned, target, repetition, question_set)
        for question_set, (planned, name, repetition) in enumerate(sets)
        for target in plan.targets
        if repetition <= repeats_of(plan, target, name)
    ]


def trials_of(manifest: Manifest) -> list[Trial]:
    """The trials of a run folder, in plan order: all of its plan, those of its shard, or those judged again."""
    everything = trials(manifest.plan)
    selected = manifest.transcripts.selected if manifest.transcripts else None
    if selected:
        wanted = {*selected.chosen, *selected.sampled}
        return [trial for trial in everything if trial.trial_id in wanted]
    if not manifest.shard:
        return everything
    return [trial for trial in everything if shard_of(manifest, trial) == manifest.shard.index]


def shard_of(manifest: Manifest, trial: Trial) -> int:
    """Which shard has a trial. Question sets go round, so that shards are alike."""
    assert manifest.shard is not None
    return trial.question_set % manifest.shard.of + 1


def in_noise_sample(plan: RunPlan, trial: Trial) -> bool:
    """Whether the verifiers judge this trial again to measure their noise; drawn by the seed alone."""
    if not plan.judge_repeats:
        return False
    return derive_seed(plan.seed, "rejudged", trial.trial_id) % 10_000 < 10_000 * plan.judge_sample


def planned_calls(plan: RunPlan) -> dict[str, int]:
    """Calls by role if every turn is asked, every first answer is usable, and no claim is tied."""
    turns = sum(
        len(planned.scenario.scripted_turns) * repeats_of(plan, target, planned.name)
        for planned in plan.scenarios
        for target in plan.targets
    )
    reworded = sum(planned.scenario.variation_knobs.paraphrase for planned in plan.scenarios)
    return {
        "questioner": reworded * plan.repeats if plan.questioner else 0,
        "target": turns,
        "extractor": turns,
        "verifier": round(turns * len(plan.verifiers) * (1 + plan.judge_repeats * plan.judge_sample)),
        "scorer": turns,
        "adjudicator": 0,
    }
