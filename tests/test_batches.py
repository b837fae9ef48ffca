"""Judges in batches: the same results as live, each line paid once, whatever happens to a batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from src import storage
from src.adapters import batches
from src.records.run import BatchEnded
from src.schemas import CallRecord
from tests.batch_server import BatchServer, Fault, Provider, redirect
from tests.runs import ONE, Called, call, newest, replays, verifies
from tests.suites import sample
from tests.test_wire_runs import sensible

JUDGES: dict[Provider, str] = {
    "openai": "openai:gpt-5.5-2026-04-23",
    "anthropic": "anthropic:claude-sonnet-4-6",
    "google": "google:gemini-3.8-flash",
    "xai": "xai:grok-4.6",
}


PROVIDERS = tuple(JUDGES)


class LiveRun(NamedTuple):
    run: Path
    results: bytes
    billed: Counter[str]


def records(run: Path) -> list[CallRecord]:
    return list(storage.read_calls(run, storage.read_manifest(run)))


def judged(provider: Provider, *arguments: object) -> list[object]:
    judges = ["--judge-model", JUDGES[provider], "--adjudicator-model", "none", "--no-probe"]
    return ["run", "--scenario", ONE, "--target", "fake:partial", "--target", "fake:wrong", *judges, *arguments]


def run_in_batches(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *faults: Fault, polls: int = 1
) -> tuple[BatchServer, Called]:
    with BatchServer(sensible, faults=faults, polls=polls) as server:
        redirect(monkeypatch, server)
        done = call(*judged(provider, "--out", tmp_path / "runs", "--batch", "judges"))
    return server, done


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Provider, LiveRun]]:
    """What each provider's judges give, and what they are paid for, without batches."""
    found: dict[Provider, LiveRun] = {}
    with pytest.MonkeyPatch.context() as patch:
        for provider in JUDGES:
            out = tmp_path_factory.mktemp("live")
            with BatchServer(sensible) as server:
                redirect(patch, server)
                code, _, err = call(*judged(provider, "--out", out, "--quiet"))
                assert code == 0, err
            run = newest(out)
            found[provider] = LiveRun(run, (run / storage.RESULTS).read_bytes(), server.billed)
        yield found


def same(run: Path, server: BatchServer, live: LiveRun) -> None:
    """The results are those of the live run, and each line was paid for once."""
    assert (run / storage.RESULTS).read_bytes() == live.results
    assert server.billed == live.billed
    verifies(run)


def judgments(run: Path) -> dict[str, dict[str, Any]]:
    """All fields of the judges' calls but times, ids of the exchange and the address, with the body as it was meant."""
    other = {"started", "latency_ms", "request_id", "address", "batch", "received"}
    return {
        record.call: record.model_dump(exclude=other) | {"received": json.loads(record.received)}
        for record in records(run)
        if "|target|" not in record.call
    }


@pytest.mark.parametrize("provider", JUDGES)
def test_a_batch_run_gives_the_bytes_of_a_live_run_and_pays_for_the_same_lines(
    provider: Provider, live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And each line is recorded as its live call is: the same words, bytes, tokens and model."""
    server, (code, _, err) = run_in_batches(provider, monkeypatch, tmp_path)
    assert code == 0, err
    run = newest(tmp_path / "runs")
    same(run, server, live[provider])
    assert not server.live
    assert 2 <= len(server.batches) <= 4
    assert judgments(run) == judgments(live[provider].run)
    assert all(record.batch for record in records(run) if record.call in judgments(run))
    assert not any(record.batch for record in records(live[provider].run))
    replays(run)


def at_one_provider(*faults: Fault) -> list[Any]:
    """Every fault at every provider; the fast suite has each at one of them."""
    every = [(one, fault) for one in PROVIDERS for fault in faults if (one, fault) != ("anthropic", "fail")]
    # Anthropic has no such state.
    return sample(every, [(PROVIDERS[number], fault) for number, fault in enumerate(faults)], pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "fault"), at_one_provider("expire", "cancel", "partial", "missing"))
def test_lines_without_a_response_go_into_the_next_batch_and_the_others_are_kept(
    provider: Provider, fault: Fault, live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server, (code, _, err) = run_in_batches(provider, monkeypatch, tmp_path, fault, "none", fault)
    assert code == 0, err
    run = newest(tmp_path / "runs")
    same(run, server, live[provider])
    again = [record for record in records(run) if record.call.endswith("|2")]
    first = [line for line in server.batches[0].lines if line.outcome != "answered"]
    assert first
    assert len(again) >= len(first)
    failed = [record for record in records(run) if record.outcome != "ok"]
    assert failed
    assert all(record.outcome == "transient" and not record.final and record.batch for record in failed)
    replays(run)


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "fault"), at_one_provider("reset_before", "reset_after"))
def test_a_lost_answer_to_the_post_neither_loses_a_batch_nor_sends_it_twice(
    provider: Provider, fault: Fault, live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server, (code, _, err) = run_in_batches(provider, monkeypatch, tmp_path, fault, "none", fault)
    assert code == 0, err
    run = newest(tmp_path / "runs")
    same(run, server, live[provider])
    ended = [note for note in storage.read_notes(run) if isinstance(note, BatchEnded)]
    assert [note.state for note in ended if note.batch is None] == ["never accepted"] * 2 * (fault == "reset_before")


@pytest.mark.slow
def test_a_post_that_is_accepted_and_never_answered_is_found_again(
    live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(batches, "TIMEOUT_S", 0.5)
    for provider in ("openai", "anthropic"):
        server, (code, _, err) = run_in_batches(provider, monkeypatch, tmp_path, "silent_after")
        assert code == 0, err
        same(newest(tmp_path / "runs"), server, live[provider])


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "fault"), at_one_provider("deny", "refuse", "fail"))
def test_a_refused_batch_stops_the_run_and_resume_completes_it(
    provider: Provider, fault: Fault, live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with BatchServer(sensible, faults=[fault], polls=1) as server:
        redirect(monkeypatch, server)
        code, _, err = call(*judged(provider, "--out", tmp_path / "runs", "--batch", "judges"))
        run = newest(tmp_path / "runs")
        assert code == 4
        assert "scripted" in err
        assert f"medicare-eval resume {run}" in err
        assert not (run / storage.SEAL).exists()
        assert not server.billed
        code, _, err = call("resume", run, "--quiet", "--no-probe")
        assert code == 0, err
    same(run, server, live[provider])


@pytest.mark.parametrize("provider", sample(PROVIDERS, ["google"], pytest.mark.slow))
def test_questions_about_a_batch_are_repeated_until_they_are_answered(
    provider: Provider, live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with BatchServer(sensible, polls=1) as server:
        server.broken_polls = 4
        redirect(monkeypatch, server)
        code, _, err = call(*judged(provider, "--out", tmp_path, "--batch", "judges"))
        assert code == 0, err
        assert server.broken_polls == 0
    assert f"{provider} did not say how its batch is" in err
    same(newest(tmp_path), server, live[provider])


def test_a_busy_provider_is_asked_again_later(
    live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server, (code, _, err) = run_in_batches("openai", monkeypatch, tmp_path, "busy", "none", "busy")
    assert code == 0, err
    same(newest(tmp_path / "runs"), server, live["openai"])


@pytest.mark.parametrize("provider", sample(PROVIDERS, ["xai"], pytest.mark.slow))
def test_a_line_that_the_provider_refuses_is_final_as_in_a_live_run(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, (code, _, err) = run_in_batches(provider, monkeypatch, tmp_path, "bad_line")
    assert code == 0, err
    run = newest(tmp_path / "runs")
    (failed,) = [record for record in records(run) if record.outcome != "ok"]
    assert (failed.outcome, failed.status, failed.final) == ("permanent", 400, True)
    assert "scripted" in (failed.error or "")
    replays(run)


@pytest.mark.slow
def test_the_run_stops_after_batch_wait_and_resume_says_when_to_come_back(
    live: dict[Provider, LiveRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with BatchServer(sensible, polls=3) as server:
        redirect(monkeypatch, server)
        code, _, err = call(*judged("anthropic", "--out", tmp_path, "--batch", "judges", "--batch-wait", "0"))
        run = newest(tmp_path)
        assert code == 4
        assert "1 batch with 8 calls is at anthropic, submitted at 20" in err
        assert "and ends by 20" in err
        assert f"medicare-eval resume {run}" in err
        stops = 0
        while (code := call("resume", run, "--quiet", "--no-probe", "--batch-wait", "0").code) == 4:
            stops += 1
            assert stops < 50
        assert code == 0
        assert stops >= 4
    same(run, server, live["anthropic"])


@pytest.mark.slow
def test_progress_says_what_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, (code, _, err) = run_in_batches("google", monkeypatch, tmp_path, polls=4)
    assert code == 0, err
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    waiting = [line["notice"] for line in lines if line["event"] == "waiting"]
    assert any(notice.startswith("1 batch with 8 calls is at google, submitted at ") for notice in waiting)


def test_judges_without_a_batch_api_are_called_as_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, _, err = call(
        "run", "--scenario", ONE, "--target", "fake:partial", "--out", tmp_path, "--batch", "judges", "--quiet"
    )
    assert code == 0, err
    assert not list(storage.read_notes(newest(tmp_path)))


def test_a_target_is_called_live_and_only_judges_are_batched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with BatchServer(sensible) as server:
        redirect(monkeypatch, server)
        judges = ["--judge-model", JUDGES["anthropic"], "--judge-model", JUDGES["google"]]
        code, _, err = call(
            "run", "--scenario", ONE, "--target", "openai:gpt-4.1", *judges, "--out", tmp_path, "--batch", "judges",
            "--quiet",
        )  # fmt: skip
        assert code == 0, err
    run = newest(tmp_path)
    stages = {record.call.split("|")[1] for record in records(run) if not record.batch}
    assert stages == {"target", "probe"}
    assert {one.provider for one in server.batches} == {"anthropic", "google"}
    replays(run)
