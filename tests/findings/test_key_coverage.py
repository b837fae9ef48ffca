"""Key coverage: what counts, over which trials, and that it stands beside every accuracy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from src.cli.tables import summary_table
from src.exports.tables import Exported
from src.findings.compare import compare_targets
from src.findings.estimates import group_coverage, key_coverage
from src.findings.read_run import Findings, GroupKey, gather
from src.findings.rule_judge import OFFLINE_NOTICE
from src.reporting import summarize, summary_json
from src.reports.markdown import markdown
from src.reports.score_section import LEAST_COVERED, coverage_sentence
from src.reports.sections import contents
from src.schemas import Label, TrialOutcome, TrialResult
from src.trials.row import ClaimCount, Row
from src.trials.tables import TRIAL
from tests.cases import each_case
from tests.findings.made_runs import write_run
from tests.helpers import claim, final_claim, manifest, plan, result
from tests.runs import call

S: Label = "SUPPORTED"
C: Label = "CONTRADICTED"
N: Label = "NOT_IN_KEY"


def trial(labels: Sequence[Label | None], kinds: Sequence[str] | None = None, **changes: Any) -> TrialResult:
    """A trial with one claim per label."""
    types = kinds or ["factual"] * len(labels)
    names = [f"Q1.C{n}" for n in range(1, len(labels) + 1)]
    claims = [claim(name).model_copy(update={"type": kind}) for name, kind in zip(names, types, strict=True)]
    final = [final_claim(name, label) for name, label in zip(names, labels, strict=True)]
    return result(claims=claims, final_claims=final, **changes)


def found_in(folder: Path, results: Sequence[TrialResult]) -> Findings:
    return gather(write_run(folder, results, plan(repeats=len(results))))


def test_only_factual_claims_with_a_final_label_count(tmp_path: Path) -> None:
    one = trial([S, C, N, N, None, S], ["factual", "factual", "factual", "factual", "factual", "recommendation"])
    share = key_coverage(found_in(tmp_path, [one]).rows)
    assert (share.count, share.n, share.value) == (2, 4, 0.5)
    (row,) = TRIAL.rows(one, Exported.of(manifest(plan(targets=("fake:careful",)))))
    assert (row["factual_claims"], row["key_decided"]) == (4, 2)


@each_case("outcome", ["judge_failure", "tampered", "truncated"])
def test_only_scored_trials_count_as_for_accuracy(outcome: TrialOutcome, tmp_path: Path) -> None:
    found = found_in(tmp_path, [trial([S, N]), trial([N, N], repetition=2, outcome=outcome)])
    share = key_coverage(found.rows)
    assert (share.count, share.n) == (1, 2)
    assert found.group_claims == {GroupKey("fake:careful", "s1", "Q1"): {ClaimCount(1, 2): 1}}


def test_a_trial_without_any_decided_claim_lowers_coverage_though_it_has_no_accuracy(tmp_path: Path) -> None:
    found = found_in(tmp_path, [trial([S]), trial([N, N, N], repetition=2, accuracy=None)])
    assert key_coverage(found.rows).value == 0.25


def test_claims_are_counted_in_the_question_group_of_their_turn(tmp_path: Path) -> None:
    made = trial([S, N])
    grouped = made.conversation[0].model_copy(update={"question_group": "g7"})
    found = found_in(tmp_path, [made.model_copy(update={"conversation": (grouped,)})])
    (key,) = found.group_claims
    assert key == GroupKey("fake:careful", "s1", "g7")
    assert group_coverage(found.group_claims[key]).value == 0.5


def rows_of(scenarios: int, counts: Sequence[tuple[int, int]]) -> list[Row]:
    """One trial per scenario for each count of claims."""
    made = []
    for scenario in range(scenarios):
        for at, one in enumerate(counts):
            given: dict[str, Any] = {
                "trial_id": f"{scenario}-{at}", "scenario_id": str(scenario), "variant": None, "target": "t",
                "repetition": at, "outcome": "scored", "scores": (1.0,) * 4, "labels": (0, 0, 0), "unresolved": 0,
                "codes": (), "answers": (), "errors": (), "refusal": False, "fabricated": False, "review": False,
                "claims": ClaimCount(*one),
            }  # fmt: skip
            made.append(Row(**given))
    return made


def test_scenarios_are_the_units_and_repeats_add_nothing() -> None:
    once, often = ([row for row in rows_of(4, [(at, 10)] * 3) if row.repetition < n] for n, at in ((1, 5), (3, 5)))
    assert key_coverage(once).low == key_coverage(often).low is not None
    assert key_coverage(rows_of(2, [(5, 10)])).low is None


def test_without_a_claim_there_is_no_share() -> None:
    share = key_coverage([])
    assert (share.n, share.value) == (0, None)
    assert coverage_sentence(share) == ("Key coverage: no factual claim has a final label, so accuracy speaks of none.")


def test_it_stands_beside_accuracy_in_the_summary_the_report_and_compare(tmp_path: Path) -> None:
    results = [trial([S, N, N], target="fake:careful"), trial([S, S, C, N], target="fake:wrong", accuracy=0.5)]
    folder = write_run(tmp_path, results, plan(targets=("fake:careful", "fake:wrong")))
    summary = summarize(folder, manifest(plan(targets=("fake:careful", "fake:wrong"))))
    table = summary_table(summary, 80)
    assert max(map(len, table.splitlines())) <= 80
    assert "33%" in table and "75%" in table
    sentence = coverage_sentence(summary.coverage)
    assert sentence.startswith("Key coverage: accuracy speaks of 57% (")
    assert sentence.endswith("of the factual claims; the judges found nothing in the keys that decides the rest.")
    assert sentence in " ".join(table.split())
    document = json.loads(json.dumps(summary_json(summary)))
    assert (document["key_coverage"]["key_decided"], document["key_coverage"]["factual_claims"]) == (4, 7)
    assert document["targets"]["fake:wrong"]["key_coverage"]["share"] == 0.75
    found = gather(folder)
    text = markdown(contents([found], [None]))
    assert sentence in text
    assert "| scenarios | claims | of these open | accuracy | key coverage (95% interval) | completeness |" in text
    compared = compare_targets([found], ["accuracy"])
    assert compared.coverage["fake:careful"].value == pytest.approx(1 / 3)
    code, out, _ = call("compare", folder, "--measure", "accuracy")
    assert code == 0
    assert "key coverage 33% (" in out and "key coverage 75% (" in out
    assert "the judges found nothing in the keys that decides the rest." in " ".join(out.split())
    assert "key coverage" not in call("compare", folder, "--measure", "completeness")[1].lower()


def test_drift_and_sensitivity_give_it_too(tmp_path: Path) -> None:
    old = write_run(tmp_path / "old", [trial([S, N])], plan())
    new = write_run(tmp_path / "new", [trial([S, S, S, N])], plan())
    assert "key coverage 50% (" in call("drift", old, new)[1]
    assert " before, 75% (" in call("drift", old, new)[1]
    assert "; key coverage 50% (" in call("sensitivity", old)[1]
    assert "key coverage" not in call("sensitivity", old, "--measure", "completeness")[1]


def test_the_groups_that_the_keys_cover_least_come_first(tmp_path: Path) -> None:
    results = [trial([S] * n + [N], scenario_id=f"s{n}") for n in range(LEAST_COVERED + 2)]
    text = markdown(contents([found_in(tmp_path, results)], [None]))
    part = text[text.index("Question groups with the lowest key coverage") :].split("\n\n")
    assert part[0] == "Question groups with the lowest key coverage; 2 more are in per_question.csv."
    lines = part[1].splitlines()[2:]
    assert len(lines) == LEAST_COVERED
    assert lines[0].startswith("| fake:careful | s0 | [Q1](evidence/1-fake-careful/s0.html) | 0 of 1 | 0% (")
    assert lines[1].startswith("| fake:careful | s1 | [Q1](evidence/1-fake-careful/s1.html#q-Q1) | 1 of 2 | 50% (")


def test_scores_of_the_rule_based_judge_come_with_what_it_is(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path, [trial([S]), trial([S], target="fake:wrong")], plan(targets=("fake:careful", "fake:wrong"))
    )
    wanted = " ".join(OFFLINE_NOTICE.split())
    for command in (("compare", folder), ("sensitivity", folder), ("drift", folder, folder)):
        assert wanted in " ".join(call(*command)[1].split())
        assert json.loads(call(*command, "--json")[1])["notices"] == [OFFLINE_NOTICE]


def test_scores_of_other_judges_come_without_that_notice(tmp_path: Path) -> None:
    made = plan(targets=("openai:a", "openai:b"), verifiers=["anthropic:c", "google:g"])
    folder = write_run(tmp_path, [trial([S], target="openai:a"), trial([S], target="openai:b")], made)
    assert "offline:rules" not in call("compare", folder)[1]
