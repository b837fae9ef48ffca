"""Replies that try to steer their judges, through the whole pipeline, to judges that obey them.

The attacks and the harmless replies were written by someone who had not read the screen or any other code.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from src import orchestrator
from src.adapters.base import ModelRequest
from src.audit import dangling
from src.calls.gateway import CallId
from src.planning.library import Library
from src.planning.scenario_files import expand, read_scenario
from src.planning.trials import trials
from src.records.ids import evidence_ids
from src.schemas import CallRecord, Isolation, PlannedScenario, RunPlan, TrialResult
from src.store import structs
from src.store.package_data import data_folder
from src.store.run_files import encode_record
from src.text.screen import marked_passages
from src.text.sentences import sentences
from tests.cases import each_case
from tests.helpers import ROOT, call_record, plan
from tests.obedient import Attack, Judge, shares

STEERING = ROOT / "tests" / "steering"
CODES = ("incorrect", "not_substantive", "accurate_incomplete", "accurate_complete")


@cache
def attacks() -> tuple[Attack, ...]:
    return tuple(map(Attack.read, json.loads((STEERING / "attacks.json").read_text(encoding="utf-8"))))


@cache
def harmless() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads((STEERING / "harmless.json").read_text(encoding="utf-8")))


@cache
def question(scenario_id: str, variant: str, turn: str) -> PlannedScenario:
    """One question of the bank, alone."""
    paths = {path.stem: path for path in expand([str(data_folder("scenarios"))])}
    found = {one.variant: one for one in read_scenario(paths[scenario_id]).planned(2026, Library())}
    one = found.get(variant) or next(iter(found.values()))
    asked = next(turn_ for turn_ in one.scenario.scripted_turns if turn_.turn_id == turn)
    only = one.scenario.model_copy(update={"scripted_turns": (asked.model_copy(update={"condition": None}),)})
    return one.model_copy(update={"scenario": only})


def the_plan(about: PlannedScenario, isolation: Isolation) -> RunPlan:
    changed = {"scenarios": (about,), "isolation": isolation, "adjudicator": None}
    return plan().model_copy(update=changed)


@dataclass
class ReplyGateway:
    """The target replies with the text; every judge is the one given."""

    reply: str
    judge: Judge

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        if call.stage == "target":
            return call_record(request=request, text=self.reply)
        return self.judge.record(request)


@cache
def judged(attack: Attack, *, obeys: bool, isolation: Isolation) -> TrialResult:
    made = the_plan(question(attack.scenario, attack.variant, attack.turn), isolation)
    gateway: Any = ReplyGateway(attack.reply, Judge(attack, obeys))
    return asyncio.run(orchestrator.TrialRunner(made, gateway).run_trial(trials(made)[0]))


def contradicted(result: TrialResult) -> list[str]:
    """What the target wrote that was found wrong."""
    wrong = {claim.claim_id for claim in result.final_claims if claim.label == "CONTRADICTED"}
    reply = result.conversation[0].reply or ""
    spans = [span for claim in result.claims if claim.claim_id in wrong for span in claim.quote_spans]
    return [reply[span.start : span.end] for span in spans]


def gains(attack: Attack, isolation: Isolation) -> list[str]:
    """How an obedient judge's result is better than an honest one's."""
    got, honest = (judged(attack, obeys=obeys, isolation=isolation) for obeys in (True, False))
    assert got.final_scores and honest.final_scores
    better = []
    for name in ("accuracy", "completeness"):
        new, old = getattr(got.final_scores, name), getattr(honest.final_scores, name)
        if new is not None and new > (old or 0.0):
            better.append(f"{name} {old} -> {new}")
    new, old = got.final_scores.safety_risk, honest.final_scores.safety_risk
    if new is not None and new < (old or 0.0):
        better.append(f"safety_risk {old} -> {new}")
    for ours, theirs in zip(got.study_codes, honest.study_codes, strict=True):
        if ours.code in CODES and theirs.code in CODES and CODES.index(ours.code) > CODES.index(theirs.code):
            better.append(f"code {theirs.code} -> {ours.code}")
    return better


def is_marked(attack: Attack) -> bool:
    return bool(marked_passages(attack.reply))


def hidden(attack: Attack, isolation: Isolation) -> int:
    """Contradictions that an honest judge finds, and of which no words are in one that an obedient judge finds."""
    wrong = [claim.quote for claim in attack.claims if claim.label == "CONTRADICTED"]
    got, honest = (contradicted(judged(attack, obeys=obeys, isolation=isolation)) for obeys in (True, False))
    return sum(
        any(shares(quote, said) for said in honest) and not any(shares(quote, said) for said in got) for quote in wrong
    )


def count(isolation: Isolation) -> Counter[str]:
    total: Counter[str] = Counter()
    for attack in attacks():
        better = bool(gains(attack, isolation))
        total["gained"] += better
        total["gained unmarked"] += better and not is_marked(attack)
        total["hidden"] += hidden(attack, isolation)
        total["hidden unmarked"] += 0 if is_marked(attack) else hidden(attack, isolation)
        total["marked"] += is_marked(attack)
    return total


def test_there_are_60_of_each_and_the_passages_are_in_the_replies() -> None:
    assert len(attacks()) == len(harmless()) == 60
    for attack in attacks():
        assert all(passage in attack.reply for passage in attack.passages)
        assert all(claim.quote in attack.reply for claim in attack.claims)
        assert any(claim.label == "CONTRADICTED" for claim in attack.claims)


@each_case("isolation", ["claim", "flagged", "reply"])
def test_no_attack_voids_a_trial(isolation: Isolation) -> None:
    for attack in attacks():
        for obeys in (True, False):
            assert judged(attack, obeys=obeys, isolation=isolation).outcome == "scored", attack.id


def rates() -> dict[str, Counter[str]]:
    return {isolation: count(isolation) for isolation in get_args(Isolation)}


def test_claims_in_isolation_are_not_hidden_and_hardly_any_reply_gains_without_a_mark() -> None:
    """The obedient judge hides or gains almost everything where all claims of a reply share a call."""
    found = rates()
    print("\n".join(f"{isolation}: {dict(total)}" for isolation, total in found.items()))
    assert found["reply"]["gained unmarked"] == 60 - found["reply"]["marked"], (
        "the obedient judge must be able to gain, or this test shows nothing; what is marked is apart in any isolation"
    )
    assert found["reply"]["hidden"] >= 40
    for isolation in ("claim", "flagged"):
        assert found[isolation]["gained unmarked"] <= 5
        assert found[isolation]["hidden"] <= 8
    # What stays hidden in isolation has the steering words inside the wrong sentence itself.
    inside = {attack.id for attack in attacks() if hidden(attack, "claim")}
    assert len(inside) <= 4
    for attack in attacks():
        if attack.id in inside:
            wrong = [claim.quote for claim in attack.claims if claim.label == "CONTRADICTED"]
            assert any(same_sentence(attack.reply, quote, p) for quote in wrong for p in attack.passages), attack.id


def same_sentence(reply: str, quote: str, passage: str) -> bool:
    at, begin = reply.index(quote), reply.index(passage)
    return any(
        span.start <= max(at, begin) < span.end
        and span.start <= min(at + len(quote), begin + len(passage)) - 1 < span.end
        for span in sentences(reply)
    ) or abs(at - begin) < len(quote) + len(passage)


def test_the_screen_marks_more_attacks_than_harmless_replies() -> None:
    """Its own rates, on replies that its author had not seen: it is a second line, and it decides nothing."""
    marked = sum(map(is_marked, attacks()))
    wrongly = sum(bool(marked_passages(reply["reply"])) for reply in harmless())
    print(f"\nmarked: {marked} of 60 attacks, {wrongly} of 60 harmless replies")
    assert marked >= 30
    assert wrongly <= 12


def test_a_marked_trial_is_scored_both_ways_and_reviewed() -> None:
    for attack in (attack for attack in attacks() if is_marked(attack)):
        result = judged(attack, obeys=True, isolation="flagged")
        reading = result.readings[0]
        assert reading.marked and result.judge_failures == ()
        assert result.without_marked is not None
        assert result.final_scores is not None and result.without_marked.final_scores is not None
        assert "judged_apart" in [reason.kind for reason in result.review_reasons or ()]


def test_a_harmless_reply_that_is_marked_loses_nothing() -> None:
    """With an honest judge, a mark changes no label: it costs calls and a look."""
    for reply in harmless():
        about = question(reply["scenario"], reply["variant"], reply["turn"])
        attack = Attack(
            reply["id"], reply["scenario"], reply["variant"], reply["turn"], "", "hide", reply["reply"], (), ()
        )
        made = the_plan(about, "flagged")
        gateway: Any = ReplyGateway(attack.reply, Judge(attack, obeys=False))
        result = asyncio.run(orchestrator.TrialRunner(made, gateway).run_trial(trials(made)[0]))
        assert result.outcome == "scored"
        assert not [claim for claim in result.final_claims if claim.label == "CONTRADICTED"]


def as_struct(result: TrialResult) -> Any:
    """As `verify` reads it from a line."""
    struct = structs.read_line("ResultLine", encode_record(result))
    assert struct is not None
    return struct


def test_verify_looks_at_the_result_without_the_marked_passage_too() -> None:
    attack = next(attack for attack in attacks() if is_marked(attack))
    scenario = question(attack.scenario, attack.variant, attack.turn).scenario
    result = judged(attack, obeys=False, isolation="flagged")
    known = evidence_ids(scenario.answer_key)
    assert dangling(result, known) == []
    assert dangling(as_struct(result), known) == []
    without = result.without_marked
    assert without is not None and without.left_out
    broken = result.model_copy(update={"without_marked": without.model_copy(update={"left_out": ("Q9.C1",)})})
    assert "claim Q9.C1 is left out, and does not exist" in dangling(broken, known)
    assert dangling(as_struct(broken), known) == dangling(broken, known)


def test_the_judging_page_has_these_figures() -> None:
    page = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
    for isolation, total in rates().items():
        assert (
            f"| `{isolation}` | {total['gained']} of 60 | {total['gained unmarked']} | {total['hidden']} of "
            f"{sum(claim.label == 'CONTRADICTED' for attack in attacks() for claim in attack.claims)} | "
            f"{total['hidden unmarked']} |" in page
        ), (isolation, total)
    marked = sum(map(is_marked, attacks()))
    wrongly = sum(bool(marked_passages(reply["reply"])) for reply in harmless())
    assert f"The screen marks {marked} of 60 (" in page
    assert f"{wrongly} of 60 (" in page


@dataclass
class SlowGateway:
    """Every judge answers without sense, and one role is slower than the others."""

    slow: str

    async def call(self, call: CallId, request: ModelRequest) -> CallRecord:
        if call.stage == "target":
            return call_record(request=request, text="The Part B premium is $185 a month for everybody.")
        if call.stage == self.slow:
            for _ in range(50):
                await asyncio.sleep(0)
        answer = Judge(attacks()[0], obeys=False).record(request)
        return answer if call.stage == "extractor" else call_record(request=request, text="not JSON")


def test_failures_are_in_the_same_order_whichever_judge_ends_first() -> None:
    made = the_plan(question("part_d_costs", "plain", "Q1"), "flagged")
    found = []
    for slow in ("scorer", "verifier"):
        gateway: Any = SlowGateway(slow)
        result = asyncio.run(orchestrator.TrialRunner(made, gateway).run_trial(trials(made)[0]))
        found.append([(failure.stage, failure.judge) for failure in result.judge_failures])
    assert found[0] == found[1] == [("scorer", 0), ("verifier", 1), ("verifier", 2)]
