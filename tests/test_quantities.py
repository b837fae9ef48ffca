"""Equal quantities: what a claim may say, what a point needs, and which figures are the same."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.text.figures import figures
from src.text.quantities import PointNeeds, conveys, point_needs, unstated
from tests.cases import each_case
from tests.helpers import ROOT


def same_quantity(token: str, text: str, other: str) -> bool:
    """Whether another text states a figure of a text, in the same or an equal quantity."""
    return conveys(PointNeeds((token,), ()), text, [other])


def only(text: str) -> str:
    (token,) = figures(text)
    return token


def same(one: str, other: str) -> bool:
    """Whether the one figure of a text is the one figure of another."""
    return same_quantity(only(one), one, other)


@each_case(
    ("one", "other"),
    [
        ("$2,100", "2100 dollars"),
        ("$35", "thirty-five bucks"),
        ("$2,000", "\uff04\uff12\uff0c\uff10\uff10\uff10"),
        ("20%", "twenty percent"),
        ("20%", "veinte por ciento"),
        ("$202.90 a month", "$2,434.80 a year"),
        ("a monthly premium of $202.90", "$2,434.80 annually"),
        ("$202.90/mo", "$2,435 per year"),
        ("cuesta $202.90 al mes", "$2,434.80 each year"),
        ("6 months", "half a year"),
        ("6 months", "a half-year"),
        ("6 months", "medio año"),
        ("6 months", "seis meses"),
        ("12 months", "one year"),
        ("18 months", "a year and a half"),
        ("18 months", "one and a half years"),
        ("18 months", "1½ years"),
        ("14 days", "2 weeks"),
        ("two months", "a couple of months"),
        ("12 employees", "a dozen employees"),
        ("24 people", "two dozen people"),
        ("$202.90", "$203"),
        ("2.8%", "3%"),
        ("99.4%", "99%"),
        ("$202.90", "about $200"),
        ("$202.90", "just over $200"),
        ("$1,676", "approximately **$1,700**"),
        ("$1,676", "~$1,700"),
        ("$1,676", "casi $1,700"),
        ("$202.90 a month", "roughly $2,400 a year"),
        ("69,700,000 people", "about 70 million people"),
        ("October 15", "el 15 de octubre"),
        ("1-800-MEDICARE", "1-800-633-4227"),
    ],
)
def test_equal_quantities_are_equal_in_both_directions(one: str, other: str) -> None:
    assert same(one, other)
    assert same(other, one)


@each_case(
    ("one", "other"),
    [
        ("$202.90", "$2,434.80"),
        ("$202.90 a month", "$2,434.80"),
        ("$202.90 a month", "$2,434.80 a month"),
        ("$202.90", "$200"),
        ("$202.90", "$202"),
        ("$202.79 a month", "$202.75 a month"),
        ("$2,100", "about $2,000"),
        ("about $2,100", "$2,000"),
        ("$615", "about $1,000"),
        ("$0.40", "$0"),
        ("0.4%", "0%"),
        ("$40", "about $0"),
        ("30 days", "one month"),
        ("365 days", "one year"),
        ("6 months", "half an hour"),
        ("6 months", "about 7 months"),
        ("20%", "$20"),
        ("20%", "20 people"),
        ("2026", "2025"),
        ("October 15", "October 16"),
        ("1-800-633-4227", "1-800-772-1213"),
    ],
)
def test_other_quantities_are_not_equal(one: str, other: str) -> None:
    assert not same(one, other)
    assert not same(other, one)


AMOUNT = st.decimals(min_value=0, max_value=100_000, places=2)
PERIOD = st.sampled_from(["", "a month", "a year", "monthly, and yearly"])
MARK = st.sampled_from(["", "about"])
UNIT = st.sampled_from(["days", "weeks", "months", "years"])


@given(AMOUNT, PERIOD, MARK, AMOUNT, PERIOD, MARK)
def test_equality_of_amounts_is_symmetric_and_never_beyond_rounding(
    one: Decimal, period: str, mark: str, other: Decimal, other_period: str, other_mark: str
) -> None:
    text, other_text = f"It is {mark} ${one} {period}.", f"It is {other_mark} ${other} {other_period}."
    equal = same_quantity(only(f"${one}"), text, other_text)
    assert equal == same_quantity(only(f"${other}"), other_text, text)
    if equal:
        pairs = [(one, other), (12 * one, other), (one, 12 * other)]
        allowed = Decimal("0.031") if mark or other_mark else Decimal(0)
        assert any(abs(a - b) <= max(Decimal("0.5"), allowed * max(a, b)) for a, b in pairs)


@given(AMOUNT, st.sampled_from([10, 100, 1000]))
def test_a_rounding_that_is_not_marked_is_never_equal(amount: Decimal, step: int) -> None:
    rounded = round(amount / step) * step
    if abs(amount - rounded) > Decimal("0.5"):
        assert not same(f"${amount}", f"${rounded}")


@given(st.integers(1, 400), UNIT, st.integers(1, 400), UNIT)
def test_durations_are_equal_only_if_they_last_equally_long(one: int, unit: str, other: int, other_unit: str) -> None:
    lengths = {"days": ("day", 1), "weeks": ("day", 7), "months": ("month", 1), "years": ("month", 12)}
    (base, size), (other_base, other_size) = lengths[unit], lengths[other_unit]
    expected = base == other_base and one * size == other * other_size
    assert same(f"{one} {unit}", f"{other} {other_unit}") is expected


@given(st.text(max_size=200), st.text(max_size=100))
def test_a_text_states_its_own_figures_whatever_else_is_given(text: str, more: str) -> None:
    assert unstated(text, [text]) == ()
    assert unstated(text, [more], given=[text]) == ()
    assert set(unstated(text, [more])) <= figures(text)


@each_case(
    ("claim", "quotes", "context"),
    [
        ("In 2026 the premium is $202.90.", ["This year the premium is $202.90"], ["2026"]),
        ("In 2027 it rises.", ["It will rise next year"], ["2026"]),
        ("In 2025 it was $185.", ["Last year it was $185"], ["2026"]),
        ("The premium is $2,434.80 a year.", ["It costs $202.90 per month"], []),
        ("The window lasts 6 months.", ["You have half a year"], []),
        ("It takes 1 year.", ["It takes a year"], []),
        ("The employer has 12 employees.", ["Your employer has a dozen people"], []),
        ("The employer has 12 employees.", ["Your employer is small"], ["We are twelve people at work."]),
        ("A person aged 67 can enroll.", ["You can enroll"], ["age: 67"]),
        ("A person with $1,600 a month may qualify.", ["You may qualify"], ["monthly_income: 1600, state: OH"]),
        ("A couple with $3,200 may qualify.", ["The two of you may qualify"], ["We each get $1,600."]),
        ("The total is $284.10.", ["$202.90 plus a surcharge of $81.20"], []),
        ("That is $121.70 less.", ["$202.90 instead of $81.20"], []),
        ("$175 a month", ["$2,100 spread over the year"], []),
        ("The visit costs $0.", ["The visit is free"], []),
        ("The coinsurance is 0%.", ["There is no coinsurance"], []),
        ("Day 100 is the last.", ["until the 100th day"], []),
        ("It takes effect on January 1.", ["It takes effect on New Year's Day"], []),
        ("A person turns 65.", ["your 65th birthday"], []),
        ("Open Enrollment runs from October 15 to December 7.", ["va del 15 de octubre al 7 de diciembre"], []),
        ("Medicare pays 50%.", ["Medicare pays half of the bill"], []),
        ("Plans have networks.", [], []),
    ],
)
def test_a_claim_may_say_what_quotes_or_context_supply(claim: str, quotes: list[str], context: list[str]) -> None:
    assert unstated(claim, quotes, given=context) == ()


@each_case(
    ("claim", "quotes", "context", "missing"),
    [
        ("It costs $99 in 2026.", ["It costs $98"], [], ("$99", "2026")),
        ("In 2028 it rises.", ["It will rise next year"], ["2026"], ("2028",)),
        ("In 2027 it rises.", ["It will rise"], ["2026"], ("2027",)),
        ("The window lasts 30 days.", ["You have a month"], [], ("30 days",)),
        ("The window lasts 8 months.", ["You have 8 weeks"], [], ("8 months",)),
        ("A visit costs $35.", ["You take insulin"], ["I take 35 units of insulin."], ("$35",)),
        ("It costs $0.", ["Call the toll-free number"], [], ("$0",)),
        ("It costs $0.", ["It is not free"], [], ("$0",)),
        ("It costs $0.", ["That isn't free"], [], ("$0",)),
        ("It costs $0.", ["Call toll free any day"], [], ("$0",)),
        ("It costs $0.", ["Feel free to call"], [], ("$0",)),
        ("It costs $0.", ["If you want to call, feel free."], [], ("$0",)),
        ("A person turns 66.", ["your 65th birthday"], ["age: 64"], ("n66",)),
        ("Call 1-800-772-1213.", ["Call 1-800-633-4227"], [], ("tel:18007721213",)),
        ("$5, $6 and $5 again", [], [], ("$5", "$6")),
    ],
)
def test_what_nobody_said_is_returned_in_order(
    claim: str, quotes: list[str], context: list[str], missing: tuple[str, ...]
) -> None:
    assert unstated(claim, quotes, given=context) == missing


@each_case(
    ("statement", "tells", "context", "needs"),
    [
        ("The cap is $2,100 in 2026.", (), (), (("$2100",), ())),
        ("It is $217 a day for days 21 to 100.", (), (), (("$217",), ())),
        ("It is $217 a day for days 21 to 100.", ("days 21 to 100",), (), (("n21", "n100"), ())),
        ("The penalty is 10% for each full 12 months.", (), (), (("10%",), ())),
        ("The period lasts 8 months.", (), (), ((), ("8 months",))),
        ("It looks back 5 years.", (), (), ((), ("5 years",))),
        ("It runs from October 15 to December 7.", (), (), ((), ("10-15", "12-07"))),
        ("A person on $1,600 a month may get QMB.", (), ("I live on $1,600 a month.",), ((), ())),
        ("A person on $1,600 a month may get QMB.", (), ("monthly_income: 1600",), ((), ())),
        ("The $90 rebate starts on October 8, 2026.", (), ("Is there a $90 rebate?",), ((), ("10-08",))),
        ("With fewer than 20 employees Medicare pays first.", (), ("We are 20 people.",), ((), ())),
        ("The insulin cap is $35.", (), ("I take 35 units.",), (("$35",), ())),
        ("The cap is $2,100.", ("$2,100",), ("Is it $2,100?",), ((), ())),
        ("Call 1-800-633-4227.", (), (), ((), ())),
        ("Call 1-800-633-4227.", ("1-800-MEDICARE",), (), (("tel:18006334227",), ())),
        ("It began in 2026.", (), (), ((), ())),
        ("Plans have networks.", (), (), ((), ())),
    ],
)
def test_a_point_needs_the_listed_figures_else_amounts_else_any_other(
    statement: str, tells: tuple[str, ...], context: tuple[str, ...], needs: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert point_needs(statement, tells, given=context) == PointNeeds(*needs)


@each_case(
    "age",
    [
        "around age 65",
        "aged 65 or older",
        "65 or older",
        "65 and over",
        "when they turn sixty-five",
        "who turned 65 in May",
        "need not sign up at 65",
        "first eligible at 65 and leaves",
        "under 65 with a disability",
        "younger than 65",
        "ages 60 to 64",
        "the 65th birthday",
        "65 years old",
        "a 65-year-old",
        "a person is 65 when it starts",
    ],
)
def test_an_age_is_never_needed(age: str) -> None:
    assert point_needs(age, ()) == PointNeeds((), ())


@each_case("count", ["20 or more employees", "fewer than 20 employees", "after 20 visits", "at 20 clinics"])
def test_a_count_is_not_an_age(count: str) -> None:
    assert point_needs(count, ()) == PointNeeds((), ("n20",))


@each_case(
    ("statement", "quotes", "made"),
    [
        ("The premium is $202.90 a month.", ["about $200"], True),
        ("The premium is $202.90 a month.", ["$2,435 per year"], True),
        ("The premium is $202.90 a month.", ["$2,435"], False),
        ("The premium is $202.90 a month.", ["$200"], False),
        ("The premium is $202.90 a month.", [], False),
        ("Plans have networks.", [], True),
        ("Copays are $5.10 and $12.65.", ["$5.10 for generics", "$12.65 for brands"], True),
        ("Copays are $5.10 and $12.65.", ["$5.10 for generics"], False),
        ("It runs from October 15 to December 7.", ["until December 7"], True),
        ("It runs from October 15 to December 7.", ["in the fall"], False),
        ("A person leaves within 12 months.", ["if you leave within a year"], True),
        ("A person leaves within 12 months.", ["it costs $5 a year"], False),
        ("A person pays $0 for days 1 to 20.", ["You owe nothing for the first 20 days"], True),
        ("A person pays $0 for days 1 to 20.", ["Days 1 to 20 are fully covered"], True),
        ("A person pays $0 for days 1 to 20.", ["You won't have to pay anything"], True),
        ("A person pays $0 for days 1 to 20.", ["es gratis"], True),
        ("A person pays $0 for days 1 to 20.", ["no deductible higher than $615"], False),
        ("A person pays 25%.", ["You pay a quarter of the price"], True),
        ("A person pays 25%.", ["You pay each quarter"], False),
    ],
)
def test_quotes_together_convey_a_point(statement: str, quotes: list[str], made: bool) -> None:
    assert conveys(point_needs(statement, ()), statement, quotes) is made


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["$1.05 a month ", "1 ", "not a ", "free ", "about ", "half a year and a half ", "99999999999999999999"]
)
def test_very_long_texts_are_read_to_their_end(piece: str) -> None:
    long = "".join(f"{piece}${number} " for number in range(200_000 // (len(piece) + 6)))
    # Comparing every figure with every other one would take hours; the limit only ends such a hang.
    code = (
        "import sys; from src.text.quantities import conveys, point_needs, unstated; text = sys.stdin.read();"
        "missing = unstated(text, ['$7 a year'], given=[text]) + unstated(text, [text[:-1]]);"
        "print(missing[1:], conveys(point_needs(text, ()), text, [text]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=long, check=True, capture_output=True, text=True, timeout=900
    )
    assert done.stdout.strip() == "() True"


@pytest.mark.slow
def test_figures_are_derived_from_a_limited_number_of_others() -> None:
    even = " ".join(f"${number}" for number in range(2, 60_001, 2))
    odd = " ".join(f"${number}" for number in range(1, 60_000, 2))
    assert unstated("$60,001", ["$1", even[-6:]]) == ()
    assert unstated("$60,001", [even, "$1"]) == ("$60001",)
    # Without the limit every odd amount would be compared with every even one, which takes hours.
    assert len(unstated(odd, [even])) > 29_000
