"""How long a report of many trials takes, and in how much memory, against a bare DuckDB scan of the same file.

    python -m bench.reports --trials 100000

Makes a run folder of that many results from the results of a small real run (about 20 kB each), gathers it, writes the
report, and scans the same file with DuckDB where that is installed. Ratios are what counts; no test fails on a clock.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from src import storage
from src.cli.parser import main as cli
from src.schemas import Manifest
from src.store import hash_chain
from src.store.strict_json import fingerprint

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("fake:careful", "fake:wrong", "fake:evasive", "fake:partial")


def small_run(out: Path) -> Path:
    arguments = ["run", "--out", str(out), "--quiet"]
    for name in ("cobra", "irmaa", "late_penalties"):
        arguments += ["--scenario", str(ROOT / "scenarios" / "v1" / "topics" / f"{name}.json")]
    for target in TARGETS:
        arguments += ["--target", target]
    if cli(arguments) != 0:
        raise SystemExit("the small run failed")
    return next(out.iterdir())


def large_run(small: Path, folder: Path, trials: int) -> int:
    """The small run's results over and over, with other repetitions, chained again. Returns the bytes written."""
    manifest = storage.read_manifest(small)
    lines = [line.payload for line in hash_chain.ChainReader(small / storage.RESULTS, hash_chain.GENESIS)]
    repeats = -(-trials // len(lines))
    plan = manifest.plan.model_copy(update={"repeats": repeats})
    digest = fingerprint(plan.model_dump(mode="json"))
    folder.mkdir(parents=True)
    large: Manifest = manifest.model_copy(update={"plan": plan, "plan_sha256": digest, "run_id": folder.name})
    (folder / storage.MANIFEST).write_bytes(storage.encode_record(large) + b"\n")
    head = storage.manifest_sha256(folder)  # the small run's journal: what the calls cost is read from it
    with (folder / storage.JOURNAL).open("wb") as file:
        for entry in hash_chain.ChainReader(small / storage.JOURNAL, storage.manifest_sha256(small)):
            head, line = hash_chain.chained(head, entry.payload)
            file.write(line)
    head, written = hash_chain.GENESIS, 0
    with (folder / storage.RESULTS).open("wb") as file:
        for number in range(trials):
            payload = lines[number % len(lines)]
            repetition = number // len(lines) + 1
            payload = payload.replace(b'.r1"', f'.r{repetition}"'.encode(), 1)
            payload = payload.replace(b'"repetition":1,', f'"repetition":{repetition},'.encode(), 1)
            head, line = hash_chain.chained(head, payload)
            written += file.write(line)
    return written


MEASURE = """
import resource, sys, time
from pathlib import Path
from src.findings.gather import gather
from src.findings.judging import judging
from src.findings.contents import contents
from src.findings.writing import write_report
began = time.perf_counter()
found = gather(Path(sys.argv[1]))
gathered = time.perf_counter()
judged = judging(found)
contents([found], [judged])
tables = time.perf_counter()
write_report([found], [judged], Path(sys.argv[2]))
ended = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(gathered - began, tables - began, ended - began, peak, len(found.rows))
"""
SCAN = """
import duckdb, sys, time
began = time.perf_counter()
print(duckdb.sql(f"select target.name, outcome, avg(final_scores.accuracy) from read_json('{sys.argv[1]}', "
    "format='newline_delimited', maximum_object_size=100000000, columns={target: 'STRUCT(name VARCHAR)', "
    "outcome: 'VARCHAR', final_scores: 'STRUCT(accuracy DOUBLE)'}) group by all").fetchall() and "")
print(time.perf_counter() - began)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        small = small_run(work / "small")
        began = time.perf_counter()
        size = large_run(small, work / "large" / "20260101T000000Z", arguments.trials)
        print(f"{arguments.trials:,} trials, {size / 1e9:.2f} GB, made in {time.perf_counter() - began:.0f} s")
        folder = work / "large" / "20260101T000000Z"
        measured = subprocess.run(
            [sys.executable, "-c", MEASURE, str(folder), str(work / "report")],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if measured.returncode:
            raise SystemExit(measured.stderr[-2000:])
        gathered, tables, whole, peak, rows = map(float, measured.stdout.split())
        print(json.dumps({"rows": int(rows), "gather_s": round(gathered, 1), "tables_s": round(tables, 1)}))
        print(f"tables {tables:.1f} s (goal 15), whole report {whole:.1f} s (goal 60), peak {peak:.0f} MB (goal 1,000)")
        scan = subprocess.run(
            [sys.executable, "-c", SCAN, str(folder / storage.RESULTS)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if scan.returncode:
            print("DuckDB is not installed: pip install duckdb to compare")
        else:
            bare = float(scan.stdout.split()[-1])
            print(f"bare DuckDB scan {bare:.1f} s; our gathering takes {gathered / bare:.1f} times as long")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
