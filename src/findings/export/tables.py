"""The exported tables: which columns each has, and what they mean.

Every table has `run_id` and the keys of the tables above it, so that any two can be joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from ...records.base import SEVERITIES
from ...records.citation import CITATION_OUTCOMES, HostClass
from ...records.run import Isolation
from ...records.target import KIND_NAMES
from ...schemas import CODES, ClaimType, ClosedAnswer, Confidence, CostClass, TrialOutcome, TurnOutcome
from ...scoring.definitions import CODE_HEADINGS, MEASURES, SCORES
from ..analysis.baseline import MODES
from ..analysis.missing import NOT_CODED
from ..analysis.read_run import DECIDED, LABELS, NOT_RECORDED, OUTCOMES
from .columns import JOINED, MISSING, Cell, Column, Kind, Row, Table, category, flag, integer, text, with_reason

__all__ = [
    "CLAIM", "COUNSELOR", "DOLLAR", "JOINED", "JUDGE", "MISSING", "QUESTION", "RUN", "TABLES", "TEXTS", "TEXT_CUT",
    "TRIAL", "TURN", "VERDICT", "Cell", "Column", "Kind", "Row", "Table",
]  # fmt: skip
_NO_SCORE = (*(outcome for outcome in OUTCOMES if outcome != "scored"), "nothing_to_check", "unresolved")
_NOT_COUNTED = (
    "closed_question", "refused", "blocked", "truncated", "empty", "failed", "not_asked", "judge_failure",
    "questioner_failure", "tampered", "unresolved",
)  # fmt: skip
_LEVELS = tuple(code for code in CODES if code != NOT_CODED)


def _scores(source: str) -> Iterator[Column]:
    for one in (MEASURES[name] for name in SCORES):
        meaning = f"{one.formula.capitalize()}, {source}; 0 to 1, {one.better} is better"
        yield from with_reason(Column(one.name, "number", meaning, reasons=_NO_SCORE))


def _scores_without() -> Iterator[Column]:
    reasons = (*_NO_SCORE, "not_marked", "unread_without")
    for name in SCORES:
        meaning = f"{MEASURES[name].heading.capitalize()}, if the marked passages had not been written; 0 to 1"
        yield from with_reason(Column(f"{name}_unmarked", "number", meaning, reasons=reasons))


_RUN_ID = text("run_id", "The run, by the name of its folder")
_TRIAL_ID = text("trial_id", "The trial: scenario (@variant), target and repetition")
_OF_TRIAL = (
    _RUN_ID,
    _TRIAL_ID,
    text("scenario_id", "The scenario"),
    text("variant", "The variant of the scenario", "the scenario has no variants"),
    text("target", "The model under test, provider:model as the user wrote it"),
    integer("repetition", "Which repeat: 1, 2, ..."),
)
_TURN_ID = text("turn_id", "The turn of the script")
_JUDGE = text("judge", "judge_1, judge_2, ...")
_JUDGE_MODEL = text("judge_model", "The judge's model")

RUN = Table(
    "run",
    "One row: the run, its plan and its settings.",
    (
        _RUN_ID,
        text("created", "When the run started, UTC"),
        text("software_version", "Version of medicare-eval", "not recorded"),
        text("python_version", "Version of Python", "not recorded"),
        text("plan_sha256", "Fingerprint of the whole plan"),
        text("results_head", "Last hash of the exported results; the seal of a complete run has the same value"),
        flag("sealed", "Whether the run was complete and sealed"),
        integer("trials_planned", "Trials in the plan"),
        integer("trials_here", "Trials in these tables"),
        integer("plan_year", "Medicare plan year of the answer keys"),
        text("seed", "The run's seed; as text, because it can be too large for some packages to store exactly"),
        integer("repeats", "Trials per scenario and target"),
        integer("judge_repeats", "How often each verifier judged the sampled trials again"),
        Column("judge_sample", "number", "Share of trials that are judged again"),
        text("scenarios", "Scenarios (@variants), in plan order"),
        text("targets", "Models under test"),
        text("verifiers", "The model of each verifier: judge_1, judge_2, ..."),
        text("extractor", "The model that splits replies into claims"),
        text("scorer", "The model that looks for refusals, referrals, hedges and fabricated specifics"),
        text("adjudicator", "The model that resolves ties", "none: ties stay open for a person"),
        category("isolation", "How many claims a verifier sees in one call: see --isolation", get_args(Isolation)),
        Column("audit_sample", "number", "Share of replies verified both one claim per call and in shared calls"),
        integer("background_facts", "Facts of the shared library that verifiers could be shown"),
        text("questioner", "The model that rewords questions", "no model reworded the questions"),
        Column("target_temperature", "number", "Temperature requested from the targets", absent="not_set"),
        integer("target_max_tokens", "Token limit of a target's reply"),
        Column("judge_temperature", "number", "Temperature requested from the judges", absent="not_set"),
        integer("judge_max_tokens", "Token limit of a judge's answer"),
        text("wording_title", "Title of the file that replaced our question wording", "our own wording"),
        text("wording_sha256", "Hash of that file", "our own wording"),
        text("expired", "Answer keys that were out of date and that the user allowed", "none"),
        flag("coming", "Whether the plan year had not begun when the run was planned"),
        integer("points_left_out", "Points of questions left out because the year's figures are not known"),
        flag("offline_judge", "Whether the rule-based judge took part; do not report such scores as results"),
        flag("fake_target", "Whether a target returns canned text instead of calling a model"),
        text("transcripts_of", "The earlier run whose transcripts were judged again", "this run asked the targets"),
        text("registration_sha256", "Hash of the pre-registration", "the run was not pre-registered"),
        text("primary_outcome", "The primary outcome as pre-registered", "the run was not pre-registered"),
        text("deviations", "How the plan differs from the pre-registration", "no difference, or not pre-registered"),
    ),
    ("run_id",),
)

TRIAL = Table(
    "trial",
    "One row per trial: one scenario asked of one target once.",
    (
        *_OF_TRIAL,
        text("provider", "The provider of the target"),
        text("model", "The target's name without the provider"),
        text("family", "The target's model family; a judge is never from the same family"),
        text("api_id", "The model id sent to the provider"),
        text("served_models", "Every model id that answered", "no reply named a model"),
        flag("served_as_requested", "Whether each of these is the id sent, or a dated version of it", "not_stated"),
        text("fingerprints", "System fingerprints reported by the provider", "none reported"),
        text("not_applied", "Requested parameters that the model does not accept", "all were applied"),
        category("target_kind", "What the target is; kinds are never pooled", tuple(KIND_NAMES)),
        integer("searches", "Web searches, as they are billed"),
        integer("citations", "Citations of its replies; one that backs two claims counts twice"),
        category("outcome", "What happened to the trial; only scored trials have scores", get_args(TrialOutcome)),
        *_scores("from the final verdicts"),
        integer("factual_claims", "Factual claims with a final label"),
        integer("key_decided", "Of these, SUPPORTED or CONTRADICTED; accuracy speaks of what the key decided only"),
        integer("claims", "Claims found in the replies"),
        integer("claims_supported", "Of these, final label SUPPORTED"),
        integer("claims_contradicted", "Of these, final label CONTRADICTED"),
        integer("claims_not_in_key", "Of these, final label NOT_IN_KEY"),
        integer("claims_unresolved", "Of these, without a final label because judges disagreed"),
        integer("rejected_claims", "Claims rejected: quote not found, or the claim says more than the quote"),
        text("missing_required_points", "Required points that were not made", "none, or the trial was not scored"),
        text("error_categories", "Kinds of error found", "none, or the trial was not scored"),
        flag("refusal", "Whether any turn was declined"),
        flag("hallucinated_specifics", "Whether a specific was stated that cannot be known without a lookup"),
        flag("needs_manual_review", "Whether a person should look at the trial"),
        text(
            "review_reasons",
            f"Why it needs review, as recorded in the result ('{NOT_RECORDED}' in runs of that release)",
            "it needs no review",
        ),
        text("review_details", "The same, one sentence per reason with its numbers", "it needs no review"),
        *with_reason(
            Column(
                "disagreement",
                "number",
                "Share of judged claims on which the verifiers did not all agree; 0 to 1",
                reasons=_NO_SCORE,
            )
        ),
        integer("marked_replies", "Replies with passages that speak to those who check them, or that hide something"),
        *_scores_without(),
        integer("severity_disagreements", "Claims judged wrong by all, but with different severities"),
        integer("judge_failures", "Times a judge gave no usable answer"),
        text("rubric_version", "The rubric used for scoring"),
        text("scenario_sha256", "Hash of the scenario file"),
        text("rubric_sha256", "Hash of the rubric file"),
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
        integer("position", "Its place in the conversation: 1, 2, ..."),
        text("question_group", "The question group it belongs to", "it is in no group"),
        category("outcome", "What happened to the turn", get_args(TurnOutcome)),
        text("user_message", "The question, as it was asked or would have been"),
        text("reply", "What the target wrote, verbatim", "it wrote nothing; see outcome"),
        integer("reply_characters", "Length of the reply"),
        text("detail", "Why there is no answer", "there is an answer"),
        text("served_model", "The model id that answered", "no reply, or it named no model"),
        category(
            "read_how",
            "How the reply was evaluated: by the judge models, by a fixed rule (stock refusals and very short "
            "replies), or not at all (it addressed the judge)",
            ("judges", "rule", "tampered"),
            "not_read",
        ),
        text(
            "read_why", "Reason for the special handling in read_how (empty if the reply was judged normally)",
            "judged normally",
        ),
        integer("sentences", "Sentences of the reply with factual content", "not_read"),
        integer("sentences_covered_first", "Of these, covered by the extractor's first answer", "not_read"),
        integer("sentences_covered", "Of these, covered by the final list of claims", "not_read"),
        integer("verbatim", "Claims that are clauses of sentences which the extractor left out", "not_read"),
        integer("marked", "Passages that speak to those who check the reply, or that hide something", "not_read"),
        text("marked_why", "What is wrong with each of them", "none is marked"),
        category(
            "verified",
            "How its claims were verified: several per call, one per call, both ways (audit sample), or not at all",
            ("together", "each_claim", "both_ways", "none"),
            "not_read",
        ),
        integer("typographic_quotes", "Quotes found only after normalizing quotes, dashes and spaces", "not_read"),
        integer("claims", "Claims found in the reply"),
        integer("rejected_claims", "Claims rejected"),
        integer("refusals", "Passages that decline to answer"),
        integer("referrals", "Passages that refer the user elsewhere"),
        integer("hedges", "Passages that hedge"),
        integer("fabricated_specifics", "Specifics that cannot be known without a lookup"),
    ),
    ("run_id", "trial_id", "turn_id"),
)  # fmt: skip

CLAIM = Table(
    "claim",
    "One row per claim found in a reply, with its final label.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        text("claim_id", "The claim; unique within the trial"),
        text("claim", "What is claimed, in the extractor's words"),
        text("quotes", "The target's own words, verbatim, joined by ' … '"),
        text("spans", "Where these are in the reply: start-end, in characters"),
        category("quote_match", "How the quotes were found", ("exact", "typographic")),
        category("type", "The kind of claim", get_args(ClaimType)),
        category("confidence", "How certain it sounds", get_args(Confidence)),
        flag("verifiable", "Whether it was given to the judges"),
        flag("verbatim", "Whether it is a clause of a sentence that the extractor left out, in its own words"),
        *with_reason(
            Column(
                "label",
                "category",
                "The final label against the answer key",
                LABELS,
                reasons=("not_verifiable", "unresolved", "open_tie"),
            )
        ),
        text("evidence", "Facts (F...) and disallowed claims (D1, ...) of the key cited for the label", "none cited"),
        category("severity", "How harmful the error is; none if there is no error", SEVERITIES, "not_verifiable"),
        flag("severity_split", "Whether judges gave different severities; the highest counts", "not_verifiable"),
        category("decided_by", "How the label was decided", DECIDED, "not_verifiable"),
        text("labels_given", "The labels the judges gave", "no judge gave one"),
    ),
    ("run_id", "trial_id", "claim_id"),
)

VERDICT = Table(
    "verdict",
    "One row per claim, verifier and time it was asked, including times it gave no verdict.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        text("claim_id", "The claim"),
        _JUDGE,
        _JUDGE_MODEL,
        category(
            "asked",
            "alone_or_together: the verdict that counts, or repeats of it; shared_call: on the audit sample, in a call "
            "with other claims, to measure the difference",
            ("alone_or_together", "shared_call"),
        ),
        integer("repeat", "0: the verdict that counts; 1, 2, ...: asked again to measure the judge's noise"),
        category("label", "The verifier's label", LABELS, "judge_failure"),
        text("evidence", "What it cites from the answer key", "nothing"),
        category("severity", "How harmful it considers the error", SEVERITIES, "judge_failure"),
        text("notes", "Its reasons, verbatim", "it gave none"),
    ),
    ("run_id", "trial_id", "claim_id", "judge", "asked", "repeat"),
)

CITATION = Table(
    "citation",
    "One row per citation of a reply; one that backs several claims has a row for each.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        integer("position", "Its place among the citations of the trial: 1, 2, ..."),
        text("claim_id", "The claim that it backs", "it backs no claim"),
        text("url", "The address, as it was given"),
        category("where", "Whether the provider attached it, or it is in the text", ("annotation", "text")),
        category("host_class", "Whose address it is, by its host name", get_args(HostClass)),
        category("citation_outcome", "What checking it found", CITATION_OUTCOMES),
        text("page_sha256", "Hash of the page in the snapshot", "the page is not in the snapshot"),
        text("why", "The reason for the outcome"),
    ),
    ("run_id", "trial_id", "position"),
)

QUESTION = Table(
    "question",
    "One row per question group of a trial, coded as in the published study.",
    (
        *_OF_TRIAL,
        text("question_group", "The question group; the turn's id if it is in no group"),
        integer("study_group", "Its number in the published study", "not_of_the_study"),
        text("topic", "The topic", "not recorded"),
        text("turn_ids", "The turns in which it was asked"),
        flag("lookup_dependent", "Whether the answer depends on a plan, doctor or place that must be looked up"),
        *with_reason(Column("code", "category", "The study code", CODES, reasons=("closed_question",))),
        *with_reason(
            Column(
                "counted_code",
                "category",
                "The code as it counts in estimates: a reply that conveys nothing is not_substantive, and what is "
                "missing is left out",
                _LEVELS,
                reasons=_NOT_COUNTED,
            )
        ),
        flag("compared", "Whether it is compared like for like with counselors' answers; see the table counselor"),
        *with_reason(
            Column(
                "answer",
                "category",
                "The answer to a closed question",
                get_args(ClosedAnswer),
                reasons=("open_question", "incomplete_data"),
            )
        ),
        text("reason", "Why it got this code"),
        text("points_met", "Required points that were made", "none"),
        text("points_missed", "Required points that were not made", "none"),
        text("partial_points_met", "Points made that are substantive but never enough on their own", "none"),
        text("wrong", "Claims wrong enough to make the answer incorrect", "none"),
        text("minor", "Claims that are wrong, but not enough to make the answer incorrect", "none"),
        text("fabricated", "Specifics, in the target's words, that cannot be known without a lookup", "none"),
        text("looked_up", "Such specifics that have a source, or that a person with look-up tools stated", "none"),
        integer("looked_up_unchecked", "Of these, how many nobody has checked"),
        category("own_code", "The code by our own points, where code goes by the study's", CODES, "one_set_of_points"),
        text("own_points_met", "Our own points that were made", "none, or own_code is empty"),
        text("own_points_missed", "Our own points that were not made", "none, or own_code is empty"),
    ),
    ("run_id", "trial_id", "question_group"),
)

DOLLAR = Table(
    "dollar",
    "One row per error that has a cost, and number of years. Never add amounts of different classes or scenarios.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        text("claim_id", "The wrong claim"),
        text("fact_id", "The fact of the key that it contradicts"),
        text("library_fact", "The same fact in the library", "it is written in the scenario itself"),
        category("cost_class", "Whether the dollars follow from rules, may come, or are unknown", get_args(CostClass)),
        category("severity", "How harmful the error is", SEVERITIES),
        text("formula", "What it costs, in numbers; years is the column of that name", "the class is unpriced"),
        *with_reason(
            Column(
                "stated",
                "number",
                "The dollar amount that the claim states",
                reasons=("unpriced", "no_single_amount", "none_needed"),
            )
        ),
        integer("years", "For how many years"),
        *with_reason(
            Column("dollars", "number", "What the error could cost", reasons=("unpriced", "no_single_amount"))
        ),
    ),
    ("run_id", "trial_id", "claim_id", "fact_id", "years"),
)

COUNSELOR = Table(
    "counselor",
    "One row per question group of the published study and mode: how human counselors answered mystery shoppers.",
    (
        _RUN_ID,
        integer("study_group", "The question group's number in the published study"),
        text("topic", "The topic"),
        category("mode", "How the shop was made", MODES),
        text("scenario", "The study's scenario in which it was asked: medicare_only, dual_eligible or both"),
        integer("shops", "Shops in which it was asked; the five counts add up to it"),
        *(integer(code, f"Answers coded {heading}") for code, heading in CODE_HEADINGS.items()),
        flag("lookup_dependent", "Whether counselors could look the answer up, which a bare model cannot"),
        flag("comparable", "Whether our answers are coded by the study's points and without a lookup: like for like"),
        text("source", "Where the counts are published"),
    ),
    ("run_id", "study_group", "mode"),
)

TABLES = (RUN, TRIAL, JUDGE, TURN, CLAIM, VERDICT, CITATION, QUESTION, DOLLAR, COUNSELOR)
TEXT_CUT = flag("text_cut", "Only in CSV and SPSS files: whether a text of this row was too long and was cut")
TEXTS = "texts.jsonl"
"""The whole texts that are cut in CSV files."""
