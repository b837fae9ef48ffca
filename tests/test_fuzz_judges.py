"""A sample of the fuzzed judges' answers in every run of the suite, more in the slow one, and most with `make fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz_judges import OUTCOMES, ROLES, fuzz, main, table


@pytest.mark.parametrize("answers", [600, pytest.param(4_000, marks=pytest.mark.slow)])
def test_damaged_answers_are_accepted_by_the_rules_or_fail_with_a_reason(answers: int) -> None:
    tally = fuzz(answers, 42)
    assert tally.problems == []
    assert tally.answers >= answers
    for role in ROLES:
        found = tally.outcomes[role]
        assert set(found) <= set(OUTCOMES)
        assert found["accepted"] >= answers / 100, f"too few answers of the {role} are ever fit\n{table(tally)}"
        assert found["asked again, then accepted"] >= answers / 100, table(tally)
        assert found["failed with a reason"] >= answers / 400, table(tally)


def test_the_same_seed_gives_the_same_answers() -> None:
    assert fuzz(100, 7) == fuzz(100, 7) != fuzz(100, 8)


def test_the_command_prints_its_counts_and_the_number_of_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--answers", "100", "--seed", "3"]) == 0
    printed = capsys.readouterr().out
    assert all(role in printed for role in ROLES)
    assert printed.endswith("runs: 0 problems\n")
