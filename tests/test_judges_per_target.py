"""Every target has judges of other families than its own, of two families where there are keys for them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from src import storage
from src.errors import ConfigError
from src.exports.tables import Exported, trial_rows
from src.findings.judge_agreement import judging, read_check
from src.findings.read_run import gather
from src.planning.plan import make_plan
from src.planning.study_file import as_document, completed, make_study
from src.reading import Run
from src.records.model_name import family
from src.reporting import notices, summarize
from src.reports.markdown import markdown
from src.reports.sections import contents
from src.schemas import RunPlan
from tests.findings.report_run import write_run
from tests.helpers import ROOT, manifest, plan, result
from tests.loopback import Loopback
from tests.runs import call, make_run, newest, replays, verifies
from tests.test_corrected_reports import small_gold
from tests.test_planning import JUDGES, KEYS, SHIPPED
from tests.test_wire_runs import redirect, sensible

TARGETS = {
    "anthropic": "anthropic:claude-3-opus",
    "openai": "openai:gpt-4.1",
    "google": "google:gemini-1.5-pro",
    "xai": "xai:grok-2",
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in (*KEYS.values(), "COMPATIBLE_API_KEY", "COMPATIBLE_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


def planned(monkeypatch: pytest.MonkeyPatch, targets: str, with_keys: str = "", **fields: Any) -> RunPlan:
    for name in (with_keys or " ".join(KEYS)).split():
        monkeypatch.setenv(KEYS[name], f"sentinel-{name}")
    named = [TARGETS[name] for name in targets.split()]
    study = make_study({"scenarios": [SHIPPED], "targets": named, "allow_retired": True, **fields})
    made = make_plan(study)
    whole = make_study(as_document(completed(study, made)))
    assert make_plan(whole) == made, "the study that a dry run prints makes the same plan"
    return made


def seated(plan: RunPlan, target: str) -> tuple[str, ...]:
    judges = plan.judges_of(TARGETS[target])
    return tuple(family(name) for name in (*judges.verifiers, *filter(None, [judges.adjudicator])))


def test_with_targets_of_three_providers_and_four_keys_each_has_two_families_and_a_third_for_ties(
    keys: pytest.MonkeyPatch,
) -> None:
    made = planned(keys, "openai anthropic google")
    assert {name: seated(made, name) for name in ("openai", "anthropic", "google")} == {
        "openai": ("xai", "anthropic", "google"),
        "anthropic": ("xai", "openai", "google"),
        "google": ("xai", "anthropic", "openai"),
    }
    for target in made.targets:
        assert made.judges_of(target).extractor == made.judges_of(target).scorer == JUDGES["xai"]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_nobody_is_judged_by_its_own_family_and_all_by_as_many_families_as_there_are_keys_for(
    count: int, keys: pytest.MonkeyPatch
) -> None:
    for targets in combinations(TARGETS, count):
        with keys.context() as context:
            for number in range(2, 5):
                for available in combinations(KEYS, number):
                    for name in KEYS.values():
                        context.delenv(name, raising=False)
                    if any(not set(available) - {target} for target in targets):
                        continue
                    made = planned(context, " ".join(targets), " ".join(dict.fromkeys((*available, *targets))))
                    for target in targets:
                        judges = made.judges_of(TARGETS[target])
                        others = [one for one in dict.fromkeys((*available, *targets)) if one != target]
                        roles = (*judges.verifiers, judges.extractor, judges.scorer, judges.adjudicator or "none:none")
                        assert target not in {family(name) for name in roles}
                        assert len(set(judges.verifiers)) == min(2, len(others))
                        assert (judges.adjudicator is not None) == (len(others) > 2)
                        assert judges.extractor == judges.scorer == judges.verifiers[0]


def test_one_pair_judges_all_targets_where_it_may(keys: pytest.MonkeyPatch) -> None:
    made = planned(keys, "openai anthropic")
    assert seated(made, "openai")[:2] == seated(made, "anthropic")[:2] == ("google", "xai")
    assert (seated(made, "openai")[2], seated(made, "anthropic")[2]) == ("anthropic", "openai")


def test_a_plan_whose_targets_share_their_judges_says_nothing_of_single_targets(keys: pytest.MonkeyPatch) -> None:
    made = planned(keys, "openai", "openai anthropic google xai")
    assert "judges_by_target" not in made.model_dump(mode="json")
    assert made.for_target(TARGETS["openai"]) is made


def test_two_targets_with_two_keys_judge_each_other_twice(keys: pytest.MonkeyPatch) -> None:
    made = planned(keys, "openai anthropic", "openai anthropic")
    assert seated(made, "openai") == ("anthropic", "anthropic")
    assert seated(made, "anthropic") == ("openai", "openai")


def test_of_more_judges_than_are_needed_a_target_gets_the_first_that_are_not_its_own_family(
    keys: pytest.MonkeyPatch,
) -> None:
    named = [JUDGES[name] for name in ("google", "openai", "xai")]
    made = planned(keys, "openai google", judges=named)
    assert seated(made, "openai") == ("google", "xai", "anthropic")
    assert seated(made, "google") == ("openai", "xai", "anthropic")
    assert [made.judges_of(TARGETS[name]).extractor for name in ("openai", "google")] == [named[0], named[1]]


def test_judges_that_are_all_needed_are_refused_where_one_is_of_a_targets_family(keys: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"cannot judge openai:gpt-4\.1 because both are from the openai"):
        planned(keys, "openai google", judges=[JUDGES["openai"], JUDGES["xai"]])
    with pytest.raises(ConfigError, match=r"cannot judge openai:gpt-4\.1 because both are from the openai"):
        planned(keys, "openai", judges=["openai:gpt-4o", "openai:gpt-5.5-2026-04-23", "openai:gpt-4.1-mini"])


def test_a_reader_or_adjudicator_that_is_named_is_of_no_targets_family(keys: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="cannot judge"):
        planned(keys, "openai anthropic google", reader=JUDGES["openai"])
    with pytest.raises(ConfigError, match="cannot judge"):
        planned(keys, "openai anthropic google", adjudicator=JUDGES["google"])


# --- a whole run, over the wire ---

SCRIPT = ROOT / "scenarios" / "v1" / "scenario_001.json"
THREE = tuple(word for name in ("openai", "anthropic", "google") for word in ("--target", TARGETS[name]))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A run of three targets by default judges, and a judge check of the judges of one of them."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as monkeypatch, Loopback(sensible) as server:
        redirect(monkeypatch, server)
        options = ("--allow-retired", "--judge-repeats", 1, "--judge-sample", 1)
        run = make_run(folder / "runs", "--scenario", SCRIPT, *THREE, *options)
        gold = ("--split", "dev", "--gold", small_gold(folder / "gold"))
        code, _, err = call(
            "judge-check", *gold, "--target", TARGETS["openai"], "--judge-model", JUDGES["xai"],
            "--judge-model", JUDGES["anthropic"], "--adjudicator-model", JUDGES["google"],
            "--out", folder / "checks", "--quiet",
        )  # fmt: skip
        assert code == 0, err
    yield run, newest(folder / "checks")


def test_every_call_about_a_reply_goes_to_the_judges_of_its_target(study: tuple[Path, Path]) -> None:
    run, _ = study
    plan = storage.read_manifest(run).plan
    for trial in Run(run).trials():
        judges = plan.judges_of(trial.target.name)
        assert tuple(trial.judged_by.verifiers.values()) == judges.verifiers
        assert {one.model for one in trial.judge_services} <= set(judges.models)
        assert trial.target.family not in {family(one.model) for one in trial.judge_services}
    replays(run)
    verifies(run)


def test_labels_of_different_judges_are_never_counted_together(study: tuple[Path, Path]) -> None:
    run, _ = study
    found = judging(gather(run))
    assert [(one.verifiers, one.targets) for one in found.agreements] == [
        ((JUDGES["xai"], JUDGES["anthropic"]), (TARGETS["openai"], TARGETS["google"])),
        ((JUDGES["xai"], JUDGES["openai"]), (TARGETS["anthropic"],)),
    ]
    claims = dict.fromkeys(TARGETS.values(), 0)
    for trial in Run(run).trials():
        claims[trial.target.name] += len(trial.final_claims)
    for one in found.agreements:
        assert one.claims == sum(claims[target] for target in one.targets) > 0
        assert {noise.model for noise in one.noise} == set(one.verifiers)


def test_the_report_names_the_judges_of_each_target(study: tuple[Path, Path], tmp_path: Path) -> None:
    run, _ = study
    code, _, err = call("report", run, "--out", tmp_path)
    assert code == 0, err
    text = (tmp_path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert "The targets have different judges, so that none is judged by its own model family." in text
    first, second = f"{TARGETS['openai']}, {TARGETS['google']}", TARGETS["anthropic"]
    pairs = [f"{JUDGES['xai']}, {JUDGES[name]}" for name in ("anthropic", "openai")]
    assert f"| verifiers | {pairs[0]} ({first}); {pairs[1]} ({second}) |" in text
    assert f"| {first} | judge_2 | {JUDGES['anthropic']} |" in text
    assert f"| {second} | judge_2 | {JUDGES['openai']} |" in text


def test_exported_verdicts_name_the_model_that_gave_them(study: tuple[Path, Path]) -> None:
    run, _ = study
    manifest = storage.read_manifest(run)
    about = Exported.of(manifest)
    for trial in Run(run).trials():
        rows = [row for table, row in trial_rows(trial, about) if table.name == "verdict"]
        models = {row["judge_model"] for row in rows}
        assert models == set(manifest.plan.judges_of(trial.target.name).verifiers)


def test_a_judge_check_corrects_the_targets_whose_judges_it_measured(study: tuple[Path, Path]) -> None:
    run, check = study
    found = judging(gather(run), read_check(check))
    assert found.checked == (TARGETS["openai"],)
    other = found.corrected[TARGETS["anthropic"]].why_not or ""
    assert "it measured verifiers" in other and JUDGES["openai"] in other
    assert "is of others" not in (found.corrected[TARGETS["openai"]].why_not or "")


def test_a_check_for_targets_with_different_judges_is_refused(keys: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, variable in KEYS.items():
        keys.setenv(variable, f"sentinel-{name}")
    code, _, err = call("judge-check", *THREE, "--out", tmp_path, "--quiet")
    assert code == 2
    assert "these have different judges, and a check measures those of one target" in err


def test_a_series_with_labeled_replies_has_one_set_of_judges(keys: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, variable in KEYS.items():
        keys.setenv(variable, f"sentinel-{name}")
    words = ("series", "init", tmp_path / "monthly", "--scenario", SCRIPT, *THREE, "--allow-retired", "--points", 3)
    code, _, err = call(*words, "--anchors", 8)
    assert code == 2
    assert "the targets have different judges, and labeled replies are judged by one set of judges" in err
    code, _, err = call(*words, "--anchors", 0)
    assert code == 0, err


# --- what a dry run, a summary and a report say ---


def dry_run(monkeypatch: pytest.MonkeyPatch, with_keys: str, *words: object) -> str:
    for name in with_keys.split():
        monkeypatch.setenv(KEYS[name], f"sentinel-{name}")
    code, out, err = call("run", "--scenario", SCRIPT, *words, "--allow-retired", "--dry-run")
    assert code == 0, err
    return " ".join(line.removeprefix("#").strip() for line in out.splitlines())


def test_a_dry_run_shows_who_judges_whom(keys: pytest.MonkeyPatch) -> None:
    text = dry_run(keys, "anthropic openai google xai", *THREE)
    assert (
        f"{TARGETS['openai']} is judged by {JUDGES['xai']}, {JUDGES['anthropic']}; settles ties: {JUDGES['google']}"
        in text
    )
    assert f"{TARGETS['anthropic']} is judged by {JUDGES['xai']}, {JUDGES['openai']}; settles ties:" in text
    assert "Warning" not in text


def test_one_model_as_both_verifiers_is_warned_of(keys: pytest.MonkeyPatch) -> None:
    text = dry_run(keys, "openai xai", "--target", TARGETS["openai"])
    said = f"One model, {JUDGES['xai']}, is every verifier of {TARGETS['openai']}."
    assert f"Warning: {said} That a model agrees with itself is not agreement of two judges" in text


def test_the_summary_and_the_report_of_a_run_warn_of_it_too(tmp_path: Path) -> None:
    made = plan(targets=["openai:gpt-4.1"], verifiers=["xai:grok-2", "xai:grok-2"])
    write_run(tmp_path, [result(target="openai:gpt-4.1")], manifest(made))
    summary = summarize(tmp_path, manifest(made))
    (said,) = (text for text in notices(summary) if text.startswith("One model"))
    assert said.startswith("One model, xai:grok-2, is every verifier of openai:gpt-4.1.")
    text = markdown(contents([summary.found], [None])).replace("\\", "")
    assert said in text
