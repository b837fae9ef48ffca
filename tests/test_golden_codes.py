"""Hand-coded transcripts: the code computes from hand-labeled claims what a person coded by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from src.agents.ask import AskedTurn
from src.agents.extractor import anchor
from src.agents.questioner import holds, question
from src.agents.verifier import Shown, in_view, key_in_view, violations
from src.planning.library import Library
from src.planning.rubrics import load_rubric
from src.planning.scenario_files import read_scenario
from src.schemas import (
    Backing,
    Claim,
    Exchange,
    ExtractorReply,
    FinalClaim,
    MadePoint,
    Observation,
    QuestionCode,
    QuestionerInput,
    QuoteSpan,
    Scenario,
    TurnObservation,
    Verdict,
    point_name,
)
from src.scoring.points import group_of
from src.scoring.study_codes import CodingInput, study_codes
from src.text.quotes import find_quote
from tests.cases import each_case
from tests.helpers import quoted

ROOT = Path(__file__).resolve().parent.parent
STUDY = ROOT / "scenarios" / "v1" / "study"
FILES = sorted((ROOT / "tests" / "golden").glob("*.json"))
RUBRIC = load_rubric("v1").rubric


@dataclass(frozen=True)
class Golden:
    """One transcript: what was asked and said, how a person labeled it, and what is computed from that."""

    scenario: Scenario
    plan_year: int
    asked: dict[str, str]
    replies: dict[str, str]
    exchanges: tuple[Exchange, ...]
    claims: tuple[Claim, ...]
    verdicts: tuple[Verdict, ...]
    hand: dict[str, dict[str, str]]
    codes: tuple[QuestionCode, ...]


def planned(scenario_id: str, variant: str, plan_year: int) -> Scenario:
    made = read_scenario(STUDY / f"{scenario_id}.json").planned(plan_year, Library(), only=[variant])
    assert [one.variant for one in made] == [variant]
    return made[0].scenario


def raw(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def span_of(reply: str, quote: str) -> QuoteSpan:
    span = find_quote(reply, quote)
    assert span is not None, f"{quote!r} is not in the reply"
    return span


def conversation(scenario: Scenario, asked: dict[str, str], replies: dict[str, str]) -> tuple[Exchange, ...]:
    """Every turn of the script, those missing from the file as skipped."""
    exchanges = []
    for turn in scenario.scripted_turns:
        reply = replies.get(turn.turn_id)
        assert reply is not None or turn.condition, f"{turn.turn_id} has no reply and no condition"
        exchanges.append(
            Exchange(
                turn_id=turn.turn_id,
                question_group=turn.question_group,
                user_message=asked[turn.turn_id],
                outcome="skipped" if reply is None else "answered",
                reply=reply,
                detail=None,
                served_model=None,
            )
        )
    return tuple(exchanges)


def verdict_of(claim_id: str, labeled: dict[str, Any]) -> Verdict:
    fields = {name: labeled[name] for name in ("label", "evidence", "severity")}
    return Verdict.model_validate_json(json.dumps({"claim_id": claim_id, **fields}))


@cache
def golden(path: Path) -> Golden:
    given = raw(path)
    scenario = planned(given["scenario_id"], given["variant"], given["plan_year"])
    turns = question(QuestionerInput(scenario=scenario, seed=0)).turns
    asked = {turn.turn_id: turn.user_message for turn in turns}
    replies = {turn_id: turn["reply"] for turn_id, turn in given["turns"].items()}
    claims, verdicts, observations = [], [], []
    for turn_id, turn in given["turns"].items():
        for number, labeled in enumerate(turn["claims"], 1):
            claims.append(
                Claim(
                    claim_id=f"{turn_id}.C{number}",
                    text=labeled.get("text", labeled["quote"]),
                    type="factual",
                    confidence="high",
                    verifiable=True,
                    quote_spans=(span_of(turn["reply"], labeled["quote"]),),
                    turn_id=turn_id,
                )
            )
            verdicts.append(verdict_of(f"{turn_id}.C{number}", labeled))
        for seen in turn["observations"]:
            span_of(turn["reply"], seen["quote"])
            observations.append(TurnObservation(turn_id=turn_id, observation=Observation.model_validate(seen)))
    exchanges = conversation(scenario, asked, replies)
    judged = CodingInput(
        scenario=scenario,
        rubric=RUBRIC,
        exchanges=exchanges,
        claims=claims,
        final=[final_of(*pair) for pair in zip(claims, verdicts, strict=True)],
        observations=observations,
        failures=(),
    )
    return Golden(
        scenario=scenario,
        plan_year=given["plan_year"],
        asked=asked,
        replies=replies,
        exchanges=exchanges,
        claims=tuple(claims),
        verdicts=tuple(verdicts),
        hand=given["codes"],
        codes=study_codes(judged),
    )


def final_of(claim: Claim, verdict: Verdict) -> FinalClaim:
    assert claim.turn_id is not None
    return FinalClaim(
        claim_id=claim.claim_id,
        turn_id=claim.turn_id,
        text=claim.text,
        label=verdict.label,
        evidence=verdict.evidence,
        severity=verdict.severity,
        decided_by="unanimous",
        labels_given=(verdict.label, verdict.label),
    )


def points_of(code: QuestionCode) -> list[MadePoint]:
    """Every point that was made, of both sets."""
    return [*code.points_met, *code.partial_points_met, *(code.own.points_met if code.own else ())]


def backings(code: QuestionCode) -> list[Backing]:
    return [*(backing for point in points_of(code) for backing in point.claims), *code.wrong, *code.minor]


every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@every_file
def test_each_code_is_the_one_given_by_hand(path: Path) -> None:
    one = golden(path)
    by_hand = {group: coded.get("code") or coded.get("answer") for group, coded in one.hand.items()}
    assert {code.question_group: code.code or code.answer for code in one.codes} == by_hand
    own = {group: coded["own_code"] for group, coded in one.hand.items() if "own_code" in coded}
    assert {code.question_group: code.own.code for code in one.codes if code.own} == own


@every_file
def test_every_scored_group_is_coded_once_and_no_other(path: Path) -> None:
    one = golden(path)
    groups = {turn.question_group for turn in one.scenario.scripted_turns if turn.question_group}
    assert sorted(code.question_group for code in one.codes) == sorted(one.hand) == sorted(groups)
    for code in one.codes:
        assert (code.answer is not None) == (code.code is None) == ("answer" in one.hand[code.question_group])


@every_file
def test_every_group_with_two_sets_of_points_is_coded_twice_by_hand(path: Path) -> None:
    twice = {group for group, coded in golden(path).hand.items() if "own_code" in coded}
    assert twice == {group for group in golden(path).hand if RUBRIC.rule(group).study_points}


@every_file
def test_points_met_and_missed_are_the_points_of_the_group(path: Path) -> None:
    one = golden(path)
    asked_for: dict[str, set[str]] = defaultdict(set)
    for turn in one.scenario.scripted_turns:
        asked_for[group_of(turn)].update(map(point_name, turn.required_points))
    for code in one.codes:
        study_points = RUBRIC.rule(code.question_group).study_points
        assert bool(study_points) == (code.own is not None)
        assert not study_points or len(code.points_met) + len(code.points_missed) == len(study_points)
        ours = code.own or code
        counted = [*(point.point for point in ours.points_met), *ours.points_missed]
        assert sorted(counted) == sorted(asked_for[code.question_group])


@every_file
def test_every_quote_behind_a_code_is_in_the_reply_and_has_that_label(path: Path) -> None:
    one = golden(path)
    labeled = {verdict.claim_id: verdict for verdict in one.verdicts}
    for code in one.codes:
        for backing in backings(code):
            turn_id = backing.claim_id.partition(".")[0]
            assert turn_id in code.turn_ids
            assert backing.quotes
            assert all(quote in one.replies[turn_id] for quote in backing.quotes)
            assert backing.evidence == labeled[backing.claim_id].evidence
        for point in points_of(code):
            for backing in point.claims:
                assert labeled[backing.claim_id].label == "SUPPORTED"
                assert set(point.point.split("|")) & set(backing.evidence)
        assert {labeled[backing.claim_id].label for backing in (*code.wrong, *code.minor)} <= {"CONTRADICTED"}
        said = "\n".join(one.replies.get(turn_id, "") for turn_id in code.turn_ids)
        assert all(find_quote(said, quote) for quote in code.fabricated)


@every_file
def test_the_reason_fits_the_code(path: Path) -> None:
    for code in golden(path).codes:
        met, missed = len(code.points_met), len(code.points_missed)
        if code.code == "accurate_complete":
            assert code.reason.startswith("The one point" if met == 1 else f"All {met} points")
            assert met > 0
            assert missed == 0
        elif code.code == "accurate_incomplete":
            assert met or code.partial_points_met
            if not code.own:  # the reason says the study's points in words
                assert all(name in code.reason for name in code.points_missed)
            assert not code.wrong
        elif code.code == "not_substantive":
            assert met == 0
            assert "no point" in code.reason
        elif code.code == "incorrect":
            assert code.wrong or (code.fabricated and code.lookup_dependent and missed)
            assert all(cited in code.reason for backing in code.wrong for cited in backing.evidence)
        else:
            assert code.answer
            assert code.answer in code.reason


@every_file
def test_every_hand_label_keeps_the_rules_judges_are_held_to(path: Path) -> None:
    one = golden(path)
    key = key_in_view(one.scenario.answer_key)
    broken = {}
    for claim, verdict in zip(one.claims, one.verdicts, strict=True):
        assert claim.turn_id is not None
        view = in_view(claim, one.replies[claim.turn_id])
        shown = Shown(AskedTurn(one.asked[claim.turn_id], plan_year=one.plan_year), key)
        if found := violations(verdict, view, shown):
            broken[claim.claim_id] = found
    assert broken == {}


@every_file
def test_every_hand_written_claim_is_one_that_an_extractor_could_give(path: Path) -> None:
    """A quote that says too little by itself ("In this plan it's $5.") has a claim in words of its own."""
    one = golden(path)
    for claim in one.claims:
        assert claim.turn_id is not None
        reply = one.replies[claim.turn_id]
        given = quoted(text=claim.text, quotes=in_view(claim, reply).quotes)
        asked = AskedTurn(one.asked[claim.turn_id], plan_year=one.plan_year)
        found = anchor(claim.turn_id, reply, ExtractorReply(claims=(given,)), asked)
        assert [(one.text, one.quote_spans) for one in found.claims] == [(claim.text, claim.quote_spans)], (
            found.rejected
        )


@every_file
def test_conditional_turns_are_there_exactly_where_they_would_be_asked(path: Path) -> None:
    last: str | None = None
    one = golden(path)
    for turn, exchange in zip(one.scenario.scripted_turns, one.exchanges, strict=True):
        assert (exchange.outcome == "answered") == holds(turn.condition, last)
        last = exchange.reply or last


@every_file
def test_every_hand_code_says_why(path: Path) -> None:
    assert all(coded["why"].strip() for coded in raw(path)["codes"].values())


@each_case("scenario_id", sorted(path.stem for path in STUDY.glob("*.json")))
def test_each_study_scenario_has_a_right_a_partial_and_a_wrong_transcript(scenario_id: str) -> None:
    qualities = [raw(path)["quality"] for path in FILES if raw(path)["scenario_id"] == scenario_id]
    assert len(qualities) >= 3
    assert set(qualities) == {"right", "partial", "wrong"}


def test_a_skipped_follow_up_and_an_asked_one_are_both_among_the_transcripts() -> None:
    outcomes = {exchange.outcome for path in FILES for exchange in golden(path).exchanges if exchange.turn_id == "Q14b"}
    assert outcomes == {"answered", "skipped"}


@each_case(("plan_year", "program"), [(2025, "QI"), (2026, "SLMB")])
def test_the_program_open_at_1600_dollars_goes_by_the_plan_year(plan_year: int, program: str) -> None:
    scenario = planned("dual_eligible", "maple_hollow", plan_year)
    facts = {fact.fact_id: fact.statement for fact in scenario.answer_key.canonical_facts}
    said = f"Under the federal limits a person living alone on $1,600 a month may qualify for {program} in {plan_year}."
    assert facts["F45"] == said
    limit = {"SLMB": "F51", "QI": "F52"}[program]
    assert facts[limit].startswith(f"The {plan_year} federal {program} income limit for one person is $")
    assert facts[limit].rpartition("$")[2] == facts["F49"].rpartition("$")[2]


def test_naming_slmb_is_right_in_2026_and_wrong_a_year_before() -> None:
    codes = {
        name: {code.question_group: code.code for code in golden(ROOT / "tests/golden" / f"{name}.json").codes}["g8"]
        for name in ("dual_eligible_right", "dual_eligible_2025", "dual_eligible_2025_slmb")
    }
    assert codes == {
        "dual_eligible_right": "accurate_complete",
        "dual_eligible_2025": "accurate_complete",
        "dual_eligible_2025_slmb": "incorrect",
    }
