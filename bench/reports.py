"""How long a report of many trials takes, and in how much memory, next to plain scans of the same file.

    python -m bench.reports [--trials 100000] [--smoke] [--write docs/bench_reports.md]

Runs a small study against the loopback server: three scenarios of three turns, four targets, a dozen claims per reply.
Its results are then repeated under other repetition numbers until there are enough of them, in the folder of a run
that was planned with that many repeats. `report`, with and without a page for every trial, and `compare` are measured
on it as a user would run them, and the tables of a report alone, next to two plain scans that only read the file: a
Python loop, and DuckDB if it is installed. No goal makes it fail.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .loopback import NEVER_MS, Server, running_server
from .measure import environment
from .study import ROOT, TARGETS, run_words, write_scenario
from .table import Row, compared, measured_on, publish, trial_arguments

SCENARIOS = ("bench_a", "bench_b", "bench_c")
TRIALS, SMOKE_TRIALS = 100_000, 48
TABLES_S, EVIDENCE_S, PEAK_MB = 15, 120, 1_000
"""Goals for 100,000 trials on two processors: tables, and a report with a page for every trial."""
TABLES = "tables"
PAGES = "report with trial pages"
TABLES_ALONE = """
import sys
from pathlib import Path
from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.reports.sections import contents
found = gather(Path(sys.argv[1]))
contents([found], [judging(found)])
"""
CHAIN_START = len('{"chain":"')
GENESIS = "0" * 64
"""The chain value before the first result."""
MEDICARE_EVAL = (sys.executable, "-m", "src.orchestrator")
PYTHON_SCAN = """
import collections, json, sys
means = collections.defaultdict(list)
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        trial = json.loads(line)
        means[trial["target"]["name"], trial["outcome"]].append(trial["final_scores"]["accuracy"])
print({key: sum(values) / len(values) for key, values in means.items()})
"""
DUCKDB_SCAN = """
import duckdb, sys
print(duckdb.sql(f"select target.name, outcome, avg(final_scores.accuracy) from read_json('{sys.argv[1]}', "
    "format='newline_delimited', maximum_object_size=100000000, columns={target: 'STRUCT(name VARCHAR)', "
    "outcome: 'VARCHAR', final_scores: 'STRUCT(accuracy DOUBLE)'}) group by all").fetchall())
"""


@dataclass(frozen=True)
class Process:
    wall_s: float
    cpu_s: float
    """Of the process and all that it started."""
    peak_mb: float
    """Of all these processes together, with pages that several share counted once."""


def timed(*command: str) -> Process:
    """Run a command to its end; its wall time, its CPU time and the peak of its memory."""
    with tempfile.TemporaryFile() as errors:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)
        together = 0.0
        while True:
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            together = max(together, memory_mb(process.pid))
            time.sleep(0.1)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {errors.read()[-2_000:]!r}")
    return Process(wall, used.ru_utime + used.ru_stime, max(together, used.ru_maxrss / 1_024))


def memory_mb(process: int) -> float:
    """What a process and those that it started hold now: their proportional set size, if the system tells it."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    own = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0) / 1_024
    return own + sum(memory_mb(int(child)) for child in children)


def small_run(server: Server, out: Path, scenarios: list[Path]) -> Path:
    """One trial of each scenario with each target."""
    words = run_words(out, scenarios, repeats=1, concurrency=4, targets=TARGETS)
    subprocess.run(
        [*MEDICARE_EVAL, *words], cwd=ROOT, env=environment(server.url(0)), stdout=subprocess.DEVNULL, check=True
    )
    return next(out.iterdir())


def planned_run(server: Server, out: Path, scenarios: list[Path], repeats: int) -> Path:
    """The folder of a run with so many repeats, killed at its first call: it has a manifest and no results."""
    server.ask("reset")
    words = run_words(out, scenarios, repeats=repeats, concurrency=1, targets=TARGETS)
    process = subprocess.Popen(
        [*MEDICARE_EVAL, *words], cwd=ROOT, env=environment(server.url(NEVER_MS)), stdout=subprocess.DEVNULL
    )
    try:
        while server.ask("stats")["requests"] == 0:
            if process.poll() is not None:
                raise RuntimeError(f"the planned run ended with {process.returncode}")
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    return next(out.iterdir())


def payloads(path: Path) -> list[bytes]:
    """The lines of a hash-chained file without their chain values."""
    return [b"{" + line[CHAIN_START + 66 :] for line in path.read_bytes().splitlines()]


def chained(previous: str, payload: bytes) -> tuple[str, bytes]:
    """The next chain value and the whole line."""
    value = hashlib.sha256(previous.encode() + payload).hexdigest()
    return value, b"".join((b'{"chain":"', value.encode(), b'",', payload[1:], b"\n"))


def fill(small: Path, large: Path, trials: int) -> None:
    """Give the planned run the small run's journal, and its results over and over."""
    value = hashlib.sha256((large / "manifest.json").read_bytes()).hexdigest()
    with (large / "calls.jsonl").open("wb") as file:
        for payload in payloads(small / "calls.jsonl"):
            value, line = chained(value, payload)
            file.write(line)
    results, value = payloads(small / "results.jsonl"), GENESIS
    with (large / "results.jsonl").open("wb") as file:
        for number in range(trials):
            repetition = number // len(results) + 1
            payload = results[number % len(results)].replace(b'.r1"', f'.r{repetition}"'.encode(), 1)
            payload = payload.replace(b'"repetition":1,', f'"repetition":{repetition},'.encode(), 1)
            value, line = chained(value, payload)
            file.write(line)


def prepare(work: Path, trials: int) -> Path:
    """The folder of a run with so many results."""
    scenarios = [write_scenario(work, name) for name in SCENARIOS]
    with running_server() as server:
        small = small_run(server, work / "small", scenarios)
        large = planned_run(server, work / "large", scenarios, -(-trials // (len(SCENARIOS) * len(TARGETS))))
    fill(small, large, trials)
    return large


def measure(run: Path, out: Path) -> Iterator[Row]:
    """The rows of the table."""
    results = str(run / "results.jsonl")
    scans = {"Python loop with json.loads": timed(sys.executable, "-c", PYTHON_SCAN, results)}
    if duckdb_is_there():
        scans["DuckDB scan"] = timed(sys.executable, "-c", DUCKDB_SCAN, results)
    report = (*MEDICARE_EVAL, "report", str(run), "--out", str(out))
    ours = {
        TABLES: timed(sys.executable, "-c", TABLES_ALONE, str(run)),
        "report without trial pages": timed(*report, "--no-evidence"),
        PAGES: timed(*report),
        "compare": timed(*MEDICARE_EVAL, "compare", str(run), "--json"),
    }
    goals = {TABLES: TABLES_S, PAGES: EVIDENCE_S}
    for name, process in ours.items():
        for other, scan in scans.items():
            yield compared(f"{name}, CPU s (other: {other})", process.cpu_s, scan.cpu_s, form=".1f")
        for other, scan in scans.items():
            row = compared(f"{name}, wall time, s (other: {other})", process.wall_s, scan.wall_s, form=".1f")
            goal = goals.get(name)
            yield _with_goal(row, f"< {goal} s", process.wall_s < goal) if goal else row
    for name, process in ours.items():
        for other, scan in scans.items():
            row = compared(f"peak memory of {name}, MB (other: {other})", process.peak_mb, scan.peak_mb, form=".0f")
            yield _with_goal(row, f"< {PEAK_MB:,} MB", process.peak_mb < PEAK_MB) if name == PAGES else row


def _with_goal(row: Row, goal: str, met: bool) -> Row:
    return replace(row, goal=goal, met=met)


def duckdb_is_there() -> bool:
    return importlib.util.find_spec("duckdb") is not None


def main() -> int:
    arguments = trial_arguments("bench.reports", __doc__, TRIALS, SMOKE_TRIALS)
    trials = arguments.trials
    with tempfile.TemporaryDirectory(prefix=".work-", dir=ROOT / "bench") as work:
        run = prepare(Path(work), trials)
        rows = list(measure(run, Path(work) / "report"))
        size = (run / "results.jsonl").stat().st_size
        pages = [path.stat().st_size for path in (Path(work) / "report" / "evidence").rglob("*.html")]
    notes = [f"{trials:,} trials, {size / trials / 1e3:.0f} kB each, {size / 1e9:.2f} GB of results."]
    notes.append(f"{len(pages):,} evidence pages, {sum(pages) / 1e9:.2f} GB.")
    notes.append(f"Measured {measured_on('msgspec', 'pydantic')}.")
    if not duckdb_is_there():
        notes.append("DuckDB: skipped: duckdb is not importable here; install duckdb into this environment.")
    publish(rows, notes, arguments.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
