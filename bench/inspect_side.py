"""Inspect AI's side: the first question of the same study, one sample per call, with a trivial scorer."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from .costs import measured
from .study import KEY, SHIPPED

WARM_UP_SAMPLES = 8


def make_task(samples: int) -> Any:
    inspect_ai: Any = importlib.import_module("inspect_ai")
    dataset: Any = importlib.import_module("inspect_ai.dataset")
    scoring: Any = importlib.import_module("inspect_ai.scorer")
    solver: Any = importlib.import_module("inspect_ai.solver")
    question = json.loads(SHIPPED.read_text(encoding="utf-8"))["scripted_turns"][0]["user_message"]
    return inspect_ai.Task(
        dataset=dataset.MemoryDataset([dataset.Sample(input=question, target="network") for _ in range(samples)]),
        solver=solver.generate(),
        scorer=scoring.includes(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=64)
    arguments = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = KEY
    inspect_ai: Any = importlib.import_module("inspect_ai")

    def evaluate(samples: int) -> None:
        logs = inspect_ai.eval(
            make_task(samples),
            model="openai/gpt-4.1",
            model_base_url=arguments.base_url,
            max_connections=arguments.concurrency,
            max_samples=arguments.concurrency,
            temperature=0.0,
            max_tokens=2_048,
            log_dir=str(arguments.out),
            display="none",
        )
        if logs[0].status != "success":
            raise RuntimeError(f"Inspect ended with {logs[0].status}: {logs[0].error}")

    evaluate(WARM_UP_SAMPLES)
    costs = measured(lambda: evaluate(arguments.samples))
    print(replace(costs, calls=arguments.samples).to_json())


if __name__ == "__main__":
    main()
