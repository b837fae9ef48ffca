"""What every reader of scores by the rule-based judge must know: it is a test double, and how often it is right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """What `judge-check --judge-model offline:rules` finds end to end on one part of the gold set."""

    part: str
    """In words, as the notice has it."""
    claims: int
    right: float
    """Of the gold claims, the share that got their gold label."""
    contradicted_precision: float
    """Of the gold claims labeled CONTRADICTED, the share whose gold label it is."""
    supported_precision: float


MEASURED = (
    Measured(part="the held-out gold part", claims=0, right=0.0, contradicted_precision=0.0, supported_precision=0.0),
    Measured(part="the second gold part", claims=0, right=0.0, contradicted_precision=0.0, supported_precision=0.0),
)
"""A test compares these figures with a real check; change them together with the rules."""


def _figures(one: Measured) -> str:
    return (
        f"{one.right:.0%} of {one.claims} claims right on {one.part} (CONTRADICTED right in "
        f"{one.contradicted_precision:.0%}, SUPPORTED in {one.supported_precision:.0%})"
    )


OFFLINE_NOTICE = (
    "Judged by offline:rules, a built-in rule-based judge meant for demos and tests. It is a test double: end to end, "
    f"it gets {' and '.join(map(_figures, MEASURED))}. Do not report these scores as results."
)
