"""`fake:` targets: canned replies from data files, by scenario and turn. For demos and tests.

Each file in `fakes/` has, for one scenario, the reply of each fake to each turn, or to each variant of it. The replies
are invented; no model wrote them, and no report may present them as a model's.
"""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..records.model_name import split_name
from ..schemas import Usage
from ..store.package_data import data_folder
from ..store.strict_json import encode, loads
from .base import CallFailure, ModelReply, ModelRequest

Replies = dict[str, dict[str, str | dict[str, str]]]
NAMES = ("careful", "wrong", "evasive", "partial")


def canned(scenario_id: str) -> Replies:
    """What each fake says in a scenario; empty if there is no file."""
    path = data_folder("fakes") / f"{scenario_id}.json"
    document: Any = loads(path.read_text(encoding="utf-8")) if path.is_file() else {"replies": {}}
    replies: Replies = document["replies"]
    return replies


class FakeAdapter:
    def __init__(self) -> None:
        self._files: dict[str, Replies] = {}

    def check(self, model: str) -> None:
        if model not in NAMES:
            known = ", ".join(f"fake:{name}" for name in NAMES)
            raise InputError(f"fake:{model} does not exist. Use one of {known}.")

    def _reply(self, model: str, scenario_id: str, variant: str, turn_id: str) -> str | None:
        if scenario_id not in self._files:
            self._files[scenario_id] = canned(scenario_id)
        said = self._files[scenario_id].get(model, {}).get(turn_id)
        return said.get(variant) if isinstance(said, dict) else said

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        name, _, turn_id = request.hint.partition("/")
        scenario_id, _, variant = name.partition("@")
        model = split_name(request.model).model
        text = self._reply(model, scenario_id, variant, turn_id)
        if text is None:
            raise CallFailure("permanent", f"fakes/{scenario_id}.json has no reply from {model!r} to turn {turn_id!r}")
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
        """Nothing to close."""
