"""A page of trials: one script (target, scenario, variant), some of its repetitions in order.

Each conversation is in one column. Words that a claim was taken from are underlined in the color of the claim's label
and carry its mark: S supported, C contradicted, ? not in key, O open. Beside them are the claims with the facts that
decided them and every judge's verdict with its reason; below each question its code, and the points made and missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ..records.study_code import Backing, MadePoint
from ..schemas import Claim, Exchange, FinalClaim, QuestionCode, TrialResult, Verdict
from ..store.projection import projection
from .citation_section import OUTCOME_NAMES
from .evidence_script import Script
from .evidence_shell import LABEL_MARKS, code_mark, code_name, safe, safe_lines, scores_text
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
_VERDICT = "claim_id label evidence severity notes"
decode = projection(
    TrialResult,
    {
        "": "trial_id scenario_id variant repetition outcome rejected_claims final_scores study_codes",
        "target": "name served_models",
        "conversation": "turn_id question_group user_message outcome reply detail",
        "conversation.search": "queries errors",
        "claims": "claim_id text type turn_id",
        "claims.quote_spans": "start end",
        "verdicts": _VERDICT,
        "repeat_verdicts": _VERDICT,
        "final_claims": "claim_id turn_id text label evidence severity decided_by",
        "readings": "turn_id how why left_out marked",
        "observations": "turn_id observation",
        "citations": "turn_id",
        "citations.citation": "url outcome why",
        "judge_failures": "stage turn_id judge reason",
        "judged_by": "verifiers",
        "review_reasons": "detail",
    },
)
"""What a page shows of a result."""


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
    ordered = sorted((span for span in spans if span.start < min(span.end, size)), key=lambda span: span.start)
    cuts = sorted({0, size, *(span.start for span in ordered), *(min(span.end, size) for span in ordered)})
    parts: list[str] = []
    over: list[Span] = []
    following = 0
    for start, end in pairwise(cuts):
        while following < len(ordered) and ordered[following].start == start:
            over.append(ordered[following])
            following += 1
        text = safe_lines(reply[start:end])
        if not over:
            parts.append(text)
            continue
        parts.append(_underlined(text, over))
        parts += [
            f'<sup class="{span.mark.kind}">{span.mark.link}</sup>'
            for span in over
            if span.mark and span.last and (span.end <= end or end == size)
        ]
        over = [span for span in over if span.end > end]
    return "".join(parts)


def _underlined(text: str, over: Sequence[Span]) -> str:
    """Words in the color of the heaviest claim over them, and outlined if the screen marked them."""
    claims = [span.mark for span in over if span.mark]
    screened = " k" if len(claims) < len(over) else ""
    if not claims:
        return f'<span class="k">{text}</span>'
    heaviest = claims[0] if len(claims) == 1 else max(claims, key=lambda mark: (_WEIGHT[mark.kind], -mark.number))
    return f'<a class="m {heaviest.kind}{screened}" href="{heaviest.href}">{text}</a>'


@dataclass
class TrialPage:
    """Writes trials of one script and remembers the facts that they cite."""

    script: Script
    cited: set[str] = field(default_factory=set)
    behind: Callable[[TrialResult, FinalClaim], str] | None = None
    """More HTML to show behind each claim."""

    def trial(self, trial: TrialResult) -> str:
        """A trial as HTML."""
        parts = [f'<article class="trial" id="{trial_anchor(trial.repetition)}">', _head(trial)]
        view = _View.of(trial)
        coded: dict[str, list[QuestionCode]] = {}
        for code in trial.study_codes:
            coded.setdefault(code.turn_ids[-1] if code.turn_ids else "", []).append(code)
        for exchange in trial.conversation:
            parts += self._turn(view, exchange)
            parts += [self._code(view, code) for code in coded.pop(exchange.turn_id, ())]
        parts += [self._code(view, code) for codes in coded.values() for code in codes]
        parts.append("</article>")
        return "\n".join(parts)

    def _turn(self, view: _View, exchange: Exchange) -> list[str]:
        turn_id = exchange.turn_id
        claims = view.claims.get(turn_id, [])
        parts = [
            f'<section class="turn" id="{turn_anchor(view.trial.repetition, turn_id)}">'
            f'<div class="say asked" dir="auto"><span class="who">Turn {safe(turn_id)}</span>'
            f"{safe_lines(exchange.user_message)}</div><div>"
        ]
        if exchange.reply:
            reply = marked_text(exchange.reply, view.spans(turn_id, claims))
            parts.append(f'<div class="say reply" dir="auto">{reply}</div>')
        if exchange.outcome != "answered" or not exchange.reply:
            detail = f": {safe(exchange.detail)}" if exchange.detail else ""
            parts.append(f'<p class="note">{safe(exchange.outcome.replace("_", " ").capitalize())}{detail}.</p>')
        parts.append(_listed([*_searched(view.trial, exchange), *_noticed(view.trial, turn_id)]))
        parts.append('</div><div class="claims">' if claims else "</div><div>")
        parts += [
            self._claim(view, view.finals[claim.claim_id], mark)
            for claim in claims
            if (mark := view.marks.get(claim.claim_id))
        ]
        if unchecked := list(_not_checked(view, turn_id, claims)):
            parts.append(f"<details><summary>{len(unchecked)} not checked</summary>{_listed(unchecked)}</details>")
        parts.append("</div></section>")
        return parts

    def _claim(self, view: _View, claim: FinalClaim, mark: Mark) -> str:
        wrong = claim.label == "CONTRADICTED"
        self.cited.update(claim.evidence)
        facts = [self.script.cited(name) for name in claim.evidence]
        if wrong:  # a summary may hold no link: it is a button itself
            shown = [f"{safe(name)} {self.script.statement(name)}" for name in claim.evidence]
            against = f'<span class="key">{"<br>".join(shown)}</span>'
            behind = "".join(
                [f"<p>{self.script.link(name)}: {self.script.source(name)}</p>" for name in claim.evidence]
            )
        else:
            against = ""
            behind = "".join([f"<p>{fact}</p>" for fact in facts])
        if claim.decided_by != "unanimous":
            behind += f"<p>{LABEL_NAMES[claim.label].capitalize()}: {_DECIDED.get(claim.decided_by, '')}.</p>"
        verdicts = self._verdicts(view, claim.claim_id)
        more = self.behind(view.trial, claim) if self.behind else ""
        return (
            f'<details class="{mark.kind}"><summary><b>{mark.text}</b> {safe(claim.text)}{against}</summary>'
            f'<div id="{mark.href[1:]}">{behind}{verdicts}{more}</div></details>'
        )

    def _verdicts(self, view: _View, claim_id: str) -> str:
        """What each judge said; judges that said the same share a line."""
        said: dict[str, list[str]] = {}
        for judge, verdicts in view.verdicts.items():
            verdict = verdicts.get(claim_id)
            text = self._verdict(verdict) if verdict else "no verdict"
            if again := view.again.get((judge, claim_id)):
                text += f" Asked again: {', '.join(again)}."
            said.setdefault(text, []).append(judge)
        return "".join([f"<p>{safe(', '.join(judges))}: {text}</p>" for text, judges in said.items()])

    def _verdict(self, verdict: Verdict) -> str:
        by = ""
        if verdict.evidence:
            self.cited.update(verdict.evidence)
            by = f" by {safe(', '.join(verdict.evidence))}"
        severity = f", {verdict.severity}" if verdict.severity != "none" else ""
        notes = f". {safe(verdict.notes)}" if verdict.notes else "."
        return f"{LABEL_NAMES[verdict.label]}{by}{severity}{notes}"

    def _code(self, view: _View, code: QuestionCode) -> str:
        """A question's code with its reason, and the points made and missed."""
        mark = code_mark(code.code or code.answer or "–")
        name = code_name(code.code) if code.code else f"answer: {safe(code.answer or 'none')}"
        topic = self.script.topic(code.question_group) or safe(code.question_group)
        items = [*self._points("Made", code.points_met, view.marks)]
        items += [f"Missed: {self._point(name)}" for name in code.points_missed]
        items += self._points("Made in part", code.partial_points_met, view.marks)
        for heading, claims in (("Wrong", code.wrong), ("Minor error", code.minor)):
            for claim in claims:
                against = f" against {safe(', '.join(claim.evidence))}" if claim.evidence else ""
                items.append(f"{heading}: {_by([claim], view.marks)}{against}")
        items += [f"Cannot be known: “{safe(words)}”" for words in code.fabricated]
        items += [
            f"Looked up{', and a page supports it' if one.checked else ', not checked'}: “{safe(one.quote)}”"
            for one in code.looked_up
        ]
        own = ""
        if code.own:
            mine = [*self._points("Made", code.own.points_met, view.marks)]
            mine += [f"Missed: {self._point(name)}" for name in code.own.points_missed]
            own = f"<p>By our own points: {code_name(code.own.code)}.</p>{_listed(mine)}"
        return (
            f'<section class="coded {mark}" id="{code_anchor(view.trial.repetition, code.question_group)}">'
            f'<h3><span class="code">{mark}</span> {name} <span class="quiet">{topic}</span></h3>'
            f"<p>{safe(code.reason)}</p>{_listed(items)}{own}</section>"
        )

    def _points(self, heading: str, points: Sequence[MadePoint], marks: Mapping[str, Mark]) -> Iterator[str]:
        for point in points:
            yield f"{heading}: {self._point(point.point)} – {_by(point.claims, marks)}"

    def _point(self, name: str) -> str:
        self.cited.update(name.split("|"))
        return self.script.point(name)


@dataclass(frozen=True, eq=False, slots=True)
class _View:
    """A trial with its parts where they are looked for."""

    trial: TrialResult
    marks: dict[str, Mark]
    """By claim; only claims with a final record have one. They are numbered within their turns."""
    claims: dict[str | None, list[Claim]]
    """By turn."""
    finals: dict[str, FinalClaim]
    verdicts: dict[str, dict[str, Verdict]]
    """By judge and claim."""
    again: dict[tuple[str, str], list[str]]
    """By judge and claim: the labels it gave when asked again."""

    @classmethod
    def of(cls, trial: TrialResult) -> _View:
        finals = {claim.claim_id: claim for claim in trial.final_claims}
        claims: dict[str | None, list[Claim]] = {}
        marks: dict[str, Mark] = {}
        numbers: dict[str | None, int] = {}
        for claim in trial.claims:
            claims.setdefault(claim.turn_id, []).append(claim)
            if final := finals.get(claim.claim_id):
                number = numbers[claim.turn_id] = numbers.get(claim.turn_id, 0) + 1
                href = f"#{claim_anchor(trial.repetition, claim.claim_id)}"
                marks[claim.claim_id] = Mark(LABEL_MARKS[final.label], number, href)
        verdicts = {judge: {one.claim_id: one for one in given} for judge, given in trial.verdicts.items()}
        again: dict[tuple[str, str], list[str]] = {}
        for judge, repeats in trial.repeat_verdicts.items():
            for repeat in repeats:
                for one in repeat:
                    again.setdefault((judge, one.claim_id), []).append(LABEL_NAMES[one.label])
        return cls(trial, marks, claims, finals, verdicts, again)

    def spans(self, turn_id: str, claims: Sequence[Claim]) -> list[Span]:
        """What is marked in a reply."""
        spans = []
        for claim in claims:
            mark = self.marks.get(claim.claim_id)
            if mark:
                end = max([span.end for span in claim.quote_spans], default=0)
                spans += [Span(span.start, span.end, mark, span.end == end) for span in claim.quote_spans]
        for reading in self.trial.readings:
            if reading.marked and reading.turn_id == turn_id:
                spans += [Span(passage.start, passage.end, None) for passage in reading.marked]
        return spans


_DECIDED = {
    "unanimous": "the judges agree",
    "majority": "by a majority of judges",
    "adjudicator": "settled by the adjudicator",
    "unresolved": "the judges left it open",
}


def _by(claims: Sequence[Backing], marks: Mapping[str, Mark]) -> str:
    """Links to claims; a claim that has no mark is quoted."""
    shown = []
    for claim in claims:
        mark = marks.get(claim.claim_id)
        shown.append(mark.link if mark else f"“{safe(' … '.join(claim.quotes))}”")
    return ", ".join(shown)


def _head(trial: TrialResult) -> str:
    """What happened to the trial, its scores, and where its calls are."""
    parts = [f"<h2>Repetition {trial.repetition}: {safe(trial.outcome.replace('_', ' '))}</h2>"]
    scores = trial.final_scores
    if scores:
        parts.append(f'<p class="facts">{scores_text(scores).capitalize()}.</p>')
    judges = "; ".join(f"{safe(judge)} is {safe(model)}" for judge, model in trial.judged_by.verifiers.items())
    served = safe(", ".join(trial.target.served_models)) or "not stated"
    parts.append(
        f'<p class="note">Model that answered: {served}. Judges: {judges}. Raw calls: the lines of calls.jsonl in the '
        f"run folder whose call begins with <code>{safe(trial.trial_id)}|</code></p>"
    )
    for reason in trial.review_reasons or ():
        parts.append(f'<p class="caveat">A person should look at this trial: {safe(reason.detail)}</p>')
    for failure in trial.judge_failures:
        what = f"{failure.stage.capitalize()} failed at {failure.turn_id}: {failure.reason}"
        parts.append(f'<p class="caveat">{safe(what)}</p>')
    return "\n".join(parts)


def _listed(items: Iterable[str]) -> str:
    lines = "".join([f"<li>{item}</li>" for item in items])
    return f'<ul class="plainlist">{lines}</ul>' if lines else ""


def _searched(trial: TrialResult, exchange: Exchange) -> Iterator[str]:
    """What was searched for a reply, and what became of its citations. Addresses are text, never links."""
    if exchange.search:
        yield from (f"searched for: “{safe(query)}”" for query in exchange.search.queries)
        yield from (f"a search failed: {safe(error)}" for error in exchange.search.errors)
    cited = [one.citation for one in trial.citations if one.turn_id == exchange.turn_id]
    yield from dict.fromkeys(
        f"cites {safe(one.url)}: {OUTCOME_NAMES.get(one.outcome) or safe(one.outcome)}. {safe(one.why)}"
        for one in cited
    )


def _noticed(trial: TrialResult, turn_id: str) -> Iterator[str]:
    """What was noticed about a reply: hedges, refusals, passages that the screen marked, sentences left out."""
    for one in trial.observations:
        if one.turn_id == turn_id:
            seen = one.observation
            yield f"{_OBSERVED.get(seen.kind) or safe(seen.kind)}: “{safe(seen.quote)}”"
    for reading in trial.readings:
        if reading.turn_id == turn_id:
            if reading.why:
                yield f"read by {safe(reading.how)}: {safe(reading.why)}"
            yield from (f"marked by the screen: {safe(passage.why)}" for passage in reading.marked)
            yield from (f"not covered by a claim: “{safe(text)}”" for text in reading.left_out)


def _not_checked(view: _View, turn_id: str, claims: Sequence[Claim]) -> Iterator[str]:
    """Claims without a final record, and claims that were rejected."""
    for claim in claims:
        if claim.claim_id not in view.finals:
            yield f"{safe(claim.type)}: {safe(claim.text)}"
    for rejected in view.trial.rejected_claims:
        if rejected.turn_id == turn_id:
            yield f"rejected: {safe(rejected.text)} ({safe(rejected.reason)})"
