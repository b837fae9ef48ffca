"""Names made of other names, and how often a plan asks each scenario.

Nothing here needs Pydantic, so that `verify` starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol

    class KeyFact(Protocol):
        @property
        def fact_id(self) -> str: ...

    class Key(Protocol):
        """An answer key: the record, or a struct with its fields."""

        @property
        def canonical_facts(self) -> Collection[KeyFact]: ...
        @property
        def library_facts(self) -> Collection[str]: ...
        @property
        def disallowed_claims(self) -> Collection[str]: ...


def scenario_name(scenario_id: str, variant: str | None) -> str:
    """The name that trials use for a planned scenario: `scenario_001`, or `medicare_only@hmo`."""
    return f"{scenario_id}@{variant}" if variant else scenario_id


def disallowed_id(number: int) -> str:
    """The id of a disallowed claim, by its place in the key from 1."""
    return f"D{number}"


def fact_ids(key: Key) -> frozenset[str]:
    return frozenset(fact.fact_id for fact in key.canonical_facts) | frozenset(key.library_facts or ())


def evidence_ids(key: Key) -> frozenset[str]:
    """What a verdict may cite of a key: its facts and its disallowed claims."""
    return fact_ids(key) | {disallowed_id(number) for number, _ in enumerate(key.disallowed_claims or (), 1)}


Plan = Any
"""A `RunPlan`, or a struct with its fields, of which those that are absent are false."""


def repeats_of(plan: Plan, target: str, scenario: str) -> int:
    """Trials of a target with a scenario or variant: the plan's repeats, or as many as conversations were recorded."""
    settings = plan.target_settings and plan.target_settings.get(target)
    recorded = settings and settings.recorded
    repeats: int = len(recorded.conversations.get(scenario, ())) if recorded else plan.repeats
    return repeats


def repeats_in(plan: Plan, scenario: str) -> int:
    """Of the target that has most."""
    return max(repeats_of(plan, target, scenario) for target in plan.targets)
