"""What wrong answers could cost: which errors count, their amounts worked out by hand, and the table of the demo."""

from __future__ import annotations

import csv
import os
import re
import statistics
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.findings.dollars import Amount, CostlyError, costs_of, errors_of, spread, stated_amount
from src.findings.read_run import gather
from src.records.background import BackgroundFact
from src.reports import write
from src.reports.document import Contents, shown
from src.reports.dollar_section import DOLLARS_CSV, SHOWN, dollar_sections
from src.reports.html import html
from src.reports.markdown import markdown
from src.reports.sections import contents
from src.reports.series import runs_of
from src.reports.write import write_report
from src.schemas import CanonicalFact, Claim, CostIfWrong, FinalClaim, RunPlan, Scenario, TrialResult
from src.text.money import dollars_text
from tests.cases import each_case
from tests.findings.made_runs import costly, write_run
from tests.helpers import claim, fact_json, final_claim, plan, result, scenario
from tests.runs import shared

PENALTY = "dime(0.10 * 2 * 202.90) * 12 * years"
PREMIUM = "abs(stated - 202.90) * 12"


def fact(fact_id: str, formula: str | None, cost_class: str = "priced", **more: Any) -> dict[str, Any]:
    cost = {"cost_class": cost_class, **({"formula": formula} if formula else {}), **more}
    return {**fact_json(fact_id, f"The premium of {fact_id} is $202.90 a month."), "cost_if_wrong": cost}


def asking(*facts: dict[str, Any], **changes: Any) -> Scenario:
    key = {"canonical_facts": list(facts), "required_points": [], "disallowed_claims": []}
    return scenario(answer_key=key, **changes)


def wrong(number: int, *evidence: str, text: str = "It is less.", **changes: Any) -> FinalClaim:
    return final_claim(f"Q1.C{number}", "CONTRADICTED", evidence=evidence, text=text, **changes)


def found_in(one: Scenario, *final: FinalClaim, **changes: Any) -> list[CostlyError]:
    claims = [claim(each.claim_id) for each in final]
    trial = result(claims=claims, final_claims=final, **changes)
    return errors_of(trial, costs_of(plan(scenarios=[one])))


def test_an_error_is_a_contradicted_claim_that_cites_a_fact_with_a_cost() -> None:
    one = asking(fact("F1", PENALTY, horizon=[1, 10, 20]), fact_json("F2"))
    supported = final_claim("Q1.C2", "SUPPORTED", evidence=("F1",))
    [error] = found_in(one, wrong(1, "F1"), supported, wrong(3, "F2"), wrong(4, "D1"), wrong(5))
    assert (error.claim_id, error.fact.fact_id, error.cost_class) == ("Q1.C1", "F1", "priced")
    assert [(amount.years, str(amount.dollars)) for amount in error.amounts] == [
        (1, "487.20"),
        (10, "4872.00"),
        (20, "9744.00"),
    ]


def test_a_background_fact_never_counts() -> None:
    one = asking({**fact("F1", PENALTY), "library": "B-penalty"})
    assert found_in(one, wrong(1, "B-penalty")) == []
    assert len(found_in(one, wrong(1, "B-penalty", "F1"))) == 1
    made = plan(scenarios=[asking(fact_json("F1"))])
    cost = CostIfWrong(cost_class="priced", formula="5", note="")
    background = BackgroundFact.model_validate_json(
        '{"fact_id": "B-x", "statement": "x", "severity_if_wrong": "low", "source": "s", "address": "https://a.gov",'
        '"locator": "p", "valid_from": "2026-01-01", "confirmed_by": "primary", "themes": ["t"]}'
    ).model_copy(update={"cost_if_wrong": cost})
    costs = costs_of(made.model_copy(update={"background": (background,)}))
    assert errors_of(result(claims=[claim()], final_claims=[wrong(1, "B-x")]), costs) == []


def test_a_claim_that_sounds_uncertain_does_not_count() -> None:
    costs = costs_of(plan(scenarios=[asking(fact("F1", PENALTY))]))
    for confidence, count in (("low", 0), ("medium", 1), ("high", 1)):
        said: Claim = claim(confidence=confidence)  # type: ignore[arg-type]
        assert len(errors_of(result(claims=[said], final_claims=[wrong(1, "F1")]), costs)) == count


def test_only_scored_trials_count() -> None:
    one = asking(fact("F1", PENALTY))
    assert len(found_in(one, wrong(1, "F1"))) == 1
    assert found_in(one, wrong(1, "F1"), outcome="judge_failure") == []


def test_a_fact_counts_once_in_a_trial() -> None:
    one = asking(fact("F1", PENALTY), fact("F2", "5", "exposure"))
    errors = found_in(one, wrong(1, "F1"), wrong(2, "F1"), wrong(3, "F2", "F1"))
    assert [(error.fact.fact_id, error.claim_id) for error in errors] == [("F1", "Q1.C1"), ("F2", "Q1.C3")]


def test_facts_with_the_same_formula_are_one_loss_unless_the_class_differs() -> None:
    one = asking(fact("F1", PENALTY), fact("F2", PENALTY), fact("F3", PENALTY, "exposure"))
    errors = found_in(one, wrong(1, "F2", "F1"), wrong(2, "F1", "F3"))
    assert [(error.fact.fact_id, error.cost_class) for error in errors] == [("F2", "priced"), ("F3", "exposure")]


def test_a_claim_counts_once_among_facts_without_a_price() -> None:
    one = asking(fact("F1", None, "unpriced"), fact("F2", None, "unpriced"), fact("F3", "5"))
    errors = found_in(one, wrong(1, "F1", "F2", "F3"), wrong(2, "F1"), wrong(3, "F2", severity="high"))
    assert [(error.fact.fact_id, error.severity) for error in errors] == [
        ("F1", "medium"),
        ("F3", "medium"),
        ("F2", "high"),
    ]
    assert (errors[0].amounts, errors[0].formula) == ((), None)


FACT = "The standard Part B premium in 2026 is $202.90 a month."


@each_case(
    ("text", "amount"),
    [
        ("The standard Part B premium in 2026 is $185.00 a month.", "185"),
        ("The premium is one hundred eighty-five dollars.", "185"),
        ("The premium rises from $202.90 to $210 a month.", "210"),  # the fact's own amount is not the error
        ("With an income of $1,600 the premium is $185 a month.", "185"),  # the person gave the income
        ("The premium is $0 a month.", "0"),
        ("The premium is lower than you think.", None),
        ("The premium is $185 or $190 a month.", None),
        ("The premium is $2,220 a year.", None),  # cannot be compared with an amount for a month
        ("The premium is $185 a month, or $2,220 a year.", None),
        ("The premium is 20% lower.", None),
        ("The premium is $99999999999999999999.", None),
        ("The premium is $1,600 a month.", None),  # an amount that the person gave
    ],
)
def test_the_amount_stated_is_the_one_that_is_neither_given_nor_right(text: str, amount: str | None) -> None:
    found = stated_amount(text, FACT, frozenset({Decimal(1600)}))
    assert found == (None if amount is None else Decimal(amount))


@each_case(
    ("text", "fact_text", "amount"),
    [
        ("The cap is $8,000.", "Costs are capped at $2,100 for the year.", "8000"),
        ("The cap is $8,000 a year.", "Costs are capped at $2,100 for the year.", "8000"),
        ("The cap is $200 a month.", "Costs are capped at $2,100 for the year.", None),
        ("The limit is $13,680 a year.", "The limit cannot be higher than $9,250.", "13680"),
        ("The limit is $100 each month.", "The limit cannot be higher than $9,250.", None),
    ],
)
def test_amounts_for_a_month_and_a_year_are_not_compared(text: str, fact_text: str, amount: str | None) -> None:
    assert stated_amount(text, fact_text, frozenset()) == (None if amount is None else Decimal(amount))


def test_amounts_of_the_persona_and_of_every_question_are_given() -> None:
    one = asking(fact("F1", PREMIUM), persona={"name": "Ada", "monthly_income": 1600, "attributes": {"savings": 9000}})
    text = "With $1,600, savings of $9,000 and a bill of $150 you pay $185 a month."
    [error] = found_in(one, wrong(1, "F1", text=text), question="I got a bill of $150. What is Part B?")
    assert (error.stated, [str(amount.dollars) for amount in error.amounts]) == (Decimal(185), ["214.80"])
    assert error.formula == "abs(185 - 202.90) * 12"


def test_without_a_single_amount_the_error_counts_without_dollars() -> None:
    one = asking(fact("F1", PREMIUM))
    [error] = found_in(one, wrong(1, "F1", text="The premium is much lower."))
    assert (error.needs_stated, error.stated, error.amounts) == (True, None, ())
    later = found_in(one, wrong(1, "F1", text="It is much lower."), wrong(2, "F1", text="It is $185 a month."))
    assert [(one.claim_id, str(one.amounts[0].dollars)) for one in later] == [("Q1.C2", "214.80")]


@each_case(
    "formula", ["100 / (years - 1)", "unknown * 2", "2 ** 3", "1 +", "dime(1000000000000 * 1000000000000 * 1000000)"]
)
def test_an_amount_that_cannot_be_computed_is_no_amount(formula: str, tmp_path: Path) -> None:
    one = asking(fact("F1", formula, horizon=[1, 2]))
    [error] = found_in(one, wrong(1, "F1"))
    assert (error.needs_stated, error.amounts, error.formula) == (False, (), formula)
    text = markdown(report_of(tmp_path / "run", [errors_by("fake:careful", 1, wrong(1, "F1"))], plan(scenarios=[one])))
    assert "| fake:careful | 1 | 1 | 1 | 0 | 0 | – | – |" in text
    assert ": no amount can be computed\n" in text


def test_a_stated_amount_that_cannot_be_computed_with_is_no_amount() -> None:
    one = asking(fact("F1", "100 / (stated - 185)"), fact("F2", "stated * stated"))
    [error] = found_in(one, wrong(1, "F1", text="It is $185 a month."))
    assert (error.needs_stated, error.stated, error.amounts) == (True, Decimal(185), ())
    [error] = found_in(one, wrong(1, "F2", text="It is $900,000,000 a month."))
    assert (error.stated, error.amounts) == (Decimal(900_000_000), ())


def made(trial: str, *amounts: str, horizon: tuple[int, ...] = (1,)) -> CostlyError:
    """An error with these amounts for the years of its horizon."""
    one = CanonicalFact.model_validate_json(
        '{"fact_id": "F1", "statement": "x", "severity_if_wrong": "low", "source": "s"}'
    )
    pairs = tuple(zip(horizon, map(Decimal, amounts), strict=False))
    return CostlyError(
        trial, "a:b", "Q1.C1", "Q1", "low", one, "priced", horizon, False, None, tuple(Amount(*pair) for pair in pairs)
    )


def test_a_spread_counts_errors_trials_and_amounts_and_interpolates() -> None:
    errors = [made("t1", "100"), made("t1", "200"), made("t2", "400"), made("t3")]
    found = spread(errors, 1)
    assert (found.errors, found.trials, found.with_dollars) == (4, 3, 3)
    assert found.median == 200
    assert found.high == pytest.approx(360)  # 0.9 * (3 - 1) = 1.8: 200 + 0.8 * (400 - 200)


def test_an_error_that_costs_nothing_is_no_loss_and_in_no_median() -> None:
    errors = [made("t1", "0.00"), made("t1", "100"), made("t2", "0"), made("t3", "300"), made("t4")]
    found = spread(errors, 1)
    assert (found.errors, found.trials, found.with_dollars, found.no_loss) == (5, 4, 2, 2)
    assert found.median == 200
    assert found.high == pytest.approx(280)
    nothing = spread([made("t1", "0")], 1)
    assert (nothing.errors, nothing.with_dollars, nothing.no_loss, nothing.median) == (1, 0, 1, None)


def test_the_table_counts_what_costs_nothing_as_no_loss(tmp_path: Path) -> None:
    one = asking(fact("F1", "0"), fact("F2", PENALTY))
    trials = [errors_by("fake:careful", n, *(wrong(m, f"F{m}") for m in range(1, n + 1))) for n in (1, 2)]
    text = markdown(report_of(tmp_path / "run", trials, plan(scenarios=[one], repeats=2)))
    assert "| years | errors | in trials | with an amount | no loss | median | 90th percentile |" in text
    assert "| fake:careful | 1 | 3 | 2 | 1 | 2 | $487.20 | $487.20 |" in text


def test_a_spread_over_more_years_holds_only_what_is_paid_for_years() -> None:
    errors = [made("t1", "50"), made("t2", "10", "100", "200", horizon=(1, 10, 20)), made("t3", horizon=(1, 10, 20))]
    assert (spread(errors, 1).errors, spread(errors, 1).median) == (3, 30)
    assert (spread(errors, 10).errors, spread(errors, 10).with_dollars, spread(errors, 10).median) == (2, 1, 100)
    assert (spread(errors, 20).median, spread(errors, 20).high) == (200, 200)
    assert (spread(errors, 5).errors, spread(errors, 5).median, spread(errors, 5).high) == (0, None, None)


@given(st.lists(st.integers(1, 10**8), min_size=2, max_size=40))
def test_percentiles_are_those_of_the_standard_library(cents: list[int]) -> None:
    amounts = [Decimal(one) / 100 for one in cents]
    found = spread([made(f"t{n}", str(amount)) for n, amount in enumerate(amounts)], 1)
    assert found.median == pytest.approx(float(statistics.median(amounts)))
    tenths = statistics.quantiles(map(float, amounts), n=10, method="inclusive")
    assert found.high == pytest.approx(tenths[8])


def report_of(folder: Path, results: list[TrialResult], made_plan: RunPlan) -> Contents:
    return contents([gather(write_run(folder, results, made_plan))], [None])


def errors_by(target: str, repetition: int, *final: FinalClaim) -> TrialResult:
    return result(
        target=target, repetition=repetition, claims=[claim(one.claim_id) for one in final], final_claims=final
    )


def lines_of(report: Path) -> list[dict[str, str]]:
    with (report / DOLLARS_CSV).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_section_shows_each_class_on_its_own_and_leads_to_the_claim(tmp_path: Path) -> None:
    stated = wrong(2, "F2", text="It is $185 a month.")
    trials = [
        errors_by("fake:careful", 1, wrong(1, "F1"), stated, wrong(3, "F3", severity="high")),
        errors_by("fake:careful", 2, wrong(1, "F1"), wrong(2, "F2", text="It is less.")),
    ]
    text = markdown(report_of(tmp_path / "run", trials, plan(scenarios=[costly()], repeats=2)))
    part = text.split("\n## What wrong answers could cost\n")[1].split("\n## ")[0]
    assert "| fake:careful | 1 | 2 | 2 | 2 | 0 | $487.20 | $487.20 |" in part
    assert "| fake:careful | 10 | 2 | 2 | 2 | 0 | $4,872 | $4,872 |" in part
    assert "| fake:careful | 20 | 2 | 2 | 2 | 0 | $9,744 | $9,744 |" in part
    assert "| fake:careful | 1 | 2 | 2 | 1 | 0 | $214.80 | $214.80 |" in part
    assert "| fake:careful | 1 | 1 | 1 | 0 | 0 |" in part
    assert "5 of 5 errors shown" in part
    assert re.search(
        r"^- \[`s1\.fake-careful\.r1`\]\(evidence/[^)]+\), claim \[`Q1\.C2`\]\(evidence/[^)]+\)$", part, re.MULTILINE
    )
    assert r"  - Cost: \|185 − 202.90\| × 12 = $214.80" in part
    assert "  - Cost: no amount can be defended" in part
    assert "no amount can be computed, because the claim states no single amount" in part
    assert "$487.20 in 1 year, $4,872 in 10 years, $9,744 in 20 years" in part
    assert text.index("## Exemplary incorrect responses") < text.index("## What wrong answers could cost")


def test_what_others_wrote_is_inert(tmp_path: Path) -> None:
    evil = wrong(2, "F2", text="<script>alert(1)</script> | $185 a month")
    trials = [errors_by("fake:careful", 1, evil)]
    made_plan = plan(scenarios=[costly()])
    page = html(report_of(tmp_path / "run", trials, made_plan))
    assert "<script>alert(1)</script> |" not in page
    write_report([tmp_path / "run"], tmp_path / "out")
    [line] = lines_of(tmp_path / "out")
    assert line["note"] == "'=SUM(A1)"
    assert (line["class"], line["stated"], line["years"], line["dollars"]) == ("exposure", "185", "1", "214.80")
    assert line["quotes"] == "“Plans”"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_the_file_has_the_same_bytes_if_another_process_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = [errors_by("fake:careful", n, wrong(1, "F1"), wrong(3, "F3")) for n in (1, 2, 3)]
    run = write_run(tmp_path / "run", trials, plan(scenarios=[costly()], repeats=3))
    write_report([run], tmp_path / "alone")
    monkeypatch.setattr(write, "WORTH_IT", 1)
    monkeypatch.setattr(write, "process_count", lambda: 3)
    write_report([run], tmp_path / "shared")
    assert len(lines_of(tmp_path / "alone")) == 12
    assert (tmp_path / "alone" / DOLLARS_CSV).read_bytes() == (tmp_path / "shared" / DOLLARS_CSV).read_bytes()


def test_a_run_without_costs_has_no_section_and_no_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [errors_by("fake:careful", 1, wrong(1, "F1"))], plan())
    assert list(dollar_sections(runs_of([gather(run)], [None]))) == []
    write_report([run], tmp_path / "out")
    assert not (tmp_path / "out" / DOLLARS_CSV).exists()


def test_amounts_are_whole_dollars_where_there_are_no_cents() -> None:
    amounts = (Decimal("1000.00"), Decimal("365.4"), 0.0, 1234.565, 0.05)
    assert [dollars_text(one) for one in amounts] == ["$1,000", "$365.40", "$0", "$1,234.57", "$0.05"]


def test_a_run_with_costs_and_without_errors_says_so(tmp_path: Path) -> None:
    text = markdown(report_of(tmp_path / "run", [errors_by("fake:careful", 1)], plan(scenarios=[costly()])))
    assert "None: no claim contradicts a fact that has a cost." in text
    write_report([tmp_path / "run"], tmp_path / "out")
    assert len((tmp_path / "out" / DOLLARS_CSV).read_text(encoding="utf-8").splitlines()) == 1


def test_only_some_errors_are_shown_the_largest_first_and_each_fact_once_before_any_twice(tmp_path: Path) -> None:
    amounts = (5, 60, 7, 80, 9)
    one = asking(*({**fact(f"F{n}", str(amount)), "statement": f"Says {n}."} for n, amount in enumerate(amounts, 1)))
    trials = [errors_by("fake:careful", n, *(wrong(m, f"F{m}") for m in range(1, 6))) for n in (1, 2)]
    text = markdown(report_of(tmp_path / "run", trials, plan(scenarios=[one], repeats=2)))
    assert SHOWN == 4
    costs = [line.strip() for line in text.splitlines() if line.startswith("  - Cost: ")]
    assert costs == ["- Cost: $80", "- Cost: $60", "- Cost: $9", "- Cost: $7"]
    assert "4 of 10 errors shown" in text


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_report([shared("demo").folder], folder / "report")
    return folder


PART_B_1 = Decimal("20.30") * 12
"""10% of $202.90 is $20.29, to the dime $20.30; 12 months: $243.60."""
PART_B_2 = Decimal("40.60") * 12
"""20% of $202.90 is $40.58, to the dime $40.60; 12 months: $487.20."""
PART_D_24 = Decimal("9.40") * 12
"""24% of $38.99 is $9.3576, to the dime $9.40; 12 months: $112.80."""
EXTRA_HELP = 2100 + Decimal("38.99") * 12
"""The cap and a year of the base premium, $467.88: $2,567.88."""
SAID_150 = (Decimal("202.90") - 150) * 12
"""$52.90 a month: $634.80."""
SAID_185 = (Decimal("202.90") - 185) * 12
"""$17.90 a month: $214.80."""
MEDICARE_ONLY = {
    "B-part-b-penalty-rate": PART_B_2,
    "B-part-b-sep-cobra-does-not-extend": PART_B_1,
    "B-part-b-premium": SAID_150,
    "B-part-d-penalty-63-days": PART_D_24,
    "B-original-medicare-no-yearly-limit": Decimal(10_000),  # 20% of $50,000
    "B-original-medicare-no-custodial-care": Decimal(111_325),
}
BY_HAND = {
    "medicare_only@hmo": MEDICARE_ONLY,
    "medicare_only@ppo": MEDICARE_ONLY,
    "scenario_001": {
        "B-original-medicare-no-yearly-limit": Decimal(10_000),
        "B-advantage-moop-in-network": Decimal(13_680 - 9_250),
    },
    "scenario_002": {"B-part-b-premium": SAID_185, "B-part-b-sep-8-months": PART_B_2},
    "scenario_003": {"B-extra-help-automatic-slmb": EXTRA_HELP},
    "dual_eligible@maple_hollow": {"B-extra-help-automatic-medicaid": EXTRA_HELP},
    "dual_eligible@tamarack_point": {"B-extra-help-automatic-medicaid": EXTRA_HELP},
}
"""What the wrong answers of the demo cost in one year, by trial and fact."""
LIFELONG = (
    "B-part-b-penalty-rate",
    "B-part-b-sep-8-months",
    "B-part-b-sep-cobra-does-not-extend",
    "B-part-d-penalty-63-days",
)


def test_every_amount_of_the_demo_is_as_worked_out_by_hand(demo: Path) -> None:
    found: dict[str, dict[str, Decimal]] = {}
    for line in lines_of(demo / "report"):
        if line["dollars"]:
            assert line["target"] == "fake:wrong"
            years = int(line["years"])
            assert years == 1 or line["library_fact"] in LIFELONG
            trial = line["trial_id"].partition(".")[0]
            of_trial = found.setdefault(trial, {})
            assert of_trial.setdefault(line["library_fact"], Decimal(line["dollars"])) * years == Decimal(
                line["dollars"]
            )
    assert found == BY_HAND


def test_the_table_of_the_demo_is_as_worked_out_by_hand(demo: Path) -> None:
    text = (demo / "report" / "report.md").read_text(encoding="utf-8")
    part = text[text.index("Priced: dollars per error") : text.index("errors shown")]
    rows = [line for line in part.splitlines() if line.startswith("| fake:wrong |")]
    # Priced, 10 errors in 3 trials: 112.80 twice, 214.80, 243.60 twice, 487.20 three times, 634.80 twice.
    # The median is between the 5th and the 6th: (243.60 + 487.20) / 2 = 365.40.
    # The 90th percentile is at 0.9 * 9 = 8.1, between the 9th and the 10th, both 634.80.
    # Of these, 7 are for life; the 4th of 112.80 twice, 243.60 twice and 487.20 three times is 243.60: 2,436 in 10 years.
    # At 0.9 * 6 = 5.4, between the 6th and the 7th, both are 487.20: 4,872 in 10 years and 9,744 in 20.
    # Exposure, 9 errors in 6 trials: 2,567.88 three times, 4,430, 10,000 three times, 111,325 twice. The 5th is 10,000.
    # At 0.9 * 8 = 7.2, between the 8th and the 9th, both are 111,325.
    # Unpriced: 3 wrong dates in each of 2 dual_eligible trials; 4 dates, the Medigap period (high) and the drug lists
    # (medium) in each of 2 medicare_only trials; the Medigap period in scenario_001: 6 + 12 + 1 = 19, 17 of them high.
    assert rows == [
        "| fake:wrong | 1 | 10 | 3 | 10 | 0 | $365.40 | $634.80 |",
        "| fake:wrong | 10 | 7 | 3 | 7 | 0 | $2,436 | $4,872 |",
        "| fake:wrong | 20 | 7 | 3 | 7 | 0 | $4,872 | $9,744 |",
        "| fake:wrong | 1 | 9 | 6 | 9 | 0 | $10,000 | $111,325 |",
        "| fake:wrong | 19 | 5 | 17 | 2 | 0 |",
    ]
    for target in ("careful", "evasive", "partial"):
        ours = [line for line in part.splitlines() if line.startswith(f"| fake:{target} |")]
        assert ours == [f"| fake:{target} | 1 | 0 | 0 | 0 | 0 | – | – |"] * 2 + [
            f"| fake:{target} | 0 | 0 | 0 | 0 | 0 |"
        ]


def test_costs_are_no_part_of_anything_else_in_the_report() -> None:
    run = shared("demo").folder
    found = gather(run)
    there = contents([found], [None])
    plan_of = found.manifest.plan
    scenarios = tuple(
        planned.model_copy(update={"scenario": without_costs(planned.scenario)}) for planned in plan_of.scenarios
    )
    stripped = found.manifest.model_copy(update={"plan": plan_of.model_copy(update={"scenarios": scenarios})})
    without = contents([gather(run, stripped)], [None])
    others = [one for one in there.sections if "".join(map(shown, one.title)) != "What wrong answers could cost"]
    assert len(others) == len(there.sections) - 1
    # The last section describes the run, with the hash of its plan.
    assert others[:-1] == list(without.sections[:-1])


def without_costs(one: Scenario) -> Scenario:
    facts = tuple(fact.model_copy(update={"cost_if_wrong": None}) for fact in one.answer_key.canonical_facts)
    return one.model_copy(update={"answer_key": one.answer_key.model_copy(update={"canonical_facts": facts})})
