"""Series: what a point is, what ends a segment, what is refused, and what the command prints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.adapters import models
from src.errors import ConfigError, InputError, IntegrityError
from src.findings.estimates import estimate
from src.findings.read_run import gather
from src.judge_check.check import CheckOptions, check_judges
from src.planning.plan import make_plan
from src.planning.study_file import make_judge_options
from src.records.series import Cadence, Point, Segment
from src.series.findings import SeriesFindings
from src.series.folder import POINTS, read_lines
from src.series.points import period_of, plan_parts
from src.store.run_folder import SERIES
from tests.cases import each_case
from tests.runs import ONE, ROOT, SCENARIOS, THREE, call

STUDY = {"scenarios": [THREE], "targets": ["fake:careful", "fake:partial"]}
SMALL: dict[str, Any] = {"anchors": 0, "points": 3}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series without a point."""
    folder = tmp_path_factory.mktemp("series") / "monthly"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        me.init_series(folder, STUDY, **SMALL)
    return folder


@pytest.fixture(scope="module")
def two(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with two points."""
    folder = tmp_path_factory.mktemp("two") / "monthly"
    shutil.copytree(begun, folder)
    with pytest.MonkeyPatch.context() as patch:
        for day in ("2026-06-05", "2026-07-31"):
            patch.setenv("MEDICARE_EVAL_TODAY", day)
            me.run_series(folder, max_cost=1.0)
    return folder


@pytest.fixture
def series(begun: Path, tmp_path: Path) -> Path:
    return copied(begun, tmp_path)


@pytest.fixture
def with_two(two: Path, tmp_path: Path) -> Path:
    return copied(two, tmp_path)


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to / "monthly")
    return to / "monthly"


Run = Callable[..., SeriesFindings]


@pytest.fixture
def run_on(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(folder: Path, day: str, **settings: Any) -> SeriesFindings:
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", day)
        return me.run_series(folder, max_cost=1.0, **settings)

    return run


@each_case(
    ("cadence", "day", "period"),
    [
        ("day", date(2026, 11, 18), "2026-11-18"),
        ("week", date(2026, 11, 18), "2026-W47"),
        ("week", date(2027, 1, 2), "2026-W53"),
        ("month", date(2027, 1, 2), "2027-01"),
        ("quarter", date(2026, 10, 1), "2026-Q4"),
        ("quarter", date(2026, 9, 30), "2026-Q3"),
    ],
)
def test_a_day_falls_into_a_period(cadence: Cadence, day: date, period: str) -> None:
    assert period_of(day, cadence) == period


def test_a_point_has_the_runs_own_numbers(two: Path) -> None:
    first, second = read_lines(two).points
    assert (first.date, second.period, first.rejudged.keys()) == ("2026-06-05", "2026-07", second.rejudged.keys())
    for point in (first, second):
        found = gather(two / point.run.folder)
        assert point.run.results_head == found.head
        status = me.series_status(two).segments[0]
        for target in status.targets:
            rows = found.of_target(target.target)
            for outcome, levels in target.levels.items():
                level = next(one for at, one in zip(target.points, levels, strict=True) if at.period == point.period)
                reported = estimate(rows, outcome)
                assert level.value == pytest.approx(reported.value)
                assert (level.low, level.high) == pytest.approx((reported.low, reported.high))


def test_the_first_transcripts_are_judged_again_at_every_later_point(two: Path) -> None:
    first, second = read_lines(two).points
    assert first.frozen is None
    assert second.frozen is not None
    again = storage.read_manifest(two / second.frozen.folder)
    assert again.transcripts is not None
    assert again.transcripts.run_id == first.run.run_id
    assert second.rejudged == first.rejudged  # the judge is made of rules


def test_a_second_run_of_a_period_and_an_earlier_one_are_refused(with_two: Path, run_on: Run) -> None:
    before = (with_two / POINTS).read_bytes()
    with pytest.raises(InputError, match="already has a point for 2026-07"):
        run_on(with_two, "2026-07-01")
    with pytest.raises(InputError, match="2026-05 is before 2026-07"):
        run_on(with_two, "2026-05-01")
    assert (with_two / POINTS).read_bytes() == before
    assert sorted(path.name for path in (with_two / "points").iterdir()) == ["2026-06", "2026-07"]


def test_january_begins_a_segment_and_never_continues_a_line(with_two: Path, run_on: Run) -> None:
    found = run_on(with_two, "2027-01-03")
    assert [one.segment.reasons for one in found.segments] == [("the series begins",), ("plan year 2027",)]
    assert [len(one.points) for one in found.segments] == [2, 1]
    (point,) = found.segments[1].points
    assert point.frozen is None
    assert "nothing to compare yet" in found.segments[1].targets[0].why
    assert all(step.reference is None for line in found.segments[1].targets[0].lines for step in line.steps)
    assert [event.text for event in found.events if event.kind == "segment"] == ["the series begins", "plan year 2027"]


@pytest.mark.slow
def test_a_changed_key_or_rubric_begins_a_segment(tmp_path: Path, run_on: Run) -> None:
    """A key with another figure is another key, also if the file has the same name."""
    file = tmp_path / "scenario_001.json"
    document = json.loads(Path(ONE).read_text(encoding="utf-8"))
    file.write_text(json.dumps(document), encoding="utf-8")
    folder = tmp_path / "monthly"
    made = {"scenarios": [str(file)], "targets": ["fake:careful"], "allow_expired": True}
    me.init_series(folder, made, **SMALL)
    run_on(folder, "2026-06-05")
    document["answer_key"]["disallowed_claims"] = ["Promising that a plan is free"]
    file.write_text(json.dumps(document), encoding="utf-8")
    found = run_on(folder, "2026-07-05")
    assert found.segments[-1].segment.reasons == ("the answer key changed",)
    document["scripted_turns"][0]["required_points"] = document["scripted_turns"][0]["required_points"][:1]
    file.write_text(json.dumps(document), encoding="utf-8")
    found = run_on(folder, "2026-08-05")
    assert found.segments[-1].segment.reasons == ("the answer key changed",)
    assert found.segments[-1].segment.number == 3
    document["scripted_turns"][0]["user_message"] = "What is Medicare?"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="no longer the frozen study: the questions changed"):
        run_on(folder, "2026-09-05")
    found = run_on(folder, "2027-01-05")
    assert found.segments[-1].segment.reasons == ("plan year 2027", "the scenario files changed")


def test_a_rubric_is_part_of_what_is_compared() -> None:
    plan = me.plan(STUDY, plan_year=2026, allow_expired=True)
    rubric = plan.rubrics["v1"]
    changed = rubric.model_copy(update={"rubric": rubric.rubric.model_copy(update={"study_codes": False})})
    other = plan.model_copy(update={"rubrics": {"v1": changed}})
    assert plan_parts(plan).rubric != plan_parts(other).rubric
    assert plan_parts(plan).key == plan_parts(other).key


@pytest.mark.slow
def test_other_judges_judge_all_earlier_transcripts_again(with_two: Path, run_on: Run) -> None:
    found = run_on(with_two, "2026-08-05", judge_again=True)
    (segment,) = found.segments
    assert (segment.segment.judging, segment.segment.reasons) == (2, ("the judges changed: offline:rules",))
    assert [(point.period, point.restated) for point in segment.points] == [
        ("2026-06", True), ("2026-07", True), ("2026-08", False),
    ]  # fmt: skip
    assert found.replaced == 2
    lines = read_lines(with_two)
    assert len(lines.points) == 5
    for old, again in zip(lines.points[:2], lines.points[2:4], strict=True):
        assert again.transcripts == old.run
        assert again.targets == old.targets  # by the same rules
        manifest = storage.read_manifest(with_two / again.run.folder)
        assert manifest.transcripts is not None
        assert manifest.transcripts.run_id == old.run.run_id
    assert lines.points[-1].frozen is not None
    later = run_on(with_two, "2026-09-05")
    assert later.segments[-1].segment.number == segment.segment.number
    assert me.verify_series(with_two).points == 6


def test_changed_judging_is_refused_until_the_user_says_so(
    with_two: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = make_plan

    def reworded(*given: Any, **settings: Any) -> Any:
        plan = real(*given, **settings)
        prompt = plan.prompts["verifier"].model_copy(update={"text": "Judge strictly."})
        return plan.model_copy(update={"prompts": {**plan.prompts, "verifier": prompt}})

    monkeypatch.setattr("src.series.carry_out.make_plan", reworded)
    with pytest.raises(InputError, match="the judging changed since the last point"):
        run_on(with_two, "2026-08-05")
    assert not (with_two / "points" / "2026-08").exists()


@pytest.mark.slow
def test_a_retired_target_ends_its_line_and_the_others_go_on(
    with_two: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = models.ModelRow("fake", "partial", "partial", "ending", date(2026, 7, 31))
    monkeypatch.setitem(models._BY_NAME, "fake:partial", row)
    found = run_on(with_two, "2026-08-05")
    (segment,) = found.segments
    assert list(segment.points[-1].targets) == ["fake:careful"]
    careful, partial = segment.targets
    assert (careful.ended, partial.ended) == (None, "its provider has retired it since 2026-07-31")
    assert len(careful.lines[0].steps) == 3
    assert len(partial.lines[0].steps) == 2
    assert [(event.kind, event.subject) for event in found.events if event.period == "2026-08"] == [
        ("ended", "fake:partial")
    ]
    again = run_on(with_two, "2026-09-05")
    assert [event.kind for event in again.events].count("ended") == 1
    assert me.verify_series(with_two).points == 4


def test_a_line_can_be_ended_by_name_and_a_series_ends_with_its_last_target(with_two: Path, run_on: Run) -> None:
    with pytest.raises(InputError, match="fake:evasive is not a target whose line goes on"):
        run_on(with_two, "2026-08-05", end=["fake:evasive"])
    with pytest.raises(InputError, match="the series has ended"):
        run_on(with_two, "2026-08-05", end=["fake:careful", "fake:partial"])
    found = run_on(with_two, "2026-08-05", end=["fake:careful"])
    assert list(found.segments[0].points[-1].targets) == ["fake:partial"]


def test_a_retired_judge_is_named_with_what_to_do(with_two: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    row = models.ModelRow("offline", "rules", "rules", "retired", date(2026, 7, 31), successors=("rules2",))
    monkeypatch.setitem(models._BY_NAME, "offline:rules", row)
    with pytest.raises(ConfigError, match="The judge offline:rules has been retired") as refused:
        run_on(with_two, "2026-08-05")
    assert "all earlier transcripts are then judged again" in str(refused.value)


@pytest.mark.slow
def test_a_run_made_elsewhere_is_added_and_an_unlike_one_is_refused(
    series: Path, tmp_path: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    one = me.run(STUDY, out=str(tmp_path / "runs"))
    other = me.run({**STUDY, "seed": 7}, out=str(tmp_path / "runs"))
    with pytest.raises(InputError, match="the number of repeats or the seed changed"):
        me.add_to_series(series, other.path, day=date(2026, 6, 5))
    me.add_to_series(series, one.path, day=date(2026, 6, 5))
    with pytest.raises(InputError, match="is a point of the series already"):
        me.add_to_series(series, one.path, day=date(2026, 7, 5))
    two = me.run(STUDY, out=str(tmp_path / "runs"))
    with pytest.raises(InputError, match="already has a point for 2026-06"):
        me.add_to_series(series, two.path, day=date(2026, 6, 30))
    found = run_on(series, "2026-07-05")
    assert found.segments[0].baseline.run.folder == "../runs/" + one.path.name
    assert found.segments[0].points[1].rejudged
    assert me.verify_series(series).runs == 3
    rejudged = me.rejudge(one.path, judges=["offline:rules"], out=tmp_path / "runs")
    with pytest.raises(InputError, match="not a whole run of the study"):
        me.add_to_series(series, rejudged.path, day=date(2026, 8, 5))


@pytest.mark.slow
def test_what_was_checked_elsewhere_must_be_of_this_series(
    series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    runs = tmp_path / "runs"
    first, second, other = (me.run(STUDY, out=str(runs)) for _ in range(3))
    judges = make_judge_options({"judges": ["offline:rules"]})
    check = check_judges(CheckOptions(judges=judges, limit=2, out=tmp_path / "checks"))
    me.add_to_series(series, first.path, day=date(2026, 6, 5))
    again, elsewhere = (me.rejudge(run.path, judges=["offline:rules"], out=runs) for run in (first, other))
    for frozen in (first.path, other.path, elsewhere.path):
        with pytest.raises(InputError, match="did not judge the segment's first transcripts again"):
            me.add_to_series(series, second.path, frozen=frozen, day=date(2026, 7, 5))
    with pytest.raises(InputError, match="is of plan year 2026"):
        me.add_to_series(series, second.path, day=date(2027, 1, 5))
    record = check.folder / "check.json"
    kept = record.read_text(encoding="utf-8")
    record.write_text(kept.replace('"extractor":"offline:rules"', '"extractor":"openai:other"'), encoding="utf-8")
    with pytest.raises(InputError, match="is not of the judges of the series"):
        me.add_to_series(series, second.path, check=check.folder, day=date(2026, 7, 5))
    record.write_text(kept, encoding="utf-8")
    found = me.add_to_series(series, second.path, frozen=again.path, check=check.folder, day=date(2026, 7, 5))
    point = found.segments[0].points[-1]
    assert point.rejudged == found.segments[0].baseline.rejudged
    assert point.anchors
    assert me.verify_series(series).checks == 1


def test_a_baseline_that_does_not_fit_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    other = me.run({**STUDY, "targets": ["fake:wrong"]}, out=str(tmp_path / "runs"))
    with pytest.raises(InputError, match="fake:wrong is a new target"):
        me.init_series(tmp_path / "monthly", STUDY, baseline=other.path, **SMALL)
    assert not (tmp_path / "monthly").exists()


@pytest.mark.slow
def test_other_labels_can_be_the_anchors(tmp_path: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    shutil.copytree(ROOT / "gold" / "held_out", tmp_path / "labels")
    folder = tmp_path / "monthly"
    me.init_series(folder, scenarios=[ONE], targets=["fake:careful"], anchors=2, gold=tmp_path / "labels", points=2)
    assert read_lines(folder).segments[0].anchors
    found = run_on(folder, "2026-06-05")
    assert len(next(iter(found.segments[0].baseline.anchors.values()))) == 2


def test_lines_that_are_gone_are_noticed(with_two: Path, run_on: Run) -> None:
    whole = (with_two / POINTS).read_bytes()
    kept = whole.splitlines(keepends=True)
    for damaged in (None, b"".join(kept[:1]), b""):
        if damaged is None:
            (with_two / POINTS).unlink()
        else:
            (with_two / POINTS).write_bytes(damaged)
        for command in (["verify", with_two], ["series", "status", with_two]):
            code, _, err = call(*command)
            assert (code, "has lost lines of finished points" in err) == (5, True), err
        with pytest.raises(IntegrityError, match="lost lines"):
            run_on(with_two, "2026-08-05")
    (with_two / POINTS).write_bytes(whole)
    assert call("verify", with_two).code == 0


def test_a_series_can_begin_with_a_run_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    one = me.run({**STUDY, "title": "Two fakes"}, out=str(tmp_path / "runs"))
    found = me.init_series(tmp_path / "monthly", baseline=one.path, **SMALL)
    assert found.series.title == "Two fakes"
    assert found.segments[0].baseline.run.run_id == one.path.name


def test_thresholds_are_recorded_at_the_beginning_and_can_be_computed_again(begun: Path) -> None:
    (segment,) = read_lines(begun).segments
    assert set(segment.targets) == {"accurate_complete", "incorrect"}
    limit = segment.targets["incorrect"]
    assert limit.level == pytest.approx(0.05 / 4)  # two targets, two outcomes
    assert (limit.points, sorted(limit.clusters)) == (3, ["scenario_001", "scenario_002", "scenario_003"])
    assert limit.power is not None
    assert limit.power.drop == 0.05
    assert segment.anchors is None
    me.verify_series(begun)


def edited(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_verify_finds_what_was_changed(with_two: Path, tmp_path: Path) -> None:
    assert call("verify", with_two).code == 0
    head = read_lines(with_two).head
    assert call("verify", with_two, "--expect", head).code == 0
    assert call("verify", with_two, "--expect", "0" * 64).code == 5
    second = read_lines(with_two).points[-1]
    damages: list[tuple[Path, Callable[[bytes], bytes], str]] = [
        (with_two / POINTS, lambda data: data.replace(b'"2026-06-05"', b'"2026-06-06"'), "hash chain broken"),
        (
            with_two / POINTS,
            lambda data: data.splitlines(keepends=True)[0] + data.splitlines(keepends=True)[2],
            "chain",
        ),
        (with_two / SERIES, lambda data: data.replace(b'"floor":0.05', b'"floor":0.5'), "chain broken"),
        (
            with_two / second.run.folder / storage.RESULTS,
            lambda data: data.replace(b"Medicare", b"Medicaid", 1),
            "line",
        ),
    ]
    assert second.frozen
    damages.append((with_two / second.frozen.folder / storage.SEAL, lambda data: b"{}", "seal"))
    for path, change, message in damages:
        kept = path.read_bytes()
        edited(path, change)
        code, _, err = call("verify", with_two)
        assert (code, message in err) == (5, True), err
        path.write_bytes(kept)
    assert call("verify", with_two).code == 0


def test_verify_computes_every_number_of_a_point_again(with_two: Path) -> None:
    """A whole chain with other numbers is still not what the runs say."""
    from src.series.folder import append_lines
    from src.store.failpoints import Failpoints

    lines = read_lines(with_two).lines
    changed: list[Segment | Point] = [
        line.model_copy(update={"cost": line.cost.model_copy(update={"run": 9.0})}) if isinstance(line, Point) else line
        for line in lines
    ]
    (with_two / POINTS).unlink()
    append_lines(with_two, changed, Failpoints(None))
    with pytest.raises(IntegrityError, match="the point 2026-06 is not what its runs and its check say"):
        me.verify_series(with_two)


def test_the_commands_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
    folder = tmp_path / "monthly"
    code, out, err = call(
        "series", "init", folder, "--scenario", ONE, "--target", "fake:careful", "--anchors", 0, "--points", 2, "--title", "Mine"
    )  # fmt: skip
    assert (code, f"Next: medicare-eval series run {folder} --max-cost USD" in out) == (0, True), err
    assert f"{folder}: Mine, one point every month" in out
    assert "Simulating" in err
    code, out, _ = call("series", "status", folder)
    assert (code, "no point yet" in out) == (0, True)
    code, _, err = call("series", "run", folder)
    assert (code, "--max-cost" in err) == (2, True)
    code, out, err = call("series", "run", folder, "--max-cost", 1, "--quiet")
    assert code == 0, err
    assert "nothing to compare yet" in out
    assert all(len(line) <= 80 for line in out.splitlines() if str(folder) not in line)
    code, _, err = call("series", "run", folder, "--max-cost", 1, "--quiet")
    assert (code, "already has a point for 2026-06" in err) == (2, True)
    code, out, _ = call("series", "status", folder, "--json")
    assert json.loads(out)["verdict"] == "no alarm"
    for name in ("junit", "summary", "html"):
        taken = tmp_path / f"mine.{name}"
        taken.write_text("mine", encoding="utf-8")
        code, _, err = call("series", "status", folder, f"--{name}", taken)
        assert (code, taken.read_text(encoding="utf-8")) == (2, "mine"), err
        assert call("series", "status", folder, f"--{name}", tmp_path / f"ours.{name}").code == 0
        assert call("series", "status", folder, f"--{name}", tmp_path / f"ours.{name}").code == 0
    assert call("series", "plot", folder).out.strip() == str(folder / "series.html")


@each_case(
    ("arguments", "message"),
    [
        (["status", "nowhere"], "is not a series: it has no series.json"),
        (["run", "nowhere", "--max-cost", "1"], "is not a series"),
        (
            ["init", "{taken}", "--scenario", ONE, "--target", "fake:careful"],
            "already exists and will not be overwritten",
        ),
        (["init", "{new}", "--scenario", ONE, "--target", "fake:careful", "--alpha", "0.7"], "--alpha"),
        (["init", "{new}", "--scenario", ONE, "--target", "fake:careful", "--points", "1"], "--points"),
        (["init", "{new}", "--scenario", ONE, "--target", "fake:careful", "--gold", "nowhere"], "nowhere"),
        (["init", "{new}"], "--scenario"),
        (["init", "{new}", "--scenario", ONE, "--target", "fake:nobody"], "fake:nobody does not exist"),
        (["init", "{new}", "--baseline", "nowhere"], "nowhere"),
        (["add", "nowhere", "nowhere"], "is not a series"),
        (["plot", "nowhere"], "is not a series"),
    ],
)
def test_bad_input_gets_one_sentence_and_writes_nothing(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("x", encoding="utf-8")
    given = [one.format(taken=tmp_path / "taken", new=tmp_path / "new") for one in arguments]
    code, out, err = call("series", *given)
    assert (code, out, message in err, "Traceback" in err) == (2, "", True, False), err
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["file"]


def test_people_cannot_judge_a_series(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="human:r1 is a person, and a series runs by itself"):
        me.init_series(
            tmp_path / "new",
            scenarios=[ONE],
            targets=["fake:careful"],
            judges=["human:r1", "human:r2"],
            reader="offline:rules",
        )


def test_two_processes_do_not_work_on_one_series(with_two: Path, run_on: Run) -> None:
    from src.errors import StorageError

    with storage.RunLock(with_two), pytest.raises(StorageError, match="in use by another process"):
        run_on(with_two, "2026-08-05")


def test_an_unfinished_point_can_be_set_aside_and_begun_again(
    with_two: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its judges and targets stay as they were begun, unless the user sets it aside. Nothing is removed."""
    from src.errors import IncompleteRun
    from src.series import carry_out

    async def stops(*given: Any, **settings: Any) -> None:
        raise IncompleteRun("The model does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(carry_out, "execute", stops)
        with pytest.raises(IncompleteRun, match="To continue: medicare-eval series run"):
            run_on(with_two, "2026-08-05")
    with pytest.raises(InputError, match="2026-08 was begun and is not finished"):
        run_on(with_two, "2026-08-06", end=["fake:partial"])
    found = run_on(with_two, "2026-09-06", end=["fake:partial"], set_aside=True)
    assert [point.period for point in found.segments[0].points] == ["2026-06", "2026-07", "2026-09"]
    assert (with_two / "points" / "2026-08.set-aside-1" / "run").is_dir()
    assert me.verify_series(with_two).points == 3


def test_a_point_for_which_nothing_was_called_is_decided_anew(
    with_two: Path, run_on: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from src.series import carry_out

    def refused(*given: Any, **settings: Any) -> None:
        raise ConfigError("no price is known")

    with monkeypatch.context() as broken:
        broken.setattr(carry_out, "create_run", refused)
        with pytest.raises(ConfigError):
            run_on(with_two, "2026-08-05")
    found = run_on(with_two, "2026-08-06", end=["fake:partial"])
    assert found.segments[0].points[-1].date == "2026-08-06"
    assert list(found.segments[0].points[-1].targets) == ["fake:careful"]


def test_a_series_can_be_moved(two: Path, tmp_path: Path, run_on: Run) -> None:
    moved = copied(two, tmp_path / "elsewhere")
    assert me.verify_series(moved).points == 2
    assert len(run_on(moved, "2026-08-05").segments[0].points) == 3


def test_scenarios_of_the_bundle_are_found_from_any_folder(series: Path, run_on: Run) -> None:
    assert read_lines(series).segments[0].study["scenarios"]
    assert Path(SCENARIOS).is_dir()
    assert len(run_on(series, "2026-06-05").segments[0].points) == 1
