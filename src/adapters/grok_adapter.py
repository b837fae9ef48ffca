"""xAI's Grok, called with OpenAI's SDK: plain HTTP with readable bodies, unlike xAI's own gRPC SDK."""

from __future__ import annotations

from typing import ClassVar

from .openai_adapter import ThirdPartyChat

XAI_URL = "https://api.x.ai/v1"


class GrokAdapter(ThirdPartyChat):
    """`xai:` models; `grok:` is another name for them."""

    provider: ClassVar[str] = "xai"
    extra: ClassVar[str] = "grok"

    def __init__(self, *, api_key: str, base_url: str | None = None) -> None:
        super().__init__(api_key=api_key, base_url=base_url or XAI_URL)
