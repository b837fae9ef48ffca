"""A score is defined once: its names, words and direction are in `scoring.definitions`, and everything follows them."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from src.records.contracts import MeasureName, Scores
from src.records.rubric import CODES
from src.scoring.definitions import CODE_HEADINGS, KEY_COVERAGE, MEASURES, SCORES, SHARES
from tests.helpers import ROOT

HOME = Path("scoring/definitions.py")
NAMES = {
    Path("records/contracts.py"): "the names as they are stored",
    Path("exports/inspect_log.py"): "a function per score",
    Path("findings/drift.py"): "the two that decide a verdict",
}
"""Other files that may list several measures, and why."""
SHORTEST = 25
"""Characters of a definition that count as a copy."""
FOLLOW = """
import contextlib, io
from src.cli.parser import build_parser
from src.exports.tables import codebook_md
from src.trials.terms import TERMS
from src.reports import methods, template
from src.scoring.definitions import SCORE_HEADINGS
rules = template.named("text", "rules").module
print(codebook_md(), TERMS, rules.missing(), rules.outcomes(), SCORE_HEADINGS, sep="\\n")
for command in ("compare", "sensitivity", "power"):
    with contextlib.suppress(SystemExit):
        build_parser().parse_args([command, "--help"])
"""
FIELD = "    calibration: Unit | None\n"
WORDS = HOME.with_suffix(".toml")
BREVITY = """
[[score]]
name = "brevity"
heading = "brevity"
better = "lower"
plain = "How many words a reply takes."
brief = "words per point"
formula = "words / points made"
methods = "counts words"
if_refused = 1.0
"""


def strings(node: ast.AST) -> Iterator[str]:
    """Every text in a file, pieces on several lines joined."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield " ".join(one.value.lower().split())


def lists(node: ast.AST) -> Iterator[set[str]]:
    """The texts in every list, tuple, set and dict, and the words of every text."""
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) < 100:
            yield {*one.value.replace(",", " ").split()}
        if isinstance(one, ast.List | ast.Tuple | ast.Set):
            yield {each.value for each in one.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        elif isinstance(one, ast.Dict):
            yield {each.value for each in one.keys if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def is_list_of_measures(names: set[str]) -> bool:
    """Not a list of all study codes, two of which are measures."""
    return len(names & {*MEASURES}) > 1 and (bool(names & {*SCORES}) or names == {*SHARES})


def restated(src: Path) -> dict[Path, str]:
    """Files that have a definition of a measure in their own words, or a list of measures of their own."""
    texts = [KEY_COVERAGE.plain, KEY_COVERAGE.brief]
    for one in MEASURES.values():
        texts += [one.plain, one.brief, one.formula, one.methods]
    parts = [part for text in texts for part in text.lower().split(". ") if len(part) >= SHORTEST]
    found = {}
    for path in src.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        copied = next((part for part in parts for text in strings(tree) if part.rstrip(".") in text), None)
        listed = next((sorted(names) for names in lists(tree) if is_list_of_measures(names)), None)
        if copied or listed:
            found[path.relative_to(src)] = copied or f"list of {', '.join(listed or ())}"
    return found


def test_names_are_those_that_results_and_rubrics_have() -> None:
    assert tuple(MEASURES) == get_args(MeasureName)
    assert tuple(Scores.model_fields) == SCORES
    assert tuple(MEASURES) == (*SCORES, *SHARES)
    assert tuple(CODE_HEADINGS) == CODES


def test_no_other_file_defines_a_measure() -> None:
    found = restated(ROOT / "src")
    assert str(found.pop(HOME))
    assert set(found) == set(NAMES), found


def test_the_readme_has_the_same_formulas() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in SCORES:
        assert f"| {name} | {MEASURES[name].formula.replace(' - ', ' − ')} |\n" in text


def test_changed_words_and_a_new_score_are_everywhere(tmp_path: Path) -> None:
    """One file defines it; one more has the field that results store."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    (tmp_path / "schemas").symlink_to(ROOT / "schemas")
    path = tmp_path / "src" / WORDS
    text = path.read_text(encoding="utf-8") + BREVITY
    for name in ("plain", "brief", "formula", "methods"):
        changed = getattr(MEASURES["completeness"], name)
        assert f'{name} = "{changed}"' in text
        text = text.replace(f'{name} = "{changed}"', f'{name} = "{name} in other words"')
    path.write_text(text, encoding="utf-8")
    stored = tmp_path / "src" / "records" / "contracts.py"
    text = stored.read_text(encoding="utf-8")
    assert FIELD in text
    stored.write_text(text.replace(FIELD, f"{FIELD}    brevity: Unit | None = None\n"), encoding="utf-8")
    run = subprocess.run([sys.executable, "-c", FOLLOW], cwd=tmp_path, capture_output=True, text=True, check=True)
    for said in ("plain", "formula", "methods"):
        assert f"{said} in other words" in run.stdout.lower()
    assert run.stdout.count("brief in other words") == 3
    codebook = "| `brevity` | number | Words / points made, from the final verdicts; open claims count as each verifier labeled them; 0 to 1, lower is better"
    for said in (codebook, "How many words a reply takes.", "brevity counts words", "and brevity 1;"):
        assert said in run.stdout, said
    assert run.stdout.count("brevity            words per point; lower is better") == 3
