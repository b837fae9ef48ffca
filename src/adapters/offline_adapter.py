"""`offline:rules`: judges by rules, without a model or a key. For demos and tests; do not report its scores.

It gets the same request as a judge model, reads the agent's JSON input from the first message, takes its role from the
requested schema, and computes an answer (see `offline/`). `offline:rephrase` rewords questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..offline import rules
from ..records.model_name import split_name
from ..schemas import AdjudicatorInput, ExtractorInput, QuestionerOutput, Record, ScorerInput, Usage, VerifierInput
from ..store.strict_json import encode
from ..text.fence import unwrap
from .base import CallFailure, ModelReply, ModelRequest

ROLE_OF_SCHEMA: dict[str, tuple[type[Record], Callable[[Any], Record]]] = {
    "ExtractorReply": (ExtractorInput, rules.extract),
    "VerifierOutput": (VerifierInput, rules.verify),
    "ScorerReply": (ScorerInput, rules.read),
    "AdjudicatorReply": (AdjudicatorInput, rules.adjudicate),
}


class OfflineAdapter:
    def check(self, model: str) -> None:
        if model not in ("rules", "rephrase"):
            raise InputError(
                f"offline:{model} does not exist. Use offline:rules to judge, or offline:rephrase to reword questions."
            )

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        answer = self._answer(request)
        return ModelReply(
            outcome="ok",
            text=answer,
            sent=request.as_json(),
            received=answer,
            stop_reason="stop",
            served_model=split_name(request.model).model,
            usage=Usage(input_tokens=request.characters // 4, output_tokens=len(answer) // 4),
        )

    def _answer(self, request: ModelRequest) -> str:
        wanted = str((request.response_schema or {}).get("title"))
        found: Record
        try:
            sent = unwrap(request.messages[0].content)
            if wanted == "QuestionerOutput":
                found = rules.rephrase(QuestionerOutput.model_validate_json(sent.input).turns, request.seed)
            else:
                input_type, answer = ROLE_OF_SCHEMA[wanted]
                found = answer(input_type.model_validate_json(sent.input))
        except (KeyError, TypeError, ValueError):
            raise CallFailure("permanent", "offline:rules answers only the inputs of this program's agents") from None
        return encode({"canary": sent.canary, **found.model_dump(mode="json")}).decode("utf-8")

    async def aclose(self) -> None:
        """Nothing to close."""
