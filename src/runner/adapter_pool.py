"""One adapter per provider, made when a call first needs it and closed when the run ends."""

from __future__ import annotations

from ..adapters.base import Adapter
from ..adapters.registry import make_adapter


class AdapterPool:
    def __init__(self) -> None:
        self._made: dict[str, Adapter] = {}

    def __call__(self, provider: str) -> Adapter:
        if provider not in self._made:
            self._made[provider] = make_adapter(provider)
        return self._made[provider]

    async def aclose(self) -> None:
        for adapter in self._made.values():
            await adapter.aclose()
