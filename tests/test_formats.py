"""Run folders of every released format: read, re-judged, or refused in one sentence that names the release to install."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import src as me
from src import storage
from src.findings.analysis.compare_judges import JudgesCompared
from src.findings.analysis.compare_targets import Compared
from src.records.run import FORMAT
from src.store import hash_chain
from tests.runs import ONE, ROOT, call, make_run

OLD = ROOT / "tests" / "formats" / "0.1" / "run"
OLD_HEAD = "f489feb34a3faffd4fcf9ac6b9ec1bb4f57ebad37f0297ea0357142533246250"
OLD_TRIALS, OLD_CALLS = 9, 124


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _the_old_run_stays_as_it_is() -> Iterator[None]:
    before = content(OLD)
    yield
    assert content(OLD) == before


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A run of 0.1 that was stopped before its last trial."""
    folder = tmp_path / "stopped"
    shutil.copytree(OLD, folder)
    (folder / storage.SEAL).unlink()
    lines = (folder / storage.RESULTS).read_bytes().splitlines(keepends=True)
    (folder / storage.RESULTS).write_bytes(b"".join(lines[:-1]))
    return folder


def refused(*arguments: object) -> str:
    """One sentence on stderr, exit code 2."""
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("medicare-eval: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_a_run_of_0_1_is_verified_with_the_hash_it_always_had() -> None:
    found = me.verify(OLD, expect=OLD_HEAD)
    assert (found.trials, found.planned, found.calls) == (OLD_TRIALS, OLD_TRIALS, OLD_CALLS)
    assert (found.head, found.sealed, found.torn_lines) == (OLD_HEAD, True, 0)
    code, out, err = call("verify", OLD)
    assert (code, err) == (0, "")
    assert f"OK. {OLD_TRIALS} of {OLD_TRIALS} trials and {OLD_CALLS} calls match what was recorded." in out
    assert OLD_HEAD in out


def test_a_run_of_0_1_is_opened_and_its_reviews_have_no_recorded_reason() -> None:
    run = me.open_run(OLD)
    trials = list(run.trials())
    assert run.complete
    assert (run.manifest.format, run.manifest.study, run.manifest.plugins) == (1, None, None)
    assert len(trials) == run.plan.trial_count == OLD_TRIALS
    assert {trial.format for trial in trials} == {1}
    assert {trial.review_reasons for trial in trials} == {None}
    assert len(list(run.calls())) == OLD_CALLS
    assert all(verdict.model == "offline:rules" for verdict in run.verdicts())
    assert sum(len(trial.claims) for trial in trials) == len(list(run.claims())) > 0


def test_a_run_of_0_1_is_reported(tmp_path: Path) -> None:
    files = me.report(OLD, tmp_path / "report", checklist="chart")
    assert {"report.md", "report.html"} <= {path.name for path in files}
    said = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert OLD_HEAD in said
    for target in me.open_run(OLD).plan.targets:
        assert target in said


def test_a_run_of_0_1_is_compared_by_targets() -> None:
    found = me.compare(OLD, measures=["accuracy"])
    assert isinstance(found, Compared)
    assert found.measures == ("accuracy",)
    code, out, _ = call("compare", OLD, "--measure", "accuracy")
    assert code == 0
    for target in me.open_run(OLD).plan.targets:
        assert target in out


def test_a_run_of_0_1_is_exported(tmp_path: Path) -> None:
    code, _, err = call("export", OLD, "--to", "csv", "--out", tmp_path / "export")
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "export" / "trial.csv").read_text(encoding="utf-8").splitlines()))
    expected = [(trial.trial_id, trial.outcome) for trial in me.open_run(OLD).trials()]
    assert [(row["trial_id"], row["outcome"]) for row in rows] == expected


@pytest.mark.parametrize("keep_claims", [False, True])
def test_a_run_of_0_1_is_judged_again_as_a_run_of_this_format(keep_claims: bool, tmp_path: Path) -> None:
    again = me.rejudge(OLD, out=tmp_path, keep_claims=keep_claims, judges=["offline:rules"])
    verified = me.verify(again.path)
    assert (verified.trials, verified.sealed) == (OLD_TRIALS, True)
    assert me.replay(again.path).head == verified.head
    assert again.manifest.format == FORMAT
    assert again.manifest.transcripts is not None
    assert again.manifest.transcripts.run_id == me.open_run(OLD).manifest.run_id
    replies = [[one.reply for one in trial.conversation] for trial in again.trials()]
    assert replies == [[one.reply for one in trial.conversation] for trial in me.open_run(OLD).trials()]
    compared = me.compare([OLD, again.path])
    assert isinstance(compared, JudgesCompared)
    assert compared.trials == OLD_TRIALS


def test_replaying_a_run_of_0_1_is_refused_with_the_release_that_can() -> None:
    err = refused("replay", OLD)
    assert err == (
        f"medicare-eval: {OLD} has format 1, and this release cannot replay it. Install ai-medicare-eval 0.1.0 for that; "
        "verify, report, compare, export and rejudge work here.\n"
    )
    with pytest.raises(me.InputError, match=r"Install ai-medicare-eval 0\.1\.0"):
        me.replay(OLD)


def test_resuming_a_run_of_0_1_is_refused_with_the_release_that_can(unfinished: Path) -> None:
    before = content(unfinished)
    err = refused("resume", unfinished)
    assert (
        f"{unfinished} has format 1, and this release cannot resume it. Install ai-medicare-eval 0.1.0 for that" in err
    )
    with pytest.raises(me.InputError, match=r"Install ai-medicare-eval 0\.1\.0"):
        me.resume(unfinished)
    assert content(unfinished) == before


def test_an_unfinished_run_of_0_1_is_still_read(unfinished: Path, tmp_path: Path) -> None:
    found = me.verify(unfinished)
    assert (found.trials, found.planned, found.sealed) == (OLD_TRIALS - 1, OLD_TRIALS, False)
    assert len(list(me.open_run(unfinished).trials())) == OLD_TRIALS - 1
    with pytest.raises(me.IncompleteRun, match="is not complete"):
        me.rejudge(unfinished, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_complete_run_of_0_1_is_returned_by_resume_as_it_is() -> None:
    assert me.resume(OLD) == me.open_run(OLD)


@pytest.mark.parametrize("command", ["verify", "replay", "resume", "rejudge", "report", "compare", "export"])
def test_a_run_of_a_later_release_is_refused(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "later"
    shutil.copytree(OLD, folder)
    manifest = (folder / storage.MANIFEST).read_bytes()
    later = manifest.replace(b'{"format":1,', b'{"format":3,"unheard_of":true,', 1)
    assert later != manifest
    (folder / storage.MANIFEST).write_bytes(later)
    before = content(folder)
    out = () if command in ("verify", "replay", "resume", "compare") else ("--out", tmp_path / "out")
    assert refused(command, folder, *out) == (
        f"medicare-eval: {folder} was written by a later release (format 3; this one reads up to 2). "
        "Install the release that its manifest.json names under versions.\n"
    )
    assert content(folder) == before
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("new"), "--scenario", ONE, "--target", "fake:careful")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", [storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL])
def test_every_line_of_a_new_run_carries_its_format(name: str, new: Path) -> None:
    found = lines(new / name)
    assert found
    assert [line["format"] for line in found] == [FORMAT] * len(found)


def chained_again(path: Path, genesis: str, change: Callable[[bytes], bytes]) -> None:
    """Change the last line of a file and chain it correctly, so that nothing but its content is wrong."""
    payloads = [line.payload for line in hash_chain.ChainReader(path, genesis)]
    payloads[-1] = change(payloads[-1])
    head, text = genesis, b""
    for payload in payloads:
        head, line = hash_chain.chained(head, payload)
        text += line
    path.write_bytes(text)


def as_first_format(payload: bytes) -> bytes:
    changed = payload.replace(b',"format":2}', b"}")
    assert changed != payload
    return changed


def as_second_format(payload: bytes) -> bytes:
    return payload[:-1] + b',"format":2}'


@pytest.mark.parametrize("name", [storage.JOURNAL, storage.RESULTS])
@pytest.mark.parametrize("old", [True, False])
def test_a_line_of_another_format_than_its_runs_is_an_integrity_error(
    name: str, old: bool, new: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(OLD if old else new, folder)
    (folder / storage.SEAL).unlink()
    count = len(lines(folder / name))
    genesis = storage.manifest_sha256(folder) if name == storage.JOURNAL else hash_chain.GENESIS
    chained_again(folder / name, genesis, lambda payload: payload)
    assert me.verify(folder).trials > 0
    chained_again(folder / name, genesis, as_second_format if old else as_first_format)
    found, run = (2, 1) if old else (1, 2)
    with pytest.raises(me.IntegrityError, match=rf"{name}\W+line {count}\b.*its format is {found}, the run's is {run}"):
        me.verify(folder)
    code, out, err = call("verify", folder)
    assert (code, out) == (5, "")
    assert err.count("\n") == 1


def test_a_seal_of_another_format_than_its_runs_is_an_integrity_error(new: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(new, folder)
    seal = (folder / storage.SEAL).read_bytes()
    (folder / storage.SEAL).write_bytes(seal.replace(b'"format":2', b'"format":1'))
    with pytest.raises(me.IntegrityError, match=r"seal\.json was changed: it is not the seal of this run"):
        me.verify(folder)
