"""`fake:` targets: canned replies from data files, by scenario and turn. For trying out and for tests.

Each file in `fakes/` holds, for one scenario, what each fake says to each turn. They are somebody's invention, not the
words of any model, and no report may take them for one.
"""

from __future__ import annotations

from typing import Any

from ..canonical import encode, loads
from ..datafiles import data_folder
from ..errors import ConfigError
from ..schemas import Usage
from .base import CallFailure, ModelReply, ModelRequest, split_name

NAMES = ("careful", "wrong", "evasive", "partial")


class FakeAdapter:
    def __init__(self) -> None:
        self._files: dict[str, dict[str, dict[str, str]]] = {}

    def check(self, model: str) -> None:
        if model not in NAMES:
            known = ", ".join(f"fake:{name}" for name in NAMES)
            raise ConfigError(f"fake:{model}: there is no such fake; use one of {known}.")

    def _replies(self, scenario_id: str) -> dict[str, dict[str, str]]:
        if scenario_id not in self._files:
            path = data_folder("fakes") / f"{scenario_id}.json"
            document: Any = loads(path.read_text(encoding="utf-8")) if path.is_file() else {"replies": {}}
            self._files[scenario_id] = document["replies"]
        return self._files[scenario_id]

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        scenario_id, _, turn_id = request.hint.partition("/")
        model = split_name(request.model)[1]
        text = self._replies(scenario_id).get(model, {}).get(turn_id)
        if text is None:
            raise CallFailure("permanent", f"fakes/{scenario_id}.json has no reply of {model!r} to turn {turn_id!r}")
        return ModelReply(
            outcome="ok" if text.strip() else "empty",
            text=text,
            sent=request.as_json(),
            received=encode({"text": text}).decode("utf-8"),
            stop_reason="stop",
            served_model=model,
            usage=Usage(input_tokens=request.characters // 4, output_tokens=len(text) // 4),
        )

    async def aclose(self) -> None:
        """Nothing is held open."""
