"""Claude's web search: the tool in a request, and what a reply says of searches and sources."""

from __future__ import annotations

from typing import Any

from ..records.target import SearchOptions, WebCitation, WebSearch
from .http import count_of, inner_object, text_of
from .web_search import LONGEST_URL, SearchTool, Span, citation, objects, texts

FIRST_VERSION = "web_search_20250305"


def search_tool(tool: SearchTool, search: SearchOptions) -> dict[str, Any]:
    made: dict[str, Any] = {"type": tool.version, "name": "web_search", "max_uses": search.max_searches}
    if tool.version != FIRST_VERSION:
        # Not through code that filters results: what a model read is then in the response, whichever model it is.
        made["allowed_callers"] = ["direct"]
    if search.allowed_domains:
        made["allowed_domains"] = list(search.allowed_domains)
    if search.blocked_domains:
        made["blocked_domains"] = list(search.blocked_domains)
    if search.country:
        made["user_location"] = {"type": "approximate", "country": search.country}
    return made


def read_search(payload: dict[str, Any], blocks: list[dict[str, Any]]) -> WebSearch:
    """What was searched for a reply; a citation backs the text block that it comes with."""
    asked = [block for block in blocks if block.get("type") == "server_tool_use" and block.get("name") == "web_search"]
    results = [block.get("content") for block in blocks if block.get("type") == "web_search_tool_result"]
    used = inner_object(inner_object(payload, "usage"), "server_tool_use")
    billed = count_of(used, "web_search_requests")
    return WebSearch(
        searches=len(asked) if billed is None else billed,
        queries=texts(inner_object(block, "input").get("query") for block in asked),
        found=texts((one.get("url") for result in results for one in objects(result)), longest=LONGEST_URL),
        citations=tuple(_citations(blocks)),
        errors=tuple(_error(result) for result in results if isinstance(result, dict)),
    )


def _citations(blocks: list[dict[str, Any]]) -> list[WebCitation]:
    found: list[WebCitation] = []
    at = 0
    for block in blocks:
        if block.get("type") != "text":
            continue
        place = Span(at, at + len(text_of(block, "text") or ""))
        at = place.end
        for one in objects(block.get("citations")):
            if one.get("type") == "web_search_result_location":
                made = citation(one.get("url"), title=one.get("title"), cited_text=one.get("cited_text"), span=place)
                found += [made] if made else []
    return found


def _error(result: dict[str, Any]) -> str:
    return text_of(result, "error_code") or "unknown error"
