"""The words all records share: constrained strings, closed lists, and the frozen base class."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Ident = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""An id of a scenario, turn, fact or knob: letters, digits, - and _; safe in a file name and in a trial id."""
FactId = Annotated[str, StringConstraints(pattern=r"^[A-CE-Za-z][A-Za-z0-9_-]{0,63}$|^D[A-Za-z_-][A-Za-z0-9_-]{0,62}$")]
"""A fact's id. D followed by a digit is kept for disallowed claims, which are numbered D1, D2, ... by position."""
Line = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Phrase = Annotated[str, StringConstraints(pattern=r"[^\s\p{P}]", max_length=1_000)]
"""Words to look for: at least one letter, digit or symbol."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ModelName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*:[^\s]{1,200}$")]
"""`provider:model`, as the user writes it."""
Unit = Annotated[float, Field(ge=0.0, le=1.0)]
Scalar = str | int | float | bool

Severity = Literal["none", "low", "medium", "high"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""From harmless to severe."""
Label = Literal["SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"]
Confidence = Literal["high", "medium", "low"]
ClaimType = Literal["factual", "recommendation", "referral", "other"]
ObservationKind = Literal["refusal", "referral", "hedge", "fabricated_specific"]
CallOutcome = Literal[
    "ok", "refused", "blocked", "truncated", "empty", "transient", "timeout", "rate_limited", "malformed", "permanent",
    "denied",
]  # fmt: skip
"""The outcome of one attempt at one call. Only `ok` is an answer.

`denied`: the provider refuses the key, the account or the model, whatever is asked. It ends no call: the run stops, and
a resumed run tries again.
"""
TurnOutcome = Literal[
    "answered", "refused", "blocked", "truncated", "empty", "transient", "timeout", "rate_limited", "malformed",
    "permanent", "skipped", "not_asked",
]  # fmt: skip
"""`skipped`: its condition did not hold. `not_asked`: an earlier turn failed and the conversation ended there."""
TrialOutcome = Literal[
    "scored", "refused", "blocked", "truncated", "empty", "failed", "judge_failure", "questioner_failure", "tampered"
]  # fmt: skip
"""`tampered`: a reply addressed the judge and was not scored; only runs of formats 1 and 2 contain it."""
ErrorCategory = Literal[
    "contradiction", "disallowed_claim", "fabricated_specific", "omission", "overconfidence", "refusal"
]


def severity_rank(severity: Severity) -> int:
    """0 for none up to 3 for high."""
    return SEVERITIES.index(severity)


def is_none(value: object) -> bool:
    return value is None


def is_false(value: object) -> bool:
    return value is False


def is_zero(value: float) -> bool:
    return value == 0


def is_empty(value: Sized) -> bool:
    return not len(value)


def is_absent(value: object) -> bool:
    """Whether a field says nothing: it has no value, or its list is empty."""
    return value is None or value == ()


def no_repeats(what: str, ids: Sequence[str]) -> None:
    """A ValueError names the first id that appears more than once."""
    for name in ids:
        if ids.count(name) > 1:
            raise ValueError(f"{what} {name!r} appears more than once")


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)
