"""Claims of a reply: one for every main clause, list item and table row, in its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..records.base import ClaimType, Confidence
from ..records.contracts import ExtractorInput, ExtractorReply, QuotedClaim
from ..text.coverage import is_factual, names_a_program
from ..text.figures import figures, find_figures, fold, is_amount, kind
from ..text.patterns import load_words
from ..text.quotes import SHORTEST
from ..text.sentences import clauses, sentences

# What the rules read in a sentence: its content words in order, names, limiting words, negations and figures.
#
# Words are compared by their stems. There are no synonyms: a sentence in other words than the key's is not understood.

_list = str.split
WORDS = load_words(Path(__file__).with_name("words.toml"))
NOT = "not"
NEGATIONS = WORDS["negations"]
LOW = WORDS["low"]
MEDIUM = WORDS["medium"]
COMPARISONS = WORDS["comparisons"]
CONDITIONS = frozenset(_list("if unless when whether while except until only")) | LOW | MEDIUM
"""Words whose scope may be the whole sentence."""
_LIMITS = COMPARISONS | WORDS["limits"]
_QUALIFIERS = _LIMITS | LOW | MEDIUM
_RELATIVE = frozenset(_list("who whose which that where"))
"""A negation soon after one of these is not about the main statement, so it counts as a limit too."""
_SMALL = WORDS["may_be_left_out"]
_WORD = re.compile(r"[^\W\d_]+")
_ENDING = re.compile(r"(?<=[^\W\d_]{3})(?:ments?|ages?|ings?|ies|ied|ed|es|s|e|y|(?<=[^\W\d_]{4})ly)$")
_DOUBLED = re.compile(r"([b-df-hj-np-tv-z])\1$")
_INTRODUCTION = re.compile(r"^[^\w$]*([^\W\d_]+),\s")
_FULL = {"ca": "can", "wo": "will"}
_CONTRACTED = re.compile(r"(?<=[a-z])n't\b|(?<=can)not\b", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    words: tuple[str, ...]
    """Stems of the content words, and `not` for every negation, in order."""
    names: frozenset[str]
    """The stems of the words that are written like names."""
    limits: frozenset[str]
    figures: frozenset[str]
    """Without years, and without 65, an age that is mentioned everywhere."""
    years: frozenset[str]
    hedges: frozenset[str]

    @property
    def content(self) -> frozenset[str]:
        return frozenset(self.words) - {NOT}

    @property
    def negations(self) -> int:
        return self.words.count(NOT)

    def denied(self) -> frozenset[str]:
        """The word that follows each negation."""
        return frozenset(after for word, after in zip(self.words, self.words[1:], strict=False) if word == NOT)


def stem(word: str) -> str:
    """A word without its ending, so that inflections of one word are equal."""
    return _DOUBLED.sub(r"\1", _ENDING.sub("", _ENDING.sub("", word.lower())))


def _tokens(text: str) -> list[str]:
    words = _WORD.findall(_CONTRACTED.sub(" not", text))
    return [_FULL.get(word.lower(), word) for word in words]


def spoken(text: str) -> list[str]:
    """All words in lower case, with contractions written out."""
    return [word.lower() for word in _tokens(fold(text))]


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Read one sentence, without a single word and a comma at its start ("No, ...") unless it limits the sentence."""
    figures = find_figures(text)
    plain = list(fold(text))
    for figure in figures:
        plain[figure.start : figure.end] = " " * (figure.end - figure.start)
    sentence = "".join(plain)
    introduction = _INTRODUCTION.match(sentence)
    if introduction and introduction[1].lower() not in _QUALIFIERS:
        sentence = sentence[introduction.end() :]
    words = _tokens(sentence)
    stems: list[str] = []
    names: set[str] = set()
    limits = {word.lower() for word in words} & _QUALIFIERS
    for place, word in enumerate(words):
        lower = word.lower()
        letter = len(word) == 1 and word.isupper() and lower != "i" and place > 0
        if lower in NEGATIONS:
            stems.append(NOT)
            limits |= _RELATIVE.intersection(map(str.lower, words[max(0, place - 3) : place]))
        elif letter or not (lower in _SMALL or lower in _QUALIFIERS or len(word) == 1):
            stems.append(lower if letter else stem(word))
            if letter or place == 0 or lower != word:
                names.add(stems[-1])
    found = frozenset(figure.token for figure in figures)
    years = frozenset(token for token in found if kind(token) == "year")
    return Reading(
        words=tuple(stems),
        names=frozenset(names),
        limits=frozenset(limits),
        figures=found - years - {"n65"},
        years=years,
        hedges=frozenset(limits & (LOW | MEDIUM)),
    )


MAX_QUOTE = 2_000
"""A longer sentence is not a sentence."""
_MOST_CLAIMS = 1_000
_FEWEST_WORDS = 4
_SEND = frozenset(["call", "contact", "ask", "visit"])
_ADVISE = frozenset(["should", "consider", "recommend", "suggest"])
_DOUBT = frozenset(["myth", "misconception", "wrong", "false", "heard", "told"])
"""Words of a heading whose items it does not mean."""


def extract(task: ExtractorInput) -> ExtractorReply:
    """Every sentence as a claim; if passages were left out, only those."""
    found: list[QuotedClaim] = []
    for passage in _passages(task.reply, task.plan_year):
        quotes, sentence = passage.quotes, passage.quotes[0]
        if task.left_out and not any(sentence in left for left in task.left_out):
            continue
        found.append(
            QuotedClaim(
                claim_id=f"C{len(found) + 1}",
                text=_plain(" ".join(quotes)),
                type=claim_type(sentence),
                confidence=confidence(sentence),
                # Every factual sentence must be checked, also one that advises or refers; see `text.coverage`.
                verifiable=passage.factual or claim_type(sentence) == "factual",
                quotes=quotes,
            )
        )
        if len(found) == _MOST_CLAIMS:
            break
    return ExtractorReply(claims=tuple(found))


class _Passage(NamedTuple):
    quotes: tuple[str, ...]
    """The clause first, then what a reader needs to understand it."""
    factual: bool
    """Whether its sentence must be checked."""


def _passages(reply: str, plan_year: int) -> Iterator[_Passage]:
    """Each clause, with what a reader needs to understand it: a table's header, or a heading that changes it.

    A sentence with a condition, a hedge or another limit is not split: the limit may hold for all of it.
    """
    header = heading = lead = ""
    end, items = 0, 0
    for span in sentences(reply):
        sentence = reply[span.start : span.end]
        if items and "\n\n" in reply[end : span.start]:
            lead = ""
        end = span.end
        if len(sentence) > MAX_QUOTE or sum(map(str.isalnum, sentence)) < SHORTEST:  # "**1." cannot be quoted
            continue
        if span.heading:
            heading, lead = _context(sentence, plan_year), ""
            continue
        for part in [span] if read(sentence).limits & CONDITIONS else clauses(reply, span):
            passage = (reply[part.start : part.end], heading, lead, header if span.row else "")
            yield _Passage(tuple(dict.fromkeys(filter(None, passage))), is_factual(sentence))
        header = (header or sentence) if span.row else ""
        items += 1
        if sentence.rstrip("*_ ").endswith(":"):
            lead, items = _context(sentence, plan_year), 0


def _context(text: str, plan_year: int) -> str:
    """A heading or lead-in, if what follows may be denied or may belong to another year; otherwise nothing."""
    said = read(text)
    denied = said.negations or _DOUBT.intersection(word.rstrip("s") for word in spoken(text))
    return text if denied or said.years - {str(plan_year)} else ""


def _plain(text: str) -> str:
    """Text without Markdown marks and table lines."""
    return " ".join(fold(text).replace("|", " ").split())


def declines(text: str) -> bool:
    """Whether the speaker says what it cannot or will not do or say: "I" and a negation close after it."""
    words = spoken(text)
    return any(NEGATIONS.intersection(words[at : at + 4]) for at, word in enumerate(words) if word == "i")


def has_done(words: list[str]) -> bool:
    """Whether the speaker says what it did: "I checked", "I have checked"."""
    return words[:1] == ["i"] and words[1:2] != [] and (words[1] in ("ve", "have") or words[1].endswith("ed"))


def claim_type(text: str) -> ClaimType:
    """What kind of sentence it is; only factual ones can be checked."""
    words, found = spoken(text), figures(text)
    start = set(words[:4])
    amount = any(map(is_amount, found))
    if text.rstrip("*_ \"'”’)").endswith("?") or (declines(text) and not amount):
        return "other"
    if _SEND & start or (any(kind(figure) == "phone" for figure in found) and not amount):
        return "referral"
    if _ADVISE & start:
        return "recommendation"
    rule = names_a_program(text) and len(words) >= _FEWEST_WORDS
    return "factual" if rule or is_factual(text) or has_done(words) else "other"


def confidence(text: str) -> Confidence:
    """How sure the sentence sounds."""
    words = set(spoken(text))
    return "low" if words & LOW or declines(text) else "medium" if words & MEDIUM else "high"
