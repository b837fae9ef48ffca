"""Runs in several processes over a loopback server that keeps every request, as a provider's bill would."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from src import storage
from src.runner import shards
from src.store import strict_json
from tests.loopback import Loopback, Received, Scripted
from tests.runs import ROOT, THREE, command, environment

SENTINEL = "sk-sentinel-4c11de"
WORDS = "Medicare Advantage plans have provider networks. Original Medicare has no yearly limit on out-of-pocket costs."
TARGET = "openai:gpt-4.1"
STUDY = (
    "--scenario", THREE, "--target", TARGET, "--judge-model", "offline:rules", "--repeats", 3, "--no-probe",
)  # fmt: skip
HANGS_S = 300.0


def server(rule: Callable[[Received], Scripted] | None = None, *, delay_s: float = 0.03) -> Loopback:
    """A target that answers after a moment."""
    return Loopback(rule or (lambda request: Scripted(text=WORDS, delay_s=delay_s)), keep=100_000)


def keys(loopback: Loopback) -> dict[str, str]:
    return {"OPENAI_BASE_URL": loopback.url("openai"), "OPENAI_API_KEY": SENTINEL}


def billed(loopback: Loopback) -> Counter[str]:
    """How often each request came."""
    return Counter(strict_json.fingerprint(request.body) for request in loopback.requests)


def journaled(run: Path) -> set[str]:
    """The requests to the target that the journals of a run have, divided or not."""
    folders = [run, *(shards.shard_folders(run) if shards.is_divided(run) else [])]
    return {
        strict_json.fingerprint(record.sent)
        for folder in folders
        for record in storage.read_calls(folder, storage.read_manifest(folder))
        if record.model == TARGET
    }


def start(*arguments: object, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments), cwd=ROOT, env=environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that the process does; fail if it ends before, or hangs."""
    until = time.monotonic() + HANGS_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "the process hangs"
        time.sleep(0.005)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The worker processes of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            status, line = (entry / "status").read_text(), (entry / "cmdline").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        if f"PPid:\t{process.pid}\n" in status and "engines.shard_worker" in line:
            found.append(int(entry.name))
    return found


def ends(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=HANGS_S)
    return process.returncode, out, err


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    process.send_signal(signal.SIGINT)
    return ends(process)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
