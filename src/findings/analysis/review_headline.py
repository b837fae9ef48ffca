"""The headline of a run, corrected by people's codes on the trials of a review.

People's codes are those that follow from their labels of claims. They labeled the claims that the extractor found; a
claim that it missed, they did not see. The estimate is the stratified difference estimator of `stats.labeled_sample`,
by target: flagged trials were all labeled, and of the others a simple random sample, which is also one within each
target. Scenarios are the independent units, as for the judges' own interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...scoring.definitions import SHARES, ShareName
from ...stats.bounded import Bounded
from ...stats.labeled_sample import CorrectedByPeople, JudgedAnswer, StratumLabels, corrected_by_people
from ...trials.missing import MISSING
from ...trials.row import Row
from .estimates import Estimated, Question, estimate
from .review import Review, Stratum, unfinished

OUTSIDE, SETTLED = "outside", "settled"
"""Strata in which there is nothing to correct: what no judge judged, and what people alone gave a code."""


@dataclass(frozen=True)
class CorrectedHeadline:
    """One share of one target: as judged, and as people would have judged."""

    code: ShareName
    judged: Estimated
    corrected: CorrectedByPeople
    flagged: StratumLabels | None
    sampled: StratumLabels | None
    outside: int
    """Trials whose codes no judge gave, such as refusals, or that have no claims to show; they count as they are."""
    unsettled: int
    """Answers that people did not agree on."""

    @property
    def share(self) -> Bounded:
        """The corrected share as reports show shares."""
        one = self.corrected
        return Bounded(one.scenarios, one.value, one.low, one.high)


def corrected_headlines(review: Review) -> dict[str, dict[ShareName, CorrectedHeadline]]:
    """By target and code."""
    return {
        target: {code: corrected_headline(review, target, code) for code in SHARES}
        for target in review.earlier.plan_targets
    }


def corrected_headline(review: Review, target: str, code: ShareName) -> CorrectedHeadline:
    rows = review.earlier.of_target(target)
    judged = estimate(rows, code)
    found = _Answers(review, rows, code)
    not_yet = unfinished(review)
    corrected = (
        CorrectedByPeople(judged.value, why_not="the review is not finished")
        if not_yet
        else corrected_by_people(found.weighted())
    )
    strata = corrected.strata or {}
    return CorrectedHeadline(
        code, judged, corrected, strata.get("flagged"), strata.get("sampled"), len(found.outside), found.unsettled
    )


class _Answer(NamedTuple):
    question: Question
    variant: str
    trial_id: str
    stratum: str
    judged: float
    labeled: float | None


class _Counts(NamedTuple):
    stratum: str
    judged: float
    labeled: float | None


def _counts(judged: float | None, labeled: float | None, stratum: Stratum | None) -> _Counts | None:
    """How an answer counts; None if it is missing. A flagged one that people leave open is missing, as with judges."""
    if stratum is None:
        return None if judged is None else _Counts(OUTSIDE, judged, judged)
    if stratum == "flagged":
        if labeled is None:
            return None
        return _Counts(SETTLED, labeled, labeled) if judged is None else _Counts(stratum, judged, labeled)
    return None if judged is None else _Counts(stratum, judged, labeled)


class _Answers:
    """The answers of one target, with the judges' and the people's codes."""

    def __init__(self, review: Review, rows: Sequence[Row], code: ShareName) -> None:
        people = {row.trial_id: dict(row.counted) for row in review.found.rows}
        chosen = frozenset(review.selected.chosen)
        self.outside: set[str] = set()
        self.unsettled = 0
        self.found: list[_Answer] = []
        for row in rows:
            stratum = _stratum(row, chosen)
            if stratum is None:
                self.outside.add(row.trial_id)
            reviewed = people.get(row.trial_id)
            for group, given in row.counted:
                said = reviewed.get(group, MISSING) if reviewed else MISSING
                judged, labeled = (None if one == MISSING else float(one == code) for one in (given, said))
                self.unsettled += reviewed is not None and labeled is None and judged is not None
                if counts := _counts(judged, labeled, stratum):
                    self.found.append(
                        _Answer(Question(row.scenario_id, group), row.variant or "", row.trial_id, *counts)
                    )

    def weighted(self) -> list[JudgedAnswer]:
        """Repeats of a script, the variants of a question, and all questions have equal weights, as in every share."""
        return list(self._weighted())

    def _weighted(self) -> Iterator[JudgedAnswer]:
        repeats = Counter((one.question, one.variant) for one in self.found)
        variants = Counter(question for question, _ in repeats)
        for one in self.found:
            weight = 1 / (variants[one.question] * repeats[one.question, one.variant])
            scenario = one.question.scenario_id
            yield JudgedAnswer(scenario, one.trial_id, one.stratum, one.judged, one.labeled, weight)


def _stratum(row: Row, chosen: frozenset[str]) -> Stratum | None:
    """As the review was drawn; None for a trial that could not be drawn."""
    if row.trial_id in chosen:
        return "flagged"
    return "sampled" if row.outcome == "scored" and not row.review else None
