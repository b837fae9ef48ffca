"""What `models` and `verify` import: they start quickly because they import little. No clock is read here."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cases import each_case
from tests.helpers import ROOT
from tests.runs import ONE, shared_run

NEVER = {"asyncio", "httpx2", "openai", "statistics", "src.api", "src.orchestrator", "src.schemas"}
"""Modules that neither command may import."""
ALSO_NOT_FOR_MODELS = {"importlib.metadata", "msgspec", "pydantic", "src.stats.bounded"}
ALSO_NOT_FOR_VERIFY = {
    "importlib.metadata", "pydantic", "pydantic_core", "src.adapters.base", "src.agents", "src.calls",
    "src.records.base", "src.scoring.result", "src.store.run_files", "rich",
}  # fmt: skip


def imported(*words: object) -> set[str]:
    """The modules that a command line has imported by its end."""
    code = (
        "import contextlib, io, json, sys\nfrom src.cli import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()):\n    code = main({[str(word) for word in words]!r})\n"
        "print(json.dumps(sorted(sys.modules)))\nraise SystemExit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_a_list_of_models_imports_no_records_and_no_sdk() -> None:
    found = imported("models")
    assert "src.adapters.models" in found
    assert found.isdisjoint(NEVER | ALSO_NOT_FOR_MODELS)


def test_verify_imports_neither_records_nor_agents_nor_the_api() -> None:
    run = shared_run("--scenario", ONE, "--target", "fake:careful")
    found = imported("verify", run)
    assert "src.audit" in found
    assert found.isdisjoint(NEVER | ALSO_NOT_FOR_VERIFY)


@each_case("module", sorted(NEVER | ALSO_NOT_FOR_MODELS | ALSO_NOT_FOR_VERIFY))
def test_the_modules_that_may_not_be_imported_exist(module: str) -> None:
    code = f"import importlib.util; raise SystemExit(importlib.util.find_spec({module!r}) is None)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120).returncode == 0
