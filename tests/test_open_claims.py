"""Open claims never void a score: they count as each verifier labeled them, and every score has its range."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.agents.scorer import ScoredClaim, Way, left_open, mean_scores, scores_of
from src.cli.tables import summary_table
from src.findings.estimates import ENDS, ClaimsBehind, estimate
from src.findings.pairs import pair_questions
from src.planning.plan import make_plan
from src.planning.rubrics import load_rubric
from src.planning.study_file import make_study
from src.planning.trials import Trial, trials
from src.reporting import Summary, Tally
from src.reports.document import mean_text
from src.schemas import Claim, Exchange, Label, QuoteSpan, RunPlan, Scores, TrialResult, Verdict
from src.scoring.definitions import SCORES
from src.scoring.result import TurnJudgment, assemble
from src.trials.row import Row, row_of
from src.trials.tables import TRIAL, TrialPart
from tests.cases import each_case
from tests.helpers import fact_json, scenario_json

POINTS = 5
WEIGHTS = load_rubric("v1").rubric.weights
LABELS: tuple[Label, ...] = ("SUPPORTED", "CONTRADICTED", "NOT_IN_KEY")


class Talk(NamedTuple):
    trial: tuple[RunPlan, Trial]

    def judged(self, *verifiers: Sequence[Label | None], repeats: int = 0) -> TrialResult:
        """A reply with as many claims as labels, the first of which are about the required points.

        The first claim is repeated so many times.
        """
        size = len(verifiers[0])
        claims = tuple(
            Claim(claim_id=f"Q1.C{n}", text="x", type="factual", confidence="high", verifiable=True,
                quote_spans=(QuoteSpan(start=n, end=n + 1),), turn_id="Q1")
            for n in range(size)
        )  # fmt: skip
        first = claims[0] if claims else None
        said_again = [{"claim_id": f"Q1.R{n}", "same_as": "Q1.C0"} for n in range(repeats)]
        claims += tuple(first.model_copy(update=one) for one in said_again if first)
        verdicts = [tuple(verdict(n, label) for n, label in enumerate(labels) if label) for labels in verifiers]
        exchange = Exchange(turn_id="Q1", question_group=None, user_message="?", outcome="answered",
            reply="x" * (size + 1), detail=None, served_model=None)  # fmt: skip
        judgment = TurnJudgment("Q1", claims=claims, verdicts=verdicts)
        return assemble(*self.trial, [exchange], [], [judgment])


def verdict(claim: int, label: Label) -> Verdict:
    wrong, cites = label == "CONTRADICTED", label != "NOT_IN_KEY"
    evidence = (f"F{min(claim, POINTS) + 1}",) if cites else ()
    return Verdict(
        claim_id=f"Q1.C{claim}", label=label, evidence=evidence, severity="medium" if wrong else "none", notes=""
    )


@pytest.fixture(scope="module", name="talk")
def _talk(tmp_path_factory: pytest.TempPathFactory) -> Talk:
    """Five points, and a sixth fact that no point needs."""
    key = {
        "canonical_facts": [fact_json(f"F{n}", statement="Plans differ.") for n in range(1, POINTS + 2)],
        "required_points": [f"F{n}" for n in range(1, POINTS + 1)],
        "disallowed_claims": [],
    }
    path = tmp_path_factory.mktemp("plan") / "scenario.json"
    path.write_text(json.dumps(scenario_json(scenario_id="scenario_001", answer_key=key)), encoding="utf-8")
    plan = make_plan(make_study({"scenarios": [str(path)], "targets": ["fake:careful"]}))
    return Talk((plan, trials(plan)[0]))


def test_twenty_claims_of_which_two_are_open_keep_all_scores(talk: Talk) -> None:
    first: list[Label | None] = ["SUPPORTED" for _ in range(20)]
    first[3], first[17] = "NOT_IN_KEY", "CONTRADICTED"
    second = [*first]
    second[2], second[18] = "NOT_IN_KEY", "CONTRADICTED"
    found = talk.judged(first, second)
    assert sum(claim.label is None for claim in found.final_claims) == 2
    assert found.final_scores is not None
    # By the first verifier 18 of 19 claims are right, and 4 of 5 points are made; by the second 16 of 18, and 3.
    assert found.final_scores.accuracy == pytest.approx((18 / 19 + 16 / 18) / 2, abs=1e-6)
    assert found.final_scores.completeness == 0.7
    assert found.final_scores.safety_risk == pytest.approx((0.3 + 0.51) / 2, abs=1e-6)
    assert found.final_scores.calibration is not None
    assert found.left_open is not None
    assert (found.left_open.claims, found.left_open.unjudged) == (2, 0)
    low, high = found.left_open.lowest, found.left_open.highest
    assert [low.accuracy, high.accuracy] == pytest.approx([16 / 18, 18 / 19], abs=1e-6)
    assert (low.completeness, high.completeness) == (0.6, 0.8)
    assert (low.safety_risk, high.safety_risk) == (0.3, 0.51)
    assert found.missing_required_points == ("F4",), "F3 may be made"
    assert "omission" in found.error_categories


def test_a_trial_without_open_claims_has_no_range(talk: Talk) -> None:
    found = talk.judged(["SUPPORTED"], ["SUPPORTED"])
    assert found.left_open is None
    assert "left_open" not in found.model_dump_json()


def test_a_claim_that_no_verifier_labeled_counts_in_no_score_and_could_be_anything(talk: Talk) -> None:
    found = talk.judged(["SUPPORTED", None], ["SUPPORTED", None])
    assert found.final_scores == Scores(accuracy=1, completeness=0.2, safety_risk=0, calibration=0.9975)
    assert found.left_open is not None
    assert (found.left_open.claims, found.left_open.unjudged) == (1, 1)
    assert found.left_open.lowest == Scores(accuracy=0.5, completeness=0.2, safety_risk=0, calibration=0.5475)
    assert found.left_open.highest == Scores(accuracy=1, completeness=1, safety_risk=0.6, calibration=0.9975)
    assert (found.missing_required_points, found.error_categories) == ((), ())


def test_where_only_open_claims_are_decided_they_alone_are_the_score(talk: Talk) -> None:
    found = talk.judged(["SUPPORTED", "NOT_IN_KEY"], ["NOT_IN_KEY", "CONTRADICTED"])
    assert found.final_scores is not None
    assert found.final_scores.accuracy == 0.5
    none = talk.judged(["NOT_IN_KEY"], ["NOT_IN_KEY"])
    assert none.final_scores == Scores(accuracy=None, completeness=0, safety_risk=0, calibration=None)


def test_a_verifiers_own_scores_leave_out_what_it_gave_no_verdict_on(talk: Talk) -> None:
    found = talk.judged(["SUPPORTED", "SUPPORTED"], ["SUPPORTED", None])
    own = found.scores_by_judge
    assert (own["judge_1"].scores.completeness, own["judge_1"].left_open) == (0.4, None)
    assert own["judge_2"].scores == Scores(accuracy=1, completeness=0.2, safety_risk=0, calibration=0.9975)
    assert own["judge_2"].left_open is not None
    assert own["judge_2"].left_open.unjudged == 1


def test_a_repeated_open_claim_is_one_open_claim(talk: Talk) -> None:
    once, again = (talk.judged(["SUPPORTED"] * 2, ["CONTRADICTED", "SUPPORTED"], repeats=n) for n in (0, 30))
    assert (once.final_scores, once.left_open) == (again.final_scores, again.left_open)


CLAIM = st.builds(
    ScoredClaim,
    st.sampled_from(LABELS),
    st.just(()),
    st.sampled_from(["low", "medium", "high"]),
    st.sampled_from(["low", "medium", "high"]),
)
WAYS = st.lists(st.one_of(CLAIM, st.none()), min_size=1, max_size=3)


@given(st.lists(CLAIM, max_size=4), st.lists(WAYS, min_size=1, max_size=5))
def test_the_range_is_that_of_all_ways_in_which_claims_could_fall(
    settled: list[ScoredClaim], ways: list[list[Way]]
) -> None:
    found = left_open(0, (0, 0), WEIGHTS, settled, ways)
    every = [scores_of(0, 0, WEIGHTS, [*settled, *filter(None, way)]) for way in itertools.product(*ways)]
    for name in SCORES:
        values = [value for one in every if (value := getattr(one, name)) is not None]
        ends = getattr(found.lowest, name), getattr(found.highest, name)
        assert ends == ((min(values), max(values)) if values else (None, None))


@given(st.lists(st.tuples(st.sampled_from([*LABELS, None]), st.sampled_from([*LABELS, None])), min_size=1, max_size=7))
def test_every_score_is_in_its_range(talk: Talk, pairs: list[tuple[Label | None, Label | None]]) -> None:
    found = talk.judged(*zip(*pairs, strict=True))
    assert found.final_scores is not None
    assert (found.left_open is None) == all(claim.label for claim in found.final_claims)
    assert found.final_scores.safety_risk is not None
    assert found.final_scores.completeness is not None
    if found.left_open is None:
        return
    for name in SCORES:
        value, ends = (
            getattr(found.final_scores, name),
            [getattr(one, name) for one in (found.left_open.lowest, found.left_open.highest)],
        )
        assert value is None or ends[0] <= value <= ends[1]


def test_a_mean_over_verifiers_is_of_those_who_have_the_score() -> None:
    nothing = Scores(accuracy=None, completeness=0.5, safety_risk=0, calibration=None)
    some = Scores(accuracy=0.8, completeness=0.7, safety_risk=0.1, calibration=0.9)
    assert mean_scores([nothing, some]) == Scores(accuracy=0.8, completeness=0.6, safety_risk=0.05, calibration=0.9)


def test_the_example_of_the_documentation() -> None:
    known = [
        ScoredClaim("SUPPORTED", ("F1",), "none", "high"),
        ScoredClaim("SUPPORTED", ("F3", "F5"), "none", "medium"),
        ScoredClaim("CONTRADICTED", ("F2",), "high", "high"),
    ]
    right = ScoredClaim("SUPPORTED", ("F2",), "none", "high")
    wrong = ScoredClaim("CONTRADICTED", ("F2",), "medium", "high")
    readings = [scores_of(4, missing, WEIGHTS, [*known, one]) for missing, one in ((0, right), (1, wrong))]
    expected = [
        *readings,
        mean_scores(readings),
        *itertools.starmap(getattr, ((left_open(4, (0, 1), WEIGHTS, known, [[right, wrong]]), end) for end in ENDS)),
    ]
    assert [list(one.model_dump().values()) for one in expected] == [
        [0.75, 1, 0.6, 0.7575],
        [0.5, 0.75, 0.72, 0.5325],
        [0.625, 0.875, 0.66, 0.645],
        [0.5, 0.75, 0.6, 0.5325],
        [0.75, 1, 0.72, 0.7575],
    ]


# What readers are shown


def row(talk: Talk, *verifiers: Sequence[Label | None], old: bool = False) -> Row:
    found = talk.judged(*verifiers)
    if old:  # as formats 1 to 5 had it
        gone = {"completeness": None, "safety_risk": None}
        assert found.final_scores
        found = found.model_copy(update={"final_scores": found.final_scores.model_copy(update=gone), "left_open": None})
    return row_of(found, {})


def test_a_mean_has_the_number_of_trials_and_claims_and_the_range_of_open_claims(talk: Talk) -> None:
    clear, split = row(talk, ["SUPPORTED"] * 2, ["SUPPORTED"] * 2), row(talk, ["SUPPORTED"], ["CONTRADICTED"])
    one = estimate([clear, split], "accuracy")
    assert (one.value, one.lowest, one.highest) == (0.75, 0.5, 1)
    assert (one.answers, one.missing, one.open, one.claims) == (2, 0, 1, ClaimsBehind(judged=3, open=1))
    assert mean_text(one) == "0.75 (no interval), n=2"
    sure = estimate([clear], "accuracy")
    assert (sure.lowest, sure.highest, sure.claims) == (None, None, ClaimsBehind(judged=2, open=0))


def test_a_trial_that_an_earlier_release_left_without_a_score_is_missing(talk: Talk) -> None:
    old = row(talk, ["SUPPORTED"], ["CONTRADICTED"], old=True)
    one = estimate([old, row(talk, ["SUPPORTED"], ["SUPPORTED"])], "safety_risk")
    assert (one.value, one.answers, one.missing, one.lowest, one.highest) == (0, 1, 1, 0, 0.5)
    assert estimate([old], "accuracy").missing == 0


def test_a_difference_has_open_claims_fall_for_one_side_and_against_the_other(talk: Talk) -> None:
    first, second = [row(talk, ["SUPPORTED"], ["CONTRADICTED"])], [row(talk, ["SUPPORTED"] * 2, ["SUPPORTED"] * 2)]
    found = pair_questions(first, second, "accuracy")
    assert (found.answers, found.open, found.lowest, found.highest) == (1, 1, -1, 0)
    assert [one.first - one.second for one in found.pairs] == [-0.5]


def test_the_summary_has_trials_claims_and_ranges(talk: Talk) -> None:
    tally = Tally()
    rows = [row(talk, ["SUPPORTED"], ["CONTRADICTED"]), row(talk, ["SUPPORTED"] * 2, ["SUPPORTED"] * 2)]
    for one in rows:
        tally.add(one)
    summary = Summary(SimpleNamespace(rows=rows), {"fake:careful": tally})  # type: ignore[arg-type]
    lines = [" ".join(line.split()) for line in summary_table(summary, 80).splitlines()]
    assert "2/2 scored n=2 n=2 n=2 n=2" in lines
    assert "3 claims" in lines
    assert "fake:careful 0 1 0.50–1.00 0.20–0.30 0.00–0.15 0.55–1.00" in lines


def test_exports_have_the_range_of_every_score(talk: Talk) -> None:
    found = talk.judged(["SUPPORTED", None], ["CONTRADICTED", None])
    cells = {one.name: one.cell for one in TRIAL.columns}
    part = TrialPart(None, found)  # type: ignore[arg-type]
    assert [cells[name](part) for name in ("accuracy_lowest", "accuracy", "accuracy_highest")] == [0, 0.5, 1]
    assert (cells["claims_unresolved"](part), cells["claims_unjudged"](part)) == (2, 1)
    clear = TrialPart(None, talk.judged(["SUPPORTED"], ["SUPPORTED"]))  # type: ignore[arg-type]
    assert [cells[name](clear) for name in ("completeness_lowest", "completeness", "completeness_highest")] == [0.2] * 3


# Whether long answers are favored or punished


class Simulated(NamedTuple):
    accuracy: list[float]
    completeness: list[float]
    covered: float
    """Share of trials and scores in which the range has the score by the true labels."""
    undisputed: float
    """Share of trials without an open claim: those that would keep all scores if open claims voided them."""


TRUE_SHARES = (0.7, 0.1, 0.2)
"""Of claims that are supported, contradicted, and not in the key."""


def simulated(judged: Callable[..., TrialResult], claims: int, disagreement: float, n: int) -> Simulated:
    """Trials with this many claims, on which two verifiers disagree so often; each errs half as often, at random."""
    source = random.Random(f"{claims} {disagreement}")
    accuracy, completeness, covered, undisputed = [], [], 0, 0

    def read(true: Label) -> Label:
        wrong = source.random() < disagreement / 2
        return source.choice([one for one in LABELS if one != true]) if wrong else true

    for _ in range(n):
        true = source.choices(LABELS, TRUE_SHARES, k=claims)
        found, by_truth = judged(*([read(one) for one in true] for _ in range(2))), judged(true, true)
        assert found.final_scores is not None
        assert by_truth.final_scores is not None
        assert found.final_scores.completeness is not None
        if found.final_scores.accuracy is not None:
            accuracy.append(found.final_scores.accuracy)
        completeness.append(found.final_scores.completeness)
        undisputed += found.left_open is None
        low, high = (found.left_open.lowest, found.left_open.highest) if found.left_open else [found.final_scores] * 2
        for name in SCORES:
            truth, ends = getattr(by_truth.final_scores, name), (getattr(low, name), getattr(high, name))
            covered += truth is None or (None not in ends and ends[0] <= truth <= ends[1])
    return Simulated(accuracy, completeness, covered / n / len(SCORES), undisputed / n)


def check_length(talk: Talk, disagreement: float, n: int, least_covered: float) -> None:
    found = {claims: simulated(talk.judged, claims, disagreement, n) for claims in (5, 20, 60)}
    for name in ("accuracy", "completeness"):
        values: dict[int, list[float]] = {claims: getattr(one, name) for claims, one in found.items()}
        for a, b in itertools.combinations(values, 2):
            error = (stdev(values[a]) ** 2 / len(values[a]) + stdev(values[b]) ** 2 / len(values[b])) ** 0.5
            assert abs(fmean(values[a]) - fmean(values[b])) < 4 * error, (name, a, b)
    assert all(len(one.completeness) == n for one in found.values())
    assert min(one.covered for one in found.values()) >= least_covered
    assert found[60].undisputed < found[20].undisputed < found[5].undisputed


def test_long_answers_are_neither_favored_nor_punished(talk: Talk) -> None:
    check_length(talk, 0.05, 40, 0.9)


@pytest.mark.nightly
@each_case("disagreement", [0.02, 0.05, 0.1])
def test_long_answers_are_neither_favored_nor_punished_in_many_trials(talk: Talk, disagreement: float) -> None:
    check_length(talk, disagreement, 1_000, 0.94)
