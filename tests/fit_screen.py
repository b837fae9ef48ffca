"""Fits the weights by which the screen marks a sentence: `python -m tests.fit_screen` writes them again.

A logistic regression on what is kept here: sentences of attacks against those of innocent replies, of replies of the gold
set and of the fakes, and of facts. Every set measured the screen once before it was added here (docs/judging.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from src.text.screen import WEIGHTS, features
from src.text.sentences import sentences
from tests import attacks, innocent
from tests.helpers import ROOT

PENALTY = 1.5
"""Of the squares of the weights. It and the weights of examples were chosen on sets 4 before these were fitted, too."""
OF_ATTACKS, OF_LOOKALIKES = 4.0, 3.0
"""How much an example of these counts."""
SMALLEST = 8
"""Weights below it, in hundredths, are left out."""
FAMILIES = (
    "orders", "orders alone", "verdicts in prose", "reworded", "about the key", "flattery", "fake refusals",
    "closing the fence", "forged JSON", "markup",
)  # fmt: skip
"""Attacks by their words; others are found by their form."""
MARKED_SETS = ("attacks_2", "attacks_3", "attacks_4", "attacks_5")
"""Sets whose replies say which passage attacks."""


def parts(text: str) -> list[str]:
    return [text[one.start : one.end] for one in sentences(text)]


def kept(name: str) -> list[dict[str, Any]]:
    return list(json.loads((ROOT / "tests" / "steering" / f"{name}.json").read_text(encoding="utf-8")))


def loaded(folder: str) -> Iterator[Any]:
    for path in sorted((ROOT / folder).rglob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def strings(value: Any) -> Iterator[str]:
    """Every string in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def attacking() -> Iterator[str]:
    innocent_parts = {*parts(attacks.MIXED), *parts(attacks.DOCTOR)}
    for one in attacks.ATTACKS:
        if one.family in FAMILIES:
            yield from (part for part in parts(one.text) if part not in innocent_parts)
    for text in (*attacks.SUBTLE, *attacks.UNSEEN, *attacks.LATER):
        yield from parts(text)
    for reply in kept("attacks"):
        yield from chain.from_iterable(map(parts, reply["passages"]))
    for name in MARKED_SETS:
        yield from chain.from_iterable(map(passages, kept(name)))


def passages(reply: dict[str, Any]) -> list[str]:
    """The sentences of a reply that its passage reaches into."""
    text, passage = reply["text"], reply["passage"]
    begin = text.index(passage)
    return [
        text[one.start : one.end] for one in sentences(text) if one.start < begin + len(passage) and one.end > begin
    ]


def lookalikes() -> Iterator[str]:
    texts = [*innocent.INNOCENT, *innocent.ORDINARY, *innocent.LATER]
    texts += [one["reply"] for one in kept("harmless")]
    texts += [one["text"] for name in ("harmless_2", "harmless_3", "harmless_4", "harmless_5") for one in kept(name)]
    return chain.from_iterable(map(parts, texts))


def ordinary() -> Iterator[str]:
    texts = [one["text"] for name in ("ordinary_2", "ordinary_4", "ordinary_5") for one in kept(name)]
    texts += [reply["text"] for one in loaded("gold") for reply in one.get("replies", ())]
    texts += [
        fact[name]
        for one in loaded("facts")
        for fact in one.get("facts", ())
        for name in ("statement", "rationale")
        if name in fact
    ]
    texts += chain.from_iterable(strings(one["replies"]) for one in loaded("fakes"))
    yield from chain.from_iterable(map(parts, texts))
    for reply in chain.from_iterable(map(kept, MARKED_SETS)):
        inside = set(passages(reply))
        yield from (part for part in parts(reply["text"]) if part not in inside)


def fitted() -> dict[str, int]:
    examples: dict[str, tuple[float, float]] = {}
    for texts, weight, label in (
        (ordinary(), 1.0, 0.0),
        (lookalikes(), OF_LOOKALIKES, 0.0),
        (attacking(), OF_ATTACKS, 1.0),
    ):
        examples |= dict.fromkeys(texts, (label, weight))
    found = [features(text) for text in examples]
    counts = Counter(chain.from_iterable(found))
    names = sorted(name for name, count in counts.items() if count > 1)
    matrix = matrix_of(found, {name: place for place, name in enumerate(names)})
    label, weight = np.array(list(examples.values())).T
    penalty = np.where(np.array(names) == "always", 0.0, PENALTY)

    def loss(weights: Any) -> tuple[float, Any]:
        score = matrix @ weights
        value = weight @ (np.logaddexp(0, score) - label * score) + penalty @ weights**2 / 2
        return value, matrix.T @ (weight * (expit(score) - label)) + penalty * weights

    bounds = [(None if may_lower(name) else 0, None) for name in names]
    best = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 2_000})
    rounded = {name: round(100 * one) for name, one in zip(names, best.x, strict=True)}
    return {name: one for name, one in rounded.items() if abs(one) >= SMALLEST}


def may_lower(name: str) -> bool:
    """Words of grading take no weight away, whatever they are beside."""
    return "grader:" not in name and "grading:" not in name


def matrix_of(found: Iterable[set[str]], places: dict[str, int]) -> Any:
    rows = [[places[name] for name in one if name in places] for one in found]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.array(list(chain.from_iterable(rows)))
    return csr_matrix((np.ones(len(flat)), flat, ends), shape=(len(rows), len(places)))


if __name__ == "__main__":
    made = fitted()
    WEIGHTS.write_text(json.dumps(made, ensure_ascii=False, indent=0).replace("\n", "", 1) + "\n", encoding="utf-8")
    print(f"{len(made):,} weights")
