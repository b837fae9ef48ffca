"""Whether two texts share words: a coarse check by code that no instruction in a text can influence.

Words are compared by their first letters and without common endings, so inflections match; function words do not
count. Text in a language other than English always passes: its words could not match the key's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .figures import figures
from .patterns import WORDS
from .quantities import says_as_much

_STEM = 5
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s)$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SMALL = WORDS["function_words"]
ENOUGH = 0.3
"""Share of a claim's words that must occur in its quotes or in the question."""
KNOWN_SHARE = 0.35
"""Share of a claim's words and figures that the key and the question must know for a fact to support it. It must also
share a word or a figure with the facts cited: two, as it once was, refuses people who say it in their own words."""
_ENGLISH = 0.1
_FEW_LETTERS = 6
_FOREIGN_LETTERS = 0.3
_ENGLISH_ONLY = WORDS["english_only"]
_FOREIGN_ONLY = WORDS["foreign_only"]


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The stems of the words that count."""
    found = (word.lower() for word in _WORD.findall(text))
    return frozenset(_ENDING.sub("", word)[:_STEM] for word in found if word not in _SMALL)


@lru_cache(maxsize=4096)
def is_english(text: str) -> bool:
    """False if many letters are not ASCII, or if it has words of other languages and hardly any English ones."""
    found = [word.lower() for word in _WORD.findall(text)]
    letters = "".join(found)
    accented = sum(not letter.isascii() for letter in letters)
    if len(letters) >= _FEW_LETTERS and accented > _FOREIGN_LETTERS * len(letters):
        return False
    if sum(word in _ENGLISH_ONLY for word in found) >= _ENGLISH * len(found):
        return True
    # One sign is not enough: Los Angeles, Peña.
    return accented + sum(word in _FOREIGN_ONLY for word in found) <= 1


def shares_enough_words(sources: Sequence[str], claim: str) -> bool:
    """Whether enough of a claim's words occur in its sources, the first of which is a quote; figures count as words.

    A claim that is not in the language of its quote passes: its words cannot be the quote's.
    """
    wanted = words(claim)
    known = frozenset[str]().union(*map(words, sources))
    figures_known = figures(claim).intersection(frozenset[str]().union(*map(figures, sources)))
    if not wanted or len(wanted & known) + len(figures_known) >= ENOUGH * len(wanted):
        return True
    return bool(sources) and not (is_english(sources[0]) and is_english(claim))


def share_of(text: str, statements: Sequence[str]) -> float:
    """Which share of a text's words and figures occurs in the statements; an equal quantity counts as the figure."""
    size = len(words(text)) + len(figures(text))
    return (_shared_words(text, statements) + _shared_figures(text, statements)) / size if size else 0.0


def _shared_words(text: str, statements: Sequence[str]) -> int:
    return len(words(text) & _words_of_all(tuple(statements)))


@lru_cache(maxsize=256)
def _words_of_all(statements: tuple[str, ...]) -> frozenset[str]:
    return frozenset[str]().union(*map(words, statements))


def _shared_figures(text: str, statements: Sequence[str]) -> int:
    """How many figures of the statements the text states, but no more than it has: the search ends there."""
    most = len(figures(text))
    same: set[str] = set()
    for statement in statements if most else ():
        for figure in figures(statement):
            if figure not in same and says_as_much(figure, statement, text):
                same.add(figure)
                if len(same) == most:
                    return most
    return len(same)


def could_rest_on(texts: Sequence[str], cited: Sequence[str], known: Sequence[str]) -> bool:
    """Whether facts could support a claim: it is about what the key is about, and about what these facts are about.

    Args:
        texts: The claim's text and its quotes; one that passes is enough. Texts that are not in English always pass.
        cited: The facts that are cited for it.
        known: Everything that the judge is shown beside the claim: all facts and the question.
    """
    everything = (*known, *cited)
    for text in texts:
        if _reaches(text, cited, 0.0) and _reaches(text, everything, KNOWN_SHARE):
            return True
    return not is_english(" ".join(texts))


def _reaches(text: str, statements: Sequence[str], share: float) -> bool:
    """Whether something, and at least this share, of a text occurs in the statements. Figures only if they decide."""
    found, most = _shared_words(text, statements), len(figures(text))
    size = len(words(text)) + most
    if not found + most or (found + most) / size < share:
        return False
    if found and found / size >= share:
        return True
    found += _shared_figures(text, statements)
    return found > 0 and found / size >= share
