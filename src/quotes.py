"""Finding a quote in a reply: exactly, or after folding typography, or not at all.

A judge that quotes "don't" where the reply has a curly apostrophe has quoted it; one that changes a word has not. The
folded match is labelled so, and its span still points into the reply as written.
"""

from __future__ import annotations

from .schemas import QuoteSpan

_FOLDS = {
    **dict.fromkeys("‘’‛ʼ`´", "'"),
    **dict.fromkeys("“”„‟«»", '"'),
    **dict.fromkeys("‐‑‒–—−", "-"),
    "…": "...",
    **dict.fromkeys("*_#\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # markdown marks and invisible characters
}


def _fold(text: str) -> tuple[str, list[int]]:
    """Folded text, and for each of its characters the place it came from."""
    out: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        folded = " " if char.isspace() else _FOLDS.get(char, char)
        if folded == " " and out and out[-1] == " ":
            continue
        for piece in folded:
            out.append(piece)
            places.append(place)
    return "".join(out), places


def find_quote(reply: str, quote: str) -> QuoteSpan | None:
    """Where the quote stands in the reply, or None where it does not."""
    if not quote.strip():
        return None
    start = reply.find(quote)
    if start >= 0:
        return QuoteSpan(start=start, end=start + len(quote))
    folded_reply, places = _fold(reply)
    folded_quote = _fold(quote)[0].strip()
    start = folded_reply.find(folded_quote) if folded_quote else -1
    if start < 0:
        return None
    return QuoteSpan(start=places[start], end=places[start + len(folded_quote) - 1] + 1, match="typographic")
