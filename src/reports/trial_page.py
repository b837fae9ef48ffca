"""A page of trials: one script (target, scenario, variant), some of its repetitions in order.

Each conversation is in one column. Words that a claim was taken from are underlined in the color of the claim's label
and carry its mark: S supported, C contradicted, ? not in key, O open. Beside them are the claims with the facts that
decided them and every judge's verdict with its reason; below each question its code, and the points made and missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from ..records.study_code import Backing
from ..schemas import Claim, Exchange, FinalClaim, QuestionCode, TrialResult, Verdict
from ..store.projection import projection
from ..text.escape import plain
from . import template
from .citation_section import OUTCOME_NAMES
from .evidence_script import Script
from .evidence_shell import safe_lines, visible_lines
from .links import claim_anchor

LABEL_MARKS = {"SUPPORTED": "S", "CONTRADICTED": "C", "NOT_IN_KEY": "N", None: "O"}
"""Label to its class; the mark of `N` is shown as a question mark."""
LABEL_NAMES = {"SUPPORTED": "supported", "CONTRADICTED": "contradicted", "NOT_IN_KEY": "not in key", None: "open"}
_WEIGHT = {"C": 3, "O": 2, "N": 1, "S": 0}
"""Where claims overlap, the heaviest gives the color and the link."""
_VERDICT = "claim_id label evidence severity notes"
decode = projection(
    TrialResult,
    {
        "": "trial_id scenario_id variant repetition outcome rejected_claims final_scores left_open study_codes",
        "target": "name served_models",
        "conversation": "turn_id question_group user_message outcome reply detail",
        "conversation.search": "queries errors",
        "claims": "claim_id text type turn_id same_as",
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


class ClaimMark(NamedTuple):
    """How a claim is marked in its trial; as HTML, a link to it."""

    kind: str
    """S, C, N or O."""
    number: int
    href: str

    @property
    def text(self) -> str:
        return f"{'?' if self.kind == 'N' else self.kind}{self.number}"

    def __html__(self) -> str:
        return f'<a href="{self.href}">{self.text}</a>'


class MarkedSpan(NamedTuple):
    start: int
    end: int
    mark: ClaimMark | None
    """None for a passage that the screen marked."""
    last: bool = True
    """Whether the claim's mark is written after it."""


def marked_text(reply: str, spans: Sequence[MarkedSpan]) -> Markup:
    """A reply with the words of its claims underlined; spans may overlap and may reach beyond its end."""
    size = len(reply)
    ordered = sorted((span for span in spans if span.start < min(span.end, size)), key=lambda span: span.start)
    cuts = sorted({0, size, *(span.start for span in ordered), *(min(span.end, size) for span in ordered)})
    parts: list[str] = []
    over: list[MarkedSpan] = []
    clean = visible_lines(reply) == reply and not any(mark in reply for mark in "&<>")
    following = 0
    for start, end in pairwise(cuts):
        while following < len(ordered) and ordered[following].start == start:
            over.append(ordered[following])
            following += 1
        text = reply[start:end] if clean else safe_lines(reply[start:end])
        if not over:
            parts.append(text)
            continue
        parts.append(_underlined(text, over))
        parts += [
            f'<sup class="{span.mark.kind}">{span.mark.__html__()}</sup>'
            for span in over
            if span.mark and span.last and (span.end <= end or end == size)
        ]
        over = [span for span in over if span.end > end]
    return Markup("".join(parts))  # noqa: S704 - its parts are escaped


def _underlined(text: str, over: Sequence[MarkedSpan]) -> str:
    """Words in the color of the heaviest claim over them, and outlined if the screen marked them."""
    claims = [span.mark for span in over if span.mark]
    screened = " k" if len(claims) < len(over) else ""
    if not claims:
        return f'<span class="k">{text}</span>'
    heaviest = claims[0] if len(claims) == 1 else max(claims, key=lambda mark: (_WEIGHT[mark.kind], -mark.number))
    return f'<a class="m {heaviest.kind}{screened}" href="{heaviest.href}">{text}</a>'


class _Checked(NamedTuple):
    """A claim with a final record, and what is behind it."""

    mark: ClaimMark
    claim: FinalClaim
    against: Markup | None
    """The facts that it contradicts."""
    facts: Markup
    """The facts that decided it, or where they are from."""
    said: list[str]
    """What judges said; judges that said the same share a line."""


class _Turn(NamedTuple):
    """A turn with its parts where the template looks for them."""

    codes: Sequence[QuestionCode]
    exchange: Exchange | None = None
    """None for codes of no turn."""
    reply: Markup = Markup()
    claims: Sequence[_Checked] = ()
    unchecked: Sequence[str] = ()
    """Claims without a final record, and claims that were rejected."""
    citations: Iterable[tuple[str, str, str]] = ()
    """Address, outcome and reason. Addresses are text, never links."""


@dataclass
class TrialPage:
    """Writes trials of one script and remembers the facts that they cite."""

    script: Script
    cited: set[str] = field(default_factory=set)
    behind: Callable[[TrialResult, FinalClaim], Markup] | None = None
    """More HTML to show behind each claim."""

    def trial(self, trial: TrialResult) -> Markup:
        """A trial as HTML."""
        finals = {claim.claim_id: claim for claim in trial.final_claims}
        finals |= {one.claim_id: finals[one.same_as] for one in trial.claims if one.same_as in finals}
        marks = _marks(trial, finals)
        codes: dict[str, list[QuestionCode]] = {}
        for code in trial.study_codes:
            codes.setdefault(code.turn_ids[-1] if code.turn_ids else "", []).append(code)
            points = [*code.points_met, *code.partial_points_met, *(code.own.points_met if code.own else ())]
            missed = (*code.points_missed, *(code.own.points_missed if code.own else ()))
            self.cited.update(fact for name in (*missed, *(one.point for one in points)) for fact in name.split("|"))
        said = self._said(trial)
        turns = []
        for exchange in trial.conversation:
            turn_id = exchange.turn_id
            claims = [claim for claim in trial.claims if claim.turn_id == turn_id]
            marked = [claim for claim in claims if claim.claim_id in marks]
            reply = marked_text(exchange.reply, _spans(trial, turn_id, marked, marks)) if exchange.reply else Markup()
            checked = [self._checked(marks[one.claim_id], finals[one.claim_id], said) for one in marked]
            unchecked = [f"{one.type}: {one.text}" for one in claims if one.claim_id not in finals]
            rejected = [one for one in trial.rejected_claims if one.turn_id == turn_id]
            unchecked += [f"rejected: {one.text} ({one.reason})" for one in rejected]
            cited = (one.citation for one in trial.citations if one.turn_id == turn_id)
            citations = dict.fromkeys((one.url, one.outcome, one.why) for one in cited)
            turns.append(_Turn(codes.pop(turn_id, ()), exchange, reply, checked, unchecked, citations))
        turns += map(_Turn, codes.values())
        return template.macro("trial", "trial", self, trial, turns, marks)

    def _checked(self, mark: ClaimMark, claim: FinalClaim, said: Callable[[str], list[str]]) -> _Checked:
        names, lines = claim.evidence, said(claim.claim_id)
        self.cited.update(names)
        if claim.label == "CONTRADICTED":
            return _Checked(mark, claim, self.script.shown("against", names), self.script.shown("origin", names), lines)
        return _Checked(mark, claim, None, self.script.shown("facts", names), lines)

    def _said(self, trial: TrialResult) -> Callable[[str], list[str]]:
        """What the judges of a trial said about a claim."""
        verdicts = {judge: {one.claim_id: one for one in given} for judge, given in trial.verdicts.items()}
        again: dict[tuple[str, str], list[str]] = {}
        for judge, repeats in trial.repeat_verdicts.items():
            for one in (one for repeat in repeats for one in repeat):
                again.setdefault((judge, one.claim_id), []).append(LABEL_NAMES[one.label])

        def of(claim_id: str) -> list[str]:
            found: dict[str, list[str]] = {}
            for judge, given in verdicts.items():
                verdict = given.get(claim_id)
                text = self._verdict(verdict) if verdict else "no verdict"
                if repeated := again.get((judge, claim_id)):
                    text += f" Asked again: {', '.join(repeated)}."
                found.setdefault(text, []).append(judge)
            return [f"{', '.join(judges)}: {text}" for text, judges in found.items()]

        return of

    def _verdict(self, verdict: Verdict) -> str:
        self.cited.update(verdict.evidence)
        by = f" by {', '.join(verdict.evidence)}" if verdict.evidence else ""
        severity = f", {verdict.severity}" if verdict.severity != "none" else ""
        return f"{LABEL_NAMES[verdict.label]}{by}{severity}.{f' {verdict.notes}' if verdict.notes else ''}"


def _marks(trial: TrialResult, finals: Mapping[str, FinalClaim]) -> dict[str, ClaimMark]:
    """By claim; only claims with a final record have one. They are numbered within their turns."""
    marks: dict[str, ClaimMark] = {}
    numbers: Counter[str | None] = Counter()
    for claim in trial.claims:
        if final := finals.get(claim.claim_id):
            numbers[claim.turn_id] += 1
            href = f"#{claim_anchor(trial.repetition, claim.claim_id)}"
            marks[claim.claim_id] = ClaimMark(LABEL_MARKS[final.label], numbers[claim.turn_id], href)
    return marks


def _spans(
    trial: TrialResult, turn_id: str, claims: Sequence[Claim], marks: Mapping[str, ClaimMark]
) -> list[MarkedSpan]:
    """What is marked in a reply."""
    spans = []
    for claim in claims:
        mark, end = marks[claim.claim_id], max([span.end for span in claim.quote_spans], default=0)
        spans += [MarkedSpan(span.start, span.end, mark, span.end == end) for span in claim.quote_spans]
    for reading in trial.readings:
        if reading.turn_id == turn_id:
            spans += [MarkedSpan(passage.start, passage.end, None) for passage in reading.marked]
    return spans


def _quoted(claims: Sequence[Backing], marks: Mapping[str, ClaimMark]) -> Markup:
    """Links to claims; a claim that has no mark is quoted."""
    return Markup(", ").join(marks.get(one.claim_id) or plain(f"“{' … '.join(one.quotes)}”") for one in claims)


template.environment("html").globals.update(LABEL_NAMES=LABEL_NAMES, OUTCOME_NAMES=OUTCOME_NAMES)
template.environment("html").filters["quoted"] = _quoted
