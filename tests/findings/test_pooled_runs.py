"""Two runs of one study show a target once; other runs that share a target say why they are apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.errors import InputError
from src.findings.compare import compare_runs
from src.findings.estimates import estimate
from src.findings.read_run import gather, gather_all
from src.reports.markdown import markdown
from src.reports.sections import contents
from src.reports.write import write_report
from src.schemas import RunPlan
from tests.findings.report_run import write_run
from tests.helpers import final_claim, manifest, plan, result

TARGETS = ("openai:one", "xai:two")


def made(folder: Path, run_id: str, accuracies: tuple[float, ...], **changes: object) -> Path:
    whole: RunPlan = plan(targets=TARGETS, repeats=len(accuracies)).model_copy(update=changes)
    results = [
        result(
            target=target,
            repetition=n,
            accuracy=value,
            final_claims=[final_claim(label="CONTRADICTED", severity="high")],
        )
        for n, value in enumerate(accuracies, 1)
        for target in TARGETS
    ]
    write_run(folder / run_id, results, manifest(whole).model_copy(update={"run_id": run_id}))
    return folder / run_id


def text_of(*runs: Path) -> str:
    return markdown(contents(found := gather_all(runs), [None] * len(found))).replace("\\", "")


def test_runs_of_one_study_are_pooled_as_repeats(tmp_path: Path) -> None:
    runs = made(tmp_path, "A", (1.0, 0.5)), made(tmp_path, "B", (0.0, 0.5, 0.5), seed=7)
    (found,) = gather_all(runs)
    rows = found.of_target(TARGETS[0])
    assert [row.repetition for row in rows] == [1, 2, 3, 4, 5]
    assert len({row.trial_id for row in found.rows}) == 10
    assert (found.planned, found.manifest.plan.repeats, found.incomplete) == (10, 5, "")
    one = estimate(rows, "accuracy")
    assert (one.value, one.units, one.answers) == (0.5, 1, 5)
    for row in found.rows:
        trial = found.trial(row.trial_id)
        assert (trial.trial_id, trial.repetition) == (row.trial_id, row.repetition)
        assert trial.final_scores is not None and trial.final_scores.accuracy == row.score("accuracy")
    text = text_of(*runs)
    assert "Runs A, B are of one study" in text and "A + B" in text
    assert text.count("| openai:one | 5 |") >= 1
    assert "(A)" not in text and "no. 2" not in text


def test_every_page_of_a_pooled_report_can_be_written(tmp_path: Path) -> None:
    runs = made(tmp_path, "A", (1.0,)), made(tmp_path, "B", (0.0,))
    written = write_report(runs, tmp_path / "report")
    assert any(path.suffix == ".html" for path in written)
    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "report").rglob("*.html")]
    for repetition in (1, 2):
        assert sum(f"s1.openai-one.r{repetition}" in page for page in pages) >= 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"isolation": "claim"}, "they differ in isolation"),
        ({"verifiers": ("google:a", "google:b")}, "they differ in verifiers"),
    ],
)
def test_runs_that_differ_have_rows_of_their_own_and_say_why(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    text = text_of(made(tmp_path, "A", (1.0,)), made(tmp_path, "B", (0.0,), **changes))
    said = " ".join(text.replace(">", "").split())
    assert f"openai:one, xai:two are in A and in B, which are not pooled, because {why}." in said
    assert "| A | openai:one |" in text and "| B | openai:one |" in text


def test_a_run_that_is_given_twice_is_never_pooled_with_itself(tmp_path: Path) -> None:
    run = made(tmp_path, "A", (1.0,))
    assert [len(found.rows) for found in gather_all([run, run])] == [2, 2]
    assert "not pooled, because they are the same run" in " ".join(text_of(run, run).replace(">", "").split())


def test_compare_pools_runs_of_one_study(tmp_path: Path) -> None:
    runs = made(tmp_path, "A", (1.0, 0.5)), made(tmp_path, "B", (0.0,))
    compared = compare_runs(runs, by="target", measures=["accuracy"], floor=0.05)
    assert compared.systems == TARGETS  # type: ignore[union-attr]
    assert compared.means["accuracy"][TARGETS[0]].answers == 3  # type: ignore[union-attr]
    (one,) = compared.comparisons  # type: ignore[union-attr]
    assert one.paired.unmatched == 0


def test_pooled_trials_are_those_of_the_runs(tmp_path: Path) -> None:
    runs = made(tmp_path, "A", (1.0,)), made(tmp_path, "B", (0.0,))
    alone, (found,) = [gather(run) for run in runs], gather_all(runs)
    assert found.judged == {
        verifiers: {name: counts + alone[1].judged[verifiers][name] for name, counts in by.items()}
        for verifiers, by in gather(runs[0]).judged.items()
    }
    assert found.calls.spending == []
    with pytest.raises(InputError, match="is not a measure"):
        compare_runs(runs, by="target", measures=["speed"], floor=0.05)
