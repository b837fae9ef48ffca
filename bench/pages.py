"""How fast `view` opens a large run: its first page, single trials, and the raw calls of a trial.

    python -m bench.pages [--trials 5000] [--smoke] [--write docs/bench_pages.md]

The run is that of `bench.reports`, with a journal as large as that of a real study. Pages are asked for over HTTP from
`medicare-eval view`, as a browser does. Next to them: a Python loop that only parses the results with `json.loads`,
reading the journal once, and a page that needs nothing of a run. No goal makes it fail.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .reports import MEDICARE_EVAL, PYTHON_SCAN, chained, payloads, prepare, timed
from .study import ROOT
from .table import Row, compared, measured_on, publish, trial_arguments

TRIALS, SMOKE_TRIALS, PAGES = 5_000, 48, 50
OPEN_S, TRIAL_MS = 1.0, 50.0
"""Goals for 5,000 trials: the first page of the run, and any single trial."""
READ = "import sys; [None for _ in open(sys.argv[1], 'rb')]"


def fill_journal(run: Path, small: Path, trials: list[str]) -> None:
    """Give every trial the calls that the trial like it has in the small run."""
    by_trial: dict[str, list[bytes]] = {}
    for payload in payloads(small / "calls.jsonl"):
        by_trial.setdefault(re.match(rb'\{"call":"([^|]+)\|', payload)[1].decode(), []).append(payload)  # type: ignore[index]
    value = hashlib.sha256((run / "manifest.json").read_bytes()).hexdigest()
    with (run / "calls.jsonl").open("wb") as file:
        for name in trials:
            first = f"{name.rpartition('.r')[0]}.r1"
            for payload in by_trial.get(first, ()):
                value, line = chained(value, payload.replace(first.encode(), name.encode(), 1))
                file.write(line)


@contextmanager
def viewing(runs: Path) -> Iterator[tuple[str, str]]:
    """Host and cookie of the pages of these runs."""
    words = [*MEDICARE_EVAL, "view", str(runs), "--no-open"]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        link = next(found[1] for line in process.stdout if (found := re.search(r"open (http\S+)", line)))
        host = link.split("/")[2]
        connection = http.client.HTTPConnection(host)
        connection.request("GET", link.partition(host)[2])
        cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
        connection.close()
        yield host, cookie
    finally:
        process.terminate()
        process.wait()


def seconds(host: str, cookie: str, path: str) -> float:
    """How long a page takes to arrive."""
    connection = http.client.HTTPConnection(host)
    before = time.perf_counter()
    connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    answer.read()
    took = time.perf_counter() - before
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path}: HTTP {answer.status}")
    return took


def measure(run: Path) -> Iterator[Row]:
    results, journal = run / "results.jsonl", run / "calls.jsonl"
    scan = timed(sys.executable, "-c", PYTHON_SCAN, str(results)).wall_s
    read = timed(sys.executable, "-c", READ, str(journal)).wall_s
    with results.open("rb") as lines:
        names = [json.loads(line)["trial_id"] for line in lines]
    wanted = names[:: max(1, len(names) // PAGES)]
    with viewing(run) as (host, cookie):
        listed = seconds(host, cookie, "/")
        first = seconds(host, cookie, f"/runs/{run.name}/report.html")
        again = seconds(host, cookie, f"/runs/{run.name}/report.html")
        trials = [1_000 * seconds(host, cookie, f"/runs/{run.name}/trials/{name}") for name in wanted]
        style = [1_000 * seconds(host, cookie, "/static/style.css") for _ in range(20)]
        calls = [seconds(host, cookie, f"/runs/{run.name}/calls/{name}") for name in wanted[:5]]
    yield compared("list of runs, s (other: reading the journal)", listed, read)
    row = compared("first page of the run, s (other: json.loads of every result)", first, scan)
    yield Row(row.measure, row.ours, row.other, row.ratio, f"< {OPEN_S:.0f} s", first < OPEN_S)
    yield compared("the same page again, s (other: the first time)", again, first, form=".3f")
    bare = statistics.median(style)
    yield compared("a trial, median ms (other: the style sheet)", statistics.median(trials), bare, form=".1f")
    row = compared("a trial, slowest ms (other: the style sheet)", max(trials), bare, form=".1f")
    yield Row(row.measure, row.ours, row.other, row.ratio, f"< {TRIAL_MS:.0f} ms", max(trials) < TRIAL_MS)
    yield compared("raw calls of a trial, median s (other: reading the journal)", statistics.median(calls), read)


def main() -> int:
    arguments = trial_arguments("bench.pages", __doc__, TRIALS, SMOKE_TRIALS)
    trials = arguments.trials
    with tempfile.TemporaryDirectory(prefix=".work-", dir=ROOT / "bench") as work:
        run = prepare(Path(work), trials)
        with (run / "results.jsonl").open("rb") as lines:
            names = [json.loads(line)["trial_id"] for line in lines]
        fill_journal(run, next((Path(work) / "small").iterdir()), names)
        sizes = [(run / name).stat().st_size / 1e9 for name in ("results.jsonl", "calls.jsonl")]
        rows = list(measure(run))
    notes = [f"{trials:,} trials, {sizes[0]:.2f} GB of results and {sizes[1]:.2f} GB of calls."]
    notes.append(f"Measured {measured_on('msgspec', 'starlette', 'uvicorn')}.")
    publish(rows, notes, arguments.write)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
