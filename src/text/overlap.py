"""Whether two texts share words: a coarse check by code that no instruction in a text can influence.

Words are compared by their first letters and without common endings, so inflections match; function words do not
count. Text in a language other than English always passes: its words could not match the key's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from .figures import figures

_STEM = 5
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s)$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_list = str.split
_SMALL = frozenset(
    _list(
        "the a an and or but if of to in on at by for with from as is are was were be been being it its this "
        "that these those you your yours he she they them their we our us i me my not no nor do does did done "
        "have has had having will would can could may might must should shall than then so such also only "
        "just very more most some any all each every both there here what which who whom whose when where why "
        "how about into over under out up down again once because while during until before after between "
        "through against per one"
    )
)
ENOUGH = 0.3
"""Share of a claim's words that must occur in its quotes or in the question."""
TOPIC_SHARE = 0.3
TOPIC_WORDS = 3
_ENGLISH = 0.1
_ENGLISH_ONLY = frozenset(_list("the and of to is are you your with that this for if it or be not can may will have"))


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """The stems of the words that count."""
    found = (word.lower() for word in _WORD.findall(text))
    return frozenset(_ENDING.sub("", word)[:_STEM] for word in found if word not in _SMALL)


def is_english(text: str) -> bool:
    """Whether enough words are English function words; short texts count as English."""
    found = [word.lower() for word in _WORD.findall(text)]
    return len(found) < 6 or sum(word in _ENGLISH_ONLY for word in found) >= _ENGLISH * len(found)


def shares_enough_words(sources: Iterable[str], claim: str) -> bool:
    """Whether enough of a claim's words occur in its sources."""
    listed = list(sources)
    wanted = words(claim)
    known = frozenset[str]().union(*map(words, listed))
    return not wanted or len(wanted & known) >= ENOUGH * len(wanted) or not is_english(listed[0] if listed else "")


def on_topic(texts: Sequence[str], statement: str) -> bool:
    """Whether a claim is about what a fact is about: enough of their words, or of their figures, are the same.

    Args:
        texts: The claim's text and its quotes.
        statement: The fact.
    """
    said, stated = _words_and_figures(texts), _words_and_figures((statement,))
    shared = len(said & stated)
    smaller = min(len(said), len(stated))
    enough = shared >= TOPIC_WORDS or (shared > 1 and shared >= TOPIC_SHARE * smaller) or 0 < smaller == shared
    return enough or not is_english(" ".join(texts))


def _words_and_figures(texts: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(words(text) | figures(text) for text in texts))


def shares_a_word(quotes: Iterable[str], statement: str) -> bool:
    """Whether quotes and a statement share at least one word that counts, or a figure."""
    listed = list(quotes)
    said = frozenset[str]().union(*map(words, listed))
    stated = frozenset[str]().union(*map(figures, listed))
    return bool(said & words(statement) or stated & figures(statement)) or not is_english(" ".join(listed))
