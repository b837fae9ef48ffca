"""Reports corrected by a judge check: only by one that measured the same judges end to end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.findings.code_error import JudgeBounds, corrected_share
from src.findings.estimates import estimate
from src.findings.judge_agreement import (
    RECORD,
    background_sha256,
    clusters,
    gold_replies,
    judging,
    read_check,
    require_same_judges,
)
from src.findings.read_run import gather
from src.records.judge_check import CodesMeasured, GivenCount, JudgeCheck, JudgeMeasured, ReplyCode, ReplyCounts
from src.reports.judge_section import study_judge_errors
from src.reports.series import runs_of
from src.schemas import VerifierInput
from src.stats.confusion import DRAWS, Labels, corrected_accuracy
from src.text.fence import unwrap
from src.trials.split_codes import SplitCode
from tests.cases import each_case
from tests.helpers import with_canary
from tests.loopback import Loopback, Received, Scripted
from tests.runs import END_TO_END, ONE, ROOT, SCENARIOS, call, make_run, newest, shared, shared_run
from tests.test_wire_runs import redirect, said, sensible

Document = dict[str, Any]


@pytest.fixture(scope="module")
def run() -> Path:
    """The study, and topics on which the rule-based judge decides some claims."""
    topics = ("cobra", "employer_large", "irmaa", "late_penalties", "veterans")
    paths = (SCENARIOS / "study", *(SCENARIOS / "topics" / f"{name}.json" for name in topics))
    return shared_run(*(word for path in paths for word in ("--scenario", path)), "--target", "fake:careful")


@pytest.fixture(scope="module")
def measured() -> JudgeCheck:
    """A real check of the judges of `run`, with the counts of better judges."""
    record = read_check(shared("judge-check", *END_TO_END).folder)
    rows = {
        "SUPPORTED": {"SUPPORTED": 9, "NOT_IN_KEY": 2, "missed": 1},
        "CONTRADICTED": {"CONTRADICTED": 5, "SUPPORTED": 1, "open": 1},
        "NOT_IN_KEY": {"NOT_IN_KEY": 8, "SUPPORTED": 1},
    }
    counts = tuple(
        GivenCount.model_validate({"gold": gold, "given": given, "claims": n})
        for gold, row in rows.items()
        for given, n in row.items()
    )
    replies = tuple(
        ReplyCounts(reply_id=f"r{n}", scenario_id="cobra", confusion=counts, spurious={"NOT_IN_KEY": 1, "open": 1})
        for n in range(12)
    )
    whole = JudgeMeasured(name="end to end", model=None, replies=replies, by_kind={}, same_evidence=0, errors=())
    return record.model_copy(update={"end_to_end": whole})


CODED = {
    ("accurate_complete", "accurate_complete"): 18,
    ("accurate_complete", "accurate_incomplete"): 2,
    ("incorrect", "incorrect"): 17,
    ("incorrect", "accurate_complete"): 1,
    ("not_substantive", "not_substantive"): 20,
}


def with_codes(record: JudgeCheck) -> JudgeCheck:
    """The check of judges who find most codes."""
    replies = tuple(
        ReplyCode.model_validate(
            {"reply_id": f"r{n}", "scenario_id": "cobra", "question_group": "Q1", "gold": gold, "given": given}
        )
        for (gold, given), number in CODED.items()
        for n in range(number)
    )
    return record.model_copy(update={"codes": CodesMeasured(replies=replies, left_out={})})


def written(record: JudgeCheck, folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / RECORD).write_bytes(storage.encode_record(record) + b"\n")
    return folder


@pytest.mark.slow
def test_a_report_is_corrected_by_a_check_of_its_judges(run: Path, measured: JudgeCheck, tmp_path: Path) -> None:
    check = written(measured, tmp_path / "check")
    texts = []
    for given in ((), ("--judge-check", check), ("--judge-check", check / RECORD)):
        code, _, err = call("report", run, *given, "--out", tmp_path / "report")
        assert code == 0, err
        texts.append((tmp_path / "report" / "report.md").read_text(encoding="utf-8"))
    plain, corrected, again = texts
    assert "Accuracy is not corrected for judge error" in plain
    assert "Accuracy is not corrected for judge error" not in corrected
    assert corrected == again
    assert f"Corrected with judge check {measured.check_id}" in corrected
    found = gather(run)
    (one,) = judging(found, measured).corrected.values()
    assert one == corrected_accuracy(
        clusters(found.rows),
        gold_replies(measured),
        Labels("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"),
        seed=20_250_401,
        draws=DRAWS,
    )
    assert one.raw is not None and one.value is not None and one.low is not None and one.high is not None
    shown = re.search(
        r"^\| fake:\S+ \| ([\d.]+) \| ([\d.]+) \(([\d.]+)–([\d.]+)\) \| [\d.]+% \(", corrected, re.MULTILINE
    )
    assert shown and [float(cell) for cell in shown.groups()] == pytest.approx(
        [one.raw, one.value, one.low, one.high], abs=0.006
    )


def test_open_claims_that_are_not_in_the_gold_set_do_not_count(measured: JudgeCheck) -> None:
    (reply, *_) = gold_replies(measured)
    assert reply.confusion["CONTRADICTED", "open"] == 1  # a contradiction that a run would not hold
    assert reply.spurious == {"NOT_IN_KEY": 1}


def test_a_report_says_why_accuracy_cannot_be_corrected(run: Path, measured: JudgeCheck, tmp_path: Path) -> None:
    whole = measured.end_to_end
    assert whole is not None
    few = measured.model_copy(update={"end_to_end": whole.model_copy(update={"replies": whole.replies[:2]})})
    code, _, err = call("report", run, "--judge-check", written(few, tmp_path / "check"), "--out", tmp_path / "report")
    assert code == 0, err
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "accuracy cannot be corrected, because the gold set has 14 CONTRADICTED claims, and 20 of each label" in text


def other_prompt(document: Document) -> None:
    document["prompts"]["verifier"] = "0" * 64


def other_rubric(document: Document) -> None:
    document["rubrics"] = dict.fromkeys(document["rubrics"], "0" * 64)


def other_settings(document: Document) -> None:
    document["parameters"]["offline:rules"]["temperature"] = 0.7


def other_version(document: Document) -> None:
    document["api_ids"]["offline:rules"] = "rules-0"


@each_case(
    ("change", "said"),
    [
        (lambda d: d.update(end_to_end=None), "it measured verifiers on gold claims alone"),
        (lambda d: d.update(verifiers=["offline:rules"] * 3), "it measured verifiers offline:rules and offline:rules and offline:rules, but"),
        (lambda d: d.update(extractor="openai:gpt-x"), "it measured extractor openai:gpt-x, but the run had offline:rules"),
        (lambda d: d.update(scorer="openai:gpt-x"), "it measured scorer openai:gpt-x, but"),
        (lambda d: d.update(adjudicator="openai:gpt-x"), "it measured adjudicator openai:gpt-x, but the run had none"),
        (lambda d: d.update(isolation="claim"), "it measured isolation claim, but the run had flagged"),
        (other_prompt, "the verifier had another prompt"),
        (other_rubric, "has changed"),
        (other_settings, "offline:rules had other settings"),
        (other_version, "offline:rules was rules-0 in the check"),
        (lambda d: d.update(background_sha256="0" * 64), "its verifiers had other background facts than those of the run"),
    ],
)  # fmt: skip
def test_a_check_of_anything_else_is_refused(
    change: Callable[[Document], None], said: str, run: Path, measured: JudgeCheck, tmp_path: Path
) -> None:
    document = json.loads(storage.encode_record(measured))
    change(document)
    check = written(JudgeCheck.model_validate_json(json.dumps(document)), tmp_path / "check")
    code, _, err = call("report", run, "--judge-check", check, "--out", tmp_path / "report")
    assert code == 2
    assert f"Judge check {measured.check_id} cannot correct this run: " in err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_a_check_that_is_not_there_is_refused(run: Path, tmp_path: Path) -> None:
    code, _, err = call("report", run, "--judge-check", tmp_path / "nowhere", "--out", tmp_path / "report")
    assert code == 2
    assert len(err.strip().splitlines()) == 1


def test_labels_are_counted_by_scenario(run: Path) -> None:
    (row,) = gather(run).rows[:1]
    rows = [row._replace(scenario_id=f"s{n % 4}", trial_id=f"t{n}") for n in range(16)]
    assert len(clusters(rows)) == 4
    assert sum(sum(one.values()) for one in clusters(rows)) == 16 * sum(row.labels)


def test_only_scored_trials_count(run: Path) -> None:
    (row,) = gather(run).rows[:1]
    scored = row._replace(labels=(3, 1, 0), outcome="scored")
    failed = row._replace(trial_id="failed", labels=(0, 5, 0), outcome="judge_failure")
    assert clusters([scored, failed]) == [{"SUPPORTED": 3, "CONTRADICTED": 1, "NOT_IN_KEY": 0}]
    assert clusters([failed]) == []


def test_a_check_notes_the_background_facts_apart_from_figures_and_states(run: Path, measured: JudgeCheck) -> None:
    facts = storage.read_manifest(run).plan.background
    assert measured.background_sha256 == background_sha256(facts)
    everywhere = [fact for fact in facts if not fact.states]
    assert len(everywhere) < len(facts)
    assert background_sha256(everywhere) == background_sha256(facts)
    (first, *rest) = everywhere

    def said(statement: str) -> str:
        return background_sha256([first.model_copy(update={"statement": statement}), *rest])

    assert said("It costs $185 a month.") == said("It costs $202 a month.") != said("It costs $202 a year.")
    assert background_sha256(rest) != background_sha256(everywhere)


def test_a_record_that_did_not_note_its_background_facts_is_not_compared_by_them(
    run: Path, measured: JudgeCheck
) -> None:
    document = json.loads(storage.encode_record(measured))
    del document["background_sha256"]
    record = JudgeCheck.model_validate_json(json.dumps(document))
    assert record.background_sha256 is None
    require_same_judges(record, storage.read_manifest(run).plan)


# --- study codes ---


def reported(run: Path, out: Path, *given: object) -> str:
    code, _, err = call("report", run, *given, "--out", out)
    assert code == 0, err
    return (out / "report.md").read_text(encoding="utf-8")


def code_rows(text: str) -> dict[str, list[str]]:
    """The rows of the table of judge error: what answers are, to the other cells."""
    lines = text.split("Study codes and judge error.")[1].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith(("| fake", "| openai"))
    ]
    return {row[1]: row[2:] for row in rows[:2]}


@pytest.mark.slow
def test_study_codes_are_corrected_by_a_check_that_measured_them(
    run: Path, measured: JudgeCheck, tmp_path: Path
) -> None:
    record = with_codes(measured)
    assert record.codes is not None
    rows = code_rows(reported(run, tmp_path / "report", "--judge-check", written(record, tmp_path / "check")))
    assert list(rows) == ["accurate, complete", "incorrect"]
    found = gather(run).rows
    for name, code in (("accurate, complete", "accurate_complete"), ("incorrect", "incorrect")):
        one = corrected_share(estimate(found, code), record.codes, code)  # type: ignore[arg-type]
        assert one.value is not None and one.low is not None and one.high is not None
        shown = [float(number) for number in re.findall(r"[\d.]+", rows[name][1])]
        assert shown == pytest.approx([100 * one.value, 100 * one.low, 100 * one.high], abs=0.6)


def test_without_a_check_a_run_of_one_judge_says_that_nothing_is_known(run: Path, tmp_path: Path) -> None:
    text = reported(run, tmp_path / "report")
    assert [cells[1:] for cells in code_rows(text).values()] == [["–", "–", "–"]] * 2
    assert "Where all verifiers are one model, nothing in the run tells how wrong they are." in text


def test_a_check_that_did_not_measure_codes_says_so(run: Path, measured: JudgeCheck, tmp_path: Path) -> None:
    old = measured.model_copy(update={"codes": None})
    text = reported(run, tmp_path / "report", "--judge-check", written(old, tmp_path / "check"))
    assert "cannot be corrected, because this check did not measure codes; run judge-check again." in text
    assert f"Corrected with judge check {measured.check_id}" in text  # accuracy still is


def test_judges_that_find_no_code_correct_nothing(run: Path, measured: JudgeCheck, tmp_path: Path) -> None:
    """The rule-based judge on the dev part."""
    text = reported(run, tmp_path / "report", "--judge-check", written(measured, tmp_path / "check"))
    assert "incorrect cannot be corrected, because the judges do not tell “incorrect” from other answers" in text


# --- a check of what judges a run by default ---


def small_gold(folder: Path) -> Path:
    document = json.loads((ROOT / "gold" / "dev" / "cobra.json").read_bytes())
    document["replies"] = document["replies"][:1]
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


JUDGES = ("--judge-model", "anthropic:claude-sonnet-4-6", "--judge-model", "google:gemini-3.8-flash")
TARGET = ("--target", "openai:gpt-4.1")


@pytest.mark.slow
@each_case(
    ("keys", "of_run", "of_check", "adjudicator"),
    [
        pytest.param(3, JUDGES, JUDGES, None, id="named judges, no key of a fourth family"),
        pytest.param(4, JUDGES, (*TARGET, *JUDGES), "xai:grok-4.6", id="named judges and the target"),
        pytest.param(3, (), TARGET, None, id="the target alone"),
        pytest.param(4, (), TARGET, "xai:grok-4.6", id="the target alone, and a fourth family"),
    ],
)
def test_a_plain_check_fits_a_plain_run(
    keys: int,
    of_run: tuple[str, ...],
    of_check: tuple[str, ...],
    adjudicator: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        if keys == 3:
            monkeypatch.delenv("XAI_API_KEY")
        run = make_run(tmp_path / "runs", "--scenario", ONE, *TARGET, *of_run)
        gold = ("--split", "dev", "--gold", small_gold(tmp_path / "gold"))
        code, _, err = call("judge-check", *gold, *of_check, "--out", tmp_path / "checks", "--quiet")
        assert code == 0, err
    check = newest(tmp_path / "checks")
    assert read_check(check).adjudicator == adjudicator
    require_same_judges(read_check(check), storage.read_manifest(run).plan)
    reported(run, tmp_path / "report", "--judge-check", check)


def test_a_refused_check_names_the_options_that_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = ("--split", "dev", "--gold", small_gold(tmp_path / "gold"))
    with Loopback(sensible) as server:
        redirect(monkeypatch, server)
        run = make_run(tmp_path / "runs", "--scenario", ONE, *TARGET, *JUDGES)
        code, _, err = call("judge-check", *gold, "--out", tmp_path / "other", "--quiet")
        assert code == 0, err
        code, _, err = call("report", run, "--judge-check", newest(tmp_path / "other"), "--out", tmp_path / "report")
        assert (code, err.count("\n")) == (2, 1)
        options = err.strip().split("medicare-eval judge-check ")[1].split()
        assert options == [
            "--judges", "2", *JUDGES, "--adjudicator-model", "xai:grok-4.6", "--isolation", "flagged",
        ]  # fmt: skip
        code, _, err = call("judge-check", *gold, *options, "--out", tmp_path / "checks", "--quiet")
        assert code == 0, err
    reported(run, tmp_path / "report", "--judge-check", newest(tmp_path / "checks"))


def finds_nothing(request: Received) -> Scripted:
    """Judges by rule, except that one verifier finds nothing in the key."""
    system, user = said(request)
    if request.model != "grok-x" or not system.startswith("You check claims"):
        return sensible(request)
    claims = VerifierInput.model_validate_json(unwrap(user)[1]).claims
    nothing = {"label": "NOT_IN_KEY", "evidence": [], "severity": "none", "notes": "Not there."}
    verdicts = [{"claim_id": claim.claim_id, **nothing} for claim in claims]
    return Scripted(text=with_canary(json.dumps({"verdicts": verdicts}), user))


def test_without_a_check_split_verdicts_show_how_far_a_share_could_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One verifier finds every point, the other none, and a third model agrees with the other."""
    with Loopback(finds_nothing) as server:
        redirect(monkeypatch, server)
        run = make_run(
            tmp_path / "runs", "--scenario", ONE, "--target", "fake:careful", "--judge-model", "compatible:llama-3",
            "--judge-model", "xai:grok-x", "--adjudicator-model", "anthropic:claude-x",
        )  # fmt: skip
    (row,) = gather(run).rows
    assert {one.value for one in row.counted} == {"not_substantive"}
    (errors,) = [one.judge_errors for one in runs_of([gather(run)], [None]).series]
    assert errors["accurate_complete"].bounds == JudgeBounds(0.0, 1.0, len(row.counted))
    assert errors["incorrect"].bounds == JudgeBounds(0.0, 0.0, 0)
    rows = code_rows(reported(run, tmp_path / "report"))
    assert rows["accurate, complete"] == ["0% (no interval)", "–", "0–100%", str(len(row.counted))]
    assert rows["incorrect"] == ["0% (no interval)", "–", "0%", "0"]


def test_split_verdicts_on_other_questions_do_not_count_for_a_group_of_the_study(run: Path) -> None:
    found = gather(run)
    plan = found.manifest.plan.model_copy(update={"verifiers": ("openai:a", "xai:b")})
    found.manifest = found.manifest.model_copy(update={"plan": plan})
    split = (SplitCode("g1", ("accurate_incomplete", "accurate_complete")),)
    found.rows = [row._replace(split_codes=split) for row in found.rows if row.scenario_id == "medicare_only"]
    assert found.rows
    (series,) = runs_of([found], [None]).series
    for number, asked in ((1, len(found.rows)), (9, 0)):
        error = study_judge_errors(series, [number])["accurate_complete"]
        assert error.bounds is not None and error.bounds.questions == asked
        assert (error.bounds.lowest == error.bounds.highest) == (asked == 0)
