"""A page of trials: one script (target, scenario, variant), some of its repetitions in order.

Each conversation is in one column. Words that a claim was taken from are underlined in the color of the claim's label
and carry its mark: S supported, C contradicted, ? not in key, O open. Beside them are the claims with the facts that
decided them and every judge's verdict with its reason; below each question its code, and the points made and missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .evidence_fields import (
    BackingFields,
    ClaimFields,
    CodeFields,
    ExchangeFields,
    FinalClaimFields,
    PointFields,
    TrialFields,
    VerdictFields,
)
from .evidence_script import Script
from .evidence_shell import LABEL_MARKS, code_mark, code_name, safe, safe_lines, score_text
from .links import claim_anchor, code_anchor, trial_anchor, turn_anchor

LABEL_NAMES = {"SUPPORTED": "supported", "CONTRADICTED": "contradicted", "NOT_IN_KEY": "not in key", None: "open"}
_WEIGHT = {"C": 3, "O": 2, "N": 1, "S": 0}
"""Where claims overlap, the heaviest gives the color and the link."""
LEGEND = (
    '<p class="legend">Underlined words became claims: <span class="S"><sup>S</sup></span> supported by the key, '
    '<span class="C"><sup>C</sup></span> contradicted, <span class="N"><sup>?</sup></span> not in the key, '
    '<span class="O"><sup>O</sup></span> open. Select a mark for the facts, sources and verdicts behind it.</p>'
)
_OBSERVED = {
    "refusal": "refusal",
    "referral": "referral",
    "hedge": "hedge",
    "fabricated_specific": "specific that it cannot know",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """How a claim is marked in its trial."""

    kind: str
    """S, C, N or O."""
    number: int
    href: str

    @property
    def text(self) -> str:
        return f"{'?' if self.kind == 'N' else self.kind}{self.number}"

    @property
    def link(self) -> str:
        return f'<a href="{self.href}">{self.text}</a>'


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    mark: Mark | None
    """None for a passage that the screen marked."""
    last: bool = True
    """Whether the claim's mark is written after it."""


def marked_text(reply: str, spans: Sequence[Span]) -> str:
    """A reply with the words of its claims underlined; spans may overlap and may reach beyond its end."""
    size = len(reply)
    kept = [span for span in spans if span.start < min(span.end, size)]
    cuts = sorted({0, size, *(span.start for span in kept), *(min(span.end, size) for span in kept)})
    parts: list[str] = []
    for start, end in pairwise(cuts):
        over = [span for span in kept if span.start <= start and span.end >= end]
        text = safe_lines(reply[start:end])
        claims = [span.mark for span in over if span.mark]
        screened = " k" if len(claims) < len(over) else ""
        if claims:
            heaviest = max(claims, key=lambda mark: (_WEIGHT[mark.kind], -mark.number))
            parts.append(f'<a class="m {heaviest.kind}{screened}" href="{heaviest.href}">{text}</a>')
        else:
            parts.append(f'<span class="k">{text}</span>' if screened else text)
        for span in kept:
            if span.mark and span.last and min(span.end, size) == end:
                parts.append(f'<sup class="{span.mark.kind}">{span.mark.link}</sup>')
    return "".join(parts)


@dataclass
class TrialPage:
    """Writes trials of one script and remembers the facts that they cite."""

    script: Script
    cited: set[str] = field(default_factory=set)

    def trial(self, trial: TrialFields) -> Iterator[str]:
        """A trial as lines of HTML."""
        yield f'<article class="trial" id="{trial_anchor(trial.repetition)}">'
        yield from _head(trial)
        marks = _marks(trial)
        coded: dict[str, list[CodeFields]] = {}
        for code in trial.study_codes:
            coded.setdefault(code.turn_ids[-1] if code.turn_ids else "", []).append(code)
        for exchange in trial.conversation:
            yield from self._turn(trial, exchange, marks)
            for code in coded.pop(exchange.turn_id, ()):
                yield from self._code(trial.repetition, code, marks)
        for codes in coded.values():
            for code in codes:
                yield from self._code(trial.repetition, code, marks)
        yield "</article>"

    def _turn(self, trial: TrialFields, exchange: ExchangeFields, marks: Mapping[str, Mark]) -> Iterator[str]:
        turn_id = exchange.turn_id
        claims = [claim for claim in trial.claims if claim.turn_id == turn_id]
        yield f'<section class="turn" id="{turn_anchor(trial.repetition, turn_id)}">'
        yield (
            f'<div class="say asked" dir="auto"><span class="who">Turn {safe(turn_id)}</span>'
            f"{safe_lines(exchange.user_message)}</div><div>"
        )
        if exchange.reply:
            reply = marked_text(exchange.reply, _spans(trial, turn_id, claims, marks))
            yield f'<div class="say reply" dir="auto">{reply}</div>'
        if exchange.outcome != "answered" or not exchange.reply:
            detail = f": {safe(exchange.detail)}" if exchange.detail else ""
            yield f'<p class="note">{safe(exchange.outcome.replace("_", " ").capitalize())}{detail}.</p>'
        yield from _noticed(trial, turn_id)
        yield '</div><div class="claims">' if claims else "</div><div>"
        finals = {claim.claim_id: claim for claim in trial.final_claims if claim.turn_id == turn_id}
        for claim in claims:
            final = finals.pop(claim.claim_id, None)
            if final:
                yield from self._claim(trial, final, marks[claim.claim_id])
        yield from _not_checked(trial, turn_id, claims)
        yield "</div></section>"

    def _claim(self, trial: TrialFields, claim: FinalClaimFields, mark: Mark) -> Iterator[str]:
        wrong = claim.label == "CONTRADICTED"
        self.cited.update(claim.evidence)
        facts = [self.script.cited(name) for name in claim.evidence]
        against = f'<span class="key">{"<br>".join(facts)}</span>' if wrong else ""
        yield (
            f'<details class="{mark.kind}"><summary><b>{mark.text}</b> {safe(claim.text)}{against}</summary>'
            f'<div id="{claim_anchor(trial.repetition, claim.claim_id)}">'
        )
        if wrong:
            yield from (f"<p>{safe(name)}: {self.script.source(name)}</p>" for name in claim.evidence)
        else:
            yield from (f"<p>{fact}</p>" for fact in facts)
        if claim.decided_by != "unanimous":
            yield f"<p>{LABEL_NAMES[claim.label].capitalize()}: {_DECIDED.get(claim.decided_by, '')}.</p>"
        yield from self._verdicts(trial, claim.claim_id)
        yield "</div></details>"

    def _verdicts(self, trial: TrialFields, claim_id: str) -> Iterator[str]:
        """What each judge said; judges that said the same share a line."""
        said: dict[str, list[str]] = {}
        for judge, verdicts in trial.verdicts.items():
            verdict = next((one for one in verdicts if one.claim_id == claim_id), None)
            text = self._verdict(verdict) if verdict else "no verdict"
            again = [
                LABEL_NAMES[one.label]
                for repeat in trial.repeat_verdicts.get(judge, ())
                for one in repeat
                if one.claim_id == claim_id
            ]
            if again:
                text += f" Asked again: {', '.join(again)}."
            said.setdefault(text, []).append(safe(judge))
        yield from (f"<p>{', '.join(judges)}: {text}</p>" for text, judges in said.items())

    def _verdict(self, verdict: VerdictFields) -> str:
        self.cited.update(verdict.evidence)
        by = f" by {safe(', '.join(verdict.evidence))}" if verdict.evidence else ""
        severity = f", {verdict.severity}" if verdict.severity != "none" else ""
        notes = f". {safe(verdict.notes)}" if verdict.notes else "."
        return f"{LABEL_NAMES[verdict.label]}{by}{severity}{notes}"

    def _code(self, repetition: int, code: CodeFields, marks: Mapping[str, Mark]) -> Iterator[str]:
        """A question's code with its reason, and the points made and missed."""
        mark = code_mark(code.code or code.answer or "–")
        name = code_name(code.code) if code.code else f"answer: {safe(code.answer or 'none')}"
        topic = self.script.topic(code.question_group) or safe(code.question_group)
        yield f'<section class="coded {mark}" id="{code_anchor(repetition, code.question_group)}">'
        yield f'<h4><span class="code">{mark}</span> {name} <span class="quiet">{topic}</span></h4>'
        yield f"<p>{safe(code.reason)}</p><ul>"
        yield from self._points("Made", code.points_met, marks)
        yield from (f"<li>Missed: {self._point(name)}</li>" for name in code.points_missed)
        yield from self._points("Made in part", code.partial_points_met, marks)
        for heading, claims in (("Wrong", code.wrong), ("Minor error", code.minor)):
            for claim in claims:
                against = f" against {safe(', '.join(claim.evidence))}" if claim.evidence else ""
                yield f"<li>{heading}: {_by([claim], marks)}{against}</li>"
        yield from (f"<li>Cannot be known: “{safe(words)}”</li>" for words in code.fabricated)
        yield "</ul>"
        if code.own:
            yield f"<p>By our own points: {code_name(code.own.code)}.</p><ul>"
            yield from self._points("Made", code.own.points_met, marks)
            yield from (f"<li>Missed: {self._point(name)}</li>" for name in code.own.points_missed)
            yield "</ul>"
        yield "</section>"

    def _points(self, heading: str, points: Sequence[PointFields], marks: Mapping[str, Mark]) -> Iterator[str]:
        for point in points:
            yield f"<li>{heading}: {self._point(point.point)} – {_by(point.claims, marks)}</li>"

    def _point(self, name: str) -> str:
        self.cited.update(name.split("|"))
        return self.script.point(name)


_DECIDED = {
    "unanimous": "the judges agree",
    "majority": "by a majority of judges",
    "adjudicator": "settled by the adjudicator",
    "unresolved": "the judges left it open",
}


def _marks(trial: TrialFields) -> dict[str, Mark]:
    """A mark for each claim that has a final record, numbered within its turn."""
    labels = {claim.claim_id: claim.label for claim in trial.final_claims}
    numbers: dict[str | None, int] = {}
    marks = {}
    for claim in trial.claims:
        if claim.claim_id in labels:
            number = numbers[claim.turn_id] = numbers.get(claim.turn_id, 0) + 1
            href = f"#{claim_anchor(trial.repetition, claim.claim_id)}"
            marks[claim.claim_id] = Mark(LABEL_MARKS[labels[claim.claim_id]], number, href)
    return marks


def _spans(trial: TrialFields, turn_id: str, claims: Sequence[ClaimFields], marks: Mapping[str, Mark]) -> list[Span]:
    spans = []
    for claim in claims:
        mark = marks.get(claim.claim_id)
        if mark:
            last = max(claim.quote_spans, key=lambda span: span.end, default=None)
            spans += [Span(span.start, span.end, mark, span is last) for span in claim.quote_spans]
    for reading in trial.readings:
        if reading.turn_id == turn_id:
            spans += [Span(passage.start, passage.end, None) for passage in reading.marked]
    return spans


def _by(claims: Sequence[BackingFields], marks: Mapping[str, Mark]) -> str:
    """Links to claims; a claim that has no mark is quoted."""
    shown = []
    for claim in claims:
        mark = marks.get(claim.claim_id)
        shown.append(mark.link if mark else f"“{safe(' … '.join(claim.quotes))}”")
    return ", ".join(shown)


def _head(trial: TrialFields) -> Iterator[str]:
    """What happened to the trial, its scores, and where its calls are."""
    yield f"<h2>Repetition {trial.repetition}: {safe(trial.outcome.replace('_', ' '))}</h2>"
    scores = trial.final_scores
    if scores:
        yield (
            f'<p class="facts">Accuracy {score_text(scores.accuracy)}, completeness {score_text(scores.completeness)}, '
            f"safety risk {score_text(scores.safety_risk)}, calibration {score_text(scores.calibration)}.</p>"
        )
    judges = "; ".join(f"{safe(judge)} is {safe(model)}" for judge, model in trial.judged_by.verifiers.items())
    served = safe(", ".join(trial.target.served_models)) or "not stated"
    yield (
        f'<p class="note">Model that answered: {served}. Judges: {judges}. Raw calls: the lines of calls.jsonl in the '
        f"run folder whose call begins with <code>{safe(trial.trial_id)}|</code></p>"
    )
    for reason in trial.review_reasons or ():
        yield f'<p class="caveat">A person should look at this trial: {safe(reason.detail)}</p>'
    for failure in trial.judge_failures:
        what = f"{failure.stage.capitalize()} failed at {failure.turn_id}: {failure.reason}"
        yield f'<p class="caveat">{safe(what)}</p>'


def _noticed(trial: TrialFields, turn_id: str) -> Iterator[str]:
    """What was noticed about a reply: hedges, refusals, passages that the screen marked, sentences left out."""
    lines = [
        f"{_OBSERVED.get(one.observation.kind, '')}: “{safe(one.observation.quote)}”"
        for one in trial.observations
        if one.turn_id == turn_id
    ]
    for reading in trial.readings:
        if reading.turn_id == turn_id:
            if reading.why:
                lines.append(f"read by {safe(reading.how)}: {safe(reading.why)}")
            lines += [f"marked by the screen: {safe(passage.why)}" for passage in reading.marked]
            lines += [f"not covered by a claim: “{safe(text)}”" for text in reading.left_out]
    if lines:
        yield f'<ul class="plainlist">{"".join(f"<li>{line}</li>" for line in lines)}</ul>'


def _not_checked(trial: TrialFields, turn_id: str, claims: Sequence[ClaimFields]) -> Iterator[str]:
    """Claims without a final record, and claims that were rejected."""
    finals = {claim.claim_id for claim in trial.final_claims}
    lines = [f"{safe(claim.type)}: {safe(claim.text)}" for claim in claims if claim.claim_id not in finals]
    lines += [
        f"rejected: {safe(claim.text)} ({safe(claim.reason)})"
        for claim in trial.rejected_claims
        if claim.turn_id == turn_id
    ]
    if lines:
        yield f"<details><summary>{len(lines)} not checked</summary>"
        yield f'<ul class="plainlist">{"".join(f"<li>{line}</li>" for line in lines)}</ul></details>'
