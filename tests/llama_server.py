"""A real llama.cpp server on loopback, for tests: the program `llama-server`, or the one inside the package xllamacpp.

The package contains the code of the same server, already compiled, so that the slow tests need no compiler. With the
environment variable LLAMA_SERVER set to a `llama-server` program, or one on the PATH, the tests use that as well.

`python -m tests.llama_server MODEL CONTEXT` starts the package's server and runs until it is stopped.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

Kind = Literal["package", "program"]
KINDS: tuple[Kind, ...] = ("package", "program")
NAME = "tiny"
"""The name that the server gives its model."""
PACKAGE = "xllamacpp"
_ADDRESS = re.compile(r"listening on (http://127\.0\.0\.1:\d+)")
_GIVEN_UP_AFTER_S = 300
"""So that a test ends whose server never answers; loading the tiny model takes well under a second."""


def program() -> str | None:
    return os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")


def why_missing(kind: Kind) -> str | None:
    """Why there is no such server on this machine; None if there is one."""
    if kind == "program":
        return None if program() else "no llama-server on the PATH, and LLAMA_SERVER is not set"
    return None if importlib.util.find_spec(PACKAGE) else f"{PACKAGE} is not installed (`make test-slow` installs it)"


@contextmanager
def llama_server(kind: Kind, model: Path, context: int, log: Path) -> Iterator[str]:
    """Run a server on a free port; its address without `/v1`. What it prints goes to the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            _command(kind, model, context), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield _ready(process, log)
    finally:
        process.kill()
        process.wait()


def _command(kind: Kind, model: Path, context: int) -> list[str]:
    if kind == "package":
        return [sys.executable, "-m", "tests.llama_server", str(model), str(context)]
    path = program()
    assert path is not None
    options = {"-m": model, "-c": context, "--port": 0, "--alias": NAME, "-t": 1}
    return [path, *(str(word) for option in options.items() for word in option)]


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the model is loaded."""
    end = time.monotonic() + _GIVEN_UP_AFTER_S
    while time.monotonic() < end and process.poll() is None:
        found = _ADDRESS.search(log.read_text(encoding="utf-8", errors="replace"))
        if found and _healthy(found[1]):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError("the server did not start:\n" + log.read_text(encoding="utf-8", errors="replace")[-4000:])


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=10) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError:
        return False


def _serve(model: str, context: int) -> None:
    package: Any = importlib.import_module(PACKAGE)
    params = package.CommonParams()
    params.model.path = model
    params.model_alias = {NAME}
    params.n_ctx = context
    params.port = 0
    # Threads of a server that wait for each other keep a core busy, so more than one slows down other tests.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = package.Server(params)  # runs for as long as it is referenced
    threading.Event().wait()
    del server


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
