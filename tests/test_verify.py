"""`verify` sees every change to a sealed run, and says which line; `replay` computes it again."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from src import orchestrator, storage
from src.api import checks
from src.audit import verify
from src.errors import HarnessError, IntegrityError
from src.findings import processes
from src.store import hash_chain
from tests.runs import ONE, SCENARIOS, call, copied_run, shared_run

FILES = (storage.MANIFEST, storage.JOURNAL, storage.RESULTS, storage.SEAL)


class Change(Protocol):
    """A random change to a file's bytes."""

    __name__: str

    def __call__(self, data: bytes, dice: random.Random, /) -> bytes: ...


@pytest.fixture(scope="module")
def sealed() -> Path:
    return shared_run("--scenario", ONE, "--target", "fake:partial", "--repeats", "2")


@pytest.fixture
def copy(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "run"))


def flip(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << dice.randrange(8))]) + data[place + 1 :]


def delete(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    return data[:place] + data[place + 1 :]


def insert(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data) + 1)
    return data[:place] + bytes([dice.randrange(256)]) + data[place:]


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def delete_line(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def repeat_line(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = dice.randrange(len(lines))
    return b"".join([*lines[: place + 1], lines[place], *lines[place + 1 :]])


def swap_lines(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = dice.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def swap_bytes(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data) - 1)
    return data[:place] + data[place + 1 : place + 2] + data[place : place + 1] + data[place + 2 :]


@pytest.mark.parametrize("rounds", [3, pytest.param(150, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", [flip, delete, insert, cut, delete_line, repeat_line, swap_lines, swap_bytes])
def test_any_change_to_any_file_of_a_sealed_run_is_found(copy: Path, name: str, change: Change, rounds: int) -> None:
    dice = random.Random(f"{rounds}{name}{change.__name__}")
    path = copy / name
    original = path.read_bytes()
    tried = 0
    for _ in range(rounds):
        changed = change(original, dice)
        if changed == original:
            continue
        path.write_bytes(changed)
        with pytest.raises(HarnessError):
            verify(copy)
        tried += 1
    path.write_bytes(original)
    assert verify(copy).sealed
    assert tried or (change is swap_lines and name in (storage.MANIFEST, storage.SEAL))  # they have one line only


@pytest.mark.parametrize("name", [storage.JOURNAL, storage.RESULTS])
def test_the_first_bad_line_is_named(copy: Path, name: str) -> None:
    path = copy / name
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"a", b"e", 1)
    path.write_bytes(b"".join(lines))
    code, _, err = call("verify", copy)
    assert code == 5
    assert f"{name}, line 2: hash chain broken" in err


Document = dict[str, Any]
Forge = Callable[[int, Document], None]
"""Changes the document of a line, given the line's number."""


def rechained(path: Path, genesis: str, change: Forge) -> None:
    """Forge a file whose chain is valid, so that only the checks of its content can find the change."""
    head, lines = genesis, []
    for number, line in enumerate(list(hash_chain.ChainReader(path, genesis)), 1):
        document = json.loads(line.payload)
        change(number, document)
        head, forged = hash_chain.chained(
            head, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        )
        lines.append(forged)
    path.write_bytes(b"".join(lines))


def span_outside(number: int, document: Document) -> None:
    if number == 2:
        document["claims"][0]["quote_spans"][0]["end"] = 999_999


def unknown_evidence(number: int, document: Document) -> None:
    if number == 2:
        document["final_claims"][0]["evidence"] = ["F99"]


def unknown_shared_claim(number: int, document: Document) -> None:
    if number == 2:
        document["shared_verdicts"] = {"judge_1": [{**document["verdicts"]["judge_1"][0], "claim_id": "Q1.C99"}]}


def unknown_field(number: int, document: Document) -> None:
    if number == 2:
        document["bonus"] = 1


def other_trial(number: int, document: Document) -> None:
    if number == 2:
        document["trial_id"] = "scenario_001.fake-partial.r1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (span_outside, "Q1.C1 is outside its reply"),
        (unknown_evidence, "F99"),
        (unknown_shared_claim, "a verdict is about claim Q1.C99, which does not exist"),
        (unknown_field, "bonus"),
        (other_trial, "scenario_001.fake-partial.r1 is not the one planned"),
    ],
)
def test_content_is_checked_even_if_the_chain_is_valid(copy: Path, change: Forge, says: str) -> None:
    (copy / storage.SEAL).unlink()
    rechained(copy / storage.RESULTS, hash_chain.GENESIS, change)
    with pytest.raises(IntegrityError, match=says) as found:
        verify(copy)
    assert "line 2" in str(found.value)


def test_a_code_rests_on_words_of_the_reply_that_its_claim_is_about(tmp_path: Path) -> None:
    cobra = ("--scenario", SCENARIOS / "topics" / "cobra.json", "--variant", "plain", "--target", "fake:careful")
    run = copied_run(tmp_path, *cobra)
    (run / storage.SEAL).unlink()
    elsewhere = ""

    def change(_: int, document: Document) -> None:
        nonlocal elsewhere
        made = next(code["points_met"][0] for code in document["study_codes"] if code["points_met"])
        turn_id = made["claims"][0]["claim_id"].partition(".")[0]
        elsewhere = next(one["reply"] for one in document["conversation"] if one["turn_id"] != turn_id)
        made["claims"][0]["quotes"] = [elsewhere]

    assert verify(run).trials == 1
    rechained(run / storage.RESULTS, hash_chain.GENESIS, change)
    assert elsewhere
    with pytest.raises(IntegrityError, match="quotes something that was not said"):
        verify(run)


def test_a_verdict_may_cite_a_background_fact_of_the_plan_and_no_other(copy: Path) -> None:
    (copy / storage.SEAL).unlink()
    known = storage.read_manifest(copy).plan.background[0].fact_id

    def cites(fact_id: str) -> Forge:
        def change(number: int, document: Document) -> None:
            if number == 2:
                document["final_claims"][0]["evidence"] = [fact_id]

        return change

    rechained(copy / storage.RESULTS, hash_chain.GENESIS, cites(known))
    assert verify(copy).trials == 2
    rechained(copy / storage.RESULTS, hash_chain.GENESIS, cites(f"{known}x"))
    with pytest.raises(IntegrityError, match=f"cites {known}x, which is not in the key"):
        verify(copy)


def test_verify_compares_the_results_hash_with_the_expected_one(sealed: Path) -> None:
    head = verify(sealed).head
    for given in (head, head.upper()):
        code, out, err = call("verify", sealed, "--expect", given)
        assert code == 0, err
        assert head in out
    code, _, err = call("verify", sealed, "--expect", "0" * 64)
    assert code == 5
    assert head in err


def test_verify_of_an_unsealed_run_is_incomplete_not_broken(copy: Path) -> None:
    (copy / storage.SEAL).unlink()
    code, out, err = call("verify", copy)
    assert code == 4
    assert "2 of 2 trials" in out
    assert f"medicare-eval resume {copy}" in err


def test_verify_says_what_it_found_as_json(sealed: Path) -> None:
    code, out, _ = call("verify", sealed, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["trials"] == found["planned"] == 2
    assert found["sealed"] is True


def test_replay_gives_the_same_bytes_with_every_adapter_gone(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_adapter(name: str) -> None:
        raise AssertionError(f"{name} was made during a replay")

    monkeypatch.setattr("src.adapters.registry.make_adapter", no_adapter)
    monkeypatch.setattr("src.runner.call_resources.make_adapter", no_adapter)
    code, out, err = call("replay", sealed)
    assert code == 0, err
    assert "2 of 2 results" in out
    assert verify(sealed).head in out


def test_replay_finds_a_forged_score(copy: Path) -> None:
    def better(number: int, document: Document) -> None:
        document["final_scores"]["accuracy"] = 0.123

    rechained(copy / storage.RESULTS, hash_chain.GENESIS, better)
    code, _, err = call("replay", copy)
    assert code == 5
    assert "line 1 (scenario_001.fake-partial.r1): does not match the result recomputed from the journal." in err


@pytest.fixture
def two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replay in two processes, each of which leaves a file with its number here."""
    seen = tmp_path / "processes"
    seen.mkdir()
    recompute = orchestrator.recompute

    def noted(*arguments: Any) -> Any:
        (seen / str(os.getpid())).touch()
        return recompute(*arguments)

    monkeypatch.setattr(orchestrator, "recompute", noted)
    monkeypatch.setattr(checks, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(processes, "process_count", lambda: 2)
    return seen


linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux forks safely")


@linux_only
def test_replay_in_two_processes_gives_the_same_bytes(sealed: Path, two_processes: Path) -> None:
    code, out, err = call("replay", sealed)
    assert code == 0, err
    assert "2 of 2 results" in out
    assert verify(sealed).head in out
    assert len(list(two_processes.iterdir())) == 2


@linux_only
@pytest.mark.parametrize(("forged", "named"), [({2}, 2), ({1, 2}, 1)])
def test_replay_in_two_processes_names_the_first_line_that_differs(
    copy: Path, two_processes: Path, forged: set[int], named: int
) -> None:
    def better(number: int, document: Document) -> None:
        if number in forged:
            document["final_scores"]["accuracy"] = 0.123

    rechained(copy / storage.RESULTS, hash_chain.GENESIS, better)
    code, _, err = call("replay", copy)
    assert code == 5
    assert f"line {named} (" in err
    assert "does not match the result recomputed from the journal." in err


def test_replay_finds_a_reply_exchanged_in_the_journal(copy: Path) -> None:
    def other_words(number: int, document: Document) -> None:
        if "|target|" in document["call"]:
            document["text"] = "Medicare is free for everybody."

    rechained(copy / storage.JOURNAL, storage.manifest_sha256(copy), other_words)
    code, _, err = call("replay", copy)
    assert code == 5
    assert "scenario_001.fake-partial.r1" in err


def test_replay_of_a_run_without_results_yet_is_incomplete(copy: Path) -> None:
    (copy / storage.SEAL).unlink()
    (copy / storage.RESULTS).unlink()
    code, _, err = call("replay", copy)
    assert code == 4
    assert str(copy) in err


def test_resume_refuses_results_without_their_journal(copy: Path) -> None:
    (copy / storage.SEAL).unlink()
    (copy / storage.JOURNAL).unlink()
    code, _, err = call("resume", copy, "--quiet")
    assert code == 5
    assert f"{copy / storage.JOURNAL} is missing" in err
    assert not (copy / storage.SEAL).exists()


def test_resume_of_a_finished_run_reports_its_seal(sealed: Path) -> None:
    summary = json.loads(call("resume", sealed, "--json")[1])
    assert summary["sealed"] is True
    assert summary["head"] == verify(sealed).head
