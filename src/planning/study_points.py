"""Whether a scenario's key has what the study's points of its rubric ask for."""

from __future__ import annotations

from ..errors import InputError
from ..schemas import PlannedScenario, Rubric


def check_study_points(planned: PlannedScenario, rubric: Rubric) -> None:
    """Every point of the study must be one that an answer to this scenario could make, but for lack of a figure."""
    scenario = planned.scenario
    listed = [fact for fact in scenario.answer_key.canonical_facts if fact.library]
    held = {fact.library: fact.fact_id for fact in listed if not fact.not_published}
    for group in dict.fromkeys(turn.group for turn in scenario.scripted_turns):
        named: dict[frozenset[str], str] = {}
        for point in rubric.rule(group).study_points:
            facts = frozenset(held[library] for library in point.any_of if library in held)
            where = f"scenario {scenario.scenario_id}: question group {group}: the study's point {point.name!r}"
            if not facts and set(planned.left_out).intersection(point.any_of):
                continue
            if not facts:
                raise InputError(
                    f"{where} cannot be made, because the key has none of its facts. "
                    f"Refer to one of them in answer_key.library_facts: {', '.join(point.any_of)}."
                )
            if facts in named:
                raise InputError(
                    f"{where} cannot be told from {named[facts]!r}, because the key has the same facts for both. "
                    f"Refer in answer_key.library_facts to more of: {', '.join(point.any_of)}."
                )
            named[facts] = point.name
