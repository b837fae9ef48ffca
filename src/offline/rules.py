"""The rule-based judge, `offline:rules`: one pure function per agent. A test double: its scores are not results.

It shows that runs, reports and checks work without a model or a key. It labels a claim only if the claim says what a
statement of the key says in nearly the same words, or the same with one other figure or one negation more or less.
Everything else is NOT_IN_KEY, which most sentences of an ordinary answer are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from ..records.base import ObservationKind, severity_rank
from ..records.contracts import (
    AdjudicatorInput,
    AdjudicatorReply,
    ClaimInView,
    Decision,
    FactInView,
    Observation,
    PlannedTurn,
    QuestionerOutput,
    ScorerInput,
    ScorerReply,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..records.scenario import DisallowedClaim
from ..text.coverage import names_a_program
from ..text.figures import figures, is_amount, kind
from ..text.sentences import sentences
from .claims import COMPARISONS, LOW, MAX_QUOTE, WORDS, Reading, claim_type, declines, extract, has_done, spoken
from .claims import read as read_sentence

__all__ = ["adjudicate", "extract", "read", "rephrase", "verify"]

_MOST_OBSERVATIONS = 200
_ACT = re.compile(r"^\w+ing\b\s*")
"""How a disallowed claim begins: "Claiming that", "Telling the person to"."""
_AFTER_CLAUSE = re.compile(r"[,;:].*", re.DOTALL)
_NOT_PLAIN = re.compile('["\u2190-\u2bff\U0001f000-\U0001faff]')
"""Quotation marks, crosses and other signs may say that a sentence is not meant as it reads."""
_UNNAMED = WORDS["unnamed"]


def verify(task: VerifierInput) -> VerifierOutput:
    """One verdict for each claim, in the order of the claims."""
    return VerifierOutput(verdicts=tuple(_verdict(claim, task) for claim in task.claims))


def _verdict(claim: ClaimInView, task: VerifierInput) -> Verdict:
    none = Verdict(
        claim_id=claim.claim_id,
        label="NOT_IN_KEY",
        evidence=(),
        severity="none",
        notes="No statement of the key says this.",
    )
    said = read_sentence(claim.text)
    asked = " ".join((*task.earlier_questions, task.question))
    if claim.text.endswith("?") or not _is_quoted(claim, said, asked):
        return none
    years = frozenset({str(task.plan_year)})
    facts = (*task.answer_key.canonical_facts, *task.background_facts)
    closest = _closest({fact: compare(said, read_sentence(fact.statement), years) for fact in facts})
    same = tuple(fact for fact, difference in closest.items() if difference.kind == "same")
    broken = _broken(claim.text, said, task.answer_key.disallowed_claims, years)
    if same and len(same) == len(closest) and not broken:
        return Verdict(
            claim_id=claim.claim_id,
            label="SUPPORTED",
            evidence=tuple(fact.fact_id for fact in same),
            severity="none",
            notes="Says nearly this.",
        )
    # A figure of the question may be the person's own.
    opposed = () if said.figures & figures(asked) else tuple(closest)
    speaks_plainly = not _NOT_PLAIN.search(claim.text) and not _UNNAMED.intersection(spoken(claim.text)[:2])
    if not (broken or opposed) or same or not speaks_plainly:
        return none
    return Verdict(
        claim_id=claim.claim_id,
        label="CONTRADICTED",
        evidence=(*broken, *(fact.fact_id for fact in opposed)),
        severity=max((fact.severity_if_wrong for fact in opposed), key=severity_rank, default="high"),
        notes="Makes a disallowed claim." if broken else "Says this with another figure, or the opposite.",
    )


def _closest(compared: Mapping[FactInView, SentenceDifference]) -> dict[FactInView, SentenceDifference]:
    """The facts that speak of the same as the sentence; of these, those that share most words with it."""
    about = {fact: difference for fact, difference in compared.items() if difference.kind != "other"}
    best = max((difference.shared for difference in about.values()), default=0.0)
    return {fact: difference for fact, difference in about.items() if difference.shared == best}


def _is_quoted(claim: ClaimInView, said: Reading, question: str) -> bool:
    """Whether the reply itself says what the claim says: its figures, and most of its words."""
    given = read_sentence(" ".join(claim.quotes))
    asked = read_sentence(question)
    known = given.content | asked.content
    return said.figures <= given.figures | asked.figures and 2 * len(said.content & known) >= len(said.content)


def _broken(text: str, said: Reading, disallowed: Sequence[DisallowedClaim], years: frozenset[str]) -> tuple[str, ...]:
    """The disallowed claims that a sentence makes in nearly their own words."""
    broken = []
    for rule in disallowed:
        statement = _ACT.sub("", rule.statement)
        if statement.startswith("to have "):
            makes = has_done(spoken(text)) and _matches(read_sentence(_AFTER_CLAUSE.sub("", text)), statement, years)
        else:
            makes = not said.hedges - read_sentence(statement).hedges and _matches(said, statement, years)
        if makes:
            broken.append(rule.claim_id)
    return tuple(broken)


def _matches(said: Reading, statement: str, years: frozenset[str]) -> bool:
    difference = compare(said, read_sentence(statement), years)
    return difference.kind == "same" and difference.exact


def read(task: ScorerInput) -> ScorerReply:
    """Refusals, referrals, hedges and fabricated specifics, each with the words that show it."""
    quotes = [task.reply[span.start : span.end] for span in sentences(task.reply) if not span.heading]
    quotes = [quote for quote in quotes if quote.strip() and len(quote) <= MAX_QUOTE]
    # A reply that states something is unsure of the rest; one that states nothing refuses.
    declined: ObservationKind = "hedge" if any(claim_type(quote) == "factual" for quote in quotes) else "refusal"
    found: list[Observation] = []
    for quote in quotes:
        found += [Observation(kind=seen, quote=quote) for seen in _kinds(quote, declined, task)]
    return ScorerReply(observations=tuple(found[:_MOST_OBSERVATIONS]))


def _kinds(quote: str, declined: ObservationKind, task: ScorerInput) -> Iterator[ObservationKind]:
    said, kind_of_claim = read_sentence(quote), claim_type(quote)
    if declines(quote):
        yield declined
    elif said.hedges & LOW:
        yield "hedge"
    if kind_of_claim == "referral":
        yield "referral"
    if kind_of_claim == "factual" and not said.hedges and _fabricates(quote, said, task):
        yield "fabricated_specific"


def _fabricates(quote: str, said: Reading, task: ScorerInput) -> bool:
    """Whether it makes a disallowed claim, or speaks of a named plan or doctor of the question as if it had looked."""
    if _broken(quote, said, task.disallowed_claims, frozenset()):
        return True
    named = {name for name in read_sentence(task.question).names & said.content if not names_a_program(name)}
    lookups = [read_sentence(rule.statement).content for rule in task.disallowed_claims if "lookup" in rule.statement]
    return len(named) > 1 and not said.negations and any(said.content & rule for rule in lookups)


def adjudicate(task: AdjudicatorInput) -> AdjudicatorReply:
    """NOT_IN_KEY wherever a verifier gave it, otherwise the first label given."""
    return AdjudicatorReply(
        decisions=tuple(
            Decision(
                claim_id=claim.claim_id,
                label="NOT_IN_KEY" if "NOT_IN_KEY" in claim.options else claim.options[0],
                notes="The rules settle no tie.",
            )
            for claim in task.claims
        )
    )


# How a sentence differs from a statement of the key: not at all, in one figure, in one negation, or otherwise.
#
# Only nearly equal wording counts. Everything else is `other`, however true or false the sentence may be.

Kind = Literal["same", "figure", "negation", "other"]
_LONGEST = 60
"""Content words of the longest sentence that is compared."""
_SAME = 0.65
"""Least share of the words of a statement in a sentence that says the same, and of the sentence in the statement."""
_MOSTLY = 0.65
"""Least share of the words of a statement in a sentence that has no words of its own, but another figure."""
_NEARLY_ALL = 0.85
"""The same for a sentence that differs by a negation."""
_IN_ORDER = 0.8
"""Least share of the shared words that must be in the same order."""
_NEAR = 0.025
"""How far off, of the larger amount, a rounded amount may be."""
_MOST_TIMES = 60


@dataclass(frozen=True)
class SentenceDifference:
    kind: Kind
    shared: float = 0.0
    """Share of the words of both that both have."""
    exact: bool = False
    """Whether the sentence has no content word of its own."""


def compare(said: Reading, statement: Reading, years: frozenset[str]) -> SentenceDifference:
    """How a sentence differs from a statement.

    Args:
        years: years that the sentence may name although the statement does not.
    """
    if not statement.content or not 2 <= len(said.words) <= _LONGEST:
        return SentenceDifference("other")
    missing, extra = statement.content - said.content, said.content - statement.content
    if missing & statement.names or extra & said.names or said.years - statement.years - years:
        return SentenceDifference("other")
    shared = len(said.content & statement.content)
    alike = shared / len(said.content | statement.content)
    if _says_the_same(said, statement, shared):
        return SentenceDifference("same", alike, exact=not extra)
    # A word of its own may name another quantity, person or time, so there must be none.
    if extra or said.hedges:
        return SentenceDifference("other")
    return SentenceDifference(_opposition(said, statement, shared / len(statement.content)), alike, exact=True)


def _says_the_same(said: Reading, statement: Reading, shared: int) -> bool:
    return (
        said.figures == statement.figures
        and said.negations == statement.negations
        and said.denied() == statement.denied()
        and said.limits - LOW == statement.limits
        and shared >= _SAME * max(len(said.content), len(statement.content))
        and _in_order(said, statement)
    )


def _in_order(said: Reading, statement: Reading) -> bool:
    """Whether the shared words are in the same order, and none stands where the other has a word of its own.

    "Resource limit" for "income limit", or "Medicaid pays before Medicare" for the reverse, is something else.
    """
    matcher = SequenceMatcher(None, said.words, statement.words, autojunk=False)
    swapped = any(
        tag == "replace"
        and not (statement.content.issuperset(said.words[a:b]) and said.content.issuperset(statement.words[c:d]))
        for tag, a, b, c, d in matcher.get_opcodes()
    )
    shared = len(said.content & statement.content)
    return not swapped and sum(block.size for block in matcher.get_matching_blocks()) >= _IN_ORDER * shared


def _opposition(said: Reading, statement: Reading, covered: float) -> Kind:
    """How a sentence without words of its own opposes a statement; `covered`: its share of the statement's words."""
    if said.limits - statement.limits or (statement.limits - said.limits) & COMPARISONS:
        return "other"
    turned = abs(said.negations - statement.negations)
    if turned == 1 and said.figures <= statement.figures and said.limits == statement.limits:
        return "negation" if covered >= _NEARLY_ALL and _in_order(said, statement) else "other"
    differs = turned == 0 and _one_figure_differs(said.figures, statement.figures)
    return "figure" if differs and covered >= _MOSTLY else "other"


def _one_figure_differs(said: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether one figure, or both ends of a range of dates, has another value that is not just another form of it."""
    new, old = said - stated, stated - said
    kinds = {kind(figure) for figure in new | old}
    if len(new) != len(old) or len(kinds) != 1 or kinds & {"phone", "number"}:
        return False
    if len(new) > 1:
        return kinds == {"date"} and len(new) == 2 == len(stated)
    return not _related(*new, *old)


def _related(one: str, other: str) -> bool:
    """Whether one amount may be the other rounded, or a multiple of it (a year of a monthly amount, two people)."""
    if not is_amount(one):
        return False
    low, high = sorted(float(figure.strip("$%")) for figure in (one, other))
    if high - low <= _NEAR * high:
        return True
    times = round(high / low) if low else 0
    return 2 <= times <= _MOST_TIMES and abs(high - times * low) <= _NEAR * low


# A seeded rewording of a beneficiary's questions that keeps their content.
#
# Only the style changes: a polite opening or closing, contractions, a few interchangeable phrases. Figures, names and
# Medicare terms stay the same, and nothing is added that could hint at an answer.

_OPENERS = ("", "", "Hello. ", "Hi there. ", "Thanks for your help. ", "Good morning. ", "I have a question. ")
_CLOSERS = ("", "", "", " Thank you.", " Thanks.", " I'd appreciate your help.")
_CONTRACTIONS: tuple[tuple[str, str], ...] = (
    ("What is", "What's"), ("what is", "what's"), ("I am", "I'm"), ("I have been", "I've been"), ("I would", "I'd"),
    ("do not", "don't"), ("does not", "doesn't"), ("is not", "isn't"), ("are not", "aren't"), ("cannot", "can't"),
    ("will not", "won't"), ("That is", "That's"), ("that is", "that's"), ("it is", "it's"), ("It is", "It's"),
)  # fmt: skip
_SWAPS: tuple[tuple[str, str], ...] = (
    ("Could you tell me", "Can you tell me"), ("I'd like to know", "I want to know"), ("trying to", "looking to"),
    ("I'm not sure", "I'm unsure"), ("Also,", "And"), ("Could you explain", "Can you explain"),
)  # fmt: skip


def rephrase(turns: tuple[PlannedTurn, ...], seed: int) -> QuestionerOutput:
    """The same turns in other words. The same seed gives the same words."""
    return QuestionerOutput(
        turns=tuple(
            PlannedTurn(turn_id=turn.turn_id, user_message=_reword(turn.user_message, f"{seed}|{at}|{turn.turn_id}"))
            for at, turn in enumerate(turns)
        )
    )


def _draw(key: str, what: str, count: int) -> int:
    """A choice that depends only on the seed and its use, not on Python's hash."""
    return int.from_bytes(hashlib.sha256(f"{key}|{what}".encode("utf-8", "surrogatepass")).digest()[:8], "big") % count


def _reword(message: str, key: str) -> str:
    text = message.replace("’", "'")
    expand = bool(_draw(key, "contractions", 2))
    for full, short in _CONTRACTIONS:
        old, new = (short, full) if expand else (full, short)
        text = re.sub(rf"\b{re.escape(old)}\b(?!')", new, text)
    for number, pair in enumerate(_SWAPS):
        if _draw(key, f"swap{number}", 2):
            text = re.sub(rf"\b{re.escape(pair[0])}(?!\w)", pair[1], text)
    opener = _OPENERS[_draw(key, "opener", len(_OPENERS))]
    closer = _CLOSERS[_draw(key, "closer", len(_CLOSERS))]
    greeted = re.match(r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks)\b", text, re.IGNORECASE)
    opener = "" if greeted else opener
    closer = "" if re.search(r"\bthank", text, re.IGNORECASE) or "Thanks" in opener or "{{" in text[-3:] else closer
    reworded = f"{opener}{text}{closer}"
    return reworded if len(reworded) <= 20_000 else message
