"""Names that are made of other names. Nothing here needs Pydantic, so that `verify` starts quickly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answer_key import AnswerKey


def scenario_name(scenario_id: str, variant: str | None) -> str:
    """The name that trials use for a planned scenario: `scenario_001`, or `medicare_only@hmo`."""
    return f"{scenario_id}@{variant}" if variant else scenario_id


def disallowed_id(number: int) -> str:
    """The id of a disallowed claim, by its place in the key from 1."""
    return f"D{number}"


def fact_ids(key: AnswerKey) -> frozenset[str]:
    return frozenset(fact.fact_id for fact in key.canonical_facts) | frozenset(key.library_facts or ())


def evidence_ids(key: AnswerKey) -> frozenset[str]:
    """What a verdict may cite of a key: its facts and its disallowed claims."""
    return fact_ids(key) | {disallowed_id(number) for number, _ in enumerate(key.disallowed_claims or (), 1)}
