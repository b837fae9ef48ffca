"""Retrieval of background facts: the right ones, few of them, and always the same."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from src.judge_check.gold import load_gold
from src.records.judge_check import Split
from src.schemas import BackgroundFact, Label
from src.stats.intervals import wilson
from src.text.retrieval import LIMIT, Retriever
from tests.cases import each_case
from tests.helpers import ROOT


@dataclass(frozen=True)
class Fact:
    fact_id: str
    statement: str
    other_words: str = ""


PARTS: dict[Split, str] = {
    "dev": "**Development part**",
    "held_out": "**Held-out part**",
    "second": "**Second part**",
    "third": "**Third part**",
}
"""Part of the gold set to its title in docs/library.md."""
FACTS = [
    Fact("B-part-b-premium", "In 2026 the standard Part B premium is $202.90 a month."),
    Fact("B-part-b-deductible", "In 2026 the Part B deductible is $283 a year."),
    Fact("B-part-d-cap", "In 2026 out-of-pocket costs for covered Part D drugs are capped at $2,100 for the year."),
    Fact("B-medigap-window", "The Medigap open enrollment period lasts 6 months."),
    Fact("B-advantage-network", "Medicare Advantage plans have networks of doctors."),
    Fact("B-no-limit", "Original Medicare alone has no yearly limit on what a person pays."),
]


@dataclass(frozen=True)
class Case:
    text: str
    quotes: tuple[str, ...]
    cited: frozenset[str]
    """The library facts that the gold label cites."""
    label: Label
    state: str | None


@cache
def bank() -> tuple[BackgroundFact, ...]:
    """The library of 2026 for a person in no state with facts of its own."""
    return tuple(fact for fact in load_gold("dev").background if not fact.states)


@cache
def cases(split: Split) -> tuple[Case, ...]:
    """Every claim of a part of the gold set whose label rests on facts of the library alone."""
    return tuple(
        Case(seen.text, seen.quotes, frozenset(claim.evidence), claim.label, item.state)
        for item in load_gold(split).items
        for claim, seen in zip(item.reply.claims, item.claims, strict=True)
        if claim.evidence and all(one.startswith("B-") for one in claim.evidence)
    )


@cache
def ranks(split: Split) -> tuple[int, ...]:
    """For each case, the place of the first cited fact among those that hold where the person lives; 11: not found."""
    facts = load_gold(split).background
    retrievers = {
        state: Retriever([fact for fact in facts if not fact.states or state in fact.states])
        for state in {case.state for case in cases(split)}
    }
    found = [retrievers[case.state].find(case.text, case.quotes, 10) for case in cases(split)]
    return tuple(
        next((rank for rank, one in enumerate(names, 1) if one in case.cited), 11)
        for case, names in zip(cases(split), found, strict=True)
    )


def recall(split: Split) -> list[str]:
    """Rows of the table in docs/library.md: how often a cited fact is among the first few."""
    rows = []
    for limit in (1, 3, 5, 8, 10):
        share = wilson(sum(rank <= limit for rank in ranks(split)), len(ranks(split)))
        assert share.value is not None and share.low is not None and share.high is not None
        interval = f"{100 * share.low:.1f} to {100 * share.high:.1f}"
        rows.append(f"| {limit} | {share.count} of {share.n} | {100 * share.value:.1f}% | {interval} |")
    return rows


def by_label() -> str:
    """The sentence of docs/library.md about true and false claims."""
    found: Counter[tuple[str, bool]] = Counter()
    for split in PARTS:
        found.update((case.label, rank <= LIMIT) for case, rank in zip(cases(split), ranks(split), strict=True))
    true, false = (
        f"{found[label, True]} of {found[label, True] + found[label, False]}" for label in ("SUPPORTED", "CONTRADICTED")
    )
    return f"Among the first {LIMIT}, the fact is found for {true} true claims and for {false} false ones."


@each_case(
    ("claim", "first"),
    [
        ("The Part B premium for 2026 is $202.90 per month.", "B-part-b-premium"),
        ("You will be charged a standard Part B premium of $174.70 monthly.", "B-part-b-premium"),
        ("The Part B deductible is $240.", "B-part-b-deductible"),
        ("Your Part D drug costs are capped.", "B-part-d-cap"),
        ("There's a limit on what you pay each year in Original Medicare.", "B-no-limit"),
        ("Any doctor accepts Advantage plans; there are no networks.", "B-advantage-network"),
    ],
)
def test_the_fact_that_a_claim_is_about_comes_first(claim: str, first: str) -> None:
    assert Retriever(FACTS).find(claim)[0] == first


def test_a_letter_tells_parts_apart() -> None:
    facts = [Fact(f"B-{letter}", f"Part {letter.upper()} has a late enrollment penalty.") for letter in "abd"]
    for letter in "abd":
        assert (
            Retriever(facts).find(f"There is a penalty for late enrollment in Part {letter.upper()}.")[0]
            == f"B-{letter}"
        )


@each_case(
    "text",
    [
        "",
        "...",
        "The Eiffel Tower is in Paris and opened in 1889.",
        "Photosynthesis turns light into chemical energy.",
        "Python 3.11 was released in October 2022.",
        "Sure, I'd be happy to explain that.",
        "The best time to plant tomatoes is in May.",
        "2026",
    ],
)
def test_text_about_something_else_finds_nothing(text: str) -> None:
    assert Retriever(FACTS).find(text) == ()
    assert Retriever(bank()).find(text) == ()


def test_the_limit_is_kept_and_a_smaller_one_gives_the_beginning_of_a_larger_one() -> None:
    retriever = Retriever(bank())
    text = "In 2026 the standard Part B premium is $202.90 a month, and the Part D cap is $2,100 for the year."
    found = retriever.find(text, limit=50)
    assert len(found) > LIMIT
    for limit in (0, 1, 3, LIMIT, 20):
        assert retriever.find(text, limit=limit) == found[:limit]
    assert retriever.find(text) == found[:LIMIT]


def test_no_facts_find_nothing() -> None:
    assert Retriever([]).find("The Part B premium is $202.90.") == ()
    assert Retriever([Fact("B-empty", "...")]).find("The Part B premium is $202.90.") == ()


def test_equally_near_facts_are_in_the_order_of_their_ids() -> None:
    facts = [Fact(name, "Plans have provider networks.") for name in ("B-c", "B-a", "B-b")]
    assert Retriever(facts).find("Do plans have networks?") == ("B-a", "B-b", "B-c")


def test_the_order_of_the_facts_does_not_matter() -> None:
    texts = [case.text for case in cases("dev")]
    expected = list(map(Retriever(bank()).find, texts))
    for seed in range(2):
        shuffled = random.Random(seed).sample(bank(), len(bank()))
        assert list(map(Retriever(shuffled).find, texts)) == expected


IN_ANOTHER_PROCESS = """
import json
from src.text.retrieval import Retriever
from tests.test_retrieval import bank, cases
retriever = Retriever(bank())
print(json.dumps([retriever.find(case.text, case.quotes, 10) for case in cases("dev")]))
"""


@pytest.mark.slow
@each_case("seed", ["0", "4242"])
def test_another_process_with_another_hash_seed_finds_the_same(seed: str) -> None:
    finished = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    retriever = Retriever(bank())
    assert json.loads(finished.stdout) == [list(retriever.find(case.text, case.quotes, 10)) for case in cases("dev")]


@pytest.mark.slow
def test_the_recall_in_the_guide_is_what_is_measured() -> None:
    guide = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    section = guide[guide.index("## How often the right fact is found") :]
    places = [section.index(title) for title in PARTS.values()]
    for split, start, end in zip(PARTS, places, (*places[1:], len(section)), strict=True):
        assert "\n".join(recall(split)) in section[start:end]
    words = " ".join(section.split())
    assert f"{len(bank()):,} facts that hold for everyone" in words
    assert by_label() in words


def test_the_fact_behind_a_fresh_claim_is_found() -> None:
    """Written by somebody who had seen the facts alone; docs/library.md has the figure."""
    facts = load_gold("dev").background
    states = {fact.fact_id: set(fact.states) for fact in facts}
    claims = json.loads((ROOT / "tests" / "fresh_claims.json").read_text(encoding="utf-8"))
    missed = []
    for claim in claims:
        here = states[claim["fact_id"]]
        retriever = (
            everywhere() if not here else Retriever([one for one in facts if not one.states or here & set(one.states)])
        )
        if not {claim["fact_id"], *claim["also"]} & set(retriever.find(claim["text"])):
            missed.append(claim["text"])
    assert len(claims) == 150 and len(missed) <= 3, missed


@cache
def everywhere() -> Retriever:
    return Retriever(bank())


def test_more_facts_than_the_limit_would_not_help_on_the_part_that_settings_are_chosen_on() -> None:
    assert LIMIT == 8
    assert recall("dev")[-1].split("|")[2:] == recall("dev")[-2].split("|")[2:]
