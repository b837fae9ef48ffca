"""The reporting checklist: every item is there, the run's own facts are filled in, the rest is the author's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from src.errors import IntegrityError
from src.findings.analysis.read_run import gather
from src.findings.report.checklist import chart_checklist, fill, load_checklist
from src.findings.report.checklist_facts import AUTHOR, Value, facts_of, registration_lines
from src.schemas import Registration, Transcripts
from src.storage import (
    JOURNAL,
    MANIFEST,
    RESULTS,
    SEAL,
    encode_record,
    file_sha256,
)
from src.store.hash_chain import chain_value

from ..helpers import HASH, manifest, result, scenario
from ..runs import ONE, make_run
from .made_runs import call_on, hostile, manifest_of, one_of_each, planned, rich, write_journal, write_run

ITEMS = load_checklist().items


def section(text: str, item_id: str) -> str:
    found = re.search(rf"^### {item_id} .*?(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, item_id
    return found[0]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(
        tmp_path_factory.mktemp("runs"), "--scenario", ONE, "--target", "fake:partial", "--target", "fake:wrong",
        "--repeats", "2", "--judge-repeats", "1", "--judge-sample", "1",
    )  # fmt: skip


def test_items_have_ids_of_their_own_and_cover_all_twelve_topics() -> None:
    ids = [item.item_id for item in ITEMS]
    assert len(set(ids)) == len(ids)
    assert sorted({item.chart_item for item in ITEMS}) == list(range(1, 13))
    assert [item.chart_item for item in ITEMS] == sorted(item.chart_item for item in ITEMS)
    assert all(item.topic and item.report.endswith(".") for item in ITEMS)
    topics = load_checklist().chart_items
    assert sorted(topics) == list(range(1, 13))
    assert all(topics.values())


def test_every_item_is_in_the_text_and_none_is_empty(real: Path) -> None:
    text = chart_checklist(gather(real))
    for item in ITEMS:
        part = section(text, item.item_id)
        assert item.report in part
        body = part.split(item.report, 1)[1].strip("* \n")
        assert body, item.item_id
        assert (AUTHOR in part) == bool(item.ask), item.item_id
    assert "not the numbers or words of the statement's sub-items" in text
    assert "\n\n\n" not in text


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
    assert all(digest in section(text, "E1") for digest in made.plan.references.values())
    assert made.plan.rubrics["v1"].sha256 in section(text, "E2")
    assert "2 verifiers: offline:rules, offline:rules" in section(text, "E3")
    assert "Krippendorff's alpha: 1.00" in section(text, "E3")
    assert "judge_1 (offline:rules), asked again, changed its label: 0/" in section(text, "E3")
    assert "1 conversation × 2 models × 2 repeats = 4 trials; this run's results have 4" in section(text, "S1")
    assert "| fake:wrong | 2 | 2 | 0 |" in section(text, "R1")
    assert section(text, "R2").count("n=2") >= 4
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
        update={"served_models": ("other-1",), "served_as_requested": False, "not_applied": ("temperature",)}
    )
    folder = write_run(tmp_path / "run", [one.model_copy(update={"target": served})], planned())
    text = chart_checklist(gather(folder))
    assert "other\\-1 | **no** | temperature |" in section(text, "M1")
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
    assert "| fake:careful | – | – | – | – | – |" in section(chart_checklist(gather(tmp_path / "failures")), "R2")


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


def test_a_pre_registration_without_deviations_says_so() -> None:
    assert registration_lines(registered(notes="See the registry."))[-2:] == [
        "- Notes: See the registry.", "- Deviations from the pre-registration: none",
    ]  # fmt: skip


def test_hostile_words_of_a_pre_registration_are_inert() -> None:
    lines = registration_lines(registered("[x](javascript:y)", primary_outcome="<b>|\x1b[31m", notes="\n# head"))
    assert all("\n" not in line and "\x1b" not in line and "<b>" not in line and "](" not in line for line in lines)


def test_every_placeholder_of_the_texts_has_a_value_and_every_value_is_used(real: Path) -> None:
    texts = load_checklist()
    lines = [texts.filled_in, *(line for item in texts.items for line in item.known)]
    used = {name for line in lines for name in re.findall(r"\{(\w+)\}", line)}
    assert used | {"run_id"} == set(facts_of(gather(real), None))


def test_lines_are_left_out_or_repeated_by_their_values() -> None:
    facts: dict[str, Value] = {"none": None, "some": ["a", "{none}"], "empty": [], "kept": "", "one": "1"}
    lines = ["x {none}", "{one} {some}", "{empty}", "kept{kept}", "plain", "{some} {none}"]
    assert list(fill(lines, facts)) == ["1 a", "1 {none}", "kept", "plain"]


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
    text = chart_checklist(
        gather(write_run(tmp_path / "run", [one.model_copy(update={"target": target}), *hostile()[1:]], made))
    )
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "](y)" not in text


def test_the_same_run_gives_the_same_text(real: Path) -> None:
    assert chart_checklist(gather(real)) == chart_checklist(gather(real))


def test_samples_are_chained_as_a_run_chains_them(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    assert gather(folder).head == chain_value("0" * 64, encode_record(rich()))
