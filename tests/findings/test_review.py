"""Reviews beside the runs that they review: agreement, corrected headlines, the report's section, gold files."""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from src import storage
from src.api.reviews import export_review, start_review
from src.errors import InputError
from src.findings.estimates import estimate
from src.findings.read_run import gather
from src.findings.review import (
    JUDGES,
    PEOPLE,
    PairAgreement,
    Part,
    Rater,
    ReadReview,
    corrected_headline,
    corrected_headlines,
    read_review,
    review_agreement,
)
from src.judge_check.check import CheckOptions, check_judges
from src.judge_check.gold import load_gold
from src.reading import Run
from src.records.run import Doubt
from src.records.study import JudgeOptions
from src.reports.write import write_report
from src.store.doubts import add_doubt
from src.trials.row import LABELS

from ..runs import THREE, call, newest
from ..test_people import answered

krippendorff = importlib.import_module("krippendorff")
raters = importlib.import_module("statsmodels.stats.inter_rater")


def mark_some(run: Path) -> None:
    """The rule-based judge flags no trial of these, so a reader marks some."""
    run_id = storage.read_manifest(run).run_id
    for trial in Run(run).trials():
        name = trial.trial_id
        if name.endswith("wrong.r1") or name.startswith("scenario_001.fake-careful"):
            claim = trial.claims[0].claim_id
            add_doubt(run.parent, Doubt(run_id=run_id, trial_id=name, claim_id=claim, note="?", marked_at="2026"))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("judged")
    targets = ["--target", "fake:careful", "--target", "fake:wrong"]
    code, _, err = call("run", "--scenario", THREE, *targets, "--repeats", "2", "--out", out, "--quiet")
    assert code == 0, err
    mark_some(newest(out))
    return newest(out)


@pytest.fixture(scope="module")
def folder(judged: Path) -> Path:
    """A finished review by three people who share the work; r2 disagrees about some claims, and nobody settles it."""
    made = start_review(judged, reviewers=["r1", "r2", "r3"], split=True, sample=4, out=judged.parent)
    asyncio.run(answered(made.path))
    return made.path


@pytest.fixture(scope="module")
def settled(judged: Path) -> Path:
    """A finished review by two people and one who settles ties."""
    made = start_review(judged, reviewers=["r1", "r2"], adjudicator="r4", sample=4, out=judged.parent)
    asyncio.run(answered(made.path))
    return made.path


@pytest.fixture(scope="module")
def review(folder: Path) -> ReadReview:
    return read(folder)


def read(folder: Path) -> ReadReview:
    found = read_review(gather(folder))
    assert isinstance(found, ReadReview), found
    return found


def results(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / storage.RESULTS).read_text(encoding="utf-8").splitlines()
    return {line["trial_id"]: line for line in map(json.loads, lines)}


def labels_by_person(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """By trial and claim: what each person said, from the answers themselves in the journal."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in (folder / storage.JOURNAL).read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if "|verifier|" in one.get("call", "") and one["outcome"] == "ok" and one["final"]:
            for verdict in json.loads(one["text"])["verdicts"]:
                trial = one["call"].split("|")[0]
                found.setdefault((trial, verdict["claim_id"]), {})[one["served_model"]] = verdict["label"]
    return found


def selected(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    transcripts = storage.read_manifest(folder).transcripts
    assert transcripts is not None and transcripts.selected is not None
    return transcripts.selected.chosen, transcripts.selected.sampled, transcripts.selected.of


def pair(review: ReadReview, first: Rater, second: Rater, part: Part, on: str = "labels") -> PairAgreement:
    found = review_agreement(review, resamples=20).pairs
    return next(one for one in found if (one.first, one.second, one.part, one.on) == (first, second, part, on))


def by_hand(pairs: list[tuple[str, str]], weights: list[float]) -> tuple[float, float]:
    """Agreement and kappa of two raters, from the definitions."""
    n = sum(weights)
    table = np.zeros((3, 3))
    for (one, two), weight in zip(pairs, weights, strict=True):
        table[LABELS.index(one), LABELS.index(two)] += weight / n
    agreed = float(np.trace(table))
    chance = float(table.sum(1) @ table.sum(0))
    return agreed, (agreed - chance) / (1 - chance)


@pytest.mark.slow
def test_people_are_told_apart_though_they_share_the_work(review: ReadReview, folder: Path) -> None:
    expected = Counter(person for said in labels_by_person(folder).values() for person in said)
    assert review.people == ("r1", "r2", "r3")
    found = Counter(rater.name for claim in review.claims for rater in claim.labels if rater.kind == "person")
    assert found == expected


def test_agreement_of_two_people_equals_statsmodels(review: ReadReview, folder: Path) -> None:
    chosen, _, _ = selected(folder)
    said = [
        one for (trial, _), one in labels_by_person(folder).items() if trial in chosen and {"r1", "r2"} <= one.keys()
    ]
    pairs = [(one["r1"], one["r2"]) for one in said]
    found = pair(review, Rater("person", "r1"), Rater("person", "r2"), "flagged")
    table, _ = raters.to_table(np.array([[LABELS.index(label) for label in one] for one in pairs]), bins=3)
    assert found.items == len(pairs) > 10
    assert found.kappa.value == pytest.approx(raters.cohens_kappa(table, return_results=False))
    agreed, kappa = by_hand(pairs, [1.0] * len(pairs))
    assert found.kappa.value == pytest.approx(kappa)
    assert found.agreement.value == pytest.approx(agreed)


def test_alpha_of_all_people_equals_krippendorff(review: ReadReview, folder: Path) -> None:
    chosen, _, _ = selected(folder)
    people = ("r1", "r2", "r3")
    rows = [
        [LABELS.index(one[name]) if name in one else np.nan for name in people]
        for (trial, _), one in labels_by_person(folder).items()
        if trial in chosen
    ]
    expected = krippendorff.alpha(reliability_data=np.array(rows, float).T, level_of_measurement="nominal")
    found = next(one for one in review_agreement(review, resamples=20).people if one.part == "flagged")
    assert found.claims == len(rows)
    assert found.alpha.value == pytest.approx(expected)


def test_agreement_over_the_whole_run_weighs_sampled_trials(review: ReadReview, folder: Path, judged: Path) -> None:
    chosen, sampled, of = selected(folder)
    assert 0 < len(sampled) < of
    earlier = results(judged)
    final = {(name, one["claim_id"]): one["label"] for name, line in earlier.items() for one in line["final_claims"]}
    pairs, weights = [], []
    for (trial, claim), said in labels_by_person(folder).items():
        if "r2" in said and final.get((trial, claim)):
            pairs.append((said["r2"], final[trial, claim]))
            weights.append(1.0 if trial in chosen else of / len(sampled))
    found = pair(review, Rater("person", "r2"), JUDGES, "whole run")
    agreed, kappa = by_hand(pairs, weights)
    assert found.items == len(pairs)
    assert (found.agreement.value, found.kappa.value) == pytest.approx((agreed, kappa))


def test_people_together_are_compared_with_judges_on_codes(review: ReadReview, folder: Path, judged: Path) -> None:
    chosen, _, _ = selected(folder)
    before, after = results(judged), results(folder)
    same = total = 0
    for name in chosen:
        theirs = {one["question_group"]: one["code"] for one in before[name]["study_codes"]}
        for one in after[name]["study_codes"]:
            both = (one["code"], theirs[one["question_group"]])
            if not {None, "incomplete_data"}.intersection(both):
                same += both[0] == both[1]
                total += 1
    found = pair(review, PEOPLE, JUDGES, "flagged", "codes")
    assert found.items == total
    assert found.agreement.value == pytest.approx(same / total)


def test_with_flagged_trials_alone_nothing_is_said_of_the_whole_run(judged: Path, tmp_path: Path) -> None:
    made = start_review(judged, reviewers=["r1", "r2"], only="flagged", out=tmp_path)
    asyncio.run(answered(made.path))
    found = read(made.path)
    agreement = review_agreement(found, resamples=20)
    assert {one.part for one in agreement.pairs} == {"flagged"}
    assert "drawn at random" in (agreement.why_no_whole or "")
    for by_code in corrected_headlines(found).values():
        assert all("too few labeled trials: 0 of" in (one.corrected.why_not or "") for one in by_code.values())


def test_a_headline_is_not_corrected_by_few_labels(review: ReadReview) -> None:
    found = corrected_headline(review, "fake:careful", "accurate_complete")
    assert found.corrected.value is None
    assert (found.corrected.why_not or "").startswith("too few labeled trials")
    assert found.judged == estimate(review.earlier.of_target("fake:careful"), "accurate_complete")


def test_if_people_judge_every_trial_the_headline_is_that_of_their_codes(judged: Path, tmp_path: Path) -> None:
    made = start_review(judged, reviewers=["r1", "r2"], adjudicator="r4", sample=100, out=tmp_path)
    asyncio.run(answered(made.path))
    found = read(made.path)
    for target, by_code in corrected_headlines(found).items():
        for code, one in by_code.items():
            theirs = estimate(found.found.of_target(target), code)
            assert one.unsettled == 0
            assert one.corrected.value == pytest.approx(theirs.value)


def test_the_report_of_a_review_has_its_section(folder: Path, judged: Path, tmp_path: Path) -> None:
    write_report([folder], tmp_path / "report", evidence=False)
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "## Review by people" in text
    assert f"Run {judged.name} was reviewed by 3 people" in text.replace("`", "").replace("\\", "")
    for heading in ("corrected by people (95% interval)", "Krippendorff's alpha", "Cohen's kappa"):
        assert heading in text
    assert "too few labeled trials" in text
    assert "Incomplete: this run has" not in text
    assert "Review by people" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_a_report_says_if_the_reviewed_run_is_gone_or_another(folder: Path, judged: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copytree(folder, tmp_path / "runs" / folder.name))
    write_report([alone], tmp_path / "report", evidence=False)
    assert f"the run that it reviews, {judged.name}, is not at" in said_in(tmp_path / "report")
    shutil.copytree(folder, tmp_path / "runs" / judged.name)
    write_report([alone], tmp_path / "report", evidence=False)
    assert "is not the run that it reviews" in said_in(tmp_path / "report")


def said_in(report: Path) -> str:
    return (report / "report.md").read_text(encoding="utf-8").replace("\\", "")


def test_a_report_of_another_run_has_no_such_section(judged: Path, tmp_path: Path) -> None:
    write_report([judged], tmp_path / "report", evidence=False)
    assert "Review by people" not in said_in(tmp_path / "report")


@pytest.mark.slow
def test_a_finished_review_is_a_gold_set_for_judge_check(settled: Path, tmp_path: Path) -> None:
    exported = export_review(settled, tmp_path / "gold")
    finals = [one for line in results(settled).values() for one in line["final_claims"]]
    assert exported.claims + sum(exported.left_out.values()) == len(finals)
    gold = load_gold("held_out", exported.folder)
    assert (gold.claims, len(gold.items)) == (exported.claims, exported.replies)
    assert Counter(claim.label for item in gold.items for claim in item.reply.claims) == Counter(
        one["label"] for one in finals if one["label"]
    )
    asked = {one["user_message"] for line in results(settled).values() for one in line["conversation"]}
    assert all(item.asked.question in asked for item in gold.items)
    assert all(len(claim.labelings) == 2 for item in gold.items for claim in item.reply.claims)
    judges = JudgeOptions.model_validate({"judges": ["offline:rules"]})
    checked = check_judges(CheckOptions(judges=judges, gold=exported.folder, out=tmp_path / "checks"))
    assert checked.record.claims == exported.claims
    assert checked.record.end_to_end is not None


def test_what_people_left_open_is_not_exported_but_counted(folder: Path, tmp_path: Path) -> None:
    exported = export_review(folder, tmp_path / "gold")
    finals = [one for line in results(folder).values() for one in line["final_claims"]]
    open_ones = sum(one["label"] is None for one in finals)
    assert exported.left_out["people did not agree on it"] == open_ones > 0
    assert exported.claims == len(finals) - sum(exported.left_out.values())


def test_only_a_finished_review_is_exported(judged: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a review by people"):
        export_review(judged, tmp_path / "gold")
    started = start_review(judged, reviewers=["r1", "r2"], sample=1, out=tmp_path / "runs")
    with pytest.raises(InputError, match="is not finished"):
        export_review(started.path, tmp_path / "gold")
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "mine.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="already exists"):
        export_review(folder, tmp_path / "gold")
