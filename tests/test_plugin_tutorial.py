"""docs/plugins.md does what it says: its package is installed and used, and every output it shows is the real one."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from src.testing.server import Received, Response, Server
from tests.runs import ROOT, environment

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^\*\*([\w./-]+)\*\*\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
MAIN = "import sys; from medicare_eval.cli import main; sys.exit(main())"
RUN_IN_THE_TEXT = "runs/20260101T120000Z"
REPLY = "The initial enrollment period around age 65 lasts 7 months."


@dataclass(frozen=True)
class Tutorial:
    """A folder with the tutorial's package, installed beside this project, and a server that plays Acme's API."""

    folder: Path
    env: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = shlex.split(command)
        start = [sys.executable, "-c", MAIN] if program == "medicare-eval" else [sys.executable]
        assert program in ("medicare-eval", "python"), command
        return subprocess.run(
            [*start, *arguments], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120
        )


async def acme(received: Received) -> Response:
    asked = json.loads(received.body)
    assert received.path == "/chat" and received.headers["authorization"] == "Bearer acme-secret-0123"
    tokens = {"in": 11, "out": 7}
    text = REPLY if asked["model"] == "small" else REPLY.replace("7", "12")
    return Response(body=json.dumps({"text": text, "finish": "done", "model": "small-1", "tokens": tokens}).encode())


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    folder = tmp_path_factory.mktemp("tutorial")
    for name, text in {**FILES, "acme-medicare/acme_medicare/__init__.py": ""}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    site = folder / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    pip += ["--no-build-isolation", "--target", str(site), "./acme-medicare"]
    done = subprocess.run(pip, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (site / "medicare_eval").symlink_to(ROOT / "src")
    with Server(acme) as server:
        extra = {"PYTHONPATH": str(site), "COLUMNS": "80", "MEDICARE_EVAL_TODAY": "2026-11-16"}
        extra |= {"ACME_API_KEY": "acme-secret-0123", "ACME_BASE_URL": server.address}
        yield Tutorial(folder, environment(extra))


def test_the_page_has_all_its_files() -> None:
    listed = re.search(r"```text\n(acme-medicare/\n.*?)```", PAGE, re.DOTALL)
    assert listed
    names = re.findall(r"[\w.]+\.(?:py|toml|json)", listed[1])
    assert {*names, "__init__.py"} == {Path(name).name for name in FILES} | {"__init__.py"}
    assert len(FILES) == 6


def test_every_command_of_the_page_gives_what_the_page_shows(tutorial: Tutorial) -> None:
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        line, _, shown = block.partition("\n")
        command = line.removeprefix("$ ")
        if command == "pip install ./acme-medicare":
            continue  # done by the fixture
        if RUN_IN_THE_TEXT in command:
            run = next((tutorial.folder / "runs").iterdir())
            command = command.replace(RUN_IN_THE_TEXT, f"runs/{run.name}")
        done = tutorial.run(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if shown:
            assert done.stdout == shown, command


def test_the_run_records_the_plugins_it_used(tutorial: Tutorial) -> None:
    out = "recorded"
    done = tutorial.run(
        "medicare-eval run --scenario pack:acme --target acme:small --target acme:other "
        f"--judge-model offline:rules --out {out} --quiet --json"
    )
    assert done.returncode == 0, done.stderr
    folder = next((tutorial.folder / out).iterdir())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    shown = re.search(r'^\{"adapter:acme".*\}$', PAGE, re.MULTILINE)
    assert shown and manifest["plugins"] == json.loads(shown[0])
    assert [one["path"] for one in manifest["plan"]["scenarios"]] == ["pack:acme/acme_enrollment.json"]
    assert str(tutorial.folder) not in json.dumps(manifest), "no path of the machine is in a manifest"
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(results) == 2
    exported = tutorial.run(f"medicare-eval export {out}/{folder.name} --to contradictions,csv")
    assert exported.returncode == 0, exported.stderr
    written = (folder / "export" / "contradictions.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"- acme:other: .*12 months.* \(F1\)\n", written)
    for command in ("verify", "replay"):
        assert tutorial.run(f"medicare-eval {command} {out}/{folder.name}").returncode == 0


def test_the_failures_shown_are_those_of_the_slips_described(tutorial: Tutorial, tmp_path: Path) -> None:
    source = FILES["acme-medicare/acme_medicare/adapter.py"]
    slipped = source.replace("status == 408 or ", "").replace(", RecursionError", "")
    assert len(source) - len(slipped) == len("status == 408 or ") + len(", RecursionError")
    (tmp_path / "slipped.py").write_text(slipped, encoding="utf-8")
    test = FILES["acme-medicare/test_acme.py"].replace("from acme_medicare.adapter", "from slipped")
    (tmp_path / "test_slipped.py").write_text(test, encoding="utf-8")
    done = tutorial.run(f"python {tmp_path / 'test_slipped.py'}")
    shown = re.search(r"```\n(AcmeAdapter: .*?)```", PAGE, re.DOTALL)
    assert shown and done.returncode == 1
    assert done.stderr.partition("AdapterCheckError: ")[2] == shown[1]


def test_the_pack_is_valid(tutorial: Tutorial) -> None:
    done = tutorial.run("medicare-eval validate pack:acme")
    assert done.returncode == 0, done.stderr
    assert "ok: acme_enrollment" in done.stdout


def test_a_missing_key_is_said_before_anything_is_called(tutorial: Tutorial) -> None:
    bare = Tutorial(tutorial.folder, {name: value for name, value in tutorial.env.items() if name != "ACME_API_KEY"})
    done = bare.run("medicare-eval run --scenario pack:acme --target acme:small --judge-model offline:rules --out none")
    assert done.returncode == 3
    assert "acme: no key. Set the environment variable ACME_API_KEY." in done.stderr
    assert not (tutorial.folder / "none").exists()


def test_a_checkout_refuses_a_plugin_of_the_installed_package(tutorial: Tutorial, tmp_path: Path) -> None:
    """Run as `src`, the harness and the plugin would use two copies of CallFailure."""
    arguments = f"run --scenario pack:acme --target acme:small --judge-model offline:rules --out {tmp_path} --quiet"
    done = subprocess.run(
        [sys.executable, "-m", "src.orchestrator", *arguments.split()],
        cwd=ROOT, env=tutorial.env, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "The adapter 'acme' of package acme-medicare 1.2.0 works only with the installed command" in done.stderr
