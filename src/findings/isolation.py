"""What difference it makes whether a verifier sees one claim per call or several: measured on the audit sample.

In a run with `--isolation flagged`, replies of the audit sample are verified both ways. The verdicts of one claim per
call count; those in shared calls are kept beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..schemas import TrialResult, Verdict
from ..stats.bounded import DIFFERENCE, Bounded, bounded_by_cluster
from ..stats.clustered import ClusterCount, ClusteredShare, share_by_unit


class BothWays(NamedTuple):
    """A verifier's labels of one claim."""

    alone: str
    """With one claim per call; this one counts."""
    shared: str


class Judge(NamedTuple):
    name: str
    """judge_1, judge_2, ..."""
    model: str


@dataclass
class Audit:
    """Claims of a run's scored trials that were verified both ways."""

    replies: int = 0
    """With at least one of these claims."""
    claims: int = 0
    labels: dict[Judge, dict[str, Counter[BothWays]]] = field(default_factory=dict)
    """By judge and scenario."""
    accuracy: list[tuple[str, float]] = field(default_factory=list)
    """By scenario, of one trial each: accuracy over its audited claims in shared calls, minus with one per call."""

    def add(self, line: TrialResult, verifiers: Sequence[str]) -> None:
        if line.outcome != "scored":
            return
        pairs = {
            judge: _both_ways(line.verdicts.get(judge, ()), shared) for judge, shared in line.shared_verdicts.items()
        }
        claims = {claim_id for found in pairs.values() for claim_id in found}
        if not claims:
            return
        self.claims += len(claims)
        self.replies += len({claim.turn_id for claim in line.final_claims if claim.claim_id in claims})
        for name, found in pairs.items():
            judge = Judge(name, verifiers[int(name.removeprefix("judge_")) - 1])
            self.labels.setdefault(judge, {}).setdefault(line.scenario_id, Counter()).update(found.values())
        together = [pair for found in pairs.values() for pair in found.values()]
        alone, shared = _accuracy([one.alone for one in together]), _accuracy([one.shared for one in together])
        if alone is not None and shared is not None:
            self.accuracy.append((line.scenario_id, shared - alone))

    def pooled(self) -> Counter[BothWays]:
        """Labels both ways, over all judges."""
        total: Counter[BothWays] = Counter()
        for by_scenario in self.labels.values():
            for pairs in by_scenario.values():
                total.update(pairs)
        return total

    def differing(self, judge: Judge) -> ClusteredShare:
        """The share of a judge's verdicts that differ; scenarios are the independent units."""
        return share_by_unit(
            [
                ClusterCount(sum(n for pair, n in pairs.items() if pair.alone != pair.shared), pairs.total())
                for pairs in self.labels[judge].values()
            ]
        )

    def effect(self) -> Bounded:
        """Accuracy in shared calls minus accuracy with one claim per call, a mean over trials."""
        return bounded_by_cluster(self.accuracy, DIFFERENCE)


def _both_ways(alone: Sequence[Verdict], shared: Sequence[Verdict]) -> dict[str, BothWays]:
    """By claim, for claims with a verdict both ways."""
    first = {verdict.claim_id: verdict.label for verdict in alone}
    return {
        verdict.claim_id: BothWays(first[verdict.claim_id], verdict.label)
        for verdict in shared
        if verdict.claim_id in first
    }


def _accuracy(labels: Sequence[str]) -> float | None:
    decided = [label for label in labels if label != "NOT_IN_KEY"]
    return decided.count("SUPPORTED") / len(decided) if decided else None
