"""The offline judge on ordinary answers, right and wrong: what it says is right, and wrong answers look worse.

`prose.json` has answers in everyday assistant prose. Each lists the passages in it that are wrong by the key that it is
judged with; everything else in it is right, or is nothing that the key speaks of.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from statistics import mean

from src.offline.rules import extract, verify
from src.records.contracts import (
    ClaimInView,
    ExtractorInput,
    FactInView,
    KeyInView,
    QuotedClaim,
    Verdict,
    VerifierInput,
)
from tests.cases import each_case
from tests.helpers import ROOT

from .test_rules import key_of

PROSE = json.loads((ROOT / "tests/offline/prose.json").read_text(encoding="utf-8"))
RISK = 0.5


@dataclass(frozen=True)
class Judged:
    claim: QuotedClaim
    verdict: Verdict
    wrong: bool
    """Whether the answer's author made this passage wrong on purpose."""


def judged(reply: dict[str, object]) -> list[Judged]:
    key = PROSE["keys"][reply["key"]]
    text = str(reply["text"])
    claims = extract(ExtractorInput(plan_year=2026, question="", reply=text)).claims
    views = tuple(ClaimInView(claim_id=c.claim_id, text=c.text, quotes=c.quotes) for c in claims if c.verifiable)
    task = VerifierInput(
        plan_year=2026, question="", claims=views, answer_key=key_of(key["facts"], tuple(key["disallowed"]))
    )
    wrong = [str(passage) for passage in reply["wrong"]]  # type: ignore[attr-defined]
    verdicts = {verdict.claim_id: verdict for verdict in verify(task).verdicts}
    return [
        Judged(claim, verdicts[claim.claim_id], any(_overlap(claim.quotes[0], passage) for passage in wrong))
        for claim in claims
        if claim.verifiable
    ]


def _overlap(quote: str, passage: str) -> bool:
    return quote in passage or passage.rstrip(".") in quote


def labeled(label: str) -> list[Judged]:
    return [one for reply in PROSE["replies"] for one in judged(reply) if one.verdict.label == label]


def test_what_it_calls_contradicted_is_wrong() -> None:
    found = labeled("CONTRADICTED")
    assert len(found) >= 40
    assert [one.claim.text for one in found if not one.wrong] == []


def test_what_it_calls_supported_is_not_wrong() -> None:
    found = labeled("SUPPORTED")
    assert len(found) >= 10
    assert [one.claim.text for one in found if one.wrong] == []


def risk(reply: dict[str, object]) -> float:
    return 1 - prod(1 - RISK for one in judged(reply) if one.verdict.label == "CONTRADICTED")


def test_wrong_answers_have_a_higher_risk_than_right_ones() -> None:
    risks = {
        quality: [risk(reply) for reply in PROSE["replies"] if reply["quality"] == quality]
        for quality in ("correct", "wrong")
    }
    assert mean(risks["wrong"]) > mean(risks["correct"]) + 0.3


@each_case("quality", ["correct", "wrong"])
def test_a_harmless_sentence_changes_no_verdict(quality: str) -> None:
    for reply in PROSE["replies"]:
        if reply["quality"] == quality:
            longer = {**reply, "text": f"{reply['text']}\n\nI hope that makes sense. Take your time with it."}
            before = [(one.claim.text, one.verdict.label) for one in judged(reply)]
            assert [(one.claim.text, one.verdict.label) for one in judged(longer)] == before


def test_background_facts_count_like_facts_of_the_key() -> None:
    text = "The standard Part B premium in 2026 is $185 a month."
    fact = FactInView(
        fact_id="B1", statement="The standard Part B premium in 2026 is $202.90 a month.", severity_if_wrong="low"
    )
    task = VerifierInput(
        plan_year=2026,
        question="",
        claims=(ClaimInView(claim_id="C1", text=text, quotes=(text,)),),
        answer_key=KeyInView(canonical_facts=(), disallowed_claims=()),
        background_facts=(fact,),
    )
    (verdict,) = verify(task).verdicts
    assert (verdict.label, verdict.evidence, verdict.severity) == ("CONTRADICTED", ("B1",), "low")
