"""A review beside the run whose trials people judged again: who said what of each claim, and how questions are coded.

A review has all trials that were flagged, and a simple random sample of the other scored ones. Claims and readings are
those of the earlier run, so claims are paired by their ids.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from .. import storage
from ..errors import HarnessError
from ..records.model_name import is_person
from ..records.run import SelectedTrials
from ..schemas import CallRecord, Manifest, TrialResult
from ..scoring.definitions import SHARES, ShareName
from ..stats.agreement import (
    Agreement,
    Coefficient,
    Pattern,
    bootstrap,
    cohen_kappa,
    krippendorff_alpha,
    percent_agreement,
)
from ..stats.bounded import Bounded
from ..stats.labeled_sample import CorrectedByPeople, JudgedAnswer, StratumLabels, corrected_by_people
from ..store import hash_chain
from ..store.projection import projection
from ..text.count import counted
from ..trials.missing import MISSING
from ..trials.row import Row
from .estimates import Estimated, Question, estimate
from .judge_agreement import RESAMPLES, SEED
from .read_run import NOTICES, Findings, gather

Stratum = Literal["flagged", "sampled"]
STRATA: tuple[Stratum, ...] = ("flagged", "sampled")


class Rater(NamedTuple):
    kind: Literal["person", "people", "judge", "judges"]
    """`people` and `judges`: the final label of all of them together."""
    name: str


PEOPLE = Rater("people", "people, settled")
JUDGES = Rater("judges", "judges, final")


class RatedClaim(NamedTuple):
    """A claim of a reviewed trial, and the labels that it got."""

    scenario_id: str
    stratum: Stratum
    labels: dict[Rater, str]


class RatedItem(NamedTuple):
    """A claim or a question with its ratings, in the order of the raters."""

    scenario_id: str
    stratum: Stratum
    pattern: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class ReadReview:
    """A review and its earlier run, as they were read."""

    found: Findings
    earlier: Findings
    selected: SelectedTrials
    people: tuple[str, ...]
    """Who judged claims, by pseudonym; without an adjudicator who only settled ties."""
    claims: tuple[RatedClaim, ...]
    questions: tuple[RatedItem, ...]
    """Those that both people and judges led to a study code, in this order."""
    done: dict[Stratum, int]
    """Trials that people have judged."""

    @property
    def planned(self) -> dict[Stratum, int]:
        return {"flagged": len(self.selected.chosen), "sampled": len(self.selected.sampled)}

    @property
    def population(self) -> dict[Stratum, int]:
        """Trials of the earlier run that those of a stratum represent."""
        return {"flagged": len(self.selected.chosen), "sampled": self.selected.of}

    @property
    def judges(self) -> tuple[Rater, ...]:
        by_target = (judges.verifiers for judges, _ in self.earlier.manifest.plan.groups_of_judges())
        found = [(number, model) for verifiers in by_target for number, model in enumerate(verifiers, 1)]
        return tuple(_judge(*one) for one in dict.fromkeys(found))


def is_review(manifest: Manifest) -> bool:
    """Whether people judged selected trials of an earlier run."""
    selected = manifest.transcripts and manifest.transcripts.selected
    return bool(selected) and any(map(is_person, manifest.plan.all_verifiers))


def read_review(found: Findings) -> ReadReview | str:
    """The review with its earlier run, or why it cannot be had."""
    transcripts = found.manifest.transcripts
    assert transcripts is not None and transcripts.selected is not None
    folder = storage.earlier_folder(found.folder, found.manifest)
    if not folder.is_dir():
        return f"the run that it reviews, {transcripts.run_id}, is not at {folder}"
    try:
        if storage.manifest_sha256(folder) != transcripts.manifest_sha256:
            return f"{folder} is not the run that it reviews ({transcripts.run_id})"
        earlier = gather(folder)
    except (HarnessError, OSError) as error:
        return f"the run that it reviews cannot be read ({error})"
    return _joined(found, earlier, transcripts.selected)


def _joined(found: Findings, earlier: Findings, selected: SelectedTrials) -> ReadReview:
    stratum_of: dict[str, Stratum] = {
        **dict.fromkeys(selected.chosen, "flagged"),
        **dict.fromkeys(selected.sampled, "sampled"),
    }
    persons = _persons(found.folder)
    target_of = {row.trial_id: row.target for row in found.rows}
    names = [name for name in target_of if name in stratum_of and name in earlier.places]
    claims: list[RatedClaim] = []
    for one, two in zip(earlier.decoded(names, _decode), found.decoded(names, _decode), strict=True):
        models = earlier.manifest.plan.judges_of(target_of[one.trial_id]).verifiers
        claims += _rated(one, two, stratum_of[one.trial_id], persons, models)
    by_id = {row.trial_id: row for row in earlier.rows}
    questions = [
        question
        for row in found.rows
        if row.trial_id in stratum_of and row.trial_id in by_id
        for question in _coded(by_id[row.trial_id], row, stratum_of[row.trial_id])
    ]
    who = sorted({rater.name for claim in claims for rater in claim.labels if rater.kind == "person"})
    done: dict[Stratum, int] = {name: sum(stratum_of[trial] == name for trial in names) for name in STRATA}
    return ReadReview(found, earlier, selected, tuple(who), tuple(claims), tuple(questions), done)


def _judge(number: int, model: str) -> Rater:
    return Rater("judge", f"judge_{number} ({model})")


_decode = projection(
    TrialResult, {"": "trial_id scenario_id", "verdicts": "claim_id label", "final_claims": "claim_id label"}
)
_decode_call = projection(CallRecord, {"": "call model served_model"})


def _persons(folder: Path) -> dict[tuple[str, int], str]:
    """By trial and number of the verifier: the person who was asked."""
    found: dict[tuple[str, int], str] = {}
    path = folder / storage.JOURNAL
    if not path.exists():
        return found
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
        if hash_chain.is_call(line.payload):
            call = _decode_call(line.payload)
            trial, stage, _, judge, *_ = call.call.split("|")
            if stage == "verifier" and call.served_model and is_person(call.model):
                found[trial, int(judge.partition(".")[0])] = call.served_model
    return found


def _rated(
    one: TrialResult, two: TrialResult, stratum: Stratum, persons: dict[tuple[str, int], str], models: tuple[str, ...]
) -> Iterator[RatedClaim]:
    """The claims of one trial, from the earlier run and from the review."""
    labels: dict[str, dict[Rater, str]] = {}
    for judge, verdicts in two.verdicts.items():
        person = persons.get((two.trial_id, int(judge.removeprefix("judge_"))))
        for verdict in verdicts if person else ():
            labels.setdefault(verdict.claim_id, {})[Rater("person", person or "")] = verdict.label
    for judge, verdicts in one.verdicts.items():
        number = int(judge.removeprefix("judge_"))
        for verdict in verdicts:
            labels.setdefault(verdict.claim_id, {})[_judge(number, models[number - 1])] = verdict.label
    for rater, trial in ((JUDGES, one), (PEOPLE, two)):
        for final in trial.final_claims:
            if final.label is not None:
                labels.setdefault(final.claim_id, {})[rater] = final.label
    return (RatedClaim(one.scenario_id, stratum, given) for given in labels.values())


def _coded(one: Row, two: Row, stratum: Stratum) -> Iterator[RatedItem]:
    theirs = dict(two.counted)
    for group, code in one.counted:
        other = theirs.get(group, MISSING)
        if MISSING not in (code, other):
            yield RatedItem(one.scenario_id, stratum, (other, code))


def unfinished(review: ReadReview) -> str:
    """That people have not judged all selected trials; empty if they have."""
    done, planned = sum(review.done.values()), sum(review.planned.values())
    text: str = NOTICES["unfinished_review"]
    return "" if done >= planned else text.format(done=done, planned=counted(planned, "trial"))


# Agreement of people with each other and with each judge, on the trials of a review.
#
# Flagged and sampled trials are counted apart. For the whole run they are counted together with design weights: a trial
# stands for N / n trials, where n of the N trials of its kind were judged by people. Intervals resample scenarios, as
# those of the judges' agreement do.
#
# Headlines are corrected by people's codes, which follow from their labels of claims. They labeled the claims that the
# extractor found; a claim that it missed, they did not see. The estimate is the stratified difference estimator of
# `stats.labeled_sample`, by target: flagged trials were all labeled, and of the others a simple random sample, which is
# also one within each target. Scenarios are the independent units, as for the judges' own interval.

Part = Literal["flagged", "sampled", "whole run"]
LEAST_SCENARIOS = 3
"""Fewer give no interval, as with shares."""
On = Literal["labels", "codes"]


@dataclass(frozen=True)
class PairAgreement:
    """How far two raters agree in one part of a review."""

    first: Rater
    second: Rater
    on: On
    part: Part
    items: int
    """Claims, or questions, that both rated."""
    scenarios: int
    agreement: Agreement
    kappa: Agreement


@dataclass(frozen=True)
class PeopleAgreement:
    """How far all people agree with each other in one part of a review."""

    part: Part
    claims: int
    """That at least two people labeled."""
    alpha: Agreement


@dataclass(frozen=True)
class ReviewAgreement:
    people: tuple[PeopleAgreement, ...]
    pairs: tuple[PairAgreement, ...]
    why_no_whole: str | None
    """Why nothing is said of the whole run; None if it is."""


def review_agreement(review: ReadReview, *, resamples: int = RESAMPLES) -> ReviewAgreement:
    """Every pair of people, every person with every judge, people together with judges, and all people."""
    parts = _parts(review)
    table = partial(_pair, parts, resamples)
    people = [Rater("person", name) for name in review.people]
    pairs = [
        *combinations(people, 2),
        *((one, two) for one in people for two in (*review.judges, JUDGES)),
        *((PEOPLE, two) for two in (*review.judges, JUDGES)),
    ]
    found = [one for pair in pairs for one in table(_claims(review, *pair), pair, "labels")]
    found += table(review.questions, (PEOPLE, JUDGES), "codes")
    return ReviewAgreement(tuple(_all_people(review, people, parts, resamples)), tuple(found), _why_no_whole(review))


def _claims(review: ReadReview, first: Rater, second: Rater) -> list[RatedItem]:
    return [
        RatedItem(claim.scenario_id, claim.stratum, (claim.labels[first], claim.labels[second]))
        for claim in review.claims
        if first in claim.labels and second in claim.labels
    ]


Weights = Mapping[Stratum, float]
"""What a trial of each stratum counts for; a stratum that is missing is not counted."""


def _parts(review: ReadReview) -> dict[Part, Weights]:
    parts: dict[Part, Weights] = {stratum: {stratum: 1.0} for stratum in STRATA}
    if _why_no_whole(review) is None:
        parts["whole run"] = {name: review.population[name] / review.done[name] for name in STRATA if review.done[name]}
    return parts


def _why_no_whole(review: ReadReview) -> str | None:
    if review.population["sampled"] and not review.done["sampled"]:
        return "no trial was drawn at random from those that were not flagged"
    if review.population["flagged"] and not review.done["flagged"]:
        return "no flagged trial was judged"
    return None


def _by_scenario(items: Iterable[RatedItem], weights: Weights) -> list[dict[Pattern, float]]:
    found: dict[str, defaultdict[Pattern, float]] = {}
    for one in items:
        if one.stratum in weights:
            found.setdefault(one.scenario_id, defaultdict(float))[one.pattern] += weights[one.stratum]
    return [dict(found[name]) for name in sorted(found)]


def _pair(
    parts: Mapping[Part, Weights], resamples: int, items: Sequence[RatedItem], raters: tuple[Rater, Rater], on: On
) -> Iterator[PairAgreement]:
    for part, weights in parts.items():
        clusters = _by_scenario(items, weights)
        n = sum(one.stratum in weights for one in items)
        if n:
            measured = _measured(clusters, resamples)
            yield PairAgreement(*raters, on, part, n, len(clusters), measured(percent_agreement), measured(cohen_kappa))


def _measured(clusters: Sequence[Mapping[Pattern, float]], resamples: int) -> Callable[[Coefficient], Agreement]:
    def measured(coefficient: Coefficient) -> Agreement:
        found = bootstrap(clusters, coefficient, seed=SEED, resamples=resamples)
        return found if len(clusters) >= LEAST_SCENARIOS else Agreement(found.value, None, None)

    return measured


def _all_people(
    review: ReadReview, people: Sequence[Rater], parts: Mapping[Part, Weights], resamples: int
) -> Iterator[PeopleAgreement]:
    items = [
        RatedItem(claim.scenario_id, claim.stratum, pattern)
        for claim in review.claims
        for pattern in [tuple(claim.labels.get(rater) for rater in people)]
        if sum(label is not None for label in pattern) >= 2
    ]
    counts = Counter(one.stratum for one in items)
    for part, weights in parts.items():
        claims = sum(counts[stratum] for stratum in weights)
        if claims:
            yield PeopleAgreement(part, claims, _measured(_by_scenario(items, weights), resamples)(krippendorff_alpha))


OUTSIDE, SETTLED = "outside", "settled"
"""Strata in which there is nothing to correct: what no judge judged, and what people alone gave a code."""


@dataclass(frozen=True)
class CorrectedHeadline:
    """One share of one target: as judged, and as people would have judged."""

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


def corrected_headlines(review: ReadReview) -> dict[str, dict[ShareName, CorrectedHeadline]]:
    """By target and code."""
    return {
        target: {code: corrected_headline(review, target, code) for code in SHARES}
        for target in review.earlier.plan_targets
    }


def corrected_headline(review: ReadReview, target: str, code: ShareName) -> CorrectedHeadline:
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
        judged, corrected, strata.get("flagged"), strata.get("sampled"), len(found.outside), found.unsettled
    )


_Counts = tuple[str, float, float | None]
"""Stratum, and what judges and people said."""


def _counts(judged: float | None, labeled: float | None, stratum: Stratum | None) -> _Counts | None:
    """How an answer counts; None if it is missing. A flagged one that people leave open is missing, as with judges."""
    if stratum == "flagged":
        if labeled is None:
            return None
        return (SETTLED, labeled, labeled) if judged is None else (stratum, judged, labeled)
    if judged is None:
        return None
    return (OUTSIDE, judged, judged) if stratum is None else (stratum, judged, labeled)


class _Answers:
    """The answers of one target, with the judges' and the people's codes."""

    def __init__(self, review: ReadReview, rows: Sequence[Row], code: ShareName) -> None:
        people = {row.trial_id: dict(row.counted) for row in review.found.rows}
        chosen = frozenset(review.selected.chosen)
        self.outside: set[str] = set()
        self.unsettled = 0
        self.found: list[tuple[Question, str, str, _Counts]] = []
        """Question, variant and trial of each answer that counts."""
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
                    self.found.append((Question(row.scenario_id, group), row.variant or "", row.trial_id, counts))

    def weighted(self) -> list[JudgedAnswer]:
        """Repeats of a script, the variants of a question, and all questions have equal weights, as in every share."""
        repeats = Counter((question, variant) for question, variant, *_ in self.found)
        variants = Counter(question for question, _ in repeats)
        return [
            JudgedAnswer(question.scenario_id, trial_id, *counts, 1 / (variants[question] * repeats[question, variant]))
            for question, variant, trial_id, counts in self.found
        ]


def _stratum(row: Row, chosen: frozenset[str]) -> Stratum | None:
    """As the review was drawn; None for a trial that could not be drawn."""
    if row.trial_id in chosen:
        return "flagged"
    return "sampled" if row.outcome == "scored" and not row.review else None
