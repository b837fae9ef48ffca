"""Any server with an OpenAI-compatible Chat Completions API: vLLM, Ollama, llama.cpp, a gateway."""

from __future__ import annotations

from typing import ClassVar

from ..errors import ConfigError
from .http import HttpAdapter
from .openai_adapter import ThirdPartyChat
from .secrets import Secret, checked_key

_NO_KEY = "unused"


class CompatibleAdapter(ThirdPartyChat):
    """Models of a server given by its base URL, with or without a key."""

    provider: ClassVar[str] = "compatible"

    def __init__(self, *, base_url: str, api_key: str | None = None) -> None:
        if not base_url:
            raise ConfigError("An OpenAI-compatible endpoint needs its base URL, for example http://127.0.0.1:8000/v1.")
        HttpAdapter.__init__(self, checked_key(api_key, "the compatible endpoint") if api_key else Secret(_NO_KEY))
        self.keyless = not api_key
        self._open(base_url)
