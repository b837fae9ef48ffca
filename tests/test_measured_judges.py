"""The figures of a language model as judge on the judging page come from kept records of judge checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from src.findings.analysis.judge_agreement import gold_replies, read_check
from src.stats.clustered import ClusteredShare
from src.stats.confusion import GoldReply, precision, precision_with_spurious, recall
from tests.helpers import ROOT

MEASURED = ROOT / "docs" / "measured"
PAGE = ROOT / "docs" / "judging.md"


def shown(share: ClusteredShare) -> str:
    assert share.value is not None and share.low is not None and share.high is not None
    return f"{share.count} of {share.n}, {share.value:.1%} ({share.low:.0%} to {share.high:.0%})"


def row(name: str, replies: Sequence[GoldReply]) -> str:
    """Found, right, and right if every claim outside the gold set is wrong; intervals by reply."""
    matched = [reply.confusion for reply in replies]
    cells = [name]
    for label in ("SUPPORTED", "CONTRADICTED"):
        cells += [shown(recall(matched, label)), shown(precision(matched, label))]
        cells.append(shown(precision_with_spurious(replies, label)))
    return f"| {' | '.join(cells)} |"


def rows() -> list[str]:
    found = {path: gold_replies(read_check(path)) for path in sorted(MEASURED.glob("language_model_*.json"))}
    listed = [row(named(path), replies) for path, replies in found.items()]
    after = [reply for path, replies in found.items() if "random" not in path.name for reply in replies]
    return [*listed, row("all but the first look", after)]


def named(path: Path) -> str:
    record = read_check(path)
    return f"`{path.stem.removeprefix('language_model_')}`: {record.replies} replies, {record.claims} claims"


def test_the_table_of_the_judging_page_is_computed_from_the_records() -> None:
    assert "\n".join(rows()) in PAGE.read_text(encoding="utf-8")


def test_at_least_100_claims_were_judged_on_each_part() -> None:
    claims = Counter[str]()
    for path in MEASURED.glob("language_model_*.json"):
        claims[read_check(path).split] += read_check(path).claims
    assert claims["held_out"] >= 100 and claims["second"] >= 300
