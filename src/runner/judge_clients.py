"""A judge's client: its model, its prompt and its way through the gateway, held to be no families of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..adapters.base import ModelRequest
from ..agents.ask import JudgeClient
from ..calls.gateway import CallId, Gateway
from ..records.model_name import family_of_id
from ..schemas import (
    CallParameters,
    CallRecord,
    Prompt,
    Role,
)


@dataclass(frozen=True)
class JudgeClients:
    """Where judges sit: what all clients of a run, or of a check of judges, have in common."""

    gateway: Gateway
    prompts: Mapping[Role, Prompt]
    api_ids: Mapping[str, str]
    parameters: CallParameters
    max_asks: int

    def client(
        self, role: Role, model: str, call: CallId, *, seed: int, families: Sequence[str], records: list[CallRecord]
    ) -> JudgeClient:
        """`families`: families that may not answer here. `records` takes every call the client makes."""

        async def make(ask: int, request: ModelRequest) -> CallRecord:
            record = await self.gateway.call(CallId(call.trial, call.stage, call.turn, call.judge, ask), request)
            records.append(record)
            if record.served_model and family_of_id(record.served_model) in families:
                message = f"answered by {record.served_model}, of the target's own family"
                return record.model_copy(update={"outcome": "permanent", "text": None, "error": message})
            return record

        return JudgeClient(
            model=model,
            api_id=self.api_ids.get(model, ""),
            system=self.prompts[role].text,
            prompt_sha256=self.prompts[role].sha256,
            seed=seed,
            parameters=self.parameters,
            max_asks=self.max_asks,
            call=make,
        )
