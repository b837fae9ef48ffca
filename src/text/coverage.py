"""Which sentences of a reply no claim covers, and which state something that a key could check."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import or_

from ..records.thresholds import COVERAGE_BELOW
from ..schemas import QuoteSpan
from .figures import figures, find_figures, kind
from .sentences import Span, sentences

_FEWEST_WORDS = 4
_IN_BOLD = re.compile(r"(\*\*|__)[^*_]+\1[.:]?")
_CHECKABLE_KINDS = frozenset({"money", "percent", "date"})
_PROGRAM = re.compile(
    r"\b(?:medicare|medicaid|medigap|medi-cal|parts?\s+[abcd]|qmb|slmb|qi|qdwi|irmaa|cobra|hmos?|ppos?|d-?snps?|"
    r"extra\s+help|low[- ]income\s+subsidy|savings\s+programs?|advantage|social\s+security|open\s+enrollment|"
    r"enrollment\s+periods?|premiums?|deductibles?|coinsurance|copays?|copayments?|penalt(?:y|ies)|coverage|insurers?|"
    r"policy|policies|plans?|benefits?|networks?|covered|enroll(?:ed|ing|s)?|"
    r"prima|deducible|cobertura|seguro|inscripci[oó]n)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must|may|can(?:not|['’]t)?|will|won['’]t|need(?:s|n['’]t)?|requires?|required|has to|have to|never|always|"
    r"only|is|are|isn['’]t|aren['’]t|was|covers?|covered|pays?|costs?|starts?|begins?|ends?|lasts?|runs?|applies|apply|"
    r"limits?|limited|includes?|charges?|bills?|qualif(?:y|ies)|eligible|automatic(?:ally)?|allows?|does|do|doesn['’]t|"
    r"don['’]t|have|has|gets?|keeps?|loses?|adds?|es|son|debe|puede|cubre|paga|tiene|ofrece)\b",
    re.IGNORECASE,
)


def names_a_program(text: str) -> bool:
    return _PROGRAM.search(text) is not None


@dataclass(frozen=True)
class Coverage:
    sentences: int
    """How many sentences say something: all but headings, lead-ins, questions and fragments."""
    left_out: tuple[Span, ...]
    """Those that no claim covers."""

    @property
    def covered(self) -> int:
        return self.sentences - len(self.left_out)

    @property
    def enough(self) -> bool:
        return self.covered >= COVERAGE_BELOW * self.sentences


def is_factual(sentence: str) -> bool:
    """Whether a sentence states a fact: it has an amount, a date or a duration, or a rule about a program."""
    if _is_question(sentence):
        return False
    if any(map(_is_checkable, figures(sentence))):
        return True
    return bool(_PROGRAM.search(sentence) and _RULE.search(sentence)) and len(sentence.split()) >= _FEWEST_WORDS


def _is_checkable(figure: str) -> bool:
    """Money, a percentage, a date or a duration."""
    return kind(figure) in _CHECKABLE_KINDS or " " in figure


def factual_sentences(reply: str) -> list[Span]:
    return [span for span in sentences(reply) if not span.heading and is_factual(reply[span.start : span.end])]


def coverage(reply: str, checked: Iterable[QuoteSpan], others: Iterable[QuoteSpan]) -> Coverage:
    """Which sentences the quotes of claims cover: at least half of the letters, and every checkable figure.

    A factual sentence must be covered by claims that are checked; for any other, a claim of any kind is enough.
    """
    in_checked = _places(reply, checked)
    in_any = _places(reply, others, in_checked)
    found = [span for span in sentences(reply) if not span.heading and _says_something(reply[span.start : span.end])]
    left_out = []
    for one in found:
        text = reply[one.start : one.end]
        places = in_checked if is_factual(text) else in_any
        if not _covers(text, places[one.start : one.end]):
            left_out.append(one)
    return Coverage(len(found), tuple(left_out))


def _places(reply: str, spans: Iterable[QuoteSpan], known: bytes = b"") -> bytes:
    """One byte per character of the reply: 1 where a span, or `known`, covers it."""
    starts = [0] * (len(reply) + 1)
    for span in spans:
        starts[span.start] += 1
        starts[span.end] -= 1
    covered = bytes(depth > 0 for depth in accumulate(starts))
    return bytes(map(or_, covered, known)) if known else covered


def _says_something(sentence: str) -> bool:
    """Whether a sentence says something; a question, a fragment, a line in bold and a lead-in to a list do not."""
    if _is_question(sentence) or len(sentence.split()) < _FEWEST_WORDS:
        return False
    return is_factual(sentence) or not (sentence.rstrip("*_ ").endswith(":") or _IN_BOLD.fullmatch(sentence))


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ \"'”’)").endswith("?")


def _covers(text: str, covered: bytes) -> bool:
    letters = [place for place, char in enumerate(text) if char.isalnum()]
    if 2 * sum(covered[place] for place in letters) < len(letters):
        return False
    stated = [figure for figure in find_figures(text) if _is_checkable(figure.token)]
    return all(any(covered[figure.start : figure.end]) for figure in stated)
