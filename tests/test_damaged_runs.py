"""A sealed run that was damaged is refused by everything that reads it, in one sentence that names the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.store import hash_chain, strict_json
from tests.cases import each_case
from tests.runs import ONE, call, shared_run

FORMAT_1 = Path(__file__).parent / "formats" / "0.1" / "run"


@pytest.fixture(scope="module")
def new() -> Path:
    targets = ("--target", "fake:careful", "--target", "fake:wrong")
    return shared_run("--scenario", ONE, *targets)


@pytest.fixture
def run(new: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(new, tmp_path / "run"))


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def without_its_last_line(run: Path, name: str) -> None:
    (run / name).write_bytes(b"".join(lines(run / name)[:-1]))


def without_half_of_its_last_line(run: Path, name: str) -> None:
    (run / name).write_bytes((run / name).read_bytes()[:-300])


def with_a_line_too_many(run: Path, name: str) -> None:
    last = json.loads(lines(run / name)[-1])
    payload = (run / name).read_bytes().splitlines()[-1].partition(b",")[2]
    with (run / name).open("ab") as file:
        file.write(hash_chain.chained(last["chain"], b"{" + payload).line)


def deleted(run: Path, name: str) -> None:
    (run / name).unlink()


def edited(**changes: Any) -> Callable[[Path, str], None]:
    """Changes fields of a JSON file, and writes it as the project would."""

    def edit(run: Path, name: str) -> None:
        document = json.loads((run / name).read_bytes())
        (run / name).write_bytes(strict_json.encode({**document, **changes}) + b"\n")

    return edit


@dataclass(frozen=True)
class Damage:
    name: str
    do: Callable[[Path, str], None]
    file: str
    says: str
    """What every reader says."""
    verify_says: str | None = None
    """What `verify` says, if it knows more."""


def differs(name: str) -> str:
    return f"{name} does not match seal.json: one of the two was changed after the run was complete."


REMOVED = "results.jsonl has 1 trial; the seal says 2. Lines were removed from its end."
ADDED = "results.jsonl has 3 trials; the seal says 2. Lines were added at its end."
DAMAGES = [
    Damage("results cut", without_its_last_line, storage.RESULTS, REMOVED),
    Damage("results cut within a line", without_half_of_its_last_line, storage.RESULTS, REMOVED),
    Damage("results longer", with_a_line_too_many, storage.RESULTS, ADDED, "results.jsonl, line 3: trial "),
    Damage("results deleted", deleted, storage.RESULTS, "results.jsonl is missing from a sealed run."),
    Damage("journal cut", without_its_last_line, storage.JOURNAL, differs("calls.jsonl"), "were removed from its end."),
    Damage(
        "journal cut within a line", without_half_of_its_last_line, storage.JOURNAL, differs("calls.jsonl"),
        "were removed from its end.",
    ),
    Damage("journal longer", with_a_line_too_many, storage.JOURNAL, differs("calls.jsonl"), "were added at its end."),
    Damage("journal deleted", deleted, storage.JOURNAL, "calls.jsonl is missing from a sealed run."),
    Damage("manifest edited", edited(created="2020-01-01"), storage.MANIFEST, differs("manifest.json")),
    Damage("seal: trials", edited(trials=1), storage.SEAL, "seal.json was changed: it is not the seal of this run."),
    Damage("seal: format", edited(format=1), storage.SEAL, "seal.json was changed: it is not the seal of this run."),
    Damage("seal: files", edited(files={}), storage.SEAL, differs("manifest.json")),
    Damage("seal: results_head", edited(results_head="0" * 64), storage.SEAL, differs("results.jsonl")),
    Damage("seal: journal_head", edited(journal_head="0" * 64), storage.SEAL, differs("calls.jsonl")),
    Damage("seal: extra field", edited(extra=1), storage.SEAL, "seal.json is damaged: it is not a valid seal."),
]  # fmt: skip
COMMANDS: list[tuple[str, ...]] = [
    ("resume", "RUN"), ("report", "RUN", "--out", "OUT"), ("compare", "RUN"), ("drift", "NEW", "RUN"),
    ("sensitivity", "RUN"), ("export", "RUN", "--out", "OUT"), ("rejudge", "RUN", "--out", "OUT", "--quiet"),
]  # fmt: skip


def damage_name(damage: Damage) -> str:
    return damage.name


def filled(arguments: Sequence[str], run: Path, new: Path) -> list[str]:
    """The arguments with paths for RUN, NEW (the run before it was damaged) and OUT."""
    paths = {"RUN": str(run), "NEW": str(new), "OUT": str(run.parent / "out")}
    return [paths.get(argument, argument) for argument in arguments]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(*arguments: object) -> str:
    """The one line with which a command is refused."""
    code, out, err = call(*arguments)
    assert (code, out) == (5, ""), err
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("arguments", [*COMMANDS, ("verify", "RUN"), ("replay", "RUN")], ids=" ".join)
def test_a_run_that_is_as_it_was_written_is_read(arguments: tuple[str, ...], run: Path, new: Path) -> None:
    code, out, err = call(*filled(arguments, run, new))
    assert code == 0, err
    assert out


@pytest.mark.parametrize("damage", DAMAGES, ids=damage_name)
def test_every_command_refuses_a_damaged_run_and_writes_nothing(
    damage: Damage, run: Path, new: Path, tmp_path: Path
) -> None:
    damage.do(run, damage.file)
    before = content(tmp_path)

    @each_case("arguments", COMMANDS, ids=" ".join)
    def refuses(arguments: tuple[str, ...]) -> None:
        assert damage.says in refused(*filled(arguments, run, new))
        assert content(tmp_path) == before
        assert not (tmp_path / "out").exists()

    refuses()


@pytest.mark.parametrize("damage", DAMAGES, ids=damage_name)
def test_verify_names_the_damaged_file(damage: Damage, run: Path) -> None:
    damage.do(run, damage.file)
    err = refused("verify", run)
    assert (damage.verify_says or damage.says) in err
    assert "medicare-eval verify" not in err


READ: dict[str, Callable[[Path], object]] = {
    "complete": lambda run: me.open_run(run).complete,
    "trials": lambda run: list(me.open_run(run).trials()),
    "claims": lambda run: list(me.open_run(run).claims()),
    "calls": lambda run: list(me.open_run(run).calls()),
    "summary": lambda run: me.open_run(run).summary(),
    "to_frame": lambda run: len(me.open_run(run).to_frame()),
    "resume": me.resume,
}


def test_the_api_reads_a_run_that_is_not_damaged(run: Path) -> None:
    for name, read in READ.items():
        assert read(run), name


@pytest.mark.parametrize("damage", DAMAGES, ids=damage_name)
def test_the_api_refuses_a_damaged_run(damage: Damage, run: Path) -> None:
    damage.do(run, damage.file)

    @each_case("name", READ)
    def refuses(name: str) -> None:
        with pytest.raises(me.IntegrityError) as found:
            READ[name](run)
        assert damage.says in str(found.value)

    refuses()


@pytest.mark.parametrize("damage", [one for one in DAMAGES if one.file == storage.RESULTS], ids=damage_name)
def test_replay_of_a_sealed_run_with_lost_results_is_damage_and_not_an_incomplete_run(
    damage: Damage, run: Path
) -> None:
    damage.do(run, damage.file)
    assert "results.jsonl" in refused("replay", run)


def test_transcripts_are_judged_again_only_from_the_sealed_journal(run: Path, tmp_path: Path) -> None:
    """A journal whose end is right and whose middle is not: no run folder is made of it."""
    path = run / storage.JOURNAL
    first, second, *rest = lines(path)
    path.write_bytes(b"".join([first, second.replace(b"a", b"e", 1), *rest]))
    assert differs(str(path)) in refused("rejudge", run, "--out", tmp_path / "out", "--quiet")
    assert not (tmp_path / "out").exists()
    assert f"{path}, line 2: hash chain broken." in refused("verify", run)


@pytest.mark.parametrize(
    ("damage", "left"), [(without_its_last_line, 1), (without_half_of_its_last_line, 1), (deleted, 0)]
)
def test_without_a_seal_fewer_results_are_an_incomplete_run(
    damage: Callable[[Path, str], None], left: int, run: Path
) -> None:
    (run / storage.SEAL).unlink()
    damage(run, storage.RESULTS)
    opened = me.open_run(run)
    assert not opened.complete
    assert len(list(opened.trials())) == opened.summary().done == left


@each_case("name", [storage.RESULTS, storage.JOURNAL])
@each_case("damage", [without_its_last_line, deleted])
def test_a_damaged_run_of_0_1_is_refused(name: str, damage: Callable[[Path, str], None], tmp_path: Path) -> None:
    run = Path(shutil.copytree(FORMAT_1, tmp_path / "run"))
    assert me.open_run(run).complete
    damage(run, name)
    with pytest.raises(me.IntegrityError, match=name):
        _ = me.open_run(run).complete
    with pytest.raises(me.IntegrityError, match=name):
        me.verify(run)


def test_a_seal_is_checked_without_reading_the_journal_and_the_results(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports of large runs read their results once. A sealed run must not be read another time to open it."""

    def never(*_: object) -> None:
        raise AssertionError("a chained file was read from its beginning")

    opened = me.open_run(run)
    monkeypatch.setattr(hash_chain.ChainReader, "__iter__", never)
    assert opened.complete
