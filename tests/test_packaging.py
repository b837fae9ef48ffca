"""The wheel holds every package and data file, installs into an empty environment and runs the demo elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.runs import ROOT, environment


def pip(python: Path | str, *arguments: object) -> None:
    finished = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    source = tmp_path_factory.mktemp("source") / "project"
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", out, source)
    return next(out.glob("*.whl"))


def test_every_package_of_the_tree_is_declared() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    tree = {
        ".".join(["medicare_eval", *path.parent.relative_to(ROOT / "src").parts])
        for path in (ROOT / "src").rglob("*.py")
    }
    assert {name for name in settings["packages"] if "._data" not in name} == tree


def test_the_wheel_holds_all_code_and_data(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    code = {f"medicare_eval/{path.relative_to(ROOT / 'src').as_posix()}" for path in (ROOT / "src").rglob("*.py")}
    data = {
        f"medicare_eval/_data/{path.relative_to(ROOT).as_posix()}"
        for folder in ("prompts", "scenarios", "fakes")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".json", ".txt")
    }
    assert code | data | {"medicare_eval/py.typed", "medicare_eval/prices.json"} <= held
    assert not [name for name in held if name.startswith(("tests/", "src/"))]


def test_installed_into_an_empty_environment_the_demo_runs_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, timeout=120)
    python = tmp_path / "venv" / "bin" / "python"
    pip(python, "install", "--quiet", "--require-hashes", "-r", ROOT / "requirements.lock")
    pip(python, "install", "--quiet", "--no-deps", wheel)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = tmp_path / "venv" / "bin" / "medicare-eval"
    finished = subprocess.run(
        [script, "demo"], cwd=elsewhere, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    assert "fake:careful" in finished.stdout
    assert "for trying out and for tests" in finished.stdout
    run = next((elsewhere / "runs").iterdir())
    for command in ("verify", "replay"):
        assert subprocess.run([script, command, run], cwd=elsewhere, env=environment(), timeout=120).returncode == 0
    absent = subprocess.run(
        [script, "run", "--scenario", ROOT / "scenarios", "--target", "openai:gpt-4.1", "--judge-model", "offline:rules"],
        cwd=elsewhere, env=environment({"OPENAI_API_KEY": "sentinel"}), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert absent.returncode == 3
    assert "pip install 'medicare-eval[openai]'" in absent.stderr


def test_lock_files_pin_by_version_and_hash_and_name_no_host() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"https?://|index.url|find.links|trusted.host", text)
        pins = re.findall(r"^([A-Za-z0-9._-]+)==[^ ]+.*\\\n(?:    --hash=sha256:[0-9a-f]{64}.*\n)+", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE))


def test_the_layout_is_the_specification_s() -> None:
    for name in (
        "README.md", "pyproject.toml", "scenarios/v1/scenario_001.json", "prompts/questioner_system.txt",
        "prompts/extractor_system.txt", "prompts/verifier_system.txt", "prompts/scorer_system.txt",
        "prompts/adjudicator_system.txt", "src/orchestrator.py", "src/schemas.py", "src/storage.py", "src/reporting.py",
        "src/adapters/base.py", "src/adapters/openai_adapter.py", "src/adapters/anthropic_adapter.py",
        "src/adapters/google_adapter.py", "src/adapters/grok_adapter.py", "src/agents/questioner.py",
        "src/agents/extractor.py", "src/agents/verifier.py", "src/agents/scorer.py", "src/agents/adjudicator.py",
        "runs",
    ):  # fmt: skip
        assert (ROOT / name).exists(), name
