"""The study that is measured: its scenarios, models and command lines, shared by all parts of the benchmark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .replies import PLAN_YEAR

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "scenarios" / "v1" / "scenario_001.json"
KEY = "bench-key-that-opens-nothing"
TARGETS = tuple(f"compatible:bench-target-{letter}" for letter in "abcd")
JUDGES = ("compatible:first-judge", "compatible:second-judge")
TURNS = 3
"""Of the shipped scenario, which are measured; it has one more."""
CALLS_PER_TURN = 5
"""Target, extractor, two verifiers, scorer. The judges agree on every claim, so there is no adjudication.

Only if all claims of a reply share one call of a verifier: `--isolation reply`."""
LEVELS_PER_TURN = 3
"""Calls of a turn that wait for each other: target, extractor, then verifiers and scorer together."""
MOST_AT_ONCE_PER_TURN = 3


def write_scenario(folder: Path, name: str, *, turns: int = TURNS) -> Path:
    """A copy of the shipped scenario under another id, cut to its first turns."""
    scenario = json.loads(SHIPPED.read_text(encoding="utf-8"))
    scenario |= {"scenario_id": name, "scripted_turns": scenario["scripted_turns"][:turns]}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path


def run_words(
    out: Path,
    scenarios: list[Path],
    *,
    repeats: int,
    concurrency: int,
    targets: tuple[str, ...] = TARGETS[:1],
    isolation: str = "reply",
    more: Sequence[object] = (),
) -> list[str]:
    """The command line of one run. It makes no probes: only the calls of the study are counted."""
    words: list[object] = [
        "run",
        "--out",
        out,
        "--repeats",
        repeats,
        "--concurrency",
        concurrency,
        "--quiet",
        "--no-probe",
    ]
    words += ["--plan-year", PLAN_YEAR, "--allow-expired", "--isolation", isolation]  # the same figures in any year
    words += more
    for option, values in (("--scenario", scenarios), ("--target", targets), ("--judge-model", JUDGES)):
        for value in values:
            words += [option, value]
    return [str(word) for word in words]
