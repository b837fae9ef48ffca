"""`transcript:DIR`: recorded conversations answer. A turn gets the words that were said to it, and nobody is called."""

from __future__ import annotations

from pathlib import Path

from ..errors import HarnessError
from ..records.transcript import RecordedTurn
from ..schemas import Usage
from ..store.conversations import RecordedConversations
from .base import CallFailure, ModelReply, ModelRequest

__all__ = ["RecordedConversations", "TranscriptAdapter"]


class TranscriptAdapter:
    """Finds a reply by `request.hint`: `scenario_id[@variant]/turn_id#number`, the number of a conversation from 1."""

    def __init__(self) -> None:
        self._folders: dict[str, RecordedConversations] = {}

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        folder = request.folder
        try:
            found = self._folders.get(folder) or RecordedConversations(Path(folder))
            self._folders[folder] = found
            turn, file_name = self._look_up(found, request.hint)
        except HarnessError as error:
            raise CallFailure("denied", str(error)) from None
        answered = turn.outcome == "answered"
        return ModelReply(
            outcome="empty" if turn.outcome == "no_reply" else "ok",
            text=turn.reply or "",
            sent={"hint": request.hint, "file": file_name},
            received=turn.model_dump(mode="json"),
            stop_reason="stop" if answered else turn.outcome,
            served_model=found.collection.system,
            usage=Usage(input_tokens=0, output_tokens=0),
        )

    def _look_up(self, found: RecordedConversations, hint: str) -> tuple[RecordedTurn, str]:
        place, _, number = hint.partition("#")
        name, _, turn_id = place.partition("/")
        conversations = found.conversations(name)
        at = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
        if not 1 <= at <= len(conversations):
            raise CallFailure(
                "denied", f"{found.folder} has {len(conversations)} conversations about {name}; there is no {at}"
            )
        one = conversations[at - 1]
        turn = next((turn for turn in one.turns if turn.turn_id == turn_id), None)
        if turn is None:
            raise CallFailure("denied", f"{found.folder / one.file_name} has no turn {turn_id!r}")
        return turn, one.file_name

    async def aclose(self) -> None:
        """Nothing to close."""
