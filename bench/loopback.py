"""The loopback server as a child process, and what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .study import ROOT

NEVER_MS = 3_600_000
"""A latency that no measurement waits for."""


class Server:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.server"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout
        self._port = int(self._process.stdout.readline())

    def url(self, latency_ms: int) -> str:
        return f"http://127.0.0.1:{self._port}/{latency_ms}/v1"

    def ask(self, what: str) -> dict[str, Any]:
        """Its counts; `what` is one of the GET paths of `bench.server`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/{what}", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        self._process.communicate(timeout=60)


@contextmanager
def running_server() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()
