"""Whether two statements say the same: the same words, figures and negations, in the same order.

Only words that English can leave out without another sense are ignored, and only the endings of plurals. So "Medicare
pays before Medicaid" differs from its reverse, "may" from "must", and one amount from another. Whoever says the same in
other words is not recognized here: the extractor is asked to see that.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .figures import find_figures, fold
from .patterns import WORDS

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|[0-9]+")
_PLURAL = re.compile(r"(?<=[^\W\d_]{2})(?<!s)s$")
_IGNORED = WORDS["left_out_without_another_sense"]
Assertion = tuple[str, ...]
"""What a text says, for comparison with others."""
FEWEST = 4
"""Words and figures from which a text says enough to be compared without the text around it."""


@lru_cache(maxsize=8_192)
def assertion(text: str) -> Assertion:
    """The words that count and the figures of a text, normalized, in order."""
    figures = find_figures(text)
    plain = fold(text).lower()
    found = [(figure.start, figure.token) for figure in figures]
    at = 0
    for figure in (*figures, None):
        end = figure.start if figure else len(plain)
        for match in _WORD.finditer(plain, at, max(at, end)):
            found += [(match.start(), word) for word in _words(match.group()) if word not in _IGNORED]
        at = max(at, figure.end) if figure else end
    return tuple(token for _, token in sorted(found, key=lambda one: one[0]))


def _words(word: str) -> list[str]:
    """A word without its ending; a contraction as what it is short for."""
    if word == "cannot":
        return ["can", "not"]
    if word.endswith("n't"):
        return [{"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
    stem, _, _ = word.partition("'")
    return [_PLURAL.sub("", stem)]
