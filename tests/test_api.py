"""The Python API as a notebook or a script uses it: through the package, without a word on stdout or stderr."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.findings.compare import Compared
from src.findings.compare_judges import JudgesCompared
from src.runner.wait import wait
from tests.runs import ONE, ROOT, SCENARIOS, environment

SMALL: dict[str, Any] = {"scenarios": [ONE], "targets": ["fake:careful"]}
TELLING = str(SCENARIOS / "scenario_003.json")
"""A scenario in which the rule-based judge can tell the fake targets apart."""
HANGS_S = 300
"""After this long a child process is taken to hang; however busy the machine, it needs far less."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> me.Run:
    """A complete run of two targets, which tests only read."""
    targets = ["fake:careful", "fake:wrong"]
    return me.run(scenarios=[TELLING], targets=targets, repeats=2, out=tmp_path_factory.mktemp("done"))


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Planning


def test_a_plan_calls_nothing_and_writes_nothing(tmp_path: Path) -> None:
    plan = me.plan(scenarios=[ONE], targets=["fake:careful", "fake:wrong"], repeats=3)
    assert isinstance(plan, me.RunPlan)
    assert (plan.trial_count, plan.targets, plan.repeats) == (6, ("fake:careful", "fake:wrong"), 3)
    assert files(tmp_path) == {}


def test_a_study_comes_from_a_file_a_study_or_keywords(tmp_path: Path) -> None:
    Path("study.toml").write_text(f'scenarios = ["{ONE}"]\ntargets = ["fake:careful"]\nseed = 7\n', encoding="utf-8")
    from_file = me.study("study.toml")
    assert from_file == me.study(tmp_path / "study.toml") == me.study(**SMALL, seed=7)
    assert me.study(from_file) == from_file
    changed = me.study(from_file, seed=8, targets=[me.ModelSettings(model="fake:wrong", temperature=0.5)])
    assert (changed.seed, changed.scenarios) == (8, from_file.scenarios)
    assert changed.targets == (me.TargetOptions(model="fake:wrong", temperature=0.5),)
    assert me.plan("study.toml") == me.plan(from_file) == me.plan(**SMALL, seed=7)
    assert me.plan("study.toml", seed=42) == me.plan(**SMALL)


def test_paths_may_be_path_objects() -> None:
    assert me.plan(scenarios=[Path(ONE)], targets=["fake:careful"]) == me.plan(**SMALL)


# Running


def test_a_run_is_complete_verified_and_where_it_was_asked_for(tmp_path: Path) -> None:
    run = me.run(**SMALL)
    assert isinstance(run, me.Run)
    assert run.complete
    assert run.path.parent == Path("runs")
    assert me.verify(run.path).sealed
    elsewhere = me.run(**SMALL, out="elsewhere")
    assert elsewhere.path.parent == Path("elsewhere")
    assert me.verify(elsewhere.path).head == me.verify(run.path).head


def test_run_async_is_awaited() -> None:
    run = asyncio.run(me.run_async(**SMALL))
    assert run.complete
    assert [trial.outcome for trial in run.trials()] == ["scored"]


class StopsAfter:
    """A progress callback that asks a run to stop after some calls."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.stop = me.Stop()

    def __call__(self, progress: me.RunProgress) -> None:
        if progress.calls >= self._calls:
            self.stop.ask()


def stopped_run(calls: int, **study: Any) -> Path:
    async def main() -> None:
        progress = StopsAfter(calls)
        await me.run_async(**SMALL, **study, progress=progress, stop=progress.stop)

    with pytest.raises(me.IncompleteRun) as caught:
        asyncio.run(main())
    folder = caught.value.run
    assert folder is not None
    assert str(caught.value).endswith(f"To continue: medicare-eval resume {folder}")
    return folder


def test_a_stopped_run_is_resumed_to_the_same_results_and_no_call_is_made_twice() -> None:
    folder = stopped_run(20, repeats=3, concurrency=1)
    partial = me.open_run(folder)
    assert not partial.complete
    assert 0 < len(list(partial.trials())) < 3
    recorded = [call.call for call in partial.calls()]
    seen: list[me.RunProgress] = []
    resumed = me.resume(folder, progress=seen.append)
    assert resumed == partial
    assert resumed.complete
    whole = me.run(**SMALL, repeats=3)
    assert me.verify(resumed.path).head == me.verify(whole.path).head
    calls = [call.call for call in resumed.calls()]
    assert calls[: len(recorded)] == recorded
    assert sorted(calls) == sorted(call.call for call in whole.calls())
    assert seen[0].trials_before == seen[0].trials_done > 0
    assert seen[-1].calls == len(calls) - len(recorded)


def test_resume_is_stopped_and_continued_as_well() -> None:
    folder = stopped_run(5, repeats=2, concurrency=1)

    async def main() -> None:
        progress = StopsAfter(5)
        await me.resume_async(folder, concurrency=1, progress=progress, stop=progress.stop)

    with pytest.raises(me.IncompleteRun) as caught:
        asyncio.run(main())
    assert caught.value.run == folder
    assert asyncio.run(me.resume_async(folder)).complete


def test_a_complete_run_is_returned_as_it_is(done: me.Run) -> None:
    before = files(done.path)
    assert me.resume(done.path) == done
    assert files(done.path) == before


def test_progress_is_reported_after_every_call_and_trial() -> None:
    seen: list[me.RunProgress] = []
    run = me.run(**SMALL, repeats=2, progress=seen.append)
    assert (seen[0].trials, seen[0].trials_done, seen[0].trials_before, seen[0].calls) == (2, 0, 0, 0)
    assert (seen[-1].trials, seen[-1].trials_done, seen[-1].finished) == (2, 2, True)
    assert [one.finished for one in seen].count(True) == 1
    assert seen[-1].calls == len(list(run.calls()))
    assert len(seen) == 1 + seen[-1].calls + seen[-1].trials_done + 1
    counts = [(one.calls, one.trials_done) for one in seen]
    assert counts == sorted(counts)


# Notebooks


def test_run_waits_inside_a_running_event_loop(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[me.RunProgress] = []

    async def cell() -> me.Run:
        return me.run(**SMALL, progress=seen.append)

    run = asyncio.run(cell())
    assert run.complete
    assert seen[-1].finished

    async def next_cell() -> int:
        return me.replay(run.path).trials + me.rejudge(run.path).plan.trial_count

    assert asyncio.run(next_cell()) == 2
    assert capfd.readouterr() == ("", "")


INTERRUPTED = """
import os, signal, sys
import src as me

def progress(now):
    if now.calls == 20:
        os.kill(os.getpid(), signal.SIGINT)

try:
    me.run(scenarios=[sys.argv[1]], targets=["fake:careful"], repeats=50, concurrency=1, out=sys.argv[2], progress=progress)
except me.IncompleteRun as stopped:
    print(stopped.run)
"""


def test_ctrl_c_while_waiting_stops_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, ONE, str(tmp_path)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANGS_S,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    run = me.open_run(finished.stdout.strip())
    assert not run.complete
    found = me.verify(run.path)
    assert found.calls >= 20
    assert found.trials < 50
    assert run.path.parent == tmp_path


@pytest.mark.parametrize("when", ["before the event loop exists", "while it runs", "after it is closed"])
def test_ctrl_c_at_any_moment_reaches_the_work(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moments are made by holding the working thread back, or by letting it end first."""
    waiting, running, interrupted = threading.Event(), threading.Event(), threading.Event()
    run = asyncio.run

    def held_run(main: Any) -> Any:
        assert (interrupted if when == "before the event loop exists" else waiting).wait(HANGS_S)
        return run(main)

    class Interrupted(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if interrupted.is_set():
                return super().wait(timeout)
            waiting.set()
            if when == "while it runs":
                assert running.wait(HANGS_S)
            if when == "after it is closed":
                super().wait(timeout)
            interrupted.set()
            raise KeyboardInterrupt

    async def work(stop: me.Stop) -> bool:
        running.set()
        if when != "after it is closed":
            await asyncio.wait_for(stop.event.wait(), HANGS_S)
        return stop.event.is_set()

    monkeypatch.setattr("src.runner.wait.asyncio.run", held_run)
    monkeypatch.setattr("src.runner.wait.Event", Interrupted)
    assert wait(work) == (when != "after it is closed")
    assert interrupted.is_set()


def test_nothing_is_printed(done: me.Run, capfd: pytest.CaptureFixture[str]) -> None:
    run = me.run(**SMALL)
    me.resume(stopped_run(5))
    again = me.rejudge(run.path, keep_claims=True)
    me.verify(run.path)
    me.replay(run.path)
    me.report([run.path, again.path], "report", checklist="chart")
    me.compare([run.path, again.path])
    me.compare(done.path)
    me.freeze(**SMALL, registration={"primary_outcome": "accuracy"}, to="registered.json")
    me.open_run(run.path).summary()
    with pytest.raises(me.InputError):
        me.run(**SMALL, repeats=0)
    assert capfd.readouterr() == ("", "")


# Reading


def test_an_opened_run_gives_its_trials_claims_verdicts_and_calls(done: me.Run) -> None:
    run = me.open_run(str(done.path))
    assert run == done
    assert run.plan == run.manifest.plan == storage.read_manifest(done.path).plan
    trials = list(run.trials())
    assert [(trial.target.name, trial.repetition) for trial in trials] == [
        ("fake:careful", 1),
        ("fake:wrong", 1),
        ("fake:careful", 2),
        ("fake:wrong", 2),
    ]
    assert run.trial(trials[2].trial_id) == trials[2]
    claims = list(run.claims())
    assert [one.claim for one in claims] == [claim for trial in trials for claim in trial.claims]
    assert all((one.final is None) == (not one.claim.verifiable) for one in claims)
    assert {one.final.claim_id == one.claim.claim_id for one in claims if one.final} == {True}
    wrong = [one for one in claims if one.final and one.final.label == "CONTRADICTED"]
    assert {one.target for one in wrong} == {"fake:wrong"}
    verdicts = list(run.verdicts())
    assert {(one.judge, one.model) for one in verdicts} == {("judge_1", "offline:rules"), ("judge_2", "offline:rules")}
    assert len(verdicts) == 2 * sum(one.final is not None for one in claims)
    calls = list(run.calls())
    assert len(calls) == me.verify(run.path).calls
    assert {call.model for call in calls} == {"fake:careful", "fake:wrong", "offline:rules"}


def test_a_summary_counts_trials_by_target(done: me.Run) -> None:
    summary = done.summary()
    assert (summary.planned, summary.done) == (4, 4)
    assert list(summary.by_target) == ["fake:careful", "fake:wrong"]
    careful, wrong = summary.by_target.values()
    assert careful.outcomes == wrong.outcomes == {"scored": 2}
    assert (careful.estimate("accuracy").value or 0) > (wrong.estimate("accuracy").value or 0)


def test_tables_are_data_frames(done: me.Run) -> None:
    pytest.importorskip("pandas")
    trials = done.to_frame()
    assert list(trials["trial_id"]) == [trial.trial_id for trial in done.trials()]
    accuracy = trials.groupby("target", observed=True)["accuracy"].mean()
    assert accuracy["fake:careful"] > accuracy["fake:wrong"]
    sizes = {name: len(done.to_frame(name)) for name in ("runs", "claims", "verdicts", "turns")}
    assert sizes == {"runs": 1, "claims": len(list(done.claims())), "verdicts": len(list(done.verdicts())), "turns": 16}
    with pytest.raises(me.InputError, match="'tables' is not a table of a run"):
        done.to_frame("tables")


def test_an_unfinished_run_can_be_read() -> None:
    folder = stopped_run(20, repeats=3, concurrency=1)
    run = me.open_run(folder)
    done = list(run.trials())
    assert 0 < len(done) < 3
    assert (run.summary().planned, run.summary().done) == (3, len(done))
    assert me.replay(folder).trials == len(done)


# Checking, judging again, reporting


def test_verify_and_replay_find_what_was_written(done: me.Run) -> None:
    verified = me.verify(done.path)
    assert (verified.trials, verified.planned, verified.sealed, verified.torn_lines) == (4, 4, True, 0)
    seal = json.loads((done.path / storage.SEAL).read_text(encoding="utf-8"))
    assert verified.head == seal["results_head"]
    replayed = me.replay(done.path)
    assert (replayed.trials, replayed.planned, replayed.head) == (4, 4, verified.head)
    assert me.verify(done.path, expect=verified.head) == verified
    with pytest.raises(me.IntegrityError, match="not the expected"):
        me.verify(done.path, expect="0" * 64)


def test_transcripts_are_judged_again_without_calling_a_target(done: me.Run) -> None:
    before = files(done.path)
    again = me.rejudge(done.path, judges=["offline:rules"], verifiers=3, keep_claims=True)
    assert again.path.parent == Path("runs")
    assert again.plan.verifiers == ("offline:rules",) * 3
    assert again.manifest.transcripts is not None
    assert again.manifest.transcripts.run_id == done.manifest.run_id
    assert [trial.claims for trial in again.trials()] == [trial.claims for trial in done.trials()]
    assert me.verify(again.path).sealed
    compared = me.compare([done.path, again.path])
    assert isinstance(compared, JudgesCompared)
    assert (compared.trials, compared.changed) == (4, [])
    assert files(done.path) == before


def test_rejudge_takes_settings() -> None:
    run = me.run(**SMALL)
    seen: list[me.RunProgress] = []
    again = me.rejudge(run, concurrency=1, out="again", progress=seen.append)
    assert again.manifest.concurrency == 1
    assert again.path.parent == Path("again")
    assert seen[-1].finished


def test_a_report_is_written_where_it_was_asked_for(done: me.Run, tmp_path: Path) -> None:
    before = files(done.path)
    written = me.report([done.path], tmp_path / "report")
    there = {name for name in files(tmp_path) if not name.startswith(("report/evidence/", "report/WRITTEN-BY"))}
    assert {path.relative_to(tmp_path).as_posix() for path in written} == {*there, "report/evidence/index.html"}
    me.report([done.path], tmp_path / "short", evidence=False)
    assert not (tmp_path / "short" / "evidence").exists()
    assert "fake:wrong" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert files(done.path) == before
    run = me.run(**SMALL)
    assert {path.parent.parent for path in me.report(run.path) if path.suffix == ".md"} == {run.path}
    assert me.verify(run.path).sealed


def test_targets_are_compared(done: me.Run) -> None:
    found = me.compare(done.path, measures=["accuracy", "completeness"])
    assert isinstance(found, Compared)
    assert found.measures == ("accuracy", "completeness")
    assert me.compare([done.path], measures=["accuracy", "completeness"]) == found


# Pre-registration


def test_a_registered_study_is_run_with_nothing_restated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"primary_outcome": "accuracy", "tests": ["paired difference"], "notes": "A note."}
    frozen = me.freeze(**SMALL, repeats=2, seed=7, registration=words, to="registered.json")
    assert frozen.trials == 2
    assert frozen.sha256 == storage.file_sha256(tmp_path / "registered.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run = me.run(registered="../registered.json")
    kept = run.manifest.registration
    assert kept is not None
    assert (kept.deviations, kept.sha256) == ((), frozen.sha256)
    assert (kept.primary_outcome, kept.tests, kept.notes) == ("accuracy", ("paired difference",), "A note.")
    assert (run.plan.repeats, run.plan.seed) == (2, 7)


def test_a_run_that_differs_from_its_registration_is_refused_or_marked(tmp_path: Path) -> None:
    me.freeze(**SMALL, registration={"primary_outcome": "accuracy"}, to="registered.json")
    before = files(tmp_path)
    with pytest.raises(me.InputError, match=r"differs from the pre-registration registered\.json: seed: 7, not 42"):
        me.run(registered="registered.json", seed=7)
    assert files(tmp_path) == before
    run = me.run(registered="registered.json", seed=7, allow_deviations=True)
    assert run.manifest.registration is not None
    assert run.manifest.registration.deviations == ("seed: 7, not 42",)


def test_a_registration_is_never_replaced(tmp_path: Path) -> None:
    me.freeze(**SMALL, registration={"primary_outcome": "accuracy"}, to="registered.json")
    before = files(tmp_path)
    with pytest.raises(me.InputError, match="already exists and will not be overwritten"):
        me.freeze(**SMALL, seed=7, registration={"primary_outcome": "accuracy"}, to="registered.json")
    with pytest.raises(
        me.InputError, match=r"Field registration\.primary_outcome: a pre-registration needs a primary outcome"
    ):
        me.freeze(**SMALL, to="other.json")
    assert files(tmp_path) == before


# Errors


@pytest.mark.parametrize(
    ("study", "error", "says"),
    [
        ({}, me.InputError, "No scenarios given"),
        ({"scenarios": [ONE]}, me.InputError, "No targets given"),
        ({**SMALL, "colour": "red"}, me.InputError, "Field colour: unknown field"),
        ({**SMALL, "repeats": 0}, me.InputError, "Field repeats: must be at least 1"),
        ({**SMALL, "concurrency": 0}, me.InputError, "Field concurrency"),
        ({**SMALL, "max_cost": float("nan")}, me.InputError, "Field max_cost: nan is not a finite number"),
        ({**SMALL, "title": "\ud800"}, me.InputError, r"Field title: \\ud800 is not UTF-8 text"),
        ({**SMALL, "variants": {"a"}}, me.InputError, "Field variants: .* is a Python set"),
        ({**SMALL, "targets": "fake:careful"}, me.InputError, "Field targets: must be a list, for example"),
        ({**SMALL, "targets": ["careful"]}, me.InputError, "expected provider:model"),
        ({**SMALL, "targets": ["fake:nobody"]}, me.InputError, "Field targets: fake:nobody does not exist"),
        ({**SMALL, "targets": ["openai:gpt-4.1"]}, me.ConfigError, "Field judges: no judge is available"),
        ({**SMALL, "judges": ["fake:wrong"]}, me.ConfigError, "fake:wrong cannot judge fake:careful"),
        (
            {**SMALL, "scenarios": ["nowhere.json"]},
            me.InputError,
            "Field scenarios: nowhere.json: no scenario file found",
        ),
        (
            {**SMALL, "requests_per_minute": {"nobody": 5}},
            me.InputError,
            "Field requests_per_minute: there is no provider 'nobody'",
        ),
        ({**SMALL, "prices": "nowhere.json"}, me.InputError, "Field prices: nowhere.json cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    study: dict[str, Any], error: type[me.HarnessError], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "XAI"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    for function in (me.run, lambda **given: asyncio.run(me.run_async(**given))):
        with pytest.raises(error, match=says) as caught:
            function(**study)
        assert type(caught.value) is error
        assert "\n" not in str(caught.value)
    assert files(tmp_path) == {}
    assert [path.name for path in tmp_path.iterdir()] == []


def test_bad_settings_of_resume_and_rejudge_are_refused(done: me.Run, tmp_path: Path) -> None:
    stopped = stopped_run(5)
    before = files(tmp_path)
    for settings, says in (
        ({"concurrency": 0}, r"Field concurrency: must be at least 1 \(got 0\)"),
        ({"max_cost": 0.0}, "Field max_cost: must be above 0"),
        ({"requests_per_minute": {"openai": 0}}, r"Field requests_per_minute\.openai: must be at least 1 \(got 0\)"),
    ):
        with pytest.raises(me.InputError, match=says):
            me.resume(stopped, **settings)
        with pytest.raises(me.InputError, match=says):
            me.rejudge(done, **settings)
    for judging, says in (
        ({"verifiers": 1}, "Field verifiers: must be at least 2"),
        ({"judge": ["offline:rules"]}, "Field judge: unknown field"),
        ({"judges": ["careful"]}, "expected provider:model"),
    ):
        with pytest.raises(me.InputError, match=says):
            me.rejudge(done.path, **judging)
    with pytest.raises(me.ConfigError, match="fake:wrong cannot judge fake:careful"):
        me.rejudge(done.path, judges=["fake:wrong"])
    with pytest.raises(me.IncompleteRun, match="is not complete"):
        me.rejudge(stopped)
    assert files(tmp_path) == before


@pytest.mark.parametrize("function", [me.open_run, me.resume, me.rejudge, me.verify, me.replay, me.report, me.compare])
def test_what_is_not_a_run_folder_is_named(function: Callable[[Path], object], tmp_path: Path) -> None:
    for path, says in (
        (tmp_path / "nowhere", "does not exist."),
        (tmp_path, "has no manifest.json, so it is not a run folder."),
        (Path(ONE), "is a file, not a run folder. Give the folder that contains manifest.json."),
    ):
        with pytest.raises(me.InputError) as caught:
            function(path)
        assert str(caught.value) == f"{path} {says}"
    assert files(tmp_path) == {}


def test_no_folders_a_missing_trial_and_a_run_without_results_are_errors(done: me.Run) -> None:
    for function in (me.report, me.compare):
        with pytest.raises(me.InputError, match="No run folder was given"):
            function([])
    with pytest.raises(me.InputError, match="has no result for trial 'none'"):
        done.trial("none")
    folder = stopped_run(1)
    (folder / storage.RESULTS).unlink()
    with pytest.raises(me.IncompleteRun, match="has no results yet"):
        me.replay(folder)


def test_a_changed_result_is_found(tmp_path: Path) -> None:
    run = me.run(**SMALL)
    path = run.path / storage.RESULTS
    path.write_bytes(path.read_bytes().replace(b'"outcome":"scored"', b'"outcome":"failed"', 1))
    for function in (me.verify, me.replay, lambda path: list(me.open_run(path).trials())):
        with pytest.raises(me.IntegrityError, match="line 1"):
            function(run.path)


# Documentation


@pytest.mark.slow
@pytest.mark.parametrize("module", ["api.runs", "api.checks", "api.findings", "reading", "cli.progress"])
def test_the_examples_in_docstrings_are_true(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They import the installed name, which here is this checkout."""
    monkeypatch.setitem(sys.modules, "medicare_eval", me)
    failures: list[str] = []
    attempted = 0
    for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(f"src.{module}")):
        result = doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
        attempted += result.attempted
    assert not failures, "".join(failures)
    assert attempted >= {"api.runs": 15, "api.checks": 6, "api.findings": 16, "reading": 8, "cli.progress": 2}[module]


def test_a_run_is_taken_wherever_a_run_folder_is(done: me.Run) -> None:
    assert me.open_run(done) == done
    assert me.verify(done).sealed
    assert me.replay(done).trials == done.plan.trial_count
    assert me.sensitivity(done).targets


@pytest.mark.parametrize(
    "function", [me.open_run, me.resume, me.rejudge, me.verify, me.replay, me.sensitivity, me.export]
)
@pytest.mark.parametrize("value", [None, 5])
def test_what_is_not_a_path_is_refused_in_one_sentence(function: Callable[[object], object], value: object) -> None:
    with pytest.raises(me.InputError, match=f"Expected a path, not {value}"):
        function(value)


def test_a_wrong_source_or_progress_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(me.InputError, match="Expected a path, not 5"):
        me.run(5)  # type: ignore[arg-type]
    with pytest.raises(me.InputError, match="expected a function that takes a RunProgress, not 3"):
        me.run(**SMALL, progress=3)  # type: ignore[arg-type]
    with pytest.raises(me.InputError, match="Expected a run folder or a list of them, not 5"):
        me.report(5)  # type: ignore[arg-type]
    with pytest.raises(me.InputError, match="was given twice"):
        me.compare(["a", "a"])


def test_a_study_may_be_a_dict() -> None:
    assert me.plan(dict(SMALL), repeats=2).repeats == 2
