"""Which sentences of a reply state something that a key could check, and which of them no claim covers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..records.thresholds import COVERAGE_BELOW
from .figures import figures, kind
from .sentences import Span, sentences

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
    """How many sentences state something checkable."""
    covered: int
    left_out: tuple[str, ...]

    @property
    def enough(self) -> bool:
        return self.covered >= COVERAGE_BELOW * self.sentences


def is_factual(sentence: str) -> bool:
    """Whether a sentence states a fact: it has an amount, a date or a duration, or a rule about a program."""
    if sentence.rstrip("*_ \"'”’)").endswith("?"):
        return False
    found = figures(sentence)
    if any(kind(figure) in _CHECKABLE_KINDS or " " in figure for figure in found):
        return True
    return bool(_PROGRAM.search(sentence) and _RULE.search(sentence)) and len(sentence.split()) >= 4


def factual_sentences(reply: str) -> list[Span]:
    return [span for span in sentences(reply) if not span.heading and is_factual(reply[span.start : span.end])]


def coverage(reply: str, spans: Iterable[tuple[int, int]]) -> Coverage:
    """How many factual sentences overlap with these spans of the reply."""
    taken = sorted(spans)
    found = factual_sentences(reply)
    left = [one for one in found if not any(start < one.end and one.start < end for start, end in taken)]
    return Coverage(len(found), len(found) - len(left), tuple(reply[one.start : one.end] for one in left))
