"""Find a quote in a reply: exactly, or after folding typography, or not at all.

A judge that quotes "don't" has quoted a reply with a curly apostrophe; a judge that changes a word has not. A match
after folding is marked "typographic", and its span still points into the reply as written.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from ..schemas import QuoteSpan

SHORTEST = 2
"""Letters or digits that a quote must have; a single letter occurs in every reply."""
_FOLDS = {
    **dict.fromkeys("‘’‛ʼ`´", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    "…": "...",
    **dict.fromkeys("*_#\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # Markdown marks and invisible characters
}


@lru_cache(maxsize=256)
def _fold(text: str) -> tuple[str, tuple[int, ...]]:
    """The folded text, and the original position of each of its characters."""
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        folded = " " if char.isspace() else _FOLDS.get(char, char)
        if folded == " " and out and out[-1] == " ":
            continue
        for piece in folded:
            out.append(piece)
            places.append(place)
    return "".join(out), tuple(places)


def find_quote(reply: str, quote: str) -> QuoteSpan | None:
    """Where the quote is in the reply, or None."""
    if len(list(islice(filter(str.isalnum, quote), SHORTEST))) < SHORTEST:
        return None
    start = _find_whole(reply, quote)
    if start >= 0:
        return QuoteSpan(start=start, end=start + len(quote))
    folded_reply, places = _fold(reply)
    folded_quote = fold(quote).strip()
    start = _find_whole(folded_reply, folded_quote) if folded_quote else -1
    if start < 0:
        return None
    return QuoteSpan(start=places[start], end=places[start + len(folded_quote) - 1] + 1, match="typographic")


def fold(text: str) -> str:
    """Text with plain typography."""
    return _fold(text)[0]


def _find_whole(reply: str, quote: str) -> int:
    """The first position of the quote as whole words and numbers (not "covered" in "uncovered"), or -1."""
    start = reply.find(quote)
    while start >= 0:
        end = start + len(quote)
        if not _continues(reply[max(0, start - 2) : start][::-1], quote[0]) and not _continues(
            reply[end : end + 2], quote[-1]
        ):
            return start
        start = reply.find(quote, start + 1)
    return -1


def _continues(beyond: str, edge: str) -> bool:
    """Whether the word or number at the edge of a quote continues; `beyond` is read away from the quote."""
    if not beyond or not edge.isalnum():
        return False
    if beyond[0].isalnum():
        return True
    return edge.isdigit() and beyond[0] in ".," and beyond[1:2].isdigit()
