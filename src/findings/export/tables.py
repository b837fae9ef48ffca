"""The exported tables: which columns each has, what they mean, and why a cell can be empty.

Every table has `run_id` and the keys of the tables above it, so that any two can be joined. A cell that can be empty
for more than one reason has a column `<name>_missing` beside it that says which; if there is only one possible reason,
the codebook names it. Statistics packages get a separate missing-value code for each reason (`MISSING`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ...records.base import SEVERITIES
from ...records.run import Isolation
from ...schemas import CODES, ClaimType, ClosedAnswer, Confidence, CostClass, TrialOutcome, TurnOutcome
from ..analysis.read_run import DECIDED, LABELS, NOT_RECORDED, OUTCOMES
from ..analysis.trial_row import SCORES

Kind = Literal["text", "category", "reason", "integer", "number", "flag"]
Cell = str | int | float | bool | None
Row = dict[str, Cell]
JOINED = "; "
"""Separates the entries of a cell that lists several."""


@dataclass(frozen=True)
class Missing:
    """A reason why a cell is empty, and its code in packages that have codes for missing values."""

    name: str
    stata: str
    """The letter of an extended missing value: a is .a."""
    spss: int
    meaning: str


_REASONS = {
    "refused": "the target declined every question",
    "blocked": "the provider's content filter stopped a reply",
    "truncated": "a reply was cut off at the token limit",
    "empty": "a reply contained no text",
    "failed": "a call to the target still failed after all retries",
    "judge_failure": "a judge gave no usable answer",
    "questioner_failure": "the questions could not be reworded, so none was asked",
    "tampered": "a reply addressed or instructed the judge, so it was not scored",
    "nothing_to_check": "the trial was scored, but contained nothing to compute this score from",
    "not_verifiable": "the claim cannot be checked, so no judge was asked",
    "unresolved": "the judges disagreed and the tie was not resolved",
    "closed_question": "a closed question, which gets no study code",
    "open_question": "not a closed question, so there is no yes or no",
    "incomplete_data": "the closed question was not answered, or the answer was not judged",
    "not_stated": "the provider's replies did not name a model",
    "not_set": "left to the model's default",
    "not_read": "there was no reply to read, or the extractor failed on it",
    "not_of_the_study": "a question group of this project, which has no number in the published study",
    "open_tie": "the verifiers are tied, and no model of a third family was there to settle it: open for a person",
    "not_marked": "no reply of the trial is marked, so there is nothing to leave out",
    "unread_without": "a judge failed on a reply without its marked passages",
    "one_set_of_points": "the study code already goes by our own points",
    "unpriced": "no amount can be defended for the error, so it is only counted",
    "no_single_amount": "the claim states no single amount of its own to compute with",
    "none_needed": "the formula needs no amount from the claim",
}
MISSING: dict[str, Missing] = {
    name: Missing(name, chr(ord("a") + place), -1 - place, meaning)
    for place, (name, meaning) in enumerate(_REASONS.items())
}
"""The order decides the codes, so new reasons go at the end."""
_NO_SCORE = (*(outcome for outcome in OUTCOMES if outcome != "scored"), "nothing_to_check")


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    meaning: str
    values: tuple[str, ...] = ()
    """All values of a category."""
    absent: str | None = None
    """Why the cell may be empty: in words for text, a name of `MISSING` for every other kind."""
    reasons: tuple[str, ...] = ()
    """Names of `MISSING`, if there are several possible reasons; the column beside it says which."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The reasons that have a missing-value code in this column."""
        if self.kind in ("text", "reason"):
            return ()
        return tuple(MISSING[name] for name in (*self.reasons, *filter(None, [self.absent])))

    def why_empty(self, row: Mapping[str, Cell]) -> Missing:
        """Why a cell of this column is empty; not for text."""
        name = row[f"{self.name}_missing"] if self.reasons else self.absent
        return MISSING[str(name)]


@dataclass(frozen=True)
class Table:
    name: str
    meaning: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...]


def _text(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "text", meaning, absent=absent)


def _category(name: str, meaning: str, values: Sequence[str], absent: str | None = None) -> Column:
    return Column(name, "category", meaning, tuple(values), absent)


def _integer(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "integer", meaning, absent=absent)


def _flag(name: str, meaning: str, absent: str | None = None) -> Column:
    return Column(name, "flag", meaning, absent=absent)


def _with_reason(column: Column) -> tuple[Column, Column]:
    """A column that may be empty for several reasons, and the one that says which."""
    meaning = f"Why {column.name} is empty."
    return column, Column(f"{column.name}_missing", "reason", meaning, column.reasons, f"{column.name} has a value")


def _scores(source: str) -> Iterator[Column]:
    meanings = {
        "accuracy": "Supported / (supported + contradicted) claims",
        "completeness": "Required points made / points required",
        "safety_risk": "1 - the product over contradicted claims of (1 - severity weight); higher is worse",
        "calibration": "1 - the mean squared difference between stated confidence and truth",
    }
    for name, meaning in meanings.items():
        yield from _with_reason(Column(name, "number", f"{meaning}, {source}; 0 to 1", reasons=_NO_SCORE))


def _scores_without() -> Iterator[Column]:
    reasons = (*_NO_SCORE, "not_marked", "unread_without")
    for name in SCORES:
        meaning = f"{name}, if the marked passages had not been written; 0 to 1"
        yield from _with_reason(Column(f"{name}_unmarked", "number", meaning, reasons=reasons))


_RUN_ID = _text("run_id", "The run, by the name of its folder")
_TRIAL_ID = _text("trial_id", "The trial: scenario (@variant), target and repetition")
_OF_TRIAL = (
    _RUN_ID,
    _TRIAL_ID,
    _text("scenario_id", "The scenario"),
    _text("variant", "The variant of the scenario", "the scenario has no variants"),
    _text("target", "The model under test, provider:model as the user wrote it"),
    _integer("repetition", "Which repeat: 1, 2, ..."),
)
_TURN_ID = _text("turn_id", "The turn of the script")
_JUDGE = _text("judge", "judge_1, judge_2, ...")
_JUDGE_MODEL = _text("judge_model", "The judge's model")

RUN = Table(
    "run",
    "One row: the run, its plan and its settings.",
    (
        _RUN_ID,
        _text("created", "When the run started, UTC"),
        _text("software_version", "Version of medicare-eval", "not recorded"),
        _text("python_version", "Version of Python", "not recorded"),
        _text("plan_sha256", "Fingerprint of the whole plan"),
        _text("results_head", "Last hash of the exported results; the seal of a complete run has the same value"),
        _flag("sealed", "Whether the run was complete and sealed"),
        _integer("trials_planned", "Trials in the plan"),
        _integer("trials_here", "Trials in these tables"),
        _integer("plan_year", "Medicare plan year of the answer keys"),
        _text("seed", "The run's seed; as text, because it can be too large for some packages to store exactly"),
        _integer("repeats", "Trials per scenario and target"),
        _integer("judge_repeats", "How often each verifier judged the sampled trials again"),
        Column("judge_sample", "number", "Share of trials that are judged again"),
        _text("scenarios", "Scenarios (@variants), in plan order"),
        _text("targets", "Models under test"),
        _text("verifiers", "The model of each verifier: judge_1, judge_2, ..."),
        _text("extractor", "The model that splits replies into claims"),
        _text("scorer", "The model that looks for refusals, referrals, hedges and fabricated specifics"),
        _text("adjudicator", "The model that resolves ties", "none: ties stay open for a person"),
        _category("isolation", "How many claims a verifier sees in one call: see --isolation", get_args(Isolation)),
        Column("audit_sample", "number", "Share of replies verified both one claim per call and in shared calls"),
        _integer("background_facts", "Facts of the shared library that verifiers could be shown"),
        _text("questioner", "The model that rewords questions", "no model reworded the questions"),
        Column("target_temperature", "number", "Temperature requested from the targets", absent="not_set"),
        _integer("target_max_tokens", "Token limit of a target's reply"),
        Column("judge_temperature", "number", "Temperature requested from the judges", absent="not_set"),
        _integer("judge_max_tokens", "Token limit of a judge's answer"),
        _text("wording_title", "Title of the file that replaced our question wording", "our own wording"),
        _text("wording_sha256", "Hash of that file", "our own wording"),
        _text("expired", "Answer keys that were out of date and that the user allowed", "none"),
        _flag("coming", "Whether the plan year had not begun when the run was planned"),
        _integer("points_left_out", "Points of questions left out because the year's figures are not known"),
        _flag("offline_judge", "Whether the rule-based judge took part; do not report such scores as results"),
        _flag("fake_target", "Whether a target returns canned text instead of calling a model"),
        _text("transcripts_of", "The earlier run whose transcripts were judged again", "this run asked the targets"),
        _text("registration_sha256", "Hash of the pre-registration", "the run was not pre-registered"),
        _text("primary_outcome", "The primary outcome as pre-registered", "the run was not pre-registered"),
        _text("deviations", "How the plan differs from the pre-registration", "no difference, or not pre-registered"),
    ),
    ("run_id",),
)

TRIAL = Table(
    "trial",
    "One row per trial: one scenario asked of one target once.",
    (
        *_OF_TRIAL,
        _text("provider", "The provider of the target"),
        _text("model", "The target's name without the provider"),
        _text("family", "The target's model family; a judge is never from the same family"),
        _text("api_id", "The model id sent to the provider"),
        _text("served_models", "Every model id that answered", "no reply named a model"),
        _flag("served_as_requested", "Whether each of these is the id sent, or a dated version of it", "not_stated"),
        _text("fingerprints", "System fingerprints reported by the provider", "none reported"),
        _text("not_applied", "Requested parameters that the model does not accept", "all were applied"),
        _category("outcome", "What happened to the trial; only scored trials have scores", get_args(TrialOutcome)),
        *_scores("from the final verdicts"),
        _integer("factual_claims", "Factual claims with a final label"),
        _integer("key_decided", "Of these, SUPPORTED or CONTRADICTED; accuracy speaks of what the key decided only"),
        _integer("claims", "Claims found in the replies"),
        _integer("claims_supported", "Of these, final label SUPPORTED"),
        _integer("claims_contradicted", "Of these, final label CONTRADICTED"),
        _integer("claims_not_in_key", "Of these, final label NOT_IN_KEY"),
        _integer("claims_unresolved", "Of these, without a final label because judges disagreed"),
        _integer("rejected_claims", "Claims rejected: quote not found, or the claim says more than the quote"),
        _text("missing_required_points", "Required points that were not made", "none, or the trial was not scored"),
        _text("error_categories", "Kinds of error found", "none, or the trial was not scored"),
        _flag("refusal", "Whether any turn was declined"),
        _flag("hallucinated_specifics", "Whether a specific was stated that cannot be known without a lookup"),
        _flag("needs_manual_review", "Whether a person should look at the trial"),
        _text(
            "review_reasons",
            f"Why it needs review, as recorded in the result ('{NOT_RECORDED}' in runs of that release)",
            "it needs no review",
        ),
        _text("review_details", "The same, one sentence per reason with its numbers", "it needs no review"),
        *_with_reason(
            Column(
                "disagreement",
                "number",
                "Share of judged claims on which the verifiers did not all agree; 0 to 1",
                reasons=_NO_SCORE,
            )
        ),
        _integer("marked_replies", "Replies with passages that speak to those who check them, or that hide something"),
        *_scores_without(),
        _integer("severity_disagreements", "Claims judged wrong by all, but with different severities"),
        _integer("judge_failures", "Times a judge gave no usable answer"),
        _text("rubric_version", "The rubric used for scoring"),
        _text("scenario_sha256", "Hash of the scenario file"),
        _text("rubric_sha256", "Hash of the rubric file"),
    ),
    ("run_id", "trial_id"),
)

JUDGE = Table(
    "judge",
    "One row per trial and verifier: the scores according to that verifier alone.",
    (*_OF_TRIAL, _JUDGE, _JUDGE_MODEL, *_scores("from this verifier's verdicts alone")),
    ("run_id", "trial_id", "judge"),
)

TURN = Table(
    "turn",
    "One row per turn of a trial, whether it was asked or not.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _integer("position", "Its place in the conversation: 1, 2, ..."),
        _text("question_group", "The question group it belongs to", "it is in no group"),
        _category("outcome", "What happened to the turn", get_args(TurnOutcome)),
        _text("user_message", "The question, as it was asked or would have been"),
        _text("reply", "What the target wrote, verbatim", "it wrote nothing; see outcome"),
        _integer("reply_characters", "Length of the reply"),
        _text("detail", "Why there is no answer", "there is an answer"),
        _text("served_model", "The model id that answered", "no reply, or it named no model"),
        _category(
            "read_how",
            "How the reply was evaluated: by the judge models, by a fixed rule (stock refusals and very short "
            "replies), or not at all (it addressed the judge)",
            ("judges", "rule", "tampered"),
            "not_read",
        ),
        _text(
            "read_why", "Reason for the special handling in read_how (empty if the reply was judged normally)",
            "judged normally",
        ),
        _integer("sentences", "Sentences of the reply with factual content", "not_read"),
        _integer("sentences_covered_first", "Of these, covered by the extractor's first answer", "not_read"),
        _integer("sentences_covered", "Of these, covered by the final list of claims", "not_read"),
        _integer("verbatim", "Claims that are clauses of sentences which the extractor left out", "not_read"),
        _integer("marked", "Passages that speak to those who check the reply, or that hide something", "not_read"),
        _text("marked_why", "What is wrong with each of them", "none is marked"),
        _category(
            "verified",
            "How its claims were verified: several per call, one per call, both ways (audit sample), or not at all",
            ("together", "each_claim", "both_ways", "none"),
            "not_read",
        ),
        _integer("typographic_quotes", "Quotes found only after normalizing quotes, dashes and spaces", "not_read"),
        _integer("claims", "Claims found in the reply"),
        _integer("rejected_claims", "Claims rejected"),
        _integer("refusals", "Passages that decline to answer"),
        _integer("referrals", "Passages that refer the user elsewhere"),
        _integer("hedges", "Passages that hedge"),
        _integer("fabricated_specifics", "Specifics that cannot be known without a lookup"),
    ),
    ("run_id", "trial_id", "turn_id"),
)  # fmt: skip

CLAIM = Table(
    "claim",
    "One row per claim found in a reply, with its final label.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _text("claim_id", "The claim; unique within the trial"),
        _text("claim", "What is claimed, in the extractor's words"),
        _text("quotes", "The target's own words, verbatim, joined by ' … '"),
        _text("spans", "Where these are in the reply: start-end, in characters"),
        _category("quote_match", "How the quotes were found", ("exact", "typographic")),
        _category("type", "The kind of claim", get_args(ClaimType)),
        _category("confidence", "How certain it sounds", get_args(Confidence)),
        _flag("verifiable", "Whether it was given to the judges"),
        _flag("verbatim", "Whether it is a clause of a sentence that the extractor left out, in its own words"),
        *_with_reason(
            Column(
                "label",
                "category",
                "The final label against the answer key",
                LABELS,
                reasons=("not_verifiable", "unresolved", "open_tie"),
            )
        ),
        _text("evidence", "Facts (F...) and disallowed claims (D1, ...) of the key cited for the label", "none cited"),
        _category("severity", "How harmful the error is; none if there is no error", SEVERITIES, "not_verifiable"),
        _flag("severity_split", "Whether judges gave different severities; the highest counts", "not_verifiable"),
        _category("decided_by", "How the label was decided", DECIDED, "not_verifiable"),
        _text("labels_given", "The labels the judges gave", "no judge gave one"),
    ),
    ("run_id", "trial_id", "claim_id"),
)

VERDICT = Table(
    "verdict",
    "One row per claim, verifier and time it was asked, including times it gave no verdict.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _text("claim_id", "The claim"),
        _JUDGE,
        _JUDGE_MODEL,
        _category(
            "asked",
            "alone_or_together: the verdict that counts, or repeats of it; shared_call: on the audit sample, in a call "
            "with other claims, to measure the difference",
            ("alone_or_together", "shared_call"),
        ),
        _integer("repeat", "0: the verdict that counts; 1, 2, ...: asked again to measure the judge's noise"),
        _category("label", "The verifier's label", LABELS, "judge_failure"),
        _text("evidence", "What it cites from the answer key", "nothing"),
        _category("severity", "How harmful it considers the error", SEVERITIES, "judge_failure"),
        _text("notes", "Its reasons, verbatim", "it gave none"),
    ),
    ("run_id", "trial_id", "claim_id", "judge", "asked", "repeat"),
)

QUESTION = Table(
    "question",
    "One row per question group of a trial, coded as in the published study.",
    (
        *_OF_TRIAL,
        _text("question_group", "The question group; the turn's id if it is in no group"),
        _integer("study_group", "Its number in the published study", "not_of_the_study"),
        _text("topic", "The topic", "not recorded"),
        _text("turn_ids", "The turns in which it was asked"),
        _flag("lookup_dependent", "Whether the answer depends on a plan, doctor or place that must be looked up"),
        *_with_reason(Column("code", "category", "The study code", CODES, reasons=("closed_question",))),
        *_with_reason(
            Column(
                "answer",
                "category",
                "The answer to a closed question",
                get_args(ClosedAnswer),
                reasons=("open_question", "incomplete_data"),
            )
        ),
        _text("reason", "Why it got this code"),
        _text("points_met", "Required points that were made", "none"),
        _text("points_missed", "Required points that were not made", "none"),
        _text("partial_points_met", "Points made that are substantive but never enough on their own", "none"),
        _text("wrong", "Claims wrong enough to make the answer incorrect", "none"),
        _text("minor", "Claims that are wrong, but not enough to make the answer incorrect", "none"),
        _text("fabricated", "Specifics, in the target's words, that cannot be known without a lookup", "none"),
        _category("own_code", "The code by our own points, where code goes by the study's", CODES, "one_set_of_points"),
        _text("own_points_met", "Our own points that were made", "none, or own_code is empty"),
        _text("own_points_missed", "Our own points that were not made", "none, or own_code is empty"),
    ),
    ("run_id", "trial_id", "question_group"),
)

DOLLAR = Table(
    "dollar",
    "One row per error that has a cost, and number of years. Never add amounts of different classes or scenarios.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _text("claim_id", "The wrong claim"),
        _text("fact_id", "The fact of the key that it contradicts"),
        _text("library_fact", "The same fact in the library", "it is written in the scenario itself"),
        _category("cost_class", "Whether the dollars follow from rules, may come, or are unknown", get_args(CostClass)),
        _category("severity", "How harmful the error is", SEVERITIES),
        _text("formula", "What it costs, in numbers; years is the column of that name", "the class is unpriced"),
        *_with_reason(
            Column(
                "stated",
                "number",
                "The dollar amount that the claim states",
                reasons=("unpriced", "no_single_amount", "none_needed"),
            )
        ),
        _integer("years", "For how many years"),
        *_with_reason(
            Column("dollars", "number", "What the error could cost", reasons=("unpriced", "no_single_amount"))
        ),
    ),
    ("run_id", "trial_id", "claim_id", "fact_id", "years"),
)

TABLES = (RUN, TRIAL, JUDGE, TURN, CLAIM, VERDICT, QUESTION, DOLLAR)
TEXT_CUT = _flag("text_cut", "Only in SPSS files: whether a text of this row was too long and was cut")
