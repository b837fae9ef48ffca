"""Reports: tallies, the table, notices, CSV and Markdown that stay inert, partial runs, and the intervals."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from src.cli.tables import summary_table
from src.errors import IntegrityError
from src.findings.estimates import Estimated
from src.findings.rule_judge import OFFLINE_NOTICE
from src.reporting import SCORES, Summary, estimate_text, notices, summarize, summary_json
from src.schemas import RunPlan, Scores, TrialResult
from src.storage import RESULTS
from src.text.escape import defused, inert
from tests.cases import each_case
from tests.helpers import manifest, plan, result, scenario, write_results

PARSER = MarkdownIt("gfm-like", {"linkify": False})
HOSTILE = (
    "<script>alert(1)</script> [a](http://x) ![i](y) `c` **b** _e_ # h | cell | $x$ ~~s~~ <!-- c --> &amp; "
    "- item\n\n# Heading\n---\n\x1b[31mred\x07 \u202eright-to-left\u2066 \ud800 1. one \\| end"
)
VALUES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=40)

FAKE_NOTICE = "fake: targets return canned text written for this project; no model was called."


def summary_of(folder: Path, results: Sequence[TrialResult], made: RunPlan | None = None) -> Summary:
    write_results(folder, results)
    return summarize(folder, manifest(made or plan(repeats=len(results) or 1)))


def test_results_are_tallied_by_target_and_by_scenario(tmp_path: Path) -> None:
    made = plan(
        scenarios=[scenario(scenario_id="a"), scenario(scenario_id="b")], targets=["fake:careful", "fake:wrong"]
    )
    summary = summary_of(
        tmp_path,
        [
            result(scenario_id="a", accuracy=1.0),
            result(scenario_id="a", target="fake:wrong", accuracy=0.0),
            result(scenario_id="b", accuracy=0.5),
            result(scenario_id="b", target="fake:wrong", outcome="truncated"),
        ],
        made,
    )
    assert (summary.planned, summary.done) == (4, 4)
    assert {name: tally.estimate("accuracy").value for name, tally in summary.by_target.items()} == {
        "fake:careful": 0.75,
        "fake:wrong": 0.0,
    }


@each_case("model", ["x" * 190, "gpt-4.1", "organisation/a-rather-long-name-of-a-model-2026-01-01"])
def test_the_table_fits_a_terminal_and_cuts_no_name(tmp_path: Path, model: str) -> None:
    name = f"openai:{model}"
    scenarios = [scenario(scenario_id=f"s{n}") for n in (1, 2, 3)]
    made = plan(scenarios=scenarios, targets=[name, "fake:careful"])
    scored = [result(target=name, accuracy=value, scenario_id=f"s{n}") for n, value in enumerate((0.0, 0.5, 1.0), 1)]
    table = summary_table(summary_of(tmp_path, [*scored, result(refusal=True)], made), 80)
    lines = table.splitlines()
    assert max(len(line) for line in lines) <= 80
    folded = "".join(line.split(" ")[0] for line in lines)
    assert name in folded, "a long name is folded, not cut"
    assert "3/3" in table
    assert "0.50" in table
    assert "0.10–0.90" in table
    assert "1/1" in table
    assert "…" not in table


def test_markup_in_a_targets_name_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    name = "openai:[red]x[/red]"
    assert "[red]" in summary_table(summary_of(tmp_path, [result(target=name)], plan(targets=[name])), 120)


def test_a_table_without_results_shows_that_there_are_none(tmp_path: Path) -> None:
    table = summary_table(summary_of(tmp_path, []), 80)
    row = next(line for line in table.splitlines() if "careful" in line)
    assert row.split() == ["fake:careful", "–", "–", "–", "–", "–", "0", "0"]
    assert "0/0 scored" in table
    assert "no factual claim has a final label" in " ".join(table.split())


def test_notices_name_rule_based_judges_fake_targets_and_incomplete_runs_only(tmp_path: Path) -> None:
    real: dict[str, Any] = {"targets": ["openai:gpt-4.1"], "verifiers": ["anthropic:claude", "google:gemini"]}
    done = [result(target="openai:gpt-4.1")]
    assert notices(summary_of(tmp_path, done, plan(**real))) == []
    assert notices(summary_of(tmp_path, [result()])) == [OFFLINE_NOTICE, FAKE_NOTICE]
    mixed = plan(targets=["openai:gpt-4.1"], verifiers=["anthropic:claude", "offline:rules"])
    assert notices(summary_of(tmp_path, done, mixed)) == [OFFLINE_NOTICE]
    part = plan(**real, repeats=3)
    assert notices(summary_of(tmp_path, done, part)) == ["Incomplete: this run has 1 of 3 planned trials."]


def test_the_summary_as_json_can_be_written_and_holds_the_numbers(tmp_path: Path) -> None:
    document = summary_json(summary_of(tmp_path, [result(accuracy=0.0), result(accuracy=1.0, fabricated=True)]))
    read = json.loads(json.dumps(document, allow_nan=False))
    target = read["targets"]["fake:careful"]
    assert (read["planned"], read["done"], target["trials"]) == (2, 2, 2)
    found = target["scores"]["accuracy"]
    assert (found["mean"], found["low"], found["scenarios"], found["n"], found["missing"]) == (0.5, None, 1, 2, 0)
    assert found["why_no_interval"] == "1 scenario: 3 are needed for an interval"
    assert (target["outcomes"], target["fabricated_specifics"]) == ({"scored": 2}, 1)


@each_case("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_cells_a_spreadsheet_would_run_are_defused(cell: str) -> None:
    assert defused(cell) == "'" + cell


@each_case("cell", ["openai:gpt-4.1", "", "a=b", "1"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert defused(cell) == cell


def visible(text: str) -> str:
    """What of a text may be seen: one line, without control and format characters."""
    shown = " ".join(text.split())
    return "".join(char for char in shown if unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def shown_by_markdown(line: str) -> str:
    """The plain text Markdown makes of a paragraph; anything but text fails the test."""
    tokens = PARSER.parse(line)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], line
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}, line
    return "".join(child.content for child in children)


@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from("\\`*_{}[]()#+-!|~$<>&;:/.\n\t'\"=^@ 1a")))
def test_inert_text_is_shown_by_markdown_to_the_letter(text: str) -> None:
    assert shown_by_markdown(f"Answered: “{inert(text)}”") == f"Answered: “{visible(text)}”"


def test_hostile_text_is_one_inert_line() -> None:
    shown = inert(HOSTILE)
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not re.search(r"(?<!\\)[`*_\[\]|]|[<>]", shown)
    assert shown_by_markdown(shown) == visible(HOSTILE)


def test_a_torn_last_line_is_left_out_and_a_changed_one_refused(tmp_path: Path) -> None:
    write_results(tmp_path, [result(), result(accuracy=0.5)])
    path = tmp_path / RESULTS
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert summarize(tmp_path, manifest(plan(repeats=2))).done == 1
    path.write_bytes(whole.replace(b'"accuracy":1.0', b'"accuracy":0.9'))
    with pytest.raises(IntegrityError, match="line 1: hash chain broken"):
        summarize(tmp_path, manifest(plan(repeats=2)))


def estimated(value: float | None, low: float | None = None, high: float | None = None) -> Estimated:
    return Estimated(value, low, high, 4, "scenario", 4, 4, 0, 4.0)


def test_an_estimate_is_shown_with_its_interval_or_without_one() -> None:
    assert estimate_text(estimated(None)) == "–"
    assert estimate_text(estimated(0.5)) == "0.50 (no interval)"
    assert estimate_text(estimated(0.934, 0.776, 1.0)) == "0.93 (0.78–1.00)"
    assert estimate_text(estimated(0.934, 0.776, 1.0), two_lines=True) == "0.93\n0.78–1.00"


def test_every_score_of_the_record_is_reported() -> None:
    assert tuple(Scores.model_fields) == SCORES
