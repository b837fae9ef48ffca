"""The command line as a person meets it: help, bad input, keys, stopping."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from src import __version__, storage
from src.api import findings, reviews
from src.cli.commands import COMMANDS, texts
from src.series import actions
from tests.cases import each_case
from tests.helpers import fact_json
from tests.runs import ONE, ROOT, THREE, call, command, copied_run, environment, make_run, newest, shared

SENTINEL = "sk-sentinel-4f1d9c"
RUN = ("run", "--target", "fake:careful")
HANGS_S = 300
"""After this long a child process is taken to hang; however busy the machine, none needs a tenth of it."""


def scenario() -> dict[str, Any]:
    return dict(json.loads(Path(ONE).read_text(encoding="utf-8")))


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said of a bad scenario file; that it is one sentence, and that nothing is written."""
    path = tmp_path / "bad.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    code, out, err = call(*RUN, "--scenario", path, "--out", tmp_path / "runs")
    assert code == 2
    assert out == ""
    assert re.match(rf"medicare-eval: {re.escape(str(path))}(: | is )", err)
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()
    assert call("validate", path)[0] == 2
    return err


def changed(**fields: Any) -> str:
    return json.dumps({**scenario(), **fields})


def with_key(**fields: Any) -> str:
    document = scenario()
    document["answer_key"] = {**document["answer_key"], **fields}
    return json.dumps(document)


def with_fact(**fields: Any) -> str:
    """With a fact written out, where the bank's own key refers to the library."""
    return with_key(canonical_facts=[{**fact_json("F900"), **fields}])


def with_library(**facts: str) -> str:
    return with_key(library_facts={**scenario()["answer_key"]["library_facts"], **facts})


@each_case(
    ("text", "says"),
    [
        ("", "invalid JSON"),
        ("{", "invalid JSON"),
        ("[]", "must be an object (got [])"),
        ("null", "must be an object (got None)"),
        (b"\xff\xfe{}", "is not UTF-8"),
        ('{"scenario_id": "a", "scenario_id": "b"}', "'scenario_id' appears twice"),
        ('{"scenario_id": NaN}', "NaN is not a JSON number"),
        ('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", "nested deeper than 100 levels"),
        ('{"a": ' + "9" * 5_000 + "}", "5000 digits"),
        (" " * 2_100_000 + "{}", "is larger than"),
        ('{"scenario_id": "\\ud800"}', "lone surrogate"),
        (changed(scenario_id="../../etc/passwd"), "field scenario_id: '../../etc/passwd' is not an id"),
        (changed(scenario_id=".."), "field scenario_id"),
        (changed(scenario_id="a/b"), "field scenario_id"),
        (changed(scenario_id=""), "field scenario_id"),
        (changed(scenario_id="x" * 65), "field scenario_id"),
        (changed(scripted_turns=[]), "field scripted_turns"),
        (changed(scripted_turns=None), "field scripted_turns"),
        (changed(effective_date="soon"), "field effective_date"),
        (changed(surprise=1), "field surprise: unknown field"),
        (changed(scripted_turns=[{"turn_id": "Q1", "user_message": ""}]), "field scripted_turns[0].user_message"),
        (changed(scripted_turns=[{"turn_id": "Q1"}]), "field scripted_turns[0].user_message: required but missing"),
        (changed(scripted_turns=[{"turn_id": "Q1", "user_message": "a"}] * 2), "turn_id 'Q1' appears more than once"),
        (changed(scripted_turns=[{"turn_id": "Q1", "user_message": "x" * 20_001}]), "user_message"),
        (changed(scripted_turns=[{"turn_id": "Q1", "user_message": "Is {{persona.shoe}} ok?"}]), "unknown slot {{persona.shoe}}"),
        (changed(scripted_turns=[{"turn_id": "Q1", "user_message": "Is {{ ok?"}]), "unbalanced {{ or }}"),
        (with_fact(severity_if_wrong="extreme"), "'extreme' is not allowed; use 'low', 'medium' or 'high'"),
        (with_fact(fact_id="D1"), "canonical_facts[0].fact_id"),
        (with_fact(source=""), "canonical_facts[0].source"),
        (with_key(required_points=["F1", "F99"]), "'F99', which is not a fact of this key"),
        (with_key(required_points=[{"any_of": ["F1", "F98"]}]), "'F98', which is not a fact of this key"),
        (with_key(canonical_facts=[], library_facts={}), "canonical_facts or library_facts must hold at least one fact"),
        (with_key(canonical_facts=[fact_json("F900")] * 2), "fact_id 'F900' appears more than once"),
        (with_fact(fact_id="F1"), "fact_id 'F1' appears more than once"),
        (with_library(F900="part-b"), "field answer_key.library_facts.F900"),
        (with_library(F900="B-none"), "answer_key.library_facts.F900: the library has no fact 'B-none'. Check the name"),
        (with_library(F900="B-{{state}}-none"), "answer_key.library_facts.F900: no state has a fact 'B-{{state}}-none'. Check the name"),
    ],
)  # fmt: skip
def test_a_bad_scenario_gets_one_sentence_and_nothing_is_written(text: str | bytes, says: str, tmp_path: Path) -> None:
    assert says in refused(tmp_path, text)


@each_case(
    ("arguments", "code", "says"),
    [
        (["--scenario", "nowhere.json", "--target", "fake:careful"], 2, "--scenario: nowhere.json: no scenario file found"),
        (["--scenario", ONE, "--target", "nobody:x"], 2, "there is no provider 'nobody'. Use one of fake, offline, human, anthropic"),
        (["--scenario", ONE, "--target", "careful"], 2, "expected provider:model"),
        (["--scenario", ONE, "--target", "fake:"], 2, "'fake:': expected provider:model"),
        (["--scenario", ONE, "--target", "fake:../../x"], 2, "--target: fake:../../x does not exist. Use one of fake:careful"),
        (["--scenario", ONE, "--target", "fake:careful", "--target", "fake:careful"], 2, "--target: fake:careful was given twice. To run more trials of it, use --repeats."),
        (["--scenario", ONE, "--target", "fake:careful", "--judges", "1"], 2, "--judges: must be at least 2 (got 1)"),
        (["--scenario", ONE, "--target", "fake:careful", "--judges", "0"], 2, "--judges: must be at least 2 (got 0)"),
        (["--scenario", ONE, "--target", "fake:careful", "--judges", "30000000"], 2, "--judges: must be at most 25 (got 30000000)"),
        (["--scenario", ONE, "--target", "fake:careful", "--rpm", "opnai=5"], 2, "--rpm: there is no provider 'opnai'"),
        (["--scenario", "", "--target", "fake:careful"], 2, "'': no scenario file found"),
        (["--scenario", ONE, "--target", "fake:careful", "--judge-model", "fake:wrong"], 3, "--judge-model: fake:wrong cannot judge fake:careful because both are from the fake model family"),
        (["--scenario", ONE, "--target", "offline:rules"], 3, "--judge-model: no judge is available for offline:rules"),
        (["--scenario", ONE, "--target", "openai:gpt-4.1"], 3, "Set ANTHROPIC_API_KEY, GEMINI_API_KEY, XAI_API_KEY"),
        (["--scenario", ONE, "--target", "openai:gpt-4.1", "--judge-model", "offline:rules"], 3, "set the environment variable OPENAI_API_KEY"),
        (["--scenario", ONE, "--target", "fake:careful", "--temperature", "9"], 2, "--temperature: must be at most 2 (got 9.0)"),
        (["--scenario", ONE, "--target", "fake:careful", "--temperature", "nan"], 2, "--temperature: nan is not a finite number"),
        (["--scenario", ONE, "--target", "fake:careful", "--repeats", "0"], 2, "--repeats: must be at least 1 (got 0)"),
        (["--scenario", ONE, "--target", "fake:careful", "--seed", "-1"], 2, "--seed: must be at least 0 (got -1)"),
        (["--scenario", ONE, "--target", "fake:careful", "--repeats", "1000000000"], 2, "--repeats: must be at most 10000"),
        (["--scenario", ONE, "--target", "fake:careful", "--paraphrase"], 2, "--paraphrase: none of the scenarios allows it"),
        (["--scenario", ONE, "--target", "fake:careful", "--isolation", "turn"], 2, "argument --isolation: invalid choice: 'turn'"),
        (["--scenario", ONE, "--target", "fake:careful", "--judge-max-tokens", "0"], 2, "--judge-max-tokens: must be at least 1 (got 0)"),
        (["--scenario", ONE, "--target", "fake:careful", "--adjudicator-model", "offline:rules"], 3, "--adjudicator-model: offline:rules cannot settle ties of offline:rules because it is from the same model family as one of them."),
        (["--target", "fake:careful"], 2, "No scenarios given. Use a study file, or set --scenario."),
        (["--scenario", ONE], 2, "No targets given. Use a study file, or set --target."),
        (["--scenario", ONE, "--target", "fake:careful", "--colour"], 2, "--colour"),
    ],
)  # fmt: skip
def test_a_bad_argument_gets_one_sentence_and_nothing_is_written(
    arguments: list[str], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    found, out, err = call("run", *arguments, "--out", tmp_path / "runs")
    assert (found, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not (tmp_path / "runs").exists()


def test_two_scenarios_with_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(Path(ONE).read_text(encoding="utf-8"), encoding="utf-8")
    code, out, err = call(*RUN, "--scenario", tmp_path, "--out", tmp_path / "runs")
    assert (code, out) == (2, "")
    assert f"{tmp_path / 'b.json'}: field scenario_id: 'scenario_001' is also used by {tmp_path / 'a.json'}" in err
    assert not (tmp_path / "runs").exists()


def test_a_fake_has_nothing_to_say_to_a_scenario_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(changed(scenario_id="mine"), encoding="utf-8")
    code, _, err = call(*RUN, "--scenario", path, "--out", tmp_path / "runs")
    assert code == 3
    assert f"{path}: fake:careful has no canned replies for scenario 'mine'" in err
    assert not (tmp_path / "runs").exists()


def test_validate_names_every_good_file_and_every_bad_one(tmp_path: Path) -> None:
    code, out, err = call("validate", THREE)
    assert (code, err) == (0, "")
    assert out.count(": ok: scenario_00") == 3
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    code, out, err = call("validate", tmp_path)
    assert (code, out) == (2, "")
    for name in ("a.json", "b.json"):
        assert f"{tmp_path / name}: field scenario_id: required but missing" in err


@each_case("given", ["resume", "verify", "replay", "report"])
def test_a_run_that_is_not_there_is_named(given: str, tmp_path: Path) -> None:
    code, out, err = call(given, tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert err == f"medicare-eval: {tmp_path / 'nowhere'} does not exist.\n"
    assert not (tmp_path / "nowhere").exists()


@each_case(
    ("arguments", "says"),
    [
        (("rejudge", "--judges", "1"), "--judges: must be at least 2 (got 1)."),
        (("rejudge", "--judge-model", "careful"), "--judge-model: 'careful': expected provider:model"),
        (("rejudge", "--concurrency", "0"), "--concurrency: must be at least 1 (got 0)."),
        (("resume", "--concurrency", "0"), "--concurrency: must be at least 1 (got 0)."),
        (("resume", "--rpm", "foo=3"), "--rpm: there is no provider 'foo'."),
        (("resume", "--max-cost", "0"), "--max-cost: must be above 0 (got 0.0)."),
        (("resume", "--rpm", "openai"), "argument --rpm: 'openai' is not PROVIDER=NUMBER, for example openai=500"),
    ],
)
def test_bad_settings_of_a_run_that_exists_leave_it_as_it_is(
    arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    run = copied_run(tmp_path / "runs")
    if arguments[0] == "resume":
        (run / storage.SEAL).unlink()
        (run / storage.RESULTS).write_bytes(b"")
    before = {path: path.read_bytes() for path in run.iterdir()}
    name, *flags = arguments
    out_flag = ("--out", tmp_path / "again") if name == "rejudge" else ()
    code, out, err = call(name, run, *flags, *out_flag)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in run.iterdir()} == before
    assert not (tmp_path / "again").exists()


def test_globs_and_folders_and_files_are_taken_once_each(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for path in Path(ROOT, "scenarios", "v1").glob("*.json"):
        shutil.copy(path, folder)
    code, out, _ = call(*RUN, "--scenario", folder, "--scenario", f"{folder}/**/*.json", "--scenario", folder / "scenario_001.json", "--dry-run", "--json")  # fmt: skip
    assert code == 0
    plan = json.loads(out)
    assert plan["scenarios"] == ["scenario_001", "scenario_002", "scenario_003"]
    turns = [json.loads(path.read_text(encoding="utf-8"))["scripted_turns"] for path in folder.iterdir()]
    assert plan["calls"]["target"] == sum(map(len, turns)) == 13
    assert plan["calls"]["verifier"] == 26


def test_a_dry_run_makes_no_call_and_writes_nothing(tmp_path: Path) -> None:
    code, out, _ = call(*RUN, "--scenario", ONE, "--dry-run", "--out", tmp_path / "runs", "--judges", "3")
    assert code == 0
    assert "# 1 trial: 1 scenario x 1 target x 1 repeat\n" in out
    assert "#   verifiers   offline:rules, offline:rules, offline:rules" in out
    assert "#   adjudicator none: ties stay open for a person\n#   isolation   flagged\n#   plan year   2026\n" in out
    assert "left out" not in out
    assert out.endswith("# No call was made and nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_for_the_coming_year_says_so_and_counts_the_points_left_out(tmp_path: Path) -> None:
    extra = ROOT / "scenarios" / "v1" / "topics" / "irmaa.json"
    given = (*RUN, "--scenario", extra, "--plan-year", "2027", "--out", tmp_path / "runs")
    code, out, _ = call(*given, "--dry-run")
    assert code == 0
    assert call(*given, "--quiet").code == 0
    lost = storage.read_manifest(newest(tmp_path / "runs")).plan.points_left_out
    assert lost > 1
    why = f"{lost} points of questions: figures not published, or not in the file of figures"
    assert f"#   plan year   2027 (coming)\n#   left out    {why}\n" in out


def test_the_readme_shows_what_the_demo_prints() -> None:
    run, out = shared("demo")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown, _, _ = out.partition("Written:")
    assert shown in readme
    assert json.loads((run / storage.SEAL).read_text(encoding="utf-8"))["results_head"] in readme


@each_case(
    ("command", "function"),
    [
        ("compare", findings.compare),
        ("drift", findings.drift),
        ("report", findings.report),
        ("review start", reviews.start_review),
        ("sensitivity", findings.sensitivity),
        ("series init", actions.init_series),
        ("series run", actions.run_series),
    ],
)
def test_a_default_that_the_help_shows_is_that_of_the_function(command: str, function: Callable[..., object]) -> None:
    parser = argparse.ArgumentParser()
    for add in next(one for one in COMMANDS if one.name == command).options:
        add(parser)
    given = {name: parser.get_default(name) for name in inspect.signature(function).parameters}
    shown = {name: default for name, default in given.items() if default not in (None, [], argparse.SUPPRESS)}
    assert shown or command in ("report", "series run")
    for name, default in shown.items():
        assert str(inspect.signature(function).parameters[name].default) == str(default), name


def test_every_command_has_its_function_and_its_text() -> None:
    for one in COMMANDS:
        if one.function:
            module, _, name = one.function.partition(":")
            assert callable(getattr(import_module(f"src.cli.{module}"), name)), one.name
    assert texts().keys() <= {"medicare-eval", "exit codes", *(one.name for one in COMMANDS)}


def test_help_teaches_and_is_quick() -> None:
    for arguments, says in (((), "exit codes:"), (("run",), "--judge-model"), (("verify",), "--expect HASH")):
        code, out, err = call(*arguments, "--help")
        assert (code, err) == (0, "")
        assert says in out
    heavy = "pydantic", "rich", "openai", "anthropic", "google", "asyncio"
    script = "import sys; from src.cli import build_parser; build_parser().format_help(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert not set(heavy) & set(modules)


@each_case("name", ["", *(one.name for one in COMMANDS)])
def test_help_fits_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = call(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: medicare-eval")
    assert [line for line in out.splitlines() if len(line) > 80] == []


@each_case(
    ("arguments", "says"),
    [
        ("power --trials x", "argument --trials: 'x' is not a whole number. Try: medicare-eval power --help"),
        ("power --trials 0", "argument --trials: 0 is not a whole number of at least 1."),
        ("scenarios list --plan-year x", "argument --plan-year: 'x' is not a whole number."),
        ("scenarios", "the following arguments are required: {list,facts,sources,library,export,import}. Try: medicare-eval scenarios --help"),
        ("judge-check --judges 1", "medicare-eval: --judges: must be at least 2 (got 1)."),
        ("judge-check --timeout 4000", "medicare-eval: --timeout: must be above 0 and at most 3,600 (got 4000)."),
        ("judge-check --limit 0", "argument --limit: 0 is not a whole number of at least 1."),
        ("judge-check --worst -1", "argument --worst: -1 is not a whole number of at least 0."),
        ("compare RUN --show -3", "argument --show: -3 is not a whole number of at least 0."),
        ("drift OLD NEW --show -3", "argument --show: -3 is not a whole number of at least 0."),
        ("power", "medicare-eval: Give --pilot, a run, or --sd, the standard deviation of the paired differences."),
        ("power --sd .3 --pilot RUN", "medicare-eval: Give --pilot or --sd, not both: drop --sd to use the pilot's spread, or --pilot to use yours."),
        ("report RUN RUN", "medicare-eval: RUN was given twice."),
        ("compare RUN RUN", "medicare-eval: RUN was given twice."),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_meant_are_refused(arguments: str, says: str) -> None:
    code, out, err = call(*arguments.split())
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_judge_check_with_bad_settings_writes_nothing(tmp_path: Path) -> None:
    code, out, err = call("judge-check", "--rpm", "foo=3", "--out", tmp_path / "checks")
    assert (code, out) == (2, "")
    assert err.startswith("medicare-eval: --rpm: there is no provider 'foo'. Use one of fake")
    assert list(tmp_path.iterdir()) == []


def test_bad_settings_of_a_complete_run_are_refused_too(tmp_path: Path) -> None:
    run = copied_run(tmp_path / "runs")
    code, out, err = call("resume", run, "--concurrency", "0")
    assert (code, out) == (2, "")
    assert err == "medicare-eval: --concurrency: must be at least 1 (got 0).\n"


def test_no_command_and_unknown_commands_are_usage_errors() -> None:
    code, out, err = call()
    assert (code, out) == (2, "")
    assert "the following arguments are required: COMMAND" in err
    code, out, err = call("dance")
    assert (code, out) == (2, "")
    assert "invalid choice: 'dance'" in err
    code, out, err = call("scenarios", "--plan-year", 2027, "list")
    assert (code, out) == (2, "")
    assert "invalid choice: '2027'" in err
    assert "Options come after this word." in err
    assert call("--version") == (0, f"medicare-eval {__version__}\n", "")


def test_a_missing_key_is_named_and_a_set_one_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "XAI"):
        monkeypatch.setenv(f"{name}_API_KEY", SENTINEL)
    code, out, err = call("run", "--scenario", ONE, "--target", "openai:gpt-4.1", "--dry-run", "--json")
    assert code == 0, err
    plan = json.loads(out)
    assert plan["verifiers"] == ["anthropic:claude-sonnet-4-6", "google:gemini-3.8-flash"]
    assert plan["adjudicator"].startswith("xai:")
    assert SENTINEL not in out + err


def test_paraphrase_is_recorded_shared_by_targets_and_kept_to_the_figures(tmp_path: Path) -> None:
    third = str(ROOT / "scenarios" / "v1" / "scenario_003.json")
    arguments = [
        "--scenario",
        third,
        "--target",
        "fake:careful",
        "--target",
        "fake:wrong",
        "--paraphrase",
        "--questioner-model",
    ]
    code, _, err = call("run", *arguments, "offline:rules", "--out", tmp_path)
    assert code == 3
    assert "The questioner must be another model" in err
    run = make_run(tmp_path, *arguments, "offline:rephrase")
    calls = (run / storage.JOURNAL).read_text(encoding="utf-8")
    assert calls.count('"call":"scenario_003.r1|questioner|') == 1
    careful, wrong = [json.loads(line) for line in (run / storage.RESULTS).read_text(encoding="utf-8").splitlines()]
    said = [turn["user_message"] for turn in careful["conversation"]]
    assert said == [turn["user_message"] for turn in wrong["conversation"]]
    exact = [turn["user_message"] for turn in json.loads(Path(third).read_text(encoding="utf-8"))["scripted_turns"]]
    assert said != exact
    code, out, _ = call("replay", run)
    assert (code, out.splitlines()[0]) == (
        0,
        f"{run}: OK. Recomputed 2 of 2 results from the journal; byte-for-byte identical.",
    )


@pytest.mark.slow
@each_case("number", [signal.SIGINT, signal.SIGTERM])
def test_one_ctrl_c_drains_and_leaves_a_resumable_run(number: signal.Signals, tmp_path: Path) -> None:
    arguments = command(*RUN, "--scenario", THREE, "--repeats", 400, "--out", tmp_path, "--concurrency", 4)
    child = subprocess.Popen(
        arguments, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: any(path.stat().st_size for path in tmp_path.glob("*/results.jsonl")), child)
    child.send_signal(number)
    out, err = child.communicate(timeout=HANGS_S)
    assert child.returncode == 4, err
    run = newest(tmp_path)
    assert "Stopping after in-flight calls finish. Press Ctrl-C again to quit immediately." in err
    assert f"To continue: medicare-eval resume {run}" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert "Incomplete" in out
    assert not (run / storage.SEAL).exists()
    code, out, err = call("verify", run)
    assert code == 4
    done = re.search(r"OK\. (\d+) of 1200 trials and [\d,]+ calls match what was recorded\.", out)
    assert done
    assert 0 < int(done[1]) < 1200
    assert f"{run} is not complete. To continue: medicare-eval resume {run}" in err


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    """The first is never answered: a provider hangs. The second must not wait for it."""
    child = subprocess.Popen(
        [sys.executable, "-c", HANGING, str(tmp_path)], cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "called\n"
    child.send_signal(signal.SIGINT)
    assert "Stopping" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=HANGS_S)
    assert (child.returncode, err) == (130, "")


HANGING = """
import asyncio, sys
from src import cli
from src.adapters.local_adapters import FakeAdapter
async def hang(self, request, *, timeout_s):
    print("called", file=sys.stderr, flush=True)
    await asyncio.Event().wait()
FakeAdapter.complete = hang
sys.exit(cli.main(["run", "--scenario", "scenarios/v1/scenario_001.json", "--target", "fake:careful", "--out", sys.argv[1], "--quiet"]))
"""


@pytest.mark.slow
def test_a_person_at_a_terminal_sees_a_bar_with_counts_and_rate(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    arguments = command(*RUN, "--scenario", THREE, "--repeats", 3, "--out", tmp_path)
    child = subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=environment({"TERM": "xterm", "COLUMNS": "100"}),
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(screen, 65_536):
            shown += piece
    except OSError:  # the child has closed its end
        pass
    finally:
        os.close(screen)
    assert child.wait(timeout=HANGS_S) == 0
    text = shown.decode("utf-8", "replace")
    assert "trials" in text
    assert "9/9" in text
    assert "calls," in text
    assert '{"event"' not in text


def wait_for(condition: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    while not condition():
        assert child.poll() is None, "the process ended before"
        time.sleep(0.01)
