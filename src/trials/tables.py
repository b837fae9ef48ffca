"""The tables of trials: each column is declared here, once, with what it means and where it is in a trial's record.

Exports, the codebook, data frames, the samples of Inspect logs and the counts in reports are made from these
declarations. Every table has `run_id` and the keys of the tables above it, so that any two can be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from ..records.base import SEVERITIES, ObservationKind
from ..records.citation import CITATION_OUTCOMES, HostClass
from ..records.result import TurnCitation
from ..records.target import KIND_NAMES
from ..schemas import (
    CODES,
    Claim,
    ClaimType,
    ClosedAnswer,
    Confidence,
    Exchange,
    FinalClaim,
    GroupRule,
    QuestionCode,
    RunPlan,
    Scores,
    TrialOutcome,
    TrialResult,
    TurnOutcome,
    TurnReading,
    Verdict,
)
from ..scoring.definitions import MEASURES, SCORES
from ..store.projection import Fields, projection
from .columns import JOINED, DataColumn, DataTable, category, flag, integer, listed, number, text
from .missing import MISSING as LEFT_OUT
from .missing import NOT_CODED, counted_code, measured_score
from .row import DECIDED, LABELS, NOT_RECORDED, OPEN_TIE, OUTCOMES, claim_counts, is_open_tie

_NO_SCORE = (*(outcome for outcome in OUTCOMES if outcome != "scored"), "nothing_to_check", "unresolved")
_NOT_COUNTED = (
    "closed_question", "refused", "blocked", "truncated", "empty", "failed", "not_asked", "judge_failure",
    "questioner_failure", "tampered", "unresolved",
)  # fmt: skip
_FAILED = frozenset({"transient", "timeout", "rate_limited", "malformed", "permanent"})
"""Outcomes of a turn after which the tables say `failed`."""
_LEVELS = tuple(code for code in CODES if code != NOT_CODED)


@dataclass(frozen=True)
class TabledRun:
    """What the rows of a trial need to know about its run."""

    run_id: str
    rules: Mapping[tuple[str, str], GroupRule]
    compared: frozenset[tuple[str, str]]
    """Questions, by scenario and group, that are compared like for like with counselors."""
    plan: RunPlan

    def verifiers_of(self, trial: TrialResult) -> dict[str, str]:
        """Judge to model."""
        return {f"judge_{n}": name for n, name in enumerate(self.plan.judges_of(trial.target.name).verifiers, 1)}


# What all tables of trials begin with

RUN_ID: DataColumn[Any] = text("run_id", "The run, by the name of its folder", "run.run_id")
OF_TRIAL: tuple[DataColumn[Any], ...] = (
    RUN_ID,
    text("trial_id", "The trial: scenario (@variant), target and repetition", "trial.trial_id"),
    text("scenario_id", "The scenario", "trial.scenario_id"),
    text("variant", "The variant of the scenario", "trial.variant", "the scenario has no variants"),
    text("target", "The model under test, provider:model as the user wrote it", "trial.target.name"),
    integer("repetition", "Which repeat: 1, 2, ...", "trial.repetition"),
)
TURN_ID, CLAIM_ID = "The turn of the script", "The claim"
_JUDGE: DataColumn[Any] = text("judge", "judge_1, judge_2, ...", "judge")
_JUDGE_MODEL: DataColumn[Any] = text("judge_model", "The judge's model", "model")


def why_no_score(trial: TrialResult) -> str:
    """Why a score is missing: a name of `MISSING`."""
    if trial.outcome != "scored":
        return trial.outcome
    return "unresolved" if any(claim.label is None for claim in trial.final_claims) else "nothing_to_check"


# trial


class TrialPart(NamedTuple):
    run: TabledRun
    trial: TrialResult


def _scores() -> Iterator[DataColumn[TrialPart]]:
    """The final scores, as they count in estimates."""

    def counted(name: str) -> Callable[[TrialPart], float | None]:
        return lambda of: measured_score(of.trial.outcome, name, getattr(of.trial.final_scores, name, None)).value

    for name in SCORES:
        meaning = _score_meaning(name, "from the final verdicts; open claims count as each verifier labeled them")
        yield number(name, meaning, counted(name), reasons=_NO_SCORE, why=_why_no_score)
        for end in _ENDS:
            meaning = f"The {end} that {name} could be, over the ways in which open claims could fall; 0 to 1"
            yield number(f"{name}_{end}", meaning, _at(name, end), reasons=_NO_SCORE, why=_why_no_score)


_ENDS: tuple[Literal["lowest", "highest"], ...] = ("lowest", "highest")


def _at(name: str, end: Literal["lowest", "highest"]) -> Callable[[TrialPart], float | None]:
    return lambda of: _end(of.trial, name, getattr(of.trial.left_open, end, None))


def _end(trial: TrialResult, name: str, end: Scores | None) -> float | None:
    """The score itself if no claim is open; nothing where claims are open and their ranges were not recorded."""
    if end is None and any(claim.label is None for claim in trial.final_claims):
        return None
    return measured_score(trial.outcome, name, getattr(end or trial.final_scores, name, None)).value


def _score_meaning(name: str, source: str) -> str:
    one = MEASURES[name]
    return f"{one.formula.capitalize()}, {source}; 0 to 1, {one.better} is better"


def _why_no_score(of: TrialPart | JudgePart) -> str:
    return why_no_score(of.trial)


def _scores_without() -> Iterator[DataColumn[TrialPart]]:
    for name in SCORES:
        meaning = f"{MEASURES[name].heading.capitalize()}, if the marked passages had not been written; 0 to 1"
        reasons = (*_NO_SCORE, "not_marked", "unread_without")
        source = f"trial.without_marked.final_scores.{name}"
        yield number(f"{name}_unmarked", meaning, source, reasons=reasons, why=_why_no_score_without)


def _why_no_score_without(of: TrialPart) -> str:
    without = of.trial.without_marked
    if of.trial.outcome == "scored" and without is None:
        return "not_marked"
    return "unread_without" if without and without.final_scores is None else why_no_score(of.trial)


def _labeled(label: str | None) -> Callable[[TrialPart], int]:
    return lambda of: sum(claim.label == label for claim in of.trial.final_claims)


def _review(field: str) -> Callable[[TrialPart], str | None]:
    def cell(of: TrialPart) -> str | None:
        if of.trial.review_reasons is None:
            return NOT_RECORDED if of.trial.needs_manual_review else None
        return listed(getattr(reason, field) for reason in of.trial.review_reasons)

    return cell


TRIAL: DataTable[TrialPart] = DataTable(
    "trial",
    "One row per trial: one scenario asked of one target once.",
    (
        *OF_TRIAL,
        text("provider", "The provider of the target", "trial.target.provider"),
        text("model", "The target's name without the provider", "trial.target.model"),
        text("family", "The target's model family; a judge is never from the same family", "trial.target.family"),
        text("api_id", "The model id sent to the provider", "trial.target.api_id"),
        text("served_models", "Every model id that answered", "trial.target.served_models", "no reply named a model"),
        flag("served_as_requested", "Whether each of these is the id sent, or a dated version of it",
            "trial.target.served_as_requested", "not_stated"),
        text("fingerprints", "System fingerprints reported by the provider", "trial.target.fingerprints",
            "none reported"),
        text("not_applied", "Requested parameters that the model does not accept", "trial.target.not_applied",
            "all were applied"),
        category("target_kind", "What the target is; kinds are never pooled", tuple(KIND_NAMES),
            lambda of: of.run.plan.settings_of(of.trial.target.name).kind),
        integer("searches", "Web searches, as they are billed", "trial.conversation.search.searches"),
        integer("citations", "Citations of its replies; one that backs two claims counts twice", "trial.citations"),
        category("outcome", "What happened to the trial; only scored trials have scores", get_args(TrialOutcome),
            "trial.outcome"),
        *_scores(),
        integer("factual_claims", "Factual claims with a final label",
            lambda of: sum(one.factual for one in claim_counts(of.trial).values())),
        integer("key_decided", "Of these, SUPPORTED or CONTRADICTED; accuracy speaks of what the key decided only",
            lambda of: sum(one.decided for one in claim_counts(of.trial).values())),
        integer("claims", "Claims found in the replies", "trial.claims"),
        integer("claims_supported", "Of these, final label SUPPORTED", _labeled("SUPPORTED")),
        integer("claims_contradicted", "Of these, final label CONTRADICTED", _labeled("CONTRADICTED")),
        integer("claims_not_in_key", "Of these, final label NOT_IN_KEY", _labeled("NOT_IN_KEY")),
        integer("claims_unresolved",
            "Of these, open: without a final label. Scores count them as each verifier labeled them, in turn",
            _labeled(None)),
        integer("claims_unjudged", "Of these, that no verifier labeled; they count in no score",
            lambda of: sum(not claim.labels_given for claim in of.trial.final_claims)),
        integer("rejected_claims", "Claims rejected: quote not found, or the claim says more than the quote",
            "trial.rejected_claims", in_report="claims rejected"),
        text("missing_required_points", "Required points that were not made, whichever way open claims fall",
            "trial.missing_required_points", "none, or the trial was not scored"),
        text("error_categories", "Kinds of error found", "trial.error_categories", "none, or the trial was not scored"),
        flag("refusal", "Whether any turn was declined", "trial.flags.refusal"),
        flag("hallucinated_specifics", "Whether a specific was stated that cannot be known without a lookup",
            "trial.flags.hallucinated_specifics"),
        flag("needs_manual_review", "Whether a person should look at the trial", "trial.needs_manual_review"),
        text("review_reasons",
            f"Why it needs review, as recorded in the result ('{NOT_RECORDED}' in runs of that release)",
            _review("kind"), "it needs no review"),
        text("review_details", "The same, one sentence per reason with its numbers", _review("detail"),
            "it needs no review"),
        number("disagreement", "Share of judged claims on which the verifiers did not all agree; 0 to 1",
            "trial.disagreement", reasons=_NO_SCORE, why=_why_no_score),
        integer("marked_replies", "Replies with passages that the screen marked and that were judged apart",
            lambda of: sum(bool(reading.marked) for reading in of.trial.readings)),
        *_scores_without(),
        integer("severity_disagreements", "Claims judged wrong by all, but with different severities",
            "trial.severity_disagreements"),
        integer("judge_failures", "Times a judge gave no usable answer", "trial.judge_failures"),
        text("rubric_version", "The rubric used for scoring", "trial.rubric_version"),
        text("scenario_sha256", "Hash of the scenario file", "trial.fingerprints.scenario"),
        text("rubric_sha256", "Hash of the rubric file", "trial.fingerprints.rubric"),
    ),
    ("run_id", "trial_id"),
    lambda trial, run: [TrialPart(run, trial)],
)  # fmt: skip


# judge


class JudgePart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    judge: str
    model: str
    scores: Scores | None


def _judges(trial: TrialResult, run: TabledRun) -> Iterator[JudgePart]:
    for judge, model in run.verifiers_of(trial).items():
        own = trial.scores_by_judge.get(judge)
        yield JudgePart(run, trial, judge, model, own.scores if own else None)


def _own_scores() -> Iterator[DataColumn[JudgePart]]:
    for name in SCORES:
        meaning = _score_meaning(name, "from this verifier's verdicts alone")
        yield number(name, meaning, f"scores.{name}", reasons=_NO_SCORE, why=_why_no_score)


JUDGE: DataTable[JudgePart] = DataTable(
    "judge",
    "One row per trial and verifier: the scores according to that verifier alone.",
    (
        *OF_TRIAL,
        _JUDGE,
        _JUDGE_MODEL,
        integer("claims_labeled", "Claims that it labeled", lambda of: len(of.trial.verdicts.get(of.judge, ()))),
        *_own_scores(),
    ),
    ("run_id", "trial_id", "judge"),
    _judges,
)  # fmt: skip


# turn


class TurnPart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    position: int
    turn: Exchange
    reading: TurnReading | None
    """None if there was no reply to read, or the extractor failed on it."""


def _turns(trial: TrialResult, run: TabledRun) -> Iterator[TurnPart]:
    readings = {reading.turn_id: reading for reading in trial.readings}
    for position, turn in enumerate(trial.conversation, 1):
        yield TurnPart(run, trial, position, turn, readings.get(turn.turn_id))


def _verified(of: TurnPart) -> str | None:
    if of.reading is None:
        return None
    return of.reading.verified or "together" if of.reading.how == "judges" else "none"


def _observed(kind: ObservationKind) -> Callable[[TurnPart], int]:
    return lambda of: sum(
        one.turn_id == of.turn.turn_id and one.observation.kind == kind for one in of.trial.observations
    )


TURN: DataTable[TurnPart] = DataTable(
    "turn",
    "One row per turn of a trial, whether it was asked or not.",
    (
        *OF_TRIAL,
        text("turn_id", TURN_ID, "turn.turn_id"),
        integer("position", "Its place in the conversation: 1, 2, ...", "position"),
        text("question_group", "The question group it belongs to", "turn.question_group", "it is in no group"),
        category("outcome", "What happened to the turn", get_args(TurnOutcome), "turn.outcome"),
        text("user_message", "The question, as it was asked or would have been", "turn.user_message"),
        text("reply", "What the target wrote, verbatim", "turn.reply", "it wrote nothing; see outcome"),
        integer("reply_characters", "Length of the reply", lambda of: len(of.turn.reply or "")),
        text("detail", "Why there is no answer", "turn.detail", "there is an answer"),
        text("served_model", "The model id that answered", "turn.served_model", "no reply, or it named no model"),
        category("read_how",
            "How the reply was evaluated: by the judge models, by a fixed rule (stock refusals and very short "
            "replies), or not at all (it addressed the judge)", ("judges", "rule", "tampered"), "reading.how",
            "not_read"),
        text("read_why", "Reason for the special handling in read_how (empty if the reply was judged normally)",
            lambda of: of.reading.why or None if of.reading else None, "judged normally"),
        integer("sentences", "Sentences of the reply with factual content", "reading.sentences", "not_read"),
        integer("sentences_covered_first", "Of these, covered by the extractor's first answer", "reading.covered_first",
            "not_read"),
        integer("sentences_covered", "Of these, covered by the final list of claims", "reading.covered", "not_read"),
        integer("verbatim", "Claims that are clauses of sentences which the extractor left out", "reading.verbatim",
            "not_read", in_report="claims made of these"),
        integer("marked", "Passages that the screen marked and that were judged apart", "reading.marked",
            "not_read"),
        text("marked_why", "What the screen found in each of them", "reading.marked.why", "none is marked"),
        category("verified",
            "How its claims were verified: several per call, one per call, both ways (audit sample), or not at all",
            ("together", "each_claim", "both_ways", "none"), _verified, "not_read"),
        integer("typographic_quotes", "Quotes found only after normalizing quotes, dashes and spaces",
            "reading.typographic_quotes", "not_read", in_report="quotes found after normalizing"),
        integer("claims", "Claims found in the reply",
            lambda of: sum(claim.turn_id == of.turn.turn_id for claim in of.trial.claims)),
        integer("rejected_claims", "Claims rejected",
            lambda of: sum(claim.turn_id == of.turn.turn_id for claim in of.trial.rejected_claims)),
        integer("refusals", "Passages that decline to answer", _observed("refusal")),
        integer("referrals", "Passages that refer the user elsewhere", _observed("referral")),
        integer("hedges", "Passages that hedge", _observed("hedge")),
        integer("fabricated_specifics", "Specifics that cannot be known without a lookup",
            _observed("fabricated_specific")),
    ),
    ("run_id", "trial_id", "turn_id"),
    _turns,
)  # fmt: skip


# claim


class ClaimPart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    claim: Claim
    final: FinalClaim | None
    """None if no judge was asked about it."""
    reply: str

    @property
    def quotes(self) -> list[str]:
        """The target's own words for it."""
        return [self.reply[span.start : span.end] for span in self.claim.quote_spans]


def _claims(trial: TrialResult, run: TabledRun) -> Iterator[ClaimPart]:
    final = {claim.claim_id: claim for claim in trial.final_claims}
    replies: dict[str | None, str] = {turn.turn_id: turn.reply or "" for turn in trial.conversation}
    for claim in trial.claims:
        yield ClaimPart(run, trial, claim, final.get(claim.same_as or claim.claim_id), replies.get(claim.turn_id, ""))


def _why_no_label(of: ClaimPart) -> str:
    if not of.claim.verifiable:
        return "not_verifiable"
    if of.final and is_open_tie(of.run.plan, of.trial.target.name, of.final.decided_by, of.final.labels_given):
        return OPEN_TIE
    return "unresolved"


CLAIM: DataTable[ClaimPart] = DataTable(
    "claim",
    "One row per claim found in a reply, with its final label.",
    (
        *OF_TRIAL,
        text("turn_id", TURN_ID, "claim.turn_id"),
        text("claim_id", "The claim; unique within the trial", "claim.claim_id"),
        text("claim", "What is claimed, in the extractor's words", "claim.text"),
        text("quotes", "The target's own words, verbatim, joined by ' … '", lambda of: " … ".join(of.quotes)),
        text("spans", "Where these are in the reply: start-end, in characters",
            lambda of: JOINED.join(f"{span.start}-{span.end}" for span in of.claim.quote_spans)),
        category("quote_match", "How the quotes were found", ("exact", "typographic"),
            lambda of: "typographic" if any(span.match == "typographic" for span in of.claim.quote_spans) else "exact"),
        category("type", "The kind of claim", get_args(ClaimType), "claim.type"),
        category("confidence", "How certain it sounds", get_args(Confidence), "claim.confidence"),
        flag("verifiable", "Whether it was given to the judges", "claim.verifiable"),
        flag("verbatim", "Whether it is a clause of a sentence that the extractor left out, in its own words",
            "claim.verbatim"),
        category("label", "The final label against the answer key", LABELS, "final.label",
            reasons=("not_verifiable", "unresolved", "open_tie"), why=_why_no_label),
        text("evidence", "Facts (F...) and disallowed claims (D1, ...) of the key cited for the label",
            "final.evidence", "none cited"),
        category("severity", "How harmful the error is; none if there is no error", SEVERITIES, "final.severity",
            "not_verifiable"),
        flag("severity_split", "Whether judges gave different severities; the highest counts", "final.severity_split",
            "not_verifiable"),
        category("decided_by", "How the label was decided", DECIDED, "final.decided_by", "not_verifiable"),
        text("labels_given", "The labels the judges gave", "final.labels_given", "no judge gave one"),
    ),
    ("run_id", "trial_id", "claim_id"),
    _claims,
)  # fmt: skip


# verdict


class VerdictPart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    judge: str
    model: str
    asked: str
    repeat: int
    claim: Claim
    verdict: Verdict | None
    """None if the judge gave none."""


def _verdicts(trial: TrialResult, run: TabledRun) -> Iterator[VerdictPart]:
    """One per claim that the judge was asked about, also where it gave no verdict."""
    verifiers = run.verifiers_of(trial)
    claims = [claim for claim in trial.claims if claim.verifiable and claim.same_as is None]
    in_shared = {one.claim_id for verdicts in trial.shared_verdicts.values() for one in verdicts}
    shared = [claim for claim in claims if claim.claim_id in in_shared]

    def of(judge: str, asked: str, repeat: int, about: Iterable[Claim], verdicts: Iterable[Verdict]) -> Any:
        given = {verdict.claim_id: verdict for verdict in verdicts}
        model = verifiers[judge]
        return (VerdictPart(run, trial, judge, model, asked, repeat, one, given.get(one.claim_id)) for one in about)

    for judge in verifiers:
        rounds = (trial.verdicts.get(judge, ()), *trial.repeat_verdicts.get(judge, ()))
        for repeat, verdicts in enumerate(rounds):
            yield from of(judge, "alone_or_together", repeat, claims, verdicts)
        yield from of(judge, "shared_call", 0, shared, trial.shared_verdicts.get(judge, ()))


VERDICT: DataTable[VerdictPart] = DataTable(
    "verdict",
    "One row per claim, verifier and time it was asked, including times it gave no verdict.",
    (
        *OF_TRIAL,
        text("turn_id", TURN_ID, "claim.turn_id"),
        text("claim_id", CLAIM_ID, "claim.claim_id"),
        _JUDGE,
        _JUDGE_MODEL,
        category("asked",
            "alone_or_together: the verdict that counts, or repeats of it; shared_call: on the audit sample, in a call "
            "with other claims, to measure the difference", ("alone_or_together", "shared_call"), "asked"),
        integer("repeat", "0: the verdict that counts; 1, 2, ...: asked again to measure the judge's noise", "repeat"),
        category("label", "The verifier's label", LABELS, "verdict.label", "judge_failure"),
        text("evidence", "What it cites from the answer key", "verdict.evidence", "nothing"),
        category("severity", "How harmful it considers the error", SEVERITIES, "verdict.severity", "judge_failure"),
        text("notes", "Its reasons, verbatim", lambda of: of.verdict.notes or None if of.verdict else None,
            "it gave none"),
    ),
    ("run_id", "trial_id", "claim_id", "judge", "asked", "repeat"),
    _verdicts,
)  # fmt: skip


# citation


class CitationPart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    position: int
    cited: TurnCitation


CITATION: DataTable[CitationPart] = DataTable(
    "citation",
    "One row per citation of a reply; one that backs several claims has a row for each.",
    (
        *OF_TRIAL,
        text("turn_id", TURN_ID, "cited.turn_id"),
        integer("position", "Its place among the citations of the trial: 1, 2, ...", "position"),
        text("claim_id", "The claim that it backs", "cited.citation.claim_id", "it backs no claim"),
        text("url", "The address, as it was given", "cited.citation.url"),
        category("where", "Whether the provider attached it, or it is in the text", ("annotation", "text"),
            "cited.citation.where"),
        category("host_class", "Whose address it is, by its host name", get_args(HostClass),
            "cited.citation.host_class"),
        category("citation_outcome", "What checking it found", CITATION_OUTCOMES, "cited.citation.outcome"),
        text("page_sha256", "Hash of the page in the snapshot", "cited.citation.page_sha256",
            "the page is not in the snapshot"),
        text("why", "The reason for the outcome", "cited.citation.why"),
    ),
    ("run_id", "trial_id", "position"),
    lambda trial, run: [CitationPart(run, trial, position, one) for position, one in enumerate(trial.citations, 1)],
)  # fmt: skip


# question


class QuestionPart(NamedTuple):
    run: TabledRun
    trial: TrialResult
    code: QuestionCode
    rule: GroupRule | None

    @property
    def closed(self) -> bool:
        return bool(self.rule and self.rule.closed) or self.code.answer is not None

    @property
    def level(self) -> str | None:
        """The code as it counts in estimates."""
        if self.code.code is None or self.closed:
            return None
        counted = counted_of(self.code, self.trial)
        return None if counted == LEFT_OUT else counted


def _turn_outcomes(code: QuestionCode, trial: TrialResult) -> list[str]:
    outcomes = {turn.turn_id: turn.outcome for turn in trial.conversation}
    return [outcomes.get(turn_id, "not_asked") for turn_id in code.turn_ids]


def counted_of(code: QuestionCode, trial: TrialResult) -> str:
    """The study code of a question as it counts in estimates; not for closed questions."""
    return counted_code(code.code or "", _turn_outcomes(code, trial))


def why_not_counted(code: QuestionCode, trial: TrialResult) -> str:
    """Why a question is in no estimate: a name of `MISSING`."""
    if code.code is None:
        return "closed_question"
    if trial.outcome in ("questioner_failure", "tampered"):
        return trial.outcome
    for outcome in _turn_outcomes(code, trial):
        if outcome not in ("answered", "skipped"):
            return "failed" if outcome in _FAILED else outcome
    failed = {failure.turn_id for failure in trial.judge_failures}
    return "judge_failure" if failed & {*code.turn_ids, "-"} else "unresolved"


def _questions(trial: TrialResult, run: TabledRun) -> Iterator[QuestionPart]:
    for code in trial.study_codes:
        yield QuestionPart(run, trial, code, run.rules.get((trial.scenario_id, code.question_group)))


QUESTION: DataTable[QuestionPart] = DataTable(
    "question",
    "One row per question group of a trial, coded as in the published study.",
    (
        *OF_TRIAL,
        text("question_group", "The question group; the turn's id if it is in no group", "code.question_group"),
        integer("study_group", "Its number in the published study", "rule.study_group", "not_of_the_study"),
        text("topic", "The topic", "rule.topic", "not recorded"),
        text("turn_ids", "The turns in which it was asked", "code.turn_ids"),
        flag("lookup_dependent", "Whether the answer depends on a plan, doctor or place that must be looked up",
            "code.lookup_dependent"),
        category("code", "The study code", CODES, "code.code", reasons=("closed_question",),
            why=lambda of: "closed_question"),
        category("counted_code",
            "The code as it counts in estimates: a reply that conveys nothing is not_substantive, and what is "
            "missing is left out", _LEVELS, "level", reasons=_NOT_COUNTED,
            why=lambda of: "closed_question" if of.closed else why_not_counted(of.code, of.trial)),
        flag("compared", "Whether it is compared like for like with counselors' answers; see the table counselor",
            lambda of: of.code.code is not None and (of.trial.scenario_id, of.code.question_group) in of.run.compared),
        category("answer", "The answer to a closed question", get_args(ClosedAnswer), "code.answer",
            reasons=("open_question", "incomplete_data"),
            why=lambda of: "incomplete_data" if of.closed else "open_question"),
        text("reason", "Why it got this code", "code.reason"),
        text("points_met", "Required points that were made", "code.points_met.point", "none"),
        text("points_missed", "Required points that were not made", "code.points_missed", "none"),
        text("partial_points_met", "Points made that are substantive but never enough on their own",
            "code.partial_points_met.point", "none"),
        text("wrong", "Claims wrong enough to make the answer incorrect", "code.wrong.claim_id", "none"),
        text("minor", "Claims that are wrong, but not enough to make the answer incorrect", "code.minor.claim_id",
            "none"),
        text("fabricated", "Specifics, in the target's words, that cannot be known without a lookup", "code.fabricated",
            "none"),
        text("looked_up", "Such specifics that have a source, or that a person with look-up tools stated",
            "code.looked_up.quote", "none"),
        integer("looked_up_unchecked", "Of these, how many nobody has checked",
            lambda of: sum(not one.checked for one in of.code.looked_up)),
        category("own_code", "The code by our own points, where code goes by the study's", CODES, "code.own.code",
            "one_set_of_points"),
        text("own_points_met", "Our own points that were made", "code.own.points_met.point",
            "none, or own_code is empty"),
        text("own_points_missed", "Our own points that were not made", "code.own.points_missed",
            "none, or own_code is empty"),
    ),
    ("run_id", "trial_id", "question_group"),
    _questions,
)  # fmt: skip

OF_TRIALS: tuple[DataTable[Any], ...] = (TRIAL, JUDGE, TURN, CLAIM, VERDICT, CITATION, QUESTION)
"""In the order in which a trial adds rows to them."""


# What a report counts

_OWNERS = {"trial": "", "turn": "conversation", "reading": "readings"}
"""Where the parts of a trial are in its record."""


class Counted(NamedTuple):
    """A column whose sum over a run is in the report."""

    table: DataTable[Any]
    column: DataColumn[Any]

    @property
    def key(self) -> str:
        return f"{self.table.name}.{self.column.name}"

    def fields(self) -> Fields:
        """What it reads of a trial."""
        if not isinstance(self.column.source, str):
            return self.column.reads
        owner, *path, name = self.column.source.split(".")
        return {".".join(filter(None, (_OWNERS[owner], *path))): name}


COUNTED = tuple(Counted(table, column) for table in (TURN, TRIAL) for column in table.columns if column.in_report)
_CODE = "question_group turn_ids code answer lookup_dependent"
_READ = {
    "": "trial_id scenario_id variant repetition outcome final_scores left_open error_categories needs_manual_review "
    "severity_disagreements",
    "target": "name served_models served_as_requested fingerprints not_applied",
    "conversation": "turn_id question_group user_message outcome",
    "claims": "claim_id type confidence",
    "verdicts": "claim_id label",
    "repeat_verdicts": "claim_id label",
    "shared_verdicts": "claim_id label",
    "scores_by_judge.scores": "accuracy",
    "flags": "refusal hallucinated_specifics",
    "final_claims": "claim_id turn_id text label evidence severity decided_by labels_given",
    "study_codes": _CODE,
    "study_codes.own": "code points_missed",
    "study_codes.own.points_met": "point",
    "without_marked": "final_scores left_open",
    "without_marked.study_codes": _CODE,
    "readings": "turn_id how sentences covered_first covered",
    "readings.marked": "start",
    "judge_failures": "stage turn_id judge reason",
    "judge_services": "model served_models served_as_requested not_applied",
    "review_reasons": "kind",
    "citations": "turn_id",
    "citations.citation": "url outcome host_class",
}


def _joined(parts: Iterable[Fields]) -> Fields:
    found: dict[str, str] = {}
    for path, names in (one for fields in parts for one in fields.items()):
        found[path] = f"{found.get(path, '')} {names}"
    return found


decode = projection(TrialResult, _joined([_READ, *(one.fields() for one in COUNTED)]))
"""What is counted of a result."""


def counts_of(trial: TrialResult) -> Iterator[tuple[str, int]]:
    """What a trial adds to the sums. These columns read nothing of the run."""
    for table in (TURN, TRIAL):
        for part in table.parts(trial, None):
            for one in COUNTED:
                if one.table is table and isinstance(found := one.column.cell(part), int):
                    yield one.key, found
