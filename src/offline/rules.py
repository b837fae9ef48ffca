"""The offline judge, `offline:rules`: one pure function for each agent.

Each takes the record a model would be sent and computes the record a model would answer. Nothing is canned: a verdict
comes from comparing words, figures and polarity, and depends on that claim and that key alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..figures import figures, kind
from ..records.base import ClaimType, Confidence, Label, ObservationKind, Severity
from ..records.contracts import (
    AdjudicatorInput,
    AdjudicatorReply,
    ClaimInView,
    Decision,
    ExtractorInput,
    ExtractorReply,
    KeyInView,
    Observation,
    QuotedClaim,
    ScorerInput,
    ScorerReply,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..sentences import Span, sentences
from . import frames
from .compare import Match, asserts, compare
from .rephrase import rephrase
from .text import read_words, strip_markup
from .topic import weigh

__all__ = ["adjudicate", "extract", "read", "rephrase", "verify"]

_MAX_CLAIMS = 1_000
_MAX_OBSERVATIONS = 200
_MAX_QUOTE = 20_000
_STRETCH = 400
_SEVERITIES: tuple[Severity, ...] = ("none", "low", "medium", "high")
_CAUTION: tuple[Label, ...] = ("NOT_IN_KEY", "CONTRADICTED", "SUPPORTED")

# Two clauses with a subject and a verb each, joined by a semicolon or by ", and", ", but" and the like. A second
# clause that begins with a pronoun stays with the first: alone, nobody could tell what it is about.
_SUBJECT = (
    r"(?:medicare|medicaid|part [abcd]|medigap|original|most|some|many|hmos?|ppos?|social security|extra help|qmb|slmb|"
    r"the (?:part|plan|penalty|premium|deductible|standard|annual|initial|general|special|medigap|income|limit)|"
    r"coverage|enrollment)"
)
_JOINT = re.compile(rf";\s+(?=\S)|,\s+(?:and|but|while|whereas)\s+(?={_SUBJECT}\b)", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|can|can't|can’t|cannot|could|may|might|must|will|won't|won’t|would|should|do|does|"
    r"don't|don’t|doesn't|doesn’t|isn't|isn’t|aren't|aren’t|pays?|covers?|starts?|begins?|ends?|lasts?|runs?|costs?|uses?|"
    r"needs?|gets?|applies|apply|allows?|includes?|requires?|charges?|keeps?|goes|offers?|counts?|depends?|stays?|"
    r"limits?|helps?|enroll|loses?|owes?)\b",
    re.IGNORECASE,
)


def extract(task: ExtractorInput) -> ExtractorReply:
    """A claim for every sentence, list item or table row with content."""
    claims: list[QuotedClaim] = []
    for start, end in _claim_spans(task.reply):
        quote = task.reply[start:end]
        text = strip_markup(quote)
        if not text or len(quote) > _MAX_QUOTE or len(claims) == _MAX_CLAIMS:
            continue
        kind_of_claim = _claim_type(text)
        claims.append(
            QuotedClaim(
                claim_id=f"C{len(claims) + 1}",
                text=text,
                type=kind_of_claim,
                confidence=_confidence(text),
                verifiable=kind_of_claim == "factual",
                quotes=(quote,),
            )
        )
    return ExtractorReply(claims=tuple(claims))


def _claim_spans(reply: str) -> Iterator[tuple[int, int]]:
    spans = sentences(reply)
    for at, span in enumerate(spans):
        quote = reply[span.start : span.end]
        header = span.row and at + 1 < len(spans) and spans[at + 1].row and (at == 0 or not spans[at - 1].row)
        if span.heading or header or not _has_content(quote):
            continue
        yield from _clauses(reply, span)


def _has_content(quote: str) -> bool:
    """A label such as `**Costs**` or a lead-in such as `You have two choices:` claims nothing that can be checked."""
    words = re.findall(r"[^\W\d_]+", quote)
    label = bool(re.fullmatch(r"\s*(\*\*|__)[^*_]{1,80}\1:?\s*", quote)) and not quote.rstrip("*_ ").endswith(
        (".", "!")
    )
    if quote.rstrip("*_ ").endswith(":") or label:
        return bool(figures(quote)) and len(words) >= 5 and bool(_VERB.search(quote)) and not label
    return len(words) >= 3 or (bool(figures(quote)) and len(words) >= 1)


def _clauses(reply: str, span: Span) -> Iterator[tuple[int, int]]:
    start = span.start
    for joint in _JOINT.finditer(reply, span.start, span.end):
        # Looking at a stretch on each side is enough, and keeps time in step with length.
        left = reply[max(start, joint.start() - _STRETCH) : joint.start()]
        right = reply[joint.end() : min(span.end, joint.end() + _STRETCH)]
        whole = _VERB.search(left) and _VERB.search(right) and min(len(left.split()), len(right.split())) >= 4
        conditional = re.match(r"\W*(?:if|when|because|since|although|while|once|after|before|whether)\b", left, re.I)
        if whole and not (conditional and "," not in left):
            yield start, joint.start()
            start = joint.end()
    yield start, span.end


def _claim_type(text: str) -> ClaimType:
    if frames.is_question(text) or frames.is_refusal(text) or frames.is_chatter(text):
        return "other"
    if frames.is_unknowing(text) or frames.is_opinion(text):
        return "other"
    if frames.is_referral(text):
        return "referral"
    if frames.is_recommendation(text):
        return "recommendation"
    return "factual" if read_words(text).content or figures(text) else "other"


def _confidence(text: str) -> Confidence:
    return {"strong": "low", "mild": "medium"}.get(frames.hedge(text), "high")  # type: ignore[return-value]


# ---- verdicts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judgement:
    label: Label
    evidence: tuple[str, ...]
    notes: str


def verify(task: VerifierInput) -> VerifierOutput:
    """One verdict for each claim, in the order of the claims."""
    return VerifierOutput(verdicts=tuple(_verdict(claim, task.question, task.answer_key) for claim in task.claims))


def _verdict(claim: ClaimInView, question: str, key: KeyInView) -> Verdict:
    judged = _judge(claim.text, claim.quotes, question, key)
    return Verdict(
        claim_id=claim.claim_id,
        label=judged.label,
        evidence=judged.evidence,
        severity=_severity(judged, key),
        notes=judged.notes,
    )


def _severity(judged: _Judgement, key: KeyInView) -> Severity:
    if judged.label != "CONTRADICTED":
        return "none"
    cited = [fact.severity_if_wrong for fact in key.canonical_facts if fact.fact_id in judged.evidence]
    return max(cited, key=_SEVERITIES.index) if cited else "high"


def _judge(text: str, quotes: tuple[str, ...], question: str, key: KeyInView) -> _Judgement:
    if frames.is_question(text) or frames.is_unknowing(text):
        return _Judgement("NOT_IN_KEY", (), "States nothing that a key could bear out.")
    claim, asked = read_words(text), read_words(question)
    weights = weigh(frozenset(fact.statement for fact in key.canonical_facts))
    quoted = frozenset(figure for quote in quotes for figure in figures(quote))
    matches = [
        compare(claim, fact.statement, fact_id=fact.fact_id, weights=weights, quoted=quoted, asked=asked)
        for fact in key.canonical_facts
    ]
    matches.sort(key=lambda match: (-match.topic, match.fact_id))
    supports = _supports(matches, claim.figures)
    if not frames.leaves_open(text):
        clashes = _standing_clashes(matches, supports)
        broken = _broken_rules(text, question, key, supports)
        wrong = (*broken, *(match.fact_id for match in clashes[:1]))
        if broken:
            return _Judgement("CONTRADICTED", wrong, f"Asserts what {' and '.join(broken)} disallows.")
        if clashes:
            return _Judgement("CONTRADICTED", wrong, f"{clashes[0].fact_id}: {clashes[0].reason}.")
    if supports and not frames.is_refusal(text):
        ids = tuple(match.fact_id for match in supports if match.topic >= 0.75 * supports[0].topic)
        return _Judgement("SUPPORTED", ids, f"Says what {' and '.join(ids)} says.")
    return _Judgement("NOT_IN_KEY", (), "No statement of the key says this or its opposite.")


def _supports(matches: list[Match], given: frozenset[str]) -> list[Match]:
    """Statements that bear the claim out, alone or because together they have all its figures."""
    partly = [match for match in matches if match.relation == "partly"]
    known = frozenset(
        figure for match in matches if match.relation in ("supports", "partly") for figure in match.figures
    )
    together = partly and all(figure in known for figure in given if kind(figure) not in ("number", "year"))
    return [match for match in matches if match.relation == "supports" or (together and match in partly)]


def _standing_clashes(matches: list[Match], supports: list[Match]) -> list[Match]:
    """Clashes that a better match does not explain away."""
    borne_out = frozenset(figure for match in matches if match.relation != "contradicts" for figure in match.figures)
    best = supports[0].topic if supports else 0.0
    standing = []
    for match in matches:
        if match.relation != "contradicts":
            continue
        explained = match.bad and match.bad <= borne_out
        if not explained and (match.topic > best or (match.bad and match.topic >= 0.8 * best)):
            standing.append(match)
    return standing


def _broken_rules(text: str, question: str, key: KeyInView, supports: list[Match]) -> tuple[str, ...]:
    """Ids of the disallowed claims that the text asserts."""
    stated = frames.specifics(text, question)
    broken = {rule.claim_id for rule in key.disallowed_claims if frames.forbidden_kinds(rule.statement) & stated}
    forbidden = {
        rule.claim_id: frames.forbidden_statement(rule.statement)
        for rule in key.disallowed_claims
        if not frames.forbidden_kinds(rule.statement)
    }
    facts = [fact.statement for fact in key.canonical_facts]
    weights = weigh(frozenset([*facts, *forbidden.values()]))
    claim = read_words(text)
    scores = {rule: asserts(claim, statement, weights) for rule, statement in forbidden.items()}
    best = max(scores.values(), default=0.0)
    if best > (supports[0].topic if supports else 0.0):
        broken |= {rule for rule, score in scores.items() if score >= 0.95 * best}
    return tuple(sorted(broken))


# ---- observations and ties --------------------------------------------------------------------------------------


def read(task: ScorerInput) -> ScorerReply:
    """Refusals, referrals, hedges and fabricated specifics, each with the words that show it."""
    found: list[Observation] = []
    for span in sentences(task.reply):
        quote = task.reply[span.start : span.end]
        if not span.heading and quote.strip() and len(quote) <= _MAX_QUOTE:
            found += [Observation(kind=seen, quote=quote) for seen in _kinds(quote, task)]
    return ScorerReply(observations=tuple(found[:_MAX_OBSERVATIONS]))


def _kinds(quote: str, task: ScorerInput) -> Iterator[ObservationKind]:
    text = strip_markup(quote)
    if frames.is_question(text):
        return
    if frames.is_refusal(text):
        yield "refusal"
    if frames.is_referral(text):
        yield "referral"
    if frames.hedge(text):
        yield "hedge"
    if _fabricates(text, task):
        yield "fabricated_specific"


def _fabricates(text: str, task: ScorerInput) -> bool:
    if frames.leaves_open(text) or frames.is_refusal(text):
        return False
    if frames.claims_lookup(text) or frames.specifics(text, task.question):
        return True
    rules = [frames.forbidden_statement(rule.statement) for rule in task.disallowed_claims]
    weights = weigh(frozenset(rules))
    kinds = [frames.forbidden_kinds(rule.statement) for rule in task.disallowed_claims]
    claim = read_words(text)
    return any(not looked_up and asserts(claim, rule, weights) for looked_up, rule in zip(kinds, rules, strict=True))


def adjudicate(task: AdjudicatorInput) -> AdjudicatorReply:
    """The label the rules give, if a verifier gave it too; else the more cautious of the labels that were given."""
    decisions = []
    for claim in task.claims:
        judged = _judge(claim.text, claim.quotes, task.question, task.answer_key)
        label = judged.label
        notes = judged.notes
        if label not in claim.options:
            label = next((option for option in _CAUTION if option in claim.options), "NOT_IN_KEY")
            notes = "The rules give a label that was not offered; the more cautious one stands."
        decisions.append(Decision(claim_id=claim.claim_id, label=label, notes=notes))
    return AdjudicatorReply(decisions=tuple(decisions))
