"""Documents show what the program prints, name files that exist, and use commands that parse."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import src
from src.cli.parser import build_parser
from src.planning.study_file import make_study

from .cases import each_case
from .docs import DOCUMENTS, MARKER, PROGRAM, ROOT, cut, fits, stale
from .docs import Block as DocBlock

WITH_OUTPUT = [path for path in DOCUMENTS if re.search(r"^<!-- output", path.read_text(encoding="utf-8"), re.M)]
LANGUAGES = {"sh", "toml", "json", "python", "text", "csv", "console"}
OWN_TEST = "<!-- example"
"""Begins the marker of a block that a test of its own checks (tests/test_guides.py)."""
GENERATED = {"bench.md", "bench_reports.md", "faults.md"}
"""Written by a program of their own, which a test runs."""
PATH = re.compile(
    r"`((?:src|tests|docs|prompts|rubrics|scenarios|facts|plans|schemas|gold|baseline|bench|fakes)/[\w./-]*\w)`"
)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_OUTPUT, ids=name)
def test_every_output_shown_is_what_the_command_prints(path: Path) -> None:
    found = stale(path)
    assert not found, "\n".join(
        [f"{one.block.where}: {one.block.command} prints:\n" + "\n".join(one.lines) for one in found]
        + ["Run `make docs` to write them."]
    )


def fences(path: Path) -> list[tuple[int, str, str, list[str]]]:
    """Line, marker line before it, language and text of every fenced block."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].startswith("```"))
            found.append((at + 1, lines[at - 1] if at else "", lines[at][3:].strip(), lines[at + 1 : end]))
            at = end
        at += 1
    return found


@each_case("path", DOCUMENTS, ids=name)
def test_every_block_is_generated_or_says_what_it_is(path: Path) -> None:
    if path.name in GENERATED:
        return
    for line, before, language, _ in fences(path):
        assert MARKER.match(before) or before.startswith(OWN_TEST) or language in LANGUAGES, (
            f"{name(path)}:{line}: a block of output needs an output marker; any other block a language ({LANGUAGES})"
        )


def commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCUMENTS:
        for line, _, language, text in fences(path):
            if language == "sh":
                joined = re.sub(r"\\\n\s*", " ", "\n".join(text))
                found += [
                    (f"{name(path)}:{line}", typed)
                    for typed in joined.splitlines()
                    if typed.startswith((f"{PROGRAM} ", "python -m src.orchestrator "))
                ]
        found += [
            (f"{name(path)}:{number}", marker["command"])
            for number, text_line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if (marker := MARKER.match(text_line))
        ]
    return found


@each_case(("where", "command"), commands(), ids=lambda value: str(value)[:60])
def test_every_command_shown_parses(where: str, command: str) -> None:
    words = shlex.split(command, comments=True)
    words = words[1:] if words[0] == PROGRAM else words[3:]
    if {"--help", "--version"} & set(words) or "..." in words:
        return
    try:
        build_parser().parse_args(words)
    except SystemExit as error:
        pytest.fail(f"{where}: {command}: the parser refuses it ({error.code})")


@each_case("path", DOCUMENTS, ids=name)
def test_every_study_file_shown_is_valid(path: Path) -> None:
    for line, _, language, text in fences(path):
        document = tomllib.loads("\n".join(text)) if language == "toml" else {}
        if "scenarios" in document:
            assert make_study(document).targets, f"{name(path)}:{line}"


@each_case("path", DOCUMENTS, ids=name)
def test_every_file_named_exists(path: Path) -> None:
    for named in PATH.findall(path.read_text(encoding="utf-8")):
        if re.search(r"\b(?:NAME|ID|N)(?:\b|_)", named) or "part_b_basics" in named:
            continue  # a placeholder, or a file that the reader of authoring.md writes
        assert (ROOT / named).exists(), f"{name(path)} names {named}, which does not exist"


@each_case("path", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{name(path)} links to {target}, which does not exist"


@pytest.mark.slow
def test_the_python_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block of docs/python.md, in order, in one namespace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "medicare_eval", src)
    names: dict[str, object] = {}
    guide = ROOT / "docs" / "python.md"
    for line, _, language, text in fences(guide):
        if language == "python":
            exec(compile("\n" * line + "\n".join(text), str(guide), "exec"), names)
    run = names["run"]
    assert isinstance(run, src.Run)
    assert run.complete
    assert (tmp_path / "my-report" / "report.md").is_file()


def test_no_guide_names_the_folder_it_was_generated_in() -> None:
    assert [name(path) for path in DOCUMENTS if str(ROOT) in path.read_text(encoding="utf-8")] == []


def test_the_newcomers_walk_has_at_most_15_files() -> None:
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \|", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.M)
    assert 10 <= len(rows) <= 15
    assert all((ROOT / row).is_file() for row in rows)


def test_files_that_architecture_names_are_there() -> None:
    names = set(
        re.findall(r"`((?:src|facts|prompts)/[^`]+)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    )
    assert len(names) > 30
    assert sorted(name for name in names if not (ROOT / name).exists()) == []


def test_a_cut_shows_where_it_is() -> None:
    block = DocBlock(ROOT / "README.md", 1, "medicare-eval demo", 1, 2, 0, 0, ())
    assert cut(block, ["a", "b", "c", "d"]) == ["a", "...", "c", "d"]
    assert cut(block, ["a", "b", "c"]) == ["a", "b", "c"]
    last = DocBlock(ROOT / "README.md", 1, "medicare-eval demo", None, 1, 0, 0, ())
    assert cut(last, ["a", "b"]) == ["...", "b"]


def test_a_gap_matches_any_lines_and_nothing_else_does() -> None:
    assert fits(("a", "...", "d"), ["a", "b", "c", "d"])
    assert fits(("a", "..."), ["a", "b"])
    assert not fits(("a", "...", "d"), ["a", "b", "c"])
    assert not fits(("a", "b"), ["a", "c"])
