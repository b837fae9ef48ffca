"""The notice about the rule-based judge states what a real check finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from src import storage
from src.findings.read_run import gather
from src.findings.rule_judge import EARLIER_NOTICE, MEASURED, OFFLINE_NOTICE, offline_notices
from src.judge_check.check import CheckOptions, check_judges
from src.records.judge_check import JudgeMeasured, Split
from src.records.study import JudgeOptions
from src.reports.markdown import markdown
from src.reports.sections import contents
from tests.cases import each_case
from tests.helpers import ROOT, manifest, plan


def found(measured: JudgeMeasured, label: str) -> dict[str, int]:
    cells = measured.matrix()
    return {
        "gold": sum(n for (gold, _), n in cells.items() if gold == label),
        "right": sum(n for (gold, given), n in cells.items() if gold == given == label),
        "given": sum(n for (_, given), n in cells.items() if given == label) + measured.spurious().get(label, 0),
    }


@pytest.mark.slow
@each_case("split", ["held_out", "second", "third"])
def test_the_notice_has_the_figures_of_a_real_check(split: Split, tmp_path: Path) -> None:
    judges = JudgeOptions.model_validate({"judges": ["offline:rules"]})
    options = CheckOptions(judges=judges, split=split, measures=["end_to_end"], out=tmp_path)
    measured = check_judges(options).record.end_to_end
    assert measured is not None
    stated = MEASURED[split]
    cells = measured.matrix()
    assert stated["claims"] == sum(cells.values())
    assert stated["right"] == sum(n for (gold, given), n in cells.items() if gold == given)
    assert stated["contradicted"] == found(measured, "CONTRADICTED")
    assert stated["supported"] == found(measured, "SUPPORTED")


def test_the_rules_say_right_or_wrong_only_where_they_are_sure() -> None:
    """The goals for the rules: both labels right in at least 85% of the few claims that get them, at any recall."""
    supported = [one["supported"] for one in MEASURED.values()]
    contradicted = [one["contradicted"] for one in MEASURED.values()]
    assert sum(one["right"] for one in supported) >= 0.85 * sum(one["given"] for one in supported)
    assert sum(one["right"] for one in contradicted) >= 0.85 * sum(one["given"] for one in contradicted)


def test_the_notice_says_that_the_judge_is_a_test_double() -> None:
    assert "test double" in OFFLINE_NOTICE
    for one in MEASURED.values():
        assert "{right} of {gold} wrong claims found".format(**one["contradicted"]) in OFFLINE_NOTICE


@each_case("release", ["0.1", "0.2", "0.3"])
def test_a_run_of_an_earlier_release_is_not_given_the_figures_of_these_rules(release: str) -> None:
    folder = ROOT / "tests" / "formats" / release / "run"
    assert offline_notices([storage.read_manifest(folder)]) == (EARLIER_NOTICE,)
    text = markdown(contents([gather(folder)], [None]))
    assert EARLIER_NOTICE in text
    assert "test double" not in text
    assert not [one for one in MEASURED.values() if f"{one['part']} gold part" in text]


def test_runs_of_two_releases_get_both_notices_once() -> None:
    old, new = storage.read_manifest(ROOT / "tests" / "formats" / "0.2" / "run"), manifest(plan())
    assert offline_notices([new, old, new]) == (OFFLINE_NOTICE, EARLIER_NOTICE)
    real = plan(targets=("openai:a",), verifiers=["anthropic:c", "google:g"])
    assert offline_notices([manifest(real)]) == ()
