"""A provider that fails in the middle of a run: nothing is sealed that the target did not answer, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from src import storage
from src.calls import breaker, limits
from src.schemas import CallRecord, TrialResult
from src.store.hash_chain import GENESIS, ChainReader, is_call
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ONE, call, newest, replays, verifies
from tests.suites import sample
from tests.test_wire_runs import SENTINEL, redirect, sensible

DOWN = (Scripted(status=503), Scripted(fault="reset"), Scripted(fault="html"))
STUDY = ("--scenario", ONE, "--target", "openai:gpt-4.1", "--target", "xai:grok-4.6", "--judge-model", "offline:rules")


def study(folder: Path, *more: object, code: int = 0) -> str:
    found, _, err = call("run", *STUDY, "--repeats", "10", "--out", folder, "--quiet", *more)
    assert found == code, err
    return err


def records(folder: Path) -> list[CallRecord]:
    """The calls over the wire."""
    reader = ChainReader(folder / storage.JOURNAL, storage.manifest_sha256(folder))
    found = [CallRecord.model_validate_json(line.payload) for line in reader if is_call(line.payload)]
    return [record for record in found if not record.model.startswith("offline:")]


def outcomes(folder: Path) -> set[str]:
    lines = ChainReader(folder / storage.RESULTS, GENESIS)
    return {TrialResult.model_validate_json(line.payload).outcome for line in lines}


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Pauses and retries as usual, but short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(breaker, "FIRST_PAUSE_S", 0.02)
        patch.setattr(breaker, "LONGEST_PAUSE_S", 0.1)
        patch.setattr(limits, "FIRST_CEILING_S", 0.01)
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The results of the study if nothing goes wrong."""
    out = tmp_path_factory.mktemp("undisturbed")
    with Loopback(sensible) as server, pytest.MonkeyPatch.context() as patch:
        redirect(patch, server)
        study(out)
    return (newest(out) / storage.RESULTS).read_bytes()


def flaky(broken: Callable[[int], Scripted | None]) -> Callable[[Received], Scripted]:
    """A server that answers as it should except where `broken` says so, by the number of the call."""
    seen = 0

    def script(request: Received) -> Scripted:
        nonlocal seen
        seen += 1
        return broken(seen) or sensible(request)

    return script


def resumed_is_whole(folder: Path, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fault gone, the run comes to the bytes that it would have come to without it."""
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        assert call("resume", folder, "--quiet")[0] == 0
    assert (folder / storage.RESULTS).read_bytes() == undisturbed
    verifies(folder)
    replays(folder)


@pytest.mark.parametrize("down", sample(DOWN, DOWN[:1], pytest.mark.slow), ids=lambda one: one.fault or str(one.status))
def test_a_provider_that_is_down_for_a_while_is_waited_for(
    down: Scripted, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Loopback(flaky(lambda number: down if 30 <= number < 60 else None)) as server:
        redirect(monkeypatch, server)
        study(tmp_path / "runs")
        folder = newest(tmp_path / "runs")
        assert len(records(folder)) == server.count
    assert outcomes(folder) == {"scored"}
    assert (folder / storage.RESULTS).read_bytes() == undisturbed
    failed = [record for record in records(folder) if record.outcome != "ok"]
    assert failed
    assert not any(record.final for record in failed)
    verifies(folder)
    replays(folder)


@pytest.mark.slow
def test_a_provider_that_stays_down_stops_the_run_and_the_resumed_run_is_whole(
    undisturbed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Loopback(flaky(lambda number: DOWN[0] if number > 30 else None)) as server:
        redirect(monkeypatch, server)
        err = study(tmp_path / "runs", "--max-outage", "1", code=4)
    assert "has answered nothing for" in err
    assert "longer than --max-outage" in err
    assert "HTTP 503" in err
    folder = newest(tmp_path / "runs")
    assert outcomes(folder) <= {"scored"}
    resumed_is_whole(folder, undisturbed, monkeypatch)


@pytest.mark.parametrize("status", sample([401, 402, 403, 404], [401], pytest.mark.slow))
def test_a_key_that_is_revoked_stops_the_run_and_the_resumed_run_is_whole(
    status: int, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused = Scripted(status=status, echo_key=True)
    with Loopback(flaky(lambda number: refused if number > 30 else None)) as server:
        redirect(monkeypatch, server)
        err = study(tmp_path / "runs", code=4)
        folder = newest(tmp_path / "runs")
        assert len(records(folder)) == server.count
        asked = server.count
    (said,) = [line for line in err.splitlines() if "cannot be used" in line]
    assert any(variable in said for variable in ("OPENAI_API_KEY", "XAI_API_KEY"))
    assert f"HTTP {status}" in said
    assert f"medicare-eval resume {folder}" in said
    assert SENTINEL not in err
    assert outcomes(folder) <= {"scored"}
    assert asked < 31 + 16, "only calls in flight came after the first refusal"
    resumed_is_whole(folder, undisturbed, monkeypatch)


DISABLED = b'{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}'
REFUSALS = {
    "words that nobody knows": Scripted(status=400, raw=DISABLED),
    "sent to a login page": Scripted(status=302, raw=b"<html>", headers={"location": "/login"}),
    "gone": Scripted(status=410),
    "for legal reasons": Scripted(status=451),
}


@pytest.mark.parametrize("words", sample(REFUSALS, ["words that nobody knows"], pytest.mark.slow))
def test_an_account_that_is_refused_in_other_words_stops_the_run_and_the_resumed_run_is_whole(
    words: str, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No list has these words. A model that refuses a short test call too refuses more than one request."""
    refused = REFUSALS[words]
    with Loopback(flaky(lambda number: refused if number > 30 else None)) as server:
        redirect(monkeypatch, server)
        err = study(tmp_path / "runs", code=4)
        folder = newest(tmp_path / "runs")
        assert len(records(folder)) == server.count
    assert "refuses every request, even a short test call" in err
    assert f"HTTP {refused.status}" in err
    assert outcomes(folder) <= {"scored"}
    refusals = [record for record in records(folder) if record.outcome == "permanent"]
    assert refusals
    assert not any(record.final for record in refusals if not record.call.startswith("probe"))
    resumed_is_whole(folder, undisturbed, monkeypatch)


def test_a_request_that_is_refused_by_a_model_that_answers_others_is_a_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Loopback(flaky(lambda number: Scripted(status=400) if number == 12 else None)) as server:
        redirect(monkeypatch, server)
        study(tmp_path / "runs")
        folder = newest(tmp_path / "runs")
        assert len(records(folder)) == server.count
    (refused,) = [record for record in records(folder) if record.outcome == "permanent"]
    assert refused.final
    assert outcomes(folder) == {"scored", "failed"}


@pytest.mark.slow
def test_a_refusal_during_an_outage_is_not_a_result(
    undisturbed: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A gateway in trouble: a refusal, and then nothing for a while."""
    with Loopback(
        flaky(lambda n: Scripted(status=400) if n == 12 else Scripted(status=503) if 12 < n < 40 else None)
    ) as server:
        redirect(monkeypatch, server)
        study(tmp_path / "runs")
    folder = newest(tmp_path / "runs")
    assert (folder / storage.RESULTS).read_bytes() == undisturbed
    refusals = [record for record in records(folder) if record.outcome == "permanent"]
    assert refusals
    assert not any(record.final for record in refusals if not record.call.startswith("probe"))
    verifies(folder)
    replays(folder)


def test_a_judge_with_a_wrong_key_stops_the_run_before_the_target_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def script(request: Received) -> Scripted:
        return Scripted(status=401) if request.wire == "anthropic" else sensible(request)

    arguments = ("--scenario", ONE, "--target", "openai:gpt-4.1", "--judge-model", "anthropic:claude-sonnet-4-6")
    with Loopback(script) as server:
        redirect(monkeypatch, server)
        code, _, err = call("run", *arguments, "--out", tmp_path, "--quiet")
        assert code == 4
        assert "ANTHROPIC_API_KEY" in err
        folder = newest(tmp_path)
        assert {record.call.split("|")[1] for record in records(folder)} == {"probe"}


def test_a_server_that_is_not_there_is_found_before_the_first_trial(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
    code, _, err = call("run", *STUDY, "--out", tmp_path, "--quiet")
    assert code == 4
    assert "did not answer a short test call" in err
    assert "Connection refused" in err
    assert outcomes(newest(tmp_path)) == set()
