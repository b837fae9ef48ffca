"""What the rules read in a sentence: its content words in order, names, limiting words, negations and figures.

Words are compared by their stems. There are no synonyms: a sentence in other words than the key's is not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..text.figures import find_figures, fold, kind

_list = str.split
NOT = "not"
NEGATIONS = frozenset(_list("not no never nothing none nor neither nobody without"))
LOW = frozenset(_list("might could perhaps possibly probably maybe believe think guess"))
"""Words of a speaker who is not sure."""
MEDIUM = frozenset(_list("may usually generally often typically sometimes likely some most many several depends"))
COMPARISONS = frozenset(_list("above below over under between least most more less fewer higher lower up"))
CONDITIONS = frozenset(_list("if unless when whether while except until only")) | LOW | MEDIUM
"""Words whose scope may be the whole sentence."""
_LIMITS = COMPARISONS | frozenset(
    _list(
        "all any every everyone always only must can should entire whole if unless when whether while except until "
        "before after was were had used previously"
    )
)
"""Words that widen or narrow a statement, or move it to another time. Two statements must share all of them."""
_QUALIFIERS = _LIMITS | LOW | MEDIUM
_RELATIVE = frozenset(_list("who whose which that where"))
"""A negation soon after one of these is not about the main statement, so it counts as a limit too."""
_SMALL = frozenset(
    _list(
        "the a an and or but of to through in on at by for with from as is are be been being am it its this that these "
        "those which who whose what there here you your yours he she him her his they them their we our us i me my one "
        "s ll re ve d do does did done have has having will would so such also then than just too very still per each "
        "person people someone anyone individual beneficiary beneficiaries medicare yes called"
    )
)
"""Words that may be left out. Medicare is what every sentence is about."""
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
