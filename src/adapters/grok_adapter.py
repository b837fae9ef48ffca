"""xAI's Grok, over OpenAI's SDK: the same models as xAI's own gRPC SDK reaches, in plain HTTP with verbatim bodies."""

from __future__ import annotations

from typing import ClassVar

from .openai_adapter import ThirdPartyChat

XAI_URL = "https://api.x.ai/v1"


class GrokAdapter(ThirdPartyChat):
    """`xai:` models, which `grok:` names too."""

    provider: ClassVar[str] = "xai"
    extra: ClassVar[str] = "grok"

    def __init__(self, *, api_key: str, base_url: str | None = None) -> None:
        super().__init__(api_key=api_key, base_url=base_url or XAI_URL)
