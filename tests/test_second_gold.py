"""The second and third gold parts: quotes are in replies, evidence in keys or library, and the READMEs count right.

Nothing is tuned on these parts, so tests count and compare, and no test says how well a judge does on them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from src.judge_check.gold import load_gold
from src.planning.plan import make_plan
from src.records.judge_check import GoldFile, Split
from src.records.study import Study, TargetOptions
from src.stats.agreement import cohen_kappa

from .helpers import ROOT

LABELS = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")
PARTS: dict[Split, int] = {"second": 48, "third": 40}
"""Part to its number of replies."""
each_part = pytest.mark.parametrize("part", PARTS)


def paths(part: Split) -> list[Path]:
    return sorted((ROOT / "gold" / part).glob("*.json"))


def load(part: Split) -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths(part)]


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, str | None], frozenset[str]]:
    """Scenario and variant to the ids that a label may cite: of the key, and of the library where the person lives."""
    study = Study(
        scenarios=(str(ROOT / "scenarios" / "v1"),),
        targets=(TargetOptions(model="fake:careful"),),
        plan_year=2026,
        allow_expired=True,
    )
    plan = make_plan(study)
    return {
        (one.scenario.scenario_id, one.variant): one.scenario.answer_key.evidence_ids()
        | {fact.fact_id for fact in plan.background if not fact.states or one.state_code in fact.states}
        for one in plan.scenarios
    }


@each_part
def test_every_quote_is_in_its_reply_and_every_cited_id_in_its_key_or_the_library(
    part: Split, known: dict[tuple[str, str | None], frozenset[str]]
) -> None:
    replies: set[str] = set()
    for file in load(part):
        for reply in file["replies"]:
            replies.add(reply["reply_id"])
            ids = known[file["scenario_id"], reply["variant"]]
            assert all(error["sentence"] in reply["text"] for error in reply["planted_errors"])
            assert (reply["quality"] == "good") <= (not reply["planted_errors"])
            for claim in reply["claims"]:
                where = f"{reply['reply_id']} {claim['claim_id']}"
                assert claim["quotes"] and all(quote in reply["text"] for quote in claim["quotes"]), where
                for label in (claim, *claim["labelings"]):
                    assert label["label"] in LABELS, where
                    assert set(label["evidence"]) <= ids, where
                    assert bool(label["evidence"]) == (label["label"] != "NOT_IN_KEY"), where
                    assert (label["severity"] != "none") == (label["label"] == "CONTRADICTED"), where
                assert any(claim["label"] == label["label"] for label in claim["labelings"]), where
    assert len(replies) == PARTS[part]


@each_part
def test_the_readme_counts_what_is_there(part: Split) -> None:
    text = " ".join((ROOT / "gold" / part / "README.md").read_text(encoding="utf-8").split())
    replies = [reply for file in load(part) for reply in file["replies"]]
    claims = [claim for reply in replies for claim in reply["claims"]]
    assert f"{len(replies)} replies in ordinary assistant prose" in text
    qualities = Counter(reply["quality"] for reply in replies)
    assert f"{qualities['good']} replies are entirely correct by their writer's intent" in text
    assert all(f" {qualities[one]} are {one}" in text for one in ("mixed", "poor"))
    labels = Counter(claim["label"] for claim in claims)
    counted = "{} SUPPORTED, {} CONTRADICTED, {} NOT_IN_KEY".format(*(labels[label] for label in LABELS))
    assert f"{len(claims)} labeled claims: {counted}" in text
    pairs = [(claim["labelings"][0]["label"], claim["labelings"][1]["label"]) for claim in claims]
    same = sum(a == b for a, b in pairs)
    assert f"agree on {same} of {len(claims)} labels ({same / len(claims):.1%}" in text
    kappa = cohen_kappa([list(pair) for pair in pairs])
    stated = re.search(r"kappa (0\.\d+)", text)
    assert stated and kappa is not None
    assert float(stated[1]) == pytest.approx(kappa, abs=0.0006)


@pytest.mark.slow
@each_part
def test_judge_check_reads_what_is_in_the_files(part: Split) -> None:
    gold = load_gold(part)
    raw = [reply for file in load(part) for reply in file["replies"]]
    assert [item.reply.reply_id for item in gold.items] == [reply["reply_id"] for reply in raw]
    assert gold.claims == sum(len(reply["claims"]) for reply in raw)
    for item, reply in zip(gold.items, raw, strict=True):
        assert len(item.reply.planted_errors) == len(reply["planted_errors"])
        assert all(len(claim.labelings) == 2 for claim in item.reply.claims)
    assert sorted(gold.files) == [f"{part}/{path.name}" for path in paths(part)]


def test_the_parts_have_one_record() -> None:
    for path in sorted((ROOT / "gold").glob("*/*.json")):
        file = GoldFile.model_validate_json(path.read_bytes())
        assert file.split in (None, path.parent.name)
