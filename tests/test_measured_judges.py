"""The figures of a language model as judge on the judging page come from kept records of judge checks.

The records of release 0.3 are refused by this release as checks, so their counts are read here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from src.errors import InputError
from src.findings.judge_agreement import gold_reply, read_check
from src.judge_check.gold import load_gold
from src.records.judge_check import JudgeMeasured, Split
from src.stats.clustered import ClusteredShare
from src.stats.confusion import JudgedGold, precision, precision_with_spurious, recall
from tests.helpers import ROOT

MEASURED = ROOT / "docs" / "measured"
PAGE = ROOT / "docs" / "judging.md"
PARTS: tuple[Split, ...] = ("second", "third")


def shown(share: ClusteredShare) -> str:
    assert share.value is not None and share.low is not None and share.high is not None
    return f"{share.count} of {share.n}, {share.value:.1%} ({share.low:.0%} to {share.high:.0%})"


def row(name: str, replies: Sequence[JudgedGold]) -> str:
    """Found, right, and right if every claim outside the gold set is wrong; intervals by reply."""
    matched = [reply.confusion for reply in replies]
    cells = [name]
    for label in ("SUPPORTED", "CONTRADICTED"):
        cells += [shown(recall(matched, label)), shown(precision(matched, label))]
        cells.append(shown(precision_with_spurious(replies, label)))
    return f"| {' | '.join(cells)} |"


@dataclass(frozen=True)
class Kept:
    name: str
    split: str
    claims: int
    replies: list[JudgedGold]


@cache
def kept() -> tuple[Kept, ...]:
    return tuple(map(read, sorted(MEASURED.glob("language_model_*.json"))))


def read(path: Path) -> Kept:
    record = json.loads(path.read_bytes())
    assert record["format"] == 2
    return Kept(
        path.stem.removeprefix("language_model_"),
        record["split"],
        record["claims"],
        [counts(reply) for reply in record["end_to_end"]["replies"]],
    )


def counts(reply: dict[str, Any]) -> JudgedGold:
    """The counts of a reply. Gold labels of 0.3 knew no library, so claims that it decided did not count."""
    decided = [one for one in reply["confusion"] if one["given"] != "background"]
    return JudgedGold(
        {(one["gold"], one["given"]): one["claims"] for one in decided},
        {label: n for label, n in reply["spurious"].items() if label != "open"},
    )


def rows() -> list[str]:
    listed = [row(f"`{one.name}`: {len(one.replies)} replies, {one.claims} claims", one.replies) for one in kept()]
    after = [reply for one in kept() if "random" not in one.name for reply in one.replies]
    return [*listed, row("all but the first look", after)]


def test_the_table_of_the_judging_page_is_computed_from_the_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(rows()) in page
    assert "They are of release 0.3," in page


def second_edition() -> list[JudgeMeasured]:
    found = [read_check(path).end_to_end for path in sorted(MEASURED.glob("second_edition_*.json"))]
    return [one for one in found if one]


def test_the_second_edition_s_table_is_computed_from_its_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = []
    for name, one in zip(("second", "third"), second_edition(), strict=True):
        replies = [gold_reply(reply) for reply in one.replies]
        claims = sum(sum(reply.confusion.values()) for reply in replies)
        listed.append(row(f"`{name}`: {len(replies)} replies, {claims} claims", replies))
    assert "\n".join(listed) in page


@pytest.mark.slow
def test_the_share_outside_key_and_library_is_computed_from_its_records() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, one in zip(PARTS, second_edition(), strict=True):
        outside, total = Counter[str](), Counter[str]()
        for reply in one.replies:
            given = Counter[str](reply.spurious)
            for cell in reply.confusion:
                given[cell.given] += cell.claims
            labeled = {label: n for label, n in given.items() if label in ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")}
            outside[reply.reply_id], total[reply.reply_id] = labeled.get("NOT_IN_KEY", 0), sum(labeled.values())
        gold = [claim.label for item in load_gold(name).items for claim in item.reply.claims]
        by_gold = f"{gold.count('NOT_IN_KEY')} of {len(gold)} ({gold.count('NOT_IN_KEY') / len(gold):.0%})"
        by_judges = f"{outside.total()} of {total.total()} ({outside.total() / total.total():.0%})"
        assert f"| {name} | {by_gold} | {by_judges} |" in page


def test_a_record_of_an_earlier_release_is_not_used_as_a_check() -> None:
    for path in MEASURED.glob("language_model_*.json"):
        with pytest.raises(InputError, match=r"another release \(0\.3"):
            read_check(path)


def test_at_least_100_claims_were_judged_on_each_part() -> None:
    claims = Counter[str]()
    for one in kept():
        claims[one.split] += one.claims
    assert claims["held_out"] >= 100 and claims["second"] >= 300
