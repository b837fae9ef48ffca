"""After the demo, what is printed to type next fits the way the command was installed and started."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib import metadata
from pathlib import Path

import pytest

from src.cli import run as module
from src.cli.run import next_steps

FILE = "file:///home/user/medicare_eval-0.2.0-py3-none-any.whl"


class Distribution:
    """Stands in for the installed distribution: what its installer recorded about where it came from."""

    def __init__(self, source: dict[str, object] | None) -> None:
        self._source = source

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return json.dumps(self._source) if self._source else None


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As if installed from an index; gives the folder that environments are made in."""
    monkeypatch.setattr(module, "data_folder", lambda kind: tmp_path / "_data" / kind)
    came_from(monkeypatch, None)
    monkeypatch.delenv("UV", raising=False)
    return tmp_path


def came_from(monkeypatch: pytest.MonkeyPatch, source: dict[str, object] | None) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution(source))


def environment(monkeypatch: pytest.MonkeyPatch, folder: Path, marker: str | None = None) -> None:
    (folder / "bin").mkdir(parents=True)
    if marker:
        (folder / marker).touch()
    for name in ("python", "medicare-eval"):
        (folder / "bin" / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))
    monkeypatch.setattr(sys, "argv", [str(folder / "bin" / "medicare-eval")])


def commands() -> list[str]:
    """The lines to type, without the keys' and the one that continues the last."""
    lines = [line.strip() for line in next_steps().splitlines() if line.startswith("  ")]
    assert lines.pop() == "--target openai:gpt-4.1 --judges 2 --seed 42"
    assert lines.pop(-2) == "export OPENAI_API_KEY=... ANTHROPIC_API_KEY=..."
    return [line.removesuffix(" --scenario scenarios/v1/scenario_001.json \\") for line in lines]


@pytest.mark.parametrize(
    ("folder", "marker", "expected"),
    [
        ("uv/archive-v0/a1b2", None, ["uvx --from 'medicare-eval[openai,anthropic]' medicare-eval run"]),
        (
            "uv/tools/medicare-eval",
            "uv-receipt.toml",
            ["uv tool install 'medicare-eval[openai,anthropic]'", "medicare-eval run"],
        ),
        (
            "cache/pipx/a1b2",
            "pipx_metadata.json",
            ["pipx run --spec 'medicare-eval[openai,anthropic]' medicare-eval run"],
        ),
        (
            "pipx/venvs/medicare-eval",
            "pipx_metadata.json",
            ["pipx install --force 'medicare-eval[openai,anthropic]'", "medicare-eval run"],
        ),
    ],
)
def test_uv_and_pipx_are_used_again_and_no_folder_of_theirs_is_shown(
    folder: str, marker: str | None, expected: list[str], installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, installed / folder, marker)
    monkeypatch.setenv("PATH", f"{installed / folder / 'bin'}")
    if folder.startswith("uv/archive"):
        monkeypatch.setenv("UV", "/usr/bin/uv")
    assert commands() == expected
    assert str(installed) not in next_steps()


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        ({"url": FILE, "archive_info": {}}, f"medicare-eval[openai,anthropic] @ {FILE}"),
        (
            {"url": "https://example.org/eval.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
            "medicare-eval[openai,anthropic] @ git+https://example.org/eval.git",
        ),
    ],
)
def test_what_was_installed_from_a_file_or_repository_is_installed_from_there_again(
    source: dict[str, object], requirement: str, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, installed / "uv" / "archive-v0" / "a1b2")
    monkeypatch.setenv("UV", "/usr/bin/uv")
    came_from(monkeypatch, source)
    assert commands() == [f"uvx --from '{requirement}' medicare-eval run"]


def test_in_a_virtual_environment_paths_are_shown_unless_it_is_active(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, installed / "venv")
    monkeypatch.chdir(installed)
    assert commands() == [
        "venv/bin/python -m pip install 'medicare-eval[openai,anthropic]'", "venv/bin/medicare-eval run",
    ]  # fmt: skip
    monkeypatch.setenv("PATH", str(installed / "venv" / "bin"))
    assert commands() == ["python -m pip install 'medicare-eval[openai,anthropic]'", "medicare-eval run"]


def test_an_environment_without_pip_is_installed_into_by_uv(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, installed / "my venv")
    monkeypatch.chdir(installed)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert commands() == [
        "uv pip install --python 'my venv/bin/python' 'medicare-eval[openai,anthropic]'", "'my venv/bin/medicare-eval' run",
    ]  # fmt: skip


def test_in_a_checkout_the_checkout_is_installed(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = installed / "checkout"
    environment(monkeypatch, checkout / ".venv")
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(module, "data_folder", lambda kind: checkout / kind)
    monkeypatch.setattr(sys, "argv", [str(checkout / "src" / "orchestrator.py")])
    monkeypatch.chdir(checkout)
    assert commands() == [
        ".venv/bin/python -m pip install --editable '.[openai,anthropic]'", ".venv/bin/python -m src.orchestrator run",
    ]  # fmt: skip
    monkeypatch.chdir(installed)
    assert commands()[0].endswith(f"-m pip install --editable '{checkout}[openai,anthropic]'")
