"""Study files: they say what flags say and more, survive being written out, and are refused with file and field."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import src as me
from src import storage
from src.cli.options import given, study_fields, study_schema
from src.cli.parser import build_parser
from src.planning.study_file import as_document, load_study
from src.records.preregistration import Preregistration
from tests.runs import ONE, ROOT, SCENARIOS, call, newest

GUIDE = ROOT / "docs" / "study_file.md"
FLAGS = {name: field.flag for name, field in study_fields().items() if "." not in name}
OLD_REGISTRATION = ROOT / "tests" / "formats" / "0.1" / "preregistration.json"
WITHOUT_FLAG = {
    "format": "of the file itself",
    "title": "for the reader of the file; decides nothing",
    "registration": "`freeze` has --primary-outcome, --test and --notes",
}
"""Fields of a study that no flag of `run` sets, and why."""
WITHOUT_FLAG_PER_MODEL = {"temperature", "max_tokens"}
"""Of a model: a flag names a model only. `--temperature` and `--max-tokens` are for all targets together."""

# For each field: what a file says, the flags that say the same, and flags that say something else.
SAME: dict[str, tuple[Any, list[str], list[str]]] = {
    "scenarios": (["a.json", "b.json"], ["--scenario", "a.json", "--scenario", "b.json"], ["--scenario", "c.json"]),
    "targets": (["fake:careful"], ["--target", "fake:careful"], ["--target", "fake:wrong"]),
    "judges": (["openai:a", "xai:b"], ["--judge-model", "openai:a", "--judge-model", "xai:b"], ["--judge-model", "c:d"]),
    "verifiers": (3, ["--judges", "3"], ["--judges", "4"]),
    "reader": ("openai:a", ["--reader-model", "openai:a"], ["--reader-model", "xai:b"]),
    "adjudicator": ("xai:b", ["--adjudicator-model", "xai:b"], ["--adjudicator-model", "openai:a"]),
    "judge_repeats": (2, ["--judge-repeats", "2"], ["--judge-repeats", "3"]),
    "judge_sample": (0.5, ["--judge-sample", "0.5"], ["--judge-sample", "1"]),
    "isolation": ("claim", ["--isolation", "claim"], ["--isolation", "reply"]),
    "judge_max_tokens": (900, ["--judge-max-tokens", "900"], ["--judge-max-tokens", "901"]),
    "allow_retired": (True, ["--allow-retired"], []),
    "repeats": (5, ["--repeats", "5"], ["--repeats", "6"]),
    "seed": (7, ["--seed", "7"], ["--seed", "8"]),
    "temperature": (0.7, ["--temperature", "0.7"], ["--temperature", "0"]),
    "max_tokens": (100, ["--max-tokens", "100"], ["--max-tokens", "200"]),
    "plan_year": (2025, ["--plan-year", "2025"], ["--plan-year", "2026"]),
    "allow_expired": (True, ["--allow-expired"], []),
    "strict": (True, ["--strict"], []),
    "variants": (["hmo"], ["--variant", "hmo"], ["--variant", "ppo", "--variant", "hmo"]),
    "paraphrase": (True, ["--paraphrase"], []),
    "questioner": ("offline:rephrase", ["--questioner-model", "offline:rephrase"], ["--questioner-model", "xai:b"]),
    "wording": ("w.json", ["--wording", "w.json"], ["--wording", "x.json"]),
    "facts": ("f.json", ["--facts", "f.json"], ["--facts", "x.json"]),
    "invented_plans": ("p.json", ["--invented-plans", "p.json"], ["--invented-plans", "x.json"]),
    "sources": ("s", ["--sources", "s"], ["--sources", "x"]),
    "max_attempts": (2, ["--max-attempts", "2"], ["--max-attempts", "3"]),
    "timeout": (30.0, ["--timeout", "30"], ["--timeout", "31"]),
    "out": ("elsewhere", ["--out", "elsewhere"], ["--out", "nowhere"]),
    "calls_in_flight": ({"openai": 5, "*": 6}, ["--in-flight", "openai=5", "--in-flight", "6"], ["--in-flight", "7"]),
    "max_outage": (60.0, ["--max-outage", "60"], ["--max-outage", "61"]),
    "no_probe": (True, ["--no-probe"], []),
    "processes": (2, ["--processes", "2"], ["--processes", "3"]),
    "engine": ("ray", ["--engine", "ray"], ["--engine", "local"]),
    "ray_address": ("10.0.0.5:6379", ["--ray-address", "10.0.0.5:6379"], ["--ray-address", "10.0.0.6:6379"]),
    "batch": ("judges", ["--batch", "judges"], ["--batch", "none"]),
    "batch_wait": (30.0, ["--batch-wait", "30"], ["--batch-wait", "31"]),
    "concurrency": (2, ["--concurrency", "2"], ["--concurrency", "3"]),
    "max_cost": (1.5, ["--max-cost", "1.5"], ["--max-cost", "2"]),
    "prices": ("prices.json", ["--prices", "prices.json"], ["--prices", "x.json"]),
    "requests_per_minute": (
        {"openai": 5, "xai": 6},
        ["--rpm", "openai=5", "--rpm", "xai=6"],
        ["--rpm", "openai=7"],
    ),
    "tokens_per_minute": ({"openai": 5}, ["--tpm", "openai=5"], ["--tpm", "openai=6"]),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(path: str | Path = "study.toml", /, **fields: Any) -> Path:
    """A study file of one scenario and one target, with some fields added or replaced."""
    study = {"scenarios": [ONE], "targets": ["fake:careful"], **fields}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(tomli_w.dumps(study), encoding="utf-8")
    return Path(path)


def parsed(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(["run", *arguments])


def dry_run(*arguments: object) -> dict[str, Any]:
    code, out, err = call("run", *arguments, "--dry-run", "--json")
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


# Everything that flags can say


def table() -> list[str]:
    """The fields as the guide lists them, from their declaration."""
    flagged = study_fields()
    found = ["| field | flag | default | meaning |", "| --- | --- | --- | --- |"]
    for name in ("scenarios", "targets", *me.Study.model_fields):
        field = flagged.get(name)
        meaning = str(me.Study.model_fields[name].description)
        default = "required" if name in study_schema()["required"] else field.default if field else ""
        row = f"| `{name}` | {f'`{field.flag}`' if field else ''} | {default} | {meaning} |"
        if row not in found:
            found.append(row)
    return found


def test_the_guide_lists_every_field_as_it_is_declared() -> None:
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert rows == table(), "Write it again: python -m tests.test_study_file"


def test_every_field_has_a_flag_or_a_reason_to_have_none() -> None:
    assert FLAGS.keys() | WITHOUT_FLAG.keys() == me.Study.model_fields.keys()
    assert not FLAGS.keys() & WITHOUT_FLAG.keys()
    assert me.ModelSettings.model_fields.keys() == {"model"} | WITHOUT_FLAG_PER_MODEL
    assert SAME.keys() == FLAGS.keys()


@pytest.mark.parametrize("field", FLAGS)
def test_a_flag_says_what_the_file_says_and_overrides_it(field: str) -> None:
    value, same, other = SAME[field]
    base = ["--scenario", "a.json", "--target", "fake:careful"]
    by_flags = load_study(None, given(parsed(*base, *same)) | given(parsed(*same)))
    path = written(**{"scenarios": ["a.json"], field: value})
    by_file = load_study(path, {})
    assert by_file == by_flags
    assert FLAGS[field] == same[0]
    assert field in by_file.model_fields_set
    if not other:  # a switch can only be switched on
        without = load_study(written(**{"scenarios": ["a.json"], field: False}), given(parsed(*same)))
        assert getattr(without, field) is True
        return
    overridden = load_study(path, given(parsed(*other)))
    assert getattr(overridden, field) != getattr(by_file, field)
    assert overridden.model_dump(exclude={field}) == by_file.model_dump(exclude={field})


def test_flags_and_file_give_the_same_plan(tmp_path: Path) -> None:
    wording = tmp_path / "wording.json"
    wording.write_text('{"title": "Other words", "scenarios": {"scenario_001": {"Q1": "What?"}}}', encoding="utf-8")
    path = written(
        targets=["fake:careful", "fake:wrong"],
        repeats=3,
        seed=7,
        verifiers=3,
        judge_repeats=1,
        judge_sample=0.5,
        temperature=0.5,
        max_tokens=512,
        max_attempts=2,
        timeout=30.0,
        plan_year=2026,
        wording="wording.json",
    )
    flags = "--repeats 3 --seed 7 --judges 3 --judge-repeats 1 --judge-sample 0.5 --temperature 0.5 --max-tokens 512"
    flags += " --max-attempts 2 --timeout 30 --plan-year 2026 --wording wording.json --target fake:wrong"
    by_file = dry_run(path)
    by_flags = dry_run("--scenario", ONE, "--target", "fake:careful", *flags.split())
    assert by_file == by_flags
    assert by_file["trials"] == 6
    assert dry_run(path, "--seed", 8)["plan_sha256"] != by_file["plan_sha256"]
    assert dry_run(path, "--seed", 8, "--seed", 7) == by_file


# More than flags can say: parameters per model


def test_parameters_of_a_model_reach_the_wire_and_the_manifest() -> None:
    path = written(
        targets=[{"model": "fake:careful", "temperature": 0.7, "max_tokens": 100}, "fake:wrong"],
        judges=[{"model": "offline:rules", "temperature": 0.2, "max_tokens": 8_000}],
        max_tokens=512,
    )
    run = me.run(path)
    sent = {(call.model, call.max_tokens, call.sent["max_tokens"], call.sent["temperature"]) for call in run.calls()}
    assert sent == {
        ("fake:careful", 100, 100, 0.7),
        ("fake:wrong", 512, 512, 0.0),
        ("offline:rules", 8_000, 8_000, 0.2),
    }
    assert {name: own.model_dump() for name, own in run.plan.model_parameters.items()} == {
        "fake:careful": {"temperature": 0.7, "max_tokens": 100},
        "offline:rules": {"temperature": 0.2, "max_tokens": 8_000},
    }
    assert run.manifest.study is not None
    assert run.manifest.study["targets"] == [
        {"model": "fake:careful", "temperature": 0.7, "max_tokens": 100},
        {"model": "fake:wrong"},
    ]
    assert me.replay(run.path).trials == 2


def test_what_a_model_leaves_open_comes_from_the_study() -> None:
    path = written(
        targets=[{"model": "fake:careful", "temperature": 0.7}, {"model": "fake:wrong", "max_tokens": 100}],
        temperature=0.1,
        max_tokens=512,
    )
    plan = me.plan(path)
    assert plan.parameters_of("fake:careful").model_dump() == {"temperature": 0.7, "max_tokens": 512}
    assert plan.parameters_of("fake:wrong").model_dump() == {"temperature": 0.1, "max_tokens": 100}


# Written out in full


def test_the_output_of_a_dry_run_is_a_study_file_of_the_same_plan() -> None:
    path = written(
        title="A study",
        targets=[{"model": "fake:careful", "temperature": 0.7}, "fake:wrong"],
        judges=["offline:rules"],
        repeats=2,
        requests_per_minute={"openai": 500},
        registration={"primary_outcome": 'what "matters"\nmost', "tests": ["a test"]},
    )
    code, out, err = call("run", path, "--dry-run")
    assert (code, err) == (0, "")
    saved = Path("saved.toml")
    saved.write_text(out, encoding="utf-8")
    assert dry_run(saved) == dry_run(path)
    assert call("run", saved, "--dry-run")[1] == out
    unset = (
        "# not set: reader, concurrency, calls_in_flight, max_cost, tokens_per_minute, max_outage, processes, "
        "ray_address, batch, batch_wait, variants, questioner, wording, facts, invented_plans, sources, prices\n"
    )
    assert unset in out


def test_what_was_left_to_defaults_is_written_out() -> None:
    whole = dry_run(written())["study"]
    assert whole["judges"] == [{"model": "offline:rules", "temperature": 0.0, "max_tokens": 16_000}]
    assert (whole["plan_year"], whole["seed"], whole["isolation"]) == (2026, 42, "flagged")
    unset = me.Study.model_fields.keys() - whole.keys()
    assert whole["adjudicator"] == "none", "the rules never settle their own ties, whichever keys are set later"
    assert all(not getattr(me.study(written()), name) for name in unset)


def test_a_judge_that_only_settles_ties_keeps_its_parameters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "XAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sentinel")
    judges = ["anthropic:claude-a", "google:gemini-b", {"model": "xai:grok-c", "max_tokens": 5_000}]
    path = written(targets=["openai:gpt-4.1"], judges=judges)
    assert me.plan(path).adjudicator == "xai:grok-c"
    (tmp_path / "saved.toml").write_text(call("run", path, "--dry-run")[1], encoding="utf-8")
    assert dry_run("saved.toml") == dry_run(path)
    assert me.plan("saved.toml").parameters_of("xai:grok-c").max_tokens == 5_000


def test_a_flag_still_applies_to_a_study_that_was_written_out(tmp_path: Path) -> None:
    (tmp_path / "saved.toml").write_text(call("run", written(), "--dry-run")[1], encoding="utf-8")
    plan = me.plan("saved.toml", temperature=0.7, max_tokens=100)
    assert plan.parameters_of("fake:careful").model_dump() == {"temperature": 0.7, "max_tokens": 100}


def test_the_manifest_holds_the_study_in_full() -> None:
    code, _, err = call("run", written(title="A study"), "--repeats", 2, "--quiet", "--out", "runs")
    assert code == 0, err
    manifest = storage.read_manifest(newest(Path("runs")))
    assert manifest.study == dry_run("study.toml", "--repeats", 2, "--out", "runs")["study"]
    assert manifest.study is not None
    assert (manifest.study["title"], manifest.study["repeats"]) == ("A study", 2)
    again = load_study(None, manifest.study)
    assert me.plan(again) == manifest.plan
    assert as_document(again) == manifest.study


# Paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a study and every file it names, by paths relative to it."""
    folder = tmp_path / "project"
    (folder / "questions").mkdir(parents=True)
    shutil.copy(ONE, folder / "questions")
    shutil.copy(ROOT / "facts" / "2026.json", folder / "figures.json")
    shutil.copy(ROOT / "plans" / "invented.json", folder / "plans.json")
    (folder / "prices.json").write_text('{"as_of": "2026-01-01", "prices": {}}', encoding="utf-8")
    wording = {"title": "Other words", "scenarios": {"scenario_001": {"Q1": "What is the difference?"}}}
    (folder / "words.json").write_text(json.dumps(wording), encoding="utf-8")
    named = {"wording": "words.json", "facts": "figures.json", "invented_plans": "plans.json", "out": "results"}
    words = {"primary_outcome": "accuracy", "tests": ["paired difference"]}
    written(folder / "study.toml", scenarios=["questions"], repeats=2, registration=words, **named)
    return folder


def registered_hash(study: Path, to: str) -> str:
    """The hash of the plan without the paths of its files."""
    me.freeze(study, to=to)
    return Preregistration.model_validate_json(Path(to).read_bytes()).plan_sha256


def test_paths_are_relative_to_the_file(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_above = registered_hash(Path("project/study.toml"), "above.json")
    monkeypatch.chdir(project)
    assert registered_hash(Path("study.toml"), "here.json") == from_above
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert registered_hash(Path("../project/study.toml"), "elsewhere.json") == from_above
    assert registered_hash(project / "study.toml", "absolute.json") == from_above
    run = me.run("../project/study.toml")
    assert run.path.parent == Path("../project/results")
    assert run.plan.wording is not None
    assert run.plan.wording.title == "Other words"


def test_a_dry_run_saved_beside_its_files_gives_the_same_plan_from_another_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    before = dry_run("study.toml")
    (project / "saved.toml").write_text(call("run", "study.toml", "--dry-run")[1], encoding="utf-8")
    assert dry_run("saved.toml") == before
    monkeypatch.chdir(tmp_path)
    assert registered_hash(Path("project/saved.toml"), "a.json") == registered_hash(
        Path("project/study.toml"), "b.json"
    )


def test_bundled_scenarios_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(
        "deep/study.toml", scenarios=["scenarios/v1/scenario_001.json"], registration={"primary_outcome": "x"}
    )
    hashes = {dry_run(path)["plan_sha256"]}
    (tmp_path / "deep" / "saved.toml").write_text(call("run", path, "--dry-run")[1], encoding="utf-8")
    hashes.add(dry_run("deep/saved.toml")["plan_sha256"])
    me.freeze(path, to="other/registered.json")
    monkeypatch.chdir(tmp_path / "deep")
    hashes.add(dry_run("study.toml")["plan_sha256"])
    hashes.add(dry_run("saved.toml")["plan_sha256"])
    assert len(hashes) == 1
    run = me.run(registered="../other/registered.json")
    assert run.manifest.registration is not None
    assert run.manifest.registration.deviations == ()
    assert run.manifest.plan_sha256 in hashes


# Pre-registration


def test_a_frozen_study_runs_from_another_folder_with_nothing_restated(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call("freeze", "project/study.toml", "--to", "registered/study.json")
    assert (code, err) == (0, "")
    assert f"registered{'/'}study.json: pre-registration of 2 trials, sha256 " in out
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, out, err = call("run", "--registered", "../registered/study.json", "--quiet")
    assert (code, err) == (0, "")
    kept = storage.read_manifest(newest(Path("runs"))).registration
    assert kept is not None
    assert kept.deviations == ()
    assert (kept.primary_outcome, kept.tests) == ("accuracy", ("paired difference",))
    assert kept.sha256 == storage.file_sha256(tmp_path / "registered" / "study.json")
    assert files(tmp_path / "elsewhere") >= {"runs"}
    assert not (project / "results").exists(), "where runs go is not part of a registration"


def test_the_words_of_a_registration_come_from_flags_or_the_file() -> None:
    path = written(registration={"primary_outcome": "of the file", "tests": ["one"], "notes": "kept"})
    code, _, err = call("freeze", path, "--primary-outcome", "of the flag", "--to", "a.json")
    assert code == 0, err
    frozen = Preregistration.model_validate_json(Path("a.json").read_bytes())
    assert (frozen.primary_outcome, frozen.tests, frozen.notes) == ("of the flag", ("one",), "kept")
    assert frozen.study is not None
    assert frozen.study["registration"]["primary_outcome"] == "of the flag"
    code, _, err = call("freeze", written(), "--primary-outcome", "x", "--test", "a", "--test", "b", "--to", "b.json")
    assert code == 0, err
    assert Preregistration.model_validate_json(Path("b.json").read_bytes()).tests == ("a", "b")
    code, out, err = call("freeze", written(), "--primary-outcome", " ", "--to", "c.json")
    assert (code, out) == (2, "")
    assert err == "medicare-eval: --primary-outcome: must not be empty.\n"
    code, out, err = call("freeze", written(), "--to", "c.json")
    assert (code, out) == (2, "")
    assert err == (
        "medicare-eval: study.toml: field registration.primary_outcome: a pre-registration needs a primary outcome.\n"
    )
    code, out, err = call("freeze", "--scenario", ONE, "--target", "fake:careful", "--to", "c.json")
    assert (code, out) == (2, "")
    assert err == "medicare-eval: --primary-outcome: a pre-registration needs a primary outcome.\n"
    code, out, err = call("freeze", written(registration={"tests": ["one"]}), "--test", "", "--to", "c.json")
    assert (code, out) == (2, "")
    assert err == "medicare-eval: --primary-outcome: required but missing; --test: must not be empty.\n"
    assert not Path("c.json").exists()


def test_a_run_that_differs_from_its_registration_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    me.freeze(written(registration={"primary_outcome": "x"}), to="registered.json")
    before = files(tmp_path)
    code, out, err = call("run", "--registered", "registered.json", "--repeats", 2, "--target", "fake:wrong")
    assert (code, out) == (2, "")
    assert (
        "This run differs from the pre-registration registered.json: repeats: 2, not 1; number of trials: 2, not 1; "
        "targets: fake:careful was removed; targets: fake:wrong was added. Run the registered study, or add "
        "--allow-deviations: every report will then list the differences."
    ) in err
    assert files(tmp_path) == before
    code, _, err = call("run", "--registered", "registered.json", "--repeats", 2, "--allow-deviations", "--quiet")
    assert code == 0, err
    kept = storage.read_manifest(newest(Path("runs"))).registration
    assert kept is not None
    assert kept.deviations == ("repeats: 2, not 1", "number of trials: 2, not 1")


def test_a_registration_of_0_1_needs_the_study_as_well(tmp_path: Path) -> None:
    code, out, err = call("run", "--registered", OLD_REGISTRATION)
    assert (code, out) == (2, "")
    assert err == (
        f"medicare-eval: {OLD_REGISTRATION} was written by release 0.1 and does not contain the study. "
        "Give the study as well: a study file, or --scenario, --target and so on.\n"
    )
    assert files(tmp_path) == set()
    targets = ("--target", "fake:careful", "--target", "fake:wrong", "--target", "fake:evasive")
    study = ("--scenario", ONE, "--scenario", SCENARIOS / "topics" / "irmaa.json", *targets)
    code, out, err = call("run", *study, "--registered", OLD_REGISTRATION)
    assert (code, out) == (2, "")
    assert f"This run differs from the pre-registration {OLD_REGISTRATION}: " in err
    assert files(tmp_path) == set()
    code, _, err = call("run", *study, "--registered", OLD_REGISTRATION, "--allow-deviations", "--quiet")
    assert code == 0, err
    kept = storage.read_manifest(newest(Path("runs"))).registration
    assert kept is not None
    assert kept.sha256 == storage.file_sha256(OLD_REGISTRATION)
    assert kept.primary_outcome == "share of accurate and complete answers"
    content = ("prompt ", "rubric ", "scenario ", "file ")  # what releases change
    assert any(one.startswith(content) for one in kept.deviations)
    rules = ["isolation: flagged, not reply", "adjudicator: none, not offline:rules"]  # how release 0.3 judges
    assert [one for one in kept.deviations if not one.startswith(content)] == rules
    old_way = (*study, "--isolation", "reply")
    code, _, err = call("run", *old_way, "--registered", OLD_REGISTRATION, "--allow-deviations", "--quiet")
    assert code == 0, err
    kept = storage.read_manifest(newest(Path("runs"))).registration
    assert kept is not None
    assert [one for one in kept.deviations if not one.startswith(content)] == rules[1:]


# Old names of flags


@pytest.mark.parametrize(
    ("old", "value", "says"),
    [
        ("--plan-file", "plans.json", "unrecognized arguments: --plan-file plans.json"),
        ("--plan", "registered.json", "unrecognized arguments: --plan registered.json"),
    ],
)
def test_flags_of_release_0_1_are_gone(old: str, value: str, says: str, project: Path, tmp_path: Path) -> None:
    shutil.copy(project / "plans.json", "plans.json")
    me.freeze(written(registration={"primary_outcome": "x"}), to="registered.json")
    before = files(tmp_path)
    code, out, err = call("run", "study.toml", old, value)
    assert (code, out) == (2, "")
    assert says in err
    assert files(tmp_path) == before
    assert f"{old} " not in call("run", "--help")[1]


# Errors


def refused(text: str | bytes, tmp_path: Path) -> str:
    """What is said of a bad study file: one sentence that begins with the file, exit code 2, nothing written."""
    path = tmp_path / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    for command in (("run", path), ("freeze", path, "--to", tmp_path / "new.json")):
        code, out, err = call(*command)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert err.startswith(f"medicare-eval: {path}")
    assert files(tmp_path) == {"study.toml"}
    return err.removeprefix(f"medicare-eval: {path}").strip()


BASE: Mapping[str, Any] = {"scenarios": [ONE], "targets": ["fake:careful"]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"colour": "red"}, "field colour: unknown field (remove it or check its spelling)."),
        ({"target": ["fake:careful"]}, "field target: unknown field (did you mean targets?)."),
        ({"targets": [{"modle": "fake:careful"}]}, "field targets[0].model: required but missing; field targets[0].modle: unknown field (did you mean model?)."),
        ({"judges": [{"model": "offline:rules", "top_p": 1}]}, "field judges[0].top_p: unknown field (remove it or check its spelling)."),
        ({"repeat": 3}, "field repeat: unknown field (did you mean repeats?)."),
        ({"judges": [{"model": "offline:rules", "max_token": 1}]}, "field judges[0].max_token: unknown field (did you mean max_tokens?)."),
        ({"registration": {"primary_outcome": "x", "test": []}}, "field registration.test: unknown field (did you mean tests?)."),
        ({"targets": [5]}, "field targets[0]: must be a table (got 5)."),
        ({"targets": "fake:careful"}, "field targets: must be a list, for example [\"fake:careful\"]."),
        ({"targets": [{"model": "fake:careful", "temperature": 3}]}, "field targets[0].temperature: a temperature is a number from 0 to 2, or none."),
        ({"repeats": "3"}, "field repeats: must be a whole number (got '3')."),
        ({"repeats": 1.5}, "field repeats: must be a whole number"),
        ({"repeats": True}, "field repeats: must be a whole number (got True)."),
        ({"seed": -1}, "field seed: must be at least 0 (got -1)."),
        ({"verifiers": 1}, "field verifiers: must be at least 2 (got 1)."),
        ({"temperature": float("nan")}, "field temperature: nan is not a finite number."),
        ({"max_cost": float("inf")}, "field max_cost: inf is not a finite number."),
        ({"max_cost": 0}, "field max_cost: must be above 0 (got 0)."),
        ({"paraphrase": "yes"}, "field paraphrase: must be true or false (got 'yes')."),
        ({"requests_per_minute": {"openai": -5}}, "field requests_per_minute.openai: must be at least 1 (got -5)."),
        ({"tokens_per_minute": 5}, "field tokens_per_minute: must be a table (got 5)."),
        ({"registration": {"tests": []}}, "field registration.primary_outcome: required but missing."),
        ({"format": 2}, "field format: 2 is not allowed; use 1."),
        ({"wording": 5}, "field wording: must be text (got 5)."),
        ({"title": ""}, "field title: must not be empty."),
        ({"scenarios": []}, "field scenarios: must not be empty."),
        ({"targets": []}, "field targets: must not be empty."),
    ],
)  # fmt: skip
def test_a_bad_field_is_named_with_what_is_allowed(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    said = refused(tomli_w.dumps({**BASE, **change}), tmp_path)
    assert said.startswith(f": {says}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ": field scenarios: required but missing; field targets: required but missing."),
        ('targets = ["fake:careful"]', ": field scenarios: required but missing."),
        ("seed = [", ": invalid TOML: "),
        ('title = "a"\nseed 7\n', ": invalid TOML: Expected '=' after a key in a key/value pair (at line 2, column 6)."),
        ('seed = 1\nseed = 2\n', ": invalid TOML: Cannot overwrite a value (at line 2, column 9)."),
        (b'title = "\xff"', " is not UTF-8 text (byte 9). Save it as UTF-8."),
        (f'scenarios = ["{ONE}"]\ntargets = ["fake:careful"]\ntitle = 2026-01-01', ": field title: 2026-01-01 is a date or time; if it is meant as text, put it in quotes."),
        (f'scenarios = ["{ONE}", 07:30:00]\ntargets = ["fake:careful"]', ": field scenarios[1]: 07:30:00 is a date or time"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_study_is_refused(text: str | bytes, says: str, tmp_path: Path) -> None:
    assert refused(text, tmp_path).startswith(says.strip())


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"targets": ["fake:careful", "fake:careful"]}, 2, "field targets: fake:careful was given twice. To run more trials of it, use `repeats`."),
        ({"targets": ["careful"]}, 2, "field targets: 'careful': expected provider:model"),
        ({"targets": ["fake:nobody"]}, 2, "field targets: fake:nobody does not exist"),
        ({"scenarios": ["none.json"]}, 2, "field scenarios: none.json: no scenario file found"),
        ({"facts": "none.json"}, 2, "field facts: none.json cannot be read"),
        ({"invented_plans": "none.json"}, 2, "field invented_plans: none.json cannot be read"),
        ({"wording": "none.json"}, 2, "field wording: none.json cannot be read"),
        ({"prices": "none.json"}, 2, "field prices: none.json cannot be read"),
        ({"variants": ["hmo"]}, 2, "field variants: hmo: none of the scenarios has this variant. They have no variants."),
        ({"plan_year": 2031}, 2, "field plan_year: figures are available only for 2025, 2026 and 2027, not for 2031. Add a file for that year with `facts`"),
        ({"paraphrase": True}, 2, "field paraphrase: none of the scenarios allows it"),
        ({"questioner": "offline:rephrase"}, 2, "field questioner: offline:rephrase rewords questions only with `paraphrase`."),
        ({"adjudicator": "x"}, 2, "field adjudicator: 'x': expected provider:model"),
        ({"judges": ["fake:wrong"]}, 3, "field judges: fake:wrong cannot judge fake:careful because both are from the fake model family."),
        ({"adjudicator": "fake:wrong"}, 3, "field adjudicator: fake:wrong cannot judge fake:careful"),
        ({"judges": ["offline:rephrase"]}, 3, "field judges: offline:rephrase rewords questions and judges nothing."),
        ({"targets": ["offline:rules"], "judges": ["anthropic:claude-a"]}, 3, "field targets: offline:rules is a judge, not a target."),
        ({"judges": ["offline:rules", {"model": "offline:rules", "max_tokens": 5}]}, 2, "field judges: offline:rules is listed twice with different parameters"),
        ({"requests_per_minute": {"foo": 3}}, 2, "field requests_per_minute: there is no provider 'foo'. Use one of fake, offline, human, anthropic"),
        ({"tokens_per_minute": {"foo": 3}}, 2, "field tokens_per_minute: there is no provider 'foo'."),
        ({"targets": ["compatible:foo"], "judges": ["offline:rules"], "max_cost": 1.0}, 3, "field max_cost: no price is known for compatible:foo. Add it to a price file"),
    ],
)  # fmt: skip
def test_what_only_the_plan_shows_is_refused_with_file_and_field_by_every_front(
    change: dict[str, Any], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    path = written(**change, registration={"primary_outcome": "x"})
    for command in (("run", path), ("run", path, "--dry-run"), ("freeze", path, "--to", "new.json")):
        found, out, err = call(*command)
        assert (found, out) == (code, "")
        assert err.startswith(f"medicare-eval: study.toml: {says}")
        assert err.count("\n") == 1
        assert "--" not in err
    for function in (me.plan, me.run, lambda source: me.freeze(source, to="new.json")):
        with pytest.raises(me.HarnessError) as caught:
            function(path)
        assert caught.value.exit_code == code
        assert str(caught.value) == err.removeprefix("medicare-eval: ").strip()
    assert files(tmp_path) == {"study.toml"}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--target fake:careful", "--target: fake:careful was given twice. To run more trials of it, use --repeats."),
        ("--rpm foo=3", "--rpm: there is no provider 'foo'. Use one of fake"),
        ("--adjudicator-model x", "--adjudicator-model: 'x': expected provider:model"),
        ("--plan-year 2031", "--plan-year: figures are available only for 2025, 2026 and 2027, not for 2031. Add a file for that year with --facts, or choose another --plan-year."),
        ("--prices none.json", "--prices: none.json cannot be read"),
        ("--scenario none.json", "--scenario: none.json: no scenario file found."),
        ("--repeats 0 --seed -1", "--repeats: must be at least 1 (got 0); --seed: must be at least 0 (got -1)."),
    ],
)  # fmt: skip
def test_without_a_study_file_an_error_names_the_flag(flags: str, says: str, tmp_path: Path) -> None:
    for more in ((), ("--dry-run",)):
        code, out, err = call("run", "--scenario", ONE, "--target", "fake:careful", *flags.split(), *more)
        assert (code, out) == (2, "")
        assert err.startswith(f"medicare-eval: {says}")
        assert err.count("\n") == 1
    assert files(tmp_path) == set()


def test_an_error_names_the_flag_or_the_file_whichever_set_the_field() -> None:
    path = written(seed=-1)
    code, _, err = call("run", path, "--repeats", "0")
    assert code == 2
    assert err == (
        "medicare-eval: --repeats: must be at least 1 (got 0); study.toml: field seed: must be at least 0 (got -1).\n"
    )
    with pytest.raises(me.InputError) as caught:
        me.plan(path, repeats=0)
    assert str(caught.value) == (
        "Field repeats: must be at least 1 (got 0); study.toml: field seed: must be at least 0 (got -1)."
    )
    with pytest.raises(me.InputError, match=r"^Field targets: 'x': expected provider:model"):
        me.plan(written(), targets=["x"])


def test_problems_are_listed_up_to_five_and_then_counted(tmp_path: Path) -> None:
    wrong = {"seed": -1, "repeats": 0, "verifiers": 1, "temperature": 3, "timeout": 0, "max_tokens": 0, "seeds": 1}
    said = refused(tomli_w.dumps({**BASE, **wrong}), tmp_path)
    assert said.startswith(": field verifiers: must be at least 2 (got 1); field repeats: must be at least 1 (got 0); ")
    assert said.count("; field ") == 4
    assert said.endswith("; and 2 more.")


def test_a_scenario_given_as_a_study_is_recognized() -> None:
    code, out, err = call("run", ONE)
    assert (code, out) == (2, "")
    assert err == f"medicare-eval: {ONE} is not TOML. If it is a scenario, use --scenario.\n"
    with pytest.raises(me.InputError, match=r"is not TOML\. If it is a scenario, use `scenarios`\."):
        me.plan(ONE)


def test_what_is_no_registration_is_refused_as_input(tmp_path: Path) -> None:
    for path in (written(), Path(ONE)):
        code, out, err = call("run", "--registered", path)
        assert (code, out) == (2, "")
        assert err == f"medicare-eval: {path} is not a pre-registration. Make one with `medicare-eval freeze`.\n"
    code, out, err = call("run", "--registered", tmp_path)
    assert (code, out) == (2, "")
    assert err == f"medicare-eval: {tmp_path} is not a pre-registration (Is a directory). Check the path.\n"


def test_a_registration_is_not_overwritten() -> None:
    path = written(registration={"primary_outcome": "x"})
    code, out, err = call("freeze", path, "--to", path)
    assert (code, out) == (2, "")
    assert (
        err == "medicare-eval: study.toml already exists and will not be overwritten. Choose another file with --to.\n"
    )


def test_deviations_are_allowed_only_from_a_registration() -> None:
    for more in ((), ("--dry-run",)):
        code, out, err = call("run", written(), "--allow-deviations", *more)
        assert (code, out) == (2, "")
        assert err == (
            "medicare-eval: --allow-deviations is used only with --registered. "
            "Name a pre-registration, or leave it out.\n"
        )
    with pytest.raises(me.InputError, match=r"^`allow_deviations` is used only with `registered`"):
        me.run(written(), allow_deviations=True)


def test_a_registered_scenario_that_has_moved_is_named_with_the_registration(tmp_path: Path) -> None:
    shutil.copy(ONE, "mine.json")
    me.freeze(written(scenarios=["mine.json"], registration={"primary_outcome": "x"}), to="registered.json")
    Path("mine.json").rename("moved.json")
    code, out, err = call("run", "--registered", "registered.json")
    assert (code, out) == (2, "")
    assert err == (
        "medicare-eval: registered.json: mine.json: no scenario file found. Give a .json file, a folder, a glob or "
        "pack:NAME. If the registered scenarios have moved, name them with --scenario.\n"
    )
    run = me.run(registered="registered.json", scenarios=["moved.json"])
    assert run.manifest.registration is not None
    assert run.manifest.registration.deviations == ()


def test_an_error_of_a_registered_study_names_the_registration() -> None:
    me.freeze(written(registration={"primary_outcome": "x"}), to="registered.json")
    code, _, err = call("run", "--registered", "registered.json", "--repeats", "0")
    assert (code, err) == (2, "medicare-eval: --repeats: must be at least 1 (got 0).\n")
    with pytest.raises(me.InputError, match=r"^Field targets: 'x': expected provider:model"):
        me.run(registered="registered.json", targets=["x"])
    registered = json.loads(Path("registered.json").read_bytes())
    registered["study"]["targets"] = ["x"]
    Path("registered.json").write_bytes(
        storage.encode_record(Preregistration.model_validate(registered, strict=False)) + b"\n"
    )
    code, _, err = call("run", "--registered", "registered.json")
    assert code == 2
    assert err.startswith("medicare-eval: registered.json: field targets: 'x': expected provider:model")
    with pytest.raises(me.InputError, match=r"^registered\.json: field targets: 'x': expected provider:model"):
        me.run(registered="registered.json")


def test_a_study_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, why in (("none.toml", "No such file or directory"), (".", "Is a directory")):
        code, out, err = call("run", tmp_path / name)
        assert (code, out) == (2, "")
        assert err == f"medicare-eval: {tmp_path / name} cannot be read ({why}). Check the path.\n"


def test_an_error_of_a_flag_names_the_flag_not_the_file(tmp_path: Path) -> None:
    code, out, err = call("run", written(), "--repeats", "0")
    assert (code, out) == (2, "")
    assert err == "medicare-eval: --repeats: must be at least 1 (got 0).\n"
    assert files(tmp_path) == {"study.toml"}


if __name__ == "__main__":
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition("| field |")
    rows = rest.splitlines()
    after = rows[next(number for number, row in enumerate(rows) if not row) :]
    GUIDE.write_text("\n".join([f"{before}{table()[0]}", *table()[1:], *after]) + "\n", encoding="utf-8")
