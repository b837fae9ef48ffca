"""`offline:rules`: judges by rule, without a model or a key. For trying out and for tests, not for findings.

It takes the very request a judge model would get, reads the agent's JSON input from the first message, tells by the
schema asked for which role it is in, and computes an answer (see `offline/`). `offline:rephrase` rewords questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from ..canonical import encode
from ..errors import ConfigError
from ..offline import rules
from ..schemas import (
    AdjudicatorInput,
    ExtractorInput,
    QuestionerOutput,
    Record,
    ScorerInput,
    Usage,
    VerifierInput,
)
from .base import CallFailure, ModelReply, ModelRequest, split_name

ROLE_OF_SCHEMA: dict[str, tuple[type[Record], Callable[[Any], Record]]] = {
    "ExtractorReply": (ExtractorInput, rules.extract),
    "VerifierOutput": (VerifierInput, rules.verify),
    "ScorerReply": (ScorerInput, rules.read),
    "AdjudicatorReply": (AdjudicatorInput, rules.adjudicate),
}


class OfflineAdapter:
    def check(self, model: str) -> None:
        if model not in ("rules", "rephrase"):
            raise ConfigError(f"offline:{model}: there is no such judge; use offline:rules (offline:rephrase rewords).")

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        answer = encode(self._answer(request).model_dump(mode="json")).decode("utf-8")
        return ModelReply(
            outcome="ok",
            text=answer,
            sent=request.as_json(),
            received=answer,
            stop_reason="stop",
            served_model=split_name(request.model)[1],
            usage=Usage(input_tokens=request.characters // 4, output_tokens=len(answer) // 4),
        )

    def _answer(self, request: ModelRequest) -> Record:
        wanted = str((request.response_schema or {}).get("title"))
        try:
            if wanted == "QuestionerOutput":
                asked = QuestionerOutput.model_validate_json(request.messages[0].content)
                return rules.rephrase(asked.turns, request.seed)
            input_type, answer = ROLE_OF_SCHEMA[wanted]
            asked_of = input_type.model_validate_json(request.messages[0].content)
        except (KeyError, ValidationError):
            raise CallFailure("permanent", "offline:rules answers only the harness's own agent inputs") from None
        found: Record = answer(asked_of)
        return found

    async def aclose(self) -> None:
        """Nothing is held open."""
