"""The functions behind compare, power, cost and report, as Python calls."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

import pytest

from src.api.findings import compare
from src.errors import InputError
from src.findings.compare import Compared
from src.findings.compare_judges import JudgesCompared
from src.findings.cost import CallTimes, read_calls
from src.findings.power import (
    DIFFERENCES,
    PowerDesign,
    needed,
    planned_design,
    power_by_repeats,
    power_reached,
    read_pilot,
)
from src.findings.read_run import gather, software_version
from src.records.price import Price
from src.records.run import Usage
from src.reports.report_folder import LIST
from src.reports.write import write_report
from src.scoring.definitions import MEASURES
from src.text.money import money_text
from tests.cases import each_case

from ..helpers import ROOT, call_record, manifest, result
from .made_runs import call_on, planned, rich, write_journal, write_run

FORMAT_1 = ROOT / "tests" / "formats" / "0.1" / "run"
CAREFUL, OTHER = "fake:careful", "openai:gpt-x"


def two_targets(folder: Path) -> Path:
    results = [
        result(target=target, repetition=n, accuracy=accuracy)
        for target, levels in ((CAREFUL, (1.0, 0.5, 1.0)), (OTHER, (0.5, 0.25, 0.0)))
        for n, accuracy in enumerate(levels, 1)
    ]
    return write_run(folder, results, planned())


def test_targets_are_compared_on_the_measures_asked_for(tmp_path: Path) -> None:
    run = two_targets(tmp_path / "run")
    found = compare([run], measures=["accuracy"])
    assert isinstance(found, Compared)
    assert found.measures == ("accuracy",)
    assert {name: one.value for name, one in found.means["accuracy"].items()} == pytest.approx(
        {CAREFUL: 2.5 / 3, OTHER: 0.25}
    )
    (one,) = found.comparisons
    assert (one.first, one.second, one.difference.n, one.paired.answers) == (CAREFUL, OTHER, 1, 3)
    everything = compare([run])
    assert isinstance(everything, Compared)
    assert everything.measures == tuple(MEASURES)


def test_a_larger_floor_changes_the_verdict(tmp_path: Path) -> None:
    levels = [(t, s, a + 0.02 * (s % 3)) for t, a in ((CAREFUL, 0.8), (OTHER, 0.65)) for s in range(9)]
    results = [result(scenario_id=f"s{s}", target=t, accuracy=a * (1 - 0.01 * s)) for t, s, a in levels]
    run = write_run(tmp_path / "run", results, planned())
    verdicts = []
    for floor in (0.05, 0.2):
        found = compare([run], measures=["accuracy"], floor=floor)
        assert isinstance(found, Compared)
        verdicts += [one.verdict for one in found.comparisons]
    assert verdicts[0] == f"{CAREFUL} better"
    assert verdicts[1] != verdicts[0]


def test_judges_are_compared_claim_by_claim(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [rich()], planned()) for name in ("a", "b")]
    found = compare(runs, by="judges")
    assert isinstance(found, JudgesCompared)
    assert (found.trials, found.same, found.changed, found.gone, found.new) == (1, 3, [], 0, 0)


@each_case(
    ("runs", "options", "says"),
    [
        ([], {}, "No run folder was given"),
        (["run"], {"measures": ["beauty"]}, "'beauty' is not a measure. Use accuracy, completeness"),
        (["nowhere"], {}, "nowhere does not exist"),
        (["run"], {"by": "judges"}, "Comparing judges takes two runs of the same transcripts, not 1"),
        (["one"], {}, "needs two targets, but there is only one"),
        (["run", "one"], {"by": "judges"}, "different transcripts"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    runs: list[str], options: dict[str, list[str]], says: str, tmp_path: Path
) -> None:
    two_targets(tmp_path / "run")
    write_run(tmp_path / "one", [result()], planned().model_copy(update={"targets": (CAREFUL,)}))
    with pytest.raises(InputError, match=says):
        compare([tmp_path / name for name in runs], **options)  # type: ignore[arg-type]


def pilot_run(folder: Path, gaps: dict[str, list[dict[str, float]]]) -> Path:
    """One trial per target, scenario and repeat; the gaps are added to 0.5."""
    results = [
        result(scenario_id=scenario, target=target, repetition=n, accuracy=0.5 + gap)
        for scenario, repeats in gaps.items()
        for n, by_target in enumerate(repeats, 1)
        for target, gap in by_target.items()
    ]
    targets = tuple(dict.fromkeys(target for repeats in gaps.values() for one in repeats for target in one))
    return write_run(folder, results, planned().model_copy(update={"targets": targets}))


def test_the_spread_of_a_pilot_is_that_of_differences_around_their_mean(tmp_path: Path) -> None:
    gaps = {"s1": [{"a:x": 0.5, "b:y": 0.0}], "s2": [{"a:x": 0.3, "b:y": 0.0}], "s3": [{"a:x": 0.4, "b:y": 0.0}]}
    pilot = read_pilot(gather(pilot_run(tmp_path / "run", gaps)), "accuracy")
    assert pilot.sd == pytest.approx(statistics.stdev([0.5, 0.3, 0.4]))
    assert (pilot.between, pilot.pairs, pilot.scenarios, pilot.per_scenario, pilot.icc) == ("targets", 3, 3, 1, None)


def test_a_large_difference_between_targets_is_no_spread(tmp_path: Path) -> None:
    # The gaps of a and b are all 0, those of b and c are -0.4 and vary by 0.02: pooled without centering, SD is 0.2.
    steps = (0.0, 0.02, 0.04, 0.02)
    gaps = {f"s{at}": [{"a:x": 0.0, "b:y": 0.0, "c:z": 0.4 + step}] for at, step in enumerate(steps)}
    pilot = read_pilot(gather(pilot_run(tmp_path / "run", gaps)), "accuracy")
    each = statistics.variance(steps)
    assert pilot.sd == pytest.approx(((0 + each + each) / 3) ** 0.5)


def test_the_icc_of_a_pilot_is_that_of_its_differences(tmp_path: Path) -> None:
    gaps = [(0.1, 0.12), (0.2, 0.19), (0.05, 0.03), (0.3, 0.28)]
    trials = {f"s{at}": [{"a:x": gap, "b:y": 0.0} for gap in pair] for at, pair in enumerate(gaps)}
    pilot = read_pilot(gather(pilot_run(tmp_path / "run", trials)), "accuracy")
    # The one-way analysis of variance, two pairs in each of four scenarios.
    within = statistics.fmean(statistics.variance(pair) for pair in gaps)
    between = (2 * statistics.variance([statistics.fmean(pair) for pair in gaps]) - within) / 2
    assert pilot.sd == pytest.approx((between + within) ** 0.5)
    assert pilot.icc == pytest.approx(between / (between + within))
    assert (pilot.pairs, pilot.scenarios, pilot.per_scenario) == (8, 4, 2)
    design = planned_design(tmp_path / "run", None, "accuracy")
    assert (design.clusters, design.icc, design.sd) == (4, pilot.icc, pilot.sd)
    given = planned_design(tmp_path / "run", None, "accuracy", clusters=20, icc=0.25)
    assert (given.clusters, given.icc, given.sd) == (20, 0.25, pilot.sd)


def test_repeats_of_the_only_target_differ_by_chance_alone(tmp_path: Path) -> None:
    values = {"s1": (0.5, 1.0), "s2": (0.5, 0.5), "s3": (1.0, 0.5)}
    trials = {name: [{"a:x": value - 0.5} for value in pair] for name, pair in values.items()}
    pilot = read_pilot(gather(pilot_run(tmp_path / "run", trials)), "accuracy")
    squares = [(b - a) ** 2 for a, b in values.values()]
    assert pilot.sd == pytest.approx(statistics.fmean(squares) ** 0.5)  # centered at 0
    assert (pilot.between, pilot.pairs, pilot.scenarios, pilot.icc) == ("repeats", 3, 3, 0)


def test_a_pilot_without_spread_or_pairs_is_refused_in_one_sentence(tmp_path: Path) -> None:
    same = {f"s{at}": [{"a:x": 0.4, "b:y": 0.1}] for at in range(4)}
    with pytest.raises(InputError, match="paired differences in accuracy do not vary in the pilot run"):
        read_pilot(gather(pilot_run(tmp_path / "same", same)), "accuracy")
    with pytest.raises(InputError, match="too few pairs of trials with accuracy"):
        read_pilot(gather(pilot_run(tmp_path / "few", {"s1": [{"a:x": 0.4, "b:y": 0.1}]})), "accuracy")
    with pytest.raises(InputError, match="too few pairs of trials with accuracy"):
        read_pilot(gather(pilot_run(tmp_path / "once", {"s1": [{"a:x": 0.4}], "s2": [{"a:x": 0.1}]})), "accuracy")
    with pytest.raises(InputError, match="Give `pilot`, a run, or `sd`"):
        planned_design(None, None, "accuracy")
    with pytest.raises(InputError, match="not both"):
        planned_design(tmp_path / "same", 0.3, "accuracy")
    assert planned_design(None, 0.3, "accuracy") == PowerDesign(0.3)


def test_what_is_needed_and_power_agree() -> None:
    design = PowerDesign(0.3)
    found = needed(design, 0.15)
    assert [one.difference for one in found] == sorted({0.15, *DIFFERENCES})
    pairs = {one.difference: one.pairs for one in found}
    assert pairs[0.15] == 34  # the textbook's n for d = 0.5
    assert [one.scenarios_once for one in found] == list(pairs.values())  # one independent pair in each
    for enough, difference in ((34, 0.15), (pairs[0.1], 0.1)):
        assert enough is not None
        reached, below = power_reached(design, enough, difference), power_reached(design, enough - 1, difference)
        assert reached is not None and below is not None
        assert below < design.power <= reached
    few = needed(PowerDesign(0.3, clusters=3, icc=0.9), 0.05)
    assert None in {one.pairs for one in few} and None not in {one.scenarios_once for one in few}
    with pytest.raises(InputError, match="power: "):
        needed(PowerDesign(0.3, alpha=2), 0.1)
    with pytest.raises(InputError, match="power: "):
        power_reached(PowerDesign(0.3, clusters=9), 3, 0.1)


def test_more_repeats_add_less_and_less_power() -> None:
    steps = [one.power or 0.0 for one in power_by_repeats(PowerDesign(0.3, clusters=12, icc=0.4), 0.15)]
    assert len(steps) == 4 and steps == sorted(steps)
    gains = [b - a for a, b in pairwise(steps)]
    assert gains == sorted(gains, reverse=True)
    assert power_by_repeats(PowerDesign(0.3), 0.1) == []


def test_calls_are_counted_priced_and_dated_in_one_pass(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [rich()], planned())
    used = Usage(input_tokens=1_000, output_tokens=500, cached_tokens=400, cache_write_tokens=100)
    calls = [
        call_on("2026-03-02", OTHER).model_copy(update={"usage": used}),
        call_on("2026-03-01", OTHER).model_copy(update={"usage": used}),
        call_record("t|verifier|Q1|1|0|1").model_copy(update={"model": "google:y"}),
    ]
    write_journal(folder, calls)
    price = Price(input=1.0, output=2.0, cached=0.1, cache_write=1.25, source="a test", read="2026-01-01")
    made = manifest(planned()).model_copy(update={"prices": {OTHER: price}})
    found = read_calls(folder, made)
    target, judge = found.spending
    assert (target.part, target.model, target.attempts, target.input_tokens) == ("target", OTHER, 2, 2_000)
    assert target.cost == pytest.approx(2 * (500 * 1.0 + 400 * 0.1 + 100 * 1.25 + 500 * 2.0) / 1e6)
    assert (target.cached_tokens, judge.cached_tokens) == (800, 0)
    assert (judge.part, judge.cost, judge.without_usage) == ("judges", None, 1)
    assert found.times[OTHER] == ("2026-03-01T23:59:59.000+00:00", "2026-03-02T23:59:59.000+00:00")
    assert CallTimes.spanning(list(found.times.values())) == (
        "2026-01-01T00:00:00.000+00:00", "2026-03-02T23:59:59.000+00:00",
    )  # fmt: skip


def test_a_run_without_a_journal_has_no_calls(tmp_path: Path) -> None:
    found = read_calls(write_run(tmp_path / "run", [], planned()), manifest(planned()))
    assert (found.spending, found.times, CallTimes.spanning([])) == ([], {}, None)


def test_a_report_is_written_from_run_folders(tmp_path: Path) -> None:
    runs = [two_targets(tmp_path / "a"), two_targets(tmp_path / "b")]
    out = tmp_path / "out"
    written = write_report(runs, out, checklist="chart")
    pages = out / "evidence"
    there = [path for path in out.rglob("*") if path.is_file() and pages not in path.parents and path.name != LIST]
    assert sorted(written) == sorted([*there, pages / "index.html"]), "of the evidence pages only the first is named"
    assert written[-1] == out / "chart_checklist.md"
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "no. 2" in text
    before = {path: path.read_bytes() for path in written}
    assert write_report(runs, out, checklist="chart") == written
    assert {path: path.read_bytes() for path in written} == before
    assert out / "chart_checklist.md" not in write_report(runs, tmp_path / "without")


def test_a_report_of_what_is_no_run_writes_nothing(tmp_path: Path) -> None:
    run = two_targets(tmp_path / "run")
    nowhere = tmp_path / "nowhere"
    with pytest.raises(InputError, match="nowhere does not exist"):
        write_report([run, nowhere], tmp_path / "out")
    with pytest.raises(InputError, match=str(nowhere)):
        write_report([run], tmp_path / "out", judge_check=nowhere)
    assert not (tmp_path / "out").exists()


def test_a_run_of_format_1_can_be_reported_and_compared(tmp_path: Path) -> None:
    found = gather(FORMAT_1)
    assert software_version(found.manifest) == "0.1.0"
    assert len(found.rows) == found.planned == 9
    written = write_report([FORMAT_1], tmp_path / "out", checklist="chart")
    assert "not recorded by release 0.1" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "medicare-eval 0.1.0" in written[-1].read_text(encoding="utf-8")
    compared = compare([FORMAT_1], measures=["accuracy"])
    assert isinstance(compared, Compared)
    assert compared.means["accuracy"]["fake:wrong"].value == pytest.approx(0.0294, abs=1e-4)


@each_case(
    ("amount", "text"),
    [(None, "unknown"), (0.0, "$0.00"), (0.00012, "$0.0001"), (0.5, "$0.5000"), (1.0, "$1.00"), (1234.5, "$1,234.50")],
)
def test_money_as_text(amount: float | None, text: str) -> None:
    assert money_text(amount) == text


def test_the_functions_of_findings_print_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = two_targets(tmp_path / "run")
    compare([run])
    write_report([run], tmp_path / "out", checklist="chart")
    assert capsys.readouterr() == ("", "")
