"""The audit sample: verdicts with one claim per call compared with those in shared calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from src.exports.tables import Exported, trial_rows
from src.findings.isolation import BothWays, Judge
from src.findings.read_run import gather
from src.reports.markdown import markdown
from src.reports.sections import contents
from tests.findings.report_run import A, audited, small_manifest, small_plan, small_run, write_run
from tests.helpers import result

ONE, TWO = Judge("judge_1", "openai:x"), Judge("judge_2", "google:y")


def test_labels_that_differ_are_counted_by_judge(tmp_path: Path) -> None:
    found, _ = small_run(tmp_path)
    audit = found.audit
    assert (audit.replies, audit.claims) == (1, 3)
    assert [(audit.differing(judge).count, audit.differing(judge).n) for judge in (ONE, TWO)] == [(0, 3), (1, 3)]
    assert audit.pooled() == {
        BothWays("SUPPORTED", "SUPPORTED"): 2,
        BothWays("NOT_IN_KEY", "NOT_IN_KEY"): 3,
        BothWays("NOT_IN_KEY", "CONTRADICTED"): 1,
    }


def test_the_effect_on_accuracy_is_that_of_shared_calls(tmp_path: Path) -> None:
    """Alone: 2 of 2 decided verdicts support. Shared: 2 of 3."""
    write_run(tmp_path, [audited(result(target=A, repetition=n)) for n in (1, 2)], small_manifest())
    audit = gather(tmp_path).audit
    assert len(audit.accuracy) == 2 and audit.effect().units == 1
    assert audit.effect().value == pytest.approx(-1 / 3)


def test_a_judge_that_failed_one_way_is_left_out(tmp_path: Path) -> None:
    one = audited(result(target=A))
    shared = {"judge_1": one.shared_verdicts["judge_1"][:1], "judge_2": ()}
    write_run(tmp_path, [one.model_copy(update={"shared_verdicts": shared})], small_manifest())
    audit = gather(tmp_path).audit
    assert (audit.claims, audit.differing(ONE).n, audit.differing(TWO).n) == (1, 1, 0)


def test_a_reply_counts_only_if_a_claim_of_it_has_a_verdict_both_ways(tmp_path: Path) -> None:
    both = audited(result(target=A))
    neither = audited(result(target=A, repetition=2)).model_copy(update={"shared_verdicts": {"judge_1": ()}})
    unasked = audited(result(target=A, repetition=3)).model_copy(update={"shared_verdicts": {}})
    write_run(tmp_path, [both, neither, unasked], small_manifest())
    audit = gather(tmp_path).audit
    assert (audit.replies, audit.claims) == (1, 3)


def test_a_trial_that_was_not_scored_is_not_audited(tmp_path: Path) -> None:
    failed = audited(result(target=A, repetition=2, outcome="judge_failure"))
    write_run(tmp_path, [audited(result(target=A)), failed], small_manifest())
    audit = gather(tmp_path).audit
    assert (audit.replies, audit.claims, len(audit.accuracy)) == (1, 3, 1)
    assert (audit.differing(ONE).n, audit.pooled().total()) == (3, 6)


def test_the_report_gives_the_difference(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path)
    text = markdown(contents([found], [judges]))
    assert (
        "Verified both ways: 1 reply with 3 claims, with one claim per call, which counts, and in shared calls, as other "
        "replies are. In shared calls, accuracy over these claims differs from one claim per call by −0.33 on average "
        "over 1 trial of 1 scenario."
    ) in text
    assert "| judge\\_2 | google:y | 33% (" in text
    assert "| NOT_IN_KEY | 0 | 1 | 3 |" in text
    assert "| claims per verifier call | several; one in marked passages and badly covered replies" in text


def test_a_run_without_an_audit_says_that_nothing_was_measured(tmp_path: Path) -> None:
    write_run(tmp_path, [result(target=A)], small_manifest())
    found = gather(tmp_path)
    assert found.audit.effect().value is None
    assert "Effect of shared calls: none measured" in markdown(contents([found], [None]))


def test_sentences_that_became_claims_as_written_stand_beside_coverage(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path)
    text = markdown(contents([found], [judges]))
    assert "| sentences covered at first | covered finally | left out | claims made of these |" in text
    assert "| 5 of 7 | 5 of 7 | 2 of 7 | 1 |" in text


def test_exported_verdicts_keep_both_ways_apart() -> None:
    about = Exported.of(small_manifest(small_plan()))
    rows = [row for table, row in trial_rows(audited(result(target=A)), about) if table.name == "verdict"]
    asked = [(row["judge"], row["asked"], row["claim_id"], row["label"]) for row in rows]
    assert len(asked) == len(set(asked)) == 12
    assert ("judge_2", "shared_call", "Q1.C2", "CONTRADICTED") in asked
    assert ("judge_2", "alone_or_together", "Q1.C2", "NOT_IN_KEY") in asked
