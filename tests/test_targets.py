"""Targets with settings: their names, what reaches the wire, the manifest and the report."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import src as me
from src.errors import InputError
from src.records.model_name import bare_name, family, split_name
from src.records.study import target_from_text
from src.storage import read_manifest
from tests.cases import each_case
from tests.loopback import Loopback, Scripted
from tests.runs import ONE, call, newest, process, replays, verifies

KEYS = {"OPENAI_API_KEY": "sk-sentinel-targets-0001", "ANTHROPIC_API_KEY": "sk-sentinel-targets-0002"}
JUDGED = ("--judge-model", "offline:rules", "--scenario", ONE, "--no-probe", "--quiet")


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "advisor.txt"
    path.write_text("You are a careful advisor on Medicare.\n", encoding="utf-8")
    return path


def planned(monkeypatch: pytest.MonkeyPatch, *targets: Any, **more: Any) -> me.RunPlan:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    return me.plan(scenarios=[str(ONE)], targets=list(targets), judges=["offline:rules"], **more)


def test_the_text_form_says_what_a_table_says() -> None:
    text = "openai:gpt-5.5,search,effort=low,temperature=none,system=a/b.txt,max_searches=3,max_tokens=900"
    assert target_from_text(text) == {
        "model": "openai:gpt-5.5",
        "reasoning_effort": "low",
        "temperature": "none",
        "system_prompt": "a/b.txt",
        "max_tokens": 900,
        "search": {"max_searches": 3},
    }
    assert target_from_text("openai:gpt-5.5,search=off")["search"] is False
    sites = target_from_text("openai:gpt-5.5,allowed_domains=medicare.gov+cms.gov")
    assert sites["search"] == {"allowed_domains": ("medicare.gov", "cms.gov")}


@each_case("text", ["a:b,serch", "a:b,effort", "a:b,model=c:d", "a:b,max_tokens=many", "a:b,=1"])
def test_a_setting_that_does_not_exist_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a setting|a number is needed"):
        me.study(scenarios=[str(ONE)], targets=[text])


def test_names_say_what_sets_targets_of_one_model_apart(monkeypatch: pytest.MonkeyPatch, prompt: Path) -> None:
    plan = planned(
        monkeypatch,
        "openai:gpt-5.5",
        f"openai:gpt-5.5,system={prompt}",
        "openai:gpt-5.5,search",
        f"openai:gpt-5.5,search,system={prompt},effort=high",
        "openai:gpt-5.5,name=plain,max_tokens=300",
        "openai:gpt-5.5,max_searches=2,name=shopper",
    )
    assert plan.targets == (
        "openai:gpt-5.5",
        "openai:gpt-5.5#advisor",
        "openai:gpt-5.5#search",
        "openai:gpt-5.5#advisor+effort-high+search",
        "openai:gpt-5.5#plain",
        "openai:gpt-5.5#shopper+search",
    )
    assert {plan.api_ids[target] for target in plan.targets} == {"gpt-5.5-2026-04-23"}
    assert [plan.settings_of(target).kind for target in plan.targets] == [
        "bare", "prompt", "search", "prompt_and_search", "bare", "search",
    ]  # fmt: skip
    kept = plan.settings_of("openai:gpt-5.5#advisor").system_prompt
    assert kept and (kept.text, kept.file) == (prompt.read_text(encoding="utf-8"), "advisor.txt")
    assert kept.sha256 == sha256(prompt.read_bytes()).hexdigest()


def test_targets_that_differ_only_in_parameters_are_named_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(monkeypatch, "openai:gpt-4.1", {"model": "openai:gpt-4.1", "temperature": 0.7})
    assert plan.targets == ("openai:gpt-4.1#temperature-0+max-2048", "openai:gpt-4.1#temperature-0.7+max-2048")


def test_a_single_target_with_a_temperature_keeps_the_name_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(monkeypatch, {"model": "openai:gpt-4.1", "temperature": "none"})
    assert plan.targets == ("openai:gpt-4.1",)
    assert plan.parameters_of("openai:gpt-4.1").temperature is None


@each_case(
    ("targets", "says"),
    [
        (["openai:gpt-5.5,search", "openai:gpt-5.5,search"], "openai:gpt-5.5#search was given twice"),
        (["openai:gpt-5.5,name=a", "openai:gpt-5.5,name=a,effort=low"], "would both be called openai:gpt-5.5#a"),
        (["openai:gpt-5.5#search"], "has no #"),
        (["fake:careful,search"], "fake:careful is no model"),
        (["openai:gpt-5.5,system=nowhere.txt"], "nowhere.txt"),
    ],
)
def test_targets_that_cannot_be_told_apart_or_made_are_refused(
    monkeypatch: pytest.MonkeyPatch, targets: list[str], says: str
) -> None:
    with pytest.raises(me.HarnessError, match=says):
        planned(monkeypatch, *targets)


@each_case("content", [b"", b" \n", b"\xff\xfe\x00"])
def test_a_system_prompt_that_is_no_text_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "p.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"is empty|is not UTF-8"):
        planned(monkeypatch, f"openai:gpt-5.5,system={tmp_path / 'p.txt'}")


def test_settings_do_not_hide_a_family_or_a_provider() -> None:
    name = "compatible:llama-3#advisor+search"
    assert (bare_name(name), split_name(name).model, family(name)) == ("compatible:llama-3", "llama-3", "meta")


def test_a_study_file_names_prompts_beside_it_and_its_full_form_gives_the_same_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prompt: Path
) -> None:
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    file = tmp_path / "study.toml"
    file.write_text(
        f'scenarios = ["{ONE}"]\njudges = ["offline:rules"]\n'
        'targets = ["openai:gpt-5.5,system=advisor.txt", '
        '{ model = "openai:gpt-5.5", reasoning_effort = "low", search = { max_searches = 2, country = "US" } }]\n',
        encoding="utf-8",
    )
    plan = me.plan(file)
    assert plan.targets == ("openai:gpt-5.5#advisor", "openai:gpt-5.5#effort-low+search")
    assert plan.settings_of(plan.targets[1]).reasoning_tokens == 8_000
    code, out, err = call("run", file, "--dry-run", "--json")
    assert code == 0, err
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(out)["study"]), encoding="utf-8")
    document = json.loads(again.read_text(encoding="utf-8"))
    assert me.plan(me.study(**document)) == plan


@pytest.mark.slow
def test_one_model_with_and_without_a_system_prompt_is_two_targets_of_one_run(tmp_path: Path, prompt: Path) -> None:
    with Loopback(default=Scripted(text="A plan may have a network.")) as server:
        env = {"COMPATIBLE_BASE_URL": server.url("openai")}
        targets = ("--target", "compatible:m", "--target", f"compatible:m,system={prompt},effort=low,temperature=none")
        made = process("run", *targets, *JUDGED, "--out", tmp_path / "runs", env=env)
        assert made.returncode == 0, made.stderr
        bodies = [one.body for one in server.requests]
    run = newest(tmp_path / "runs")
    plan = read_manifest(run).plan
    assert plan.targets == ("compatible:m", "compatible:m#advisor+effort-low")
    with_prompt = [body for body in bodies if body["messages"][0]["role"] == "system"]
    assert 0 < len(with_prompt) < len(bodies)
    assert {body["messages"][0]["content"] for body in with_prompt} == {prompt.read_text(encoding="utf-8")}
    assert all("temperature" not in body for body in with_prompt)
    assert all(body["max_tokens"] == 2048 + 8_000 for body in with_prompt)
    verifies(run)
    replays(run)
    trials = {trial.target.name for trial in me.open_run(run).trials()}
    assert trials == set(plan.targets)
