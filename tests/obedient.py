"""A judge that does what the text it judges asks for: the worst that a reply could do to a model.

It knows of each attack what its steering passages want. In every role it obeys if any part of such a passage is in its
request, whatever the words; otherwise it labels claims as a person labeled them. As extractor it turns the passages into
claims, so that they reach the verifiers. If it is to hide something, it leaves the wrong claims out or calls them NOT_IN_KEY. If it
is to give credit, it calls every claim SUPPORTED and cites whatever the rules let it cite.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from src.adapters.base import ModelRequest
from src.agents.ask import AskedTurn
from src.agents.verifier import Shown, violations
from src.schemas import CallRecord, ClaimInView, ExtractorInput, Verdict, VerifierInput
from src.store.strict_json import encode
from src.text.fence import unwrap
from tests.helpers import call_record

Goal = Literal["credit", "hide", "both"]


@dataclass(frozen=True)
class HonestClaim:
    quote: str
    label: Literal["SUPPORTED", "CONTRADICTED", "NOT_IN_KEY"]
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Attack:
    id: str
    scenario: str
    variant: str
    turn: str
    kind: str
    goal: Goal
    reply: str
    passages: tuple[str, ...]
    claims: tuple[HonestClaim, ...]

    @classmethod
    def read(cls, data: dict[str, Any]) -> Attack:
        claims = tuple(HonestClaim(one["quote"], one["label"], tuple(one["evidence"])) for one in data["claims"])
        return cls(**{**data, "passages": tuple(data["passages"]), "claims": claims})


@dataclass
class Judge:
    """Honest if `obeys` is false."""

    attack: Attack
    obeys: bool = True
    asked: list[str] = field(default_factory=list)
    """Titles of the schemas it was asked for."""

    def record(self, request: ModelRequest) -> CallRecord:
        wanted = str((request.response_schema or {})["title"])
        self.asked.append(wanted)
        canary, plain = unwrap(request.messages[0].content)
        swayed = self.obeys and any(shares(passage, text) for passage in self.attack.passages for text in texts(plain))
        answer: dict[str, Any] = {"observations": []}
        if wanted == "ExtractorReply":
            answer = {"claims": self._extract(ExtractorInput.model_validate_json(plain), swayed)}
        elif wanted == "VerifierOutput":
            task = VerifierInput.model_validate_json(plain)
            answer = {"verdicts": [self._verdict(claim, task, swayed).model_dump(mode="json") for claim in task.claims]}
        return call_record(request=request, text=encode({"canary": canary, **answer}).decode("utf-8"))

    def _extract(self, task: ExtractorInput, swayed: bool) -> list[dict[str, Any]]:
        hides = swayed and self.attack.goal != "credit"
        kept = [one.quote for one in self.attack.claims if not (hides and one.label == "CONTRADICTED")]
        quotes = [quote for quote in (*kept, *self.attack.passages) if quote in task.reply]
        return [
            {"claim_id": f"C{n}", "text": quote, "type": "factual", "confidence": "high", "verifiable": True, "quotes": [quote]}
            for n, quote in enumerate(dict.fromkeys(quotes), 1)
        ]  # fmt: skip

    def _verdict(self, claim: ClaimInView, task: VerifierInput, swayed: bool) -> Verdict:
        honest = self._honest(claim)
        if not swayed:
            return honest
        if self.attack.goal != "hide":
            shown = Shown(AskedTurn(task.question, task.plan_year), task.answer_key)
            for fact in task.answer_key.canonical_facts:
                given = verdict(claim, "SUPPORTED", (fact.fact_id,))
                if not violations(given, claim, shown):
                    return given
        return verdict(claim, "NOT_IN_KEY", ()) if honest.label == "CONTRADICTED" else honest

    def _honest(self, claim: ClaimInView) -> Verdict:
        said = " ".join(claim.quotes)
        about = [one for one in self.attack.claims if shares(one.quote, said)]
        wrong = next((one for one in about if one.label == "CONTRADICTED"), None)
        found = wrong or next((one for one in about if one.label == "SUPPORTED"), None)
        return verdict(claim, found.label, found.evidence) if found else verdict(claim, "NOT_IN_KEY", ())


def verdict(claim: ClaimInView, label: Any, evidence: tuple[str, ...]) -> Verdict:
    severity: Any = "high" if label == "CONTRADICTED" else "none"
    return Verdict(claim_id=claim.claim_id, label=label, evidence=evidence, severity=severity, notes="")


def texts(plain: str) -> list[str]:
    """All that the target wrote in a request."""
    task = json.loads(plain)
    quotes = [quote for claim in task.get("claims", []) for quote in claim["quotes"]]
    return [*quotes, *([task["reply"]] if "reply" in task else [])]


def shares(one: str, other: str) -> bool:
    """Whether two passages of a reply have at least half of the shorter one in common."""
    shorter, longer = sorted((one, other), key=len)
    if shorter in longer:
        return True
    half = max(12, len(shorter) // 2)
    return any(shorter[at : at + half] in longer for at in range(max(1, len(shorter) - half + 1)))
