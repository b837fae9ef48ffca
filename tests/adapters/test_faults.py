"""Every adapter with every fault: the right outcome, one request per attempt, and the key never visible."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from src.adapters.addresses import SOCKS_PACKAGE
from src.adapters.base import CallFailure, FailureOutcome
from src.adapters.capabilities import UnfitSchema, strict_schema
from src.adapters.classify import classify_exception, classify_status, retry_after
from src.adapters.google_adapter import GoogleAdapter
from src.adapters.grok_adapter import GrokAdapter
from src.adapters.openai_adapter import CompatibleAdapter
from src.adapters.registry import PROVIDERS, REQUIREMENTS
from src.adapters.secrets import Secret
from src.errors import ConfigError
from tests.adapters.test_contract import BY_NAME, KEY, AdapterCase, asked, call, clean_environment, every_adapter, once
from tests.cases import each_case
from tests.loopback import LONGEST_WAIT_S, Fault, Loopback, Scripted
from tests.runs import ROOT

__all__ = ["clean_environment"]  # a fixture, which pytest finds by its name
ENDLESS: dict[Fault, float] = {"timeout": 0.3, "slow_drip": 1.0}
"""Faults that end only with the attempt's time, and the time to give it. A second is enough for the headers of a slow
body, even on a busy machine."""
STATUSES: list[tuple[int, FailureOutcome]] = [
    *[(status, "permanent") for status in (301, 400, 413, 422)],
    *[(status, "denied") for status in (401, 402, 403, 404, 407)],
    *[(status, "transient") for status in (408, 409, 425, 500, 502, 503, 504, 524, 529)],
    (429, "rate_limited"),
]
FAULTS: list[tuple[Fault, FailureOutcome]] = [
    *[(fault, "timeout") for fault in ("timeout", "slow_drip")],
    *[(fault, "transient") for fault in ("reset", "truncated_body")],
    *[(fault, "malformed") for fault in ("malformed_json", "html", "null", "empty_object", "empty_body")],
]


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def failed(server: Loopback, case: AdapterCase, scripted: Scripted, timeout_s: float = LONGEST_WAIT_S) -> CallFailure:
    """The failure of one attempt; checks that it made exactly one request and does not contain the key."""
    server.script(scripted, Scripted(text="a retry the adapter must not make"))
    with pytest.raises(CallFailure) as caught:
        asyncio.run(once(case.open(server), asked(case), timeout_s))
    failure = caught.value
    assert server.count == 1
    assert failure.sent == server.last.body
    assert failure.message == str(failure)
    assert_hidden(failure)
    return failure


def assert_hidden(failure: CallFailure) -> None:
    shown = [failure.message, repr(failure), repr(vars(failure)), json.dumps([failure.sent, failure.received])]
    shown += traceback.TracebackException.from_exception(failure, capture_locals=False).format(chain=True)
    assert failure.__cause__ is None and failure.__context__ is None, "an SDK exception contains the request's headers"
    assert not [text for text in shown if KEY in text]


@pytest.mark.slow
@every_adapter
@each_case(("status", "outcome"), STATUSES)
def test_outcome_of_every_status(server: Loopback, case: AdapterCase, status: int, outcome: FailureOutcome) -> None:
    failure = failed(server, case, Scripted(status=status, headers={"location": "/v1/elsewhere"}))
    assert (failure.outcome, failure.status) == (outcome, status)
    assert f"HTTP {status}" in failure.message and "scripted error" in failure.message
    assert failure.request_id == "req-loopback"
    assert json.loads(failure.received)["error"]["message"] == "scripted error"
    assert failure.retry_after_s is None
    assert failure.not_applied == (("seed",) if case.name == "anthropic" else ())


@every_adapter
@each_case(("fault", "outcome"), FAULTS)
def test_outcome_of_every_fault(server: Loopback, case: AdapterCase, fault: Fault, outcome: FailureOutcome) -> None:
    failure = failed(server, case, Scripted(fault=fault), timeout_s=ENDLESS.get(fault, LONGEST_WAIT_S))
    assert failure.outcome == outcome
    assert failure.not_applied == (("seed",) if case.name == "anthropic" else ())
    if fault in ("timeout", "reset"):
        assert (failure.received, failure.status, failure.request_id) == (None, None, None)
        return
    assert (failure.status, failure.request_id) == (200, "req-loopback")
    starts = {"malformed_json": '{"choices": [{"mess', "null": "null", "html": "<html>", "empty_body": ""}
    assert failure.received.startswith(starts.get(fault, "{")), "a partial body is kept"


@every_adapter
def test_error_pages_are_kept_whole(server: Loopback, case: AdapterCase) -> None:
    failure = failed(server, case, Scripted(fault="html", status=502))
    assert (failure.outcome, failure.status) == ("transient", 502)
    assert failure.received == "<html><body><h1>Bad gateway</h1></body></html>"


@pytest.mark.slow
@every_adapter
@each_case(
    "raw",
    [
        *(b"[]", b'"text"', b"5", b"\xff\xfe{}"),
        b'{"choices": [], "content": null, "candidates": []}',
        b'{"choices": [null], "content": [null], "candidates": [7]}',
        b'{"choices": [{"message": null}], "content": "text", "candidates": {}}',
        b'{"choices": [{"message": {"content": 5}}], "content": {}, "candidates": [{"content": {"parts": [5]}}]}',
        b'{"error": {"message": "an error under status 200"}}',
        *(b'{"a":' * 2_000, b"[" * 100_000, b'{"n": ' + b"9" * 5_000 + b"}"),
    ],
)
def test_wrong_shapes_are_malformed(server: Loopback, case: AdapterCase, raw: bytes) -> None:
    failure = failed(server, case, Scripted(raw=raw))
    assert failure.outcome == "malformed"
    try:
        assert failure.received == raw.decode()
    except UnicodeDecodeError:
        assert failure.received == {"base64": "//57fQ=="}


@every_adapter
def test_closed_port_is_transient(case: AdapterCase) -> None:
    with Loopback() as gone:
        pass
    with pytest.raises(CallFailure) as caught:
        asyncio.run(once(case.open(gone), asked(case)))
    assert caught.value.outcome == "transient"
    assert "refused" in caught.value.message
    assert_hidden(caught.value)


@every_adapter
def test_cancellation_is_not_a_failure(server: Loopback, case: AdapterCase) -> None:
    server.script(Scripted(fault="timeout"))

    async def cancelled() -> None:
        task = asyncio.ensure_future(once(case.open(server), asked(case)))
        while not server.count:
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


@every_adapter
def test_an_exception_that_the_caller_was_handling_does_not_change_the_outcome(
    server: Loopback, case: AdapterCase
) -> None:
    """A retry made while an earlier timeout is being handled is classified by itself."""
    server.script(Scripted(fault="truncated_body"))

    async def retried() -> str:
        try:
            raise TimeoutError
        except TimeoutError:
            try:
                await once(case.open(server), asked(case))
            except CallFailure as failure:
                return f"{failure.outcome} {'TimeoutError' in failure.message}"
        return "no failure"

    assert asyncio.run(retried()) == "transient False"


# Keys


@every_adapter
@each_case("status", [200, 401])
def test_echoed_key_is_redacted(
    server: Loopback, case: AdapterCase, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    scripted = Scripted(status=status, echo_key=True, text="yours:", headers={"x-echo": "no"})
    if status == 200:
        reply = call(server, case, asked(case), scripted)
        assert reply.text == "yours: (key [redacted])"
        assert KEY not in repr(reply) and "[redacted]" in reply.received
    else:
        failure = failed(server, case, scripted)
        assert "(key [redacted])" in failure.message and "(key [redacted])" in failure.received
    assert server.last.key == KEY
    assert KEY not in caplog.text


@every_adapter
def test_key_in_the_question_or_in_a_header_is_redacted(server: Loopback, case: AdapterCase) -> None:
    headers = {"x-request-id": f"id-{KEY}", "request-id": f"id-{KEY}"}
    reply = call(server, case, asked(case, system=f"My key is {KEY}"), Scripted(served=f"m-{KEY}", headers=headers))
    assert KEY not in repr(reply)
    assert (reply.request_id, reply.served_model) == ("id-[redacted]", "m-[redacted]")
    assert "My key is [redacted]" in json.dumps(reply.sent)


@every_adapter
def test_adapter_does_not_show_its_key(server: Loopback, case: AdapterCase) -> None:
    adapter = case.open(server)
    assert KEY not in repr(adapter) + repr(vars(adapter)) + str(adapter)
    asyncio.run(adapter.aclose())


def test_redaction_covers_escaped_forms_but_not_words() -> None:
    secret = Secret("ab/cd\\ef01")
    escaped = json.dumps({"k": secret.reveal()})
    assert secret.redact(escaped) == '{"k": "[redacted]"}'
    assert secret.redact_bytes(rb"x ab\/cd\ef01") == b"x [redacted]"
    assert Secret("none").redact("none at all") == "none at all"


# Waiting and credit


@every_adapter
def test_retry_after_is_read_in_both_forms(server: Loopback, case: AdapterCase) -> None:
    failure = failed(server, case, Scripted(status=429, headers={"retry-after": "7"}))
    assert (failure.outcome, failure.retry_after_s) == ("rate_limited", 7.0)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
    failure = failed(server, case, Scripted(status=503, headers={"retry-after": date}))
    assert failure.outcome == "transient"
    assert failure.retry_after_s is not None and 300 < failure.retry_after_s <= 600


@each_case(
    ("headers", "seconds"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:10 GMT"}, 10.0),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:10 -0000"}, 10.0),
        ({"retry-after": "Tue, 31 Dec 2024 00:00:00 GMT"}, 0.0),
        *(({"retry-after": odd}, None) for odd in ("soon", "nan", "1e999", "")),
        ({}, None),
    ],
)
def test_retry_after_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=datetime(2025, 1, 1, tzinfo=UTC)) == seconds


def test_google_gives_the_wait_time_in_the_body(server: Loopback) -> None:
    details = ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"},)
    failure = failed(server, BY_NAME["google"], Scripted(status=429, error_details=details))
    assert (failure.outcome, failure.retry_after_s) == ("rate_limited", 37.5)


def test_a_gateways_filter_is_a_block_not_a_bad_request(server: Loopback) -> None:
    case = BY_NAME["compatible"]
    reply = call(server, case, asked(case), Scripted(status=400, error_code="content_filter"))
    assert (reply.outcome, reply.stop_reason, reply.text) == ("blocked", "content_filter", "")


def test_every_status_has_an_outcome() -> None:
    assert {classify_status(status) for status in range(500, 600)} == {"transient"}
    assert {classify_status(status) for status in range(400, 500)} == {
        "permanent",
        "denied",
        "transient",
        "rate_limited",
    }
    assert classify_exception(ValueError("a fault of ours")) == "permanent"
    assert classify_exception(ConnectionResetError()) == "transient"


# Settings


def test_google_service_does_not_depend_on_the_environment(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v2")
    adapter = GoogleAdapter(api_key=KEY, base_url=server.url("google"), api_version="v1")
    asyncio.run(once(adapter, asked(BY_NAME["google"])))
    assert server.last.path == "/v1/models/gemini-1.5-pro-002:generateContent"


@each_case("name", ["xai", "compatible"])
def test_nothing_of_the_openai_account_goes_elsewhere(
    server: Loopback, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in ("ORG_ID", "PROJECT_ID", "API_KEY", "ADMIN_KEY"):
        monkeypatch.setenv(f"OPENAI_{variable}", f"leak-{variable}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/leak")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: leak-header\nauthorization: Bearer leak-bearer\nno header")
    call(server, BY_NAME[name], asked(BY_NAME[name]))
    assert server.last.key == KEY
    assert "leak" not in json.dumps(server.last.headers)


def test_compatible_endpoint_needs_no_key(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leak-key")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer leak-bearer")
    server.script(Scripted(text="unused words"))
    reply = asyncio.run(once(CompatibleAdapter(base_url=server.url("openai")), asked(BY_NAME["compatible"])))
    assert "authorization" not in server.last.headers
    assert reply.text == "unused words"


@every_adapter
@each_case("key", ["  ", "clé-0123456789", "two words-0123", "line\nbreak-0123"])
def test_unusable_keys_are_refused_without_showing_them(server: Loopback, case: AdapterCase, key: str) -> None:
    with pytest.raises(ConfigError, match="API key") as caught:
        case.open(server, key)
    assert key not in str(caught.value)


@each_case("url", ["", "127.0.0.1:8000/v1", "ftp://127.0.0.1"])
def test_unusable_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL"):
        CompatibleAdapter(base_url=url)


def test_missing_sdk_names_a_command_that_works_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ConfigError) as caught:
        GrokAdapter(api_key=KEY)
    assert str(caught.value) == "The SDK for grok is not installed; run: python -m pip install 'openai>=3.40,<4'."


def test_the_commands_for_missing_sdks_name_what_the_extras_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert {extra: [requirement] for extra, requirement in REQUIREMENTS.items()} == {
        extra: extras[extra] for extra in REQUIREMENTS
    }
    assert extras["socks"] == [SOCKS_PACKAGE]
    assert {provider.extra for provider in PROVIDERS.values() if provider.sdk} == set(REQUIREMENTS)


def test_adapter_files_import_no_sdk() -> None:
    names = ("openai", "grok", "anthropic", "google")
    code = "import sys, " + ", ".join(f"src.adapters.{name}_adapter" for name in names)
    code += "; print([m for m in ('openai', 'anthropic', 'google.genai', 'httpx2') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONGEST_WAIT_S
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_closed_adapters_leave_no_warning_at_exit() -> None:
    code = (
        "import asyncio\n"
        "from tests.adapters.test_contract import CASES, Loopback, asked, once\n"
        "async def main(server):\n"
        "    for case in CASES:\n"
        "        await once(case.open(server), asked(case))\n"
        "with Loopback() as server: asyncio.run(main(server))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, timeout=LONGEST_WAIT_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Strict schemas


def test_strict_schema_closes_and_requires_everything() -> None:
    schema = {
        "$defs": {"A": {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "^a$"}}}},
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "dropped beside a $ref"},
            "n": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}], "default": None},
            "l": {"type": "array", "items": {"oneOf": [{"const": "x"}, {"enum": ["default"]}]}, "maxItems": 3},
        },
        "required": ["a"],
    }
    closed = {"additionalProperties": False}
    assert (
        strict_schema(schema)
        == {
            "$defs": {
                "A": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]} | closed
            },
            "type": "object",
            "properties": {
                "a": {"$ref": "#/$defs/A"},
                "n": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "l": {"type": "array", "items": {"anyOf": [{"const": "x"}, {"enum": ["default"]}]}},
            },
            "required": ["a", "n", "l"],
        }
        | closed
    )


@each_case(
    "schema",
    [{"type": "object"}, {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}],
)
def test_open_objects_cannot_be_strict(server: Loopback, schema: dict[str, Any]) -> None:
    with pytest.raises(UnfitSchema):
        strict_schema(schema)
    case = BY_NAME["openai"]
    with pytest.raises(CallFailure) as caught:
        call(server, case, asked(case, response_schema=schema))
    assert caught.value.outcome == "permanent"
    assert "named properties" in caught.value.message
    assert server.count == 0
