"""Prices, costs, and the budget that is never exceeded."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.adapters.models import MODELS, full_id
from src.adapters.registry import canonical_name
from src.calls.budget import Budget
from src.calls.prices import PRICE_FILE, charge, cost, load_prices, price_for, read_table, worst_case
from src.errors import InputError
from src.schemas import CallOutcome, Price, Usage
from tests.cases import each_case

ROW = {"input": 2.0, "output": 8.0, "cached": 0.5, "source": "a page", "read": "2026-11-16"}


def price(input_: float = 2.0, output: float = 8.0, cached: float | None = 0.5) -> Price:
    return Price(input=input_, output=output, cached=cached, source="a page", read="2026-11-16")


def price_file(folder: Path, rows: dict[str, Any], **more: Any) -> Path:
    document = {"as_of": "2026-11-16", "currency": "USD", "unit": "1M tokens", "prices": rows, **more}
    path = folder / "own.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


# The table


def test_the_built_in_table_is_dated_and_every_row_names_its_source() -> None:
    table = read_table(PRICE_FILE)
    assert date(2026, 1, 1) < date.fromisoformat(table.as_of)
    for name, row in table.prices.items():
        assert "https://" in row.source, name
        assert date.fromisoformat(row.read) <= date.fromisoformat(table.as_of)
        assert 0 < row.input < row.output, name
        assert row.cached is None or row.cached < row.input, name
        assert (row.cache_write is None) == (not name.startswith("anthropic:")), name
        assert row.cache_write is None or row.cache_write == pytest.approx(1.25 * row.input), name


def test_every_built_in_row_is_the_api_id_of_a_model_we_know() -> None:
    assert set(load_prices(None)) <= {full_id(row.full_name) for row in MODELS}


def test_the_specs_models_have_a_price() -> None:
    prices = load_prices(None)
    for row in MODELS:
        assert price_for(prices, row.provider, row.api_id) is prices[f"{row.provider}:{row.api_id}"]
    assert (prices["openai:gpt-4.1-2025-04-14"].input, prices["openai:gpt-4.1-2025-04-14"].output) == (2.0, 8.0)


def test_a_price_that_ends_is_followed_by_the_next() -> None:
    before, after = (load_prices(None, today=day) for day in (date(2026, 12, 31), date(2027, 1, 1)))
    assert (before["google:gemini-3.8-flash"].input, after["google:gemini-3.8-flash"].input) == (0.75, 1.5)
    assert (before["google:gemini-3.8-flash"].output, after["google:gemini-3.8-flash"].output) == (3.75, 7.5)
    assert before["xai:grok-4.6"] == after["xai:grok-4.6"]


def test_a_price_file_adds_to_and_overrides_the_built_in_prices(tmp_path: Path) -> None:
    own = price_file(tmp_path, {"compatible:llama3:8b": {**ROW, "input": 0}, "xai:grok-4.6": {**ROW, "output": 99}})
    prices = load_prices(own)
    assert prices["compatible:llama3:8b"].input == 0
    assert prices["xai:grok-4.6"].output == 99
    assert len(prices) == len(load_prices(None)) + 1


def test_a_price_file_may_use_friendly_names(tmp_path: Path) -> None:
    own = price_file(tmp_path, {"grok:grok-2": {**ROW, "output": 99}})
    prices = load_prices(own, full_id=lambda name: full_id(canonical_name(name)))
    found = price_for(prices, "xai", "grok-2-1212")
    assert found is not None and found.output == 99
    twice = price_file(tmp_path, {"grok:grok-2": ROW, "xai:grok-2-1212": ROW})
    with pytest.raises(InputError, match="xai:grok-2-1212 and grok:grok-2 are the same model"):
        load_prices(twice, full_id=lambda name: full_id(canonical_name(name)))


@each_case(
    ("change", "said"),
    [
        ({"input": -1}, "prices.openai:x.input"),
        ({"input": "2"}, "prices.openai:x.input"),
        ({"output": 10_000_000}, "prices.openai:x.output"),
        ({"cached": True}, "prices.openai:x.cached"),
        ({"source": ""}, "prices.openai:x.source"),
        ({"read": "16.11.2026"}, "prices.openai:x.read"),
        ({"read": "2026-13-01"}, "prices.openai:x.read"),
        ({"per": "token"}, "prices.openai:x.per"),
        ({"until": "2027-01-01"}, "until and then go together"),
    ],
)
def test_a_bad_row_is_named_with_file_and_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    own = price_file(tmp_path, {"openai:x": {**ROW, **change}})
    with pytest.raises(InputError) as caught:
        load_prices(own)
    assert str(own) in str(caught.value) and said in str(caught.value)


@each_case(
    ("text", "said"),
    [
        (b"{", "invalid JSON"),
        (b"[]", "must be an object (got [])"),
        (b"\xff", "not UTF-8"),
        (b'{"as_of": 1, "as_of": 2}', "appears twice"),
        (b'{"as_of": NaN}', "NaN"),
        (b'{"currency": "EUR"}', "field currency: 'EUR' is not allowed; use 'USD'; field unit: required but missing"),
        (b" " * 2_000_001, "larger than"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "own.json"
    path.write_bytes(text)
    with pytest.raises(InputError) as caught:
        load_prices(path)
    assert str(path) in str(caught.value) and said in str(caught.value)


def test_a_file_in_another_currency_or_with_a_bad_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="field currency"):
        load_prices(price_file(tmp_path, {}, currency="EUR"))
    with pytest.raises(InputError, match=r"prices\.gpt"):
        load_prices(price_file(tmp_path, {"gpt": ROW}))
    with pytest.raises(InputError, match="cannot be read"):
        load_prices(tmp_path / "absent.json")


# Finding a price


def test_a_price_is_found_without_the_date_of_the_model_if_only_one_row_fits() -> None:
    dated, bare = price(1), price(2)
    assert price_for({"openai:gpt-4.1-2025-04-14": dated}, "openai", "gpt-4.1") is dated
    assert price_for({"openai:gpt-4.1": bare}, "openai", "gpt-4.1-2025-04-14") is bare
    assert price_for({"anthropic:claude-x": bare}, "anthropic", "claude-x-20260101") is bare
    assert price_for({"xai:grok-2-1212": dated}, "xai", "grok-2") is dated
    both = {"openai:gpt-4.1-2025-04-14": dated, "openai:gpt-4.1": bare}
    assert price_for(both, "openai", "gpt-4.1") is bare
    assert price_for(both, "openai", "gpt-4.1-2025-04-14") is dated


def test_no_price_is_guessed() -> None:
    two = {"openai:m-2025-01-01": price(1), "openai:m-2025-02-02": price(2)}
    assert price_for(two, "openai", "m") is None
    assert price_for(two, "openai", "m-2025-03-03") is None
    assert price_for(two, "openai", "m-mini") is None
    assert price_for({"openai:gpt-4.1": price()}, "compatible", "gpt-4.1") is None
    assert price_for({"openai:gpt-4.1": price()}, "openai", "gpt-4.1-mini") is None
    assert price_for({"google:gemini-1.5-pro": price()}, "google", "gemini-1.5-pro-002") is None


@each_case("provider", ["fake", "offline"])
def test_fake_and_offline_models_are_free(provider: str) -> None:
    free = price_for({}, provider, "anything")
    assert free is not None and cost(free, Usage(input_tokens=10**9, output_tokens=10**9)) == 0


# What a call costs


def test_cached_tokens_are_part_of_the_input_and_cost_less() -> None:
    used = Usage(input_tokens=1_000_000, output_tokens=500_000, cached_tokens=400_000)
    assert cost(price(), used) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert cost(price(cached=None), used) == pytest.approx(2 + 0.5 * 8)
    assert cost(price(), Usage(input_tokens=10, output_tokens=0, cached_tokens=99)) == pytest.approx(10 * 0.5 / 1e6)


def test_tokens_written_to_a_cache_are_part_of_the_input_and_have_their_own_price() -> None:
    dear = price().model_copy(update={"cache_write": 2.5})
    used = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=600_000, cache_write_tokens=300_000)
    assert cost(dear, used) == pytest.approx(0.1 * 2 + 0.6 * 0.5 + 0.3 * 2.5)
    assert cost(price(), used) == pytest.approx(0.4 * 2 + 0.6 * 0.5), "no price of its own: that of other input"
    too_many = Usage(input_tokens=10, output_tokens=0, cached_tokens=8, cache_write_tokens=99)
    assert cost(dear, too_many) == pytest.approx((8 * 0.5 + 2 * 2.5) / 1e6)
    assert worst_case(dear, 10, 100) == pytest.approx((4 * 2.5 + 100 * 8) / 1e6)


def test_a_price_without_cache_writes_keeps_the_bytes_of_earlier_releases() -> None:
    assert "cache_write" not in price().model_dump()


def test_unknown_usage_is_an_unknown_cost() -> None:
    for used in (Usage(), Usage(input_tokens=5), Usage(output_tokens=5), Usage(cached_tokens=5)):
        assert cost(price(), used) is None


def test_the_worst_case_rounds_up() -> None:
    assert worst_case(price(), 10, 100) == pytest.approx((4 * 2 + 100 * 8) / 1e6)
    assert worst_case(price(), 0, 0) == 0


USED = Usage(input_tokens=1_000, output_tokens=1_000)


@each_case(
    ("outcome", "status", "usage", "charged"),
    [
        ("ok", None, USED, 0.01),
        ("truncated", None, USED, 0.01),
        ("malformed", 200, USED, 0.01),
        *((outcome, None, Usage(), 0.5) for outcome in ("ok", "refused", "blocked", "truncated", "empty")),
        ("timeout", None, Usage(), 0.5),
        ("timeout", 200, Usage(), 0.5),
        ("malformed", 200, Usage(), 0.5),
        ("malformed", None, Usage(), 0.5),
        ("transient", None, Usage(), 0.5),
        ("transient", 200, Usage(), 0.5),
        ("transient", 503, Usage(), 0.0),
        ("timeout", 408, Usage(), 0.0),
        ("malformed", 502, Usage(), 0.0),
        ("rate_limited", 429, Usage(), 0.0),
        ("permanent", 400, Usage(), 0.0),
        ("permanent", None, Usage(), 0.0),
        ("rate_limited", None, Usage(), 0.0),
    ],
)
def test_an_attempt_is_charged_by_its_outcome_and_status(
    outcome: CallOutcome, status: int | None, usage: Usage, charged: float
) -> None:
    assert charge(outcome, status, usage, price(), 0.5) == pytest.approx(charged)


def test_without_a_price_the_reserved_amount_is_charged() -> None:
    assert charge("ok", None, USED, None, 0.5) == 0.5


# The budget

AMOUNTS = st.floats(min_value=0, max_value=50, allow_nan=False)


@given(limit=AMOUNTS, steps=st.lists(st.tuples(AMOUNTS, st.floats(0, 1), st.booleans()), max_size=60))
def test_a_budget_is_never_exceeded(limit: float, steps: list[tuple[float, float, bool]]) -> None:
    budget = Budget(limit)
    under_way: list[tuple[float, float]] = []
    for amount, share, finish in steps:
        before = budget.spent + budget.reserved
        if budget.reserve(amount):
            under_way.append((amount, amount * share))
        else:
            assert before + amount > limit - 1e-9, "refused although there was room"
            assert budget.spent + budget.reserved == before
        if finish and under_way:
            budget.settle(*under_way.pop(0))
        assert budget.spent + budget.reserved <= limit + 1e-9
    for reserved, actual in under_way:
        budget.settle(reserved, actual)
    assert budget.reserved == 0
    assert budget.spent <= limit + 1e-9


def test_a_budget_is_used_to_the_last_cent() -> None:
    budget = Budget(0.3)
    assert [budget.reserve(0.1) for _ in range(4)] == [True, True, True, False]
    budget.settle(0.1, 0.05)
    assert budget.reserve(0.05)
    assert not budget.reserve(0.001)
    assert (budget.spent, budget.reserved) == (0.05, 0.25)


def test_a_call_that_cost_more_than_reserved_is_counted_and_no_more_are_granted() -> None:
    budget = Budget(1.0)
    assert budget.reserve(0.6)
    budget.settle(0.6, 1.5)
    assert budget.spent == 1.5
    assert not budget.reserve(0.01)


def test_money_spent_before_a_resume_counts() -> None:
    budget = Budget(1.0)
    budget.settle(0, 0.9)
    assert not budget.reserve(0.2)
    assert budget.reserve(0.1)


def test_without_a_limit_every_call_is_granted_and_counted() -> None:
    budget = Budget(None)
    assert budget.reserve(10**6)
    budget.settle(10**6, 3)
    assert (budget.spent, budget.reserved) == (3, 0)


@each_case("amount", [-0.01, float("nan"), float("inf")])
def test_an_amount_that_is_negative_or_not_finite_is_refused(amount: float) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: Budget(amount), lambda: Budget(1).reserve(amount), lambda: Budget(1).settle(0, amount),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(ValueError, match="an amount of money"):
            attempt()


def test_more_cannot_be_settled_than_was_reserved() -> None:
    with pytest.raises(ValueError, match="more is settled"):
        Budget(1).settle(0.1, 0.1)
