"""Providers without a model or a key: what answers is on this machine.

`fake:` targets: canned replies from data files, by scenario and turn. For demos and tests. Each file in `fakes/` has,
for one scenario, the reply of each fake to each turn, or to each variant of it. The replies are invented; no model
wrote them, and no report may present them as a model's.

`offline:rules`: judges by rules. For demos and tests; do not report its scores. It gets the same request as a judge
model, reads the agent's JSON input from the first message, takes its role from the requested schema, and computes an
answer (see `offline/`). `offline:rephrase` rewords questions.

`human:r1`: a person who judges under a pseudonym. Nobody is called here: calls to people wait in `calls.people`.

`transcript:DIR`: recorded conversations answer. A turn gets the words that were said to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import HarnessError, InputError
from ..offline import rules
from ..records.model_name import PSEUDONYMS, is_pseudonym, split_name
from ..records.transcript import RecordedTurn
from ..schemas import AdjudicatorInput, ExtractorInput, QuestionerOutput, Record, ScorerInput, Usage, VerifierInput
from ..store.conversations import RecordedConversations
from ..store.package_data import data_folder
from ..store.strict_json import encode, loads
from ..text.fence import unwrap
from .base import CallFailure, ModelReply, ModelRequest

Replies = dict[str, dict[str, str | dict[str, str]]]
NAMES = ("careful", "wrong", "evasive", "partial")


def canned(scenario_id: str) -> Replies:
    """What each fake says in a scenario; empty if there is no file."""
    path = data_folder("fakes") / f"{scenario_id}.json"
    document: Any = loads(path.read_text(encoding="utf-8")) if path.is_file() else {"replies": {}}
    replies: Replies = document["replies"]
    return replies


def _reply(request: ModelRequest, text: str, received: str) -> ModelReply:
    return ModelReply(
        outcome="ok" if text.strip() else "empty",
        text=text,
        sent=request.as_json(),
        received=received,
        stop_reason="stop",
        served_model=split_name(request.model).model,
        usage=Usage(input_tokens=request.characters // 4, output_tokens=len(text) // 4),
    )


class LocalAdapter:
    """What all of them share."""

    async def aclose(self) -> None:
        """Nothing to close."""


class FakeAdapter(LocalAdapter):
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
        return _reply(request, text, received=encode({"text": text}).decode("utf-8"))


ROLE_OF_SCHEMA: dict[str, tuple[type[Record], Callable[[Any], Record]]] = {
    "ExtractorReply": (ExtractorInput, rules.extract),
    "VerifierOutput": (VerifierInput, rules.verify),
    "ScorerReply": (ScorerInput, rules.read),
    "AdjudicatorReply": (AdjudicatorInput, rules.adjudicate),
}


class OfflineAdapter(LocalAdapter):
    def check(self, model: str) -> None:
        if model not in ("rules", "rephrase"):
            raise InputError(
                f"offline:{model} does not exist. Use offline:rules to judge, or offline:rephrase to reword questions."
            )

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        answer = self._answer(request)
        return _reply(request, answer, received=answer)

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


class HumanAdapter(LocalAdapter):
    def check(self, model: str) -> None:
        people = model.split("+")
        for name in people:
            if not is_pseudonym(name):
                raise InputError(f"human:{model[:80]}: {name[:40]!r} is not a pseudonym. {PSEUDONYMS}")
        if len(set(people)) < len(people):
            raise InputError(f"human:{model[:80]} names somebody twice.")

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        raise CallFailure("permanent", "a person is not called; a run with people asks them in a form")


class TranscriptAdapter(LocalAdapter):
    """Finds a reply by `request.hint`: `scenario_id[@variant]/turn_id#number`, the number of a conversation from 1."""

    def __init__(self) -> None:
        self._folders: dict[str, RecordedConversations] = {}

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        folder = request.folder
        try:
            found = self._folders.get(folder) or RecordedConversations(Path(folder))
            self._folders[folder] = found
            turn, file_name = self._look_up(found, request.hint)
        except HarnessError as error:
            raise CallFailure("denied", str(error)) from None
        answered = turn.outcome == "answered"
        return ModelReply(
            outcome="empty" if turn.outcome == "no_reply" else "ok",
            text=turn.reply or "",
            sent={"hint": request.hint, "file": file_name},
            received=turn.model_dump(mode="json"),
            stop_reason="stop" if answered else turn.outcome,
            served_model=found.collection.system,
            usage=Usage(input_tokens=0, output_tokens=0),
        )

    def _look_up(self, found: RecordedConversations, hint: str) -> tuple[RecordedTurn, str]:
        place, _, number = hint.partition("#")
        name, _, turn_id = place.partition("/")
        conversations = found.conversations(name)
        at = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
        if not 1 <= at <= len(conversations):
            raise CallFailure(
                "denied", f"{found.folder} has {len(conversations)} conversations about {name}; there is no {at}"
            )
        one = conversations[at - 1]
        turn = next((turn for turn in one.turns if turn.turn_id == turn_id), None)
        if turn is None:
            raise CallFailure("denied", f"{found.folder / one.file_name} has no turn {turn_id!r}")
        return turn, one.file_name
