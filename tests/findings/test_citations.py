"""Citations of targets, counted and with intervals."""

from __future__ import annotations

import pytest

from src.reports.citation_section import citations_of
from src.stats.bounded import bounded_by_cluster
from src.trials.row import NO_SCORES, CitedPage, Row


def row(scenario: str, *outcomes: str) -> Row:
    cited = tuple(
        CitedPage("Q1", f"https://www.medicare.gov/{n}", "disguised" if one == "disguised" else "medicare", one)
        for n, one in enumerate(outcomes)
    )
    return Row(
        f"{scenario}.x.r1", scenario, None, "x:y", 1, "scored", NO_SCORES, (0, 0, 0), 0, (), (), (), False, False,
        False, citations=cited,
    )  # fmt: skip


def test_shares_are_clustered_by_scenario_and_name_what_was_not_compared() -> None:
    rows = [row("a", "supported", "supported"), row("b", "not_supported", "not_in_snapshot"), row("c", "disguised")]
    found = citations_of(rows)
    assert (found.citations, found.replies) == (5, 3)
    assert {name: n for name, n in found.outcomes.items() if n} == {
        "supported": 2, "not_supported": 1, "not_in_snapshot": 1, "disguised": 1,
    }  # fmt: skip
    assert found.supported.value == pytest.approx(2 / 3)
    assert found.official.value == pytest.approx(4 / 5)
    assert found.invented.value == pytest.approx(1 / 5)
    by_hand = bounded_by_cluster([("a", 1.0), ("a", 1.0), ("b", 0.0)])
    assert (found.supported.low, found.supported.high) == (by_hand.low, by_hand.high)


def test_a_target_that_cites_nothing_has_no_share() -> None:
    found = citations_of([row("a")])
    assert (found.citations, found.supported.value, found.invented.value) == (0, None, None)
