"""Shards and their merge: the bytes of one run, and errors that say what is missing."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

import src as me
from src import storage
from src.engines.host import divided
from src.errors import InputError
from src.planning.limits import share_of
from src.planning.trials import trials, trials_of
from src.schemas import LimitsNote, RunLimits, Shard
from src.store.failpoints import VARIABLE
from tests.runs import THREE, call, make_run, newest, process, replays, resumes, verifies
from tests.suites import sample

STUDY = ("--scenario", THREE, "--target", "fake:careful", "--target", "fake:wrong", "--repeats", 2)
HARD = (*STUDY, "--paraphrase", "--questioner-model", "offline:rephrase", "--judge-repeats", 1, "--judge-sample", 0.5)
"""With what shards could get wrong: questions that all targets share, and trials that are judged again."""


def make_shards(out: Path, of: int, *study: object) -> list[Path]:
    return [make_run(out / str(index), *study, "--shard", f"{index}/{of}") for index in range(1, of + 1)]


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("single"), *HARD)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_shards(tmp_path_factory.mktemp("two"), 2, *STUDY)


def same_calls(run: Path, other: Path) -> bool:
    """Whether two runs made the same calls, in whatever order."""

    def requests(folder: Path) -> list[tuple[str, str]]:
        return sorted((record.call, record.request_sha256) for record in me.open_run(folder).calls())

    return requests(run) == requests(other)


@pytest.mark.parametrize("of", sample([1, 2, 5], [2], pytest.mark.slow))
def test_merged_shards_are_the_single_run_to_the_byte(of: int, single: Path, tmp_path: Path) -> None:
    shards = make_shards(tmp_path, of, *HARD)
    for shard in shards:
        verifies(shard)
        replays(shard)
    merged = tmp_path / "merged"
    code, out, err = call("merge", *reversed(shards), "--to", merged)
    assert code == 0, err
    assert f"merged {of} shard" in out
    assert (merged / storage.RESULTS).read_bytes() == (single / storage.RESULTS).read_bytes()
    assert same_calls(merged, single)
    verifies(merged)
    replays(merged)


def test_shards_divide_the_plan_and_keep_all_targets_of_a_question_set_together(single: Path) -> None:
    manifest = storage.read_manifest(single)
    parts = [trials_of(manifest.model_copy(update={"shard": Shard(index=index, of=4)})) for index in range(1, 5)]
    counts = [manifest.model_copy(update={"shard": Shard(index=index, of=4)}).trial_count for index in range(1, 5)]
    assert counts == [len(part) for part in parts] == [4, 4, 2, 2]
    assert sorted(trial.trial_id for part in parts for trial in part) == sorted(
        trial.trial_id for trial in trials(manifest.plan)
    )
    owners: dict[str, set[int]] = {}
    for number, part in enumerate(parts):
        for trial in part:
            owners.setdefault(trial.questions_id, set()).add(number)
    assert all(len(numbers) == 1 for numbers in owners.values())


@pytest.mark.slow
def test_a_merge_says_which_shard_is_missing_given_twice_or_of_another_study(two: list[Path], tmp_path: Path) -> None:
    first, second = two
    whole = make_run(tmp_path / "whole", *STUDY)
    other = make_run(tmp_path / "other", *STUDY, "--seed", 7, "--shard", "2/2")
    of_three = make_run(tmp_path / "three", *STUDY, "--shard", "2/3")
    to = tmp_path / "merged"
    for shards, text in (
        ([first], "Shard 2 of 2 is missing."),
        ([first, second, first], f"{first} and {first} are both shard 1 of 2."),
        (
            [first, other],
            f"{other} and {first} are not shards of the same study: their manifests differ in plan_sha256.",
        ),
        ([first, of_three], f"{of_three} is one of 3 shards, and {first} is one of 2."),
        ([first, whole], f"{whole} is a whole run, not a shard."),
    ):
        code, _, err = call("merge", *shards, "--to", to)
        assert (code, err.count("\n")) == (2, 1)
        assert text in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "three", "whole"], "nothing was written"


def test_an_incomplete_shard_is_named_with_the_command_that_completes_it(two: list[Path], tmp_path: Path) -> None:
    shard = shutil.copytree(two[1], tmp_path / "shard")
    (shard / storage.SEAL).unlink()
    code, _, err = call("merge", two[0], shard, "--to", tmp_path / "merged")
    assert code == 4
    assert f"{shard} is not complete. First run: medicare-eval resume {shard}" in err
    resumes(shard)
    assert call("merge", two[0], shard, "--to", tmp_path / "merged").code == 0


def test_a_merge_overwrites_nothing_and_refuses_an_edited_shard(two: list[Path], tmp_path: Path) -> None:
    merged = tmp_path / "merged"
    merged.mkdir()
    code, _, err = call("merge", *two, "--to", merged)
    assert (code, f"{merged} already exists and will not be overwritten" in err) == (6, True)
    shard = shutil.copytree(two[1], tmp_path / "shard")
    results = shard / storage.RESULTS
    results.write_bytes(results.read_bytes().replace(b'"scored"', b'"failed"', 1))
    code, _, err = call("merge", two[0], shard, "--to", tmp_path / "edited")
    assert (code, f"{results}, line 1" in err) == (5, True)
    assert not (tmp_path / "edited").exists()


@pytest.mark.parametrize(
    "failpoint",
    sample(["merge.after_journal", "seal.before_link", "merge.before_rename"], ["seal.before_link"], pytest.mark.slow),
)
def test_a_merge_that_was_killed_left_nothing_and_can_be_repeated(
    failpoint: str, two: list[Path], tmp_path: Path
) -> None:
    merged = tmp_path / "merged"
    killed = process("merge", *two, "--to", merged, env={VARIABLE: failpoint})
    assert killed.returncode == -signal.SIGKILL
    assert not merged.exists()
    assert call("merge", *two, "--to", merged).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]
    verifies(merged)


@pytest.mark.slow
def test_torn_lines_and_their_records_are_left_out_of_a_merge_and_notes_are_kept(tmp_path: Path) -> None:
    arguments = ("run", *STUDY, "--max-cost", 5, "--shard", "1/2", "--out", tmp_path / "1", "--quiet")
    killed = process(*arguments, env={VARIABLE: "journal.torn_write:9"})
    assert killed.returncode == -signal.SIGKILL
    first = newest(tmp_path / "1")
    resumes(first, "--max-cost", 9)
    second = make_run(tmp_path / "2", *STUDY, "--max-cost", 5, "--shard", "2/2")
    merged = me.merge([first, second], to=tmp_path / "merged")
    assert merged.torn_lines == 1
    assert me.verify(merged.run).torn_lines == 0
    notes = list(storage.read_notes(merged.run))
    assert [note.limits.max_cost for note in notes if isinstance(note, LimitsNote)] == [9.0]
    replays(merged.run)


def test_a_report_on_one_shard_says_so(two: list[Path], tmp_path: Path) -> None:
    code, out, _ = call("report", two[0], "--out", tmp_path / "report", "--no-evidence")
    assert code == 0, out
    text = (tmp_path / "report" / "report.md").read_text()
    assert "this is shard 1 of 2, with 6 of the study's 12 trials. Merge all shards before you report results" in text
    code, _, err = call("rejudge", two[0], "--judge-model", "offline:rules", "--out", tmp_path / "again")
    assert (code, "is only shard 1 of 2. Merge all shards" in err) == (2, True)


def test_a_shard_gets_its_share_of_the_limits_and_its_manifest_has_those_of_the_study(tmp_path: Path) -> None:
    limits = RunLimits(
        max_cost=3.0, requests_per_minute={"openai": 7}, tokens_per_minute={"openai": 900}, calls_in_flight={"*": 4}
    )
    share = share_of(limits, 3)
    assert (share.max_cost, share.requests_per_minute, share.tokens_per_minute, share.calls_in_flight) == (
        1.0,
        {"openai": 2},
        {"openai": 300},
        {"*": 1},
    )
    with pytest.raises(InputError, match=r"4 for \* cannot be divided among 5 shards. Give at least 5"):
        share_of(limits, 5)
    code, _, err = call("run", *STUDY, "--max-cost", 5, "--in-flight", 10, "--shard", "1/2", "--out", tmp_path)
    assert code == 0
    assert "Shard 1 of 2. Its share of the limits: $2.50; 5 calls in flight." in err
    written = storage.read_manifest(newest(tmp_path)).limits
    assert written is not None
    assert (written.max_cost, written.calls_in_flight) == (5.0, {"*": 10})


def test_workers_share_calls_in_flight_evenly_and_count_rates_in_one_place() -> None:
    even, shared = divided(RunLimits(calls_in_flight={"*": 64, "openai": 9}), 2)
    assert (shared, even.calls_in_flight) == (False, {"*": 32, "openai": 4})
    assert divided(RunLimits(calls_in_flight={"openai": 1}), 2)[1]
    assert divided(RunLimits(requests_per_minute={"openai": 100}), 2)[1]
    assert not divided(RunLimits(), 2)[1]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--shard", "3/2"), "--shard: '3/2': expected I/K, for example 2/5."),
        (("--shard", "0/2"), "--shard: '0/2': expected I/K"),
        (("--shard", "two"), "--shard: 'two': expected I/K"),
        (("--shard", "1/501"), "K is at most 500."),
        (("--shard", "1/7"), "--shard: 7 shards are too many: the plan has 6 question sets (scenarios times repeats)."),
        (("--shard", "1/2", "--processes", 2), "--shard: a shard runs in one process. Make more shards instead of using --processes."),
        (("--shard", "1/5", "--rpm", "openai=3"), "--rpm: 3 for openai cannot be divided among 5 shards."),
    ],
)  # fmt: skip
def test_a_shard_that_cannot_be_is_refused_before_anything_is_written(
    arguments: tuple[object, ...], text: str, tmp_path: Path
) -> None:
    code, _, err = call("run", *STUDY, *arguments, "--out", tmp_path / "runs", "--quiet")
    assert (code, err.count("\n")) == (2, 1)
    assert text in err
    assert not (tmp_path / "runs").exists()


def test_merge_prints_json(two: list[Path], tmp_path: Path) -> None:
    code, out, _ = call("merge", *two, "--to", tmp_path / "merged", "--json")
    found = json.loads(out)
    assert (code, found["trials"], found["shards"], found["run"]) == (0, 12, 2, str(tmp_path / "merged"))
