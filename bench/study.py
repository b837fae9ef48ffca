"""The study that is measured: scenarios, names of models and the shape of a trial, shared by all parts of the bench."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "scenarios" / "v1" / "scenario_001.json"
KEY = "bench-key-that-opens-nothing"
TARGET, JUDGES = "compatible:bench-target", ("compatible:first-judge", "compatible:second-judge")
CALLS_A_TURN = 5
"""Target, extractor, two verifiers, scorer; no claim is tied, so there is no adjudication."""
LEVELS_OF_ONE_TURN = 3
"""Calls of a one-turn trial that must wait for each other: target, extractor, then verifiers and scorer together."""


def one_turn_scenario(folder: Path, *, facts: int = 1_000) -> Path:
    """The shipped scenario cut to its first turn and so many facts, written to a file of its own."""
    scenario = json.loads(SHIPPED.read_text(encoding="utf-8"))
    key, turns = scenario["answer_key"], scenario["scripted_turns"][:1]
    key["canonical_facts"] = key["canonical_facts"][:facts]
    kept = {fact["fact_id"] for fact in key["canonical_facts"]}
    turns[0]["required_points"] = [point for point in turns[0]["required_points"] if point in kept]
    key["required_points"] = [point for point in key["required_points"] if point in kept]
    scenario |= {"scenario_id": "bench", "scripted_turns": turns}
    path = folder / "bench.json"
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path
