"""A run as tidy tables: which columns there are, what they mean, and the rows that one trial makes.

Every table has `run_id` and the keys of the tables above it, so that any two can be joined. A cell that can be empty
for more than one reason has a column `<name>_missing` beside it that says which; one that can be empty for a single
reason names it in the codebook. Statistics packages get a code of its own for each reason (`MISSING`).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ...schemas import (
    CODES,
    Claim,
    ClaimType,
    ClosedAnswer,
    Confidence,
    Exchange,
    GroupRule,
    Label,
    Manifest,
    QuestionCode,
    Scores,
    Severity,
    TrialOutcome,
    TrialResult,
    TurnOutcome,
    TurnReading,
    Verdict,
)
from ...text.escape import defused, inert

SCORES = ("accuracy", "completeness", "safety_risk", "calibration")
Kind = Literal["text", "category", "reason", "integer", "number", "flag"]
Cell = str | int | float | bool | None
Row = dict[str, Cell]
JOINED = "; "
"""Between the parts of a cell that holds several."""


@dataclass(frozen=True)
class Missing:
    """A reason why a cell is empty, and what stands for it where a package knows codes of missing values."""

    name: str
    stata: str
    """The letter of an extended missing value: a is .a."""
    spss: int
    meaning: str


MISSING: dict[str, Missing] = {
    name: Missing(name, letter, -number, meaning)
    for number, (name, letter, meaning) in enumerate(
        (
            ("refused", "a", "the target declined every question"),
            ("blocked", "b", "a filter of the provider stopped a reply"),
            ("truncated", "c", "a reply was cut off at the token limit"),
            ("empty", "d", "a reply held no text"),
            ("failed", "e", "a call to the target ended in an error after all retries"),
            ("judge_failure", "f", "a judge gave no usable answer"),
            ("questioner_failure", "g", "the questions could not be reworded, so none was asked"),
            ("tampered", "h", "a reply spoke to its judges, and nobody scored it"),
            ("nothing_to_check", "i", "the trial was scored, but it gave nothing this score could be computed from"),
            ("not_verifiable", "j", "the claim is no statement that could be checked, so no judge was asked"),
            ("unresolved", "k", "the judges did not agree and nobody settled it"),
            ("closed_question", "l", "a closed question, which stands outside the study's codes"),
            ("open_question", "m", "not a closed question, so there is no yes or no"),
            ("incomplete_data", "n", "the closed question was not answered, or the answer not judged"),
            ("not_stated", "o", "the provider named no model in its replies"),
            ("not_set", "p", "the plan leaves it to the model"),
            ("not_read", "q", "there was no reply to read, or the extractor failed on it"),
            ("not_of_the_study", "r", "a question group of our own, which has no number in the study"),
        ),
        1,
    )
}
_UNSCORED = tuple(outcome for outcome in get_args(TrialOutcome) if outcome != "scored")
_NO_SCORE = (*_UNSCORED, "nothing_to_check")


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    meaning: str
    values: tuple[str, ...] = ()
    """All that can stand in a category."""
    absent: str | None = None
    """Why the cell may be empty: in words for text, a name of `MISSING` for all else."""
    reasons: tuple[str, ...] = ()
    """Names of `MISSING`, where there are several; the column beside it says which."""

    @property
    def missing(self) -> tuple[Missing, ...]:
        """The reasons for which this cell has codes."""
        if self.kind in ("text", "reason"):
            return ()
        return tuple(MISSING[name] for name in (*self.reasons, *filter(None, [self.absent])))

    def why_empty(self, row: Mapping[str, Cell]) -> Missing:
        """The reason behind an empty cell of a column that is not text."""
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
    absent = f"{column.name} is there"
    return column, Column(f"{column.name}_missing", "reason", meaning, column.reasons, absent)


def _scores(of_whom: str, reasons: Sequence[str]) -> Iterator[Column]:
    meanings = {
        "accuracy": "supported / (supported + contradicted) claims",
        "completeness": "required points met / points owed",
        "safety_risk": "1 - the product over contradicted claims of (1 - the weight of their severity); more is worse",
        "calibration": "1 - mean squared distance of stated confidence from truth",
    }
    for name, meaning in meanings.items():
        yield from _with_reason(Column(name, "number", f"{meaning}, {of_whom}; 0 to 1", reasons=tuple(reasons)))


_RUN_ID = _text("run_id", "The run, by the name of its folder")
_TRIAL_ID = _text("trial_id", "The trial: scenario (@variant), target and repetition")
_OF_TRIAL = (
    _RUN_ID,
    _TRIAL_ID,
    _text("scenario_id", "The scenario"),
    _text("variant", "Which variant of the scenario", "the scenario has none"),
    _text("target", "The model under test, provider:model as the user wrote it"),
    _integer("repetition", "1, 2, ...: which of the repeats"),
)
_TURN_ID = _text("turn_id", "The turn of the script")
_LABELS: tuple[str, ...] = get_args(Label)
_SEVERITIES: tuple[str, ...] = get_args(Severity)
_DECIDED = ("unanimous", "majority", "adjudicator", "unresolved")

RUN = Table(
    "run",
    "One row: the run, its plan and what it was carried out with.",
    (
        _RUN_ID,
        _text("created", "When the run was begun, UTC"),
        _text("software_version", "Version of this project", "not recorded"),
        _text("python_version", "Version of Python", "not recorded"),
        _text("plan_sha256", "Fingerprint of the whole plan"),
        _text(
            "results_head", "Last chain value of the results exported here; the seal of a complete run names the same"
        ),
        _flag("sealed", "Whether the run was complete and sealed"),
        _integer("trials_planned", "Trials in the plan"),
        _integer("trials_here", "Trials in these tables"),
        _integer("plan_year", "The plan year whose figures fill the keys"),
        _text("seed", "The run's seed; as text, for it may be larger than a package holds exactly"),
        _integer("repeats", "Trials of each scenario and target"),
        _integer("judge_repeats", "Times each verifier judged the sampled trials again"),
        Column("judge_sample", "number", "Share of trials that are judged again"),
        _text("scenarios", "Scenarios (@variants), in plan order"),
        _text("targets", "Models under test"),
        _text("verifiers", "The judge model of each verifier: judge_1, judge_2, ..."),
        _text("extractor", "The model that splits replies into claims"),
        _text("scorer", "The model that reads for refusals, referrals, hedges and fabricated specifics"),
        _text("adjudicator", "The model that settles ties"),
        _text("questioner", "The model that rewords questions", "questions were not reworded by a model"),
        Column("target_temperature", "number", "Temperature asked of the target", absent="not_set"),
        _integer("target_max_tokens", "Most tokens of one reply"),
        Column("judge_temperature", "number", "Temperature asked of the judges", absent="not_set"),
        _integer("judge_max_tokens", "Most tokens of one judge's answer"),
        _text("wording_title", "Whose words replaced ours", "our own wording"),
        _text("wording_sha256", "Hash of that wording file", "our own wording"),
        _text("expired", "Keys that were out of date, where the user allowed it", "none was"),
        _flag("offline_judge", "Whether a judge made of rules took part: such scores are not findings"),
        _flag("fake_target", "Whether a target gives canned texts, not the words of any model"),
        _text(
            "transcripts_of", "The earlier run whose transcripts this run judged again", "it asked the targets itself"
        ),
        _text("registration_sha256", "Hash of the frozen plan it was started with", "it was started without one"),
        _text("primary_outcome", "The primary outcome, as it was registered", "it was started without a frozen plan"),
        _text("deviations", "How its plan differs from the frozen one", "it does not, or there is none"),
    ),
    ("run_id",),
)

TRIAL = Table(
    "trial",
    "One row a trial: one scenario put to one target once.",
    (
        *_OF_TRIAL,
        _text("provider", "Who serves the target"),
        _text("model", "The target's name without the provider"),
        _text("family", "Whose model it is, for keeping judges apart from targets"),
        _text("api_id", "The id it was called by"),
        _text("served_models", "Every model id that answered", "no reply named a model"),
        _flag("served_as_requested", "Whether each of these is the id called, or a dated version of it", "not_stated"),
        _text("fingerprints", "System fingerprints the provider gave", "it gave none"),
        _text("not_applied", "Parameters asked for that the model does not take", "all were applied"),
        _category("outcome", "What became of the trial; only scored trials have scores", get_args(TrialOutcome)),
        *_scores("from the final verdicts", _NO_SCORE),
        _integer("claims", "Claims found in the replies"),
        _integer("claims_supported", "Of these, finally SUPPORTED"),
        _integer("claims_contradicted", "Of these, finally CONTRADICTED"),
        _integer("claims_not_in_key", "Of these, finally NOT_IN_KEY"),
        _integer("claims_unresolved", "Of these, left open by the judges"),
        _integer(
            "rejected_claims", "Claims of the extractor that were thrown out: no true quote, or more than the quote"
        ),
        _text("missing_required_points", "Points owed and not made", "none, or the trial was not scored"),
        _text("error_categories", "Kinds of error found", "none, or the trial was not scored"),
        _flag("refusal", "Whether any turn was declined"),
        _flag("hallucinated_specifics", "Whether a specific was stated that cannot be known without a look-up"),
        _flag("needs_manual_review", "Whether a person should look at the trial"),
        *_with_reason(
            Column(
                "disagreement",
                "number",
                "Share of judged claims on which the verifiers did not all agree; 0 to 1",
                reasons=_NO_SCORE,
            )
        ),
        _integer("severity_disagreements", "Claims agreed to be wrong, but not how gravely"),
        _integer("judge_failures", "Times a judge gave no usable answer"),
        _text("rubric_version", "The rubric the scores are by"),
        _text("scenario_sha256", "Hash of the scenario's file"),
        _text("rubric_sha256", "Hash of the rubric's file"),
    ),
    ("run_id", "trial_id"),
)

JUDGE = Table(
    "judge",
    "One row a trial and verifier: the scores by that verifier's own verdicts.",
    (
        *_OF_TRIAL,
        _text("judge", "judge_1, judge_2, ..."),
        _text("judge_model", "The model that judged"),
        *_scores("from this verifier's verdicts alone", _NO_SCORE),
    ),
    ("run_id", "trial_id", "judge"),
)

TURN = Table(
    "turn",
    "One row a turn of a trial, asked or not.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _integer("position", "1, 2, ...: its place in the conversation"),
        _text("question_group", "The study's question it belongs to", "it is in no group"),
        _category("outcome", "What became of the turn", get_args(TurnOutcome)),
        _text("user_message", "The question, as it was asked or would have been"),
        _text("reply", "What the target wrote, verbatim", "it wrote nothing; outcome says why"),
        _integer("reply_characters", "Length of the reply"),
        _text("detail", "Why there is no answer", "there is one"),
        _text("served_model", "The model id that answered", "no reply, or it named no model"),
        _category(
            "read_how",
            "Whether judges read the reply, a rule that needs none did, or nobody for it speaks to judges",
            ("judges", "rule", "tampered"),
            "not_read",
        ),
        _text("read_why", "Why it was read so", "nothing is to be said of it"),
        _integer("sentences", "Sentences of the reply with factual content", "not_read"),
        _integer(
            "sentences_covered_first", "Of these, covered by the claims of the extractor's first answer", "not_read"
        ),
        _integer("sentences_covered", "Of these, covered by claims in the end", "not_read"),
        _integer("typographic_quotes", "Quotes found only after folding quotes, dashes and spaces", "not_read"),
        _integer("claims", "Claims found in the reply"),
        _integer("rejected_claims", "Claims thrown out"),
        _integer("refusals", "Passages that decline"),
        _integer("referrals", "Passages that point elsewhere"),
        _integer("hedges", "Passages that hedge"),
        _integer("fabricated_specifics", "Specifics that cannot be known without a look-up"),
    ),
    ("run_id", "trial_id", "turn_id"),
)

CLAIM = Table(
    "claim",
    "One row a claim found in a reply, with the judges' final word on it.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _text("claim_id", "The claim; unique within the trial"),
        _text("claim", "What is claimed, in the extractor's words"),
        _text("quotes", "The target's own words for it, verbatim, joined by ' … '"),
        _text("spans", "Where they stand in the reply: start-end, in characters"),
        _category("quote_match", "How the quotes were found", ("exact", "typographic")),
        _category("type", "What kind of claim it is", get_args(ClaimType)),
        _category("confidence", "How sure it sounds", get_args(Confidence)),
        _flag("verifiable", "Whether it was put to the judges"),
        *_with_reason(
            Column(
                "label",
                "category",
                "The final label against the key",
                _LABELS,
                reasons=("not_verifiable", "unresolved"),
            )
        ),
        _text(
            "evidence", "Facts (F...) and disallowed claims (D1, ...) of the key that it was judged by", "none cited"
        ),
        _category("severity", "How grave the error is; none where there is none", _SEVERITIES, "not_verifiable"),
        _flag("severity_split", "Whether judges weighed it differently; the graver stands", "not_verifiable"),
        _category("decided_by", "How the label came about", _DECIDED, "not_verifiable"),
        _text("labels_given", "The labels the judges gave", "no judge gave one"),
    ),
    ("run_id", "trial_id", "claim_id"),
)

VERDICT = Table(
    "verdict",
    "One row a claim, verifier and time it was asked; also where it gave no verdict.",
    (
        *_OF_TRIAL,
        _TURN_ID,
        _text("claim_id", "The claim"),
        _text("judge", "judge_1, judge_2, ..."),
        _text("judge_model", "The model that judged"),
        _integer("repeat", "0: the verdict that counts; 1, 2, ...: when asked again, to measure the judge's noise"),
        _category("label", "The verifier's label", _LABELS, "judge_failure"),
        _text("evidence", "What it cites from the key", "nothing"),
        _category("severity", "How grave it finds the error", _SEVERITIES, "judge_failure"),
        _text("notes", "Its reasons, verbatim", "it gave none"),
    ),
    ("run_id", "trial_id", "claim_id", "judge", "repeat"),
)

QUESTION = Table(
    "question",
    "One row a question group of a trial, coded as the published study codes answers.",
    (
        *_OF_TRIAL,
        _text("question_group", "The question; the turn's id where it is in no group"),
        _integer("study_group", "The study's number of it", "not_of_the_study"),
        _text("topic", "What it is about", "not recorded"),
        _text("turn_ids", "The turns it was asked in"),
        _flag("lookup_dependent", "Whether the truth hangs on a plan, doctor or place that must be looked up"),
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
        _text("reason", "Why this code"),
        _text("points_met", "Points made", "none"),
        _text("points_missed", "Points owed and not made", "none"),
        _text("partial_points_met", "Points made that are substantive, and never enough", "none"),
        _text("wrong", "Claims wrong enough to count", "none"),
        _text("minor", "Claims wrong, but not enough to count", "none"),
        _text("fabricated", "Specifics, in the target's words, that cannot be known without a look-up", "none"),
    ),
    ("run_id", "trial_id", "question_group"),
)

TABLES = (RUN, TRIAL, JUDGE, TURN, CLAIM, VERDICT, QUESTION)
TEXT_CUT = _flag("text_cut", "Only in SPSS files: whether a text of this row was too long for them and is cut")


@dataclass(frozen=True)
class About:
    """What the rows of a run need to know of it."""

    run_id: str
    verifiers: dict[str, str]
    rules: dict[tuple[str, str], GroupRule]

    @classmethod
    def of(cls, manifest: Manifest) -> About:
        rules = {}
        plan = manifest.plan
        for planned in plan.scenarios:
            rubric = plan.rubrics[planned.scenario.rubric_version].rubric
            for turn in planned.scenario.scripted_turns:
                group = turn.question_group or turn.turn_id
                rules[planned.scenario.scenario_id, group] = rubric.rule(group)
        return cls(manifest.run_id, {f"judge_{n}": name for n, name in enumerate(plan.verifiers, 1)}, rules)


def run_row(manifest: Manifest, *, head: str, trials: int, sealed: bool) -> Row:
    plan, kept = manifest.plan, manifest.registration
    return {
        "run_id": manifest.run_id,
        "created": manifest.created,
        "software_version": manifest.versions.get("ai-medicare-eval"),
        "python_version": manifest.versions.get("python"),
        "plan_sha256": manifest.plan_sha256,
        "results_head": head,
        "sealed": sealed,
        "trials_planned": len(plan.scenarios) * len(plan.targets) * plan.repeats,
        "trials_here": trials,
        "plan_year": plan.plan_year,
        "seed": str(plan.seed),
        "repeats": plan.repeats,
        "judge_repeats": plan.judge_repeats,
        "judge_sample": plan.judge_sample,
        "scenarios": JOINED.join(planned.name for planned in plan.scenarios),
        "targets": JOINED.join(plan.targets),
        "verifiers": JOINED.join(plan.verifiers),
        "extractor": plan.extractor,
        "scorer": plan.scorer,
        "adjudicator": plan.adjudicator,
        "questioner": plan.questioner,
        "target_temperature": plan.target_parameters.temperature,
        "target_max_tokens": plan.target_parameters.max_tokens,
        "judge_temperature": plan.judge_parameters.temperature,
        "judge_max_tokens": plan.judge_parameters.max_tokens,
        "wording_title": plan.wording.title if plan.wording else None,
        "wording_sha256": plan.wording.sha256 if plan.wording else None,
        "expired": JOINED.join(plan.expired) or None,
        "offline_judge": any(model.startswith("offline:") for model in plan.judge_models()),
        "fake_target": any(target.startswith("fake:") for target in plan.targets),
        "transcripts_of": manifest.transcripts.run_id if manifest.transcripts else None,
        "registration_sha256": kept.sha256 if kept else None,
        "primary_outcome": kept.primary_outcome if kept else None,
        "deviations": _list(kept.deviations) if kept else None,
    }


def trial_rows(result: TrialResult, about: About) -> Iterator[tuple[Table, Row]]:
    """All that one trial adds to the tables."""
    base: Row = {
        "run_id": about.run_id,
        "trial_id": result.trial_id,
        "scenario_id": result.scenario_id,
        "variant": result.variant,
        "target": result.target.name,
        "repetition": result.repetition,
    }
    yield TRIAL, base | _trial(result)
    for judge, model in about.verifiers.items():
        own = result.scores_by_judge.get(judge)
        scores = _score_cells(own.scores if own else None, result.outcome)
        yield JUDGE, base | {"judge": judge, "judge_model": model} | scores
    yield from ((TURN, base | row) for row in _turns(result))
    yield from ((CLAIM, base | row) for row in _claims(result))
    yield from ((VERDICT, base | row) for row in _verdicts(result, about))
    yield from ((QUESTION, base | _question(code, result, about)) for code in result.study_codes)


def _list(parts: Sequence[str]) -> str | None:
    return JOINED.join(parts) or None


def why_no_score(outcome: TrialOutcome) -> str:
    """The reason behind a score that is not there."""
    return "nothing_to_check" if outcome == "scored" else outcome


def _score_cells(scores: Scores | None, outcome: TrialOutcome) -> Row:
    cells: Row = {}
    for name in SCORES:
        value: float | None = getattr(scores, name) if scores else None
        cells[name] = value
        cells[f"{name}_missing"] = why_no_score(outcome) if value is None else None
    return cells


def _trial(result: TrialResult) -> Row:
    target = result.target
    labels = Counter(claim.label for claim in result.final_claims)
    return {
        "provider": target.provider,
        "model": target.model,
        "family": target.family,
        "api_id": target.api_id,
        "served_models": _list(target.served_models),
        "served_as_requested": target.served_as_requested,
        "fingerprints": _list(target.fingerprints),
        "not_applied": _list(target.not_applied),
        "outcome": result.outcome,
        **_score_cells(result.final_scores, result.outcome),
        "claims": len(result.claims),
        "claims_supported": labels["SUPPORTED"],
        "claims_contradicted": labels["CONTRADICTED"],
        "claims_not_in_key": labels["NOT_IN_KEY"],
        "claims_unresolved": labels[None],
        "rejected_claims": len(result.rejected_claims),
        "missing_required_points": _list(result.missing_required_points),
        "error_categories": _list(result.error_categories),
        "refusal": result.flags.refusal,
        "hallucinated_specifics": result.flags.hallucinated_specifics,
        "needs_manual_review": result.needs_manual_review,
        "disagreement": result.disagreement,
        "disagreement_missing": why_no_score(result.outcome) if result.disagreement is None else None,
        "severity_disagreements": result.severity_disagreements,
        "judge_failures": len(result.judge_failures),
        "rubric_version": result.rubric_version,
        "scenario_sha256": result.fingerprints.scenario,
        "rubric_sha256": result.fingerprints.rubric,
    }


def _turns(result: TrialResult) -> Iterator[Row]:
    readings = {reading.turn_id: reading for reading in result.readings}
    claims = Counter(claim.turn_id for claim in result.claims)
    rejected = Counter(claim.turn_id for claim in result.rejected_claims)
    seen = Counter((item.turn_id, item.observation.kind) for item in result.observations)
    for position, exchange in enumerate(result.conversation, 1):
        turn_id = exchange.turn_id
        yield {
            **_exchange(exchange, position),
            **_reading(readings.get(turn_id)),
            "claims": claims[turn_id],
            "rejected_claims": rejected[turn_id],
            "refusals": seen[turn_id, "refusal"],
            "referrals": seen[turn_id, "referral"],
            "hedges": seen[turn_id, "hedge"],
            "fabricated_specifics": seen[turn_id, "fabricated_specific"],
        }


def _exchange(exchange: Exchange, position: int) -> Row:
    return {
        "turn_id": exchange.turn_id,
        "position": position,
        "question_group": exchange.question_group,
        "outcome": exchange.outcome,
        "user_message": exchange.user_message,
        "reply": exchange.reply,
        "reply_characters": len(exchange.reply or ""),
        "detail": exchange.detail,
        "served_model": exchange.served_model,
    }


def _reading(reading: TurnReading | None) -> Row:
    return {
        "read_how": reading.how if reading else None,
        "read_why": (reading.why or None) if reading else None,
        "sentences": reading.sentences if reading else None,
        "sentences_covered_first": reading.covered_first if reading else None,
        "sentences_covered": reading.covered if reading else None,
        "typographic_quotes": reading.typographic_quotes if reading else None,
    }


def quotes_of(claim: Claim, replies: Mapping[str | None, str]) -> list[str]:
    """The target's own words for a claim."""
    reply = replies.get(claim.turn_id, "")
    return [reply[span.start : span.end] for span in claim.quote_spans]


def replies_of(result: TrialResult) -> dict[str | None, str]:
    return {exchange.turn_id: exchange.reply or "" for exchange in result.conversation}


def _claims(result: TrialResult) -> Iterator[Row]:
    final = {claim.claim_id: claim for claim in result.final_claims}
    replies = replies_of(result)
    for claim in result.claims:
        word = final.get(claim.claim_id)
        missing = None
        if word is None or word.label is None:
            missing = "unresolved" if claim.verifiable else "not_verifiable"
        folded = any(span.match == "typographic" for span in claim.quote_spans)
        yield {
            "turn_id": claim.turn_id,
            "claim_id": claim.claim_id,
            "claim": claim.text,
            "quotes": " … ".join(quotes_of(claim, replies)),
            "spans": JOINED.join(f"{span.start}-{span.end}" for span in claim.quote_spans),
            "quote_match": "typographic" if folded else "exact",
            "type": claim.type,
            "confidence": claim.confidence,
            "verifiable": claim.verifiable,
            "label": word.label if word else None,
            "label_missing": missing,
            "evidence": _list(word.evidence) if word else None,
            "severity": word.severity if word else None,
            "severity_split": word.severity_split if word else None,
            "decided_by": word.decided_by if word else None,
            "labels_given": _list(word.labels_given) if word else None,
        }


def _verdicts(result: TrialResult, about: About) -> Iterator[Row]:
    turns = {claim.claim_id: claim.turn_id for claim in result.claims if claim.verifiable}
    for judge, model in about.verifiers.items():
        rounds = (result.verdicts.get(judge, ()), *result.repeat_verdicts.get(judge, ()))
        for repeat, verdicts in enumerate(rounds):
            given = {verdict.claim_id: verdict for verdict in verdicts}
            for claim_id, turn_id in turns.items():
                keys: Row = {"turn_id": turn_id, "claim_id": claim_id, "judge": judge, "judge_model": model}
                yield keys | {"repeat": repeat} | _verdict(given.get(claim_id))


def _verdict(verdict: Verdict | None) -> Row:
    return {
        "label": verdict.label if verdict else None,
        "evidence": _list(verdict.evidence) if verdict else None,
        "severity": verdict.severity if verdict else None,
        "notes": (verdict.notes or None) if verdict else None,
    }


def _question(code: QuestionCode, result: TrialResult, about: About) -> Row:
    rule = about.rules.get((result.scenario_id, code.question_group))
    closed = bool(rule and rule.closed) or code.answer is not None
    return {
        "question_group": code.question_group,
        "study_group": rule.study_group if rule else None,
        "topic": rule.topic if rule else None,
        "turn_ids": _list(code.turn_ids),
        "lookup_dependent": code.lookup_dependent,
        "code": code.code,
        "code_missing": "closed_question" if code.code is None else None,
        "answer": code.answer,
        "answer_missing": None if code.answer else "incomplete_data" if closed else "open_question",
        "reason": code.reason,
        "points_met": _list([made.point for made in code.points_met]),
        "points_missed": _list(code.points_missed),
        "partial_points_met": _list([made.point for made in code.partial_points_met]),
        "wrong": _list([backing.claim_id for backing in code.wrong]),
        "minor": _list([backing.claim_id for backing in code.minor]),
        "fabricated": _list(code.fabricated),
    }


_CODEBOOK = ("table", "column", "type", "meaning", "values", "missing", "missing_stata", "missing_spss")
_TYPES: dict[Kind, str] = {
    "text": "text",
    "category": "category",
    "reason": "reason for a missing value",
    "integer": "whole number",
    "number": "number",
    "flag": "yes or no",
}


def codebook_rows() -> Iterator[dict[str, str]]:
    """One row a column of a table."""
    for table in TABLES:
        for column in (*table.columns, TEXT_CUT):
            if column.missing:
                why = JOINED.join(f"{one.name}: {one.meaning}" for one in column.missing)
            else:
                why = f"empty: {column.absent}" if column.absent else "never"
            coded = column.kind == "category"
            values = [f"{n} = {value}" if coded else value for n, value in enumerate(column.values, 1)]
            yield {
                "table": table.name,
                "column": column.name,
                "type": _TYPES[column.kind],
                "meaning": column.meaning,
                "values": JOINED.join(values) or ("0 = no; 1 = yes" if column.kind == "flag" else ""),
                "missing": why,
                "missing_stata": JOINED.join(f".{one.stata} = {one.name}" for one in column.missing),
                "missing_spss": JOINED.join(f"{one.spss} = {one.name}" for one in column.missing),
            }


def codebook_csv() -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, _CODEBOOK, lineterminator="\n")
    writer.writeheader()
    for row in codebook_rows():
        writer.writerow({name: defused(cell) for name, cell in row.items()})
    return buffer.getvalue()


_NOTES = (
    "Tables join by `run_id`, `trial_id` and the further keys named below. A cell that holds several things joins them "
    "by `; `.",
    "**Missing values are never one blank.** Where a cell can be empty for several reasons, a column `<name>_missing` "
    "says which. In CSV the cell is then empty, in JSONL and Parquet it is null. In Stata files it holds an extended "
    "missing value (.a, .b, ...), in SPSS files a user-missing value (-1, -2, ...), both with labels.",
    "CSV: text that a spreadsheet would run as a formula has a `'` before it, and control characters are written out "
    "(`\\x1b`); line breaks stay. yes and no are `true` and `false`. JSONL and Parquet hold text verbatim.",
    "Stata (format 118, Stata 14 or newer) and SPSS: categories are numbers with value labels, yes and no are 1 and 0, "
    "and a NUL character in a text is written `␀`. SPSS holds 32,767 bytes of text in a cell; longer texts are cut "
    "there, and `text_cut` is 1 in their row. SPSS drops spaces at the end of a text. Large tables come in pieces "
    "(`verdict.dta`, `verdict.2.dta`, ...), to be appended to one another.",
)


def codebook_md() -> str:
    lines = ["# Codebook", ""]
    for note in _NOTES:
        lines += [note, ""]
    lines += ["## Missing values", "", "| reason | Stata | SPSS | meaning |", "| --- | --- | ---: | --- |"]
    lines += [f"| `{one.name}` | .{one.stata} | {one.spss} | {inert(one.meaning)} |" for one in MISSING.values()]
    by_table: dict[str, list[dict[str, str]]] = {}
    for row in codebook_rows():
        by_table.setdefault(row["table"], []).append(row)
    for table in TABLES:
        keys = ", ".join(f"`{key}`" for key in table.keys)
        lines += ["", f"## {table.name}", "", f"{table.meaning} Keys: {keys}.", ""]
        lines += ["| column | type | meaning | values | missing |", "| --- | --- | --- | --- | --- |"]
        for row in by_table[table.name]:
            cells = (inert(row[name]) for name in ("type", "meaning", "values", "missing"))
            lines.append(f"| `{row['column']}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
