"""xAI's Grok, called with OpenAI's SDK: plain HTTP with readable bodies, unlike xAI's own gRPC SDK."""

from __future__ import annotations

from typing import ClassVar

from .caching import cache_key, rule_for
from .capabilities import Call
from .openai_adapter import Headers, ThirdPartyChat

XAI_URL = "https://api.x.ai/v1"


class GrokAdapter(ThirdPartyChat):
    """`xai:` models; `grok:` is another name for them."""

    provider: ClassVar[str] = "xai"
    extra: ClassVar[str] = "grok"

    def __init__(self, *, api_key: str, base_url: str | None = None) -> None:
        super().__init__(api_key=api_key, base_url=base_url or XAI_URL)

    def _headers(self, call: Call) -> Headers:
        """Also a conversation id for judges: calls with the same one reach the server that has their prefix cached."""
        shared = super()._headers(call)
        rule = rule_for(self.provider, call.request, call.model)
        return shared if rule is None else {**shared, "x-grok-conv-id": cache_key(call.request)}
