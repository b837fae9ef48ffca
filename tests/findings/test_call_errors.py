"""Why calls failed: how failures are grouped, counted, and shown in reports and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from src import storage
from src.cli.tables import error_text
from src.findings import cost
from src.findings.cost import CallError, pattern_of
from src.findings.judge_agreement import judging
from src.findings.read_run import Findings, gather
from src.records.run import LimitsNote, RunLimits
from src.reporting import nothing_scored, summarize
from src.reports.failure_section import KINDS
from src.reports.write import write_files
from src.schemas import CallOutcome, CallRecord, JudgeFailure, TrialOutcome, TrialResult
from src.store import hash_chain
from tests.cases import each_case
from tests.findings.report_run import A, small_manifest, write_run
from tests.helpers import call_record, result

JUDGE = "openai:x"
TRIAL = result(target=A).trial_id


@each_case(
    ("first", "second"),
    [
        ("Overloaded. Request req_011CXyz9AbCdEf", "Overloaded. Request req_9ZZc8d7eQrTuVw"),
        ("id 550e8400-e29b-41d4-a716-446655440000 failed", "id 0f14d0ab-9605-4a62-a9e4-5ed26688389b failed"),
        ("at 2026-01-01T00:00:00.123Z: down", "at 2025-11-30T23:59:59.9Z: down"),
        ("try again in 1.2s", "try again in 120ms"),
        ("try again in 1.2s", "try again in 1m20s"),
        ("limit 30,000, requested 900", "limit 10,000, requested 1,234,567"),
        ("trace QmFzZTY0VG9rZW5XaXRoTm9EaWdpdA done", "trace b3RoZXJUb2tlbkFsc29SYW5kb20xMjM0 done"),
        ("claims.0.text: Field required", "claims.12.text: Field required"),
        ("Q1.C1 is missing; Q1.C2 is missing", "Q2.C7 is missing"),
        ("two\n lines", "two lines"),
    ],
)
def test_the_same_fault_with_other_ids_and_numbers_is_one_kind(first: str, second: str) -> None:
    assert pattern_of(first) == pattern_of(second)


@each_case(
    ("first", "second"),
    [
        ("APIConnectionError < ConnectError", "APIConnectionError < RemoteProtocolError"),
        ("insufficient_quota", "context_length_exceeded"),
        ("claims.0.text: Field required", "claims.0.type: Field required"),
        ("The model does not exist", "The key does not exist"),
        ("", "stop reason: length"),
    ],
)
def test_different_faults_are_different_kinds(first: str, second: str) -> None:
    assert pattern_of(first) != pattern_of(second)


def failed(call: str, error: str | None = "a: HTTP 500: broken", *, model: str = A, **changes: Any) -> CallRecord:
    fields = {"model": model, "status": 500, "outcome": "transient", "final": False, "text": None, "error": error}
    return call_record(f"{TRIAL}|{call}").model_copy(update={**fields, **changes})


def answered(call: str, model: str = A) -> CallRecord:
    return call_record(f"{TRIAL}|{call}").model_copy(update={"model": model})


def judge_failure(reason: str, **changes: Any) -> JudgeFailure:
    fields: dict[str, Any] = {"stage": "verifier", "turn_id": "Q1", "judge": 1, "claim_ids": ()}
    return JudgeFailure(**{**fields, "reason": reason, **changes})


def read(folder: Path, calls: Sequence[CallRecord], results: Sequence[TrialResult] = ()) -> Findings:
    write_run(folder / "run", results, small_manifest(), calls)
    return gather(folder / "run")


def counts(found: Findings) -> list[tuple[str, str, int, int]]:
    return [(one.role, one.outcome, one.attempts, one.lost) for one in found.errors]


def test_attempts_that_were_repeated_are_told_from_calls_that_were_lost(tmp_path: Path) -> None:
    calls = [
        failed("target|Q1|0|0|1", "HTTP 500: request 17"),
        failed("target|Q1|0|0|2", "HTTP 500: request 18"),
        answered("target|Q1|0|0|3"),
        failed("target|Q2|0|0|1", "HTTP 500: request 19"),
        failed("target|Q2|0|0|2", "HTTP 500: request 20", final=True),
    ]
    (error,) = read(tmp_path, calls).errors
    assert error == CallError(
        "target", A, "transient", 500, "HTTP 500: request 20", attempts=4, lost=1, example=f"{TRIAL}|target|Q2|0|0|2"
    )
    assert error.tried_again == 3


def test_model_role_outcome_and_status_are_told_apart(tmp_path: Path) -> None:
    calls = [
        failed("target|Q1|0|0|1"),
        failed("target|Q2|0|0|1", model="fake:wrong"),
        failed("scorer|Q1|0|0|1"),
        failed("target|Q3|0|0|1", status=503),
        failed("target|Q4|0|0|1", outcome="timeout"),
    ]
    assert len(read(tmp_path, calls).errors) == 5


def test_a_judge_that_is_asked_again_without_a_schema_has_lost_nothing(tmp_path: Path) -> None:
    refused: dict[str, Any] = {"outcome": "permanent", "status": 400, "final": True, "model": JUDGE}
    calls = [
        failed("verifier|Q1|1.c1|0|1", **refused),
        answered("verifier|Q1|1.c1|1|1", JUDGE),
        failed("verifier|Q1|1.c2|0|1", **refused),
    ]
    assert counts(read(tmp_path, calls)) == [("verifier", "permanent", 2, 1)]


def test_replies_that_cannot_be_scored_are_failures_and_refusals_of_the_target_are_not(tmp_path: Path) -> None:
    ended: dict[str, Any] = {"final": True, "status": None, "error": None, "text": ""}
    calls = [
        failed("target|Q1|0|0|1", outcome="truncated", stop_reason="length", **ended),
        failed("target|Q2|0|0|1", outcome="refused", **ended),
        failed("scorer|Q1|0|0|1", outcome="truncated", model=JUDGE, **ended),
        failed("scorer|Q1|0|1|1", outcome="refused", model=JUDGE, **ended),
    ]
    found = read(tmp_path, calls)
    assert counts(found) == [("target", "truncated", 1, 1), ("scorer", "refused", 1, 0), ("scorer", "truncated", 1, 0)]
    assert found.errors[0].message == "stop reason: length"


def test_a_probe_and_a_denied_call_lose_no_data(tmp_path: Path) -> None:
    calls = [failed("target|Q1|0|0|1", outcome="denied", status=401)]
    calls.append(failed("", final=True).model_copy(update={"call": "probe|probe|-|0|0|1"}))
    assert counts(read(tmp_path, calls)) == [("probe", "transient", 1, 0), ("target", "denied", 1, 0)]


def test_lines_that_are_no_calls_are_skipped(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [], small_manifest(), [failed("target|Q1|0|0|1")])
    path = tmp_path / "run" / storage.JOURNAL
    head = hash_chain.split_line(path.read_bytes().splitlines()[-1])
    assert head
    note = LimitsNote(limits=RunLimits(), started="2026-01-01T00:00:00.000+00:00")
    with path.open("ab") as file:
        file.write(hash_chain.chained(head[0], storage.encode_record(note)).line)
    assert counts(gather(tmp_path / "run")) == [("target", "transient", 1, 0)]


def test_a_judge_that_never_answers_as_asked_is_a_reason(tmp_path: Path) -> None:
    reasons = [f"no usable answer after 3 asks: invalid JSON (line {line}, column 1)" for line in (1, 2, 3)]
    trials = [
        result(target=A, repetition=n, outcome="judge_failure").model_copy(
            update={"judge_failures": (judge_failure(reason, judge=2),)}
        )
        for n, reason in enumerate(reasons, 1)
    ]
    (error,) = read(tmp_path, [], trials).errors
    assert error == CallError(
        "verifier", "google:y", "unusable", None, reasons[0], attempts=3, lost=3, example=f"{TRIAL}|verifier|Q1|2"
    )


def test_a_judge_s_failed_call_is_counted_once(tmp_path: Path) -> None:
    ended = failed("verifier|Q1|1|0|1", "a: HTTP 500: request 7", final=True, model=JUDGE)
    reason = "the call failed: transient: a: HTTP 500: request 8"
    trial = result(target=A, outcome="judge_failure").model_copy(update={"judge_failures": (judge_failure(reason),)})
    assert counts(read(tmp_path, [ended], [trial])) == [("verifier", "transient", 1, 1)]


def test_a_judge_s_call_that_only_the_results_call_failed_is_counted(tmp_path: Path) -> None:
    reason = "the call failed: permanent: answered by gpt-x, of the target's own family"
    trial = result(target=A, outcome="judge_failure").model_copy(update={"judge_failures": (judge_failure(reason),)})
    (error,) = read(tmp_path, [answered("verifier|Q1|1|0|1", JUDGE)], [trial]).errors
    assert (error.outcome, error.message) == ("unusable", "answered by gpt-x, of the target's own family")


def test_a_provider_that_never_repeats_itself_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost, "MOST_KINDS", 3)
    calls = [failed(f"target|Q1|0|0|{n + 1}", f"word {'abcdefgh'[n]}") for n in range(8)]
    found = read(tmp_path, calls).errors
    assert [one.attempts for one in found] == [5, 1, 1, 1]
    assert found[0].message == cost.OTHERS


@each_case(
    ("outcomes", "nothing"),
    [
        (("failed", "judge_failure", "questioner_failure"), True),
        (("truncated", "blocked", "empty", "tampered"), True),
        (("failed", "refused"), False),
        (("failed", "scored"), False),
        ((), False),
    ],
)
def test_a_run_without_scores_says_so(outcomes: Sequence[TrialOutcome], nothing: bool, tmp_path: Path) -> None:
    trials = [result(target=A, repetition=n, outcome=outcome) for n, outcome in enumerate(outcomes, 1)]
    write_run(tmp_path / "run", trials, small_manifest())
    said = nothing_scored(summarize(tmp_path / "run", small_manifest()))
    assert bool(said) == nothing


def report_of(found: Findings, out: Path) -> dict[str, str]:
    paths = write_files([found], [judging(found)], out)
    return {path.name: path.read_text(encoding="utf-8") for path in paths if path.suffix in (".md", ".html", ".csv")}


def section(markdown: str, title: str) -> str:
    return markdown.partition(f"## {title}\n")[2].partition("\n## ")[0].strip()


def test_the_report_tells_why_data_is_missing_from_what_only_took_time(tmp_path: Path) -> None:
    calls = [
        failed("scorer|Q1|0|0|1", "slow", model=JUDGE, outcome="timeout", status=None),
        answered("scorer|Q1|0|0|2", JUDGE),
        failed("target|Q2|0|0|1", "HTTP 404: no such model", outcome="permanent", status=404, final=True),
    ]
    written = report_of(read(tmp_path, calls, [result(target=A, outcome="failed")]), tmp_path / "out")
    page = "evidence/1-compatible-model-a/s1.t1.html"
    link = f"[{TRIAL.replace('-', chr(92) + '-')}]({page}#r1)"
    assert section(written["report.md"], "Why calls failed").splitlines() == [
        "1 call ended without a usable answer, so data is missing. 1 failed attempt was tried again: that cost only "
        "time. One message stands for all that differ only in numbers and ids. All kinds are in errors.csv.",
        "",
        "Why data is missing.",
        "",
        "| role | model | what happened | message | calls lost | for example |",
        "| --- | --- | --- | --- | ---: | --- |",
        rf"| target | compatible:model\-a | request rejected | HTTP 404: no such model | 1 | {link} |",
        "",
        "Why attempts were repeated.",
        "",
        "| role | model | what happened | message | tried again | for example |",
        "| --- | --- | --- | --- | ---: | --- |",
        f"| scorer | openai:x | no answer in time | slow | 1 | {link} |",
    ]
    assert (tmp_path / "out" / page).is_file()
    assert 'id="r1"' in (tmp_path / "out" / page).read_text(encoding="utf-8")
    assert f'href="{page}#r1"' in written["report.html"]
    assert "Nothing was scored (1 trial: 1 failed)" in written["report.html"].partition("<section")[0]
    assert written["errors.csv"].splitlines()[1:] == [
        f"20260101T000000Z,target,{A},permanent,404,HTTP 404: no such model,1,1,{TRIAL}|target|Q2|0|0|1",
        f"20260101T000000Z,scorer,{JUDGE},timeout,,slow,1,0,{TRIAL}|scorer|Q1|0|0|1",
    ]


def test_a_report_without_failures_has_no_section_about_them(tmp_path: Path) -> None:
    written = report_of(read(tmp_path, [answered("target|Q1|0|0|1")], [result(target=A)]), tmp_path / "out")
    assert "errors.csv" not in written
    assert "Why calls failed" not in written["report.md"] + written["report.html"]
    assert "Nothing was scored" not in written["report.md"]


def test_a_long_list_of_kinds_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    calls = [failed(f"target|Q1|0|0|{n + 1}", f"fault {'abcdefghijkl'[n]}") for n in range(12)]
    written = report_of(read(tmp_path, calls), tmp_path / "out")
    shown = section(written["report.md"], "Why calls failed")
    assert "Why attempts were repeated; 2 more kinds in errors.csv." in shown
    assert shown.count("| fault ") == 10
    assert len(written["errors.csv"].splitlines()) == 13


LONG = CallError("verifier", "compatible:" + "m" * 150, "transient", 500, "w" * 400, 12_345_678, 1_000, "t|verifier")


@each_case("width", [40, 80, 200])
def test_the_terminal_s_table_fits_and_is_inert(width: int) -> None:
    hostile = replace(LONG, model="a:b", message="\x1b]8;;http://x\x07red\x1b[31m\u202e \x9b2J line\nbreak")
    shown = error_text([LONG, hostile, *[replace(LONG, lost=0)] * 5], width)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.replace("\n", "").isprintable()
    assert "and 2 more kinds" in shown
    assert error_text([LONG] * 5, width).count("more kind") == 0


def test_counts_of_the_terminal_s_table() -> None:
    shown = error_text([replace(LONG, model="openai:x", message="HTTP 500: broken", attempts=7, lost=2)], 80)
    assert shown.splitlines() == [
        "Why calls failed:",
        "calls  tried  reason",
        " lost  again",
        "    2      5  verifier openai:x: server or network error. HTTP 500: broken",
        "Lost: no usable answer, so data is missing. Tried again, or to be on resume:",
        "cost only time.",
    ]


def test_every_outcome_of_a_failed_call_has_plain_words() -> None:
    assert set(KINDS) == {*get_args(CallOutcome), cost.UNUSABLE} - {"ok"}
