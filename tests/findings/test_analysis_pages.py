"""Pages of compare, drift and sensitivity: the answer first, nothing cut in silence, no file of others replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import src as me
from src.errors import InputError
from src.findings.compare import Compared, Comparison, compare_targets
from src.findings.read_run import gather
from src.reports.analysis_pages import compare_page, difference_panel, write_page
from src.reports.analysis_sentences import (
    SENTENCES,
    ScenariosNeeded,
    compared_sentence,
    point_range,
    points,
    scenarios_needed,
    sensitivity_sentence,
    signed_points,
)
from src.reports.document import Cell, Contents, shown, words
from src.reports.html import html
from src.stats.comparison import paired_difference

from ..helpers import result
from .made_runs import planned, rich, write_run
from .report_run import code, coded

FIRST, SECOND = "a:x", "b:y"
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"
CODES = {f"{name}{HOSTILE[:8]}": code("cost", name, reason=HOSTILE) for name in ("incorrect", "accurate_complete")}


def run_of(folder: Path, levels: Mapping[str, Sequence[float]], *, repeats: int = 1) -> Path:
    """Accuracy by target, one value for each scenario."""
    results = [
        result(scenario_id=f"s{at}", target=target, repetition=n, accuracy=level)
        for target, values in levels.items()
        for at, level in enumerate(values)
        for n in range(1, repeats + 1)
    ]
    return write_run(folder, results, planned().model_copy(update={"targets": tuple(levels)}))


def told(cells: Sequence[Cell]) -> str:
    return "".join(map(shown, cells))


def text_of(page: str) -> str:
    """What a page says, without its style and tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("</head>")[2]).split())


def accuracy(compared: object) -> Comparison:
    assert isinstance(compared, Compared)
    return next(one for one in compared.comparisons if one.measure == "accuracy")


# Sentences


def test_numbers_are_said_in_points() -> None:
    assert [points(one) for one in (0.08, 0.01, 0.004, 0.0, 0.005)] == [
        "8 points", "1 point", "0.4 points", "0 points", "0.5 points",
    ]  # fmt: skip
    assert point_range(0.03, 0.13) == "3 to 13"
    assert point_range(-0.021, 0.0601) == "−2 to 6"
    assert point_range(0.101, 0.1032) == "10.1 to 10.3"
    assert [signed_points(one) for one in (0.08, -0.3, 0.0, -0.0001, 0.005)] == ["+8", "−30", "0", "0", "+0.5"]


def test_the_higher_one_comes_first(tmp_path: Path) -> None:
    low, high = (0.3, 0.2, 0.4, 0.3, 0.2, 0.3, 0.4, 0.2), (0.7, 0.8, 0.9, 0.7, 0.8, 0.6, 0.8, 0.9)
    one = accuracy(me.compare(run_of(tmp_path / "run", {FIRST: low, SECOND: high})))
    assert one.difference.mean is not None and one.difference.mean < 0
    sentence = told(compared_sentence(one, 0.05))
    found = re.fullmatch(r"The accuracy of b:y is 49 points higher than that of a:x \((\d+) to (\d+)\)\.", sentence)
    assert found and int(found.group(1)) < 49 < int(found.group(2))
    assert (round(-100 * (one.difference.high or 0)), round(-100 * (one.difference.low or 0))) == (
        int(found.group(1)),
        int(found.group(2)),
    )


def test_no_difference_and_not_known_are_said_differently(tmp_path: Path) -> None:
    values = [0.5 + 0.01 * (at % 5) for at in range(80)]
    near = {FIRST: values, SECOND: [value + 0.001 * (at % 3) for at, value in enumerate(values)]}
    same = accuracy(me.compare(run_of(tmp_path / "same", near), floor=0.05))
    assert same.verdict == "no meaningful difference"
    assert re.fullmatch(
        r"No difference that matters between b:y and a:x in accuracy: 0\.1 points \(−0\.1 to 0\.3\); "
        r"5 points or more would matter\.",
        told(compared_sentence(same, 0.05)),
    )
    wide = {FIRST: (0.9, 0.1, 0.5, 0.7), SECOND: (0.1, 0.6, 0.4, 0.2)}
    unclear = accuracy(me.compare(run_of(tmp_path / "unclear", wide)))
    sentence = told(compared_sentence(unclear, 0.05))
    assert sentence.startswith("Cannot tell whether the accuracy of a:x is higher than that of b:y: the difference is")
    needed = scenarios_needed(unclear.difference, 0.05)
    assert needed is not None and needed.number > 30
    assert sentence.endswith(f" About {needed.number:,} scenarios would be needed to detect 10 points; there are 4.")
    few = accuracy(me.compare(run_of(tmp_path / "few", {name: mine[:12] for name, mine in near.items()}), floor=0.05))
    assert few.verdict == "cannot tell"
    told_of_few = told(compared_sentence(few, 0.05))
    assert told_of_few.endswith(" About 72 scenarios would be needed to exclude 5 points; there are 12.")


def test_scenarios_needed_follow_from_the_error_of_the_interval() -> None:
    pairs = [(f"s{at}", 0.5 + gap, 0.5) for at, gap in enumerate((0.3, -0.2, 0.1, 0.0, 0.2, -0.1))]
    found = paired_difference(pairs, seed=1)
    few, many = scenarios_needed(found, 0.1), scenarios_needed(found, 0.025)
    assert few is not None and many is not None
    assert 12 * few.number < many.number < 20 * few.number  # a quarter of it takes 16 times as many, roughly
    same = paired_difference([(f"s{at}", 0.5, 0.5) for at in range(5)], seed=1)
    assert scenarios_needed(same, 0.05) == ScenariosNeeded(72, "exclude", 0.05)  # 1 - 0.025 ** (1 / 72) < 0.05
    assert scenarios_needed(paired_difference([], seed=1), 0.05) is None


def test_a_measure_without_a_common_value_cannot_be_compared(tmp_path: Path) -> None:
    found = me.compare(run_of(tmp_path / "run", {FIRST: (0.5,), SECOND: (0.6,)}), measures=["incorrect"])
    assert isinstance(found, Compared)
    said = told(compared_sentence(found.comparisons[0], 0.05))
    assert said == "a:x and b:y cannot be compared on wrong answers: nothing in common."


def test_where_variation_comes_from_is_said_largest_first(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {FIRST: (0.1, 0.9, 0.5)}, repeats=2)
    (one,) = me.sensitivity(run).targets
    assert told(sensitivity_sentence(one)).startswith(
        "Of the variation in the accuracy of a:x, 100% is between scenarios, and less than 1% is between repeats"
    )
    (alone,) = me.sensitivity(run_of(tmp_path / "one", {FIRST: (0.1,)})).targets
    assert told(sensitivity_sentence(alone)).endswith("is not known: there are too few trials.")
    (same,) = me.sensitivity(run_of(tmp_path / "same", {FIRST: (0.5, 0.5)}, repeats=2)).targets
    assert told(sensitivity_sentence(same)) == "The accuracy of a:x is the same in 4 trials."


# Pages


def test_the_answer_comes_before_charts_tables_and_methods(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {FIRST: (0.9, 0.8, 0.9, 0.7), SECOND: (0.2, 0.1, 0.3, 0.4)})
    found = me.compare(run, html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    sentence = told(compared_sentence(accuracy(found), 0.05))
    places = [page.index(one) for one in ("<h1>", "Cannot tell whether", "<svg", "<table", ">Methods</h2>")]
    assert places == sorted(places)
    assert sentence in re.sub(r" ([.,;:)])", r"\1", text_of(page)).replace("( ", "(").replace(" )", ")")
    assert "MDD is the minimum detectable difference" in page
    again = tmp_path / "again.html"
    me.compare(run, html=again)
    assert again.read_bytes() == (tmp_path / "page.html").read_bytes()


def test_many_comparisons_are_cut_and_say_so(tmp_path: Path) -> None:
    levels = {f"t:{at}": (0.1 * at, 0.1 * at, 0.1 * at) for at in range(5)}
    found = compare_targets([gather(run_of(tmp_path / "run", levels))], ["accuracy"])
    page = text_of(html(compare_page(found, floor=0.05)))
    assert len(found.comparisons) == 10
    assert f"{SENTENCES} of 10 shown; the tables below have all comparisons." in page
    for one in found.comparisons:
        assert page.count(f"minus {one.second}") >= 1 and page.count(one.first) >= 1


def test_the_page_of_drift_says_whether_answers_changed(tmp_path: Path) -> None:
    old = run_of(tmp_path / "old", {FIRST: (0.9, 0.8, 0.9, 0.7)})
    new = run_of(tmp_path / "new", {FIRST: (0.2, 0.1, 0.3, 0.4)})
    same = me.drift(old, old, html=tmp_path / "same.html")
    assert same.verdict == "no change"
    page = text_of((tmp_path / "same.html").read_text(encoding="utf-8"))
    assert "No change: a:x has the same result in both runs" in page
    me.drift(old, new, html=tmp_path / "changed.html")
    changed = text_of((tmp_path / "changed.html").read_text(encoding="utf-8"))
    assert "Run old compared with the later run new . Verdict: cannot tell." in changed
    assert "Cannot tell whether a:x has changed: accuracy changed by −58 points" in changed


def test_the_page_of_sensitivity_says_its_method(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {FIRST: (0.1, 0.9, 0.5), SECOND: (0.2, 0.3, 0.4)}, repeats=2)
    me.sensitivity(run, html=tmp_path / "page.html")
    page = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Components of variance: restricted maximum likelihood (REML)" in page
    assert page.index("Of the variation in the accuracy of a:x") < page.index("Variance between trials")


def test_two_judgings_have_a_page_too(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [rich()], planned()) for name in ("one", "two")]
    me.compare(runs, by="judges", html=tmp_path / "page.html")
    page = text_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Of 3 claims in both judgings of 1 trial, 0 got another label (0%)" in page


def test_names_of_others_are_inert_on_every_page(tmp_path: Path) -> None:
    levels = {f"a:{HOSTILE}": (0.9, 0.1, 0.5), f"b:{HOSTILE}": (0.2, 0.6, 0.4)}
    run = run_of(tmp_path / "run", levels, repeats=2)
    me.compare(run, html=tmp_path / "compare.html")
    me.drift(run, run, html=tmp_path / "drift.html")
    me.sensitivity(run, html=tmp_path / "sensitivity.html")
    runs = [write_run(tmp_path / name, [coded(rich(1, HOSTILE), given)], planned()) for name, given in CODES.items()]
    me.compare(runs, by="judges", html=tmp_path / "judges.html")
    for page in sorted(tmp_path.glob("*.html")):
        text = page.read_text(encoding="utf-8")
        assert "&lt;script&gt;alert(1)" in text, page.name
        assert "<script" not in text and "\u202e" not in text and "\x1b" not in text, page.name


# Files


def test_only_a_page_of_ours_is_replaced(tmp_path: Path) -> None:
    page = Contents(words("Title"), (), (), ())
    path = tmp_path / "new" / "page.html"
    assert write_page(page, path) == path
    write_page(Contents(words("Another"), (), (), ()), path)
    assert "<h1>Another</h1>" in path.read_text(encoding="utf-8")
    mine = tmp_path / "notes.html"
    mine.write_text("<!DOCTYPE html><title>My notes</title>", encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a page of this program"):
        write_page(page, mine)
    assert mine.read_text(encoding="utf-8") == "<!DOCTYPE html><title>My notes</title>"
    with pytest.raises(InputError, match="is a folder"):
        write_page(page, tmp_path)
    with pytest.raises(InputError, match="is a file"):
        write_page(page, mine / "page.html")
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["new", "notes.html", "page.html"]


def test_the_scale_of_differences_is_as_long_on_both_sides() -> None:
    found = paired_difference([(f"s{at}", 0.5 + gap, 0.5) for at, gap in enumerate((0.1, 0.2, 0.12, 0.15))], seed=1)
    panel = difference_panel("Accuracy", [found])
    assert panel.ticks[0].at == -panel.ticks[-1].at and panel.reference == 0
    assert found.high is not None and found.high <= panel.ticks[-1].at
    assert difference_panel("Nothing", []).ticks[-1].at == 0.05
    assert html(Contents(words("T"), words("about"), (), ())).count('<p class="about">') == 1
