"""Clients of judges: each is bound to a role, a model, its prompt, and the families that may not answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..adapters.base import About, ModelRequest
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
    """What all judge clients of a run, or of a judge check, have in common."""

    gateway: Gateway
    prompts: Mapping[Role, Prompt]
    api_ids: Mapping[str, str]
    parameters: Callable[[str], CallParameters]
    """By model."""
    max_asks: int

    def client(
        self,
        role: Role,
        model: str,
        call: CallId,
        *,
        seed: int,
        families: Sequence[str],
        records: list[CallRecord],
        about: About | None = None,
    ) -> JudgeClient:
        """`families`: families that may not answer here. Every call the client makes is added to `records`."""

        async def make(ask: int, request: ModelRequest) -> CallRecord:
            record = await self.gateway.call(replace(call, ask=ask), request)
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
            parameters=self.parameters(model),
            max_asks=self.max_asks,
            about=about,
            call=make,
        )
