"""Batches in whole runs: money, Ctrl-C, rejudge, judge-check, and what a journal says about them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import src as me
from bench import judging_cost
from src import storage
from src.adapters.base import BatchLimits
from src.adapters.openai_adapter import OpenAIBatches
from src.calls.prices import cost, load_prices, worst_case
from src.calls.stop import Stop
from src.errors import IncompleteRun
from src.findings.cost import read_calls
from src.findings.judge_agreement import RECORD
from src.records.run import BatchCreated, BatchEnded, BatchIntent
from src.schemas import Usage
from tests.batch_server import BatchServer, redirect, redirected
from tests.runs import HANGS_S, ONE, ROOT, call, command, environment, newest, process, replays, verifies
from tests.test_batches import JUDGES, judged, records
from tests.test_wire_runs import sensible


def test_the_journal_has_the_intent_before_the_id_and_the_end_after_all_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with BatchServer(sensible) as server:
        redirect(monkeypatch, server)
        assert call(*judged("openai", "--out", tmp_path, "--batch", "judges", "--quiet")).code == 0
    run = newest(tmp_path)
    order: dict[str, list[str]] = {}
    ids: dict[str, str] = {}
    for line in (run / storage.JOURNAL).read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        if "note" in document:
            ids[document.get("batch", "")] = document["intent"]
            order.setdefault(document["intent"], []).append(document["note"])
        elif document.get("batch"):
            order[ids[document["batch"]]].append("line")
    for notes in order.values():
        assert notes[:2] == ["batch_intent", "batch_created"]
        assert set(notes[2:-1]) == {"line"}
        assert notes[-1] == "batch_ended"
    intents = [note for note in storage.read_notes(run) if isinstance(note, BatchIntent)]
    created = {note.intent: note.batch for note in storage.read_notes(run) if isinstance(note, BatchCreated)}
    told = {one.name: one.id for one in server.batches}
    assert created == told
    by_call = {record.call: record for record in records(run)}
    for intent in intents:
        assert all(by_call[line.call].batch == created[intent.intent] for line in intent.lines)
        assert all(by_call[line.call].request_sha256 == line.request_sha256 for line in intent.lines)
        assert all(len(line.custom_id) <= 64 and line.custom_id.startswith(intent.intent) for line in intent.lines)
    assert len(order) == len([note for note in storage.read_notes(run) if isinstance(note, BatchEnded)])


def test_a_batch_that_would_be_too_large_is_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(OpenAIBatches, "limits", BatchLimits(3, 100_000))
    with BatchServer(sensible, polls=0) as server:
        redirect(monkeypatch, server)
        assert call(*judged("openai", "--out", tmp_path, "--batch", "judges", "--quiet")).code == 0
    sizes = [len(one.lines) for one in server.batches]
    assert max(sizes) == 3
    assert sum(sizes) == sum(server.billed.values())
    verifies(newest(tmp_path))


@pytest.mark.slow
def test_ctrl_c_says_what_is_at_the_provider_and_resume_takes_it(tmp_path: Path) -> None:
    with BatchServer(sensible, polls=1_000_000) as server:
        arguments = judged("google", "--out", tmp_path / "runs", "--quiet", "--batch", "judges")
        child = subprocess.Popen(
            command(*arguments), cwd=ROOT, env=environment(redirected(server)), stderr=subprocess.PIPE, text=True
        )
        try:
            until = time.monotonic() + HANGS_S
            while not (server.batches and server.batches[0].polls < 1_000_000) and time.monotonic() < until:
                time.sleep(0.02)
            os.kill(child.pid, signal.SIGINT)
            _, err = child.communicate(timeout=HANGS_S)
        finally:
            child.kill()
        run = newest(tmp_path / "runs")
        assert child.returncode == 4
        assert "1 batch with 8 calls is at google, submitted at 20" in err
        assert f"To continue: medicare-eval resume {run}" in err
        assert len(server.batches) == 1
        server.polls = server.batches[0].polls = 1
        resumed = process("resume", run, "--quiet", "--no-probe", env=redirected(server))
        assert resumed.returncode == 0, resumed.stderr
    assert max(server.billed.values()) == 1
    verifies(run)
    replays(run)


@pytest.mark.slow
def test_a_budget_is_kept_at_batch_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A round is sent in parts that the budget allows: twice as many calls as it allows at the full price."""
    limit = 0.25
    with BatchServer(sensible, polls=0) as server:
        redirect(monkeypatch, server)
        arguments = judged("anthropic", "--batch", "judges", "--quiet")
        code, _, err = call(*arguments, "--max-cost", 0.01, "--out", tmp_path / "stopped")
        assert code == 4
        assert "max-cost" in err or "max_cost" in err
        assert not server.batches
        code, _, err = call(*arguments, "--max-cost", limit, "--out", tmp_path / "runs")
        assert code == 0, err
    run = newest(tmp_path / "runs")
    price = storage.read_manifest(run).prices[JUDGES["anthropic"]]
    sizes = {record.call: (record.input_characters, record.max_tokens) for record in records(run)}
    parts = [note.lines for note in storage.read_notes(run) if isinstance(note, BatchIntent)]
    for lines in parts:
        assert sum(worst_case(price, *sizes[line.call], batch=True) for line in lines) <= limit
    assert any(sum(worst_case(price, *sizes[line.call]) for line in lines) > limit for lines in parts)
    (row,) = [row for row in read_calls(run, storage.read_manifest(run)).spending if row.part == "judges"]
    lines_paid = [record for record in records(run) if record.batch]
    assert row.attempts == len(lines_paid)
    assert row.cost == pytest.approx(sum(cost(price, record.usage, batch=True) or 0.0 for record in lines_paid))
    assert max(server.billed.values()) == 1


def test_a_line_costs_its_share_and_cached_input_its_own() -> None:
    prices = load_prices(None)
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000, cached_tokens=500_000)
    anthropic, google = prices[JUDGES["anthropic"]], prices[JUDGES["google"]]
    assert cost(anthropic, usage, batch=True) == pytest.approx(0.5 * (cost(anthropic, usage) or 0))
    plain = 0.5 * google.input + google.output
    assert cost(google, usage, batch=True) == pytest.approx(0.5 * plain + 0.5 * (google.cached or 0))
    for provider, judge in JUDGES.items():
        batch = prices[judge].batch
        assert batch is not None, provider
        assert batch.source.startswith(("OpenAI", "Anthropic", "Google", "xAI"))


def test_a_dry_run_estimates_batches_at_their_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    costs = {}
    for mode in ("none", "judges"):
        arguments = judged("anthropic", "--dry-run", "--json", "--batch", mode)
        code, out, err = call(*arguments)
        assert code == 0, err
        rows = [row for row in json.loads(out)["estimate"] if row["role"] != "target"]
        costs[mode] = sum(row["cost"] for row in rows)
    assert costs["judges"] == pytest.approx(0.5 * costs["none"])
    assert "estimated at batch prices" in call(*judged("anthropic", "--dry-run", "--batch", "judges")).out


def test_a_rejudging_in_batches_is_the_live_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert call("run", "--scenario", ONE, "--target", "fake:wrong", "--out", tmp_path / "first", "--quiet").code == 0
    first, found = newest(tmp_path / "first"), []
    for mode in ("none", "judges"):
        with BatchServer(sensible) as server:
            redirect(monkeypatch, server)
            judge = ["--judge-model", JUDGES["xai"], "--adjudicator-model", "none"]
            words = ["rejudge", first, *judge, "--batch", mode, "--out", tmp_path / mode, "--quiet", "--no-probe"]
            code, _, err = call(*words)
            assert code == 0, err
        assert bool(server.batches) == (mode == "judges")
        assert bool(server.live) == (mode == "none")
        found.append(((newest(tmp_path / mode) / storage.RESULTS).read_bytes(), server.billed))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_judge_check_in_batches_measures_the_same_and_remembers_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = []
    for mode in ("none", "judges"):
        with BatchServer(sensible) as server:
            redirect(monkeypatch, server)
            judge = ["--judge-model", JUDGES["openai"], "--limit", "3", "--quiet", "--no-probe"]
            code, _, err = call("judge-check", *judge, "--batch", mode, "--batch-wait", "0", "--out", tmp_path / mode)
            folder, times = newest(tmp_path / mode), 0
            while code == 4:
                times += 1
                assert times < 50
                assert "at openai, submitted at" in err
                assert f"judge-check --resume {folder}" in err
                words = ["judge-check", "--resume", folder, "--quiet", "--no-probe", "--batch-wait", "0"]
                code, _, err = call(*words)
            assert code == 0, err
        assert bool(server.batches) == (mode == "judges")
        assert not (mode == "judges" and server.live)
        document = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        same = {name: document[name] for name in ("claims", "judges", "extractor_measured", "failures", "calls")}
        found.append((same, server.billed))
    assert found[0] == found[1]


def test_a_stop_while_calls_are_parked_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with BatchServer(sensible, polls=1_000_000) as server:
        redirect(monkeypatch, server)

        async def stopped() -> None:
            stop = Stop()
            work = asyncio.create_task(
                me.run_async(
                    scenarios=[ONE], targets=["fake:wrong"], judges=[JUDGES["openai"]], adjudicator="none",
                    batch="judges", no_probe=True, out=str(tmp_path), stop=stop,
                )
            )  # fmt: skip
            while not server.batches:
                await asyncio.sleep(0.02)
            stop.ask()
            await work

        with pytest.raises(IncompleteRun, match="1 batch with 4 calls is at openai"):
            asyncio.run(stopped())


def test_the_table_of_judging_costs_is_in_the_guide() -> None:
    table = judging_cost.table()
    assert table in (ROOT / "docs" / "batches.md").read_text(encoding="utf-8")
    assert len(table.splitlines()) == 2 + len(JUDGES)


def test_batches_and_several_processes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for more in (("--processes", "2"), ("--engine", "ray")):
        arguments = ("--scenario", ONE, "--target", "fake:careful", "--batch", "judges", "--out", tmp_path / "runs")
        code, _, err = call("run", *arguments, *more)
        assert code == 2
        assert "--batch: batches are sent by one process" in err
        assert not (tmp_path / "runs").exists()
