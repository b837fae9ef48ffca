"""A judge's seat: its model, its prompt and its way through the door, held to be no kin of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..adapters.base import ModelRequest
from ..agents.ask import Seat
from ..calls.gateway import CallId, Door
from ..records.model_name import family_of_id
from ..schemas import (
    CallParameters,
    CallRecord,
    Prompt,
    Role,
)


@dataclass(frozen=True)
class Bench:
    """Where judges sit: what all seats of a run, or of a check of judges, have in common."""

    door: Door
    prompts: Mapping[Role, Prompt]
    api_ids: Mapping[str, str]
    parameters: CallParameters
    max_asks: int

    def seat(
        self, role: Role, model: str, call: CallId, *, seed: int, kin: Sequence[str], records: list[CallRecord]
    ) -> Seat:
        """`kin`: families that may not answer here. `records` takes every call the seat makes."""

        async def make(ask: int, request: ModelRequest) -> CallRecord:
            record = await self.door.call(CallId(call.trial, call.stage, call.turn, call.judge, ask), request)
            records.append(record)
            if record.served_model and family_of_id(record.served_model) in kin:
                message = f"answered by {record.served_model}, of the target's own family"
                return record.model_copy(update={"outcome": "permanent", "text": None, "error": message})
            return record

        return Seat(
            model=model,
            api_id=self.api_ids.get(model, ""),
            system=self.prompts[role].text,
            prompt_sha256=self.prompts[role].sha256,
            seed=seed,
            parameters=self.parameters,
            max_asks=self.max_asks,
            call=make,
        )
