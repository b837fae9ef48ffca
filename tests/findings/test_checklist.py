"""The reporting checklists: every item is there, the run's own facts are filled in, the rest is the author's."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from src.cli import options
from src.errors import InputError, IntegrityError
from src.findings.judge_agreement import judging, read_check
from src.findings.read_run import Findings, gather
from src.reports import template
from src.reports.checklist import CHECKLISTS, ChecklistName, checklists, chosen_checklists, file_name, load_checklist
from src.reports.methods import AUTHOR, methods_markdown
from src.reports.series import runs_of
from src.reports.write import write_report
from src.schemas import Registration, Transcripts
from src.storage import JOURNAL, MANIFEST, RESULTS, SEAL, encode_record, file_sha256
from src.store.hash_chain import chain_value
from tests.cases import each_case

from ..helpers import HASH, manifest, result, scenario
from ..runs import END_TO_END, ONE, shared, shared_run
from .made_runs import call_on, hostile, manifest_of, one_of_each, planned, rich, rule, write_journal, write_run

ITEMS = load_checklist("chart").items
TOPICS = {"chart": 12, "tripod-llm": 19, "mi-clear-llm": 6}


def chart_checklist(found: Findings, registration: Registration | None = None) -> str:
    return checklists(["chart"], found, registration=registration)["chart"]


def section(text: str, item_id: str) -> str:
    found = re.search(rf"^### {item_id} .*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, item_id
    return found[0]


@pytest.fixture(scope="module")
def real() -> Path:
    return shared_run(
        "--scenario", ONE, "--target", "fake:partial", "--target", "fake:wrong",
        "--repeats", "2", "--judge-repeats", "1", "--judge-sample", "1",
    )  # fmt: skip


@each_case("name", CHECKLISTS)
def test_items_have_ids_of_their_own_and_cover_all_topics(name: ChecklistName) -> None:
    texts = load_checklist(name)
    ids = [item.item_id for item in texts.items]
    numbers = [item.number for item in texts.items]
    assert len(set(ids)) == len(ids)
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == sorted(texts.main_items) == list(range(1, TOPICS[name] + 1))
    assert all(texts.main_items.values())
    assert all(item.topic and item.report.endswith(".") for item in texts.items)
    assert all(item.known or item.ask for item in texts.items)
    assert "sub-items" in texts.source or "this project's own" in texts.source


@each_case("name", CHECKLISTS)
def test_every_item_is_in_the_text_and_none_is_empty(name: ChecklistName, real: Path) -> None:
    text = checklists([name], gather(real))[name]
    for item in load_checklist(name).items:
        part = section(text, re.escape(item.item_id))
        assert item.report in part
        body = part.split(item.report, 1)[1].strip("* \n")
        assert body, item.item_id
        assert (AUTHOR in part) == bool(item.ask), item.item_id
    assert "DECIDE-AI" in text
    assert "Check your manuscript against" in text
    assert "{" not in text
    lines = text.splitlines()
    assert all(before[:1] in ("", "|") for before, line in pairwise(lines) if line.startswith("|")), (
        "tables stand alone"
    )
    assert "\n\n\n" not in text


def test_every_name_in_a_list_is_a_macro_and_every_macro_is_used() -> None:
    named = {
        line[1:] for name in CHECKLISTS for item in load_checklist(name).items for line in item.known if line[0] == "@"
    }
    texts = [path.read_text(encoding="utf-8") for path in (template.FOLDER / "text").glob("checklist*.md.j2")]
    macros = {name for text in texts for name in re.findall(r"\{% macro (\w+)\(", text)}
    called = {name for text in texts for name in re.findall(r"\{\{ (?:lines\.)?(\w+)\(", text)}
    assert named <= macros
    assert macros <= named | called


def test_what_papers_omit_most_is_answered_from_the_run(real: Path) -> None:
    found = gather(real)
    texts = checklists(CHECKLISTS, found)
    settings, stable = section(texts["mi-clear-llm"], "2.1"), section(texts["mi-clear-llm"], "2.3")
    assert "temperature 0" in settings
    assert "Seed 42" in settings
    assert "Asked again in the same words: fake:partial got the same study code each time for 100%" in stable
    assert "one point in time" in stable
    assert "no web search, no documents and no tools" in section(texts["mi-clear-llm"], "1.2")
    independence = section(texts["mi-clear-llm"], "6.1")
    assert "1 of 1 scenario file is distributed with medicare-eval" in independence
    assert str(manifest_of(real).plan.scenarios[0].scenario.effective_date) in independence
    assert "| fake:partial | under test | partial | partial | yes | none |" in section(texts["tripod-llm"], "6.1")
    assert "were not checked against labeled replies" in section(texts["tripod-llm"], "7.3")
    assert rule("missing") in section(texts["tripod-llm"], "5.5")
    assert rule("intervals") in section(texts["tripod-llm"], "6.5")
    assert "| Scenarios |  | 1 |" in section(texts["tripod-llm"], "5.2")
    assert re.search(r"fake:wrong \(target\): \d+ calls, ", section(texts["tripod-llm"], "12.1"))


def test_a_judge_check_says_how_many_labels_the_judges_found(real: Path) -> None:
    check = read_check(shared("judge-check", *END_TO_END).folder)
    found = gather(real)
    measured = replace(judging(found), check=check)
    part = section(checklists(["tripod-llm"], found, measured=measured)["tripod-llm"], r"7\.3")
    assert f"on {check.replies} labeled replies with {check.claims} claims" in part
    assert check.end_to_end
    for label in ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"):
        row = {given: n for (gold, given), n in check.end_to_end.matrix().items() if gold == label}
        assert f"{label.replace('_', ' ')}: {row.get(label, 0)} of {sum(row.values())} claims found" in part
    assert "not checked" not in part
    assert f"checked on {check.replies} replies" in methods_markdown(runs_of([found], [measured]))


def test_one_repeat_says_that_stability_is_not_known(tmp_path: Path) -> None:
    found = gather(write_run(tmp_path / "run", [rich()], planned()))
    assert "stability over repeats is not known" in section(checklists(["chart"], found)["chart"], "Q3")


def test_a_scenario_of_ones_own_is_not_called_public(tmp_path: Path) -> None:
    found = gather(write_run(tmp_path / "run", [rich()], planned()))
    text = section(checklists(["mi-clear-llm"], found)["mi-clear-llm"], "6.1")
    assert "not distributed with medicare-eval" in text
    assert "together with the answer key" not in text


def test_lists_are_chosen_by_name_with_commas_or_all() -> None:
    assert chosen_checklists("chart") == ("chart",)
    assert chosen_checklists("mi-clear-llm, chart") == ("chart", "mi-clear-llm")
    assert chosen_checklists(["tripod-llm", "chart", "chart"]) == ("chart", "tripod-llm")
    assert chosen_checklists(["chart", "all"]) == CHECKLISTS
    assert [file_name(name) for name in CHECKLISTS] == [
        "chart_checklist.md", "tripod_llm_checklist.md", "mi_clear_llm_checklist.md",
    ]  # fmt: skip
    with pytest.raises(InputError, match="'other' is not a checklist"):
        chosen_checklists("chart,other")


def test_the_command_offers_the_lists_that_there_are() -> None:
    assert (*CHECKLISTS, "all") == options.CHECKLISTS


def test_an_unknown_list_is_refused_before_anything_is_written(real: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a checklist"):
        write_report([real], tmp_path / "out", checklist=["consort"])
    assert not (tmp_path / "out").exists()


def test_what_the_run_knows_is_filled_in(real: Path) -> None:
    found = gather(real)
    text = chart_checklist(found)
    made = manifest_of(real)
    assert "| fake:partial | under test | partial | partial | yes | none |" in section(text, "M1")
    assert "temperature 0, at most 2048 tokens" in section(text, "M3")
    assert "Seed 42" in section(text, "M3")
    for prompt in made.plan.prompts.values():
        assert prompt.sha256 in section(text, "P1")
    assert made.plan.scenarios[0].sha256 in section(text, "Q1")
    assert "planned 2 times with each of 2 models: 4 trials" in section(text, "Q3")
    assert "plan year 2026" in section(text, "E1")
    assert f"Filled from {len(made.plan.references)} files of figures" in section(text, "E1")
    assert made.plan.rubrics["v1"].sha256 in section(text, "E2")
    assert "2 verifiers: offline:rules, offline:rules" in section(text, "E3")
    assert "Krippendorff's alpha: 1.00" in section(text, "E3")
    assert "judge_1 (offline:rules), asked again, changed its label: 0 of " in section(text, "E3")
    assert "1 conversation × 2 models × 2 repeats = 4 trials; this run's results have 4" in section(text, "S1")
    assert "| fake:wrong | 2 | 2 | 0 |" in section(text, "R1")
    assert "| fake:wrong | 0% (no interval) |" in section(text, "R2")
    assert found.head in section(text, "D5")
    for name in (MANIFEST, JOURNAL, RESULTS, SEAL):
        assert file_sha256(real / name) in section(text, "D5")
    assert "(sealed)" in section(text, "D5")
    assert "Do not report these scores as results." in text
    assert "canned text" in text


def test_days_of_access_are_from_the_journal(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    days = ("2026-03-02", "2026-03-01", "2026-03-09")
    write_journal(folder, [*(call_on(day, "openai:gpt-x") for day in days), call_on("2026-04-01", "offline:rules")])
    text = chart_checklist(gather(folder))
    assert "openai:gpt\\-x: 2026-03-01 to 2026-03-09" in section(text, "M2")
    assert "offline:rules: 2026-04-01\n" in section(text, "M2")
    assert "Asked from 2026-03-01 to 2026-03-09" in section(text, "Q3")


def test_a_journal_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    write_journal(folder, [call_on("2026-03-02", "openai:gpt-x")])
    path = folder / JOURNAL
    path.write_bytes(path.read_bytes().replace(b"2026-03-02", b"2026-03-03"))
    with pytest.raises(IntegrityError, match="line 1"):
        chart_checklist(gather(folder))


def test_a_model_other_than_the_one_requested_is_pointed_out(tmp_path: Path) -> None:
    one = result()
    served = one.target.model_copy(
        update={"served_models": ("gpt-4.1-2025-04-14",), "served_as_requested": False, "not_applied": ("temperature",)}
    )
    folder = write_run(tmp_path / "run", [one.model_copy(update={"target": served})], planned())
    text = chart_checklist(gather(folder))
    assert "gpt\\-4.1\\-2025\\-04\\-14 | **no** | temperature |" in section(text, "M1")
    assert "fake:careful: temperature" in section(text, "M3")


def test_partial_runs_and_runs_of_failures_alone(tmp_path: Path) -> None:
    failures = [one for one in one_of_each() if one.outcome != "scored"]
    for name, results in (("none", []), ("failures", failures), ("each", one_of_each())):
        text = chart_checklist(gather(write_run(tmp_path / name, results, planned())))
        assert f"Incomplete: this run has {len(results)} of 60 planned trials." in text
        assert "not sealed: the run is not complete" in section(text, "D5")
        for item in ITEMS:
            section(text, item.item_id)
    assert "| fake:careful | 30 | 2 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | 1 | 20 |" in section(text, "R1")
    without = section(chart_checklist(gather(tmp_path / "failures")), "R2")
    assert "| fake:careful | – | – | – | 0.00 (no interval), n=1 | 0.00 (no interval), n=1 | – | – | 1 |" in without
    assert "| openai:gpt\\-x | – | – | – | – | – | – | – | 0 |" in without


def registered(*deviations: str, **changes: str) -> Registration:
    fields = {"created": "2026-01-01", "primary_outcome": "accuracy of claims", "notes": "", **changes}
    return Registration(sha256=HASH, tests=("A vs B",), deviations=deviations, **fields)


def test_a_pre_registration_is_named_with_its_deviations(tmp_path: Path) -> None:
    found = gather(write_run(tmp_path / "run", [rich()], planned()))
    text = chart_checklist(found, registered("targets: openai:gpt-x was added"))
    assert HASH in section(text, "D4")
    assert "- **Deviations from the pre-registration: 1**\n  - targets: openai:gpt\\-x was added" in section(text, "D4")
    assert "explain each deviation" in section(text, "D4")
    assert "registered before the run: accuracy of claims" in section(text, "E2")
    assert "Test registered before the run: A vs B" in section(text, "A1")
    without = chart_checklist(found)
    assert "started without a pre-registration" in section(without, "D4")
    assert "registered before the run" not in section(without, "E2") + section(without, "A1")


def test_a_pre_registration_without_deviations_says_so(tmp_path: Path) -> None:
    found = gather(write_run(tmp_path / "run", [rich()], planned()))
    part = section(chart_checklist(found, registered(notes="See the registry.")), "D4")
    assert "\n- Notes: See the registry.\n- Deviations from the pre-registration: none\n" in part


def test_hostile_words_of_a_pre_registration_are_inert(tmp_path: Path) -> None:
    found = gather(write_run(tmp_path / "run", [rich()], planned()))
    evil = registered("[x](javascript:y)", primary_outcome="<b>|\x1b[31m", notes="\n# head")
    part = section(chart_checklist(found, evil), "D4")
    assert len(part.splitlines()) == len(section(chart_checklist(found, registered("x", notes="y")), "D4").splitlines())
    assert "\x1b" not in part and "<b>" not in part and "](" not in part


def test_a_run_that_judges_old_transcripts_sends_the_author_to_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    old = Transcripts(
        folder="runs/old", run_id="20250101T000000Z", manifest_sha256=HASH, journal_sha256=HASH, stages=("target",)
    )
    made = manifest(planned()).model_copy(update={"transcripts": old})
    (folder / MANIFEST).write_bytes(encode_record(made) + b"\n")
    assert "20250101T000000Z" in section(chart_checklist(gather(folder)), "M2")


def test_hostile_names_are_inert(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>|`[x](y)`\x1b[31m"
    one = rich()
    target = one.target.model_copy(update={"served_models": (evil,), "not_applied": (evil,)})
    made = planned(scenarios=[scenario(title=evil, persona={"language": evil})])
    found = gather(write_run(tmp_path / "run", [one.model_copy(update={"target": target}), *hostile()[1:]], made))
    for text in checklists(CHECKLISTS, found).values():
        assert "<script>" not in text
        assert "\x1b" not in text
        assert "](y)" not in text


def test_the_same_run_gives_the_same_text(real: Path) -> None:
    assert chart_checklist(gather(real)) == chart_checklist(gather(real))


def test_samples_are_chained_as_a_run_chains_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    assert gather(folder).head == chain_value("0" * 64, encode_record(rich()))
