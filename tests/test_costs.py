"""The costs of the shipped library: every formula can be computed, gives the published values, and is in the guide."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from src.errors import InputError
from src.inputs.authoring.lint import lint
from src.planning.fill_facts import FREE_NAMES, fill_background
from src.planning.fill_slots import resolve
from src.planning.house_rules import BrokenRule, unknown_names
from src.planning.library import Library
from src.planning.scenario_files import read_scenario
from src.schemas import BackgroundFact, CostIfWrong, Scenario, Variant
from src.text.formula import dollars, names_in
from tests.cases import each_case
from tests.helpers import ROOT, fact_json, scenario

TODAY = date(2026, 11, 16)
YEARS = (2025, 2026, 2027)
PERSONA_NUMBERS = {"bill": Decimal(2_000)}
"""Numbers that only a persona has: here an approved charge of $2,000."""
GUIDE = ROOT / "docs" / "costs.md"
HEADER = "| formula | class | years | in 2026 | facts |\n| --- | --- | --- | --- | ---: |\n"


@cache
def library() -> Library:
    return Library(today=TODAY)


@cache
def costly() -> dict[str, BackgroundFact]:
    return {name: fact for name, fact in library().facts.items() if fact.cost_if_wrong}


def cost_of(name: str) -> CostIfWrong:
    cost = costly()[name].cost_if_wrong
    assert cost
    return cost


def figures(plan_year: int) -> dict[str, Decimal]:
    found = library().year(plan_year).figures.items()
    texts = {name: (figure.value or "").removeprefix("$").replace(",", "") for name, figure in found}
    return {name: Decimal(text) for name, text in texts.items() if re.fullmatch(r"[0-9.]+", text)}


def price(name: str, plan_year: int = 2026, years: int = 1, stated: str = "0") -> Decimal:
    formula = cost_of(name).formula
    assert formula
    values = {**figures(plan_year), **PERSONA_NUMBERS, "years": Decimal(years), "stated": Decimal(stated)}
    return dollars(formula, values)


@each_case("plan_year", YEARS)
def test_every_formula_of_the_library_can_be_computed(plan_year: int) -> None:
    known = figures(plan_year)
    computed = 0
    for name in costly():
        cost = cost_of(name)
        assert cost.horizon[0] == 1, name
        assert cost.note, name
        if cost.formula is None:
            continue
        wanted = names_in(cost.formula)
        assert wanted <= figures(2026).keys() | FREE_NAMES | PERSONA_NUMBERS.keys(), name
        assert ("years" in wanted) or cost.horizon == (1,), name
        if wanted <= known.keys() | FREE_NAMES | PERSONA_NUMBERS.keys():
            computed += 1
            for years in cost.horizon:
                assert price(name, plan_year, years, "1000") >= 0, name
    priced = sum(cost_of(name).formula is not None for name in costly())
    assert computed == priced or plan_year == 2027
    assert computed > 30


@each_case(
    ("name", "plan_year", "years", "stated", "amount"),
    [
        ("B-part-b-penalty-percent-12-months", 2026, 1, "0", "243.60"),  # 20.29 to 20.30, times 12
        ("B-part-b-penalty-rate", 2026, 1, "0", "487.20"),  # 40.58 to 40.60, times 12
        ("B-part-b-penalty-rate", 2026, 10, "0", "4872.00"),
        ("B-part-b-penalty-lifelong", 2026, 20, "0", "9744.00"),
        ("B-part-b-penalty-rate", 2025, 1, "0", "444.00"),  # 20% of 185.00 is 37.00, times 12
        ("B-part-b-with-24-month-penalty", 2026, 1, "202.90", "487.20"),  # 243.50 - 202.90 = 40.60, times 12
        ("B-part-b-sep-cobra-does-not-extend", 2026, 1, "0", "243.60"),
        ("B-retiree-coverage-does-not-extend-part-b-sep", 2026, 1, "0", "487.20"),
        ("B-va-gives-no-part-b-sep", 2026, 10, "0", "4872.00"),
        ("B-part-d-penalty-rate", 2026, 1, "0", "112.80"),  # 9.3576 to 9.40, times 12
        ("B-part-d-penalty-24-months", 2026, 1, "0", "112.80"),
        ("B-part-a-penalty-length", 2026, 1, "0", "678.00"),  # 56.50 times 12
        ("B-part-a-penalty-length", 2026, 10, "0", "2712.00"),  # 56.50 times 48: it ends after 4 years
        ("B-part-a-penalty-length", 2026, 20, "0", "2712.00"),
        ("B-slmb-part-b-premium", 2026, 1, "0", "2434.80"),
        ("B-qi-part-b-premium", 2025, 1, "0", "2220.00"),
        ("B-qmb-income-one", 2026, 1, "0", "2717.80"),  # 2434.80 + 283
        ("B-qmb-cost-sharing", 2026, 1, "0", "2019.00"),  # 283 + 1736
        ("B-extra-help-exists", 2026, 1, "0", "2567.88"),  # 2100 + 467.88
        ("B-qmb-no-billing", 2026, 1, "0", "400.00"),  # 20% of a bill of 2000
        ("B-part-b-premium", 2026, 1, "185.00", "214.80"),
        ("B-irmaa-first-single", 2026, 1, "0", "1148.40"),  # (284.10 - 202.90 + 14.50) * 12
        ("B-irmaa-t2-part-b-single", 2026, 1, "284.10", "1460.40"),
        ("B-irmaa-t2-part-d-single", 2026, 1, "14.50", "276.00"),  # with the line above 1736.40
        ("B-part-d-cap", 2026, 1, "2000", "100.00"),
        ("B-part-d-cap", 2026, 1, "8000", "5900.00"),
        ("B-part-d-deductible-max", 2026, 1, "590", "25.00"),
        ("B-insulin-part-d-cap", 2026, 1, "50", "180.00"),
        ("B-advantage-moop-in-network", 2026, 1, "8000", "1250.00"),
        ("B-original-medicare-no-yearly-limit", 2026, 1, "0", "10000.00"),
        ("B-hmo-no-out-of-network", 2026, 1, "0", "2000.00"),
        ("B-ppo-out-of-network-higher-cost", 2026, 1, "0", "4650.00"),  # 13900 - 9250
        ("B-snf-not-free-for-100-days", 2026, 1, "0", "17360.00"),  # 80 * 217.00
        ("B-snf-not-free-for-100-days", 2025, 1, "0", "16760.00"),  # 80 * 209.50
        ("B-snf-observation-does-not-count", 2026, 1, "0", "6100.00"),  # 20 days at 305
        ("B-ltc-medicare-no", 2026, 1, "0", "111325.00"),
        ("B-small-employer-plan-without-part-b", 2026, 1, "0", "1600.00"),  # 80% of a bill of 2000
        ("B-payment-plan-no-savings", 2026, 1, "0", "0.00"),
        ("B-part-d-penalty-rate", 2027, 1, "0", "118.80"),  # 24% of 41.33 is 9.9192, to 9.90, times 12
    ],
)
def test_amounts_are_as_published_or_worked_out_by_hand(
    name: str, plan_year: int, years: int, stated: str, amount: str
) -> None:
    assert str(price(name, plan_year, years, stated)) == amount


@each_case(
    "name",
    [
        "B-medigap-return-no-guarantee",
        "B-advantage-oep-dates",
        "B-dual-sep-monthly",
        "B-medicare-number-not-to-callers",
    ],
)
def test_rights_dates_and_scams_have_no_price(name: str) -> None:
    assert (cost_of(name).cost_class, cost_of(name).formula) == ("unpriced", None)


def test_a_year_without_its_figures_gives_no_cost() -> None:
    fact = costly()["B-part-b-penalty-rate"]
    filled = {year: fill_background(fact, year, library()) for year in YEARS}
    formulas = {year: one.cost_if_wrong and one.cost_if_wrong.formula for year, one in filled.items() if one}
    assert formulas == {
        2025: "dime(0.10 * 2 * 185.00) * 12 * years",
        2026: "dime(0.10 * 2 * 202.90) * 12 * years",
        2027: None,
    }


def test_every_name_in_a_formula_of_the_library_has_a_meaning() -> None:
    formulas = {name: cost_of(name).formula for name in costly()}
    unknown = {
        name: found
        for name, formula in formulas.items()
        if formula and (found := unknown_names(formula, ("bill",), library()))
    }
    assert unknown == {}
    assert unknown_names("part_b_premium * years + bil", ("bill",), library()) == {"bil"}


@each_case(
    ("attributes", "formula"),
    [
        ({"bill": "2,000"}, "0.20 * 2000"),
        ({"bill": 350}, "0.20 * 350"),
        ({"bill": 0}, "0.20 * 0"),
        ({"bill": "$0.00"}, "0.20 * 0.00"),
    ],
)
def test_a_bill_of_the_persona_gives_the_amount(attributes: dict[str, object], formula: str) -> None:
    one = asked_by(attributes)
    assert one and one.formula == formula


@each_case("attributes", [{}, {"bill": "large"}, {"bill": True}, {"bill": "20%"}])
def test_without_a_bill_the_fact_has_no_cost(attributes: dict[str, object]) -> None:
    assert asked_by(attributes) is None


def asked_by(attributes: dict[str, object]) -> CostIfWrong | None:
    """The cost of the rule on QMB and bills, in the key of a person with these attributes."""
    key = {
        "canonical_facts": [],
        "library_facts": {"F1": "B-qmb-no-billing"},
        "required_points": [],
        "disallowed_claims": [],
    }
    one = scenario(answer_key=key, persona={"name": "Ada", "attributes": attributes})
    [fact] = resolve(one, None, 2026, library()).scenario.answer_key.canonical_facts
    assert fact.library == "B-qmb-no-billing"
    return fact.cost_if_wrong


def priced(formula: str, *horizon: int, **attributes: object) -> Scenario:
    """A scenario with one fact of its own that has a cost."""
    cost = {"cost_class": "priced", "formula": formula, "horizon": list(horizon or (1,))}
    key = {
        "canonical_facts": [{**fact_json("F1"), "cost_if_wrong": cost}],
        "required_points": ["F1"],
        "disallowed_claims": [],
    }
    return scenario(answer_key=key, persona={"name": "Ada", "attributes": attributes})


@each_case(
    ("one", "reason"),
    [
        (priced("100 / (years - 1)"), r"100 / \(years - 1\) with years = 1: division by zero"),
        (priced("100 / (years - 10)", 1, 10), r"with years = 10: division by zero"),
        (priced("bill * bill", bill=1_000_000_000), r"1000000000 \* 1000000000 with years = 1: it gives 1.00e\+18"),
        (priced("0.20 * bill", bill="9" * 13), "use numbers up to 1,000,000,000,000"),
        (priced("0.20 * bill", bill="9" * 400), "a formula has at most 300 characters"),
        (priced("100 / bill", bill=0), "division by zero"),
        (priced("stated * 1000000000000"), "no amount of dollars"),
        (priced("dime(1000000000000 * 1000000000000 * 1000000)"), "too large"),
        (priced("2 ** 3"), "use numbers"),
    ],
)
def test_a_formula_that_gives_no_amount_is_refused_when_a_run_is_planned(one: Scenario, reason: str) -> None:
    with pytest.raises(InputError, match=f"^answer_key fact F1 cost_if_wrong: .*{reason}"):
        resolve(one, None, 2026, library())


def test_a_formula_is_tried_out_with_an_amount_that_an_answer_could_state() -> None:
    [fact] = resolve(
        priced("1000 / (stated - 100) * years", 1, 10), None, 2026, library()
    ).scenario.answer_key.canonical_facts
    assert fact.cost_if_wrong and fact.cost_if_wrong.formula == "1000 / (stated - 100) * years"


def problems(folder: Path, one: Scenario) -> list[BrokenRule]:
    """What is wrong with the costs of a scenario file."""
    path = folder / "s.json"
    path.write_text(one.model_dump_json(), encoding="utf-8")
    found = lint(read_scenario(path), library(), TODAY)
    return [problem for problem in found if "cost_if_wrong" in str(problem)]


def test_validate_reports_a_formula_that_gives_no_amount(tmp_path: Path) -> None:
    found = problems(tmp_path, priced("100 / (years - 1)"))
    assert found and all(problem.error and "division by zero" in problem.what for problem in found)


def test_an_unknown_name_in_a_formula_is_a_warning(tmp_path: Path) -> None:
    [found] = problems(tmp_path, priced("part_b_premum * 12 * years + bil + stated", bill=5))
    assert (found.where, found.error) == ("answer_key.canonical_facts[0].cost_if_wrong.formula", False)
    assert found.what.startswith("bil, part_b_premum: no figure of any year")


def test_a_name_that_only_another_year_or_a_variant_knows_is_no_fault(tmp_path: Path) -> None:
    one = priced("bill * years + abs(stated - part_b_premium)")
    variants = (Variant(variant_id="a"), Variant(variant_id="b", persona={"bill": 100}))
    assert problems(tmp_path, one.model_copy(update={"variants": variants})) == []
    renamed = (Variant(variant_id="b", persona={"age": 100}),)  # a field of the persona, not an attribute
    [found] = problems(tmp_path, priced("age * 2").model_copy(update={"variants": renamed}))
    assert found.what.startswith("age: ")


@dataclass(frozen=True)
class Row:
    formula: str
    cost_class: str
    horizon: tuple[int, ...]


def rows() -> Iterator[str]:
    """The table of the guide: one line for each formula, the figure left open where the answer's amount is compared."""
    known = {**figures(2026), **PERSONA_NUMBERS}
    facts: dict[Row, list[str]] = {}
    for name in costly():
        cost = cost_of(name)
        formula = re.sub(r"stated - (?!35)\w+", "stated - FIGURE", cost.formula or "")
        facts.setdefault(Row(formula, cost.cost_class, cost.horizon), []).append(name)
    order = ("priced", "exposure", "unpriced")
    for row, names in sorted(facts.items(), key=lambda one: (order.index(one[0].cost_class), one[0].formula)):
        needed = names_in(row.formula) if row.formula else frozenset({"none"})
        amounts = ""
        if needed <= known.keys() | {"years"} and "bill" not in needed:
            amounts = ", ".join(f"${price(names[0], years=years):,.2f}" for years in row.horizon)
        horizon = ", ".join(map(str, row.horizon)) if row.formula else ""
        formula = f"`{row.formula}`" if row.formula else "none"
        yield f"| {formula} | {row.cost_class} | {horizon} | {amounts} | {len(names)} |\n"


def test_the_guide_has_every_formula() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEADER)
    table, blank, after = rest.partition("\n\n")
    wanted = "".join(rows())
    if os.environ.get("UPDATE_SNAPSHOTS"):
        GUIDE.write_text(f"{before}{HEADER}{wanted}\n{after}", encoding="utf-8")
        return
    assert f"{table}\n" == wanted, "docs/costs.md changed; if that is intended, set UPDATE_SNAPSHOTS=1"
    assert blank
