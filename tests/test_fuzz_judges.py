"""A slice of the fuzz of judges' answers with every run of the suite; all of it: `make fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz_judges import OUTCOMES, ROLES, fuzz, main, table


def test_nothing_is_raised_and_nothing_accepted_breaks_a_rule() -> None:
    tally = fuzz(2_000, 42)
    assert tally.problems == []
    assert tally.answers >= 2_000
    for role in ROLES:
        assert set(tally.outcomes[role]) <= set(OUTCOMES)
        assert tally.outcomes[role]["accepted"] > 20, f"too few answers of the {role} are ever fit"
        assert tally.outcomes[role]["asked again, then accepted"] > 20
        assert tally.outcomes[role]["failed with a reason"] > 5, table(tally)


def test_a_seed_gives_the_same_answers_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz(300, 7) == fuzz(300, 7) != fuzz(300, 8)
    assert main(["--answers", "100", "--seed", "3"]) == 0
    assert "0 problems" in capsys.readouterr().out
