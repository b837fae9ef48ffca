"""`judge-check`: the gold set, the command and its record, bad input, and reports corrected by a check."""

from __future__ import annotations

import asyncio
import doctest
import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from src import storage
from src.agents.verifier import violations
from src.calls.gateway import Stop
from src.cli.judge_check import LABELS, measure_table
from src.errors import IncompleteRun
from src.findings.analysis.judge_agreement import RECORD, read_check
from src.judge_check import check as check_module
from src.judge_check.check import CheckOptions, check_judges, check_judges_async
from src.judge_check.gold import Gold, load_gold
from src.judge_check.measure import PANEL
from src.records.gold import ClaimKind, Split
from src.records.judge_check import JudgeCheck, JudgeMeasured
from src.runner.progress import RunProgress
from src.schemas import ClaimInView, Verdict
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ROOT, call, make_run, newest
from tests.test_wire_runs import redirect, said, sensible

SPLITS: tuple[Split, ...] = ("dev", "held_out")
COBRA = ROOT / "gold" / "dev" / "cobra.json"
Document = dict[str, Any]


@pytest.fixture(scope="module")
def gold() -> dict[Split, Gold]:
    return {split: load_gold(split) for split in SPLITS}


def checked(out: Path, *arguments: object) -> tuple[Path, str]:
    code, printed, err = call("judge-check", *arguments, "--out", out, "--quiet")
    assert code == 0, err
    return newest(out), printed


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return checked(tmp_path_factory.mktemp("dev"), "--split", "dev", "--worst", 20)


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return checked(tmp_path_factory.mktemp("panel"), "--split", "dev", "--judges", 2)


def own_gold(folder: Path, change: Callable[[Document], None] = lambda document: None, replies: int = 2) -> Path:
    """A small gold set: the first replies of one dev file, changed."""
    document: Document = json.loads(COBRA.read_text(encoding="utf-8"))
    document["replies"] = document["replies"][:replies]
    change(document)
    folder.mkdir()
    (folder / "own.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def right(judge: JudgeMeasured) -> int:
    return sum(count.claims for count in judge.confusion if count.gold == count.given)


def total(judge: JudgeMeasured) -> int:
    return sum(count.claims for count in judge.confusion)


# --- the gold set ---


def test_the_gold_set_is_as_large_and_as_varied_as_it_says(gold: dict[Split, Gold]) -> None:
    items = [item for part in gold.values() for item in part.items]
    assert len(items) >= 60
    assert sum(part.claims for part in gold.values()) >= 600
    assert sum(len(part.files) for part in gold.values()) >= 10
    assert {claim.kind for item in items for claim in item.reply.claims} == set(get_args(ClaimKind))
    assert {claim.label for item in items for claim in item.reply.claims} == set(LABELS)
    assert {item.reply.quality for item in items} >= {"good", "mixed", "poor"}


def test_every_gold_label_follows_the_rules_for_judges(gold: dict[Split, Gold]) -> None:
    broken = []
    for part in gold.values():
        for item in part.items:
            shown = {claim.claim_id: claim for claim in item.claims}
            for claim in item.reply.claims:
                verdict = Verdict(
                    claim_id=claim.claim_id,
                    label=claim.label,
                    evidence=claim.evidence,
                    severity=claim.severity,
                    notes=claim.reason,
                )
                found = violations(verdict, shown[claim.claim_id], item.key, item.question)
                broken += [f"{item.reply.reply_id} {claim.claim_id}: {one}" for one in found]
    assert broken == []


def test_every_gold_reply_has_a_question_and_contains_its_quotes(gold: dict[Split, Gold]) -> None:
    for part in gold.values():
        for item in part.items:
            assert item.question, item.reply.reply_id
            for claim in item.claims:
                assert all(quote in item.reply.text for quote in claim.quotes), (item.reply.reply_id, claim.claim_id)


def test_ids_are_unique_and_no_reply_is_in_both_splits(gold: dict[Split, Gold]) -> None:
    ids = Counter(item.reply.reply_id for part in gold.values() for item in part.items)
    assert [name for name, n in ids.items() if n > 1] == []
    for part in gold.values():
        for item in part.items:
            names = [claim.claim_id for claim in item.reply.claims]
            assert len(set(names)) == len(names), item.reply.reply_id
    texts = {split: {" ".join(item.reply.text.split()) for item in part.items} for split, part in gold.items()}
    assert not texts["dev"] & texts["held_out"]
    assert all(len(texts[split]) == len(gold[split].items) for split in SPLITS)


def test_every_gold_file_names_its_split_and_no_scenario_is_in_both() -> None:
    found = {split: sorted((ROOT / "gold" / split).glob("*.json")) for split in SPLITS}
    for split, paths in found.items():
        assert all(json.loads(path.read_bytes())["split"] == split for path in paths)
    assert not {path.name for path in found["dev"]} & {path.name for path in found["held_out"]}


# --- the command, its table and its record ---


def test_the_offline_judge_reaches_its_pinned_quality(dev: tuple[Path, str], tmp_path: Path) -> None:
    (judge,) = read_check(dev[0]).judges
    assert right(judge) >= 0.88 * total(judge)
    held_out = read_check(checked(tmp_path)[0])  # the default of --split
    assert held_out.split == "held_out"
    (judge,) = held_out.judges
    assert right(judge) >= 0.80 * total(judge)


def test_the_counts_of_a_record_agree_with_each_other_and_with_the_gold_set(
    dev: tuple[Path, str], gold: dict[Split, Gold]
) -> None:
    record = read_check(dev[0])
    items = gold["dev"].items
    assert (record.replies, record.claims) == (len(items), gold["dev"].claims)
    assert record.failures == ()
    assert record.calls == 2 * record.replies
    assert record.calls == len((dev[0] / storage.JOURNAL).read_bytes().splitlines())
    (judge,) = record.judges
    assert total(judge) == record.claims
    labels = Counter(claim.label for item in items for claim in item.reply.claims)
    assert {label: sum(n for (is_, _), n in judge.matrix().items() if is_ == label) for label in LABELS} == labels
    kinds = Counter(claim.kind for item in items for claim in item.reply.claims)
    assert {kind: n for kind, (_, n) in judge.by_kind.items()} == kinds
    assert sum(n for n, _ in judge.by_kind.values()) == right(judge)
    assert len(judge.errors) == record.claims - right(judge)
    assert all(error.gold != error.given for error in judge.errors)
    assert judge.same_evidence <= right(judge)
    extractor = record.extractor
    assert extractor.gold_claims == record.claims
    assert extractor.found <= extractor.gold_claims
    assert extractor.on_gold <= extractor.extracted
    assert extractor.covered <= extractor.factual_sentences


def by_hand(judge: JudgeMeasured) -> list[list[str]]:
    """Percentages of the table's rows, from the confusion alone: sensitivity, specificity, precision; and F1."""
    counts = judge.matrix()
    everything = sum(counts.values())
    rows, f1s = [], []
    for label in LABELS:
        hit = counts.get((label, label), 0)
        gold = sum(n for (is_, _), n in counts.items() if is_ == label)
        given = sum(n for (_, said_), n in counts.items() if said_ == label)
        f1s.append(2 * hit / (gold + given))
        shares = [hit / gold, 1 - (given - hit) / (everything - gold), hit / given]
        rows.append([*(f"{share:.1%}" for share in shares), f"{f1s[-1]:.2f}"])
    return [[f"{right(judge) / everything:.1%}", f"{sum(f1s) / 3:.2f}"], *rows]


def test_the_table_shows_the_numbers_that_follow_from_the_confusion_matrix(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    (judge,) = read_check(folder).judges
    for name, row in zip(("all", *LABELS), by_hand(judge), strict=True):
        line = next(line for line in printed.splitlines() if re.search(rf"(^|\s){name}\s+\d", line))
        cells = line.split(name, 1)[1]
        assert re.findall(r"(?<![\d(-])(\d+\.\d%|\d\.\d\d)(?= \()", cells) == row
    for label in LABELS:
        row = [str(judge.matrix().get((label, given), 0)) for given in (*LABELS, None)]
        assert any(line.split() == [label, *row] for line in printed.splitlines())
    for kind, (hit, of) in judge.by_kind.items():
        assert re.search(rf"^{kind.replace('_', ' ')} +{hit} of {of}$", printed, re.MULTILINE)


def test_the_worst_errors_are_shown_worst_first_with_both_reasons(dev: tuple[Path, str]) -> None:
    folder, printed = dev
    (judge,) = read_check(folder).judges
    assert f"The 20 worst of {len(judge.errors)} errors by judge_1:" in printed
    shown = printed.split("errors by judge_1:", 1)[1]
    assert shown.count("    gold:  ") == shown.count("    judge: ") == 20
    first = judge.errors[0]
    assert (first.gold, first.given) == ("CONTRADICTED", "SUPPORTED")
    assert first.gold_reason in shown
    assert first.given_reason.split()[0] in shown
    places = [shown.index(f"{error.reply_id} {error.claim_id} [") for error in judge.errors[:20]]
    assert places == sorted(places)


def test_two_judges_also_form_a_panel(panel: tuple[Path, str], dev: tuple[Path, str]) -> None:
    folder, printed = panel
    record = read_check(folder)
    assert [(judge.name, judge.model) for judge in record.judges] == [
        ("judge_1", "offline:rules"),
        ("judge_2", "offline:rules"),
        (PANEL, None),
    ]
    assert f"\n{PANEL}: gold labels in rows, given labels in columns" in printed
    alone = read_check(dev[0]).judges[0]
    for judge in record.judges:  # judges that agree form a panel like each of them; the order of claims does not matter
        assert judge.confusion == alone.confusion
        assert judge.errors == alone.errors


def test_the_table_names_each_judge_and_the_panel(panel: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    record = read_check(panel[0])
    leading = [line.split()[0] for line in measure_table(record).splitlines() if re.search(r"\ball\s+\d", line)]
    assert leading == ["judge_1", "judge_2", PANEL]


def test_json_prints_the_record_itself(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")
    folder, printed = checked(tmp_path / "out", "--split", "dev", "--gold", own, "--json")
    assert JudgeCheck.model_validate_json(printed) == read_check(folder) == read_check(folder / RECORD)
    assert read_check(folder).check_id == folder.name


def test_the_seed_changes_only_the_order_in_which_claims_are_shown(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    given = [
        read_check(checked(tmp_path / str(seed), "--gold", own, "--split", "dev", "--seed", seed)[0]) for seed in (1, 2)
    ]
    assert given[0].plan_sha256 != given[1].plan_sha256
    assert given[0].judges == given[1].judges
    assert given[0].extractor == given[1].extractor


# --- resuming, stopping, failing ---


def small_wire_check(tmp_path: Path, own: Path, *more: object) -> tuple[int, str, str]:
    return call(
        "judge-check", "--split", "dev", "--gold", own, "--judge-model", "compatible:llama-3",
        "--out", tmp_path / "out", "--quiet", *more,
    )  # fmt: skip


def test_resume_calls_nothing_again_and_gives_the_same_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own")
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        code, printed, err = small_wire_check(tmp_path, own)
        assert code == 0, err
        folder = newest(tmp_path / "out")
        calls, before = server.count, {path.name: path.read_bytes() for path in folder.iterdir()}
        assert calls == read_check(folder).calls
        code, again, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert (code, again) == (0, printed), err
        assert before[RECORD] == (folder / RECORD).read_bytes()
        assert before[storage.MANIFEST] == (folder / storage.MANIFEST).read_bytes()
        (folder / RECORD).unlink()
        code, again, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert (code, again) == (0, printed), err
        assert before[RECORD] == (folder / RECORD).read_bytes()
        assert server.count == calls
    assert list((tmp_path / "out").iterdir()) == [folder]


def stopper() -> Callable[[Received], Scripted]:
    """A judge by rule that gets one Ctrl-C at its second call."""
    seen: list[str] = []

    def script(request: Received) -> Scripted:
        seen.append(request.model)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return sensible(request, delay_s=0.3 if len(seen) in (3, 4) else 0.0)  # these two are in flight at the stop

    return script


def test_a_stopped_check_leaves_no_record_and_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        code, _, err = small_wire_check(tmp_path, own)
        assert code == 4, err
        folder = newest(tmp_path / "out")
        assert not (folder / RECORD).exists()
        code, _, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert code == 0, err
        journaled = len(re.findall(rb'"outcome":"ok"', (folder / storage.JOURNAL).read_bytes()))
        assert journaled == read_check(folder).calls
    plain, _ = checked(tmp_path / "plain", "--split", "dev", "--gold", own)
    assert read_check(folder).judges[0].confusion == read_check(plain).judges[0].confusion


def test_a_stopped_check_finishes_the_calls_in_flight_so_that_none_is_paid_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        code, _, err = small_wire_check(tmp_path, own)
        assert code == 4, err
        folder = newest(tmp_path / "out")
        code, _, err = small_wire_check(tmp_path, own, "--resume", folder)
        assert code == 0, err
        assert server.count == read_check(folder).calls


def test_a_stopped_check_says_how_to_resume_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own", replies=4)
    with Loopback(stopper()) as server:
        redirect(monkeypatch, server)
        _, _, err = small_wire_check(tmp_path, own)
    assert f"--resume {newest(tmp_path / 'out')}" in err, err


def test_a_dev_check_is_resumed_without_giving_its_split_again(tmp_path: Path) -> None:
    folder, printed = checked(tmp_path, "--split", "dev")
    record = (folder / RECORD).read_bytes()
    code, again, err = call("judge-check", "--resume", folder, "--quiet")
    assert (code, again) == (0, printed), err
    assert (folder / RECORD).read_bytes() == record


def test_a_judge_s_failure_is_counted_and_is_not_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_gold(tmp_path / "own")
    text = json.loads((own / "own.json").read_bytes())["replies"][0]["claims"][1]["quotes"][0]

    def script(request: Received) -> Scripted:
        system, user = said(request)
        if system.startswith("You check claims") and text in user:
            return Scripted(text="I would rather not say.")
        return sensible(request)

    with Loopback(script) as server:
        redirect(monkeypatch, server)
        code, printed, err = small_wire_check(tmp_path, own)
    assert code == 0, err
    record = read_check(newest(tmp_path / "out"))
    assert [failure.split(":")[:2] for failure in record.failures] == [["cobra-1", " judge_1"]]
    assert "; 1 failure:\n  cobra-1: judge_1: no usable answer after 3 asks: " in printed
    (judge,) = record.judges
    lost = [error for error in judge.errors if error.given is None]
    claims = json.loads((own / "own.json").read_bytes())["replies"][0]["claims"]
    assert {error.claim_id for error in lost if error.reply_id == "cobra-1"} == {one["claim_id"] for one in claims}
    assert {error.given_reason for error in lost} == {"no usable verdict"}
    assert sum(n for (_, given), n in judge.matrix().items() if given is None) == len(lost) == len(claims)
    assert total(judge) == record.claims  # a claim without a verdict stays in the denominator


def test_a_check_is_not_resumed_on_a_different_gold_set(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own", replies=1)
    folder, _ = checked(tmp_path / "out", "--split", "dev", "--gold", own)
    before = (folder / RECORD).read_bytes()
    shutil.rmtree(own)
    other = own_gold(tmp_path / "own", lambda document: document.update(note="Another."), replies=1)
    code, _, err = call("judge-check", "--split", "dev", "--gold", other, "--resume", folder, "--quiet")
    assert code == 2
    assert err == f"medicare-eval: {folder} was started on a different gold set. Start a new check.\n"
    assert before == (folder / RECORD).read_bytes()


# --- bad input ---


def first_reply(document: Document) -> Document:
    reply: Document = document["replies"][0]
    return reply


def bad_quote(document: Document) -> None:
    first_reply(document)["claims"][0]["quotes"] = ["The reply never said this."]


def unknown_scenario(document: Document) -> None:
    document["scenario_id"] = "no_such_scenario"


def unknown_label(document: Document) -> None:
    first_reply(document)["claims"][0]["label"] = "MAYBE"


def unknown_turn(document: Document) -> None:
    first_reply(document)["turn_id"] = "Q99"


def unknown_variant(document: Document) -> None:
    first_reply(document)["variant"] = "no_such_variant"


def unknown_evidence(document: Document) -> None:
    first_reply(document)["claims"][0]["evidence"] = ["F99"]


def same_reply_id(document: Document) -> None:
    document["replies"][1]["reply_id"] = first_reply(document)["reply_id"]


def same_claim_id(document: Document) -> None:
    first_reply(document)["claims"][1]["claim_id"] = first_reply(document)["claims"][0]["claim_id"]


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        (bad_quote, "cobra-1 G1: a quote is not in the reply"),
        (unknown_scenario, "field scenario_id: there is no scenario 'no_such_scenario' in the bank."),
        (unknown_label, "field replies[0].claims[0].label: 'MAYBE' is not allowed"),
        (unknown_turn, "cobra-1: the scenario has no turn 'Q99'."),
        (unknown_variant, "cobra-1: the scenario has no variant 'no_such_variant'."),
        (unknown_evidence, "cobra-1 G1 cites ['F99'], which are not ids in the answer key."),
        (same_reply_id, "reply_id 'cobra-1' is used more than once in the gold set."),
        (same_claim_id, "cobra-1: claim_id 'G1' is used more than once."),
    ],
)
def test_a_gold_set_with_a_fault_is_rejected_in_one_sentence(
    change: Callable[[Document], None], printed: str, tmp_path: Path
) -> None:
    own = own_gold(tmp_path / "own", change)
    code, out, err = call("judge-check", "--split", "dev", "--gold", own, "--out", tmp_path / "out", "--quiet")
    assert (code, out) == (2, "")
    assert str(own / "own.json") in err
    assert printed in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (
            ("--gold", "/no/such/folder"),
            2,
            "/no/such/folder contains no gold files. Give a folder of .json files with --gold.",
        ),
        (("--resume", "/no/such/check"), 2, "cannot be read"),
        (("--judge-model", "fake:careful"), 3, "not a judge"),
        (("--judge-model", "offline:rephrase"), 3, "judges nothing"),
        (("--judge-model", "anthropic:claude-3-opus"), 3, "retired"),
        (("--split", "both"), 2, "invalid choice"),
    ],
)
def test_a_check_that_cannot_run_is_rejected_before_anything_is_written(
    arguments: tuple[str, ...], code: int, printed: str, tmp_path: Path
) -> None:
    found, out, err = call("judge-check", *arguments, "--out", tmp_path / "out", "--quiet")
    assert (found, out) == (code, "")
    assert printed in err
    assert not (tmp_path / "out").exists()


# --- reports corrected by a check ---


def test_a_report_is_corrected_by_a_check_of_its_judges(panel: tuple[Path, str], tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs")
    code, _, err = call("report", folder, "--out", tmp_path / "plain")
    assert code == 0, err
    code, _, err = call("report", folder, "--judge-check", panel[0], "--out", tmp_path / "corrected")
    assert code == 0, err
    plain, corrected = ((tmp_path / name / "report.md").read_text(encoding="utf-8") for name in ("plain", "corrected"))
    assert "Accuracy is not corrected for judge error" in plain
    assert "Accuracy is not corrected for judge error" not in corrected
    assert "corrected for the judges' measured error" in corrected
    assert panel[0].name in corrected
    code, _, err = call("report", folder, "--judge-check", panel[0] / RECORD, "--out", tmp_path / "again")
    assert code == 0, err
    assert (tmp_path / "again" / "report.md").read_text(encoding="utf-8") == corrected


def test_a_report_rejects_a_check_of_other_judges(dev: tuple[Path, str], tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs")
    code, _, err = call("report", folder, "--judge-check", dev[0], "--out", tmp_path / "report")
    assert code == 2
    assert "this run was judged by offline:rules, offline:rules" in err
    assert not (tmp_path / "report").exists()
    code, _, err = call("report", folder, "--judge-check", tmp_path / "nowhere", "--out", tmp_path / "report")
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_a_claim_in_view_shows_judges_neither_label_nor_reason(gold: dict[Split, Gold]) -> None:
    assert set(ClaimInView.model_fields) == {"claim_id", "text", "quotes"}
    for item in gold["dev"].items:
        assert [claim.claim_id for claim in item.claims] == [claim.claim_id for claim in item.reply.claims]


# --- called from Python ---


def test_check_judges_returns_the_record_and_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = own_gold(tmp_path / "own")
    seen: list[RunProgress] = []
    options = CheckOptions(split="dev", gold=own, judges=2, out=tmp_path / "out")
    run = check_judges(options, progress=seen.append)
    assert run.record == read_check(run.record_path)
    assert [judge.name for judge in run.record.judges] == ["judge_1", "judge_2", PANEL]
    assert (run.folder.parent, run.manifest.check_id) == (tmp_path / "out", run.folder.name)
    assert (seen[0].trials, seen[0].trials_done, seen[0].finished) == (2, 0, False)
    assert (seen[-1].trials_done, seen[-1].calls, seen[-1].finished) == (2, run.record.calls, True)
    assert capsys.readouterr() == ("", "")


def test_check_judges_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")

    async def notebook() -> tuple[JudgeCheck, JudgeCheck]:
        options = CheckOptions(split="dev", gold=own, out=tmp_path / "out")
        awaited = await check_judges_async(options)
        return check_judges(options).record, awaited.record

    waited, awaited = asyncio.run(notebook())
    assert waited.judges == awaited.judges
    assert waited.check_id != awaited.check_id


def test_a_check_stopped_from_python_names_the_folder_to_resume(tmp_path: Path) -> None:
    own = own_gold(tmp_path / "own")

    async def stopped() -> None:
        stop = Stop()
        stop.ask()
        await check_judges_async(CheckOptions(split="dev", gold=own, out=tmp_path / "out"), stop=stop)

    with pytest.raises(IncompleteRun, match="To continue: medicare-eval judge-check --resume ") as error:
        asyncio.run(stopped())
    folder = newest(tmp_path / "out")
    assert error.value.run == folder
    assert check_judges(CheckOptions(gold=own, resume=folder)).record.replies == 2


def test_the_example_of_check_judges_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder().find(check_judges, globs={**vars(check_module)})
    assert len(example.examples) == 2
    assert doctest.DocTestRunner().run(example).failed == 0
