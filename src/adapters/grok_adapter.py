"""xAI's Grok, called with OpenAI's SDK: plain HTTP with readable bodies, unlike xAI's own gRPC SDK."""

from __future__ import annotations

from typing import ClassVar

from .caching import cache_key, rule_for
from .capabilities import Call
from .openai_adapter import Headers, ThirdPartyChat


class GrokAdapter(ThirdPartyChat):
    """`xai:` models; `grok:` is another name for them."""

    provider: ClassVar[str] = "xai"
    extra: ClassVar[str] = "grok"

    def _headers(self, call: Call | None) -> Headers:
        """Also a conversation id for judges: calls with the same one reach the server that has their prefix cached."""
        shared = super()._headers(call)
        if call is None or rule_for(self.provider, call.request, call.model) is None:
            return shared
        return {**shared, "x-grok-conv-id": cache_key(call.request)}
