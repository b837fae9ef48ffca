"""The Responses API of OpenAI and xAI, in which alone their models search the web."""

from __future__ import annotations

from typing import Any

from ..records.target import SearchOptions, WebCitation, WebSearch
from ..schemas import Usage
from .base import FailureOutcome, ModelRequest, ReplyOutcome
from .capabilities import Call
from .http import ParsedReply, ReportedFailure, ShapeError, count_of, inner_object, text_of
from .web_search import LONGEST_URL, citation, objects, span_in, texts

_SOURCES = "web_search_call.action.sources"
_REASONING = "reasoning.encrypted_content"
_BLOCKED_CODES = frozenset({"bio_policy", "misalignment_policy_violation", "invalid_prompt", "content_filter"})
"""Codes of a response that failed because of what was asked."""
_FAILURES: dict[str, FailureOutcome] = {"rate_limit_exceeded": "rate_limited", "data_residency_mismatch": "permanent"}
"""Codes of a response that failed; any other one is worth another attempt."""


def responses_body(provider: str, call: Call) -> dict[str, Any]:
    """A request with search. Nothing is stored at the provider: earlier replies are sent back as they came."""
    request, search = call.request, call.search
    assert search is not None
    body: dict[str, Any] = {
        "model": call.model,
        "input": _input(request),
        "max_output_tokens": request.max_tokens,
        "tools": [_tool(search)],
        "store": False,
        "include": [_REASONING] if provider == "xai" else [_SOURCES, _REASONING],
    }
    if request.system is not None and provider == "xai":
        body["input"].insert(0, {"role": "system", "content": request.system})
    elif request.system is not None:
        body["instructions"] = request.system
    if provider == "openai":
        body["max_tool_calls"] = search.max_searches
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.effort is not None:
        body["reasoning"] = {"effort": call.effort}
    return body


def _input(request: ModelRequest) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in request.messages:
        items += message.blocks or ({"role": message.role, "content": message.content},)
    return items


def _tool(search: SearchOptions) -> dict[str, Any]:
    tool: dict[str, Any] = {"type": "web_search"}
    filters = {"allowed_domains": list(search.allowed_domains), "excluded_domains": list(search.blocked_domains)}
    if used := {name: domains for name, domains in filters.items() if domains}:
        tool["filters"] = used
    if search.country:
        tool["user_location"] = {"type": "approximate", "country": search.country}
    if search.context_size:
        tool["search_context_size"] = search.context_size
    return tool


def read_response(payload: dict[str, Any]) -> ParsedReply:
    """Read a response, or raise `ShapeError` or `ReportedFailure`."""
    if not isinstance(payload.get("output"), list):
        raise ShapeError("'output' is not a list of items")
    status = text_of(payload, "status")
    reason = text_of(inner_object(payload, "incomplete_details"), "reason")
    blocked = _failed(payload, status)
    said = _Said(payload)
    outcome: ReplyOutcome = "ok" if said.text.strip() else "empty"
    if blocked or reason == "content_filter":
        outcome = "blocked"
    elif said.refusal:
        outcome = "refused"
    elif status == "incomplete":
        outcome = "truncated"
    return ParsedReply(
        outcome=outcome,
        text=said.refusal if outcome == "refused" else said.text,
        stop_reason=blocked or reason or status,
        served_model=text_of(payload, "model"),
        request_id=text_of(payload, "id"),
        usage=_usage(inner_object(payload, "usage")),
        search=said.search(),
    )


def _failed(payload: dict[str, Any], status: str | None) -> str | None:
    """The code of a response that a filter stopped, or None. Raises if the provider failed, or has not finished."""
    error = inner_object(payload, "error")
    if status == "failed" or error:
        code, message = text_of(error, "code") or "failed", text_of(error, "message") or "no reason given"
        if code in _BLOCKED_CODES:
            return code
        raise ReportedFailure(_FAILURES.get(code, "transient"), f"the response failed: {code}: {message}")
    if status in ("queued", "in_progress", "cancelled"):
        raise ShapeError(f"the response is {status}")
    return None


class _Said:
    """The words of a response, and what was searched for them."""

    def __init__(self, payload: dict[str, Any]) -> None:
        self.text = ""
        self.refusal = ""
        self._citations: list[WebCitation] = []
        self._calls: list[dict[str, Any]] = []
        self._payload = payload
        for item in objects(payload["output"]):
            if item.get("type") == "message":
                for part in objects(item.get("content")):
                    self._add(part)
            elif item.get("type") == "web_search_call":
                self._calls.append(item)

    def _add(self, part: dict[str, Any]) -> None:
        if part.get("type") == "refusal":
            self.refusal += text_of(part, "refusal") or ""
            return
        if part.get("type") != "output_text":
            return
        text, at = text_of(part, "text") or "", len(self.text)
        self.text += text
        for note in objects(part.get("annotations")):
            if note.get("type") == "url_citation":
                span = span_in(note.get("start_index"), note.get("end_index"), len(text), at=at)
                one = citation(note.get("url"), title=note.get("title"), span=span)
                self._citations += [one] if one else []

    def search(self) -> WebSearch:
        actions = [inner_object(call, "action") for call in self._calls]
        searches = [action for action in actions if action.get("type") in (None, "search")]
        queries = [query for action in searches for query in _queries(action)]
        sources = [one.get("url") for action in actions for one in (action, *objects(action.get("sources")))]
        listed = self._payload.get("citations")  # xAI's list of all pages
        failed = [call for call in self._calls if call.get("status") == "failed"]
        return WebSearch(
            searches=_billed(self._payload, len(searches)),
            queries=texts(queries),
            found=texts([*sources, *(listed if isinstance(listed, list) else ())], longest=LONGEST_URL),
            citations=tuple(self._citations),
            errors=tuple(f"web_search_call {text_of(call, 'id') or ''} failed".replace("  ", " ") for call in failed),
        )


def _queries(action: dict[str, Any]) -> list[Any]:
    several = action.get("queries")
    return several if isinstance(several, list) and several else [action.get("query")]


def _billed(payload: dict[str, Any], seen: int) -> int:
    """Searches as they are billed: xAI counts them itself, without those that failed. OpenAI bills those we see."""
    counted = count_of(
        inner_object(inner_object(payload, "usage"), "server_side_tool_usage_details"), "web_search_calls"
    )
    return seen if counted is None else counted


def _usage(usage: dict[str, Any]) -> Usage:
    sent, output = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
    reasoning = count_of(inner_object(usage, "output_tokens_details"), "reasoning_tokens")
    whole = count_of(usage, "total_tokens")
    # As in Chat Completions: a provider may count reasoning apart, and then only the total includes it.
    if None not in (sent, output, reasoning, whole) and whole == (sent or 0) + (output or 0) + (reasoning or 0):
        output = (output or 0) + (reasoning or 0)
    of_input = inner_object(usage, "input_tokens_details")
    return Usage(
        input_tokens=sent,
        output_tokens=output,
        cached_tokens=count_of(of_input, "cached_tokens"),
        reasoning_tokens=reasoning,
        cache_write_tokens=count_of(of_input, "cache_write_tokens"),
    )
