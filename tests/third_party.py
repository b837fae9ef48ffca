"""Servers that others wrote, each installed in a folder of its own and started on 127.0.0.1.

A server that cannot be installed here within the time limit gives a reason instead: its test is skipped with it.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.runs import ROOT, environment

INSTALLS_S = 150
STARTS_S = 90
KEY = "sk-sentinel-third-party"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY")
MODELS = {
    "openai": "gpt-4.1-2025-04-14",
    "anthropic": "claude-sonnet-4-6",
    "google": "gemini-3.8-flash",
    "xai": "grok-4.6",
}


@dataclass(frozen=True)
class ThirdParty:
    name: str
    """As in the README's table."""
    package: str
    install: Callable[[str, Path], list[list[str]]]
    """The commands that install the package into a folder."""
    program: str
    """Below that folder."""
    arguments: Callable[[int, Path, str], list[str]]
    """From the port, a folder for files, and the address of the server behind it."""
    health: str


def _with_pip(package: str, folder: Path) -> list[list[str]]:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [[sys.executable, "-m", "venv", str(folder)], [*pip, package]]


def _with_npm(package: str, folder: Path) -> list[list[str]]:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    return [["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]]


def _llmock(port: int, folder: Path, upstream: str) -> list[str]:
    return ["serve", "--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]


def _aimock(port: int, folder: Path, upstream: str) -> list[str]:
    (folder / "fixtures.json").write_text(
        json.dumps({"fixtures": [{"match": {}, "response": {"content": "Part B has a monthly premium."}}]}),
        encoding="utf-8",
    )
    config = folder / "aimock.json"
    config.write_text(json.dumps({"llm": {"fixtures": str(folder / "fixtures.json")}}), encoding="utf-8")
    return ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


def _litellm(port: int, folder: Path, upstream: str) -> list[str]:
    """A proxy that passes every model on to the server behind it, in that provider's own format."""
    behind = {
        "openai": ("openai", "/v1"),
        "anthropic": ("anthropic", ""),
        "google": ("gemini", ""),
        "xai": ("xai", "/v1"),
    }
    models = [
        {
            "model_name": model,
            "litellm_params": {
                "model": f"{behind[provider][0]}/{model}",
                "api_base": upstream + behind[provider][1],
                "api_key": "unused",
            },
        }
        for provider, model in MODELS.items()
    ]
    settings = {
        "model_list": models,
        "general_settings": {"master_key": KEY},
        "litellm_settings": {"drop_params": True},
    }
    config = folder / "litellm.yaml"
    config.write_text(json.dumps(settings), encoding="utf-8")  # every JSON document is a YAML document
    return ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]


SERVERS = (
    ThirdParty("llmock", "llmock==0.2.2", _with_pip, "bin/llmock", _llmock, "/health"),
    ThirdParty("aimock", "@copilotkit/aimock@1.43.0", _with_npm, "node_modules/.bin/aimock", _aimock, "/health"),
    ThirdParty("LiteLLM proxy", "litellm[proxy]==1.106.2", _with_pip, "bin/litellm", _litellm, "/health/liveliness"),
)


def readme_settings(name: str, port: int) -> dict[str, str]:
    """The variables that the README gives for a server, at another port."""
    rows = re.findall(r"^\| (.*) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    cells = [[cell.strip("` ") for cell in row.split("|")] for row in rows]
    (heading,) = [row for row in cells if row[0] == "server" and "OPENAI_BASE_URL" in row]
    (values,) = [row for row in cells if row[0] == name]
    addresses = dict(zip(heading[1:], values[1:], strict=True))
    moved = {variable: re.sub(r":\d+", f":{port}", address, count=1) for variable, address in addresses.items()}
    return {**moved, **dict.fromkeys(KEYS, KEY)}


def installed(server: ThirdParty, folder: Path) -> Path:
    """The program of a server, installed into the folder now or before."""
    program, done = folder / server.program, folder / "installed"
    if not done.exists():
        shutil.rmtree(folder)
        folder.mkdir()
        for command in server.install(server.package, folder):
            _install(server, command)
        done.touch()
    return program


def _install(server: ThirdParty, command: Sequence[str]) -> None:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLS_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{server.package} did not install within {INSTALLS_S} s")
    if ran.returncode:
        pytest.skip(f"{server.package} did not install: {' '.join(ran.stderr.split())[-300:]}")


@contextmanager
def running(server: ThirdParty, cache: Path, folder: Path, upstream: str) -> Iterator[int]:
    """The port of the server, which ends with the block."""
    program = installed(server, cache)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [str(program), *server.arguments(port, folder, upstream)]
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
    with (folder / "server.log").open("w", encoding="utf-8") as log:
        started = subprocess.Popen(command, stdout=log, stderr=log, env=environment(quiet), cwd=folder)
        try:
            _await(server, f"http://127.0.0.1:{port}{server.health}", started, folder / "server.log")
            yield port
        finally:
            started.terminate()
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def _await(server: ThirdParty, address: str, started: subprocess.Popen[bytes], log: Path) -> None:
    opener, deadline = build_opener(ProxyHandler({})), time.monotonic() + STARTS_S
    while time.monotonic() < deadline and started.poll() is None:
        try:
            with opener.open(address, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    pytest.skip(f"{server.package} did not start: {log.read_text(encoding='utf-8', errors='replace')[-300:]}")
