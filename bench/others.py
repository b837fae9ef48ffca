"""The environment of others: Inspect AI and the SDK's aiohttp transport, installed apart from this project."""

from __future__ import annotations

import subprocess
import sys

from .study import ROOT

VENV = ROOT / "bench" / ".inspect-venv"
PYTHON = VENV / "bin" / "python"
PACKAGES = ("inspect-ai", "openai[aiohttp]")


def install() -> str | None:
    """Make the environment if it is not there; what went wrong, if something did."""
    if (VENV / ".made").exists():
        return None
    commands = (
        [sys.executable, "-m", "venv", str(VENV)],
        [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES],
    )
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{' '.join(command)}: {error}"
        if done.returncode:
            return f"{' '.join(command)}: {done.stderr.strip()[-300:]}"
    (VENV / ".made").touch()
    return None


def versions() -> str:
    script = (
        "from importlib.metadata import version as v; print('inspect-ai', v('inspect-ai') + ', openai', v('openai'))"
    )
    done = subprocess.run([str(PYTHON), "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip()
