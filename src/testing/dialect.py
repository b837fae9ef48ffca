"""How a provider's wire format says things: what the author of an adapter describes, so that the kit can speak it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from .server import Response


@dataclass(frozen=True, kw_only=True)
class Said:
    """One answer that the kit wants the server to give."""

    text: str
    model: str
    """The id of the model that answers. It is not the one asked for, so an adapter cannot just repeat that."""
    input_tokens: int = 11
    output_tokens: int = 7


class Dialect(ABC):
    """The response bodies of one wire format.

    Each method returns a JSON value, or a `Response` where status or headers are special too. `truncated`, `refused`
    and `blocked` return None if the format has no way to say that; the kit then skips the case.
    """

    reports_model = True
    """Whether an answer names the model that gave it."""
    reports_usage = True
    """Whether an answer gives its token counts."""

    @abstractmethod
    def ok(self, said: Said) -> Any:
        """A complete answer."""

    def truncated(self, said: Said) -> Any:
        """An answer cut off at the token limit."""
        return None

    def refused(self, said: Said) -> Any:
        """The model declines, in a field or with a stop reason of its own."""
        return None

    def blocked(self, said: Said) -> Any:
        """A filter of the provider stopped the answer."""
        return None

    def error(self, status: int, message: str) -> Any:
        """The body of an error status."""
        return {"error": {"code": status, "message": message}}

    def response(self, said: Any, *, status: int = 200) -> Response:
        """What one of the methods above returned, ready to send. Override it for formats other than JSON."""
        return said if isinstance(said, Response) else Response(status=status, body=json.dumps(said).encode())


class ChatCompletions(Dialect):
    """OpenAI's Chat Completions, which many servers speak."""

    def ok(self, said: Said) -> Any:
        return self._answer(said, {"content": said.text, "refusal": None}, "stop")

    def truncated(self, said: Said) -> Any:
        return self._answer(said, {"content": said.text, "refusal": None}, "length")

    def refused(self, said: Said) -> Any:
        return self._answer(said, {"content": None, "refusal": said.text}, "stop")

    def blocked(self, said: Said) -> Any:
        return self._answer(said, {"content": None, "refusal": None}, "content_filter")

    def _answer(self, said: Said, message: dict[str, Any], stop: str) -> dict[str, Any]:
        total = said.input_tokens + said.output_tokens
        return {
            "id": "chatcmpl-check",
            "object": "chat.completion",
            "created": 0,
            "model": said.model,
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": stop}],
            "usage": {
                "prompt_tokens": said.input_tokens,
                "completion_tokens": said.output_tokens,
                "total_tokens": total,
            },
        }
