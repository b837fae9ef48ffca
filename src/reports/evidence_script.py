"""One script, a scenario or one variant of it, as evidence pages show it: its facts, points and questions as HTML."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import cached_property

from markupsafe import Markup

from ..records.answer_key import point_name
from ..records.scenario import SLOT
from ..schemas import BackgroundFact, CanonicalFact, GroupRule, PlannedScenario, RunPlan
from . import template


class Script:
    """What the pages of a script share; made once and used for every trial of it."""

    def __init__(self, plan: RunPlan, planned: PlannedScenario) -> None:
        self.planned = planned
        self.scenario = planned.scenario
        self._plan = plan
        self._rubric = plan.rubrics[planned.scenario.rubric_version].rubric
        self._made: dict[tuple[str, str | tuple[str, ...]], Markup] = {}

    @cached_property
    def facts(self) -> dict[str, CanonicalFact | BackgroundFact]:
        """Facts of the key and of the shared library, by id."""
        background: dict[str, CanonicalFact | BackgroundFact] = {fact.fact_id: fact for fact in self._plan.background}
        return background | {fact.fact_id: fact for fact in self.scenario.answer_key.canonical_facts}

    @cached_property
    def disallowed(self) -> dict[str, str]:
        return {claim.claim_id: claim.statement for claim in self.scenario.answer_key.disallowed()}

    def statement(self, name: str) -> Markup:
        """What a fact says, or a claim that no answer may make."""
        return self.shown("statement", name)

    def source(self, name: str) -> Markup:
        """Title, place, address, dates and status of a fact's source."""
        return self.shown("source", name)

    def sources(self, cited: Iterable[str]) -> Markup:
        """The facts that a page cites, each with its source, dates and status."""
        return template.macro("facts", "sources", self, sorted(cited, key=_in_order))

    def shown(self, part: str, name: str | tuple[str, ...]) -> Markup:
        """What a macro of `facts.html.j2` makes of a fact, a point, or several facts; made once."""
        if (part, name) not in self._made:
            self._made[part, name] = template.macro("facts", part, self, name)
        return self._made[part, name]

    @cached_property
    def study_words(self) -> dict[str, str]:
        """The published study's points by their names in results, in words."""
        points = [point for group in self.groups for point in self.rule(group).study_points]
        return {"|".join(names): point.name for point in points if (names := self._key_ids(point.any_of))}

    def rule(self, group: str) -> GroupRule:
        return self._rubric.rule(group)

    def topic(self, group: str) -> str:
        """What a question is about; empty if no rule names it."""
        rule = self._rubric.groups.get(group) or self._rubric.groups.get(group.partition("-")[0])
        if rule is None:
            return ""
        return f"study group {rule.study_group}, {rule.topic}" if rule.study_group else rule.topic

    @cached_property
    def groups(self) -> dict[str, list[str]]:
        """Question group to the ids of its turns, in the order of the script."""
        found: dict[str, list[str]] = {}
        for turn in self.scenario.scripted_turns:
            found.setdefault(turn.group, []).append(turn.turn_id)
        return found

    @property
    def title(self) -> str:
        return self.scenario.title

    def questions(self, group: str) -> Iterator[str]:
        """The turns of a question as they were planned."""
        for turn in self.scenario.scripted_turns:
            if turn.group == group:
                yield SLOT.sub(self._filled, turn.user_message)

    def _filled(self, slot: re.Match[str]) -> str:
        """What a slot shows; a slot that each trial fills in its own way stays as it is."""
        try:
            return self.scenario.slot_value(slot[1], {})
        except KeyError:
            return slot[0]

    def points_of(self, group: str) -> Iterator[str]:
        """The names of the points that a complete answer to a question makes."""
        rule = self.rule(group)
        if rule.study_points:
            for point in rule.study_points:
                if names := self._key_ids(point.any_of):
                    yield "|".join(names)
            return
        turns = [turn for turn in self.scenario.scripted_turns if turn.group == group]
        yield from dict.fromkeys(point_name(point) for turn in turns for point in turn.required_points)

    def _key_ids(self, listed: Container[str]) -> list[str]:
        """The facts of the key that library ids, or their own ids, name; as `scoring` finds them."""
        return [
            fact.fact_id
            for fact in self.scenario.answer_key.canonical_facts
            if not fact.not_published and (fact.fact_id in listed or fact.library in listed)
        ]


def _in_order(name: str) -> tuple[str, int, str]:
    """F2 before F10."""
    letters = name.rstrip("0123456789")
    digits = name[len(letters) :]
    return letters, int(digits) if digits else 0, name


def scripts_of(plan: RunPlan) -> dict[tuple[str, str | None], Script]:
    """Every script of a plan, by scenario and variant."""
    return {(planned.scenario.scenario_id, planned.variant): Script(plan, planned) for planned in plan.scenarios}
