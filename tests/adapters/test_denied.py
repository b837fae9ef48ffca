"""Refusals of the key, the account or the model, in the providers' own words: `denied`; a content filter: `blocked`.

The bodies follow public reports of such errors; ids and names in them are invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from src.adapters.base import FailureOutcome
from tests.adapters.test_contract import BY_NAME, asked, call, clean_environment, every_adapter
from tests.adapters.test_faults import failed
from tests.cases import each_case
from tests.loopback import Loopback, Scripted

__all__ = ["clean_environment"]
TEAM = "Your team 0000 has either used all available credits or reached its monthly spending limit."
QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "googleapis.com"}


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def _openai(code: str | None, kind: str, message: str = "You exceeded your current quota.") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _google(status: int, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": "RESOURCE_EXHAUSTED", "details": list(details)}}


def _violations(*quotas: str, value: str = "50") -> dict[str, Any]:
    return {**QUOTA, "violations": [{"quotaId": quota, "quotaValue": value} for quota in quotas]}


DENIED: list[tuple[str, int, dict[str, Any]]] = [
    ("openai", 429, _openai("insufficient_quota", "insufficient_quota")),
    ("openai", 429, _openai(None, "insufficient_quota")),
    ("openai", 400, _openai("billing_hard_limit_reached", "invalid_request_error", "Billing hard limit was reached")),
    ("openai", 429, _openai("billing_not_active", "billing_not_active", "Your account is not active.")),
    ("openai", 404, _openai("model_not_found", "invalid_request_error", "The model does not exist.")),
    ("compatible", 400, _openai("400", "budget_exceeded", "Budget has been exceeded! Current cost: 3")),
    ("compatible", 400, _openai("400", "no_db_connection", "No connected db.")),
    ("compatible", 400, _openai("400", "None", "Invalid model name passed in model=gpt-9")),
    ("xai", 429, {"code": "Some resource has been exhausted", "error": TEAM}),
    ("xai", 403, {"code": "permission-denied", "error": TEAM}),
    ("xai", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: ab***yz."}),
    ("xai", 403, {"code": "permission-denied", "error": "Access to the chat endpoint is denied."}),
    ("anthropic", 400, _anthropic("invalid_request_error", "Your credit balance is too low to access the API.")),
    (
        "anthropic",
        400,
        _anthropic("invalid_request_error", "You have reached your specified API usage limits. Wait until 2027-01-01."),
    ),
    ("anthropic", 402, _anthropic("billing_error", "Your account has a billing problem.")),
    ("anthropic", 403, _anthropic("permission_error", "Your key has no permission to use this model.")),
    ("google", 400, _google(400, "API key not valid.", {**INFO, "reason": "API_KEY_INVALID"})),
    ("google", 400, _google(400, "User location is not supported for the API use.")),
    ("google", 429, _google(429, "Quota.", _violations("GenerateRequestsPerDayPerProjectPerModel-FreeTier"))),
    ("google", 429, _google(429, "Quota.", _violations("GenerateRequestsPerMinutePerProject", value="0"))),
    ("google", 429, _google(429, "Quota exceeded for metric: free_tier_requests, limit: 0, model: gemini")),
]
OTHERWISE: list[tuple[str, int, dict[str, Any], FailureOutcome]] = [
    ("openai", 429, _openai("rate_limit_exceeded", "requests", "Rate limit reached: Limit 3, Used 3."), "rate_limited"),
    ("xai", 429, {"code": "Some resource has been exhausted", "error": "Too many requests."}, "rate_limited"),
    ("anthropic", 429, _anthropic("rate_limit_error", "This would exceed your rate limit."), "rate_limited"),
    ("anthropic", 400, _anthropic("invalid_request_error", "max_tokens: too large"), "permanent"),
    ("google", 429, _google(429, "Quota.", _violations("GenerateRequestsPerMinutePerProject")), "rate_limited"),
    ("google", 429, _google(429, "Quota.", {**QUOTA, "violations": "many"}, {"reason": 5}), "rate_limited"),
    ("google", 400, _google(400, "Invalid JSON payload."), "permanent"),
    ("openai", 500, _openai("insufficient_quota", "server_error"), "transient"),
]


def _scripted(status: int, body: dict[str, Any]) -> Scripted:
    return Scripted(status=status, raw=json.dumps(body).encode())


@each_case(("name", "status", "body"), DENIED)
def test_a_refused_key_account_or_model_is_denied(
    server: Loopback, name: str, status: int, body: dict[str, Any]
) -> None:
    failure = failed(server, BY_NAME[name], _scripted(status, body))
    assert (failure.outcome, failure.status) == ("denied", status)
    assert failure.message.startswith(f"{name}: HTTP {status}: ")
    assert json.loads(failure.received) == body


@each_case(("name", "status", "body", "outcome"), OTHERWISE)
def test_other_refusals_keep_their_outcome(
    server: Loopback, name: str, status: int, body: dict[str, Any], outcome: FailureOutcome
) -> None:
    assert failed(server, BY_NAME[name], _scripted(status, body)).outcome == outcome


@each_case(
    ("name", "status", "body"),
    [
        ("xai", 403, {"code": "permission-denied", "error": "Content violates usage guidelines. Failed check: BIO"}),
        ("compatible", 403, _openai("content_filter", "invalid_request_error", "Filtered.")),
        ("anthropic", 400, _anthropic("invalid_request_error", "Output blocked by content filtering policy")),
    ],
)
def test_a_content_filter_that_answers_with_an_error_is_a_block(
    server: Loopback, name: str, status: int, body: dict[str, Any]
) -> None:
    case = BY_NAME[name]
    reply = call(server, case, asked(case), _scripted(status, body))
    assert (reply.outcome, reply.stop_reason, reply.text) == ("blocked", "content_filter", "")


@every_adapter
def test_the_message_of_an_error_is_found_where_servers_put_it(server: Loopback, case: Any) -> None:
    for body in ({"detail": "Not Found"}, {"message": "Not Found"}, {"error": "Not Found"}):
        assert failed(server, case, _scripted(404, body)).message == f"{case.name}: HTTP 404: Not Found"
    assert failed(server, case, Scripted(status=404, raw=b"<html>")).message == f"{case.name}: HTTP 404"
