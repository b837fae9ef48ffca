"""compare, drift, sensitivity, power, export, freeze, report and run --registered, as a user meets them: in words and codes.

On real runs of fake targets, and on runs made by hand whose numbers can be worked out on paper.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from src import storage
from src.reports.report_folder import LIST
from src.schemas import Manifest, RunPlan, Scenario, StudyCode, TrialResult
from tests.cases import each_case

from ..helpers import claim, fact_json, final_claim, manifest, plan, result, scenario
from ..runs import ONE, SCENARIOS, THREE, call, make_run, shared, shared_run
from .made_runs import write_run
from .report_run import code as coded_question
from .report_run import coded

CAREFUL, WRONG = "fake:careful", "fake:wrong"
TOPICS = (
    "cobra", "dual_enrollment_periods", "employer_large", "irmaa", "irmaa_life_events", "late_penalties",
    "lookup_plan_costs", "veterans",
)  # fmt: skip
"""Topics of two variants on which the rule-based judge finds something right and something wrong in canned replies."""
EIGHT = tuple(argument for name in TOPICS for argument in ("--scenario", SCENARIOS / "topics" / f"{name}.json"))
NAMES = tuple(f"s{number}" for number in range(1, 9))
SCORES = ("accuracy", "completeness", "safety_risk", "calibration")
MEASURES = (*SCORES, "accurate_complete", "incorrect")


@pytest.fixture(scope="module")
def both() -> Path:
    """Eight topics in two variants, two targets, two repeats."""
    return shared_run(
        *EIGHT, "--target", CAREFUL, "--target", WRONG, "--repeats", "2"
    )  # fmt: skip


@pytest.fixture(scope="module")
def careful() -> Path:
    return shared_run(*EIGHT, "--target", CAREFUL, "--repeats", "2")


@pytest.fixture(scope="module")
def wrong() -> Path:
    return shared_run(*EIGHT, "--target", WRONG, "--repeats", "2")


@pytest.fixture(scope="module")
def rejudged(careful: Path) -> Path:
    return shared("rejudge", careful, "--keep-claims").folder


@pytest.fixture(scope="module")
def three() -> Path:
    """Three scenarios, two targets, two repeats."""
    return shared_run(
        "--scenario", THREE, "--target", CAREFUL, "--target", WRONG, "--repeats", "2"
    )  # fmt: skip


@pytest.fixture(scope="module")
def checked() -> Path:
    """A check of two offline judges."""
    return shared("judge-check", "--judge-model", "offline:rules", "--judges", "2", "--split", "dev").folder


def refused(*arguments: object, exit_code: int = 2) -> str:
    """The one sentence with which a command is refused."""
    found, out, err = call(*arguments)
    assert "Traceback" not in err, err
    assert (found, out) == (exit_code, ""), err
    assert err.startswith("medicare-eval")
    assert err.count("\n") == 1
    return err


def said(*arguments: object, exit_code: int = 0) -> str:
    found, out, err = call(*arguments)
    assert found == exit_code, err
    assert err == ""
    return out


def as_json(*arguments: object, exit_code: int = 0) -> Any:
    """What is printed with --json: one document, of JSON's own numbers."""

    def never(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(said(*arguments, "--json", exit_code=exit_code), parse_constant=never)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def trial(
    target: str, scenario_id: str, repetition: int = 1, accuracy: float | None = 1.0, *, variant: str | None = None,
    **given: Any,
) -> TrialResult:  # fmt: skip
    """A trial that was scored; with accuracy None, one that was not."""
    if accuracy is None:
        given = {"outcome": "failed", **given}
    made = result(target=target, scenario_id=scenario_id, repetition=repetition, accuracy=accuracy, **given)
    name = f"{scenario_id}@{variant}" if variant else scenario_id
    return made.model_copy(
        update={"variant": variant, "trial_id": made.trial_id.replace(scenario_id, name, 1)}
    )  # fmt: skip


def planned(
    targets: Sequence[str] = (CAREFUL, WRONG), names: Sequence[str] = NAMES, repeats: int = 2, **changes: Any
) -> RunPlan:
    scenarios = [scenario(scenario_id=name) for name in names]
    return plan(**{"scenarios": scenarios, "targets": targets, "repeats": repeats, **changes})


def named_run(folder: Path, results: Sequence[TrialResult], made: RunPlan, **changes: Any) -> Path:
    """A run made by hand, under a name of its own."""
    write_run(folder, results, made)
    one = manifest(made).model_copy(update={"run_id": folder.name, **changes})
    (folder / storage.MANIFEST).write_bytes(storage.encode_record(one) + b"\n")
    return folder


def level_run(
    folder: Path, target: str, accuracy: float, names: Sequence[str] = NAMES, *, label: Any = "SUPPORTED",
    claims: bool = True, reply: str = "Plans have networks.", **changes: Any,
) -> Path:  # fmt: skip
    """Every trial of a target equally good, with one claim each, and one coded question."""
    judged: dict[str, Any] = {"claims": [claim()], "final_claims": [final_claim(label=label)]} if claims else {}
    given: StudyCode = "accurate_complete" if accuracy > 0.5 else "incorrect"
    trials = [
        coded(trial(target, name, n, accuracy, reply=reply, **judged), coded_question("Q1", given))
        for name in names
        for n in (1, 2)
    ]
    return named_run(folder, trials, planned([target], names, **changes))


def one_comparison(run: Path, measure: str = "accuracy", *more: object) -> dict[str, Any]:
    document = as_json("compare", run, *more, "--measure", measure)
    assert len(document["comparisons"]) == 1
    return dict(document["comparisons"][0])


# compare


def tiny(folder: Path) -> Path:
    """Differences 0.5 and 0 on s1 and 1 on s2; one pair scored on one side, one on neither, two without a partner."""
    trials = [
        trial(CAREFUL, "s1", 1, 1.0), trial(WRONG, "s1", 1, 0.5),
        trial(CAREFUL, "s1", 2, 0.5), trial(WRONG, "s1", 2, 0.5),
        trial(CAREFUL, "s2", 1, 1.0), trial(WRONG, "s2", 1, 0.0),
        trial(CAREFUL, "s2", 2, None), trial(WRONG, "s2", 2, 0.25),
        trial(CAREFUL, "s2", 3, None), trial(WRONG, "s2", 3, None),
        trial(CAREFUL, "s1", 4, 1.0), trial(WRONG, "s2", 4, 0.0),
    ]  # fmt: skip
    return named_run(folder, trials, planned(names=("s1", "s2"), repeats=4))


def test_compare_gives_the_numbers_worked_out_by_hand(tmp_path: Path) -> None:
    found = one_comparison(tiny(tmp_path / "run"))
    difference = found["difference"]
    assert (found["first"], found["second"]) == (CAREFUL, WRONG)
    # A mean of 0.25 on s1 and of 1 on s2; every scenario has the same weight.
    assert (difference["n"], difference["clusters"]) == (2, 2)
    assert difference["mean"] == pytest.approx(0.625)
    assert (difference["low"], difference["high"]) == (None, None)  # two scenarios cannot carry an interval
    assert difference["p"] == found["p_holm"] == pytest.approx(0.5)  # 2 of 4 flips reach 1.25
    assert difference["effect"]["d_z"] == pytest.approx(0.625 / statistics.stdev([0.25, 1]))
    assert difference["effect"]["delta"] == 1
    assert found["verdict"] == "cannot tell"


def test_compare_says_what_is_missing_and_what_it_could_change(tmp_path: Path) -> None:
    run = tiny(tmp_path / "run")
    paired = one_comparison(run)["paired"]
    # Two trials have no partner, though both were planned: they are missing on the other side.
    assert (paired["answers"], paired["one_sided"], paired["neither"], paired["unmatched"]) == (3, 3, 1, 0)
    # On s1, one of three is missing for the second: (1 + 0.5 + 1) / 3 - (0.5 + 0.5 + end) / 3. On s2, two of four for
    # the first and two for the second: (1 + end + end + end) / 4 - (0 + 0.25 + end + 0) / 4.
    assert paired["lowest"] == pytest.approx(((2.5 - 2) / 3 + (1 - 1.25) / 4) / 2)
    assert paired["highest"] == pytest.approx(((2.5 - 1) / 3 + (4 - 0.25) / 4) / 2)
    out = said("compare", run, "--measure", "accuracy")
    low, high = (f"{paired[end]:+.2f}" for end in ("lowest", "highest"))
    assert f"    missing: 3 on one side, 1 on both, of 7 pairs; with them, {low} to {high}\n" in out


def test_compare_explains_every_abbreviation_it_prints(tmp_path: Path) -> None:
    numbers, note = unwrapped(said("compare", tiny(tmp_path / "run"), "--measure", "accuracy")).split(
        " Two targets are compared on "
    )
    for name in ("Holm", "d_z", "MDD"):
        assert name in numbers
        assert name in note


def test_compare_answers_in_words_first(tmp_path: Path) -> None:
    levels = [(0.9, 0.5), (0.8, 0.5), (0.9, 0.6), (1.0, 0.5), (0.8, 0.6), (0.9, 0.4), (1.0, 0.6), (0.7, 0.5)]
    trials = [
        trial(target, name, 1, level)
        for name, both_levels in zip(NAMES, levels, strict=True)
        for target, level in zip((CAREFUL, WRONG), both_levels, strict=True)
    ]
    out = unwrapped(said("compare", named_run(tmp_path / "run", trials, planned()), "--measure", "accuracy"))
    sentence = re.search(
        rf"The accuracy of {CAREFUL} is 35 points higher than that of {WRONG} \((\d+) to (\d+)\)\.", out
    )
    assert sentence and 0 < int(sentence.group(1)) < 35 < int(sentence.group(2))
    few = unwrapped(said("compare", tiny(tmp_path / "tiny"), "--measure", "accuracy"))
    unclear = (
        f"Cannot tell whether the accuracy of {CAREFUL} is higher than that of {WRONG}: the difference is 63 points"
    )
    assert f"{unclear} (no interval: 2 scenarios, and 3 are needed)." in few
    assert re.search(r"About [\d,]+ scenarios would be needed to detect 10 points; there are 2\.", few)


def test_compare_prints_no_negative_zero() -> None:
    run = shared_run("--scenario", ONE, "--target", CAREFUL, "--target", "fake:partial")
    assert f"{CAREFUL}: mean 0.00" in said("compare", run, "--measure", "safety_risk")


def test_compare_gives_the_means_of_all_trials_that_were_scored(tmp_path: Path) -> None:
    means = as_json("compare", tiny(tmp_path / "run"), "--measure", "accuracy")["means"]["accuracy"]
    by_scenario = {CAREFUL: [fmean([1, 0.5, 1]), 1], WRONG: [fmean([0.5, 0.5]), fmean([0, 0.25, 0])]}
    assert {name: one["value"] for name, one in means.items()} == pytest.approx(
        {name: fmean(values) for name, values in by_scenario.items()}
    )
    assert (means[CAREFUL]["missing"], means[CAREFUL]["units"]) == (2, 2)


def test_compare_pairs_within_a_variant_and_a_repetition_whatever_the_order(tmp_path: Path) -> None:
    """Paired otherwise, the differences would not all be alike."""
    levels = {("s1", "a", 1): 0.5, ("s1", "a", 2): 0.6, ("s1", "b", 1): 0.9, ("s2", "a", 1): 0.75}
    first = [trial(CAREFUL, name, n, level, variant=v) for (name, v, n), level in levels.items()]
    second = [trial(WRONG, name, n, level - 0.25, variant=v) for (name, v, n), level in levels.items()]
    run = named_run(tmp_path / "run", [*first, *reversed(second)], planned(names=("s1", "s2")))
    found = one_comparison(run)
    assert (found["difference"]["n"], found["paired"]["answers"], found["paired"]["unmatched"]) == (2, 4, 0)
    assert found["difference"]["mean"] == pytest.approx(0.25)
    assert found["difference"]["effect"]["d_z"] is None


def test_other_variants_have_no_partner(tmp_path: Path) -> None:
    trials = [trial(CAREFUL, "s1", variant="a"), trial(WRONG, "s1", variant="b")]
    found = one_comparison(named_run(tmp_path / "run", trials, planned(names=("s1",))))
    assert (found["difference"]["n"], found["paired"]["one_sided"], found["paired"]["unmatched"]) == (0, 0, 2)
    assert (found["difference"]["mean"], found["p_holm"], found["verdict"]) == (None, None, "cannot tell")


@each_case("measure", MEASURES)
def test_careful_is_better_than_wrong_on_eight_scenarios_by_every_measure(both: Path, measure: str) -> None:
    found = one_comparison(both, measure)
    assert found["verdict"] == f"{CAREFUL} better"
    assert found["difference"]["clusters"] == 8
    assert found["difference"]["n"] == (8 if measure in SCORES else 38)  # scenarios, or different questions
    assert (found["paired"]["one_sided"], found["paired"]["unmatched"]) == (0, 0)
    assert found["p_holm"] == pytest.approx(2 / 2**8)


@each_case("scenarios", [1, 2, 3, 4, 5])
def test_up_to_five_scenarios_are_too_few_to_tell(scenarios: int, tmp_path: Path) -> None:
    names = NAMES[:scenarios]
    trials = [trial(t, n, r, a) for t, a in ((CAREFUL, 1.0), (WRONG, 0.0)) for n in names for r in (1, 2)]
    assert one_comparison(named_run(tmp_path / "run", trials, planned(names=names)))["verdict"] == "cannot tell"


def test_many_repeats_of_one_scenario_carry_neither_interval_nor_test(tmp_path: Path) -> None:
    trials = [trial(t, "s1", r, a) for t, a in ((CAREFUL, 1.0), (WRONG, 0.0)) for r in range(1, 9)]
    found = one_comparison(named_run(tmp_path / "run", trials, planned(names=("s1",), repeats=8)))
    assert (found["difference"]["n"], found["difference"]["clusters"]) == (1, 1)
    assert (found["difference"]["low"], found["difference"]["p"], found["verdict"]) == (None, None, "cannot tell")


def test_three_real_scenarios_are_too_few_to_tell(three: Path) -> None:
    assert {one["verdict"] for one in as_json("compare", three)["comparisons"]} == {"cannot tell"}


def test_a_difference_below_the_floor_is_not_called_one(tmp_path: Path) -> None:
    steps = {name: 0.01 * (at % 3) for at, name in enumerate(NAMES)}
    trials = [trial(t, n, 1, a + f * steps[n]) for t, a, f in ((CAREFUL, 0.8, 1), (WRONG, 0.7, -1)) for n in NAMES]
    run = named_run(tmp_path / "run", trials, planned())
    assert one_comparison(run)["verdict"] == f"{CAREFUL} better"
    assert one_comparison(run, "accuracy", "--floor", "0.2")["verdict"] != f"{CAREFUL} better"


def test_compare_as_json_holds_every_measure(both: Path) -> None:
    document = as_json("compare", both)
    assert tuple(document["measures"]) == MEASURES
    assert tuple(document["systems"]) == (CAREFUL, WRONG)
    assert [one["measure"] for one in document["comparisons"]] == list(MEASURES)


@each_case("measure", ["accuracy", "safety_risk", "incorrect"])
def test_the_best_comes_first_also_where_less_is_better(both: Path, measure: str) -> None:
    out = said("compare", both, "--measure", measure)
    assert 0 < out.index(f"\n  {CAREFUL}: mean ") < out.index(f"\n  {WRONG}: mean ")


@each_case("measure", MEASURES)
def test_the_table_names_the_pair_and_the_verdict_in_full(both: Path, measure: str) -> None:
    out = said("compare", both, "--measure", measure)
    assert f"{CAREFUL} better" in out
    assert "p Holm" in out
    assert f"{CAREFUL} -" in out


def test_three_systems_make_three_pairs_with_adjusted_p(tmp_path: Path) -> None:
    levels = {CAREFUL: 1.0, "fake:partial": 0.5, WRONG: 0.0}
    trials = [trial(target, name, n, level) for target, level in levels.items() for name in NAMES for n in (1, 2)]
    document = as_json(
        "compare", named_run(tmp_path / "run", trials, planned(list(levels))), "--measure", "accuracy"
    )  # fmt: skip
    assert [(one["first"], one["second"]) for one in document["comparisons"]] == [
        (CAREFUL, "fake:partial"), (CAREFUL, WRONG), ("fake:partial", WRONG),
    ]  # fmt: skip
    assert [one["p_holm"] for one in document["comparisons"]] == pytest.approx([3 * 2 / 2**8] * 3)


@pytest.mark.slow
def test_one_target_is_refused_in_one_sentence(careful: Path) -> None:
    assert "there is only one" in refused("compare", careful)
    assert "there is only one" in refused("compare", careful, "--json")


@pytest.mark.slow
def test_targets_of_several_runs_are_compared_as_those_of_one(careful: Path, wrong: Path, both: Path) -> None:
    apart = as_json("compare", careful, wrong)
    assert apart["comparisons"] == as_json("compare", both)["comparisons"]


def test_one_target_in_two_runs_is_named_with_its_run(tmp_path: Path) -> None:
    first, second = level_run(tmp_path / "A", CAREFUL, 1.0), level_run(tmp_path / "B", CAREFUL, 0.0)
    document = as_json("compare", first, second, "--measure", "accuracy")
    assert document["systems"] == [f"{CAREFUL} (A)", f"{CAREFUL} (B)"]
    assert document["comparisons"][0]["verdict"] == f"{CAREFUL} (A) better"


def test_two_runs_that_began_in_one_second_are_still_two(tmp_path: Path) -> None:
    """Run ids are times of day: two folders can hold runs of one id."""
    first = level_run(tmp_path / "one" / "20260101T000000Z", CAREFUL, 1.0)
    second = level_run(tmp_path / "two" / "20260101T000000Z", CAREFUL, 0.0)
    assert len(as_json("compare", first, second, "--measure", "accuracy")["systems"]) == 2


@pytest.mark.slow
def test_a_judging_and_its_repeat_are_compared_claim_by_claim(careful: Path, rejudged: Path) -> None:
    out = said("compare", careful, rejudged)
    assert out.startswith("32 trials, ")
    assert " 0 changed.\n" in out
    assert "Study codes: 152 same, 0 changed." in out


def test_a_judging_and_its_repeat_are_compared_as_json(careful: Path, rejudged: Path) -> None:
    document = as_json("compare", careful, rejudged)
    assert (document["trials"], document["changed"]) == (32, [])


def test_changed_labels_are_shown_with_the_quoted_words(tmp_path: Path) -> None:
    before = level_run(tmp_path / "A", CAREFUL, 1.0, ("s1",))
    after = level_run(tmp_path / "B", CAREFUL, 1.0, ("s1",), label="CONTRADICTED")
    out = said("compare", before, after, "--by", "judges")
    assert "2 trials, 2 claims in both runs: 0 labels same, 2 changed." in out
    assert out.count("SUPPORTED -> CONTRADICTED") == 2
    assert "“Plans”" in out
    assert said("compare", before, after, "--by", "judges", "--show", "1").count("SUPPORTED -> CONTRADICTED") == 1


def test_judgings_of_other_answers_are_refused(careful: Path, wrong: Path) -> None:
    assert "have different transcripts" in refused("compare", careful, wrong, "--by", "judges")


def test_judges_of_one_run_or_three_cannot_be_compared(both: Path, careful: Path, three: Path) -> None:
    assert "Comparing judges takes two runs of the same transcripts, not 1." in refused(
        "compare", both, "--by", "judges"
    )
    assert "same transcripts, not 3." in refused("compare", both, careful, three, "--by", "judges")


def test_a_run_of_failures_only_can_be_compared_with_no_verdict(tmp_path: Path) -> None:
    trials = [trial(t, n, 1, None) for t in (CAREFUL, WRONG) for n in NAMES]
    run = named_run(tmp_path / "run", trials, planned())
    assert {one["verdict"] for one in as_json("compare", run)["comparisons"]} == {"cannot tell"}
    assert "cannot tell" in said("compare", run)


# drift


def test_a_run_has_not_changed_from_itself(both: Path, three: Path) -> None:
    for run, scenarios in ((both, 8), (three, 3)):
        out = said("drift", run, run)
        assert "no known change" in out
        assert "No question's code changed." in out
        assert f"No change: {CAREFUL} has the same result in both runs for " in unwrapped(out)
        # If 59 scenarios do not change, at most 1 - 0.05 ** (1/59) = 0.0495 of all do, at 95%.
        assert (
            f"in {scenarios} scenarios. 59 scenarios without a change would exclude a change of 5 points."
            in unwrapped(out)
        )
        assert out.endswith("Verdict: no change.\n")


def test_no_evidence_takes_changes_that_are_small_for_the_floor(tmp_path: Path) -> None:
    old = [trial(CAREFUL, name, n, 0.5) for name in NAMES for n in (1, 2)]
    new = [trial(CAREFUL, name, n, 0.5 + 0.01 * (at % 3)) for at, name in enumerate(NAMES) for n in (1, 2)]
    runs = [named_run(tmp_path / name, trials, planned([CAREFUL])) for name, trials in (("A", old), ("B", new))]
    close = as_json("drift", *runs, "--floor", "0.35")["targets"][0]["measures"]["accuracy"]
    assert (close["verdict"], close["clusters_needed"]) == ("no evidence", None)
    assert close["low"] < close["difference"]["mean"] < close["high"]
    far = as_json("drift", *runs, "--floor", "0.005", exit_code=8)["targets"][0]["measures"]["accuracy"]
    assert far["verdict"] == "cannot tell"


def test_an_outage_is_never_no_change(tmp_path: Path) -> None:
    """Most trials of the new run failed: what is left is the same, but nobody knows about the rest."""
    old = [trial(CAREFUL, name, n, 1.0) for name in NAMES for n in (1, 2)]
    new = [trial(CAREFUL, name, n, 1.0 if n == 1 else None) for name in NAMES for n in (1, 2)]
    runs = [named_run(tmp_path / name, trials, planned([CAREFUL])) for name, trials in (("A", old), ("B", new))]
    out = unwrapped(said("drift", *runs, exit_code=8))
    assert "Cannot tell whether fake:careful has changed: accuracy changed by 0 points" in out
    assert "with 8 missing answers at the ends of the scale" in out
    half = [one for one in old if one.scenario_id in NAMES[:4]]
    unfinished = named_run(tmp_path / "C", half, planned([CAREFUL]))
    said_of_it = unwrapped(said("drift", runs[0], unfinished, exit_code=8))
    assert "Cannot tell" in said_of_it and "C: Incomplete: this run has 8 of 16 planned trials." in said_of_it
    for name in ("compare", "sensitivity"):
        assert "Incomplete: this run has 8 of 16 planned trials." in unwrapped(
            said(name, *([unfinished, runs[0]] if name == "compare" else [unfinished]))
        )


def test_a_run_with_missing_answers_has_not_changed_from_itself(tmp_path: Path) -> None:
    trials = [trial(CAREFUL, name, n, 1.0 if n == 1 else None) for name in NAMES for n in (1, 2)]
    run = named_run(tmp_path / "A", trials, planned([CAREFUL]))
    assert "Verdict: no change." in said("drift", run, run)
    lost = named_run(tmp_path / "B", [trial(CAREFUL, name, 1, None) for name in NAMES], planned([CAREFUL], repeats=1))
    assert "Verdict: no change." in said("drift", lost, lost), "the same run, though nothing in it counts"
    again = named_run(tmp_path / "C", [trial(CAREFUL, name, 1, None) for name in NAMES], planned([CAREFUL], repeats=1))
    assert "Verdict: cannot tell." in said("drift", lost, again, exit_code=8), "two outages are not a result"


def test_a_changed_target_has_drifted_with_facts_and_both_answers(careful: Path, wrong: Path) -> None:
    out = said("drift", careful, wrong, exit_code=7)
    assert f"target {CAREFUL} before, {WRONG} now" in out
    assert "called as careful before, wrong now" in out
    assert "served by careful before, wrong now" in out
    assert out.count("\n    asked: ") == out.count("\n    old: ") == out.count("\n    new: ") == 5
    assert "accurate_complete -> incorrect" in out
    assert re.search(r"\n  5 of \d+ changed answers shown; --show N shows more\n", out)
    assert out.endswith("Verdict: drifted.\n")
    none = said("drift", careful, wrong, "--show", "0", exit_code=7)
    assert none.count("\n    old:   ") == 0 and re.search(r"\n  0 of \d+ changed answers shown", none)


def test_drift_as_json_holds_both_answers_and_the_numbers(careful: Path, wrong: Path) -> None:
    document = as_json("drift", careful, wrong, exit_code=7)
    assert (document["verdict"], document["judge"], document["judge_facts"]) == ("drifted", None, [])
    (target,) = document["targets"]
    assert target["measures"]["accuracy"]["verdict"] == "drifted"
    assert target["measures"]["accuracy"]["difference"]["mean"] < -0.9
    assert all(one["old_reply"] and one["new_reply"] and one["question"] for one in target["answers"])
    assert all(one["old_reply"] != one["new_reply"] for one in target["answers"])
    backwards = as_json("drift", wrong, careful, exit_code=7)["targets"][0]
    assert backwards["measures"]["accuracy"]["difference"]["mean"] == pytest.approx(
        -target["measures"]["accuracy"]["difference"]["mean"]
    )
    # Nothing changes in questions for which the rule-based judge finds nothing in either answer.
    assert {(one["worse"], one["better"]) for one in target["questions"]} == {(4, 0), (0, 0)}
    assert {(one["worse"], one["better"]) for one in backwards["questions"]} == {(0, 4), (0, 0)}


def test_answers_that_changed_are_those_of_the_same_trial(tmp_path: Path) -> None:
    old = level_run(tmp_path / "A", CAREFUL, 1.0, reply="Old answer.")
    new = level_run(tmp_path / "B", CAREFUL, 0.0, reply="New answer.")
    (target,) = as_json("drift", old, new, exit_code=7)["targets"]
    assert {(one["old_reply"], one["new_reply"]) for one in target["answers"]} == {("Old answer.", "New answer.")}
    assert {(one["before"], one["after"]) for one in target["answers"]} == {("accurate_complete", "incorrect")}
    assert len(target["answers"]) == 16


def drifted_runs(folder: Path, **changes: Any) -> tuple[Path, Path]:
    """The same target, right in the old run and wrong in the new one."""
    return level_run(folder / "A", CAREFUL, 1.0), level_run(folder / "B", CAREFUL, 0.0, **changes)


def replan(run: Path, **changes: Any) -> None:
    """Put another plan in a run's manifest."""
    one = manifest_of(run)
    again = one.model_copy(update={"plan": one.plan.model_copy(update=changes)})
    (run / storage.MANIFEST).write_bytes(storage.encode_record(again) + b"\n")


def key_changed() -> Scenario:
    key = {"canonical_facts": [fact_json("F1", "Otherwise.")], "required_points": ["F1"], "disallowed_claims": []}
    return scenario(scenario_id="s1", answer_key=key)


def question_changed() -> Scenario:
    return scenario(scenario_id="s1", scripted_turns=[{"turn_id": "Q1", "user_message": "What is Part D?"}])


@each_case(("change", "fact"), [(key_changed, "answer key"), (question_changed, "questions")])
def test_with_another_key_or_other_questions_one_cannot_tell(
    change: Callable[[], Scenario], fact: str, tmp_path: Path
) -> None:
    scenarios = [change(), *(scenario(scenario_id=name) for name in NAMES[1:])]
    old, new = drifted_runs(tmp_path, scenarios=scenarios)
    out = said("drift", old, new, exit_code=8)
    assert f"s1: the {fact} changed" in out
    assert out.endswith("Verdict: cannot tell.\n")


def test_without_that_the_same_runs_have_drifted(tmp_path: Path) -> None:
    assert said("drift", *drifted_runs(tmp_path), exit_code=7).endswith("Verdict: drifted.\n")


JUDGES = ("openai:x", "google:y")


def judged_runs(folder: Path) -> tuple[Path, Path]:
    """As `drifted_runs`, but judged by models, which may have changed behind their names."""
    return (
        level_run(folder / "A", CAREFUL, 1.0, verifiers=JUDGES),
        level_run(folder / "B", CAREFUL, 0.0, verifiers=JUDGES, reply="New answer."),
    )


def test_judges_that_are_not_shown_to_be_the_same_leave_it_open(tmp_path: Path) -> None:
    out = said("drift", *judged_runs(tmp_path), exit_code=8)
    assert "Not checked on frozen transcripts" in out
    told = f"Cannot tell whether {CAREFUL} has changed: its scores did, but the judges are not shown to be the same"
    assert told in unwrapped(out)
    assert out.endswith("Verdict: cannot tell.\n")


def test_other_judges_leave_it_open_and_are_named(tmp_path: Path) -> None:
    old, new = drifted_runs(tmp_path, verifiers=JUDGES)
    out = said("drift", old, new, exit_code=8)
    assert "judges: offline:rules, offline:rules before, openai:x, google:y now" in out


@each_case("role", ["extractor", "scorer"])
def test_another_extractor_or_scorer_leaves_it_open_and_is_named(role: str, tmp_path: Path) -> None:
    old, new = drifted_runs(tmp_path)
    replan(new, **{role: "offline:other"})
    assert "offline:other" in said("drift", old, new, exit_code=8)


def test_another_rubric_leaves_it_open_and_is_named(tmp_path: Path) -> None:
    old, new = drifted_runs(tmp_path)
    rubrics = manifest_of(new).plan.rubrics
    replan(new, rubrics={name: one.model_copy(update={"sha256": "1" * 64}) for name, one in rubrics.items()})
    assert "rubric" in said("drift", old, new, exit_code=8)


def test_other_scenarios_are_listed_as_a_change(tmp_path: Path) -> None:
    old = level_run(tmp_path / "A", CAREFUL, 1.0)
    new = level_run(tmp_path / "B", CAREFUL, 1.0, [f"other{n}" for n in range(8)])
    assert "no known change" not in said("drift", old, new, exit_code=8).partition(CAREFUL)[2]


def test_hostile_answers_are_shown_without_their_control_characters(tmp_path: Path) -> None:
    old, new = drifted_runs(tmp_path, reply="\x1b[31mred\x07 \u202eback")
    out = said("drift", old, new, exit_code=7)
    assert "red" in out
    assert all(one.isprintable() or one == "\n" for one in out)


def test_judges_shown_to_be_the_same_on_frozen_transcripts_let_one_tell(tmp_path: Path) -> None:
    old, new = judged_runs(tmp_path)
    frozen = level_run(tmp_path / "C", CAREFUL, 1.0, verifiers=JUDGES)
    out = said("drift", old, new, "--frozen", frozen, exit_code=7)
    assert "On frozen transcripts, 0 of 16 labels changed (0%): within bounds." in out


def test_judges_that_changed_on_frozen_transcripts_leave_it_open(tmp_path: Path) -> None:
    old, new = judged_runs(tmp_path)
    frozen = level_run(tmp_path / "C", CAREFUL, 1.0, verifiers=JUDGES, label="CONTRADICTED")
    out = said("drift", old, new, "--frozen", frozen, exit_code=8)
    assert "On frozen transcripts, 16 of 16 labels changed (100%): more than judges may drift." in unwrapped(out)
    assert out.endswith("Verdict: cannot tell.\n")


def test_a_real_run_judged_again_shows_its_judges_to_be_the_same(careful: Path, wrong: Path, rejudged: Path) -> None:
    out = said("drift", careful, wrong, "--frozen", rejudged, exit_code=7)
    assert "labels changed (0%): within bounds" in out
    assert as_json("drift", careful, wrong, "--frozen", rejudged, exit_code=7)["judge"]["changed"]["count"] == 0


def test_frozen_transcripts_must_be_those_of_the_old_run(careful: Path, wrong: Path) -> None:
    assert "have different transcripts" in refused("drift", careful, wrong, "--frozen", wrong)


def test_the_old_run_itself_is_no_proof_of_its_judges(tmp_path: Path) -> None:
    old, new = judged_runs(tmp_path)
    assert "is the old run itself" in refused("drift", old, new, "--frozen", old)


def test_frozen_transcripts_must_be_judged_by_the_judges_of_the_new_run(tmp_path: Path) -> None:
    old, new = judged_runs(tmp_path)
    frozen = level_run(tmp_path / "C", CAREFUL, 1.0, verifiers=("xai:z", "xai:z"))
    assert "was not judged by the judges of the new run" in refused("drift", old, new, "--frozen", frozen)


def test_frozen_transcripts_without_a_claim_show_nothing(tmp_path: Path) -> None:
    old = level_run(tmp_path / "A", CAREFUL, 1.0, verifiers=JUDGES, claims=False)
    new = level_run(tmp_path / "B", CAREFUL, 0.0, verifiers=JUDGES, claims=False)
    frozen = level_run(tmp_path / "C", CAREFUL, 1.0, verifiers=JUDGES, claims=False)
    out = said("drift", old, new, "--frozen", frozen, exit_code=8)
    assert "the two judgings have no claim in common, so nothing is known." in unwrapped(out)
    assert out.endswith("Verdict: cannot tell.\n")


def test_two_runs_without_a_common_target_are_refused(both: Path, tmp_path: Path) -> None:
    other = level_run(tmp_path / "A", "fake:partial", 1.0)
    assert "no target in common" in refused("drift", both, other)


def test_targets_that_both_runs_have_are_looked_at_one_by_one(both: Path, careful: Path) -> None:
    document = as_json("drift", both, careful)
    assert [one["target"] for one in document["targets"]] == [CAREFUL]


# sensitivity


def parts(components: Mapping[str, Any]) -> dict[str, float | None]:
    return {part["name"]: part["variance"] for part in components["parts"]}


@each_case("measure", MEASURES)
def test_the_components_sum_to_the_total_and_the_shares_to_one(both: Path, measure: str) -> None:
    document = as_json("sensitivity", both, "--measure", measure)
    assert [one["target"] for one in document["targets"]] == [CAREFUL, WRONG]
    for one in document["targets"]:
        told = [value for value in parts(one["components"]).values() if value is not None]
        assert math.fsum(told) == pytest.approx(one["components"]["total"], abs=1e-12)
        assert one["components"]["n"] == 32
        shares = [part["share"] for part in one["components"]["parts"] if part["share"] is not None]
        assert not shares or math.fsum(shares) == pytest.approx(1)
        assert (one["judges"] is not None) == (measure == "accuracy")


def varied(folder: Path) -> Path:
    """Two variants of four scenarios: b is worse by 0.4 in s1 and by 0.1 elsewhere; repeats are alike."""
    trials = [
        trial(CAREFUL, name, n, 0.9 - (0 if v == "a" else 0.4 if name == "s1" else 0.1), variant=v, question=f"{v}?")
        for name in NAMES[:4]
        for v in ("a", "b")
        for n in (1, 2)
    ]
    return named_run(folder, trials, two_voices([CAREFUL], NAMES[:4], repeats=2))


def two_voices(targets: Sequence[str], names: Sequence[str], *, repeats: int) -> RunPlan:
    """Each scenario in a plain variant a and a misinformed variant b."""
    made = plan(targets=targets, repeats=repeats)
    listed = tuple(
        made.scenarios[0].model_copy(update={"scenario": scenario(scenario_id=name, style=style), "variant": v})
        for name in names
        for v, style in (("a", "plain"), ("b", "misinformed"))
    )
    return made.model_copy(update={"scenarios": listed})


def test_variance_lies_where_the_values_differ(tmp_path: Path) -> None:
    (one,) = as_json("sensitivity", varied(tmp_path / "run"))["targets"]
    found = parts(one["components"])
    assert found["residual"] == pytest.approx(0, abs=1e-12)
    # Scenarios' means differ less than variants' do, so the best fit is one variance of all eight variants.
    assert found["scenario"] == 0
    assert found["variant"] == pytest.approx(statistics.variance([0.9] * 4 + [0.5] + [0.8] * 3))
    assert one["components"]["method"] == "REML"


def test_the_worst_variant_is_named_with_its_mean(tmp_path: Path) -> None:
    run = varied(tmp_path / "run")
    assert "  s1: worst variant b 0.50, mean 0.70\n" in said("sensitivity", run)
    (one,) = as_json("sensitivity", run)["targets"]
    worst = {case["scenario"]: case for case in one["worst"]["scenarios"]}
    assert {case["variant"] for case in worst.values()} == {"b"}
    assert worst["s1"]["gap"] == pytest.approx(0.2)
    assert one["worst"]["worst"]["value"] == pytest.approx((0.5 + 3 * 0.8) / 4)


def test_voices_have_their_means(tmp_path: Path) -> None:
    run = varied(tmp_path / "run")
    assert "by voice: plain 0.90, misinformed 0.7" in said("sensitivity", run)
    assert as_json("sensitivity", run)["styles"][CAREFUL] == pytest.approx({"plain": 0.9, "misinformed": 0.725})


def test_variants_of_real_runs_are_told_apart_by_voice(both: Path) -> None:
    styles = as_json("sensitivity", both)["styles"]
    assert styles.keys() == {CAREFUL, WRONG}
    assert len(styles[CAREFUL]) > 1
    assert styles[CAREFUL].keys() == styles[WRONG].keys()


def test_each_table_of_variance_has_one_residual() -> None:
    run = shared_run("--scenario", ONE, "--target", CAREFUL, "--target", WRONG, "--repeats", "2")
    tables = said("sensitivity", run).split("between ")[1:]
    assert len(tables) == 4, "for each target, one over trials and one over judges"
    assert [len(re.findall("^residual ", table, re.MULTILINE)) for table in tables] == [1, 1, 1, 1]
    assert f"{WRONG}: accuracy according to each judge, 4 values\nbetween " in said("sensitivity", run)


def test_rank_orders_of_voices_are_said_in_words(both: Path, tmp_path: Path) -> None:
    out = said("sensitivity", both)
    voices = as_json("sensitivity", both)["styles"][CAREFUL]
    lines = [f"  {voice}: tau 1.00; no targets swapped" for voice in voices]
    heading = "Rank order of the targets for each voice vs. the other voices:"
    assert "\n".join([heading, *lines, "", ""]) in out
    accuracies = {(CAREFUL, "a"): 1.0, (WRONG, "a"): 0.5, (CAREFUL, "b"): 0.5, (WRONG, "b"): 1.0}
    trials = [trial(target, "s1", 1, accuracy, variant=v) for (target, v), accuracy in accuracies.items()]
    swapped = named_run(tmp_path / "swapped", trials, two_voices([CAREFUL, WRONG], ["s1"], repeats=1))
    assert f"  plain: tau -1.00; swapped: {CAREFUL} and {WRONG}\n" in said("sensitivity", swapped)
    assert "  plain: tau undefined; no targets swapped\n" in said("sensitivity", swapped, "--measure", "safety_risk")
    one_voice = shared_run("--scenario", ONE, "--target", CAREFUL, "--target", WRONG)
    only = "Rank order by voice: all trials have voice 'plain', so nothing can be compared."
    assert only in said("sensitivity", one_voice).splitlines()


def test_one_scenario_has_no_variance_between_scenarios() -> None:
    run = shared_run("--scenario", ONE, "--target", CAREFUL, "--repeats", "2")
    (one,) = as_json("sensitivity", run)["targets"]
    assert parts(one["components"])["scenario"] is None
    assert "scenario       1" in said("sensitivity", run)


def test_a_single_trial_has_no_variance_at_all() -> None:
    run = shared_run("--scenario", ONE, "--target", CAREFUL)
    (one,) = as_json("sensitivity", run)["targets"]
    assert (one["components"]["n"], one["components"]["total"]) == (1, None)
    out = said("sensitivity", run)
    assert out.startswith(f"{CAREFUL}: accuracy, 1 trial; key coverage ")
    assert "residual       1         -      -\n" in out


def test_a_run_of_failures_has_nothing_to_vary(tmp_path: Path) -> None:
    run = named_run(tmp_path / "run", [trial(CAREFUL, name, 1, None) for name in NAMES], planned([CAREFUL]))
    assert f"{CAREFUL}: accuracy, 0 trials, 8 without a value left out; key coverage –\n" in said("sensitivity", run)
    assert as_json("sensitivity", run)["targets"][0]["worst"]["scenarios"] == []


# power


def test_power_from_an_assumed_spread() -> None:
    out = said("power", "--sd", "0.3", "--difference", "0.15")
    assert "0.15                      34\n" in out  # the textbook's n for d = 0.5: 34 pairs
    assert [line.split()[0] for line in out.splitlines()[1:6]] == ["0.02", "0.05", "0.10", "0.15", "0.20"]


def test_power_of_so_many_pairs() -> None:
    assert said("power", "--sd", "0.3", "--difference", "0.15", "--trials", "34") == (
        "34 pairs detect a difference of 0.15 with power 0.81.\n"
    )


def test_power_from_a_pilot_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    out = unwrapped(said("power", "--pilot", tiny(tmp_path / "run")))
    assert "3 pairs of trials in 2 scenarios, of two targets each. Differences in accuracy, centered" in out
    assert "by REML." in out
    once = named_run(tmp_path / "once", [trial(t, n, 1, a) for t, n, a in ONCE], planned(names=("s1", "s2", "s3")))
    told = unwrapped(said("power", "--pilot", once))
    assert "a standard deviation of 0.500; no scenario has two pairs, so the ICC is not known and taken as 1." in told


ONCE = [
    (CAREFUL, "s1", 0.5), (CAREFUL, "s2", 0.5), (CAREFUL, "s3", 1.0),
    (WRONG, "s1", 0.0), (WRONG, "s2", 0.5), (WRONG, "s3", 0.0),
]  # fmt: skip
"""Differences of 0.5, 0 and 1."""


def test_power_from_a_pilot_of_one_target_takes_its_repeats(tmp_path: Path) -> None:
    levels = {"s1": (0.5, 1.0), "s2": (0.5, 0.5), "s3": (1.0, 0.5)}
    trials = [trial(CAREFUL, name, n, a) for name, values in levels.items() for n, a in enumerate(values, 1)]
    run = named_run(tmp_path / "run", trials, planned([CAREFUL], tuple(levels)))
    out = unwrapped(said("power", "--pilot", run))
    assert "have a standard deviation of 0.408." in out  # the root of the mean of 0.25, 0 and 0.25
    assert "the numbers below are the least that is needed" in out


def test_power_from_a_real_pilot_takes_scenarios_and_icc_from_it(both: Path) -> None:
    out = unwrapped(said("power", "--pilot", both, "--measure", "completeness"))
    assert out.startswith(f"From {both}: 32 pairs of trials in 8 scenarios")
    icc = re.search(r"is (\d\.\d\d), by REML", out)
    assert icc and f"8 scenarios, ICC {icc.group(1)}" in out
    assert "Repeats in the same scenarios stop helping. In 8 scenarios" in out
    given = unwrapped(said("power", "--pilot", both, "--measure", "completeness", "--clusters", "40", "--icc", "0.25"))
    assert "40 scenarios, ICC 0.25" in given and "In 40 scenarios" in given


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@each_case(
    ("arguments", "says"),
    [
        ([], "Give --pilot, a run, or --sd"),
        (["--sd", "0"], "--sd"),
        (["--sd", "-1"], "--sd"),
        (["--sd", "nan"], "--sd"),
        (["--sd", "much"], "--sd"),
        (["--sd", "0.3", "--trials", "0"], "--trials"),
        (["--sd", "0.3", "--difference", "0"], "--difference"),
        (["--sd", "0.3", "--clusters", "0"], "--clusters"),
        (["--pilot", "nowhere"], "nowhere does not exist"),
    ],
)
def test_power_from_bad_input_is_refused(arguments: list[str], says: str) -> None:
    assert says in refused("power", *arguments)


@each_case(
    ("arguments", "says"),
    [
        (["--power", "2"], "alpha and power must"),
        (["--power", "0"], "alpha and power must"),
        (["--power", "nan"], "alpha and power must"),
        (["--alpha", "0"], "alpha and power must"),
        (["--alpha", "1"], "alpha and power must"),
        (["--alpha", "nan"], "alpha and power must"),
        (["--trials", "10", "--alpha", "2"], "alpha and power must"),
        (["--icc", "0.1"], "number of clusters"),
        (["--icc", "-1"], "number of clusters"),
        (["--icc", "2", "--clusters", "4"], "correlation within clusters must"),
        (["--icc", "nan", "--clusters", "4"], "correlation within clusters must"),
        (["--trials", "3", "--clusters", "9"], "3 trials cannot fill 9 clusters"),
    ],
)
def test_values_outside_their_range_are_refused(arguments: list[str], says: str) -> None:
    assert says in refused("power", "--sd", "0.3", *arguments)


def test_a_pilot_with_too_few_pairs_is_refused(tmp_path: Path) -> None:
    run = named_run(tmp_path / "run", [trial(CAREFUL, "s1")], planned([CAREFUL], ("s1",)))
    assert "too few pairs of trials with accuracy" in refused("power", "--pilot", run)


def test_a_pilot_without_any_spread_is_refused(tmp_path: Path) -> None:
    run = level_run(tmp_path / "A", CAREFUL, 1.0)
    assert "paired differences in accuracy do not vary in the pilot run" in refused("power", "--pilot", run)


# freeze and run --registered

SMALL = ("--scenario", ONE, "--target", CAREFUL)


def freeze(path: Path, *more: object) -> Path:
    out = said("freeze", *SMALL, *more, "--primary-outcome", "accuracy", "--test", "none", "--to", path)
    assert out.startswith(f"{path}: pre-registration of 1 trial, sha256 {storage.file_sha256(path)}")
    return path


def test_a_run_that_matches_its_frozen_plan_runs(tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    run = make_run(tmp_path / "runs", *SMALL, "--registered", path)
    kept = manifest_of(run).registration
    assert kept is not None
    assert (kept.deviations, kept.primary_outcome, kept.sha256) == ((), "accuracy", storage.file_sha256(path))
    said("report", run)
    text = (run / "report" / "report.md").read_text(encoding="utf-8")
    assert f"sha256 {kept.sha256[:16]}; primary outcome: accuracy" in text
    assert "Deviation from the pre-registration" not in text
    assert ": OK. " in said("verify", run)


@each_case(
    ("changed", "sentence"),
    [
        (("--seed", "7"), "seed: 7, not 42"),
        (("--repeats", "2"), "repeats: 2, not 1"),
        (("--target", WRONG), "targets: fake:wrong was added"),
        (("--temperature", "1"), "target: temperature 1.0, not 0.0"),
        (("--judges", "3"), "verifiers: offline:rules is listed 3 times, not 2"),
    ],
)
def test_a_deviation_is_refused_and_nothing_is_written(changed: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    err = refused("run", *SMALL, *changed, "--registered", path, "--out", tmp_path / "runs")
    assert sentence in err
    assert "--allow-deviations" in err
    assert not (tmp_path / "runs").exists()


def test_an_allowed_deviation_is_in_the_manifest_and_every_report(tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    run = make_run(tmp_path / "runs", *SMALL, "--seed", "7", "--registered", path, "--allow-deviations")
    kept = manifest_of(run).registration
    assert kept is not None and kept.deviations == ("seed: 7, not 42",)
    said("report", run)
    for name in ("report.md", "report.html"):
        assert "seed: 7, not 42" in (run / "report" / name).read_text(encoding="utf-8")


def test_a_frozen_plan_is_never_overwritten(tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    before = files(tmp_path)
    err = refused("freeze", *SMALL, "--seed", "1", "--primary-outcome", "other", "--to", path)
    assert err == (
        f"medicare-eval: {path} already exists and will not be overwritten. Choose another file with --to.\n"
    )
    assert files(tmp_path) == before


@each_case("content", [None, "", "{}", "[]", "not JSON", "\x00"])
def test_a_plan_that_is_none_is_refused(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    for more in ((), ("--allow-deviations",)):
        given = ("run", *SMALL, "--registered", path, *more, "--out", tmp_path / "runs")
        what = "does not exist. Make a pre-registration" if content is None else "is not a pre-registration. Make one"
        assert refused(*given) == f"medicare-eval: {path} {what} with `medicare-eval freeze`.\n"
    assert not (tmp_path / "runs").exists()


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    path.write_bytes(path.read_bytes().replace(b'"seed":42', b'"seed":"42"'))
    assert str(path) in refused("run", *SMALL, "--registered", path, "--out", tmp_path / "runs", exit_code=5)


@each_case(
    ("arguments", "says"),
    [
        (["--primary-outcome", " "], "--primary-outcome: must not be empty."),
        (["--primary-outcome", "a", "--test", ""], "--test: must not be empty."),
        ([], "--primary-outcome: a pre-registration needs a primary outcome."),
        (["--primary-outcome", "a", "--notes", "x" * 20_001], "--notes: must have at most 20000 characters"),
        (["--primary-outcome", "a", "--repeats", "0"], "--repeats"),
    ],
)
def test_a_plan_that_cannot_be_frozen_is_not(arguments: list[str], says: str, tmp_path: Path) -> None:
    assert says in refused("freeze", *SMALL, *arguments, "--to", tmp_path / "plan.json")
    assert files(tmp_path) == {}


def test_a_dry_run_reports_deviations(tmp_path: Path) -> None:
    path = freeze(tmp_path / "plan.json")
    err = refused("run", *SMALL, "--seed", "7", "--registered", path, "--dry-run", "--out", tmp_path / "runs")
    assert "seed: 7, not 42" in err


# report


def manifest_of(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / storage.MANIFEST).read_bytes())


def report(*runs: Path, out: Path, more: Sequence[object] = ()) -> str:
    """The report as Markdown; that every file named is there, and no other but evidence pages behind the first one."""
    listed = said("report", *runs, "--out", out, *more).splitlines()
    evidence = out / "evidence"
    beside = [path for path in out.rglob("*") if path.is_file() and not path.is_relative_to(evidence)]
    assert sorted([*listed, str(out / LIST)]) == sorted(map(str, [*beside, evidence / "index.html"]))
    assert {"report.md", "report.html", "per_scenario.csv", "per_question.csv", "codes.csv"} <= files(out).keys()
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")
    return (out / "report.md").read_text(encoding="utf-8")


def test_a_report_of_several_runs_names_each(careful: Path, wrong: Path, tmp_path: Path) -> None:
    text = report(careful, wrong, out=tmp_path / "out")
    for name in (CAREFUL, WRONG, manifest_of(careful).run_id, manifest_of(wrong).run_id):
        assert name in text


def test_a_report_leaves_the_run_as_it_is_and_says_the_same_again(three: Path, tmp_path: Path) -> None:
    before = files(three)
    report(three, out=tmp_path / "a")
    report(three, out=tmp_path / "b")
    assert files(three) == before
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_a_checklist_is_written_beside_the_report(three: Path, tmp_path: Path) -> None:
    report(three, out=tmp_path / "out", more=["--checklist", "chart"])
    assert (tmp_path / "out" / "chart_checklist.md").read_text(encoding="utf-8").startswith("#")


@pytest.mark.slow
def test_a_check_of_the_same_judges_corrects_the_report(three: Path, checked: Path, tmp_path: Path) -> None:
    plain = report(three, out=tmp_path / "plain")
    assert report(three, out=tmp_path / "out", more=["--judge-check", checked]) != plain
    by_file = report(three, out=tmp_path / "file", more=["--judge-check", checked / "check.json"])
    assert by_file == (tmp_path / "out" / "report.md").read_text(encoding="utf-8")


def test_a_check_of_other_judges_is_refused(checked: Path, tmp_path: Path) -> None:
    run = level_run(tmp_path / "A", CAREFUL, 1.0, verifiers=JUDGES)
    err = refused("report", run, "--judge-check", checked, "--out", tmp_path / "out")
    assert "measured verifiers offline:rules and offline:rules, but the run had google:y and openai:x" in err
    assert not (tmp_path / "out").exists()


@each_case("content", [None, "", "{}", "[]", "not JSON"])
def test_a_check_that_is_none_is_refused(content: str | None, three: Path, tmp_path: Path) -> None:
    path = tmp_path / "check.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    assert str(path) in refused("report", three, "--judge-check", path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_partial_run_is_reported_as_incomplete(tmp_path: Path) -> None:
    run = named_run(tmp_path / "run", [trial(CAREFUL, "s1"), trial(CAREFUL, "s2")], planned())
    assert "Incomplete: this run has 2 of 32 planned trials." in report(run, out=tmp_path / "out")


@each_case("outcome", ["failed", "refused", "judge_failure", "tampered", "empty"])
def test_a_run_of_failures_only_is_reported(outcome: str, tmp_path: Path) -> None:
    trials = [trial(CAREFUL, name, n, None, outcome=outcome) for name in NAMES for n in (1, 2)]
    run = named_run(tmp_path / "run", trials, planned([CAREFUL]))
    text = report(run, out=tmp_path / "out", more=["--checklist", "chart"])
    assert "Incomplete" not in text
    assert "nan" not in text.replace("\n", " ").split()


def test_a_report_that_cannot_be_written_says_so(three: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert f"{tmp_path / 'file'} is a file. Give a folder." in refused("report", three, "--out", out)
    assert files(tmp_path) == {"file": b"mine"}


def test_a_checklist_that_cannot_be_written_says_so(three: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "chart_checklist.md").mkdir(parents=True)
    err = refused("report", three, "--checklist", "chart", "--out", tmp_path / "out")
    assert "chart_checklist.md exists, and no list of files says that a report wrote it. Move it, or choose" in err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["chart_checklist.md"], "and nothing was written"


# export


def test_an_export_writes_its_tables_and_a_codebook(three: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    listed = said("export", three, "--to", "csv,jsonl", "--out", out).splitlines()
    assert sorted(listed) == sorted(str(path) for path in out.iterdir())
    trials = [json.loads(line) for line in (out / "trial.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(trials) == 12
    assert {"codebook.md", "codebook.csv", "trial.csv", "claim.jsonl"} <= files(out).keys()


@pytest.mark.parametrize("name", ["parquet", "dta", "sav", pytest.param("inspect", marks=pytest.mark.slow)])
def test_other_formats_are_written(name: str, three: Path, tmp_path: Path) -> None:
    listed = [Path(line) for line in said("export", three, "--to", name, "--out", tmp_path / "out").splitlines()]
    suffixes = {path.suffix for path in listed} - {".md", ".csv"}
    assert suffixes - {".R", ".do", ".py"} == {".eval" if name == "inspect" else f".{name}"}
    assert all(path.stat().st_size for path in listed)


def test_an_export_is_never_overwritten(three: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said("export", three, "--out", out)
    before = files(out)
    assert "already exists" in refused("export", three, "--out", out)
    assert files(out) == before


@each_case("formats", ["", ",", "xlsx", "csv,xlsx", "CSV", "../csv"])
def test_an_unknown_format_is_refused_and_nothing_is_written(formats: str, three: Path, tmp_path: Path) -> None:
    assert "--to" in refused("export", three, "--to", formats, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_of_failures_only_and_a_partial_run_are_exported(tmp_path: Path) -> None:
    run = named_run(tmp_path / "run", [trial(CAREFUL, name, 1, None) for name in NAMES], planned([CAREFUL]))
    listed = said("export", run, "--to", "csv,jsonl").splitlines()
    assert sorted(listed) == sorted(str(path) for path in (run / "export").iterdir())
    assert len((run / "export" / "trial.jsonl").read_text(encoding="utf-8").splitlines()) == 8


# bad input of any command

READERS: list[tuple[str, ...]] = [
    ("compare", "RUN"), ("drift", "RUN", "RUN"), ("sensitivity", "RUN"),
    ("power", "--pilot", "RUN"), ("export", "RUN", "--out", "OUT"), ("report", "RUN", "--out", "OUT"),
]  # fmt: skip


def filled(arguments: Sequence[str], run: Path, out: Path) -> list[str]:
    return [{"RUN": str(run), "OUT": str(out)}.get(argument, argument) for argument in arguments]


@each_case("arguments", READERS, ids=" ".join)
def test_a_folder_that_is_no_run_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert f"{tmp_path / 'nowhere'} does not exist." in refused(*filled(arguments, tmp_path / "nowhere", out))
    (tmp_path / "empty").mkdir()
    err = refused(*filled(arguments, tmp_path / "empty", out))
    assert f"{tmp_path / 'empty'} has no manifest.json, so it is not a run folder." in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


@each_case("arguments", READERS, ids=" ".join)
def test_a_file_in_place_of_a_run_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}", encoding="utf-8")
    err = refused(*filled(arguments, tmp_path / "file", tmp_path / "out"))
    assert f"{tmp_path / 'file'} is a file, not a run folder" in err
    assert files(tmp_path) == {"file": b"{}"}


@each_case("arguments", READERS, ids=" ".join)
def test_results_that_were_changed_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    run = tiny(tmp_path / "run")
    path = run / storage.RESULTS
    path.write_bytes(path.read_bytes().replace(b'"accuracy":0.5', b'"accuracy":0.9', 1))
    before = files(tmp_path)
    assert str(path) in refused(*filled(arguments, run, tmp_path / "out"), exit_code=5)
    assert files(tmp_path) == before


@each_case("arguments", READERS, ids=" ".join)
@each_case("content", ["", "{}", "[]", "not JSON"])
def test_a_manifest_that_is_none_is_refused(arguments: tuple[str, ...], content: str, tmp_path: Path) -> None:
    run = tiny(tmp_path / "run")
    (run / storage.MANIFEST).write_text(content, encoding="utf-8")
    before = files(tmp_path)
    assert str(run / storage.MANIFEST) in refused(*filled(arguments, run, tmp_path / "out"), exit_code=5)
    assert files(tmp_path) == before


@each_case("flag", ["--by", "--frozen"])
def test_a_run_to_compare_judges_with_that_is_not_there_is_refused(flag: str, careful: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    if flag == "--by":
        assert f"{nowhere} does not exist" in refused("compare", careful, nowhere, "--by", "judges")
    else:
        assert f"{nowhere} does not exist" in refused("drift", careful, careful, "--frozen", nowhere)


@each_case(
    ("arguments", "says"),
    [
        (["compare"], "RUN"),
        (["compare", "RUN", "--by", "colour"], "--by"),
        (["compare", "RUN", "--measure", "beauty"], "--measure"),
        (["compare", "RUN", "--floor", "0"], "--floor"),
        (["compare", "RUN", "--floor", "nan"], "--floor"),
        (["compare", "RUN", "--show", "many"], "--show"),
        (["drift", "RUN"], "NEW"),
        (["drift", "RUN", "RUN", "--floor", "-1"], "--floor"),
        (["sensitivity"], "RUN"),
        (["sensitivity", "RUN", "--measure", "beauty"], "--measure"),
        (["report"], "RUN"),
        (["report", "RUN", "--checklist", "other"], "--checklist"),
        (["export"], "RUN"),
        (["freeze", "--scenario", ONE, "--target", CAREFUL, "--primary-outcome", "a"], "--to"),
    ],
)
def test_a_bad_argument_is_refused_in_one_sentence(arguments: list[str], says: str, three: Path) -> None:
    before = files(three)
    assert says in refused(*filled(arguments, three, three))
    assert files(three) == before
