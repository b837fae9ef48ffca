"""The offline judge, `offline:rules`: one pure function for each agent.

Each takes the record a model would be sent and computes the record a model would answer. Nothing is canned: a verdict
comes from comparing words, figures and polarity, and depends on that claim and that key alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..records.base import Label, ObservationKind, Severity
from ..records.contracts import (
    AdjudicatorInput,
    AdjudicatorReply,
    ClaimInView,
    Decision,
    KeyInView,
    Observation,
    ScorerInput,
    ScorerReply,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..text.figures import is_amount, kind
from ..text.sentences import sentences
from . import frames
from .claims import extract
from .compare import (
    Match,
    Saying,
    asserts,
    figures_quoted,
    hold_against,
)
from .quantities import derived
from .rephrase import rephrase
from .text import Reading, read_words, strip_markup
from .topic import weigh

__all__ = ["adjudicate", "extract", "read", "rephrase", "verify"]

_MAX_OBSERVATIONS = 200
_MAX_QUOTE = 20_000
_SEVERITIES: tuple[Severity, ...] = ("none", "low", "medium", "high")
_CAUTION: tuple[Label, ...] = ("NOT_IN_KEY", "CONTRADICTED", "SUPPORTED")


# ---- verdicts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Judgment:
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


def _severity(judged: _Judgment, key: KeyInView) -> Severity:
    if judged.label != "CONTRADICTED":
        return "none"
    cited = [fact.severity_if_wrong for fact in key.canonical_facts if fact.fact_id in judged.evidence]
    return max(cited, key=_SEVERITIES.index) if cited else "high"


def _judge(text: str, quotes: tuple[str, ...], question: str, key: KeyInView) -> _Judgment:
    if frames.is_question(text) or frames.is_unknowing(text):
        return _Judgment("NOT_IN_KEY", (), "States nothing that a key could bear out.")
    claim, asked = read_words(text), read_words(question)
    weights = weigh(frozenset(fact.statement for fact in key.canonical_facts))
    saying = Saying(claim, quotes, asked, figures_quoted(quotes))
    matches = [hold_against(saying, fact, weights) for fact in key.canonical_facts]
    matches.sort(key=lambda match: (-match.topic, match.fact_id))
    supports = _supports(matches, claim, asked)
    if not frames.leaves_open(text):
        clashes = _standing_clashes(matches, supports)
        broken = _broken_rules(text, question, key, supports)
        wrong = (*broken, *(match.fact_id for match in clashes[:1]))
        if broken:
            return _Judgment("CONTRADICTED", wrong, f"Asserts what {' and '.join(broken)} disallows.")
        if clashes:
            return _Judgment("CONTRADICTED", wrong, f"{clashes[0].fact_id}: {clashes[0].reason}.")
    if supports and not frames.is_refusal(text):
        ids = tuple(match.fact_id for match in supports if match.topic >= 0.75 * supports[0].topic)
        return _Judgment("SUPPORTED", ids, f"Says what {' and '.join(ids)} says.")
    return _Judgment("NOT_IN_KEY", (), "No statement of the key says this or its opposite.")


def _supports(matches: list[Match], claim: Reading, asked: Reading) -> list[Match]:
    """Statements that bear the claim out, alone or because together they have all its figures."""
    partly = [match for match in matches if match.relation == "partly"]
    known = frozenset(
        figure for match in matches if match.relation in ("supports", "partly") for figure in match.figures
    )
    given = claim.figures - asked.figures - derived(claim.text)
    together = partly and all(figure in known for figure in given if kind(figure) not in ("number", "year"))
    return [match for match in matches if match.relation == "supports" or (together and match in partly)]


def _standing_clashes(matches: list[Match], supports: list[Match]) -> list[Match]:
    """Clashes that a better match does not explain away."""
    borne_out = frozenset(figure for match in matches if match.relation != "contradicts" for figure in match.figures)
    best = supports[0].topic if supports else 0.0
    settled = any(is_amount(figure) for match in supports for figure in match.figures)
    standing = []
    for match in matches:
        if match.relation != "contradicts":
            continue
        explained = match.bad and (match.bad <= borne_out or (settled and not any(map(is_amount, match.bad))))
        least = 0.8 * best if match.bad else best + match.doubt
        if not explained and match.topic > least:
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
    """Whether it states a specific that nobody can know without looking it up, or a forbidden statement outright."""
    if frames.leaves_open(text) or frames.is_refusal(text):
        return False
    if frames.claims_lookup(text) or frames.specifics(text, task.question):
        return True
    rules = [
        frames.forbidden_statement(rule.statement)
        for rule in task.disallowed_claims
        if not frames.forbidden_kinds(rule.statement)
    ]
    weights = weigh(frozenset(rules))
    claim = read_words(text)
    return any(asserts(claim, rule, weights, outright=True) for rule in rules)


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
