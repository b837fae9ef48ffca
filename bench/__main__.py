"""`make bench`, or `python -m bench [--part cpu|wall|memory|resume|inspect|transports]... [--quick] [--write FILE]`.

One run, one loopback server in a process of its own, every measurement in a fresh process; what is short is repeated,
each side in turn, and the best is taken. Numbers depend on the machine: read the ratios. Never fails on a clock: the
exit code is 0 unless something breaks. All traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import others
from .costs import Costs
from .harness import WARM_UP_TRIALS
from .ideal import ideal_wall_s
from .study import CALLS_A_TURN, KEY, ROOT, SHIPPED, one_turn_scenario
from .table import Row, aligned, markdown, write

PARTS = ("cpu", "wall", "memory", "resume", "inspect", "transports")
CHILD_TIMEOUT_S = 1_800
LEFT_OVER = 10
"""Trials of the long run that are left for `resume`."""


class Server:
    """The loopback server, and what it saw."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.server"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout
        self._port = int(self._process.stdout.readline())

    def url(self, latency_ms: int) -> str:
        return f"http://127.0.0.1:{self._port}/{latency_ms}/v1"

    def ask(self, what: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{what}", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        self._process.communicate(timeout=10)


@contextmanager
def running_server() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


class JudgeClients:
    def __init__(self, server: Server, work: Path, *, quick: bool) -> None:
        self.server = server
        self.quick = quick
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self._work = work
        self._folders = 0
        self._one_turn = one_turn_scenario(work)
        self._tiny = one_turn_scenario(self.folder(), facts=2)
        self._journal: Path | None = None
        self._ours: Costs | None = None
        self._long_run: Path | None = None

    def folder(self) -> Path:
        self._folders += 1
        folder = self._work / str(self._folders)
        folder.mkdir()
        return folder

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print("  " + "  ".join(cell for cell in row.cells() if cell), file=sys.stderr)

    # Children

    def child(self, module: str, *arguments: object, python: str | Path = sys.executable, stop_after: int = 0) -> Costs:
        command = [str(python), "-m", f"bench.{module}", *(str(argument) for argument in arguments)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
        )
        try:
            if stop_after:
                self._interrupt(process, stop_after)
            out, err = process.communicate(timeout=CHILD_TIMEOUT_S)
        finally:
            process.kill()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{err[-2_000:]}")
        return Costs(**json.loads(out.splitlines()[-1]))

    def _interrupt(self, process: subprocess.Popen[str], stop_after: int) -> None:
        """Ask the child to stop once the server has seen so many calls."""
        self.server.ask("reset")
        while process.poll() is None:
            if self.server.ask("stats")["requests"] >= stop_after:
                process.send_signal(signal.SIGINT)
                return
            time.sleep(0.05)

    def ours(
        self, latency_ms: int, scenario: Path, trials: int, at_once: int, *more: object, keep: bool = False, **kept: Any
    ) -> Costs:
        out = self.folder()
        options = ("--base-url", self.server.url(latency_ms), "--scenario", scenario, "--out", out)
        costs = self.child("harness", *options, "--trials", trials, "--concurrency", at_once, *more, **kept)
        if not keep:
            shutil.rmtree(out)
        return costs

    def bare(self, latency_ms: int, journal: Path, trials: int, at_once: int, *more: object, **kept: Any) -> Costs:
        options = ("--base-url", self.server.url(latency_ms), "--journal", journal)
        return self.child("bare", *options, "--trials", trials, "--concurrency", at_once, *more, **kept)

    def recorded(self, scenario: Path) -> Path:
        """A short run's journal, whose bodies the bare loop sends again."""
        costs = self.ours(0, scenario, 64, 64, keep=True)
        return Path(costs.folder) / "calls.jsonl"

    def journal_of_shipped(self) -> Path:
        if self._journal is None:
            self._journal = self.recorded(SHIPPED)
        return self._journal

    def our_cost(self) -> Costs:
        """Our best CPU per call; measured now if the cpu part was left out."""
        if self._ours is None:
            self._ours = self.ours(0, SHIPPED, 60, 64)
        return self._ours

    # Parts

    def cpu(self) -> None:
        trials, rounds = (40, 2) if self.quick else (150, 3)
        journal = self.journal_of_shipped()
        best = best_of(
            rounds,
            {
                "ours": lambda: self.ours(0, SHIPPED, trials, 64),
                "create": lambda: self.bare(0, journal, trials, 64, "--via", "create"),
                "raw": lambda: self.bare(0, journal, trials, 64, "--via", "raw"),
                "post": lambda: self.bare(0, journal, trials, 64, "--via", "post"),
            },
            key=lambda costs: costs.cpu_ms_a_call,
        )
        ours, create = best["ours"], best["create"]
        self._ours = ours
        for name, goal in (("create", 1.3), ("raw", None), ("post", None)):
            ways = {"create": "chat.completions.create", "raw": "with_raw_response.create", "post": "client.post"}
            ratio = ours.cpu_ms_a_call / best[name].cpu_ms_a_call
            self.add(
                Row(
                    f"CPU per call, ms (bare SDK: {ways[name]})",
                    f"{ours.cpu_ms_a_call:.2f}",
                    f"{best[name].cpu_ms_a_call:.2f}",
                    ratio,
                    f"<= {goal}" if goal else "",
                    ratio <= goal if goal else None,
                )
            )
        self.add(
            Row(
                "CPU per 1,000 calls, s",
                f"{ours.cpu_ms_a_call:.2f}",
                f"{create.cpu_ms_a_call:.2f}",
                ours.cpu_ms_a_call / create.cpu_ms_a_call,
            )
        )
        self.add(
            Row("calls/s, 0 ms", f"{ours.calls_a_s:.0f}", f"{create.calls_a_s:.0f}", ours.calls_a_s / create.calls_a_s)
        )
        rates = [costs.calls_a_s * trials / costs.calls for costs in (ours, create)]
        self.add(
            Row("trials/s, 0 ms, 3 turns and 15 calls each", f"{rates[0]:.1f}", f"{rates[1]:.1f}", rates[0] / rates[1])
        )
        self.group_commit(journal.parent, ours)

    def group_commit(self, run: Path, ours: Costs) -> None:
        for at_once in (64, 256):
            appends = [
                self.child("journal", "--run", run, "--out", self.folder() / "j", "--concurrency", at_once)
                for _ in range(2 if self.quick else 3)
            ]
            rate = max(costs.calls_a_s for costs in appends)
            measure = f"journal alone, appends/s, {at_once} at once (other: calls/s of our run)"
            ratio = rate / ours.calls_a_s
            self.add(Row(measure, f"{rate:.0f}", f"{ours.calls_a_s:.0f}", ratio, "> 1 (never the limit)", ratio > 1))

    def wall(self) -> None:
        journal = self.recorded(self._one_turn)
        for latency, at_once, waves, rounds in ((0, 64, 4, 3), (200, 64, 6, 3), (2_000, 256, 4, 1)):
            trials = at_once * (waves // 2 if self.quick else waves)
            best = best_of(
                min(rounds, 2) if self.quick else rounds,
                {
                    "ours": partial(self.ours, latency, self._one_turn, trials, at_once, "--calls-a-trial", 1),
                    "bare": partial(self.bare, latency, journal, trials, at_once, "--calls-at-once", at_once),
                },
                key=lambda costs: costs.wall_s,
            )
            self._wall_rows(latency, at_once, trials, best)
        trials = 256 if self.quick else 512
        costs = self.ours(2_000, self._one_turn, trials, 256)
        ideal = ideal_wall_s(trials, 2.0, trials_at_once=256, calls_at_once=8 * 256)
        self.add(
            Row(
                f"share of the ideal, 2000 ms, --concurrency 256 (up to 768 calls), {trials} trials",
                f"{ideal / costs.wall_s:.1%}",
                f"ideal {ideal:.1f} s",
            )
        )

    def _wall_rows(self, latency: int, at_once: int, trials: int, best: dict[str, Costs]) -> None:
        ours, bare = best["ours"].wall_s, best["bare"].wall_s
        where = f"{latency} ms, {at_once} calls at once, {trials} trials"
        goal = 1.05 if latency == 200 else None
        ratio = ours / bare
        self.add(
            Row(
                f"wall time, s, {where}",
                f"{ours:.2f}",
                f"{bare:.2f}",
                ratio,
                f"<= {goal}" if goal else "",
                ratio <= goal if goal else None,
            )
        )
        if latency:
            ideal = ideal_wall_s(trials, latency / 1_000, trials_at_once=at_once, calls_at_once=at_once)
            share = ideal / ours
            self.add(
                Row(
                    f"share of the ideal ({ideal:.1f} s), {where}",
                    f"{share:.1%}",
                    f"{ideal / bare:.1%}",
                    bare / ours,
                    ">= 95%" if latency == 2_000 else "",
                    share >= 0.95 if latency == 2_000 else None,
                )
            )

    def memory(self) -> None:
        few, many = (200, 2_000) if self.quick else (1_000, 10_000)
        small = self.ours(0, self._tiny, few, 64)
        large = self.long_run(many)
        ratio = large.peak_mb / small.peak_mb
        self.add(
            Row(
                f"peak memory, MB, {many:,} trials (other: ours with {few:,})",
                f"{large.peak_mb:.0f}",
                f"{small.peak_mb:.0f}",
                ratio,
                "<= 1.15",
                ratio <= 1.15,
            )
        )
        self.add(
            Row(
                f"calls/s over {many:,} trials (other: over {few:,})",
                f"{large.calls_a_s:.0f}",
                f"{small.calls_a_s:.0f}",
                large.calls_a_s / small.calls_a_s,
            )
        )

    def long_run(self, trials: int) -> Costs:
        """A long run stopped just before its end; `resume` goes on with its folder."""
        enough = CALLS_A_TURN * (WARM_UP_TRIALS + trials - LEFT_OVER)
        costs = self.ours(0, self._tiny, trials, 64, keep=True, stop_after=enough)
        self._long_run = Path(costs.folder)
        return costs

    def resume(self) -> None:
        many = 2_000 if self.quick else 10_000
        if self._long_run is None:
            self.long_run(many)
        assert self._long_run
        seconds = min(self._until_first_call(self._long_run) for _ in range(3))
        journal = (self._long_run / "calls.jsonl").stat().st_size / 1e6
        goal = f"< 3 s ({journal:.0f} MB journal)"
        self.add(
            Row(f"resume of {many:,} trials: start to first call, s", f"{seconds:.2f}", "", None, goal, seconds < 3)
        )

    def _until_first_call(self, run: Path) -> float:
        """From the start of the process to its first request, which is never answered: the folder stays as it is."""
        self.server.ask("reset")
        environment = _environment() | {"COMPATIBLE_BASE_URL": self.server.url(3_600_000), "COMPATIBLE_API_KEY": KEY}
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "src.cli", "resume", run, "--quiet", "--concurrency", "64"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            while time.monotonic() - began < 300:
                first: float | None = self.server.ask("stats")["first_at"]
                if first is not None:
                    return first - began
                if process.poll() is not None:
                    assert process.stderr
                    raise RuntimeError(
                        f"resume ended with {process.returncode}: {process.stderr.read().decode()[-500:]}"
                    )
                time.sleep(0.05)
            raise RuntimeError("resume made no call within 300 s")
        finally:
            process.kill()
            process.communicate()

    def inspect(self) -> None:
        problem = others.install()
        if problem:
            self.notes.append(f"Inspect AI was not measured: {problem}")
            return
        samples = 150 if self.quick else 500
        runs = []
        for _ in range(1 if self.quick else 2):
            out = self.folder()
            options = ("--base-url", self.server.url(0), "--out", out, "--samples", samples)
            runs.append(self.child("inspect_side", *options, python=others.PYTHON))
        best = min(runs, key=lambda costs: costs.cpu_ms_a_call)
        ours = self.our_cost()
        ratio = best.cpu_ms_a_call / ours.cpu_ms_a_call
        self.add(
            Row(
                f"CPU per call, ms (other: {others.versions()}; ratio: theirs by ours)",
                f"{ours.cpu_ms_a_call:.2f}",
                f"{best.cpu_ms_a_call:.2f}",
                ratio,
                ">= 4",
                ratio >= 4,
            )
        )
        self.add(
            Row(
                "calls/s, 0 ms, 64 at once (other: Inspect)",
                f"{ours.calls_a_s:.0f}",
                f"{best.calls_a_s:.0f}",
                ours.calls_a_s / best.calls_a_s,
            )
        )

    def transports(self) -> None:
        """What the SDK's other transport and its other ways of use cost; all of it the bare loop."""
        journal = self.journal_of_shipped()
        problem = others.install()
        if problem:
            self.notes.append(f"The aiohttp transport was not measured: {problem}")
            return
        trials = 30 if self.quick else 100

        def bare(*more: object, share: int = 1) -> Callable[[], Costs]:
            return lambda: self.bare(0, journal, trials // share, 64, *more, python=others.PYTHON)

        best = best_of(
            2 if self.quick else 3,
            {
                "create, httpx2": bare(),
                "create, aiohttp": bare("--transport", "aiohttp"),
                "post, httpx2": bare("--via", "post"),
                "post, aiohttp": bare("--via", "post", "--transport", "aiohttp"),
                "create, httpx2, a client per call": bare("--client", "per-call", share=10),
            },
            key=lambda costs: costs.cpu_ms_a_call,
        )
        base = best["create, httpx2"]
        for name, costs in list(best.items())[1:]:
            ratio = costs.cpu_ms_a_call / base.cpu_ms_a_call
            self.add(
                Row(
                    f"bare SDK, CPU per call, ms: {name} (other: create, httpx2)",
                    f"{costs.cpu_ms_a_call:.2f}",
                    f"{base.cpu_ms_a_call:.2f}",
                    ratio,
                )
            )


def best_of(rounds: int, sides: dict[str, Callable[[], Costs]], key: Callable[[Costs], float]) -> dict[str, Costs]:
    """Each side in turn, so many rounds; the best of each."""
    found: dict[str, list[Costs]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            found[name].append(measure())
    return {name: min(costs, key=key) for name, costs in found.items()}


def _environment() -> dict[str, str]:
    """The user's, less what would redirect or slow a child."""
    dropped = ("OPENAI_", "COMPATIBLE_", "MEDICARE_EVAL_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PYTHONDONTWRITE")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(dropped)}


def _machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("openai", "httpx2", "pydantic"))
    load = os.getloadavg()[0]
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{when}; {os.cpu_count()} cores, load {load:.1f}; Python {platform.python_version()}, {packages}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=PARTS, help="run this part only; repeatable")
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for trying out; memory and resume too")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the table into this file, such as docs/bench.md"
    )
    arguments = parser.parse_args()
    machine = _machine()
    with tempfile.TemporaryDirectory(prefix=".work-", dir=ROOT / "bench") as work, running_server() as server:
        bench = JudgeClients(server, Path(work), quick=arguments.quick)
        for part in arguments.part or PARTS:
            print(f"{part} ...", file=sys.stderr)
            getattr(bench, part)()
    size = "quick run, smaller numbers" if arguments.quick else "full run"
    notes = [f"Measured {machine}; {size}; calls a turn: {CALLS_A_TURN}.", *bench.notes]
    print(aligned(bench.rows))
    print("\n".join(["", *notes]))
    if arguments.write:
        write(arguments.write, "\n\n".join([markdown(bench.rows), *notes]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
