"""The table of models: the spec's names, pinned ids, and what is refused because it is retired."""

from __future__ import annotations

from datetime import date

import pytest

from src.adapters.models import MODELS, check_not_retired, full_id, resolve, row_for
from src.adapters.registry import PROVIDERS, canonical_name
from src.errors import ConfigError
from tests.cases import each_case

TODAY = date(2026, 11, 16)
SPEC = {
    "openai:gpt-4.1": "gpt-4.1-2025-04-14",
    "openai:gpt-4.1-mini": "gpt-4.1-mini-2025-04-14",
    "anthropic:claude-3.5-sonnet": "claude-3-5-sonnet-20241022",
    "anthropic:claude-3-opus": "claude-3-opus-20240229",
    "google:gemini-1.5-pro": "gemini-1.5-pro-002",
    "xai:grok-2": "grok-2-1212",
}
RETIRED = ["anthropic:claude-3.5-sonnet", "anthropic:claude-3-opus", "google:gemini-1.5-pro", "xai:grok-2"]


@each_case(("name", "api_id"), SPEC.items())
def test_names_of_the_specification_have_pinned_ids(name: str, api_id: str) -> None:
    assert resolve(canonical_name(name)) == api_id
    assert full_id(name) == f"{name.partition(':')[0]}:{api_id}"


def test_grok_is_an_alias_of_xai() -> None:
    assert resolve(canonical_name("grok:grok-2")) == "grok-2-1212"


@each_case(
    ("name", "sent"),
    [
        ("openai:gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14"),
        ("openai:ft:gpt-4.1-mini:me::abc", "ft:gpt-4.1-mini:me::abc"),
        ("compatible:gpt-4.1", "gpt-4.1"),
        ("compatible:llama3:8b", "llama3:8b"),
        ("anthropic:gpt-4.1", "gpt-4.1"),
        ("fake:careful", "careful"),
    ],
)
def test_any_other_id_is_used_as_it_is(name: str, sent: str) -> None:
    assert resolve(name) == sent


def test_a_row_is_found_by_its_name_and_by_its_api_id() -> None:
    row = row_for("xai:grok-2")
    assert row is not None and row is row_for("xai:grok-2-1212")
    assert row_for("xai:grok-9") is None
    assert row_for("grok-2") is None


@each_case("name", [*RETIRED, "anthropic:claude-3-5-sonnet-20241022", "xai:grok-2-1212"])
def test_a_retired_model_is_refused_and_the_error_lists_successors_and_the_flag(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_not_retired(name, today=TODAY, allow_retired=False)
    said = str(caught.value)
    row = row_for(name)
    assert row is not None
    assert said.startswith(f"{name} has been retired") and "allow_retired" in said and "gateway" in said
    assert "\n" not in said
    for successor in row.successors:
        assert f"{row.provider}:{successor}" in said
    check_not_retired(name, today=TODAY, allow_retired=True)


def test_the_error_says_since_when_if_that_is_known() -> None:
    said = {}
    for name in RETIRED:
        with pytest.raises(ConfigError) as caught:
            check_not_retired(name, today=TODAY, allow_retired=False)
        said[name] = str(caught.value)
    assert "since 2025-10-28 (one source says 2025-10-22)" in said["anthropic:claude-3.5-sonnet"]
    assert "since 2026-01-05." in said["anthropic:claude-3-opus"]
    assert "has been retired (date not found)." in said["google:gemini-1.5-pro"]
    assert "since 2026-03-09 (" in said["xai:grok-2"]


@each_case(
    ("name", "last_day"),
    [
        ("openai:gpt-4.1", date(2027, 1, 14)),
        ("openai:gpt-4.1-mini", date(2027, 1, 14)),
        ("anthropic:claude-sonnet-4-5", date(2026, 11, 30)),
    ],
)
def test_an_ending_model_is_refused_from_the_day_after_its_last_day(name: str, last_day: date) -> None:
    check_not_retired(name, today=last_day, allow_retired=False)
    after = date.fromordinal(last_day.toordinal() + 1)
    with pytest.raises(ConfigError, match=f"since {last_day}"):
        check_not_retired(name, today=after, allow_retired=False)
    check_not_retired(name, today=after, allow_retired=True)


@each_case("name", ["openai:gpt-5.5", "openai:unheard-of", "fake:careful", "compatible:grok-2"])
def test_a_present_or_unknown_model_is_never_refused(name: str) -> None:
    check_not_retired(name, today=date(2040, 1, 1), allow_retired=False)


def test_rows_of_the_table_are_consistent() -> None:
    names = [row.full_name for row in MODELS]
    assert len(set(names)) == len(names)
    for row in MODELS:
        assert row.provider in PROVIDERS
        if row.status == "present":
            assert row.since is None and not row.successors
        else:
            assert row.successors and (row.since or row.since_note)
        for successor in row.successors:
            found = row_for(f"{row.provider}:{successor}")
            assert found is not None and found.status == "present", f"{row.name}: {successor}"


def test_every_default_judge_is_a_present_model_of_the_table() -> None:
    for provider in PROVIDERS.values():
        if provider.default_judge:
            row = row_for(f"{provider.name}:{provider.default_judge}")
            assert row is not None and row.status == "present"
