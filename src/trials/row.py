"""One trial as numbers: what tables, charts and tests count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeVar, cast, get_args

from ..schemas import Label, LeftOpen, QuestionCode, RunPlan, Scores, TrialOutcome, TrialResult
from ..scoring.definitions import SCORES
from ..store.strict_json import sha256
from .missing import counted_code
from .split_codes import SplitCode

T = TypeVar("T", bound=Hashable)
LABELS: tuple[Label, ...] = get_args(Label)
OUTCOMES: tuple[TrialOutcome, ...] = get_args(TrialOutcome)
DECIDED = ("unanimous", "majority", "adjudicator", "unresolved")
"""How a claim got its final label, or why it has none."""
OPEN_TIE = "open_tie"
"""In place of `unresolved`: verifiers are tied, and no model of a third family was there to settle it."""
NOT_RECORDED = "not recorded by release 0.1"
"""In place of review reasons, in runs of format 1."""


def is_open_tie(plan: RunPlan, target: str, decided_by: str, labels_given: Sequence[str]) -> bool:
    return plan.judges_of(target).adjudicator is None and decided_by == "unresolved" and len(set(labels_given)) > 1


class CodedQuestion(NamedTuple):
    """A question group of a trial with its study code, or with the answer to a closed question."""

    group: str
    value: str


class OwnCode(NamedTuple):
    """A question that is coded by the study's points, as our own points have it."""

    group: str
    code: str
    made: int
    """Of `points`, how many the answer made."""
    points: int


Scored = tuple[float | None, ...]
"""In the order of `SCORES`."""
NO_SCORES: Scored = (None,) * len(SCORES)
_in_order = attrgetter(*SCORES)


@dataclass(frozen=True, slots=True)
class Without:
    """A trial's result if its marked passages had not been written."""

    scores: Scored | None
    """None if a judge failed."""
    codes: tuple[CodedQuestion, ...]
    counted: tuple[CodedQuestion, ...] = ()
    """The same as they count in estimates: see `missing`."""
    ends: Ends | None = None


class ClaimCount(NamedTuple):
    """Factual claims with a final label."""

    decided: int
    """Of these, how many the key could decide: SUPPORTED or CONTRADICTED."""
    factual: int


NO_CLAIMS = ClaimCount(0, 0)


class CitedPage(NamedTuple):
    """A citation of a reply, as often as it backs a claim."""

    turn_id: str
    url: str
    host_class: str
    outcome: str


class Ends(NamedTuple):
    """How far open claims could move the scores of a trial."""

    lowest: Scored
    highest: Scored


class Row(NamedTuple):
    """One trial, as numbers. A tuple, because a large run has many, and they are sent from process to process."""

    trial_id: str
    scenario_id: str
    variant: str | None
    target: str
    repetition: int
    outcome: TrialOutcome
    scores: Scored
    """All None if the trial was not scored."""
    labels: tuple[int, int, int]
    """Final claims by label, in the order of `LABELS`."""
    unresolved: int
    """Final claims without a label: open claims."""
    codes: tuple[CodedQuestion, ...]
    answers: tuple[CodedQuestion, ...]
    """Closed questions: yes, no or unsure."""
    errors: tuple[str, ...]
    refusal: bool
    fabricated: bool
    review: bool
    wording: str = ""
    """Fingerprint of the questions as asked: a different wording or knob gives a different fingerprint."""
    by_judge: tuple[float | None, ...] = ()
    """Accuracy according to each judge's own verdicts."""
    claims: ClaimCount = NO_CLAIMS
    marked: int = 0
    """Replies that the screen marked."""
    without: Without | None = None
    """Set if the trial was scored and a reply is marked."""
    own: tuple[OwnCode, ...] = ()
    """Questions that have two sets of points."""
    counted: tuple[CodedQuestion, ...] = ()
    """The questions of `codes` as they count in estimates: see `missing`."""
    split_codes: tuple[SplitCode, ...] = ()
    """Questions whose code hangs on a verdict that the judges disagreed on or left open."""
    citations: tuple[CitedPage, ...] = ()
    ends: Ends | None = None
    """None if no claim is open, and in runs of formats 1 to 5."""

    def score(self, name: str) -> float | None:
        return self.scores[SCORES.index(name)]

    @property
    def judged(self) -> int:
        """Claims that judges were given."""
        return sum(self.labels) + self.unresolved

    def undecided(self, name: str) -> bool:
        """Whether it has no such score because claims are open."""
        if self.score(name) is not None or not self.unresolved:
            return False
        return self.ends is None or self.ends.lowest[SCORES.index(name)] is not None


def claim_counts(line: TrialResult) -> dict[str, ClaimCount]:
    """By question group, or by turn where it is in none."""
    groups = {exchange.turn_id: exchange.question_group or exchange.turn_id for exchange in line.conversation}
    factual = {claim.claim_id for claim in line.claims if claim.type == "factual"}
    alike = Counter([(claim.turn_id, claim.label) for claim in line.final_claims if claim.claim_id in factual])
    found: dict[str, ClaimCount] = {}
    for (turn_id, label), n in alike.items():
        if label is not None:
            group = groups.get(turn_id, turn_id)
            before = found.get(group, NO_CLAIMS)
            found[group] = ClaimCount(before.decided + n * (label != "NOT_IN_KEY"), before.factual + n)
    return found


def _scores(scores: Scores) -> Scored:
    return cast(Scored, _in_order(scores))


def _ends(left_open: LeftOpen | None) -> Ends | None:
    return Ends(_scores(left_open.lowest), _scores(left_open.highest)) if left_open else None


def _codes(codes: tuple[QuestionCode, ...]) -> tuple[CodedQuestion, ...]:
    return tuple([CodedQuestion(code.question_group, code.code) for code in codes if code.code])


def _counted(
    line: TrialResult, codes: tuple[QuestionCode, ...], closed: Container[tuple[str, str]]
) -> tuple[CodedQuestion, ...]:
    """Closed questions are in no estimate, answered or not."""
    outcomes = {exchange.turn_id: exchange.outcome for exchange in line.conversation}
    return tuple(
        CodedQuestion(
            code.question_group, counted_code(code.code, (outcomes.get(turn, "not_asked") for turn in code.turn_ids))
        )
        for code in codes
        if code.code and (line.scenario_id, code.question_group) not in closed
    )


def _own_codes(codes: tuple[QuestionCode, ...]) -> tuple[OwnCode, ...]:
    return tuple(
        OwnCode(code.question_group, own.code, len(own.points_met), len(own.points_met) + len(own.points_missed))
        for code in codes
        if (own := code.own)
    )


def _without(line: TrialResult, closed: Container[tuple[str, str]]) -> Without | None:
    without = line.without_marked
    if without is None:
        return None
    return Without(
        _scores(without.final_scores) if without.final_scores else None,
        _codes(without.study_codes),
        _counted(line, without.study_codes, closed),
        _ends(without.left_open),
    )


def _shared(value: T) -> T:
    """The same value, but equal ones are one object: a large run has many rows that are alike."""
    return cast(T, _first_equal(value))


@lru_cache(maxsize=65_536)
def _first_equal(value: Hashable) -> Hashable:
    return value


@lru_cache(maxsize=4096)
def _fingerprint(questions: str) -> str:
    return sha256(questions)[:12]


def row_of(
    line: TrialResult,
    by_group: dict[str, ClaimCount],
    split: tuple[SplitCode, ...] = (),
    closed: Container[tuple[str, str]] = (),
) -> Row:
    counts = Counter([claim.label for claim in line.final_claims])
    return Row(
        line.trial_id,
        _shared(line.scenario_id),
        _shared(line.variant),
        _shared(line.target.name),
        line.repetition,
        line.outcome,
        _scores(line.final_scores) if line.final_scores else NO_SCORES,
        (counts["SUPPORTED"], counts["CONTRADICTED"], counts["NOT_IN_KEY"]),
        counts[None],
        _shared(_codes(line.study_codes)),
        _shared(tuple([CodedQuestion(code.question_group, code.answer) for code in line.study_codes if code.answer])),
        _shared(tuple(line.error_categories)),
        line.flags.refusal,
        line.flags.hallucinated_specifics,
        line.needs_manual_review,
        _fingerprint("\n".join([exchange.user_message for exchange in line.conversation])),
        tuple(one.scores.accuracy for one in line.scores_by_judge.values()),
        ClaimCount(*(sum(part) for part in zip(*by_group.values(), strict=True))) if by_group else NO_CLAIMS,
        sum(bool(reading.marked) for reading in line.readings),
        _without(line, closed),
        _shared(_own_codes(line.study_codes)),
        _shared(_counted(line, line.study_codes, closed)),
        split,
        tuple(
            CitedPage(one.turn_id, one.citation.url, one.citation.host_class, one.citation.outcome)
            for one in line.citations
        ),
        _ends(line.left_open),
    )
