"""`bench.cacheable`: what of a run's input cannot be read from a cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.cacheable import CACHES, Earlier, Prompt, main, measured, prompt_of
from src.adapters.base import Message
from tests.adapters.test_caching import judging
from tests.adapters.test_contract import CASES, AdapterCase, call, clean_environment, every_adapter
from tests.helpers import ROOT, call_record
from tests.loopback import Loopback

__all__ = ["clean_environment"]  # a fixture that is used by being here

SYSTEM = "s" * 4_000
KEY = '{"shared":{"answer_key":"' + "k" * 4_000 + '"},'
CLAIM = '"canary":"c","input":{"claims":["It is free."]}}'


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def not_cached(messages: list[str], *, written_as: int = 3) -> dict[str, float]:
    calls = [
        call_record(f"t|verifier|Q1|1|{number}|1").model_copy(
            update={"sent": {"system": SYSTEM, "messages": [{"role": "user", "content": text}]}, "format": written_as}
        )
        for number, text in enumerate(messages)
    ]
    found = measured(calls)
    assert (found.trials, found.by_stage["verifier"].calls) == (1, len(messages))
    assert found.by_stage["verifier"].sent == sum((len(SYSTEM) + 1 + len(text)) / 4 for text in messages)
    return found.by_stage["verifier"].not_cached


def test_the_first_call_is_read_in_full_and_the_next_from_where_it_differs() -> None:
    one, two = KEY + CLAIM, KEY + CLAIM.replace("free", "dear")
    whole, start = (len(SYSTEM) + 1 + len(one)) / 4, (len(SYSTEM) + 1 + len(KEY)) // 4
    assert set(not_cached([one]).values()) == {whole}
    found = not_cached([one, two])
    assert found["Claude Opus 5"] == found["OpenAI, from GPT-5.6"] == 2 * whole - start
    assert found["Claude Opus 4.6"] == found["Gemini 3"] == 2 * whole, "the start is too short for their caches"
    assert found["Grok"] == found["OpenAI, to GPT-5.5"] == 2 * whole - start // 128 * 128


def test_a_canary_before_the_key_leaves_only_the_system_prompt() -> None:
    one, two = f'{{"canary":"a",{KEY[1:]}"x"}}', f'{{"canary":"b",{KEY[1:]}"x"}}'
    whole = (len(SYSTEM) + 1 + len(one)) / 4
    found = not_cached([one, two])
    assert found["Claude Opus 5"] == 2 * whole - (len(SYSTEM) + 1) // 4
    assert found["Claude Sonnet 4.6"] == 2 * whole


def test_runs_of_earlier_formats_have_no_marks() -> None:
    found = not_cached([KEY + CLAIM, KEY + CLAIM], written_as=2)
    whole = (len(SYSTEM) + 1 + len(KEY + CLAIM)) / 4
    assert found["Claude Opus 5"] == 2 * whole
    assert found["OpenAI, to GPT-5.5"] < 2 * whole


def test_the_longest_shared_start_may_be_with_any_earlier_prompt() -> None:
    earlier = Earlier()
    for text in ("abcx", "zz", "abd", "ab", "abcdefy"):
        earlier.add(Prompt(text, ()))
    assert [earlier.shared(Prompt(text, ())) for text in ("abcdefg", "abdz", "z", "q", "abcx")] == [6, 3, 1, 0, 4]


@every_adapter
def test_every_wire_format_gives_the_same_prompt(server: Loopback, case: AdapterCase) -> None:
    sent: list[Any] = []
    for one in (case, replace(CASES[0], model="gpt-5.6")):
        request = judging(one, messages=(Message("user", KEY + CLAIM, len(KEY)),), system=SYSTEM)
        sent += [call(server, one, request).sent, request.as_json()]
    prompts = {prompt_of(body, marked=True) for body in sent}
    assert prompts == {Prompt(f"{SYSTEM}\0{KEY}{CLAIM}", (len(SYSTEM) + 1, len(SYSTEM) + 1 + len(KEY)))}


def test_the_command_measures_a_kept_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT / "tests" / "formats" / "0.2" / "run")]) == 0
    shown = capsys.readouterr().out
    assert "9 trials" in shown
    assert all(f"not cacheable, {cache.name}" in shown for cache in CACHES)
