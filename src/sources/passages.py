"""What a page says about a statement: whether it states its figures, and the passage that is about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ..records.citation import FigureFinding
from ..text.figures import Figure, figures, find_figures, fold, kind
from ..text.quantities import says_as_much
from ..text.quantity_words import single_times
from ..text.retrieval import terms
from ..text.sentences import Span, sentences

PASSAGE = 2_400
"""Characters of a passage, about a long paragraph for each of the best places; a shorter page is shown whole."""
_FIGURE_WEIGHT = 2.0
"""A shared figure says more than a shared word."""
_NEIGHBOR = 0.5
"""How much of its score a sentence lends to the one before and after it: what it means is often said there."""
_GAP = " [...] "
_NUMBERED = re.compile(
    r"\b(day|week|month|year)s? ([0-9]{1,4})(?: ?(?:-|to|through|and) ?([0-9]{1,4}))?\b", re.IGNORECASE
)


def figure_findings(statement: str, page_text: str, given: Sequence[str] = ()) -> tuple[FigureFinding, ...]:
    """Each figure of a statement, and whether the page states it or an equal quantity.

    A calendar year counts only if the statement has no other figure: pages often give the year in a heading, or not
    at all, and which year a figure is of is for the support check. Small numbers in words ("two ways") do not count.

    Args:
        statement: what the page is cited for.
        page_text: the whole text of the page.
        given: texts whose figures the page need not state: the question, and what is known about the person.

    Example:
        >>> figure_findings("Part B costs $202.90 a month in 2026.", "The premium is $202.90 per month.")
        (FigureFinding(figure='$202.90', on_page=True),)
    """
    found = (figure for figure in find_figures(statement) if not _is_count(figure, statement))
    tokens = dict.fromkeys(figure.token for figure in found)
    unknown = [token for token in tokens if not any(says_as_much(token, statement, text) for text in given)]
    telling = [token for token in unknown if not _is_year(token)] or unknown
    stated = single_times(page_text) | _numbered(page_text)
    return tuple(
        FigureFinding(figure=one, on_page=one in stated or says_as_much(one, statement, page_text)) for one in telling
    )


@lru_cache(maxsize=256)
def _numbered(text: str) -> frozenset[str]:
    """Durations that a page gives as numbers of days ("days 21-100"), and numbers that it gives with a unit."""
    found = {
        f"{number} {match[1].lower()}s" for match in _NUMBERED.finditer(fold(text)) for number in match.groups()[1:]
    }
    return frozenset(found) | {f"n{token.partition(' ')[0]}" for token in figures(text) if " " in token}


def _is_count(figure: Figure, text: str) -> bool:
    return kind(figure.token) == "number" and not re.search("[0-9]", text[figure.start : figure.end])


def _is_year(token: str) -> bool:
    return kind(token) == "year" and " " not in token


def passage_for(statement: str, page_text: str, limit: int = PASSAGE) -> str:
    """The sentences of a page that share most with a statement, with those around them, in the order of the page."""
    if len(page_text) <= limit:
        return page_text
    spans = _pieces(page_text, limit)
    scores = _scores(statement, page_text, spans)
    lent = [
        score + _NEIGHBOR * max([*scores[max(0, place - 1) : place], *scores[place + 1 : place + 2]], default=0.0)
        for place, score in enumerate(scores)
    ]
    chosen: set[int] = set()
    left = limit
    for place in sorted(range(len(spans)), key=lambda place: (-lent[place], place)):
        size = spans[place].end - spans[place].start + len(_GAP)
        if size <= left and lent[place] > 0:
            chosen.add(place)
            left -= size
    return _joined(page_text, spans, sorted(chosen)) if chosen else page_text[:limit]


def _pieces(text: str, limit: int) -> list[Span]:
    """Sentences; one that is too long for a passage is cut into parts."""
    step = limit // 3
    return [
        Span(start, min(start + step, span.end))
        for span in sentences(text)
        for start in range(span.start, span.end, step)
    ]


def _scores(statement: str, text: str, spans: Sequence[Span]) -> list[float]:
    """How much each sentence shares with the statement; a term counts the more, the fewer sentences have it."""
    wanted = terms(statement)
    held = [terms(text[span.start : span.end]) & wanted for span in spans]
    counts = Counter(term for one in held for term in one)
    weights = {term: math.log(1 + len(spans) / count) for term, count in counts.items()}
    numbers = {figure.token for figure in find_figures(statement)}
    scores = [sum(weights[term] * (_FIGURE_WEIGHT if term in numbers else 1.0) for term in sorted(one)) for one in held]
    elsewhere = [token for token in numbers if token not in counts and not _is_year(token)]
    for place, span in enumerate(spans if elsewhere else ()):
        if scores[place] or len(spans) < 1_000:
            same = sum(says_as_much(token, statement, text[span.start : span.end]) for token in elsewhere)
            scores[place] += same * _FIGURE_WEIGHT * math.log(1 + len(spans))
    return scores


def _joined(text: str, spans: Sequence[Span], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    for number, place in enumerate(chosen):
        if number:
            follows = place == chosen[number - 1] + 1
            parts.append(text[spans[place - 1].end : spans[place].start] or " " if follows else _GAP)
        parts.append(text[spans[place].start : spans[place].end])
    return "".join(parts)
