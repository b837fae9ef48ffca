"""Real kills of the command line at every step of a batch: nothing is paid twice, and nothing is lost."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from src import storage
from src.store.failpoints import VARIABLE
from tests.batch_server import BatchServer, Provider, redirect, redirected
from tests.failpoint_names import NAMES
from tests.runs import call, newest, process, replays, verifies
from tests.suites import sample
from tests.test_batches import JUDGES, judged
from tests.test_wire_runs import sensible

STEPS = tuple(name for name in NAMES if name.startswith("batch."))
SLOW = [(tuple(JUDGES)[number % len(JUDGES)], step, number % 3 + 1) for number, step in enumerate(STEPS)]
NIGHTLY = [(provider, step, hit) for provider in JUDGES for step in STEPS for hit in (1, 2, 3)]


def test_a_kill_costs_no_line_twice(tmp_path: Path) -> None:
    killed_and_resumed("anthropic", "batch.after_post", 2, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("provider", "step", "hit"), sample(NIGHTLY, SLOW))
def test_a_kill_at_any_step_costs_no_line_twice(provider: Provider, step: str, hit: int, tmp_path: Path) -> None:
    killed_and_resumed(provider, step, hit, tmp_path)


def killed_and_resumed(provider: Provider, step: str, hit: int, tmp_path: Path) -> None:
    with BatchServer(sensible) as live, pytest.MonkeyPatch.context() as patch:
        redirect(patch, live)
        code, _, err = call(*judged(provider, "--out", tmp_path / "live", "--quiet"))
        assert code == 0, err
    expected = (newest(tmp_path / "live") / storage.RESULTS).read_bytes()
    with BatchServer(sensible, polls=2) as server:
        arguments = judged(provider, "--out", tmp_path / "runs", "--quiet", "--batch", "judges")
        killed = process(*arguments, env=redirected(server) | {VARIABLE: f"{step}:{hit}"})
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        run = newest(tmp_path / "runs")
        resumed = process("resume", run, "--quiet", "--no-probe", env=redirected(server))
        assert resumed.returncode == 0, resumed.stderr
    assert (run / storage.RESULTS).read_bytes() == expected
    assert server.billed == live.billed
    verifies(run)
    replays(run)
