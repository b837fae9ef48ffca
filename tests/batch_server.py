"""A loopback server with the batch APIs of OpenAI, xAI, Anthropic and Google, beside their live ones.

Every line that a provider would bill is counted by its request body, whether it came alone or in a batch, so that a test
can compare what two runs paid for. Results come back in reverse order, after some polls. `faults` says what goes wrong
with the batches, in order of their creation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest

from src.testing import server
from tests.loopback import BELOW_HTTP, Loopback, Received, Scripted, Wire, _body, understood
from tests.test_wire_runs import SENTINEL

Provider = Literal["openai", "xai", "anthropic", "google"]
Fault = Literal[
    "none",
    "refuse",  # 400: there is no batch
    "deny",  # 401
    "busy",  # 429
    "reset_before",  # the connection ends, and there is no batch
    "reset_after",  # the connection ends, and there is one
    "silent_after",  # no answer, and there is one
    "expire",  # the second half of the lines has no turn
    "cancel",
    "partial",  # every third line is answered by an error of the server
    "bad_line",  # the first line is refused
    "missing",  # the first line does not come back at all
    "fail",  # no line has a turn
]
ENDPOINT = {"openai": "/v1/chat/completions", "xai": "/v1/chat/completions"}
WIRES: dict[Provider, Wire] = {"openai": "openai", "xai": "openai", "anthropic": "anthropic", "google": "google"}
STATES: dict[Fault, dict[Provider, str]] = {
    "expire": {"openai": "expired", "google": "BATCH_STATE_EXPIRED"},
    "cancel": {"openai": "cancelled", "google": "BATCH_STATE_CANCELLED"},
    "fail": {"openai": "failed", "google": "BATCH_STATE_FAILED"},
}


@dataclass
class Line:
    custom_id: str
    body: dict[str, Any]
    model: str = ""
    """Where the body does not say it."""
    outcome: Literal["answered", "no turn", "error", "refused", "missing"] = "answered"
    status: int = 200
    reply: bytes = b""


@dataclass
class Batch:
    provider: Provider
    number: int
    name: str
    lines: list[Line]
    fault: Fault
    polls: int
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def id(self) -> str:
        return {"openai": "batch_", "xai": "batch_", "anthropic": "msgbatch_", "google": "batches/"}[
            self.provider
        ] + str(self.number)

    @property
    def ended(self) -> bool:
        return self.polls <= 0


class BatchServer(Loopback):
    """Answers lines, like live calls, as the rule says."""

    def __init__(
        self, rule: Callable[[Received], Scripted], *, polls: int = 2, faults: Iterable[Fault] = (), keep: int = 100
    ) -> None:
        """`polls`: how often a batch is not ready yet."""
        super().__init__(rule, keep=keep)
        self.faults: deque[Fault] = deque(faults)
        self.polls = polls
        self.batches: list[Batch] = []
        self.billed: Counter[str] = Counter()
        """Lines and live calls, by a hash of their body."""
        self.live: list[Received] = []
        self.broken_polls = 0
        """How many questions about batches are not answered."""
        self._files: dict[str, bytes] = {}

    def base(self, provider: Provider) -> str:
        return f"{self.address}/{provider}" + ("/v1" if provider in ("openai", "xai") else "")

    async def _respond(self, request: server.Received) -> server.Response:
        parts = urlsplit(request.path)
        _, name, *rest = parts.path.split("/", 2)
        provider, path = name, "/" + (rest[0] if rest else "")
        if provider not in WIRES:
            return await super()._respond(request)
        if "batch" not in path and "/files" not in path:
            received = understood(request)
            if received.body is not None:
                self.live.append(received)
                self._bill(provider, received.body)
            return await super()._respond(request)
        if not request.body and self.broken_polls:
            self.broken_polls -= 1
            down = self.broken_polls % 2 == 0
            return _json({"error": "down"}, status=503) if down else server.Response(fault="reset")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        handler = {"openai": self._openai, "xai": self._xai, "anthropic": self._anthropic, "google": self._google}[
            provider
        ]
        return handler(path, query, request)

    def _bill(self, provider: str, body: dict[str, Any]) -> None:
        text = json.dumps(body, sort_keys=True)
        self.billed[f"{provider} {hashlib.sha256(text.encode()).hexdigest()}"] += 1

    # All providers

    def _create(
        self, provider: Provider, name: str, lines: list[Line], shown: Callable[[Batch], dict[str, Any]]
    ) -> server.Response:
        fault: Fault = self.faults.popleft() if self.faults else "none"
        refused = {"refuse": 400, "deny": 401, "busy": 429}.get(fault)
        if refused:
            said = {"error": {"type": "scripted", "message": f"scripted {fault}", "code": refused}}
            return _json(said, status=refused)
        if fault == "reset_before":
            return server.Response(fault="reset")
        batch = Batch(provider, len(self.batches) + 1, name, lines, fault, self.polls)
        self.batches.append(batch)
        for number, line in enumerate(lines):
            self._process(batch, number, line)
        if fault in ("reset_after", "silent_after"):
            return server.Response(fault="reset" if fault == "reset_after" else "silence")
        return _json(shown(batch))

    def _process(self, batch: Batch, number: int, line: Line) -> None:
        if batch.fault == "fail" or (batch.fault in ("expire", "cancel") and number >= len(batch.lines) // 2):
            line.outcome = "no turn"
            return
        if batch.fault == "missing" and number == 0:
            line.outcome = "missing"
            return
        if (batch.fault == "partial" and number % 3 == 0) or (batch.fault == "bad_line" and number == 0):
            refused = batch.fault == "bad_line"
            line.outcome, line.status = ("refused", 400) if refused else ("error", 500)
            line.reply = json.dumps({"error": {"message": f"scripted {line.outcome}", "code": line.status}}).encode()
            return
        assert self._rule is not None
        wire = WIRES[batch.provider]
        path = (
            f"/models/{line.model}:generateContent" if wire == "google" else ENDPOINT.get(batch.provider, "/messages")
        )
        received = Received(wire, path, {"authorization": f"Bearer {SENTINEL}"}, line.body)
        scripted = self._rule(received)
        assert scripted.fault not in BELOW_HTTP, "a line has no connection of its own"
        line.reply, _ = _body(received, scripted)
        line.status = scripted.status
        self._bill(batch.provider, line.body)

    def _find(self, provider: Provider, batch_id: str) -> Batch | None:
        return next((one for one in self.batches if one.provider == provider and one.id == batch_id), None)

    def _polled(self, provider: Provider, batch_id: str) -> Batch | None:
        batch = self._find(provider, batch_id)
        if batch:
            batch.polls -= 1
        return batch

    def _newest(self, provider: Provider) -> list[Batch]:
        return [one for one in reversed(self.batches) if one.provider == provider]

    # OpenAI

    def _openai(self, path: str, query: dict[str, str], request: server.Received) -> server.Response:
        match path.strip("/").split("/")[1:]:
            case ["files"]:
                return self._upload(request)
            case ["files", file, "content"]:
                return server.Response(body=self._files[file], content_type="application/octet-stream")
            case ["batches"] if request.body:
                asked = json.loads(request.body)
                lines = _lines(self._files[asked["input_file_id"]])
                return self._create("openai", asked["metadata"]["intent"], lines, self._openai_batch)
            case ["batches"]:
                return _page([self._openai_batch(one) for one in self._newest("openai")], query.get("after"))
            case ["batches", batch_id]:
                batch = self._polled("openai", batch_id)
                return _json(self._openai_batch(batch)) if batch else _not_found()
        return _not_found()

    def _upload(self, request: server.Received) -> server.Response:
        file = f"file-{len(self._files) + 1}"
        boundary = request.headers["content-type"].partition("boundary=")[2].encode()
        parts = [part for part in request.body.split(b"--" + boundary) if b'name="file"' in part]
        self._files[file] = parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return _json({"id": file, "object": "file", "purpose": "batch"})

    def _openai_batch(self, batch: Batch) -> dict[str, Any]:
        state = STATES.get(batch.fault, {}).get("openai", "completed") if batch.ended else "in_progress"
        shown: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": ENDPOINT["openai"],
            "input_file_id": "file",
            "completion_window": "24h",
            "status": state,
            "created_at": int(batch.created.timestamp()),
            "expires_at": int((batch.created + timedelta(hours=24)).timestamp()),
            "metadata": {"intent": batch.name},
        }
        if state == "failed":
            shown["errors"] = {"data": [{"code": "scripted", "message": "scripted failure of the batch"}]}
        elif batch.ended:
            good = [line for line in batch.lines if line.outcome == "answered" and line.status == 200]
            bad = [line for line in batch.lines if line not in good and line.outcome != "missing"]
            for name, lines in (("output_file_id", good), ("error_file_id", bad)):
                if lines:
                    shown[name] = f"{batch.id}-{name}"
                    self._files[shown[name]] = b"".join(map(_openai_line, reversed(lines)))
        return shown

    # xAI

    def _xai(self, path: str, query: dict[str, str], request: server.Received) -> server.Response:
        match path.strip("/").split("/")[1:]:
            case ["files"]:
                return self._upload(request)
            case ["batches"] if request.body:
                asked = json.loads(request.body)
                return self._create("xai", asked["name"], _lines(self._files[asked["input_file_id"]]), _xai_batch)
            case ["batches"]:
                return _json({"batches": [_xai_batch(one) for one in self._newest("xai")], "pagination_token": None})
            case ["batches", batch_id]:
                batch = self._polled("xai", batch_id)
                return _json(_xai_batch(batch)) if batch else _not_found()
            case ["batches", batch_id, "results"]:
                batch = self._find("xai", batch_id)
                return _xai_results(batch, query.get("pagination_token")) if batch else _not_found()
        return _not_found()

    # Anthropic

    def _anthropic(self, path: str, query: dict[str, str], request: server.Received) -> server.Response:
        match path.strip("/").split("/")[3:]:
            case [] if request.body:
                requests = json.loads(request.body)["requests"]
                assert all(len(one["custom_id"]) <= 64 for one in requests)
                lines = [Line(one["custom_id"], one["params"]) for one in requests]
                return self._create("anthropic", "", lines, _anthropic_batch)
            case []:
                for one in self._newest("anthropic"):  # time passes, whatever is asked
                    one.polls -= 1
                return _page([_anthropic_batch(one) for one in self._newest("anthropic")], query.get("after_id"))
            case [batch_id]:
                batch = self._polled("anthropic", batch_id)
                return _json(_anthropic_batch(batch)) if batch else _not_found()
            case [batch_id, "results"]:
                batch = self._find("anthropic", batch_id)
                assert batch is not None
                assert batch.ended
                lines = [line for line in reversed(batch.lines) if line.outcome != "missing"]
                body = b"".join(_anthropic_line(batch, line) for line in lines)
                return server.Response(body=body, content_type="application/x-jsonl")
        return _not_found()

    # Google

    def _google(self, path: str, query: dict[str, str], request: server.Received) -> server.Response:
        if path.endswith(":batchGenerateContent"):
            asked = json.loads(request.body)["batch"]
            lines = [
                Line(one["metadata"]["key"], one["request"], path.rpartition("/")[2].partition(":")[0])
                for one in asked["inputConfig"]["requests"]["requests"]
            ]
            return self._create("google", asked["displayName"], lines, _google_job)
        last = path.rpartition("/")[2]
        if last == "batches":
            return _json({"operations": [_google_job(one) for one in self._newest("google")]})
        batch = self._polled("google", f"batches/{last}")
        return _json(_google_job(batch)) if batch else _not_found()


def _json(payload: dict[str, Any], status: int = 200) -> server.Response:
    return server.Response(status=status, body=json.dumps(payload).encode())


def _not_found() -> server.Response:
    return _json({"error": {"message": "no such thing", "code": 404}}, status=404)


def _page(shown: list[dict[str, Any]], after: str | None) -> server.Response:
    """One batch per page, so that paging is tested."""
    start = next((number for number, one in enumerate(shown) if one["id"] == after), -1) + 1
    return _json({"object": "list", "data": shown[start : start + 1], "has_more": start + 1 < len(shown)})


def _lines(file: bytes) -> list[Line]:
    documents = [json.loads(line) for line in file.splitlines()]
    assert all(one["method"] == "POST" and one["url"] == ENDPOINT["openai"] for one in documents)
    return [Line(one["custom_id"], one["body"]) for one in documents]


def _openai_line(line: Line) -> bytes:
    answered = {"status_code": line.status, "request_id": "req-batch", "body": 0}
    no_turn = {"code": "batch_expired", "message": "This request could not be executed before the window ended."}
    document = {
        "id": f"batch_req_{line.custom_id}",
        "custom_id": line.custom_id,
        "response": None if line.outcome == "no turn" else answered,
        "error": no_turn if line.outcome == "no turn" else None,
    }
    return json.dumps(document).encode().replace(b'"body": 0', b'"body": ' + line.reply) + b"\n"


def _xai_batch(batch: Batch) -> dict[str, Any]:
    count = len(batch.lines)
    shown: dict[str, Any] = {
        "batch_id": batch.id,
        "name": batch.name,
        "create_time": batch.created.date().isoformat(),
        "expire_time": (batch.created + timedelta(days=2)).isoformat(),
        "cancel_time": None,
        "state": {
            "num_requests": 0 if batch.polls > 1 else count,
            "num_pending": 0 if batch.ended else count,
            "num_success": count if batch.ended else 0,
        },
    }
    if batch.ended and batch.fault in ("cancel", "fail"):
        shown["cancel_time"] = batch.created.isoformat()
    if batch.ended and batch.fault == "fail":
        shown["cancel_by_xai_message"] = "scripted failure of the batch"
    return shown


def _xai_results(batch: Batch, token: str | None) -> server.Response:
    lines = [line for line in reversed(batch.lines) if line.outcome not in ("missing", "no turn")]
    start, size = int(token or 0), 2
    found = [b'{"batch_request_id":%b,"batch_result":%b}' % (_quoted(line), _xai_line(line)) for line in lines]
    following = _quoted_text(str(start + size)) if start + size < len(lines) else b"null"
    page = b",\n".join(found[start : start + size])
    return server.Response(body=b'{"results":[%b],\n"pagination_token":%b}' % (page, following))


def _xai_line(line: Line) -> bytes:
    if line.status == 200:
        return b'{"response":{"chat_get_completion":%b}}' % line.reply
    return json.dumps({"error": {"code": 3 if line.status == 400 else 13, "message": "scripted"}}).encode()


def _quoted(line: Line) -> bytes:
    return _quoted_text(line.custom_id)


def _quoted_text(text: str) -> bytes:
    return json.dumps(text).encode()


def _anthropic_batch(batch: Batch) -> dict[str, Any]:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    counts["succeeded" if batch.ended else "processing"] = len(batch.lines)
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.ended else "in_progress",
        "request_counts": counts,
        "created_at": batch.created.isoformat(),
        "expires_at": (batch.created + timedelta(hours=24)).isoformat(),
        "results_url": None,
    }


def _anthropic_line(batch: Batch, line: Line) -> bytes:
    result = b'{"type":"succeeded","message":%b}' % line.reply
    if line.outcome == "no turn":
        result = b'{"type":"%b"}' % (b"expired" if batch.fault == "expire" else b"canceled")
    elif line.status != 200:
        kind = "invalid_request_error" if line.status == 400 else "api_error"
        error = {"type": "error", "error": {"type": kind, "message": f"scripted {line.outcome}"}}
        result = b'{"type":"errored","error":%b}' % json.dumps(error).encode()
    return b'{"custom_id":%b,"result":%b}\n' % (_quoted(line), result)


def _google_job(batch: Batch) -> dict[str, Any]:
    state = STATES.get(batch.fault, {}).get("google", "BATCH_STATE_SUCCEEDED") if batch.ended else "BATCH_STATE_RUNNING"
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "displayName": batch.name,
        "createTime": batch.created.isoformat(),
        "state": state,
    }
    shown: dict[str, Any] = {"name": batch.id, "metadata": metadata, "done": batch.ended}
    if state == "BATCH_STATE_FAILED":
        shown["error"] = {"code": 3, "message": "scripted failure of the batch"}
    elif batch.ended:
        lines = [line for line in reversed(batch.lines) if line.outcome not in ("missing", "no turn")]
        metadata["output"] = {"inlinedResponses": {"inlinedResponses": list(map(_google_line, lines))}}
    return shown


def _google_line(line: Line) -> dict[str, Any]:
    if line.status == 200:
        return {"metadata": {"key": line.custom_id}, "response": json.loads(line.reply)}
    code = 3 if line.status == 400 else 13
    return {"metadata": {"key": line.custom_id}, "error": {"code": code, "message": f"scripted {line.outcome}"}}


def redirected(served: BatchServer) -> dict[str, str]:
    """The environment in which all providers are this server."""
    names: dict[str, Provider] = {"OPENAI": "openai", "XAI": "xai", "ANTHROPIC": "anthropic"}
    settings = {f"{name}_BASE_URL": served.base(provider) for name, provider in names.items()}
    keys = dict.fromkeys(("OPENAI_API_KEY", "XAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), SENTINEL)
    fast = {"MEDICARE_EVAL_BATCH_TIMING": "0.05,0.005,0.02,0.1"}
    return settings | {"GOOGLE_GEMINI_BASE_URL": served.base("google")} | keys | fast


def redirect(monkeypatch: pytest.MonkeyPatch, served: BatchServer) -> None:
    for name, value in redirected(served).items():
        monkeypatch.setenv(name, value)
