"""The benchmark: its canned conversation is realistic, and every part of it still runs and prints its figures."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.replies import PLAN_YEAR, REPLIES, Reply
from bench.server import Answers
from bench.study import ROOT, SHIPPED, TURNS
from bench.table import BEGIN, END, Row, write
from src.agents.ask import AskedTurn
from src.agents.extractor import anchor
from src.schemas import ExtractorReply
from src.text.coverage import coverage
from src.text.screen import marked_passages
from tests.cases import each_case

NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?%?")
PARTS = {
    "cpu": ("calls made", "CPU per call, ms (bare SDK", "calls/s, 0 ms", "trials/s"),
    "isolation": tuple(
        f"{measure}, --isolation {way}"
        for way in ("flagged", "claim")
        for measure in ("calls per turn", "CPU per call, ms", "CPU per trial, ms")
    ),
    "reread": ("CPU per call, ms: verify", "CPU per call, ms: replay"),
    "start": ("start to end of models", "start to end of verify"),
    "efficiency": ("share of the ideal (0.2 s), 20 ms, 4 calls in flight", "share of the ideal"),
    "processes": ("calls/s, 0 ms, --processes 2",),
    "wall": ("wall time", "share of the ideal"),
    "memory": ("peak memory", "CPU per call, ms, over"),
    "resume": ("resume of",),
    "replay": ("replay of",),
    "inspect": ("CPU per call, ms (other: inspect-ai", "calls/s, 0 ms, 64 at once (other: Inspect)"),
    "transports": ("bare SDK, CPU per call",),
}
"""By part, how the measures begin that it must print."""


def test_the_canned_replies_are_of_realistic_size_and_cite_the_scenario_they_answer() -> None:
    scenario = json.loads(SHIPPED.read_text(encoding="utf-8"))
    facts = set(scenario["answer_key"]["library_facts"])
    disallowed = {f"D{number}" for number in range(1, len(scenario["answer_key"]["disallowed_claims"]) + 1)}
    questions = {turn["turn_id"]: turn["user_message"] for turn in scenario["scripted_turns"]}
    assert sorted(reply.turn_id for reply in REPLIES) == list(questions)[:TURNS]
    for reply in REPLIES:
        text = reply.text()
        assert 350 <= len(text.split()) <= 450
        assert len(reply.claims) == 12
        assert all(text.count(said.quote) == 1 for said in reply.claims)
        assert all(seen.quote in text for seen in reply.observations)
        assert {cited for said in reply.claims for cited in said.evidence} <= facts | disallowed
        assert {said.label for said in reply.claims} == {"SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"}
        assert [turn for turn, asked in questions.items() if reply.question in asked] == [reply.turn_id]
        assert not any(reply.question in other.text() for other in REPLIES)


@each_case("left_out", [0, 3])
@each_case("reply", REPLIES, ids=lambda reply: reply.turn_id)
def test_judges_are_asked_once_because_the_canned_claims_cover_the_reply_and_nothing_is_marked(
    reply: Reply, left_out: int
) -> None:
    text, canary = reply.text(left_out), "c0ffee"
    message = json.dumps({"canary": canary, "question": f"I am {reply.question} it.", "reply": text})
    body = json.dumps({"messages": [{"content": message}], "response_format": {"properties": {"claims": {}}}})
    answer = json.loads(json.loads(b'"' + Answers().content(body.encode()) + b'"'))
    assert answer.pop("canary") == canary
    found = anchor(
        reply.turn_id, text, ExtractorReply.model_validate_json(json.dumps(answer)), AskedTurn("", PLAN_YEAR)
    )
    assert not found.rejected
    assert coverage(text, found.claims).left_out == ()
    assert len([claim for claim in found.claims if claim.verifiable]) == 12 - left_out
    assert len([claim for claim in found.claims if claim.type == "other"]) == len(reply.remarks) > 5
    assert marked_passages(text) == ()


def test_writing_a_table_leaves_the_rest_of_the_document_alone(tmp_path: Path) -> None:
    path = tmp_path / "bench.md"
    path.write_text(f"before\n{BEGIN}\nold figures\n{END}\nafter\n", encoding="utf-8")
    write(path, "new figures")
    assert path.read_text(encoding="utf-8") == f"before\n{BEGIN}\n\nnew figures\n\n{END}\nafter\n"


def smoke(module: str, to: Path) -> tuple[list[Row], str]:
    """Run a smoke of the benchmark as a user would; its rows, and all that it wrote."""
    command = [sys.executable, "-m", module, "--smoke", "--write", str(to)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    written = to.read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("| ")]
    rows = [Row(cells[0], cells[1], cells[2], float(cells[3])) for cells in lines[1:]]
    assert all(row.measure in done.stdout for row in rows)
    return rows, written


def check(row: Row) -> None:
    """Both sides gave a number, and neither side was free."""
    assert NUMBER.fullmatch(row.ours), row
    assert NUMBER.fullmatch(row.other), row
    assert row.ratio is not None
    assert row.ratio > 0, row


@pytest.mark.nightly
def test_every_part_of_the_benchmark_prints_its_figures(tmp_path: Path) -> None:
    assert set(PARTS) == set(bench.PARTS)
    rows, written = smoke("bench", tmp_path / "bench.md")
    for row in rows:
        check(row)
    for part, measures in PARTS.items():
        if f"{part}: skipped: " in written and part in ("inspect", "processes"):
            continue
        for measure in measures:
            assert any(row.measure.startswith(measure) for row in rows), f"{part} did not print: {measure}"
    assert [(row.ours, row.other) for row in rows if row.measure.startswith("calls made, 3 trials of 3 turns")] == [
        ("45", "45")
    ]
    by_claim = [row for row in rows if row.measure.startswith("calls per turn, --isolation claim")]
    assert [(row.ours, row.other) for row in by_claim] == [("27.0", "5.0")]


@pytest.mark.slow
def test_the_benchmark_of_reports_prints_its_figures(tmp_path: Path) -> None:
    rows, written = smoke("bench.reports", tmp_path / "bench_reports.md")
    for row in rows:
        check(row)
    for measure in (
        "tables, CPU s",
        "tables, wall",
        "report without trial pages, wall",
        "report with trial pages, CPU s",
        "report with trial pages, wall",
        "compare, CPU s",
        "compare, wall",
        "peak memory of report with trial pages",
        "peak memory of compare",
    ):
        assert any(row.measure.startswith(measure) for row in rows), measure
    assert "48 trials, " in written


@pytest.mark.slow
def test_the_benchmark_of_pages_prints_its_figures(tmp_path: Path) -> None:
    rows, written = smoke("bench.pages", tmp_path / "bench_pages.md")
    for measure in ("list of runs", "first page of the run", "a trial, slowest ms", "raw calls of a trial"):
        (row,) = [row for row in rows if row.measure.startswith(measure)]
        check(row)
    assert "48 trials, " in written


@pytest.mark.slow
def test_without_inspect_its_part_is_skipped_with_a_line_that_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setattr(sys, "argv", ["bench", "--smoke", "--part", "inspect"])
    assert bench.main() == 0
    assert "inspect: skipped: inspect_ai is not importable here" in capsys.readouterr().out
