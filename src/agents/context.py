"""What a reply answers: the question, and what is known about the person who asked it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..schemas import Persona


@dataclass(frozen=True)
class Asked:
    question: str
    plan_year: int
    earlier: tuple[str, ...] = ()
    """What the same person asked before, in the same conversation."""
    persona: tuple[str, ...] = ()
    """What the scenario says about the person."""
    lives_in: str | None = None
    """The person's state."""

    @property
    def given(self) -> tuple[str, ...]:
        """Everything that supplies figures to an answer: a person's own numbers, and the year that is meant."""
        year = f"{self.plan_year} plans"  # a bare number could be money
        return (self.question, *self.earlier, *self.persona, year)


def about(persona: Persona) -> tuple[str, ...]:
    """What a persona says, as text. A ZIP code is no figure: 00000 does not state $0."""
    return tuple(_leaves(persona.model_dump(mode="json", exclude={"zip_code"})))


def state_of(persona: Persona) -> str | None:
    """The persona's state; None if the scenario gives none as text."""
    return persona.state if isinstance(persona.state, str) else None


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, float) and value.is_integer():
        yield f"{value:.0f}"
    elif value is not None and not isinstance(value, bool):
        yield str(value)
