"""What to type after the demo to try a real model, for each way to install and start this command."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..store.package_data import data_folder

NAME = "medicare-eval"
EXTRAS = "[openai,anthropic]"


@dataclass(frozen=True)
class _Way:
    """How to have this command with the SDKs of two providers."""

    install: str | None
    """None: `program` brings them."""
    program: str


def next_steps() -> str:
    way = _way()
    return "\n".join(
        [
            "Next: try a real model. You need two API keys, because the judge must come from",
            "a different provider than the target:",
            *([f"  {way.install}"] if way.install else []),
            "  export OPENAI_API_KEY=... ANTHROPIC_API_KEY=...",
            f"  {way.program} run --scenario scenarios/v1/scenario_001.json \\",
            "    --target openai:gpt-4.1 --judges 2 --seed 42",
        ]
    )


def _way() -> _Way:
    environment = Path(sys.prefix)
    wanted = _requirement()
    if "UV" in os.environ and environment.parent.name.startswith("archive-v"):  # a folder of uv's cache
        return _Way(None, f"uvx --from {wanted} {NAME}")
    if (environment / "uv-receipt.toml").is_file():
        return _Way(f"uv tool install {wanted}", NAME)
    if (environment / "pipx_metadata.json").is_file():
        if environment.parent.name == "venvs":
            return _Way(f"pipx install --force {wanted}", NAME)
        return _Way(None, f"pipx run --spec {wanted} {NAME}")
    python = _command(Path(sys.executable))
    pip = f"{python} -m pip install" if importlib.util.find_spec("pip") else f"uv pip install --python {python}"
    return _Way(f"{pip} {wanted}", _program(python))


def _requirement() -> str:
    """What an installer needs to find this package again, with two extras: its checkout, its name or its file."""
    checkout = data_folder("scenarios").parent
    if (checkout / "pyproject.toml").is_file():
        return "--editable " + shlex.quote(f"{'.' if checkout == Path.cwd() else checkout}{EXTRAS}")
    try:
        source = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        source = None
    if source is None:
        return shlex.quote(f"{NAME}{EXTRAS}")
    found = json.loads(source)
    version_control = found.get("vcs_info", {}).get("vcs")
    address = f"{version_control}+{found['url']}" if version_control else found["url"]
    return shlex.quote(f"{NAME}{EXTRAS} @ {address}")


def _program(python: str) -> str:
    started = Path(sys.argv[0])
    return _command(started) if started.stem == NAME else f"{python} -m {__name__.partition('.')[0]}.orchestrator"


def _command(path: Path) -> str:
    """The name of a program that PATH leads to, or its path from here."""
    found = shutil.which(path.name)
    return path.name if found and Path(found) == path.absolute() else shlex.quote(str(_from_here(path.absolute())))


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
