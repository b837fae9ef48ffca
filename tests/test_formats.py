"""Run folders of every released format: read, re-judged, or refused in one sentence that names the release to install."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import src as me
from src import storage
from src.findings.compare import Compared
from src.findings.compare_judges import JudgesCompared
from src.records.run import FORMAT, REPLAYABLE
from src.store import hash_chain
from tests.cases import each_case
from tests.runs import ONE, ROOT, call, shared_run


@dataclass(frozen=True)
class Kept:
    """A run folder that a release wrote; the last of them is of this one's format."""

    folder: Path
    format: int
    head: str
    trials: int
    calls: int
    release: str

    @property
    def manifest(self) -> bytes:
        return (self.folder / storage.MANIFEST).read_bytes()


FORMATS = ROOT / "tests" / "formats"
KEPT = {
    "0.1": Kept(
        FORMATS / "0.1" / "run",
        1,
        "f489feb34a3faffd4fcf9ac6b9ec1bb4f57ebad37f0297ea0357142533246250",
        9,
        124,
        "ai-medicare-eval 0.1.0",
    ),
    "0.2": Kept(
        FORMATS / "0.2" / "run",
        2,
        "e7fe051ba54a4ded33a981568e79dca20637c7b3dd9292166ecb41441b2f0ddf",
        9,
        148,
        "medicare-eval 0.2.0",
    ),
    "0.3": Kept(
        FORMATS / "0.3" / "run",
        3,
        "cc077e4b5933524b6a5466d64f73a0dfc09368af37710fd307388db6e1d59a7d",
        9,
        217,
        "medicare-eval 0.3.0",
    ),
    "0.5": Kept(
        FORMATS / "0.5" / "run",
        4,
        "b6a83c9e7b8e334adec50cd3c5833bbf39ef441ee6029a8cc6fbde3754bca7d4",
        3,
        56,
        "medicare-eval 0.4.0",
    ),
    "0.6": Kept(
        FORMATS / "0.6" / "run",
        5,
        "9c34755d31510ee46dd9d3970f7a41a48c9522de7350e4e72e9ff1821c925f3b",
        3,
        56,
        "medicare-eval 0.6.0",
    ),
    "0.7": Kept(
        FORMATS / "0.7" / "run",
        6,
        "fed0242ae8eb6d59f126557f88da6b5d2e1dc5cd9e1a1262a2f2ee7840eb6bd5",
        3,
        58,
        "medicare-eval 0.7.0",
    ),
}


@pytest.fixture(params=KEPT, name="old")
def _old(request: pytest.FixtureRequest) -> Kept:
    return KEPT[request.param]


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _old_runs_stay_as_they_are() -> Iterator[None]:
    before = content(FORMATS)
    yield
    assert content(FORMATS) == before


@pytest.fixture
def unfinished(old: Kept, tmp_path: Path) -> Path:
    """An old run that was stopped before its last trial."""
    folder = tmp_path / "stopped"
    shutil.copytree(old.folder, folder)
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


def test_an_old_run_is_verified_with_the_hash_it_always_had(old: Kept) -> None:
    found = me.verify(old.folder, expect=old.head)
    assert (found.trials, found.planned, found.calls) == (old.trials, old.trials, old.calls)
    assert (found.head, found.sealed, found.torn_lines) == (old.head, True, 0)
    code, out, err = call("verify", old.folder)
    assert (code, err) == (0, "")
    assert f"OK. {old.trials} of {old.trials} trials and {old.calls} calls match what was recorded." in out
    assert old.head in out


def test_an_old_run_is_opened_and_its_reviews_have_no_recorded_reason(old: Kept) -> None:
    run = me.open_run(old.folder)
    trials = list(run.trials())
    assert run.complete
    assert run.manifest.format == old.format
    assert (run.manifest.study is None, run.manifest.plugins is None) == (old.format == 1, old.format == 1)
    assert len(trials) == run.plan.trial_count == old.trials
    assert {trial.format for trial in trials} == {old.format}
    assert all((trial.review_reasons is None) == (old.format == 1) for trial in trials)
    assert len(list(run.calls())) == old.calls
    assert all(verdict.model == "offline:rules" for verdict in run.verdicts())
    assert sum(len(trial.claims) for trial in trials) == len(list(run.claims())) > 0


def test_an_old_run_is_reported(old: Kept, tmp_path: Path) -> None:
    files = me.report(old.folder, tmp_path / "report", checklist="chart")
    assert {"report.md", "report.html"} <= {path.name for path in files}
    said = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert old.head in said
    for target in me.open_run(old.folder).plan.targets:
        assert target in said


def test_an_old_run_is_compared_by_targets(old: Kept) -> None:
    found = me.compare(old.folder, measures=["accuracy"])
    assert isinstance(found, Compared)
    assert found.measures == ("accuracy",)
    code, out, _ = call("compare", old.folder, "--measure", "accuracy")
    assert code == 0
    for target in me.open_run(old.folder).plan.targets:
        assert target in out


def test_an_old_run_is_exported(old: Kept, tmp_path: Path) -> None:
    code, _, err = call("export", old.folder, "--to", "csv", "--out", tmp_path / "export")
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "export" / "trial.csv").read_text(encoding="utf-8").splitlines()))
    expected = [(trial.trial_id, trial.outcome) for trial in me.open_run(old.folder).trials()]
    assert [(row["trial_id"], row["outcome"]) for row in rows] == expected


def test_an_old_run_is_judged_again_as_a_run_of_this_format(old: Kept, tmp_path: Path) -> None:
    again = me.rejudge(old.folder, out=tmp_path, judges=["offline:rules"])
    verified = me.verify(again.path)
    assert (verified.trials, verified.sealed) == (old.trials, True)
    assert me.replay(again.path).head == verified.head
    assert again.manifest.format == FORMAT
    assert again.manifest.transcripts is not None
    assert again.manifest.transcripts.run_id == me.open_run(old.folder).manifest.run_id
    replies = [[one.reply for one in trial.conversation] for trial in again.trials()]
    assert replies == [[one.reply for one in trial.conversation] for trial in me.open_run(old.folder).trials()]
    compared = me.compare([old.folder, again.path])
    assert isinstance(compared, JudgesCompared)
    assert compared.trials == old.trials


def test_claims_of_an_old_run_are_not_reused(old: Kept, tmp_path: Path) -> None:
    if old.format in REPLAYABLE:
        again = me.rejudge(old.folder, out=tmp_path, judges=["offline:rules"], keep_claims=True)
        assert me.replay(again.path).head == me.verify(again.path).head
        return
    err = refused("rejudge", old.folder, "--keep-claims", "--out", tmp_path / "runs")
    assert f"--keep-claims: {old.folder} has format {old.format}, and its claims cannot be reused" in err
    assert not (tmp_path / "runs").exists()


def test_replaying_an_old_run_is_refused_with_the_release_that_can(old: Kept) -> None:
    if old.format in REPLAYABLE:
        assert me.replay(old.folder).head == old.head
        return
    err = refused("replay", old.folder)
    assert err == (
        f"medicare-eval: {old.folder} has format {old.format}, and this release cannot replay it. Install {old.release} for that; "
        "verify, report, compare, export and rejudge work here.\n"
    )
    with pytest.raises(me.InputError, match=f"Install {old.release}"):
        me.replay(old.folder)


def test_resuming_an_old_run_is_refused_with_the_release_that_can(old: Kept, unfinished: Path) -> None:
    if old.format == FORMAT:
        assert me.verify(me.resume(unfinished).path).head == old.head
        return
    before = content(unfinished)
    err = refused("resume", unfinished)
    assert (
        f"{unfinished} has format {old.format}, and this release cannot resume it. Install {old.release} for that"
        in err
    )
    with pytest.raises(me.InputError, match=f"Install {old.release}"):
        me.resume(unfinished)
    assert content(unfinished) == before


def test_an_unfinished_run_of_an_earlier_release_is_still_read(old: Kept, unfinished: Path, tmp_path: Path) -> None:
    found = me.verify(unfinished)
    assert (found.trials, found.planned, found.sealed) == (old.trials - 1, old.trials, False)
    assert len(list(me.open_run(unfinished).trials())) == old.trials - 1
    with pytest.raises(me.IncompleteRun, match="is not complete"):
        me.rejudge(unfinished, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_complete_run_of_an_earlier_release_is_returned_by_resume_as_it_is(old: Kept) -> None:
    assert me.resume(old.folder) == me.open_run(old.folder)


@pytest.mark.parametrize("command", ["verify", "replay", "resume", "rejudge", "report", "compare", "export"])
def test_a_run_of_a_later_release_is_refused(old: Kept, command: str, tmp_path: Path) -> None:
    folder = tmp_path / "later"
    shutil.copytree(old.folder, folder)
    manifest = (folder / storage.MANIFEST).read_bytes()
    later = re.sub(rb'^{"format":[0-9],', f'{{"format":{FORMAT + 1},"unheard_of":true,'.encode(), manifest)
    assert later != manifest
    (folder / storage.MANIFEST).write_bytes(later)
    before = content(folder)
    out = () if command in ("verify", "replay", "resume", "compare") else ("--out", tmp_path / "out")
    assert refused(command, folder, *out) == (
        f"medicare-eval: {folder} was written by a later release (format {FORMAT + 1}; this one reads up to {FORMAT}). "
        "Install the release that its manifest.json names under versions.\n"
    )
    assert content(folder) == before
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def new() -> Path:
    return shared_run("--scenario", ONE, "--target", "fake:careful")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@each_case("name", [storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL])
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
    changed = payload.replace(f',"format":{FORMAT}}}'.encode(), b"}")
    assert changed != payload
    return changed


def as_second_format(payload: bytes) -> bytes:
    return payload[:-1] + b',"format":2}'


@each_case("name", [storage.JOURNAL, storage.RESULTS])
@each_case("first", [True, False])
def test_a_line_of_another_format_than_its_runs_is_an_integrity_error(
    name: str, first: bool, new: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(KEPT["0.1"].folder if first else new, folder)
    (folder / storage.SEAL).unlink()
    count = len(lines(folder / name))
    genesis = storage.manifest_sha256(folder) if name == storage.JOURNAL else hash_chain.GENESIS
    chained_again(folder / name, genesis, lambda payload: payload)
    assert me.verify(folder).trials > 0
    chained_again(folder / name, genesis, as_second_format if first else as_first_format)
    found, run = (2, 1) if first else (1, FORMAT)
    with pytest.raises(me.IntegrityError, match=rf"{name}\W+line {count}\b.*its format is {found}, the run's is {run}"):
        me.verify(folder)
    code, out, err = call("verify", folder)
    assert (code, out) == (5, "")
    assert err.count("\n") == 1


def test_a_seal_of_another_format_than_its_runs_is_an_integrity_error(new: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(new, folder)
    seal = (folder / storage.SEAL).read_bytes()
    (folder / storage.SEAL).write_bytes(seal.replace(f'"format":{FORMAT}'.encode(), b'"format":1'))
    with pytest.raises(me.IntegrityError, match=r"seal\.json was changed: it is not the seal of this run"):
        me.verify(folder)
