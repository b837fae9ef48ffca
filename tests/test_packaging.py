"""The wheel holds every package and data file, and runs wherever it is installed: by pip, by uvx, by pipx."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import src
from src.adapters.registry import PROVIDERS

from .runs import ROOT, environment

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-slow.lock")
DATA = ("baseline", "facts", "fakes", "gold", "plans", "prompts", "rubrics", "scenarios", "schemas", "sources")
BIN = Path(sys.executable).parent


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(lock: str) -> dict[str, set[str]]:
    """Versions by package; a package may have one for each range of Python versions."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9._-]+)(?:\[[a-z,-]+\])?==([^ ]+)", text, re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_the_version_is_the_same_everywhere() -> None:
    version = settings()["project"]["version"]
    assert src.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## ([0-9.]+)", changes, re.MULTILINE)[0] == version


def test_distribution_command_and_import_name_agree() -> None:
    project = settings()["project"]
    assert project["name"] == "medicare-eval"
    assert project["scripts"] == {"medicare-eval": "medicare_eval.cli:main"}
    assert set(settings()["tool"]["setuptools"]["package-dir"]) >= {"medicare_eval"}


def test_every_extra_that_an_error_can_name_exists() -> None:
    extras = settings()["project"]["optional-dependencies"]
    assert {provider.extra for provider in PROVIDERS.values() if provider.extra} <= set(extras)
    assert {"export", "inspect", "charts"} <= set(extras)


def test_every_package_that_the_code_imports_is_declared() -> None:
    project = settings()["project"]
    declared = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    names = {re.split(r"[^a-z0-9-]", requirement)[0] for requirement in declared}
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level
            else []
        )
    }  # fmt: skip
    others = imported - sys.stdlib_module_names - {"__future__", "medicare_eval"}
    assert {"pydantic", "openai", "google"} <= others
    distributions = metadata.packages_distributions()
    undeclared = {
        name
        for name in others
        if not names & {one.lower().replace("_", "-") for one in distributions.get(name, [name])}
    }
    assert undeclared <= {
        "httpx2",
        "markupsafe",
        "pydantic_core",
        "yarl",
    }  # these come with SDKs, jinja2, pydantic, aiohttp


def test_every_package_of_the_tree_is_declared() -> None:
    tree = {
        ".".join(["medicare_eval", *path.parent.relative_to(ROOT / "src").parts])
        for path in (ROOT / "src").rglob("*.py")
    }
    declared = settings()["tool"]["setuptools"]["packages"]
    assert {name for name in declared if "._data" not in name} == tree
    assert declared == list(dict.fromkeys(declared))


def test_lock_files_pin_by_version_and_hash_and_name_no_host() -> None:
    for name in LOCKS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"https?://|index.url|find.links|trusted.host", text)
        found = re.findall(
            r"^([A-Za-z0-9._-]+)(?:\[[a-z,-]+\])?==[^ ]+.*\\\n(?:    --hash=sha256:[0-9a-f]{64}.*\n)+",
            text,
            re.MULTILINE,
        )
        assert len(found) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)) > 0


def test_locks_agree_so_that_each_can_be_installed_over_the_one_before() -> None:
    base, dev, slow = (pins(name) for name in LOCKS)
    for name, versions in base.items():
        assert dev.get(name, versions) == versions, name
    for name, versions in {**base, **dev}.items():
        assert slow.get(name, versions) <= versions, name


def test_what_make_test_installs_is_without_inspect_and_small() -> None:
    dev = pins("requirements-dev.lock")
    assert not {"inspect-ai", "pipx", "uv"} & dev.keys()
    assert {"inspect-ai", "pipx", "uv"} <= pins("requirements-slow.lock").keys()
    assert len(dev) <= 92


def run(command: list[object], cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=environment(env), capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def pip(python: Path | str, *arguments: object) -> None:
    finished = run([python, "-m", "pip", "--disable-pip-version-check", *arguments], ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr


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


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel needs, fetched once by hash, so that pip, uv and pipx can install it without an index."""
    folder = tmp_path_factory.mktemp("dependencies")
    pip(sys.executable, "download", "--quiet", "--require-hashes", "-r", ROOT / "requirements.lock", "-d", folder)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside the checkout, with nothing in it."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_the_wheel_holds_all_code_and_data_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("medicare_eval-")}
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src", *DATA], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()  # fmt: skip
    present = [Path(name) for name in tracked if (ROOT / name).is_file()]
    expected = {
        ("medicare_eval" / path.relative_to("src") if path.parts[0] == "src" else "medicare_eval/_data" / path).as_posix()
        for path in present
    }  # fmt: skip
    assert held == expected


def check_demo(command: list[object], elsewhere: Path, env: Mapping[str, str] | None = None) -> str:
    """Run the demo and check its run folder; gives what was printed to type next."""
    finished = run([*command, "demo"], elsewhere, env)
    assert finished.returncode == 0, finished.stderr
    assert "fake:careful" in finished.stdout
    assert "Do not report these scores as results" in finished.stdout
    (made,) = (elsewhere / "runs").iterdir()
    for check in ("verify", "replay"):
        checked = run([*command, check, made], elsewhere, env)
        assert checked.returncode == 0, checked.stderr
    return finished.stdout[finished.stdout.index("Next: ") :]


def check_printed_command(steps: str, elsewhere: Path, env: Mapping[str, str]) -> None:
    """What is printed to type next works from another folder; without SDKs, which need an index, and with a fake target."""
    printed = (
        steps[steps.index("  export ") :].replace("[openai,anthropic]", "").replace("openai:gpt-4.1", "fake:careful")
    )
    finished = run(["/bin/sh", "-c", f"{printed.rstrip()} --dry-run"], elsewhere, env)
    assert finished.returncode == 0, finished.stderr
    assert "1 trial" in finished.stdout


@pytest.mark.slow
def test_installed_by_pip_the_demo_runs_from_another_folder(
    wheel: Path, dependencies: Path, tmp_path: Path, elsewhere: Path
) -> None:
    assert run([sys.executable, "-m", "venv", tmp_path / "venv"], ROOT).returncode == 0
    installed = tmp_path / "venv" / "bin"
    pip(installed / "python", "install", "--quiet", "--no-index", "--find-links", dependencies, wheel)
    command: list[object] = [installed / "medicare-eval"]
    steps = check_demo(command, elsewhere)
    assert f"{installed}/python -m pip install 'medicare-eval[openai,anthropic] @ {wheel.as_uri()}'" in steps
    public = "import medicare_eval as me, medicare_eval.testing; [getattr(me, name) for name in me.__all__]"
    imported = run([installed / "python", "-W", "error", "-c", public], elsewhere)
    assert imported.returncode == 0, imported.stderr
    absent = run(
        [*command, "run", "--scenario", "scenarios/v1", "--target", "openai:gpt-4.1", "--judge-model", "offline:rules"],
        elsewhere,
        {"OPENAI_API_KEY": "sentinel"},
    )
    assert absent.returncode == 3
    assert "python -m pip install 'openai>=3.40,<4'" in absent.stderr


@pytest.fixture
def from_wheels(dependencies: Path, tmp_path: Path) -> dict[str, str]:
    """Settings for uv and pipx: no index, no folder of the user's, the tools of this environment on the path."""
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(dependencies),
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "pipx-bin"),
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.mark.slow
def test_uvx_runs_the_wheel(wheel: Path, elsewhere: Path, from_wheels: dict[str, str], tmp_path: Path) -> None:
    steps = check_demo([BIN / "uvx", "--from", wheel, "medicare-eval"], elsewhere, from_wheels)
    assert f"uvx --from 'medicare-eval[openai,anthropic] @ {wheel.as_uri()}' medicare-eval run" in steps
    assert "pip install" not in steps and str(tmp_path) not in steps
    check_printed_command(steps, elsewhere, from_wheels)


@pytest.mark.slow
def test_pipx_runs_the_wheel(wheel: Path, elsewhere: Path, from_wheels: dict[str, str], tmp_path: Path) -> None:
    steps = check_demo([BIN / "pipx", "run", "--spec", wheel, "medicare-eval"], elsewhere, from_wheels)
    assert f"pipx run --spec 'medicare-eval[openai,anthropic] @ {wheel.as_uri()}' medicare-eval run" in steps
    assert "pip install" not in steps and str(tmp_path) not in steps
    check_printed_command(steps, elsewhere, from_wheels)
