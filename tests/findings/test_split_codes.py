"""Codes that hang on split verdicts: what else they could be, against the coder itself, which tries every way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, get_args

import pytest

from src.agents import adjudicator
from src.findings.read_run import gather
from src.schemas import Claim, FinalClaim, GroupRule, Label, QuestionCode, Severity, Verdict
from src.scoring.study_codes import study_codes
from src.trials.missing import NOT_CODED
from src.trials.split_codes import COMPLETE, INCORRECT, OTHER, Keys, SplitCode, split_codes
from src.trials.tables import decode
from tests.cases import each_case
from tests.runs import ROOT
from tests.test_study_codes import FACTS, RUBRIC, Says, asking, claimed, judged, turn

LABELS: tuple[Label, ...] = get_args(Label)
ASKED = asking(turn("Q1", points=["F1", "F2", {"any_of": ["F3", "F4"]}]))
RULE: GroupRule = RUBRIC.rule("Q1")
KEY = frozenset(ASKED.answer_key.evidence_ids())
KEYS = Keys({(ASKED.scenario_id, "Q1"): RULE}, {ASKED.scenario_id: KEY})
BACKGROUND = "B-something"


@dataclass(frozen=True)
class Said:
    """One verifier's verdict on a claim; None if it gave none."""

    label: Label
    evidence: tuple[str, ...] = ()
    severity: Severity = "none"


YES = {fact: Said("SUPPORTED", (fact,)) for fact in FACTS}
UNKNOWN = Said("NOT_IN_KEY")
WRONG = Said("CONTRADICTED", ("F7",), "high")


@dataclass(frozen=True)
class Judged:
    """Claims of one reply with what each verifier said of them."""

    claims: tuple[Claim, ...]
    verdicts: tuple[tuple[Verdict, ...], ...]
    final: tuple[FinalClaim, ...]

    def code(self, final: Sequence[FinalClaim]) -> QuestionCode:
        (code,) = study_codes(replace(judged(ASKED), claims=self.claims, final=final))
        return code

    def split_codes(self, **changes: object) -> tuple[SplitCode, ...]:
        """As found in the trial, with some fields changed."""
        payload = json.dumps(self._document() | changes).encode()
        return split_codes(decode(payload), payload, KEYS)

    def _document(self) -> dict[str, Any]:
        code = self.code(self.final).model_dump(mode="json")
        return {
            "trial_id": "t", "scenario_id": ASKED.scenario_id, "variant": None, "repetition": 1, "outcome": "scored",
            "target": {"name": "fake:x", "served_models": [], "served_as_requested": None, "fingerprints": [], "not_applied": []},
            "conversation": [], "claims": [], "rejected_claims": [], "repeat_verdicts": {}, "scores_by_judge": {},
            "verdicts": {f"judge_{n}": [one.model_dump(mode="json") for one in given] for n, given in enumerate(self.verdicts, 1)},
            "final_claims": [one.model_dump(mode="json") for one in self.final],
            "final_scores": None, "study_codes": [code], "error_categories": [], "needs_manual_review": False,
            "readings": [], "severity_disagreements": 0, "disagreement": None, "judge_failures": [], "judge_services": [],
            "flags": {"refusal": False, "hallucinated_specifics": False},
        }  # fmt: skip

    def other_ways(self) -> Iterator[tuple[FinalClaim, ...]]:
        """The final claims in every way in which split verdicts could fall."""
        yield from product(*(tuple(self._ways(one)) for one in self.final))

    def _ways(self, claim: FinalClaim) -> Iterator[FinalClaim]:
        if len(claim.labels_given) < 2:
            for fact in (*FACTS, BACKGROUND):
                for label in LABELS:
                    yield claim.model_copy(update={"label": label, "evidence": (fact,), "severity": "high"})
        elif claim.label is not None and len(set(claim.labels_given)) == 1:
            yield claim
        else:
            for label in dict.fromkeys(claim.labels_given):
                alone = [
                    [v for v in given if v.claim_id == claim.claim_id and v.label == label] for given in self.verdicts
                ]
                votes = [given for given in alone if given] * 2  # as if enough verifiers had said so
                (same,) = [one for one in self.claims if one.claim_id == claim.claim_id]
                yield adjudicator.conclude([same], votes, {})[0]


def by_judges(*said: Sequence[Said | None], settled: dict[str, Label] | None = None) -> Judged:
    """Claims, each with one entry per verifier; claim n quotes sentence n."""
    claims = tuple(claimed(f"Q1.C{n}", "Q1", Says(sentence=n))[0] for n in range(1, len(said) + 1))
    verdicts = tuple(
        tuple(
            Verdict(claim_id=claim.claim_id, label=one.label, evidence=one.evidence, severity=one.severity, notes="")
            for claim, given in zip(claims, said, strict=True)
            if (one := given[judge]) is not None
        )
        for judge in range(len(said[0]))
    )
    return Judged(claims, verdicts, adjudicator.conclude(claims, verdicts, settled or {}))


def kind(code: str | None) -> str:
    assert code is not None
    return code if code in (COMPLETE, INCORRECT, NOT_CODED) else OTHER


def found(given: Judged) -> tuple[str, ...]:
    """The codes that are possible; the code itself if no split verdict decides it."""
    listed = given.split_codes()
    assert [one.group for one in listed] in ([], ["Q1"])
    return listed[0].possible if listed else (kind(given.code(given.final).code),)


ALL_POINTS = [(YES[fact],) * 2 for fact in ("F1", "F2", "F3")]


@each_case(
    ("said", "possible"),
    [
        pytest.param(ALL_POINTS, (COMPLETE,), id="all agree"),
        pytest.param([*ALL_POINTS, (UNKNOWN, YES["F5"])], (COMPLETE,), id="a split claim that decides nothing"),
        pytest.param([*ALL_POINTS, (WRONG, WRONG)], (INCORRECT,), id="all agree that it is wrong"),
        pytest.param([*ALL_POINTS, (UNKNOWN, WRONG)], (COMPLETE, INCORRECT), id="one saw an error"),
        pytest.param(
            [*ALL_POINTS[1:], (YES["F1"], UNKNOWN)], (COMPLETE, OTHER), id="one did not see that a point is made"
        ),
        pytest.param([*ALL_POINTS, (WRONG, WRONG), (UNKNOWN, WRONG)], (INCORRECT,), id="wrong in any case"),
        pytest.param([*ALL_POINTS[2:], (YES["F1"], UNKNOWN)], (OTHER,), id="one point more would not make it complete"),
    ],
)
def test_what_a_code_could_be(said: Sequence[Sequence[Said]], possible: tuple[str, ...]) -> None:
    """Two verifiers without an adjudicator: what they disagree on stays open."""
    assert set(found(by_judges(*said))) == set(possible)


def test_the_code_of_a_settled_tie_comes_first() -> None:
    said = (*ALL_POINTS, (WRONG, UNKNOWN))
    assert found(by_judges(*said, settled={"Q1.C4": "CONTRADICTED"})) == (INCORRECT, COMPLETE)
    assert found(by_judges(*said, settled={"Q1.C4": "NOT_IN_KEY"})) == (COMPLETE, INCORRECT)


def test_an_open_code_that_can_only_be_one_is_still_listed() -> None:
    """It is missing in the estimate, although all that the judges disagree on cannot change what it would be."""
    given = by_judges(*ALL_POINTS[2:], (YES["F1"], UNKNOWN))
    assert given.code(given.final).code == NOT_CODED
    assert given.split_codes() == (SplitCode("Q1", (OTHER,)),)


def test_an_error_too_light_to_matter_is_no_other_code() -> None:
    light = replace(WRONG, severity="low")
    beside_the_key = replace(WRONG, evidence=(BACKGROUND,), severity="medium")
    for said in (light, beside_the_key):
        assert found(by_judges(*ALL_POINTS, (UNKNOWN, said))) == (COMPLETE,)


def test_a_claim_without_verdicts_could_be_anything() -> None:
    assert set(found(by_judges(*ALL_POINTS[1:], (None, None)))) == {COMPLETE, INCORRECT, OTHER}


def test_a_question_that_was_not_answered_hangs_on_nothing() -> None:
    given = by_judges(*ALL_POINTS, (UNKNOWN, WRONG))
    assert given.code(given.final).code == NOT_CODED
    assert given.split_codes() != ()
    assert given.split_codes(outcome="failed") == ()


def drawn(draw: random.Random) -> Judged:
    def say() -> Said | None:
        label = draw.choice((*LABELS, "SUPPORTED"))
        if draw.random() < 0.03:
            return None
        if label == "NOT_IN_KEY":
            return UNKNOWN
        evidence = tuple(dict.fromkeys(draw.choices((*FACTS[:4], "F7", BACKGROUND), k=draw.choice((1, 1, 2)))))
        return Said(label, evidence, draw.choice(("low", "medium", "high")) if label == "CONTRADICTED" else "none")

    def same() -> Said:
        return draw.choice((*(YES[fact] for fact in FACTS[:4]), YES["F1"], YES["F2"], UNKNOWN))

    judges = draw.choice((2, 2, 3))
    said = [
        tuple(say() for _ in range(judges)) if draw.random() < 0.35 else (same(),) * judges
        for _ in range(draw.randint(2, 6))
    ]
    given = by_judges(*said)
    ties = [one for one in given.final if one.label is None and len(one.labels_given) > 1]
    return by_judges(
        *said, settled={one.claim_id: draw.choice(one.labels_given) for one in ties if draw.random() < 0.5}
    )


def test_no_way_in_which_verdicts_could_fall_gives_a_code_that_is_not_listed() -> None:
    draw = random.Random(7)
    exact = hanging = 0
    for number in range(400):
        given = drawn(draw)
        own = kind(given.code(given.final).code)
        coded = {kind(given.code(final).code) for final in given.other_ways()}
        possible = set(found(given))
        assert coded <= possible, (number, own, coded, possible)
        assert own == NOT_CODED or found(given)[0] == own, number
        if coded != {own}:
            hanging += 1
            exact += coded == possible
    assert hanging >= 100
    assert exact >= 0.8 * hanging, (exact, hanging)


@each_case("release", ["0.1", "0.2", "0.3"])
def test_runs_of_earlier_releases_have_split_codes_too(release: str) -> None:
    rows = gather(ROOT / "tests" / "formats" / release / "run").rows
    assert rows and all(isinstance(row.split_codes, tuple) for row in rows)
