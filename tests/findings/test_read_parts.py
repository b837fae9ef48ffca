"""Large runs are read and written in several processes: the findings are the same, and no error is lost."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from src.errors import InputError, IntegrityError, StorageError
from src.findings import processes
from src.findings.estimates import estimate
from src.findings.processes import in_processes, joined, process_count, results_of
from src.findings.read_run import Findings, gather
from src.schemas import TrialResult
from tests.cases import each_case
from tests.findings import made_runs
from tests.findings.report_run import code, coded, small_manifest, small_results, study_scenario, write_run
from tests.helpers import ROOT, plan, result

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")


def many_results() -> list[TrialResult]:
    """Trials of every kind, over and over, with wrong claims of several severities among them."""
    found = []
    for repetition in range(1, 40, 4):
        for one in small_results():
            again = one.repetition + repetition - 1
            name = f"{one.trial_id.rpartition('.r')[0]}.r{again}"
            found.append(one.model_copy(update={"repetition": again, "trial_id": name}))
    return found


def in_parts(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> Findings:
    monkeypatch.setattr(processes, "WORTH_IT", 1)
    monkeypatch.setattr(processes, "process_count", lambda: count)
    return gather(folder)


@each_case("count", [2, 3, 7])
def test_findings_are_the_same_in_any_number_of_parts(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run", many_results(), small_manifest())
    whole = gather(tmp_path / "run")
    assert whole.examples and whole.review and whole.marked and whole.audit.claims and whole.head
    assert len(whole.rows) == 100
    read: list[int] = []

    def counted(pieces: Sequence[Callable[[], Any]]) -> list[Any]:
        read.append(len(pieces))
        return results_of(pieces)

    monkeypatch.setattr(processes, "results_of", counted)
    found = in_parts(tmp_path / "run", count, monkeypatch)
    assert read == [count]
    assert found == whole
    for name in ("turns", "judged", "decided", "services", "group_claims", "review_reasons"):
        assert list(getattr(found, name)) == list(getattr(whole, name)), f"{name} in the same order"


def test_closed_questions_are_left_out_in_parts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unanswered closed question is in no estimate, however the file was read."""
    turns = [{"turn_id": f"Q{g}", "user_message": "Hm?", "question_group": f"g{g}"} for g in (1, 2)]
    made = plan(scenarios=[study_scenario(scripted_turns=turns)], targets=["fake:careful"], repeats=20)
    results = [
        coded(
            result(scenario_id="medicare_only", repetition=n),
            code("g1", "accurate_complete"),
            code("g2", "incomplete_data"),
        )
        for n in range(1, 21)
    ]
    write_run(tmp_path / "run", results, small_manifest(made))
    whole = gather(tmp_path / "run")
    assert whole.closed == {("medicare_only", "g2")}
    share = estimate(whole.rows, "accurate_complete")
    assert (share.value, share.questions, share.missing) == (1.0, 1, 0)
    found = in_parts(tmp_path / "run", 3, monkeypatch)
    assert found == whole
    assert estimate(found.rows, "accurate_complete") == share


def test_costs_and_repeated_verdicts_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = [made_runs.rich(n, f"Claim {n} about $5.") for n in range(1, 9)]
    folder = made_runs.write_run(tmp_path / "run", results, made_runs.planned())
    whole = gather(folder)
    assert whole.dollars.errors and whole.noise and whole.counts["trial.rejected_claims"] == 8 and whole.judge_failures
    assert in_parts(folder, 3, monkeypatch) == whole


@each_case("trials", [0, 1, 2, 3])
def test_a_file_can_have_fewer_lines_than_parts(trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", many_results()[:trials], small_manifest())
    whole = gather(tmp_path / "run")
    assert in_parts(tmp_path / "run", 7, monkeypatch) == whole


def damaged(lines: list[bytes], how: str, place: int) -> bytes:
    if how == "changed":
        lines[place] = lines[place].replace(b"Why.", b"Who.", 1).replace(b'"scored"', b'"Scored"', 1)
    elif how == "removed":
        del lines[place]
    else:
        lines[place], lines[place - 1] = lines[place - 1], lines[place]
    return b"".join(lines)


@each_case("how", ["changed", "removed", "swapped"])
@each_case("place", [1, 49, 50, 51, 98])
def test_damage_is_found_where_it_is(how: str, place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", many_results(), small_manifest())
    path = tmp_path / "run" / "results.jsonl"
    path.write_bytes(damaged(path.read_bytes().splitlines(keepends=True), how, place))
    with pytest.raises(IntegrityError) as whole:
        gather(tmp_path / "run")
    with pytest.raises(IntegrityError) as parts:
        in_parts(tmp_path / "run", 2, monkeypatch)
    assert str(parts.value) == str(whole.value)


def test_a_line_that_a_crash_cut_off_is_tolerated_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", many_results(), small_manifest())
    path = tmp_path / "run" / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    whole = gather(tmp_path / "run")
    assert len(whole.rows) == 99
    assert in_parts(tmp_path / "run", 2, monkeypatch) == whole


def test_small_files_start_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", many_results(), small_manifest())
    monkeypatch.setattr(processes, "results_of", None)
    assert len(gather(tmp_path / "run").rows) == 100


def test_findings_of_every_kind_are_joined() -> None:
    first = {"count": Counter(a=1), "list": [1], "set": {1}, "number": 1, "yes": False, "text": "kept"}
    second = {"count": Counter(a=2, b=1), "list": [2], "set": {2}, "number": 2, "yes": True, "text": "not", "new": [3]}
    assert joined(first, second) == {
        "count": Counter(a=3, b=1), "list": [1, 2], "set": {1, 2}, "number": 3, "yes": True, "text": "kept", "new": [3],
    }  # fmt: skip


# Processes


def test_a_program_with_threads_starts_no_process() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert process_count() == 1
    finally:
        stop.set()
        thread.join()


def test_a_worker_of_a_pool_starts_no_process() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(process_count) == 1


ORPHANS = """
import os, sys, time
from pathlib import Path
from src.findings.processes import in_processes
folder = Path(sys.argv[1])
def piece(number):
    def work():
        (folder / f"{number}.{os.getpid()}").write_text("")
        time.sleep(0.3)
    return work
(folder / "parent").write_text(str(os.getpid()))
in_processes([piece(n) for n in range(40)], 3)
"""


@pytest.mark.slow
def test_processes_stop_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHANS, str(tmp_path)], cwd=ROOT)
    until = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 5:
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    begun = len(list(tmp_path.iterdir()))
    quiet = 0
    while quiet < 10:  # a second without a new piece, of which each takes 0.3 s
        assert time.monotonic() < until
        time.sleep(0.1)
        now = len(list(tmp_path.iterdir()))
        quiet, begun = (quiet + 1, begun) if now == begun else (0, now)
    assert begun < 30, "the other pieces were not begun"


def test_after_an_error_no_other_piece_is_begun(tmp_path: Path) -> None:
    def piece(number: int) -> Callable[[], None]:
        def work() -> None:
            (tmp_path / str(number)).write_text("")
            if number == 1:
                raise InputError("no")
            time.sleep(0.05)

        return work

    with pytest.raises(InputError):
        in_processes([piece(n) for n in range(200)], 3)
    assert len(list(tmp_path.iterdir())) < 100


def test_work_is_done_once_by_some_process(tmp_path: Path) -> None:
    def work(piece: int) -> None:
        with (tmp_path / str(piece)).open("x") as file:
            file.write(str(os.getpid()))

    in_processes([partial(work, n) for n in range(40)], 3)
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == list(range(40))
    assert results_of([partial(divmod, n, 2) for n in range(5)]) == [divmod(n, 2) for n in range(5)]
    assert results_of([]) == []


def wait_for_children() -> None:
    while multiprocessing.active_children():
        pass


def test_an_error_in_any_process_is_raised() -> None:
    here = os.getpid()

    def fails_elsewhere() -> None:
        if os.getpid() != here:
            raise InputError("not here")
        wait_for_children()

    with pytest.raises(InputError, match="not here"):
        in_processes([fails_elsewhere] * 4, 2)
    with pytest.raises(InputError, match="not here"):
        results_of([fails_elsewhere] * 2)


def test_an_error_here_ends_the_other_processes() -> None:
    here = os.getpid()

    def fails_here() -> None:
        if os.getpid() == here:
            raise InputError("here")
        threading.Event().wait()

    with pytest.raises(InputError, match="here"):
        results_of([fails_here] * 3)
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_an_error() -> None:
    here = os.getpid()

    def dies_elsewhere() -> None:
        if os.getpid() != here:
            os._exit(3)
        wait_for_children()

    with pytest.raises(StorageError, match=r"ended early \(exit code 3\)"):
        in_processes([dies_elsewhere] * 4, 2)
