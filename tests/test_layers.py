"""Which module may import which, read from the source. `LAYERS` is the table; docs/architecture.md explains it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import ROOT

SRC = ROOT / "src"
LAYERS: list[set[str]] = [
    {"cli"},
    {"workbench"},
    {"series"},
    {"api"},
    {"engines"},
    {"reading", "orchestrator", "judge_check", "inputs.authoring", "audit"},
    {"reporting", "runner"},
    {"reports", "exports", "scoring"},
    {"findings", "agents"},
    {"planning"},
    {"inputs.sources", "inputs.transcripts"},
    {"calls", "testing"},
    {"adapters"},
    {"offline"},
    {"storage", "trials"},
    {"text", "stats", "scoring.definitions"},
    {"store"},
    {"plugins"},
    {"schemas"},
    {"records"},
    {"errors"},
    {""},
]
"""A module may import its own package and anything on a lower line. "" is `src/__init__.py`, for the version."""
FORBIDDEN = {
    "findings": {"adapters", "agents", "orchestrator"},
    "reports": {"adapters", "agents", "orchestrator"},
    "exports": {"adapters", "agents", "orchestrator"},
    "reporting": {"adapters", "agents", "orchestrator"},
    "stats": {"*"},
    "agents": {"calls", "storage", "planning"},
}
"""On top of the order: what a package may not reach, however far away."""
LAZY = {""}
"""Modules whose imports inside functions do not count: the public names of the package are loaded on first use."""
HANDS_OVER = {("orchestrator", "cli")}
"""`python -m src.orchestrator` hands over to the command line in its first lines, only when run as a program."""
SDKS = {
    "openai": {"openai_adapter"},
    "anthropic": {"anthropic_adapter"},
    "google": {"google_adapter"},
    "xai_sdk": {"grok_adapter"},
}
"""Provider SDK to the file of adapters/ that may import it."""
HTTP = {"httpx", "httpx2", "requests", "aiohttp", "urllib3", "websockets"}
CONNECTIONS = "adapters.connections"
"""The one file made of the HTTP libraries' classes; it is itself imported only when an SDK is."""
READS = {"environ", "environb", "getenv", "getenvb", "expanduser", "expandvars", "home", "cwd", "getcwd"}
"""Names that read the environment, the home folder or the working folder."""
FIRST_PARTY = ("src", "medicare_eval")


@dataclass(frozen=True)
class Import:
    """What one import statement imports."""

    module: str
    """Of ours as `adapters.base`; of others as written."""
    ours: bool
    at_import: bool
    """Whether it runs when the file is imported: not in a function, not for type checkers only."""
    line: int


@cache
def modules() -> dict[str, Path]:
    """Every module of src by its dotted name below it; a package by its own name."""
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def for_types_only(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


def statements(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node of a file and whether it runs when the file is imported."""
    todo = [(tree, True)]
    while todo:
        node, at_import = todo.pop()
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            todo.append((child, at_import and not inside and not for_types_only(node)))
            yield todo[-1]


@dataclass(frozen=True)
class Module:
    """What the tests look for in one module; its syntax tree is not kept."""

    imports: tuple[Import, ...]
    prints: tuple[int, ...]
    """The lines that print; the same below for the others."""
    completes: tuple[int, ...]
    declares_global: tuple[int, ...]
    reads_surroundings: tuple[int, ...]
    """When the file is imported."""


@cache
def read(name: str, source: str | None = None) -> Module:
    path = modules().get(name, SRC / "made_up.py")
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    package = [part for part in package if part]
    imports: list[Import] = []
    prints, completes, declares_global, reads_surroundings = [], [], [], []
    for node, at_import in statements(ast.parse(path.read_text(encoding="utf-8") if source is None else source)):
        if isinstance(node, ast.Import):
            imports += [Import(alias.name, False, at_import, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.append(Import(node.module or "", False, at_import, node.lineno))
        elif isinstance(node, ast.ImportFrom):
            base = [*(package[: len(package) - node.level + 1]), *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                inner = ".".join([*base, alias.name])
                target = inner if inner in modules() else ".".join(base)
                imports.append(Import(target, True, at_import, node.lineno))
        elif isinstance(node, ast.Global):
            declares_global.append(node.lineno)
        elif isinstance(node, ast.Call):
            if getattr(node.func, "id", None) == "print":
                prints.append(node.lineno)
            if isinstance(node.func, ast.Attribute) and node.func.attr == "complete":
                completes.append(node.lineno)
        elif at_import and isinstance(node, ast.expr) and getattr(node, "attr", getattr(node, "id", None)) in READS:
            reads_surroundings.append(node.lineno)
    return Module(tuple(imports), tuple(prints), tuple(completes), tuple(declares_global), tuple(reads_surroundings))


def imports(name: str, source: str | None = None) -> tuple[Import, ...]:
    return read(name, source).imports


def places(kind: str, names: Iterable[str] | None = None) -> list[str]:
    """Where the modules do something, as an editor opens it."""
    return [place(name, line) for name in names or modules() for line in getattr(read(name), kind)]


def place(name: str, line: int) -> str:
    return f"{modules()[name].relative_to(ROOT)}:{line}"


def layer(name: str) -> int:
    """The line of the table that a module is on."""
    for number, packages in enumerate(LAYERS):
        if package_of(name) in packages:
            return number
    raise AssertionError(f"{name} is not in LAYERS: add its package to the table")


def package_of(name: str) -> str:
    """The longest name in the table that a module is in."""
    found = [p for packages in LAYERS for p in packages if p and (name == p or name.startswith(f"{p}."))]
    return max(found, key=len, default=name)


def top(name: str) -> str:
    return name.split(".")[0]


@cache
def reached(name: str) -> dict[str, tuple[str, ...]]:
    """Every module of ours that a module imports, however far away and however late, with the way there."""
    found: dict[str, tuple[str, ...]] = {}
    todo: list[tuple[str, tuple[str, ...]]] = [(name, (name,))]
    while todo:
        here, way = todo.pop()
        if here in LAZY and here != name:
            continue
        for one in imports(here):
            if one.ours and one.module not in found and (here, top(one.module)) not in HANDS_OVER:
                found[one.module] = (*way, one.module)
                todo.append((one.module, found[one.module]))
    return found


def outside(module: str) -> str:
    return module.split(".")[0]


def test_the_reader_of_modules_sees_what_it_must() -> None:
    source = "import os\nHOME = os.environ\ndef f():\n    global HOME\n    print(os.getcwd())\n    HOME.complete()\n"
    seen_in = read("made_up", source)
    assert (seen_in.reads_surroundings, seen_in.declares_global) == ((2,), (4,))
    assert (seen_in.prints, seen_in.completes) == ((5,), (6,))


def test_the_reader_of_imports_sees_what_it_must() -> None:
    source = (
        "from __future__ import annotations\nimport os.path\nfrom ..store.strict_json import loads\n"
        "from . import base\nfrom .. import storage, errors\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import openai\n"
        "def f():\n    from ..agents.ask import ask\n    import anthropic\nclass C:\n    import google.genai\n"
    )
    seen = {(one.module, one.ours, one.at_import) for one in imports("adapters.made_up", source)}
    assert seen >= {
        ("os.path", False, True),
        ("store.strict_json", True, True),
        ("adapters.base", True, True),
        ("storage", True, True),
        ("errors", True, True),
        ("openai", False, False),
        ("agents.ask", True, False),
        ("anthropic", False, False),
        ("google.genai", False, True),
    }
    assert {"orchestrator", "agents.verifier", "adapters", "adapters.base", "stats.intervals"} <= set(modules())
    assert {"agents.ask", "adapters.base", "store.strict_json"} <= set(reached("orchestrator"))


def test_imports_point_downward() -> None:
    upward = []
    for name in filter(None, modules()):
        for one in imports(name):
            if not one.ours or (name, top(one.module)) in HANDS_OVER or package_of(one.module) == package_of(name):
                continue
            if top(name) == one.module:  # a package's own front
                continue
            if layer(one.module) <= layer(name):
                upward.append(f"{place(name, one.line)} imports {one.module}, which is not on a lower line of LAYERS")
    assert not upward, "\n".join(upward)


def test_a_package_is_on_one_line_only() -> None:
    listed = [package for packages in LAYERS for package in packages]
    assert len(listed) == len(set(listed))
    assert {package_of(name) for name in modules()} <= {*listed, "inputs"}


def test_the_document_has_the_same_table() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| layer | what is in it |\n| --- | --- |\n")
    rows = [line.split(" | ")[0] for line in table.partition("\n\n")[0].splitlines()]
    assert [{name.replace("__init__", "") for name in re.findall("`(.+?)`", row)} for row in rows] == LAYERS


def test_what_a_package_may_not_reach() -> None:
    looked_at, wrong = set(), []
    for name in modules():
        if top(name) not in FORBIDDEN:
            continue
        looked_at.add(top(name))
        banned = FORBIDDEN[top(name)]
        for module, way in reached(name).items():
            if "*" in banned:
                allowed = top(module) in (top(name), "errors", "records", "schemas")
            elif top(name) == "agents" and top(module) == "adapters":
                allowed = module in ("adapters", "adapters.base")
            else:
                allowed = top(module) not in banned
            if not allowed:
                wrong.append(" imports ".join(way))
    assert looked_at == set(FORBIDDEN)
    assert not wrong, "\n".join(wrong)


def test_only_the_api_and_engines_import_the_orchestrator() -> None:
    importers = {name for name in modules() for one in imports(name) if one.ours and one.module == "orchestrator"}
    assert {package_of(name) for name in importers} == {"api", "engines"}


def test_only_the_command_line_prints_and_knows_argparse() -> None:
    others = [name for name in modules() if top(name) != "cli"]
    assert not places("prints", others)
    assert not [place(name, one.line) for name in others for one in imports(name) if one.module == "argparse"]


def test_a_report_loads_no_adapter_and_no_agent() -> None:
    loaded = loaded_by("src.reporting")
    assert "src.reporting" in loaded
    assert not [name for name in loaded if name.startswith(("src.adapters", "src.agents", "src.orchestrator"))]


def test_an_sdk_is_imported_only_in_its_own_file_and_late() -> None:
    early, elsewhere = [], []
    for name in modules():
        for one in imports(name):
            package = outside(one.module)
            if one.ours or package not in SDKS | dict.fromkeys(HTTP):
                continue
            where = f"{place(name, one.line)} imports {one.module}"
            if one.at_import and name != CONNECTIONS:
                early.append(where)
            file = name.split(".")[-1]
            allowed = file in SDKS[package] if package in SDKS else file.endswith("_adapter") or name == CONNECTIONS
            if top(name) != "adapters" or not allowed:
                elsewhere.append(where)
    assert not early, "\n".join(["When it is imported itself:", *early])
    assert not elsewhere, "\n".join(["In a file that may not:", *elsewhere])


def test_the_http_connections_are_imported_only_late() -> None:
    users = [(name, one) for name in modules() for one in imports(name) if one.ours and one.module == CONNECTIONS]
    assert users
    assert not [name for name, one in users if one.at_import]


def test_sdks_are_imported_late_somewhere() -> None:
    late = {outside(one.module) for name in modules() for one in imports(name) if not one.ours and not one.at_import}
    assert {"openai", "anthropic", "google"} <= late


def test_only_the_gateway_and_the_conformance_kit_call_an_adapter() -> None:
    callers = {name for name in modules() if read(name).completes and top(name) not in ("adapters", "testing")}
    assert callers == {"calls.gateway"}


def test_imports_of_ours_are_relative() -> None:
    absolute = [
        f"{place(name, one.line)} imports {one.module}"
        for name in modules()
        for one in imports(name)
        if not one.ours and outside(one.module) in FIRST_PARTY
    ]
    assert not absolute, "\n".join(absolute)


def test_records_import_nothing_else_of_ours() -> None:
    for name in modules():
        if top(name) == "records":
            assert {top(module) for module in reached(name)} <= {"records"}, reached(name)
    assert {top(module) for module in reached("schemas")} == {"records"}


def test_no_module_imports_itself_by_a_detour() -> None:
    circles = {name: reached(name)[name] for name in modules() if name and name in reached(name)}
    assert not circles


def test_nothing_of_the_users_surroundings_is_read_at_import() -> None:
    assert not places("reads_surroundings")


def test_no_public_class_name_exists_twice() -> None:
    found: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(place(name, node.lineno))
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_no_module_state_is_declared_global() -> None:
    assert not places("declares_global")


def loaded_by(*names: str, watch_environment: bool = False) -> list[str]:
    """The modules in memory after importing some in a fresh interpreter; with an environment that may not be read."""
    code = "import importlib, json, os, sys\n"
    if watch_environment:
        code += (
            "class Watched(type(os.environ)):\n"
            "    def __getitem__(self, key):\n"
            "        if key.endswith(('_API_KEY', '_BASE_URL')) or key.startswith('MEDICARE'):\n"
            "            raise SystemExit(f'{key} was read at import')\n"
            "        return super().__getitem__(key)\n"
            "os.environ.__class__ = Watched\n"
        )
    code += f"for name in {list(names)!r}: importlib.import_module(name)\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert isinstance(found, list)
    return found


HEAVY = {"pydantic", "pydantic_core", "rich", "asyncio", "numpy", "scipy", "pandas", *SDKS, *HTTP}


@pytest.mark.parametrize("name", ["src", "src.cli", "src.cli.parser", "src.audit", "src.api.checks"])
def test_importing_the_package_the_command_line_or_verify_imports_nothing_heavy(name: str) -> None:
    loaded = loaded_by(name)
    assert name in loaded
    assert not {outside(one) for one in loaded} & HEAVY


def test_building_the_parser_and_its_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom src.cli import main\n"
        "try: main(['run', '--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [name for name in sys.modules if name in ('pydantic', 'rich', 'openai', 'anthropic')])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "HEAVY []"


def test_importing_every_module_imports_no_sdk_and_reads_no_key() -> None:
    names = [f"src.{name}" if name else "src" for name in modules() if name != CONNECTIONS]
    loaded = loaded_by(*names, watch_environment=True)
    assert "src.adapters.openai_adapter" in loaded
    assert not {outside(name) for name in loaded} & {*SDKS, *HTTP}
