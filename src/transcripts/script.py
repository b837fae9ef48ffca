"""The script of a conversation: what is to be asked, as the API takes it from a planned scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..records.ids import scenario_name
from ..schemas import Condition
from ..store.strict_json import fingerprint

Holds = Callable[[Condition | None, str | None], bool]
"""Whether to ask a turn after this reply (`agents.questioner.holds`)."""


@dataclass(frozen=True)
class ScriptTurn:
    turn_id: str
    user_message: str
    """With its slots filled."""
    condition: Condition | None = None


@dataclass(frozen=True)
class Script:
    scenario_id: str
    variant: str | None
    turns: tuple[ScriptTurn, ...]
    fictional: tuple[str, ...] = ()
    """Texts of the invented person: never personal."""

    @property
    def name(self) -> str:
        return scenario_name(self.scenario_id, self.variant)

    def sha256(self) -> str:
        return fingerprint([[turn.turn_id, turn.user_message] for turn in self.turns])
