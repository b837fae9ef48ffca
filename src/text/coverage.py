"""Which sentences of a reply no claim covers, and which state something that a key could check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..records.thresholds import COVERAGE_BELOW
from ..schemas import QuoteSpan
from .figures import figures, find_figures, kind
from .sentences import Span, sentences

_FEWEST_WORDS = 4
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
    """How many sentences say something: all but headings, questions and a word or two."""
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
    taken = sorted((span.start, span.end) for span in checked)
    every = sorted([*taken, *((span.start, span.end) for span in others)])
    found = [span for span in sentences(reply) if not span.heading and _says_something(reply[span.start : span.end])]
    left_out = [
        one for one in found if not _covers(reply, one, taken if is_factual(reply[one.start : one.end]) else every)
    ]
    return Coverage(len(found), tuple(left_out))


def _says_something(sentence: str) -> bool:
    return not _is_question(sentence) and len(sentence.split()) >= _FEWEST_WORDS


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("*_ \"'”’)").endswith("?")


def _covers(reply: str, sentence: Span, taken: Sequence[tuple[int, int]]) -> bool:
    covered = bytearray(sentence.end - sentence.start)
    for start, end in taken:
        low, high = max(start, sentence.start), min(end, sentence.end)
        if low < high:
            covered[low - sentence.start : high - sentence.start] = b"\1" * (high - low)
    text = reply[sentence.start : sentence.end]
    letters = [place for place, char in enumerate(text) if char.isalnum()]
    if 2 * sum(covered[place] for place in letters) < len(letters):
        return False
    figures_in = [figure for figure in find_figures(text) if _is_checkable(figure.token)]
    return all(any(covered[figure.start : figure.end]) for figure in figures_in)
