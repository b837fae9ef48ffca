"""The second gold part: its quotes are in its replies, its evidence is in the keys, and its README counts right.

Nothing is tuned on this part, so tests count and compare, and no test says how well a judge does on it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from src.judge_check.gold import load_gold
from src.planning.plan import make_plan
from src.records.gold import GoldFile
from src.records.study import ModelSettings, Study
from src.stats.agreement import cohen_kappa

from .helpers import ROOT

FOLDER = ROOT / "gold" / "second"
FILES = sorted(FOLDER.glob("*.json"))
LABELS = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")


def load() -> list[dict[str, Any]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in FILES]


@pytest.fixture(scope="module")
def keys() -> dict[tuple[str, str | None], frozenset[str]]:
    study = Study(
        scenarios=(str(ROOT / "scenarios" / "v1"),),
        targets=(ModelSettings(model="fake:careful"),),
        plan_year=2026,
        allow_expired=True,
    )
    return {
        (planned.scenario.scenario_id, planned.variant): planned.scenario.answer_key.evidence_ids()
        for planned in make_plan(study).scenarios
    }


def test_every_quote_is_in_its_reply_and_every_cited_id_in_its_key(
    keys: dict[tuple[str, str | None], frozenset[str]],
) -> None:
    replies: set[str] = set()
    for file in load():
        for reply in file["replies"]:
            replies.add(reply["reply_id"])
            known = keys[file["scenario_id"], reply["variant"]]
            assert all(error["sentence"] in reply["text"] for error in reply["planted_errors"])
            assert (reply["quality"] == "good") <= (not reply["planted_errors"])
            for claim in reply["claims"]:
                where = f"{reply['reply_id']} {claim['claim_id']}"
                assert claim["quotes"] and all(quote in reply["text"] for quote in claim["quotes"]), where
                for label in (claim, *claim["labelings"]):
                    assert label["label"] in LABELS, where
                    assert set(label["evidence"]) <= known, where
                    assert bool(label["evidence"]) == (label["label"] != "NOT_IN_KEY"), where
                    assert (label["severity"] != "none") == (label["label"] == "CONTRADICTED"), where
                assert any(claim["label"] == label["label"] for label in claim["labelings"]), where
    assert len(replies) == 48


def test_the_readme_counts_what_is_there() -> None:
    text = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
    claims = [claim for file in load() for reply in file["replies"] for claim in reply["claims"]]
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


def test_judge_check_reads_what_is_in_the_files() -> None:
    gold = load_gold("second")
    raw = [reply for file in load() for reply in file["replies"]]
    assert [item.reply.reply_id for item in gold.items] == [reply["reply_id"] for reply in raw]
    assert gold.claims == sum(len(reply["claims"]) for reply in raw)
    for item, reply in zip(gold.items, raw, strict=True):
        assert len(item.reply.planted_errors) == len(reply["planted_errors"])
        assert all(len(claim.labelings) == 2 for claim in item.reply.claims)
    assert sorted(gold.files) == [f"second/{path.name}" for path in FILES]


def test_the_parts_have_one_record() -> None:
    for path in sorted((ROOT / "gold").glob("*/*.json")):
        file = GoldFile.model_validate_json(path.read_bytes())
        assert file.split in (None, path.parent.name)
