"""What every reader of scores by the rule-based judge must know: it is a test double, and how little it decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..schemas import Manifest
from ..text.rounded import percent
from .read_run import Findings, judged_offline

FIRST_FORMAT = 4
"""Of the runs that the rules measured here have judged."""


@dataclass(frozen=True)
class Found:
    """Of the claims with one gold label: how many the rules give it to, and how many they give it to in all."""

    gold: int
    right: int
    given: int


@dataclass(frozen=True)
class Measured:
    """What `judge-check --judge-model offline:rules` finds end to end on one part of the gold set."""

    part: str
    """In words, as the notice has it."""
    claims: int
    right: int
    """Gold claims that got their gold label."""
    contradicted: Found
    supported: Found


MEASURED = {
    "held_out": Measured("held-out", 379, 46, contradicted=Found(132, 2, 2), supported=Found(191, 14, 15)),
    "second": Measured("second", 966, 162, contradicted=Found(132, 1, 1), supported=Found(646, 3, 4)),
    "third": Measured("third", 754, 148, contradicted=Found(99, 0, 0), supported=Found(393, 1, 1)),
}
"""By part of the gold set. A test compares these figures with a real check; change them together with the rules."""


def _figures(one: Measured) -> str:
    wrong, right = one.contradicted, one.supported
    share = percent(one.right / one.claims)
    return (
        f"on the {one.part} gold part, {share}% of {one.claims} claims get the right label, with "
        f"{wrong.right} of {wrong.gold} wrong claims found ({wrong.right} of {wrong.given} so called are wrong) and "
        f"{right.right} of {right.gold} correct ones ({right.right} of {right.given})"
    )


OFFLINE_NOTICE = (
    "Judged by offline:rules, a built-in rule-based judge. It is a test double for demos and tests: it labels only "
    f"what repeats the key nearly word for word. End to end, {'; '.join(map(_figures, MEASURED.values()))}. "
    "Do not report these scores as results."
)
EARLIER_NOTICE = (
    "Judged by offline:rules of an earlier release, a built-in rule-based judge for demos and tests. Do not report "
    "these scores as results."
)
"""Without figures: the rules of earlier releases were others."""


def run_notices(runs: Sequence[Findings]) -> tuple[str, ...]:
    """What a reader of an analysis must know of its runs: that one is not complete, and who judged."""
    unfinished = [f"{one.folder.name}: {one.incomplete}" for one in runs if one.incomplete]
    return (*unfinished, *offline_notices(one.manifest for one in runs))


def offline_notices(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """What to say of runs that the rule-based judge took part in, each notice once."""
    judged = (one for one in manifests if judged_offline(one.plan))
    return tuple(dict.fromkeys(OFFLINE_NOTICE if one.format >= FIRST_FORMAT else EARLIER_NOTICE for one in judged))
