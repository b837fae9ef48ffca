"""The offline judge, `offline:rules`: one pure function per agent.

Each takes the record that a model would be sent and computes the record that a model would answer. Nothing is canned: a
verdict comes from comparing words, figures and polarity, and depends only on the claim, the question and the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..records.base import Label, ObservationKind, Severity, severity_rank
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
from . import sentence_kinds
from .claims import MAX_QUOTE, extract
from .compare import (
    ComparedClaim,
    Match,
    asserts,
    compare_with_fact,
    figures_quoted,
)
from .quantities import derived
from .rephrase import rephrase
from .text import Reading, read_words, strip_markup
from .topic import weigh

__all__ = ["adjudicate", "extract", "read", "rephrase", "verify"]

_MAX_OBSERVATIONS = 200
_CAUTION: tuple[Label, ...] = ("NOT_IN_KEY", "CONTRADICTED", "SUPPORTED")


@dataclass(frozen=True)
class _LabeledClaim:
    label: Label
    evidence: tuple[str, ...]
    notes: str


def verify(task: VerifierInput) -> VerifierOutput:
    """One verdict for each claim, in the order of the claims."""
    return VerifierOutput(verdicts=tuple(_verdict(claim, task.question, task.answer_key) for claim in task.claims))


def _verdict(claim: ClaimInView, question: str, key: KeyInView) -> Verdict:
    labeled = _label(claim.text, claim.quotes, question, key)
    return Verdict(
        claim_id=claim.claim_id,
        label=labeled.label,
        evidence=labeled.evidence,
        severity=_severity(labeled, key),
        notes=labeled.notes,
    )


def _severity(labeled: _LabeledClaim, key: KeyInView) -> Severity:
    if labeled.label != "CONTRADICTED":
        return "none"
    cited = [fact.severity_if_wrong for fact in key.canonical_facts if fact.fact_id in labeled.evidence]
    return max(cited, key=severity_rank) if cited else "high"


def _label(text: str, quotes: tuple[str, ...], question: str, key: KeyInView) -> _LabeledClaim:
    if sentence_kinds.is_question(text) or sentence_kinds.is_unknowing(text):
        return _LabeledClaim("NOT_IN_KEY", (), "States nothing that a key could support or contradict.")
    claim, asked = read_words(text), read_words(question)
    weights = weigh(frozenset(fact.statement for fact in key.canonical_facts))
    compared = ComparedClaim(claim, quotes, asked, figures_quoted(quotes))
    matches = [compare_with_fact(compared, fact, weights) for fact in key.canonical_facts]
    matches.sort(key=lambda match: (-match.topic, match.fact_id))
    supports = _supports(matches, claim, asked)
    if not sentence_kinds.leaves_open(text):
        clashes = _unexplained_clashes(matches, supports)
        broken = _broken_rules(text, question, key, supports)
        wrong = (*broken, *(match.fact_id for match in clashes[:1]))
        if broken:
            return _LabeledClaim("CONTRADICTED", wrong, f"Asserts what {' and '.join(broken)} disallows.")
        if clashes:
            return _LabeledClaim("CONTRADICTED", wrong, f"{clashes[0].fact_id}: {clashes[0].reason}.")
    if supports and not sentence_kinds.is_refusal(text):
        ids = tuple(match.fact_id for match in supports if match.topic >= 0.75 * supports[0].topic)
        return _LabeledClaim("SUPPORTED", ids, f"Says what {' and '.join(ids)} says.")
    return _LabeledClaim("NOT_IN_KEY", (), "No statement of the key says this or the opposite.")


def _supports(matches: list[Match], claim: Reading, asked: Reading) -> list[Match]:
    """Statements that support the claim, alone or because together they have all its figures."""
    partly = [match for match in matches if match.relation == "partly"]
    known = frozenset(
        figure for match in matches if match.relation in ("supports", "partly") for figure in match.figures
    )
    given = claim.figures - asked.figures - derived(claim.text)
    together = partly and all(figure in known for figure in given if kind(figure) not in ("number", "year"))
    return [match for match in matches if match.relation == "supports" or (together and match in partly)]


def _unexplained_clashes(matches: list[Match], supports: list[Match]) -> list[Match]:
    """Contradictions that a better match does not explain."""
    shared = frozenset(figure for match in matches if match.relation != "contradicts" for figure in match.figures)
    best = supports[0].topic if supports else 0.0
    settled = any(is_amount(figure) for match in supports for figure in match.figures)
    found = []
    for match in matches:
        if match.relation != "contradicts":
            continue
        explained = match.bad and (match.bad <= shared or (settled and not any(map(is_amount, match.bad))))
        least = 0.8 * best if match.bad else best + match.doubt
        if not explained and match.topic > least:
            found.append(match)
    return found


def _broken_rules(text: str, question: str, key: KeyInView, supports: list[Match]) -> tuple[str, ...]:
    """Ids of the disallowed claims that the text asserts."""
    stated = sentence_kinds.specifics(text, question)
    broken = {
        rule.claim_id for rule in key.disallowed_claims if sentence_kinds.forbidden_kinds(rule.statement) & stated
    }
    forbidden = {
        rule.claim_id: sentence_kinds.forbidden_statement(rule.statement)
        for rule in key.disallowed_claims
        if not sentence_kinds.forbidden_kinds(rule.statement)
    }
    facts = [fact.statement for fact in key.canonical_facts]
    weights = weigh(frozenset([*facts, *forbidden.values()]))
    claim = read_words(text)
    scores = {rule: asserts(claim, statement, weights) for rule, statement in forbidden.items()}
    best = max(scores.values(), default=0.0)
    if best > (supports[0].topic if supports else 0.0):
        broken |= {rule for rule, score in scores.items() if score >= 0.95 * best}
    return tuple(sorted(broken))


def read(task: ScorerInput) -> ScorerReply:
    """Refusals, referrals, hedges and fabricated specifics, each with the words that show it."""
    found: list[Observation] = []
    for span in sentences(task.reply):
        quote = task.reply[span.start : span.end]
        if not span.heading and quote.strip() and len(quote) <= MAX_QUOTE:
            found += [Observation(kind=seen, quote=quote) for seen in _kinds(quote, task)]
    return ScorerReply(observations=tuple(found[:_MAX_OBSERVATIONS]))


def _kinds(quote: str, task: ScorerInput) -> Iterator[ObservationKind]:
    text = strip_markup(quote)
    if sentence_kinds.is_question(text):
        return
    if sentence_kinds.is_refusal(text):
        yield "refusal"
    if sentence_kinds.is_referral(text):
        yield "referral"
    if sentence_kinds.hedge(text):
        yield "hedge"
    if _fabricates(text, task):
        yield "fabricated_specific"


def _fabricates(text: str, task: ScorerInput) -> bool:
    """Whether it states something specific that no one can know without a lookup, or clearly a forbidden statement."""
    if sentence_kinds.leaves_open(text) or sentence_kinds.is_refusal(text):
        return False
    if sentence_kinds.claims_lookup(text) or sentence_kinds.specifics(text, task.question):
        return True
    rules = [
        sentence_kinds.forbidden_statement(rule.statement)
        for rule in task.disallowed_claims
        if not sentence_kinds.forbidden_kinds(rule.statement)
    ]
    weights = weigh(frozenset(rules))
    claim = read_words(text)
    return any(asserts(claim, rule, weights, outright=True) for rule in rules)


def adjudicate(task: AdjudicatorInput) -> AdjudicatorReply:
    """The label of the rules, if a verifier gave it too; otherwise the most cautious of the labels given."""
    decisions = []
    for claim in task.claims:
        labeled = _label(claim.text, claim.quotes, task.question, task.answer_key)
        label = labeled.label
        notes = labeled.notes
        if label not in claim.options:
            label = next((option for option in _CAUTION if option in claim.options), "NOT_IN_KEY")
            notes = "The rules give a label that is not among the options; this is the most cautious option."
        decisions.append(Decision(claim_id=claim.claim_id, label=label, notes=notes))
    return AdjudicatorReply(decisions=tuple(decisions))
