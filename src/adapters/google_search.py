"""Gemini's Google Search: what a reply says of searches and sources. Addresses are redirects, kept as they are."""

from __future__ import annotations

from typing import Any

from ..records.target import WebCitation, WebSearch
from .http import inner_object, text_of
from .web_search import LONGEST_URL, Span, citation, objects, texts

_TOOL_FAILED = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"}
)
"""Finish reasons of a reply that ended in a search."""


def read_search(candidate: dict[str, Any]) -> WebSearch:
    """What was searched for a reply."""
    grounding = inner_object(candidate, "groundingMetadata")
    queries = grounding.get("webSearchQueries")
    asked = [query for query in (queries if isinstance(queries, list) else ()) if isinstance(query, str) and query]
    pages = [inner_object(chunk, "web") for chunk in objects(grounding.get("groundingChunks"))]
    stop = text_of(candidate, "finishReason")
    return WebSearch(
        searches=len(asked),
        queries=texts(asked),
        found=texts((page.get("uri") for page in pages), longest=LONGEST_URL),
        citations=tuple(_citations(candidate, grounding, pages)),
        errors=(stop,) if stop in _TOOL_FAILED else (),
    )


def _citations(candidate: dict[str, Any], grounding: dict[str, Any], pages: list[dict[str, Any]]) -> list[WebCitation]:
    parts = _Parts(objects(inner_object(candidate, "content").get("parts")))
    found: list[WebCitation] = []
    for support in objects(grounding.get("groundingSupports")):
        span = parts.span(inner_object(support, "segment"))
        numbers = support.get("groundingChunkIndices")
        for number in numbers if isinstance(numbers, list) else ():
            if type(number) is int and 0 <= number < len(pages):
                one = citation(pages[number].get("uri"), title=pages[number].get("title"), span=span)
                found += [one] if one else []
    return found


class _Parts:
    """The parts of a reply, to find places that are counted in bytes of one of them."""

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self._starts: list[int | None] = []
        self._texts: list[str] = []
        at = 0
        for part in parts:
            text = text_of(part, "text") or ""
            shown = part.get("thought") is not True
            self._starts.append(at if shown else None)
            self._texts.append(text)
            at += len(text) if shown else 0

    def span(self, segment: dict[str, Any]) -> Span | None:
        """A place in characters of the whole reply; None if it is not where its words are."""
        number, start, end = (segment.get(name, 0) for name in ("partIndex", "startIndex", "endIndex"))
        if not all(type(value) is int and value >= 0 for value in (number, start, end)) or end <= start:
            return None
        words = text_of(segment, "text")
        others = [place for place in range(len(self._texts)) if place != number] if words else []
        for place in (number, *others):
            found = self._in_part(place, start, end, words)
            if found:
                return found
        return None

    def _in_part(self, number: int, start: int, end: int, words: str | None) -> Span | None:
        at = self._starts[number] if number < len(self._starts) else None
        if at is None:
            return None
        data = self._texts[number].encode()
        try:
            before, inside = data[:start].decode(), data[start:end].decode()
        except UnicodeDecodeError:  # in the middle of a character
            return None
        if end > len(data) or (words is not None and inside != words):
            return None
        return Span(at + len(before), at + len(before) + len(inside))
