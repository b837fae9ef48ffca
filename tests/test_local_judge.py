"""A real llama.cpp server as judge (docs/local_judges.md): a tiny random model answers, so only the wire is tested.

The model's answers fit the schema, because the server lets it write nothing else, and mean nothing: no answer has the
canary. So every one of them must be recorded as a failure of the judge and none as a judgment.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from src import storage
from src.adapters.base import CallFailure, Message, ModelReply, ModelRequest
from src.adapters.capabilities import MOST_ITEMS, strict_schema
from src.adapters.openai_adapter import CompatibleAdapter
from src.planning.prompts import REPLY_TYPES
from src.schemas import Role
from src.text.fence import reply_schema
from tests.llama_server import KINDS, NAME, Kind, llama_server, why_missing
from tests.runs import ONE, call, newest, replays, verifies
from tests.tiny_model import write_model

pytestmark = pytest.mark.slow

MODEL = f"compatible:{NAME}"
ROLES: tuple[Role, ...] = get_args(Role)
VERIFIER = REPLY_TYPES["verifier"]
CONTEXT = 65_536
SMALL_CONTEXT = 2_048
SYSTEM = "You check claims. " * 20
SERVERS = [kind for kind in KINDS if why_missing(kind) is None] or [KINDS[0]]
"""Those on this machine; without any, the tests are skipped and say what is missing."""


@dataclass(frozen=True)
class Server:
    kind: Kind
    model: Path
    address: str


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    kind: Kind = request.param
    if reason := why_missing(kind):
        pytest.skip(reason)
    pytest.importorskip("gguf", reason="gguf, which writes the model, is not installed (`make test-slow` installs it)")
    folder = tmp_path_factory.mktemp("llama")
    model = folder / "tiny.gguf"
    write_model(model)
    with llama_server(kind, model, CONTEXT, folder / "log.txt") as address:
        yield Server(kind, model, address)


def ask(address: str, *, schema: dict[str, Any] | None, user: str = "{}", max_tokens: int = 1000) -> ModelReply:
    """One call through the adapter that judges use."""

    async def answered() -> ModelReply:
        adapter = CompatibleAdapter(base_url=f"{address}/v1")
        try:
            return await adapter.complete(request, timeout_s=300)
        finally:
            await adapter.aclose()

    request = ModelRequest(
        model=MODEL,
        system=SYSTEM,
        messages=(Message("user", user),),
        temperature=0.0,
        max_tokens=max_tokens,
        seed=42,
        response_schema=schema,
    )
    return asyncio.run(answered())


@pytest.mark.parametrize("longest", [None, 1, MOST_ITEMS])
@pytest.mark.parametrize("role", ROLES)
def test_the_schema_of_every_role_is_accepted_and_the_answer_fits_it(
    server: Server, role: Role, longest: int | None
) -> None:
    jsonschema: Any = importlib.import_module("jsonschema")
    schema = reply_schema(REPLY_TYPES[role], longest)
    reply = ask(server.address, schema=schema)
    assert (reply.outcome, reply.stop_reason, reply.not_applied) == ("ok", "stop", ())
    document = json.loads(reply.text)
    jsonschema.validate(document, strict_schema(schema, list_lengths=True))
    # The model ends a list after one object, so an object inside a list was written under the schema too.
    assert any(isinstance(value, list) and len(value) == 1 for value in document.values())
    assert reply.served_model == NAME
    assert reply.usage.input_tokens and reply.usage.output_tokens


def test_a_list_is_not_longer_than_the_schema_allows(server: Server) -> None:
    """The model writes one object if it may, so an empty list shows that the length took effect."""
    reply = ask(server.address, schema=reply_schema(VERIFIER, 0))
    assert json.loads(reply.text)["verdicts"] == []


def test_without_a_schema_the_same_model_writes_no_json(server: Server) -> None:
    reply = ask(server.address, schema=None)
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.text)


def test_the_server_reads_an_equal_start_of_two_prompts_once(server: Server) -> None:
    start = "The answer key. " * 40
    schema = reply_schema(VERIFIER)
    first = ask(server.address, schema=schema, user=start + "claim 1")
    second = ask(server.address, schema=schema, user=start + "another claim")
    assert first.usage.cached_tokens is not None and second.usage.cached_tokens is not None
    assert first.usage.cached_tokens < len(start) < second.usage.cached_tokens


def test_an_answer_cut_at_the_token_limit_is_truncated_not_ok(server: Server) -> None:
    reply = ask(server.address, schema=reply_schema(VERIFIER), max_tokens=5)
    assert (reply.outcome, reply.stop_reason) == ("truncated", "length")


def test_a_prompt_longer_than_the_context_is_a_failure_that_says_so(server: Server, tmp_path: Path) -> None:
    with (
        llama_server(server.kind, server.model, SMALL_CONTEXT, tmp_path / "log.txt") as address,
        pytest.raises(CallFailure, match="exceeds the available context size") as failure,
    ):
        ask(address, schema=reply_schema(VERIFIER), user="x" * 5000)
    assert failure.value.outcome == "permanent"


@dataclass(frozen=True)
class Judged:
    """A run of one trial."""

    calls: list[Any]
    """Of the local judge."""
    result: Any

    @property
    def stages(self) -> set[str]:
        return {record["call"].split("|")[1] for record in self.calls}


def judged(server: Server, out: Path, monkeypatch: pytest.MonkeyPatch, *judges: str) -> Judged:
    """Run, verify and replay a study of one trial."""
    monkeypatch.setenv("COMPATIBLE_BASE_URL", f"{server.address}/v1")
    monkeypatch.delenv("COMPATIBLE_API_KEY", raising=False)
    models = [word for judge in judges for word in ("--judge-model", judge)]
    options = ("--timeout", 600, "--concurrency", 1, "--quiet", "--no-probe")
    code, _, err = call("run", "--scenario", ONE, "--target", "fake:careful", *models, *options, "--out", out)
    assert code == 4, err  # nothing is scored
    run = newest(out)
    verifies(run)
    replays(run)
    calls = map(json.loads, (run / storage.JOURNAL).read_text(encoding="utf-8").splitlines())
    (result,) = map(json.loads, (run / storage.RESULTS).read_text(encoding="utf-8").splitlines())
    return Judged([record for record in calls if record["model"] == MODEL], result)


def check_failed(run: Judged) -> None:
    """Every call brought an answer of the right form, and none of them counts."""
    assert run.calls
    assert {record["outcome"] for record in run.calls} == {"ok"}
    assert all(isinstance(json.loads(record["text"]), dict) for record in run.calls)
    assert all(record["sent"]["response_format"]["type"] == "json_schema" for record in run.calls)
    assert run.result["outcome"] == "judge_failure"
    assert run.result["final_scores"] is None
    assert run.result["needs_manual_review"]
    served = {service["model"]: service["served_models"] for service in run.result["judge_services"]}
    assert served[MODEL] == [NAME]


def test_a_run_judged_by_the_server_ends_with_judge_failures_and_no_judgment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(server, tmp_path, monkeypatch, MODEL)
    check_failed(run)
    assert "extractor" in run.stages
    assert not run.result["claims"]
    assert not any(run.result["verdicts"].values())


def test_a_local_verifier_beside_another_judge_adds_failures_and_no_verdict(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = judged(server, tmp_path, monkeypatch, "offline:rules", MODEL)
    check_failed(run)
    assert run.stages == {"verifier"}
    assert run.result["claims"]
    assert not run.result["verdicts"].get("judge_2")
