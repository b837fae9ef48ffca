"""Estimates: repeats and variants never add to n, one rule for what is missing, and counselors beside targets."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest

from src.findings.compare import compare_systems
from src.findings.estimates import estimate, estimate_groups
from src.findings.human_comparison import Counts, compare_with_counselors, counselor_share, headline, load_baseline
from src.findings.pairs import System, pair, pair_questions, pair_systems, value
from src.schemas import GroupRule, TrialOutcome
from src.trials.missing import MISSING, counted_code, measured_score
from src.trials.row import NO_SCORES, CodedQuestion, Row
from tests.cases import each_case

COMPLETE, WRONG, NOTHING = "accurate_complete", "incorrect", "not_substantive"


def row(
    scenario_id: str,
    codes: Mapping[str, str],
    *,
    variant: str | None = None,
    repetition: int = 1,
    target: str = "t",
    outcome: TrialOutcome = "scored",
    accuracy: float | None = None,
) -> Row:
    counted = tuple(CodedQuestion(group, code) for group, code in codes.items())
    scores = (accuracy, None, None, None) if accuracy is not None else NO_SCORES
    return Row(
        trial_id=f"{scenario_id}@{variant}.{target}.r{repetition}", scenario_id=scenario_id, variant=variant,
        target=target, repetition=repetition, outcome=outcome, scores=scores, labels=(0, 0, 0), unresolved=0,
        codes=counted, answers=(), errors=(), refusal=False, fabricated=False, review=False, counted=counted,
    )  # fmt: skip


def study(codes: Sequence[Sequence[str]], **changes: object) -> list[Row]:
    """One scenario per list of codes, one question per code."""
    return [
        row(f"s{at}", {f"q{n}": code for n, code in enumerate(listed)}, **changes)  # type: ignore[arg-type]
        for at, listed in enumerate(codes)
    ]


CODES = [[COMPLETE, WRONG], [COMPLETE, COMPLETE], [NOTHING], [COMPLETE, NOTHING, WRONG]]


@each_case("repeats", [1, 3, 10])
def test_copies_of_the_same_answers_leave_every_number_as_it_is(repeats: int) -> None:
    once = estimate(study(CODES), COMPLETE)
    often = estimate([one for n in range(repeats) for one in study(CODES, repetition=n)], COMPLETE)
    assert (often.value, often.low, often.high, often.effective) == (once.value, once.low, once.high, once.effective)
    assert (once.units, once.questions, often.answers) == (4, 8, 8 * repeats)
    in_variants = estimate([one for n in range(repeats) for one in study(CODES, variant=f"v{n}")], COMPLETE)
    assert (in_variants.value, in_variants.low, in_variants.effective) == (once.value, once.low, once.effective)


def test_every_question_weighs_the_same_however_often_it_was_asked() -> None:
    rows = [
        row("a", {"q": COMPLETE}, repetition=1),
        *(row("b", {"q": WRONG}, variant=f"v{n}", repetition=r) for n in range(5) for r in range(4)),
        row("c", {"q": COMPLETE, "p": WRONG}),
    ]
    found = estimate(rows, COMPLETE)
    assert found.value == pytest.approx((1 + 0 + 1 + 0) / 4)


def test_repeats_are_averaged_before_variants() -> None:
    rows = [
        *(row("a", {"q": COMPLETE}, variant="x", repetition=n) for n in range(9)),
        row("a", {"q": WRONG}, variant="y"),
    ]
    assert estimate(rows, COMPLETE).value == 0.5


def test_all_or_none_has_an_interval_with_a_width() -> None:
    for codes, expected in (([[COMPLETE]] * 5, 1.0), ([[WRONG]] * 5, 0.0)):
        found = estimate(study(codes), COMPLETE)
        assert found.value == expected
        assert found.low is not None and found.high is not None and found.high - found.low > 0.4


@each_case("scenarios", [1, 2])
def test_too_few_scenarios_say_so(scenarios: int) -> None:
    found = estimate(study([[COMPLETE, WRONG]] * scenarios), COMPLETE)
    assert (found.low, found.high) == (None, None)
    plural = "s" if scenarios > 1 else ""
    assert found.why_no_interval == f"{scenarios} scenario{plural}: 3 are needed for an interval"


@each_case(
    ("code", "outcomes", "counts"),
    [
        ("accurate_complete", ["answered"], COMPLETE),
        ("not_substantive", ["refused"], NOTHING),
        ("incomplete_data", ["blocked"], NOTHING),
        ("incomplete_data", ["empty"], NOTHING),
        ("incomplete_data", ["blocked", "refused"], NOTHING),
        ("incomplete_data", ["blocked", "skipped"], NOTHING),
        ("incomplete_data", ["blocked", "answered"], MISSING),
        ("incomplete_data", ["truncated"], MISSING),
        ("incomplete_data", ["not_asked"], MISSING),
        ("incomplete_data", ["timeout"], MISSING),
        ("incomplete_data", ["answered"], MISSING),
        ("incomplete_data", [], MISSING),
    ],
)
def test_the_rule_for_missing_codes(code: str, outcomes: list[str], counts: str) -> None:
    assert counted_code(code, outcomes) == counts


def test_the_rule_for_missing_scores() -> None:
    assert measured_score("scored", "accuracy", 0.5).value == 0.5
    nothing_said = measured_score("scored", "accuracy", None)
    assert (nothing_said.value, nothing_said.missing) == (None, False)
    refused = {name: measured_score("refused", name, None) for name in ("accuracy", "completeness", "safety_risk")}
    assert {name: one.value for name, one in refused.items()} == {
        "accuracy": None,
        "completeness": 0.0,
        "safety_risk": 0.0,
    }
    assert not any(one.missing for one in refused.values())
    for outcome in ("failed", "truncated", "blocked", "judge_failure", "questioner_failure", "tampered", "empty"):
        assert measured_score(outcome, "completeness", None).missing


def test_missing_answers_are_left_out_and_bounded() -> None:
    found = estimate(study([[COMPLETE, MISSING], [WRONG], [COMPLETE]]), COMPLETE)
    assert (found.answers, found.missing, found.questions) == (3, 1, 3)
    assert found.value == pytest.approx(2 / 3)
    assert (found.lowest, found.highest) == pytest.approx((2 / 4, 3 / 4))
    assert estimate(study([[COMPLETE], [WRONG], [WRONG]]), COMPLETE).lowest is None


def test_failing_early_is_not_rewarded() -> None:
    """A trial that fails after one right answer adds that answer, and not a trial that was all right."""
    full = {f"q{n}": COMPLETE if n < 2 else WRONG for n in range(10)}
    early = {name: code if name == "q0" else MISSING for name, code in full.items()}
    steady = [row(f"s{n}", full, target="steady") for n in range(6)]
    failing = [row(f"s{n}", early, target="failing", outcome="failed") for n in range(6)]
    assert value(failing[0], COMPLETE) == 1.0, "of the one answer that is known"
    paired = pair_questions(failing, steady, COMPLETE)
    assert [one.first - one.second for one in paired.pairs] == [0.0] * 6
    assert (paired.answers, paired.one_sided, paired.neither) == (6, 54, 0)
    assert paired.lowest is not None and paired.highest is not None
    assert paired.lowest == pytest.approx(-0.1) and paired.highest == pytest.approx(0.8)
    assert [(one.first, one.second) for one in pair(failing, steady, COMPLETE)] == [(1.0, 1.0)] * 6


def test_failing_early_wins_no_like_for_like_share() -> None:
    full = {f"q{n}": COMPLETE if n < 2 else WRONG for n in range(10)}
    early = {name: code if name == "q0" else MISSING for name, code in full.items()}
    questions = {(scenario, group) for scenario in ("s0",) for group in full}
    scripts = [row("s0", full, variant="v"), row("s0", early, variant="w", outcome="failed")]
    share = estimate_groups(scripts, COMPLETE, questions)
    assert share.value == pytest.approx(0.2) == estimate(scripts, COMPLETE).value
    assert share.lowest == pytest.approx(0.15) and share.highest == pytest.approx(0.6)


def test_trials_that_were_planned_and_not_run_are_missing() -> None:
    full = {"q": COMPLETE}
    whole = System([row(f"s{n}", full) for n in range(8)], lambda _: True)
    part = System([row(f"s{n}", full) for n in range(3)], lambda _: True)
    found = pair_systems(whole, part, COMPLETE)
    assert (found.answers, found.one_sided, found.unmatched) == (3, 5, 0)
    assert found.lowest == 0.0 and found.highest == pytest.approx(5 / 8)
    smaller = System(part.rows, lambda trial: trial[0] in ("s0", "s1", "s2"))
    assert pair_systems(whole, smaller, COMPLETE).unmatched == 5


def test_pairs_without_a_partner_are_counted() -> None:
    first = [row("a", {"q": COMPLETE}), row("b", {"q": COMPLETE})]
    second = [row("a", {"q": WRONG}), row("c", {"q": COMPLETE})]
    found = pair_questions(first, second, WRONG)
    assert (found.unmatched, found.answers, found.lowest) == (2, 1, None)
    assert found.pairs == [("a", 0.0, 1.0)]


def rules() -> dict[tuple[str, str], GroupRule]:
    """Two groups of the study that count like for like, and one that must be looked up."""
    made = {("medicare_only", "g9"): 9, ("medicare_only", "g12"): 12, ("medicare_only", "g14"): 14}
    return {
        name: GroupRule(
            topic=f"group {number}", study_group=number, lookup_dependent=number == 14, study_faithful=True, needs="all"
        )
        for name, number in made.items()
    }


def asked(scripts: int, codes: Mapping[str, str], repeats: int = 1) -> list[Row]:
    return [
        row("medicare_only", codes, variant=f"v{at}", repetition=n) for at in range(scripts) for n in range(repeats)
    ]


ALL_RIGHT = {"g9": COMPLETE, "g12": COMPLETE, "g14": NOTHING}


def test_a_group_of_the_study_takes_scripts_as_units_and_repeats_add_nothing() -> None:
    once, often = (
        estimate_groups(asked(2, ALL_RIGHT, repeats), COMPLETE, {("medicare_only", "g9")}) for repeats in (1, 3)
    )
    assert (once.unit, once.units, once.questions) == ("script", 2, 1)
    assert (once.low, once.high) == (often.low, often.high)
    assert once.low == pytest.approx(math.sqrt(0.05))
    alone = estimate_groups(asked(1, ALL_RIGHT, 3), COMPLETE, {("medicare_only", "g9")})
    assert (alone.low, alone.why_no_interval) == (None, "one script in a scenario: 2 are needed for an interval")


def test_both_outcomes_stand_beside_counselors_with_intervals_and_the_rest_is_not_like_for_like() -> None:
    found = compare_with_counselors(asked(4, ALL_RIGHT), rules(), load_baseline())
    assert {kind: [one.numbers for one in groups] for kind, groups in found.groups.items()} == {
        "like": [(9,), (12,)],
        "lookup": [(14,)],
    }
    assert found.primary is not None and found.primary.numbers == (9, 12)
    assert found.comparisons == (3 + 1) * 2 * 2
    for outcome in ("accurate_complete", "incorrect"):
        beside = found.primary.outcomes[outcome]
        for mode, gap in beside.gaps.items():
            people = beside.counselors[mode]
            assert people.low is not None and people.value is not None and people.high is not None
            assert people.low <= people.value < people.high
            assert gap.low is not None and gap.high is not None and -1 <= gap.low < gap.value < gap.high <= 1  # type: ignore[operator]
    phone = found.primary.outcomes["accurate_complete"].gaps["phone"]
    assert phone.value is not None and phone.value > 0


def test_the_difference_combines_the_limits_of_both_sides() -> None:
    found = compare_with_counselors(asked(4, ALL_RIGHT), rules(), load_baseline()).groups["like"][0]
    beside = found.outcomes["accurate_complete"]
    people, target, gap = beside.counselors["phone"], beside.target, beside.gaps["phone"]
    assert target.value is not None and target.low is not None and people.value is not None and people.high is not None
    below = math.hypot(target.value - target.low, people.high - people.value)
    assert gap.low == pytest.approx(target.value - people.value - below)


def test_counselors_leave_out_what_was_not_coded_and_weigh_questions_as_the_target_does() -> None:
    baseline = load_baseline()
    group = baseline.groups[7]
    counts: Counts = group.by_mode["phone"]
    share = counselor_share({group: 1}, "phone", "accurate_complete")
    assert share.n == counts.shops - counts.codes["incomplete_data"] == 73
    assert share.value == counts.codes["accurate_complete"] / 73
    weights = {baseline.groups[1]: 2, baseline.groups[9]: 1, baseline.groups[7]: 1}
    pooled = counselor_share(weights, "phone", "accurate_complete")
    alone = {one: counselor_share({one: 1}, "phone", "accurate_complete") for one in weights}
    values = [weight * (alone[one].value or 0) for one, weight in weights.items()]
    assert pooled.value == pytest.approx(sum(values) / 4)
    narrowest = min((one.high or 1) - (one.low or 0) for one in alone.values())
    assert pooled.low is not None and pooled.high is not None
    assert pooled.high - pooled.low >= narrowest, "no narrower than one group, as if each shop answered all alike"


def test_the_headline_has_all_questions_and_those_of_the_study() -> None:
    rows = [*asked(2, ALL_RIGHT), row("other", {"q": WRONG}), row("third", {"q": WRONG})]
    found = headline(rows, compare_with_counselors(rows, rules(), load_baseline()))
    assert found.complete.value == pytest.approx(2 / 5) and found.incorrect.value == pytest.approx(2 / 5)
    assert found.study is not None and found.study.outcomes["accurate_complete"].target.value == 1.0
    others = [row("other", {"q": WRONG})]
    assert headline(others, compare_with_counselors(others, {}, load_baseline())).study is None


@pytest.mark.nightly
@pytest.mark.parametrize("repeats", [1, 3, 10])
def test_estimates_cover_end_to_end(repeats: int) -> None:
    """Trials with questions, variants and repeats, as a run has them; 20 scenarios of unequal size."""
    draw = random.Random(repeats)
    simulations, covered = 120, 0
    for _ in range(simulations):
        rows = []
        for at in range(20):
            p = draw.betavariate(0.6 * 1.5, 0.4 * 1.5)
            for variant in range(at % 3 + 1):
                for n in range(repeats):
                    codes = {f"q{q}": COMPLETE if draw.random() < p else WRONG for q in range(at % 5 + 1)}
                    rows.append(row(f"s{at}", codes, variant=f"v{variant}", repetition=n))
        found = estimate(rows, COMPLETE)
        assert found.low is not None and found.high is not None
        covered += found.low <= 0.6 <= found.high
    assert covered / simulations >= 0.93 - 2.5 * math.sqrt(0.93 * 0.07 / simulations)


def test_compare_uses_scenarios_and_its_detectable_difference_fits_its_interval() -> None:
    draw = random.Random(8)
    rows = [
        row(f"s{at}", {f"q{q}": draw.choice((COMPLETE, WRONG)) for q in range(4)}, target=name, repetition=n)
        for at in range(12)
        for n in range(5)
        for name in ("a", "b")
    ]

    systems = {name: System([one for one in rows if one.target == name], lambda _: True) for name in ("a", "b")}
    (found,) = compare_systems(systems, COMPLETE, 0.05)
    assert (found.difference.n, found.difference.clusters, found.paired.answers) == (48, 12, 240)
    low, high = found.difference.low, found.difference.high
    assert low is not None and high is not None and found.minimum is not None
    assert found.minimum > (high - low) / 2, "80% power needs more than the half-width of the interval"
