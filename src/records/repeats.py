"""How often a plan asks each scenario of each target. Nothing here needs Pydantic, so that `verify` starts quickly."""

from __future__ import annotations

from typing import Any

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
