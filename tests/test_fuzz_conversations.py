"""A sample of hostile conversations in every run of the suite, and 2,000 of them at night."""

from __future__ import annotations

import pytest

from tests.fuzz_conversations import KINDS, fuzz, main


@pytest.mark.parametrize(("conversations", "first"), [(60, 0), pytest.param(2_000, 60, marks=pytest.mark.nightly)])
def test_whatever_a_target_says_its_trial_has_an_outcome(conversations: int, first: int) -> None:
    tally = fuzz(conversations, 42, first)
    assert tally.problems == []
    assert all(tally.outcomes.values())
    assert sum(sum(found.values()) for found in tally.outcomes.values()) == conversations


def test_the_same_seed_plays_the_same_conversations(capsys: pytest.CaptureFixture[str]) -> None:
    number = str(len(KINDS))
    assert main(["--conversations", number, "--seed", "3"]) == 0
    once = capsys.readouterr().out
    assert main(["--conversations", number, "--seed", "3"]) == 0
    assert capsys.readouterr().out == once
    assert once.endswith(": 0 problems\n")
