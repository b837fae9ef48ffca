"""A real run of the study with the fake targets: the codes that each of them must get.

The tables hold what a person would code. `MISSED` lists where `offline:rules` cannot tell; it is careful, so it may say
less than is there, and never accuses or credits an answer that a person would not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from src import storage
from src.schemas import ResultLine
from tests.cases import each_case
from tests.runs import SCENARIOS, make_run, replays, shared_run, verifies

TARGETS = ("careful", "wrong", "evasive", "partial")
STUDY = ("--scenario", SCENARIOS / "study", *(part for name in TARGETS for part in ("--target", f"fake:{name}")))
SHORT = {
    "accurate_complete": "complete",
    "accurate_incomplete": "incomplete",
    "not_substantive": "nothing",
    "incorrect": "incorrect",
    "incomplete_data": "no-data",
}
DUAL = """
group  careful     wrong      evasive  partial
g1     complete    incorrect  nothing  incomplete
g3     complete    incorrect  nothing  incomplete
g4     complete    incorrect  nothing  incomplete
g5     nothing     incorrect  nothing  nothing
g6     complete    incorrect  nothing  incomplete
g7     complete    incorrect  nothing  incomplete
g8     complete    incorrect  nothing  incomplete
g2     yes         no         unsure   unsure
"""
HMO = """
group  careful     wrong      evasive  partial
g1     complete    incorrect  nothing  incomplete
g9     complete    incorrect  nothing  incomplete
g10    complete    incorrect  nothing  incomplete
g11    complete    incorrect  nothing  incomplete
g12    complete    incorrect  nothing  incomplete
g13    complete    incorrect  nothing  incomplete
g14    nothing     incorrect  nothing  complete
g15    incomplete  incorrect  nothing  incomplete
g16    complete    incorrect  nothing  complete
g17    nothing     incorrect  nothing  complete
g18    nothing     incorrect  nothing  incomplete
g19    nothing     incorrect  nothing  complete
g20    nothing     incorrect  nothing  incomplete
g2     yes         no         unsure   unsure
"""
PPO = """
group  careful     wrong      evasive  partial
g1     complete    incorrect  nothing  incomplete
g9     complete    incorrect  nothing  incomplete
g10    complete    incorrect  nothing  incomplete
g11    complete    incorrect  nothing  incomplete
g12    complete    incorrect  nothing  incomplete
g13    complete    incorrect  nothing  incomplete
g14    nothing     incorrect  nothing  complete
g15    incomplete  incorrect  nothing  incomplete
g16    complete    incorrect  nothing  incomplete
g17    nothing     incorrect  nothing  incomplete
g18    nothing     incorrect  nothing  complete
g19    nothing     incorrect  nothing  incomplete
g20    nothing     incorrect  nothing  incomplete
g2     yes         no         unsure   unsure
"""

MISSED = {
    # Said otherwise than in the key: "Your Medicaid stays separate coverage", "you need a separate Part D plan".
    ("dual_eligible", "careful", "g3"): "incomplete",
    ("dual_eligible", "partial", "g3"): "nothing",
    # "If you join a D-SNP, you may lose a current doctor": the key has no condition.
    ("dual_eligible", "careful", "g4"): "incomplete",
    # "Such as a nursing home you live in for good" is not in the key.
    ("dual_eligible", "careful", "g6"): "incomplete",
    # "If you keep full Medicaid or have QMB" is a condition in the answer and a description in the key.
    ("dual_eligible", "careful", "g7"): "incomplete",
    # "Living alone on $1,600 a month, you may qualify" does not say "under the federal limits".
    ("dual_eligible", "careful", "g8"): "incomplete",
    # "7 months around age 65" in another order than the key's, and "if you have QMB".
    **dict.fromkeys([("dual_eligible", "partial", "g1"), ("dual_eligible", "partial", "g7")], "nothing"),
    # Two assertions in a sentence, "never pays", or a figure whose fact is not the one that shares most words.
    **dict.fromkeys([("dual_eligible", "wrong", group) for group in ("g6", "g7", "g8")], "nothing"),
    # "Must cover all medically necessary services" lacks the key's "generally".
    ("medicare_only", "careful", "g10"): "incomplete",
    # "Covers out-of-network care everywhere" lacks the key's long exception.
    ("medicare_only@hmo", "wrong", "g16"): "nothing",
    # $40 and $60 are multiples of the key's $5 and $15, so they may be a sum.
    ("medicare_only", "wrong", "g17"): "nothing",
}
"""Scenario, perhaps with its variant, target and group to the code that the rules give instead of a person's."""
UNSEEN = {
    "dual_eligible": ("F17|F71", "F21", "F22", "F25", "F27", "F30", "F34|F35|F97", "F40|F98", "F19", "F45|F46|F81"),
    "medicare_only": ("F26",),
}
"""Points that `careful` makes in words in which the rules do not find them."""


@pytest.fixture(scope="module")
def run() -> Path:
    return shared_run(*STUDY, "--concurrency", "8")


@pytest.fixture(scope="module")
def results(run: Path) -> list[ResultLine]:
    lines = (run / storage.RESULTS).read_bytes().splitlines()
    return [ResultLine.model_validate_json(line) for line in lines]


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


def coded(results: list[ResultLine], scenario_id: str, variant: str) -> list[list[str]]:
    """The table of one variant: a row for each group in the order of the script, a column for each target."""
    columns = {
        result.target.model: {
            code.question_group: SHORT[code.code] if code.code else str(code.answer) for code in result.study_codes
        }
        for result in results
        if (result.scenario_id, result.variant) == (scenario_id, variant)
    }
    assert sorted(columns) == sorted(TARGETS)
    groups = list(columns["careful"])
    assert all(list(column) == groups for column in columns.values())
    return [["group", *TARGETS], *([group, *(columns[name][group] for name in TARGETS)] for group in groups)]


@each_case(
    ("scenario_id", "variant", "table"),
    [
        ("dual_eligible", "maple_hollow", DUAL),
        ("dual_eligible", "tamarack_point", DUAL),
        ("medicare_only", "hmo", HMO),
        ("medicare_only", "ppo", PPO),
    ],
)
def test_each_fake_target_gets_its_codes(results: list[ResultLine], scenario_id: str, variant: str, table: str) -> None:
    by_hand = rows(table)
    seen = [row[:] for row in by_hand]
    for row in seen[1:]:
        for place, target in enumerate(TARGETS, 1):
            for name in (scenario_id, f"{scenario_id}@{variant}"):
                row[place] = MISSED.get((name, target, row[0]), row[place])
    assert coded(results, scenario_id, variant) == seen


def test_the_rules_never_accuse_or_credit_more_than_a_person() -> None:
    less = {("incorrect", "nothing"), ("complete", "incomplete"), ("complete", "nothing"), ("incomplete", "nothing")}
    tables = {"dual_eligible": [DUAL], "medicare_only": [HMO, PPO], "medicare_only@hmo": [HMO]}
    for (name, target, group), given in MISSED.items():
        for table in tables[name]:
            (by_hand,) = (row[TARGETS.index(target) + 1] for row in rows(table) if row[0] == group)
            assert (by_hand, given) in less


def test_every_variant_is_scored_once_for_each_target(results: list[ResultLine]) -> None:
    assert len({result.trial_id for result in results}) == len(results) == 4 * len(TARGETS)
    assert {result.outcome for result in results} == {"scored"}
    assert not any(result.judge_failures or result.rejected_claims for result in results)


def test_careful_and_evasive_say_nothing_wrong_and_invent_nothing(results: list[ResultLine]) -> None:
    for result in results:
        if result.target.model in ("careful", "evasive"):
            assert not any(code.wrong or code.minor or code.fabricated for code in result.study_codes)


def test_every_quote_behind_a_code_is_in_its_reply(results: list[ResultLine]) -> None:
    quoted = 0
    for result in results:
        replies = {exchange.turn_id: exchange.reply or "" for exchange in result.conversation}
        for code in result.study_codes:
            made = [backing for point in (*code.points_met, *code.partial_points_met) for backing in point.claims]
            for backing in (*made, *code.wrong, *code.minor):
                assert all(quote in replies[backing.claim_id.partition(".")[0]] for quote in backing.quotes)
                quoted += len(backing.quotes)
    assert quoted > 200


def test_lookup_groups_do_not_count_toward_completeness(results: list[ResultLine]) -> None:
    careful = [result for result in results if result.target.model == "careful"]
    assert any(code.code == "not_substantive" for result in careful for code in result.study_codes)
    for result in careful:
        assert result.missing_required_points == UNSEEN[result.scenario_id]
        assert result.final_scores
        made = {"dual_eligible": 17 / 27, "medicare_only": 28 / 29}[result.scenario_id]
        assert result.final_scores.completeness == pytest.approx(made, abs=1e-5)


def test_a_follow_up_is_asked_only_if_the_generic_was_not_named(results: list[ResultLine]) -> None:
    for result in results:
        if result.scenario_id == "medicare_only":
            turns = {exchange.turn_id: exchange for exchange in result.conversation}
            named = any(word in (turns["Q14"].reply or "").lower() for word in ("generic", "atorvastatin"))
            assert (turns["Q14b"].outcome == "skipped") is named


def test_the_run_verifies_and_replays(run: Path) -> None:
    verifies(run)
    replays(run)


@pytest.mark.slow
def test_one_trial_at_a_time_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    alone = make_run(tmp_path, *STUDY, "--concurrency", "1")
    assert (alone / storage.RESULTS).read_bytes() == (run / storage.RESULTS).read_bytes()
