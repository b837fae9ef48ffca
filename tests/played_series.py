"""Twelve months of a series, played on loopback: a target and judges on the wire whose behavior changes by month.

The target answers a question with the facts of its key, or with words that say nothing; which, is decided by the
question and the month alone. Judges judge by rule, and label gold claims as the gold set does, apart from some errors.
The words of both are fake; the requests, the SDKs and the files are real.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pytest

from src.judge_check.gold import load_gold
from src.offline import rules
from src.planning.plan import make_plan
from src.planning.study_file import make_study
from src.schemas import VerifierInput
from src.store.strict_json import derive_seed
from src.text.fence import unwrap
from tests.helpers import with_canary
from tests.loopback import Loopback, Received, Scripted, text_in
from tests.runs import SCENARIOS
from tests.test_wire_runs import redirect, said, sensible

TOPICS = (
    "appeals", "cobra", "esrd", "home_health", "hospice", "irmaa", "late_penalties", "skilled_nursing",
    "travel_abroad", "veterans",
)  # fmt: skip
TARGET = "openai:gpt-5.5"
JUDGES = ("anthropic:claude-sonnet-4-6", "google:gemini-3.8-flash")
ADJUDICATOR = "xai:grok-4.6"
STUDY: dict[str, Any] = {
    "scenarios": [str(SCENARIOS / "topics" / f"{name}.json") for name in TOPICS],
    "targets": [TARGET],
    "judges": list(JUDGES),
    "adjudicator": ADJUDICATOR,
    "variants": ["plain"],
    "no_probe": True,
}
NOTHING = "I am not sure about that. It depends on your situation."
CHECKS = "You check claims"


@dataclass
class World:
    """What the target and the judges do now."""

    month: str = "2026-06"
    unsure: float = 0.1
    """Share of questions to which the target says nothing of use."""
    strict: str = ""
    """The judge who calls much of what is supported not in the key."""
    served: str = "gpt-5.5-2026-04-23"
    asked: int = 0
    down: bool = False
    words: dict[str, str] = field(default_factory=dict)
    """A good answer by question."""
    gold: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Labels of gold claims by their text."""

    def draw(self, *what: str) -> float:
        return derive_seed(7, *what) % 10_000 / 10_000

    def script(self, request: Received) -> Scripted:
        if self.down:
            return Scripted(status=503)
        system, user = said(request) if request.body else ("", "")
        if system.startswith(CHECKS):
            return Scripted(text=with_canary(json.dumps(self._verdicts(request, user)), user))
        if system:
            return sensible(request)
        self.asked += 1
        question = text_in(request.body["messages"][-1]["content"])
        good = self.words.get(question, NOTHING)
        return Scripted(text=NOTHING if self.draw(self.month, question) < self.unsure else good)

    def _verdicts(self, request: Received, user: str) -> dict[str, Any]:
        asked = VerifierInput.model_validate_json(unwrap(user)[1])
        found = rules.verify(asked).model_dump(mode="json")
        texts = {claim.claim_id: claim.text for claim in asked.claims}
        for verdict in found["verdicts"]:
            text = texts[verdict["claim_id"]]
            if text in self.gold and self.draw("error", text) > 0.1:
                verdict.update(self.gold[text])
            strict = self.strict and self.strict.partition(":")[2] in request.model
            if strict and verdict["label"] == "SUPPORTED" and self.draw("strict", text) < 0.6:
                verdict.update({"label": "NOT_IN_KEY", "evidence": [], "severity": "none"})
        return found


def answers_of(year: int) -> dict[str, str]:
    """By question: the statements of the facts that it asks for."""
    made = make_plan(
        make_study({**STUDY, "targets": ["fake:careful"], "judges": ["offline:rules"], "adjudicator": "none",
                    "plan_year": year, "allow_expired": True}),
        today=date(2026, 11, 16),
    )  # fmt: skip
    words: dict[str, str] = {}
    for planned in made.scenarios:
        facts = {fact.fact_id: fact.statement for fact in planned.scenario.answer_key.canonical_facts}
        for turn in planned.scenario.scripted_turns:
            wanted = [
                facts[name]
                for point in turn.required_points
                for name in (getattr(point, "any_of", None) or (point,))
                if name in facts
            ]
            words[turn.user_message] = " ".join(dict.fromkeys(wanted)) or NOTHING
    return words


def gold_labels(limit: int, seed: int = 42) -> dict[str, dict[str, Any]]:
    items = load_gold("held_out").drawn(limit, seed).items
    return {
        claim.text: {"label": claim.label, "evidence": list(claim.evidence), "severity": claim.severity}
        for item in items
        for claim in item.reply.claims
    }


@contextmanager
def played(monkeypatch: pytest.MonkeyPatch, anchors: int) -> Iterator[tuple[World, Loopback]]:
    world = World(words={**answers_of(2026), **answers_of(2027)}, gold=gold_labels(anchors))
    with Loopback(world.script) as server:
        redirect(monkeypatch, server)
        yield world, server


def on(monkeypatch: pytest.MonkeyPatch, world: World, day: str) -> None:
    """It is this day now."""
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", day)
    world.month = day[:7]
