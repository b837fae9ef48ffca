"""The gold set: replies whose claims were labeled by hand, each label with its reason. Judges are measured on it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import (
    Ident,
    Label,
    Line,
    Record,
    Severity,
    Text,
    is_empty,
)
from .facts import PlanYear

ClaimKind = Literal[
    "plain", "paraphrase", "wrong_figure", "other_year", "swapped_program", "negation", "half_true", "hedged",
    "over_general", "not_in_key", "disallowed", "key_only", "derived", "absolute", "equal_quantity",
    "condition_left_out",
]  # fmt: skip
"""`other_year`: the right figure of another year. `key_only`: the reply does not say it, only the key does. `derived`:
a figure computed from the key's. `equal_quantity`: the key's quantity in another unit or in words."""
Split = Literal["dev", "held_out", "second", "third"]


class Labeling(Record):
    """What one labeler said about a claim, before the labelers' differences were settled."""

    label: Label
    evidence: tuple[str, ...]
    severity: Severity
    kind: ClaimKind
    reason: Line


class GoldClaim(Labeling):
    claim_id: Ident
    text: Text
    quotes: tuple[Text, ...] = Field(min_length=1)
    labelings: tuple[Labeling, ...] = ()
    """Of independent labelers; empty if one person labeled the claim."""


class PlantedError(Record):
    """A sentence that the reply's writer made wrong on purpose."""

    sentence: Text
    why_wrong: Line


class GoldReply(Record):
    reply_id: Ident
    turn_id: Ident
    variant: Ident | None = None
    quality: Literal["good", "mixed", "poor", "refusal"]
    text: Text
    asked: tuple[Text, ...] = Field(default=(), exclude_if=is_empty)
    """The person's messages as they were sent, the one that this replies to last. Empty: those of the scenario."""
    planted_errors: tuple[PlantedError, ...] = ()
    claims: tuple[GoldClaim, ...]


class GoldFile(Record):
    """`gold/<split>/<scenario>.json`"""

    scenario_id: Ident
    plan_year: PlanYear
    split: Split | None = None
    note: Line | None = None
    replies: tuple[GoldReply, ...] = Field(min_length=1)
