"""The hash of a request, by which a replay knows it again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.adapters.base import Message, ModelRequest
from src.store.strict_json import fingerprint
from tests.cases import each_case

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def request(text: str, temperature: float | None) -> ModelRequest:
    messages = (Message("user", text),)
    return ModelRequest(
        model="openai:gpt-4.1", messages=messages, system=text, temperature=temperature, max_tokens=5, seed=3
    )


@given(TEXT, st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**60), 2**60)))
def test_the_hash_of_a_request_is_that_of_its_json(text: str, temperature: float | None) -> None:
    asked = request(text, temperature)
    assert asked.sha256() == fingerprint(asked.as_json())


@each_case("temperature", [1e-5, 0.00012, 1e15, 1e16, 1e300, 0.1 + 0.2, 5e-324])
def test_small_and_large_numbers_are_hashed_as_json_writes_them(temperature: float) -> None:
    asked = request("", temperature)
    assert asked.sha256() == fingerprint(asked.as_json())


def test_a_number_without_limit_has_no_hash() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        request("", float("nan")).sha256()
