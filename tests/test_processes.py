"""`--processes`: the bytes of one process, limits that hold for all of them, and kills that cost no call twice.

Most tests start three processes and more, so the fast suite has one run.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

import src as me
from src import storage
from src.runner import shards
from src.store.failpoints import VARIABLE
from tests import sharded
from tests.failpoint_names import SHARD_NAMES
from tests.loopback import Received, Scripted
from tests.runs import THREE, call, make_run, newest, process, replays, resumes, verifies
from tests.sharded import STUDY, WORDS, billed, ends, interrupt, journaled, keys, kill, start, wait_until

FAKES = ("--scenario", THREE, "--target", "fake:careful", "--target", "fake:wrong", "--repeats", 2)
HARD = (*FAKES, "--paraphrase", "--questioner-model", "offline:rephrase", "--judge-repeats", 1, "--judge-sample", 0.5)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The results of the study over the loopback server, by one process."""
    with sharded.server(delay_s=0) as server:
        out = tmp_path_factory.mktemp("single")
        done = process("run", *STUDY, "--out", out, "--quiet", env=keys(server))
        assert done.returncode == 0, done.stderr
        assert set(billed(server).values()) == {1}, "each request of the study differs from the others"
    return (newest(out) / storage.RESULTS).read_bytes()


def is_whole(run: Path, expected: bytes) -> None:
    """The run is complete, the same as by one process, and nothing else is left in its folder."""
    assert (run / storage.RESULTS).read_bytes() == expected
    assert sorted(path.name for path in run.iterdir()) == ["calls.jsonl", "manifest.json", "results.jsonl", "seal.json"]
    verifies(run)
    replays(run)


def test_two_processes_write_what_one_writes(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", *HARD)
    two = make_run(tmp_path / "two", *HARD, "--processes", 2)
    is_whole(two, (one / storage.RESULTS).read_bytes())
    calls = [sorted((record.call, record.request_sha256) for record in me.open_run(run).calls()) for run in (one, two)]
    assert calls[0] == calls[1]


@pytest.mark.slow
def test_two_processes_judge_again_what_one_judges_again(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", *HARD)
    again_one = me.rejudge(one, judges=["offline:rules"], keep_claims=True, out=tmp_path / "again-one")
    again_two = me.rejudge(one, judges=["offline:rules"], keep_claims=True, out=tmp_path / "again-two", processes=2)
    is_whole(again_two.path, (again_one.path / storage.RESULTS).read_bytes())


@pytest.mark.slow
def test_a_killed_parent_costs_no_call_and_any_number_of_processes_resumes(tmp_path: Path, single: bytes) -> None:
    with sharded.server() as server:
        run = start("run", *STUDY, "--out", tmp_path, "--quiet", "--processes", 2, env=keys(server))
        wait_until(lambda: server.count >= 12, run)
        run.kill()
        run.communicate()
        folder = newest(tmp_path)
        assert shards.is_divided(folder)
        done = process("resume", folder, "--quiet", "--processes", 3, env=keys(server))
        assert done.returncode == 0, done.stderr
        assert set(billed(server).values()) == {1}, "a call was made twice"
        assert set(billed(server)) == journaled(folder)
    is_whole(folder, single)


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_only_its_calls_in_flight_are_made_again(tmp_path: Path, single: bytes) -> None:
    with sharded.server() as server:
        run = start("run", *STUDY, "--out", tmp_path, "--quiet", "--processes", 2, env=keys(server))
        wait_until(lambda: server.count >= 12, run)
        before = sharded.workers_of(run)
        os.kill(run.pid, signal.SIGSTOP)  # so that no worker takes over before the journal is read
        kill(before[0])
        folder = newest(tmp_path)
        recorded = journaled(folder)
        os.kill(run.pid, signal.SIGCONT)
        # A busy machine may see only that the run has ended, which it cannot have without the worker that took over.
        wait_until(lambda: run.poll() is not None or bool(set(sharded.workers_of(run)) - set(before)), run)
        code, _, err = ends(run)
        assert code == 0, err
        twice = {request for request, times in billed(server).items() if times > 1}
        assert not twice & recorded, "a call that was in the journal was made again"
        assert max(billed(server).values()) <= 2
    is_whole(folder, single)


@pytest.mark.slow
def test_workers_that_die_again_and_again_stop_the_run_and_resume_completes_it(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", *FAKES)
    stopped = process(
        "run", *FAKES, "--out", tmp_path / "two", "--quiet", "--processes", 2, env={VARIABLE: "journal.after_write:2"}
    )
    folder = newest(tmp_path / "two")
    assert stopped.returncode == 4
    assert "A worker process ended 4 times before its work was done" in stopped.stderr
    assert stopped.stderr.endswith(f"To continue: medicare-eval resume {folder}\n")
    assert "of 12 trials done. Results are written when all are." in stopped.stdout
    code, _, err = call("resume", newest(folder / shards.SHARDS))
    assert (code, f"is a part of {folder}. To continue: medicare-eval resume {folder}" in err) == (2, True)
    resumes(folder)
    is_whole(folder, (one / storage.RESULTS).read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARD_NAMES)
def test_a_parent_killed_between_two_steps_is_continued_there(name: str, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", *FAKES)
    killed = process("run", *FAKES, "--out", tmp_path / "two", "--quiet", "--processes", 2, env={VARIABLE: name})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    folder = newest(tmp_path / "two")
    code, _, err = call("resume", folder, "--quiet", "--processes", 2)
    assert code == 0, err
    is_whole(folder, (one / storage.RESULTS).read_bytes())


@pytest.mark.slow
def test_a_run_of_one_process_can_be_resumed_by_several(tmp_path: Path, single: bytes) -> None:
    with sharded.server() as server:
        run = start("run", *STUDY, "--out", tmp_path, "--quiet", env=keys(server))
        wait_until(lambda: server.count >= 12, run)
        code, _, _ = interrupt(run)
        assert code == 4
        folder = newest(tmp_path)
        done = process("resume", folder, "--quiet", "--processes", 2, env=keys(server))
        assert done.returncode == 0, done.stderr
        assert set(billed(server).values()) == {1}, "a call was made twice"
    is_whole(folder, single)


@pytest.mark.slow
def test_ctrl_c_stops_all_processes_after_their_calls_in_flight(tmp_path: Path, single: bytes) -> None:
    with sharded.server() as server:
        run = start("run", *STUDY, "--out", tmp_path, "--quiet", "--processes", 2, env=keys(server))
        wait_until(lambda: server.count >= 12, run)
        code, _, err = interrupt(run)
        folder = newest(tmp_path)
        assert code == 4
        assert err.endswith(f"The run was stopped before its end. To continue: medicare-eval resume {folder}\n")
        assert set(billed(server)) == journaled(folder), "a call was lost"
        assert sharded.workers_of(run) == []
        done = process("resume", folder, "--quiet", env=keys(server))
        assert done.returncode == 0, done.stderr
        assert set(billed(server).values()) == {1}, "a call was made twice"
    is_whole(folder, single)


@pytest.mark.slow
def test_a_refused_key_in_one_process_stops_all_in_one_sentence(tmp_path: Path, single: bytes) -> None:
    refusing = True
    count = 0

    def rule(request: Received) -> Scripted:
        nonlocal count
        count += 1
        return Scripted(status=401) if refusing and count > 12 else Scripted(text=WORDS, delay_s=0.03)

    with sharded.server(rule) as server:
        stopped = process("run", *STUDY, "--out", tmp_path, "--quiet", "--processes", 2, env=keys(server))
        folder = newest(tmp_path)
        assert stopped.returncode == 4, stopped.stderr
        assert "OPENAI_API_KEY" in stopped.stderr
        assert stopped.stderr.count("\n") == 1
        refusing = False
        done = process("resume", folder, "--quiet", "--processes", 2, env=keys(server))
        assert done.returncode == 0, done.stderr
    assert (folder / storage.RESULTS).read_bytes() == single


@pytest.mark.slow
def test_a_rate_holds_for_all_processes_together(tmp_path: Path) -> None:
    rpm = 12
    with sharded.server(delay_s=0) as server:
        began = time.monotonic()
        run = start(
            "run", *STUDY, "--out", tmp_path, "--quiet", "--processes", 2, "--rpm", f"openai={rpm}", env=keys(server)
        )
        wait_until(lambda: server.count > rpm, run)
        received, minutes = server.count, (time.monotonic() - began) / 60
        assert received <= rpm + rpm * minutes + 1  # what a full allowance gives, and what was refilled since
        assert interrupt(run)[0] == 4


@pytest.mark.slow
def test_a_budget_holds_for_all_processes_together(tmp_path: Path) -> None:
    limit, cost, most = 100.0, 7.0, 8.0
    prices = tmp_path / "prices.json"
    row = {"input": 0.0, "output": 1e6, "source": "made up", "read": "2026-11-01"}  # a dollar for each token
    prices.write_text(
        json.dumps(
            {
                "as_of": "2026-11-01",
                "currency": "USD",
                "unit": "1M tokens",
                "prices": {"openai:gpt-4.1-2025-04-14": row},
            }
        )
    )
    study = (*STUDY, "--max-tokens", int(most), "--prices", prices, "--max-cost", limit)
    with sharded.server() as server:
        stopped = process("run", *study, "--out", tmp_path / "runs", "--quiet", "--processes", 2, env=keys(server))
        folder = newest(tmp_path / "runs")
        assert stopped.returncode == 4, stopped.stderr
        assert stopped.stderr.startswith(
            "medicare-eval: The next call could pass --max-cost, so a higher one is needed. To continue:"
        )
        assert limit - most < server.count * cost <= limit
        before = server.count
        assert process("resume", folder, "--quiet", "--processes", 2, env=keys(server)).returncode == 4
        assert server.count == before, "the budget was forgotten"
        done = process("resume", folder, "--quiet", "--processes", 2, "--max-cost", 9_000, env=keys(server))
        assert done.returncode == 0, done.stderr
        assert set(billed(server).values()) == {1}, "a call was made twice"
    verifies(folder)
    replays(folder)
