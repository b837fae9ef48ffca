"""A review in a real browser: two people, a browser that is killed, a server that is killed, an adjudicator."""

from __future__ import annotations

import importlib
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from src import storage
from src.findings.read_run import gather
from src.findings.review import Rater, read_review, review_agreement
from src.schemas import CallRecord
from src.trials.row import LABELS
from tests.browser import NEEDS_CHROMIUM, chromium, go, opened, reload_until, served, wait_for_tasks
from tests.runs import ONE, call, newest, replays, verifies

pytestmark = pytest.mark.slow
KEYS = {"SUPPORTED": "1", "CONTRADICTED": "2", "NOT_IN_KEY": "3"}


def opinion(person: str, claim: str, first_fact: str) -> tuple[str, str | None]:
    """What a person says of a claim, with the fact that they cite: r2 finds a third of the claims not in the key."""
    if person == "r2" and sum(map(ord, claim)) % 3 == 0:
        return "NOT_IN_KEY", None
    return "SUPPORTED", first_fact


def judge(page: Any, person: str, most: int) -> int:
    """Judge up to so many claims by keys alone; how many were judged."""
    done = 0
    if page.locator("form.claim").count() == 0 and page.locator("a.button").count():
        page.locator("a.button").first.focus()
        go(page, "Enter")
    while done < most and page.locator("form.claim").count():
        claim = page.inner_text(".claimtext")
        boxes = page.locator('input[name="evidence"]')
        label, fact = opinion(person, claim, boxes.first.get_attribute("value") if boxes.count() else "")
        settles = boxes.count() == 0
        before = page.url.partition("?")[0]
        page.keyboard.press(KEYS["SUPPORTED"] if settles else KEYS[label])
        if fact and not settles:
            page.keyboard.press("j")
            page.keyboard.press("Space")
        go(page, "Control+Enter")
        if page.url.partition("?")[0] == before and page.locator(".problems").count():
            if page.locator("input[name=insist]").count() == 0:  # this fact is no support
                page.keyboard.press("j")
                page.keyboard.press("Space")
                page.keyboard.press(KEYS["NOT_IN_KEY"])
            go(page, "Control+Enter")
        done += 1
    return done


@NEEDS_CHROMIUM
def test_two_people_judge_forty_claims_through_two_kills_and_a_third_settles(tmp_path: Path) -> None:
    out, reviews = tmp_path / "runs", tmp_path / "reviews"
    targets = ("--target", "fake:careful", "--target", "fake:wrong")
    code, _, err = call("run", "--scenario", ONE, *targets, "--out", out, "--quiet")
    assert code == 0, err
    run = newest(out)
    words = ("--reviewers", "r1,r2", "--adjudicator", "r3", "--sample", "2", "--out", reviews)
    with chromium() as browser, served("review", "start", run, *words) as first:
        one, two = opened(browser, first, "r1"), opened(browser, first, "r2", 390)
        assert judge(one, "r1", 12) == 12
        assert judge(two, "r2", 7) == 7
        two.context.close()  # the browser of r2 dies in the middle
        two = opened(browser, first, "r2", 390)
        assert "7 of" in two.inner_text(".bar")
        assert judge(two, "r2", 5) == 5
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
    review = newest(reviews)
    assert len([one for one in calls(review) if "|verifier|" in one.call]) == 24
    with chromium() as browser, served("review", "continue", review) as second:
        one, two, three = (opened(browser, second, person) for person in ("r1", "r2", "r3"))
        assert "12 of" in one.inner_text(".bar")
        judge(one, "r1", 1_000)
        judge(two, "r2", 1_000)
        wait_for_tasks(three)
        assert judge(three, "r3", 1_000) > 0
        reload_until(three, "text=The review is complete")
    records = calls(review)
    judged = Counter(one.served_model for one in records if "|verifier|" in one.call)
    assert judged["r1"] == judged["r2"] >= 40
    assert len({one.call for one in records}) == len(records)
    verifies(review)
    replays(review)
    assert call("compare", run, review)[0] == 0
    assert call("report", review, "--out", tmp_path / "report")[0] == 0
    compare_agreement(review, records)


def compare_agreement(review: Path, records: list[CallRecord]) -> None:
    """What the report says of r1 and r2 equals what another library makes of the journal."""
    raters = importlib.import_module("statsmodels.stats.inter_rater")
    pairs = labels_of_two(records)
    table, _ = raters.to_table(np.array([[LABELS.index(label) for label in one] for one in pairs]), bins=3)
    read = read_review(gather(review))
    assert not isinstance(read, str)
    people = (Rater("person", "r1"), Rater("person", "r2"))
    (found,) = [
        one
        for one in review_agreement(read).pairs
        if (one.first, one.second) == people and (one.part, one.on) == ("sampled", "labels")
    ]
    assert found.items == len(pairs) >= 40
    assert found.agreement.value == pytest.approx(sum(one == two for one, two in pairs) / len(pairs))
    assert found.kappa.value == pytest.approx(raters.cohens_kappa(table, return_results=False))
    assert 0 < (found.agreement.value or 0) < 1


def calls(run: Path) -> list[CallRecord]:
    return list(storage.read_calls(run, storage.read_manifest(run)))


def labels_of_two(records: list[CallRecord]) -> list[tuple[str, str]]:
    """The labels of r1 and r2 of each claim, from the journal alone."""
    labels: dict[str, dict[str, str]] = {}
    for record in records:
        if "|verifier|" in record.call and record.text:
            trial = record.call.partition("|")[0]
            for verdict in json.loads(record.text)["verdicts"]:
                labels.setdefault(f"{trial}|{verdict['claim_id']}", {})[str(record.served_model)] = verdict["label"]
    return [(found["r1"], found["r2"]) for found in labels.values() if {"r1", "r2"} <= found.keys()]
