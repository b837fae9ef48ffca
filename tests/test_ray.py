"""`--engine ray` on a real Ray cluster of two nodes: the bytes of one process, global limits, and a killed worker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from src import storage
from tests import sharded
from tests.loopback import Loopback
from tests.runs import ONE, ROOT, call, environment, newest, process, replays, verifies
from tests.sharded import STUDY, billed, ends, interrupt, journaled, keys, kill, start, wait_until

MISSING = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'ray>=2.60,<3'")
NO_USAGE_STATS = {"RAY_USAGE_STATS_ENABLED": "0"}


def test_without_ray_the_engine_is_refused_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = call(
        "run", "--scenario", ONE, "--target", "fake:careful", "--engine", "ray", "--out", tmp_path / "runs"
    )
    assert code == 3
    assert not (tmp_path / "runs").exists()
    assert (
        err.splitlines()[-1]
        == "medicare-eval: --engine: Ray is not installed. Run: python -m pip install 'ray>=2.60,<3'"
    )


@dataclass(frozen=True)
class TwoNodes:
    address: str
    server: Loopback

    @property
    def engine(self) -> tuple[str, ...]:
        return "--engine", "ray", "--ray-address", self.address

    @property
    def env(self) -> dict[str, str]:
        return {**keys(self.server), **NO_USAGE_STATS}


@pytest.fixture(scope="module")
def nodes() -> Iterator[TwoNodes]:
    with sharded.server(delay_s=0.3) as server:
        cluster = subprocess.Popen(
            [sys.executable, "-m", "tests.ray_cluster"],
            cwd=ROOT,
            env=environment({**keys(server), **NO_USAGE_STATS}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert cluster.stdout
        address = cluster.stdout.readline().strip()
        assert address, "the cluster did not start"
        yield TwoNodes(address, server)
        cluster.communicate("")


@pytest.fixture(autouse=True)
def forgotten(request: pytest.FixtureRequest) -> None:
    """Each test counts its own requests."""
    if "nodes" in request.fixturenames:
        request.getfixturevalue("nodes").server.script()


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with sharded.server(delay_s=0) as server:
        out = tmp_path_factory.mktemp("single")
        done = process("run", *STUDY, "--out", out, "--quiet", env=keys(server))
        assert done.returncode == 0, done.stderr
    return (newest(out) / storage.RESULTS).read_bytes()


def tasks() -> list[int]:
    """The Ray workers that carry out a shard now."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "cmdline").read_text().startswith("ray::carry_out_shard"):
                found.append(int(entry.name))
        except (OSError, UnicodeDecodeError):
            continue
    return found


@pytest.mark.slow
@MISSING
def test_a_killed_ray_worker_costs_only_its_calls_in_flight(nodes: TwoNodes, tmp_path: Path, single: bytes) -> None:
    server = nodes.server
    run = start("run", *STUDY, "--out", tmp_path, "--quiet", *nodes.engine, env=nodes.env)
    wait_until(lambda: server.count >= 12 and len(tasks()) == 2, run)
    folder = newest(tmp_path)
    recorded = journaled(folder)  # before the kill: the worker that takes over may be quick
    kill(tasks()[0])
    code, _out, err = ends(run)
    assert code == 0, err
    twice = {request for request, times in billed(server).items() if times > 1}
    assert not twice & recorded, "a call that was in the journal was made again"
    assert set(billed(server)) == journaled(folder), "a call was lost"
    assert (folder / storage.RESULTS).read_bytes() == single
    assert not (folder / "shards").exists()
    verifies(folder)
    replays(folder)


@pytest.mark.slow
@MISSING
def test_ctrl_c_stops_the_tasks_of_a_cluster_and_resume_needs_no_cluster(
    nodes: TwoNodes, tmp_path: Path, single: bytes
) -> None:
    server = nodes.server
    run = start("run", *STUDY, "--out", tmp_path, "--quiet", *nodes.engine, env=nodes.env)
    wait_until(lambda: server.count >= 12, run)
    code, _out, err = interrupt(run)
    folder = newest(tmp_path)
    assert (code, f"To continue: medicare-eval resume {folder}" in err) == (4, True)
    assert set(billed(server)) == journaled(folder), "a call was lost"
    done = process("resume", folder, "--quiet", "--processes", 2, env=nodes.env)
    assert done.returncode == 0, done.stderr
    assert set(billed(server).values()) == {1}, "a call was made twice"
    assert (folder / storage.RESULTS).read_bytes() == single


@pytest.mark.slow
@MISSING
def test_rates_and_budget_hold_for_all_tasks_of_a_cluster(nodes: TwoNodes, tmp_path: Path) -> None:
    server, rpm = nodes.server, 12
    began = time.monotonic()
    run = start("run", *STUDY, "--out", tmp_path, "--quiet", "--rpm", f"openai={rpm}", *nodes.engine, env=nodes.env)
    wait_until(lambda: server.count > rpm, run)
    assert server.count <= rpm + rpm * (time.monotonic() - began) / 60 + 1
    assert interrupt(run)[0] == 4

    server.script()
    limit, cost, most = 100.0, 7.0, 8.0
    prices = tmp_path / "prices.json"
    row = {"input": 0.0, "output": 1e6, "source": "made up", "read": "2026-11-01"}  # a dollar for each token
    names = {"openai:gpt-4.1-2025-04-14": row}
    prices.write_text(json.dumps({"as_of": "2026-11-01", "currency": "USD", "unit": "1M tokens", "prices": names}))
    money = ("--max-tokens", int(most), "--prices", prices, "--max-cost", limit)
    stopped = process("run", *STUDY, *money, "--out", tmp_path / "money", "--quiet", *nodes.engine, env=nodes.env)
    assert stopped.returncode == 4, stopped.stderr
    assert stopped.stderr.startswith(
        "medicare-eval: The next call could pass --max-cost, so a higher one is needed. To continue:"
    )
    assert limit - most < server.count * cost <= limit
