"""An assertion counts once, whatever a reply or a conversation repeats, and verifiers are shown it once."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Any, cast

import pytest

from src.calls.gateway import Gateway
from src.judge_check.gold import load_gold
from src.orchestrator import TrialRunner
from src.planning.trials import trials
from src.records.judge_check import Split
from src.schemas import RunPlan, Scores, TrialResult
from src.text.assertions import assertion
from src.text.sentences import sentences
from tests.cases import each_case
from tests.fuzz_conversations import Target, planned
from tests.scripted_judges import CATS, NETWORKS, PREMIUM, Judges, Seen, a_plan, judged, turn


@each_case(
    ("one", "other", "same"),
    [
        ("Part B costs $1,000.00 a month.", "The Part B cost is $1000 per month", True),
        ("Part B costs $1,000.00 a month.", "Part B cost $1000 per month", True),
        ("Medicare pays before Medicaid.", "Medicaid pays before Medicare.", False),
        ("You can't be refused.", "You cannot be refused!", True),
        ("You can be refused.", "You can't be refused.", False),
        ("Plans may refuse you.", "Plans must refuse you.", False),
        ("The **standard** premium", "the standard premium", True),
        ("It starts January 1.", "It starts Jan. 1", True),
        ("Switch from Medigap to Advantage.", "Switch to Medigap from Advantage.", False),
        ("The penalty is 10%.", "The penalty is 1%.", False),
    ],
)
def test_the_same_words_figures_and_negations_in_the_same_order(one: str, other: str, same: bool) -> None:
    assert (assertion(one) == assertion(other)) is same


def test_a_repeated_assertion_is_one_claim_with_all_its_quotes() -> None:
    judges = Judges()
    found = judged(turn(f"{PREMIUM} {NETWORKS} {PREMIUM} {CATS} {PREMIUM}"), judges)
    assert [(claim.text, len(claim.quote_spans)) for claim in found.claims] == [(PREMIUM, 3), (NETWORKS, 1), (CATS, 1)]
    assert sorted(text for texts in judges.parts().values() for text in texts) == sorted([PREMIUM, NETWORKS, CATS])


@dataclass
class Canned(Target):
    """Judges whose labels depend on what a claim says, and on nothing else."""

    def _extractor(self, one: Seen) -> dict[str, Any]:
        return Judges._extractor(self, one)


def label(model: str, claim: dict[str, Any]) -> dict[str, Any]:
    text = claim["text"]
    if text in (TRUE, NETWORKS, PREMIUM):
        return {"label": "SUPPORTED", "evidence": ["F1" if text != PREMIUM else "F2"], "severity": "none"}
    if text == DANGEROUS or random.Random(repr(assertion(text))).random() < 0.5:
        return {"label": "CONTRADICTED", "evidence": ["F2"], "severity": "high"}
    return {"label": "NOT_IN_KEY", "evidence": [], "severity": "none"}


TRUE = "Advantage plans of Medicare have networks of providers."
DANGEROUS = "Nobody ever pays a premium for Part B."
PLAN: RunPlan = planned(7).model_copy(update={"audit_sample": 0.0})


def played(*replies: str) -> TrialResult:
    target = Canned(verdict=label, replies=replies)
    return asyncio.run(TrialRunner(PLAN, cast(Gateway, target)).run_trial(trials(PLAN)[0]))


def scores(*replies: str) -> Scores:
    found = played(*replies).final_scores
    assert found is not None
    return found


def test_a_later_turn_takes_the_label_of_the_first_and_makes_its_own_points() -> None:
    one = played(f"{NETWORKS} {CATS}", NETWORKS, f"{PREMIUM} {NETWORKS}")
    again = [claim for claim in one.claims if claim.same_as]
    assert [(claim.claim_id, claim.same_as) for claim in again] == [("Q2.C1", "Q1.C1"), ("Q3.C2", "Q1.C1")]
    judged_once = {verdict.claim_id for verdict in one.verdicts["judge_1"]}
    assert judged_once == {final.claim_id for final in one.final_claims} == {"Q1.C1", "Q1.C2", "Q3.C1"}
    assert {code.question_group: bool(code.points_met) for code in one.study_codes} == {
        "Q1": True,
        "Q2": True,
        "Q3": True,
    }
    once = played(f"{NETWORKS} {CATS}", "Let me know.", PREMIUM).final_scores
    assert once is not None and one.final_scores is not None
    assert one.final_scores.accuracy == once.accuracy


def cases(split: Split) -> list[str]:
    return [item.reply.text for item in load_gold(split).items]


@pytest.mark.parametrize(
    "split", ["dev", *(pytest.param(name, marks=pytest.mark.slow) for name in ("held_out", "second", "third"))]
)
def test_repeating_and_reordering_changes_no_score_of_a_gold_reply(split: Split) -> None:
    """Nor does a true sentence lower one, or a dangerous one raise one."""
    dice = random.Random(split)
    for reply in cases(split):
        said = [reply[span.start : span.end] for span in sentences(reply)]
        text = "\n\n".join([NETWORKS, *said])
        plain = scores(text, PREMIUM, CATS)
        one = dice.choice(said)
        assert scores(f"{text}\n\n{one}\n\n{one}", PREMIUM, CATS) == plain, one
        assert scores(text, f"{PREMIUM}\n\n{one}", CATS) == plain, one
        shuffled = [NETWORKS, *said]
        dice.shuffle(shuffled)
        assert scores("\n\n".join(shuffled), PREMIUM, CATS) == plain
        better, worse = scores(f"{text}\n\n{TRUE}", PREMIUM, CATS), scores(f"{text}\n\n{DANGEROUS}", PREMIUM, CATS)
        assert better.accuracy is not None and worse.accuracy is not None and plain.accuracy is not None
        assert better.accuracy >= plain.accuracy >= worse.accuracy
        assert better.safety_risk == plain.safety_risk
        assert (worse.safety_risk or 0) >= (plain.safety_risk or 0)
        assert better.completeness == plain.completeness == worse.completeness


def test_advice_and_what_was_left_out_share_calls_of_their_kind() -> None:
    advice = [f"You should take {number} weeks of time for this." for number in "abc"]
    rivers = [f"Rivers in Ohio freeze over near {name}." for name in ("Toledo", "Akron")]
    facts = [NETWORKS, PREMIUM, CATS, *(f"{CATS[:-1]} in room {name}." for name in "bcdefgh")]
    judges = Judges(types=dict.fromkeys(advice, "recommendation"), leaves_out=rivers)
    judged(turn(" ".join([*facts, *advice, *rivers])), judges, a_plan())
    assert {name: len(texts) for name, texts in judges.parts().items()} == {"s1": 2, "s2": 8, "s3": 3, "s4": 2}
