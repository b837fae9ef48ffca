"""The page of a series, its charts, and what it says to bots and programs."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import get_args

import pytest
from markdown_it import MarkdownIt

from src.reports.charts import svg
from src.reports.document import ChartBlock, Contents, Exhibit, say, shown, text_cell, words
from src.reports.drawing import Tick
from src.reports.html import blocks_html
from src.reports.html import html as html_of
from src.reports.markdown import markdown
from src.reports.time_chart import TimeChart, TimePanel, TimePoint
from src.series.findings import EventKind, SeriesFindings, read_findings
from src.series.page import (
    JUNIT_MARK,
    KINDS,
    chart_of,
    e_value,
    events_of,
    junit_xml,
    marker,
    plain_value,
    series_page,
    summary_json,
    summary_markdown,
)
from tests.cases import each_case

from .made_series import CHANGED, RIGHT, STEADY, WRONG, Made, make_series, month
from .test_report import ATTRIBUTES, HOSTILE, TAGS, check_page

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> SeriesFindings:
    """Ten points: one target changes at the fifth, and January begins a new segment at the ninth."""
    return read_findings(make_series(tmp_path_factory.mktemp("series") / "monthly"))


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> SeriesFindings:
    """The same without a January."""
    return read_findings(make_series(tmp_path_factory.mktemp("drifted") / "monthly", Made(january=None)))


@pytest.fixture(scope="module")
def doubted(tmp_path_factory: pytest.TempPathFactory) -> SeriesFindings:
    """The judges drift before the target seems to."""
    made = Made(months=8, january=None, change=5, judge=3)
    return read_findings(make_series(tmp_path_factory.mktemp("doubted") / "monthly", made))


def text_of(found: SeriesFindings) -> str:
    return "".join(check_page(html_of(series_page(found))).texts)


def chart(found: SeriesFindings, target: str) -> TimeChart:
    drawn = chart_of(found, target, 1, events_of(found, target)).chart
    assert isinstance(drawn, TimeChart)
    return drawn


def paths(drawn: str, name: str) -> int:
    elements = ET.fromstring(drawn).iter(f"{NAMESPACE}path")
    return sum(one.get("class") == name for one in elements)


# The chart


@each_case("narrow", [False, True])
def test_a_chart_is_the_same_bytes_each_time_and_only_draws(found: SeriesFindings, narrow: bool) -> None:
    drawn = [svg(chart(found, CHANGED), alone=True, narrow=narrow) for _ in range(2)]
    assert drawn[0] == drawn[1]
    for element in ET.fromstring(drawn[0]).iter():
        assert element.tag.removeprefix(NAMESPACE) in {*TAGS, "title"}
        assert {name.lower() for name in element.attrib} <= ATTRIBUTES


def test_no_line_crosses_a_segment(found: SeriesFindings) -> None:
    drawn = chart(found, CHANGED)
    assert [[len(part) for part in panel.parts] for panel in drawn.panels] == [[8, 2], [8, 2]]
    assert paths(svg(drawn, alone=True), "reach ai") == 4, "two segments in each of two panels"


def test_the_alarm_is_a_diamond_and_ends_the_band(found: SeriesFindings) -> None:
    drawn = chart(found, CHANGED)
    part = drawn.panels[0].parts[0]
    raised = [point.alarm for point in part].index(True)
    assert part[0].band_low is None, "the first point has nothing to be compared with"
    assert all(point.band_low is not None for point in part[1 : raised + 1])
    assert all(point.band_low is None for point in part[raised + 1 :])
    value, low = part[raised].value, part[raised].band_low
    assert value is not None and low is not None and value < low
    assert paths(svg(drawn, alone=True), "people") == 3, "one in each panel and one in the key"
    assert paths(svg(chart(found, STEADY), alone=True), "people") == 1


def test_everything_that_is_drawn_is_within_the_scale(found: SeriesFindings) -> None:
    for panel in chart(found, CHANGED).panels:
        low, high = panel.ticks[0].at, panel.ticks[-1].at
        assert 0 <= low < high <= 1 and len(panel.ticks) <= 6
        points = [point for part in panel.parts for point in part]
        ends = [end for one in points for end in (one.value, one.low, one.high) if end is not None]
        assert low <= min(ends) and max(ends) <= high


def test_a_month_without_a_point_leaves_a_gap(tmp_path: Path) -> None:
    found = read_findings(make_series(tmp_path / "gap", Made(months=3, january=None, change=None, skip=2)))
    first, second, third = (tick.at for tick in chart(found, STEADY).ticks)
    assert (second - first, third - second) == (1, 2)


def test_readers_who_do_not_see_the_chart_hear_every_value(found: SeriesFindings) -> None:
    drawn = svg(chart(found, CHANGED), alone=False)
    desc = re.search(r"<desc[^>]*>(.*)</desc>", drawn, re.DOTALL)
    assert desc
    for place in range(10):
        assert desc[1].count(f"{month(place)} ") == 2, "once for each outcome"
    assert re.search(r"2026-\d\d 46% \(27–66%\), alarm;", desc[1]) and "New segment: 2027-01" in desc[1]


def test_events_in_the_chart_are_those_of_the_table_below_it(found: SeriesFindings) -> None:
    first = series_page(found).first
    figures = [place for place, block in enumerate(first) if isinstance(block, ChartBlock)]
    assert len(figures) == len(found.by_target) == 2
    drawn, table = first[figures[1]], first[figures[1] + 1]
    assert isinstance(drawn, ChartBlock) and isinstance(drawn.chart, TimeChart)
    numbers = [event.number for event in drawn.chart.events]
    lines = "".join(blocks_html([table]))
    assert numbers == [n for n, event in enumerate(found.events, 1) if event.subject in ("", CHANGED)]
    assert {"segment", "served", "alarm"} <= {found.events[number - 1].kind for number in numbers}
    assert all(f">{number}</td>" in lines for number in numbers)
    assert "served by changed-b, before by changed-a" in lines
    steady = first[figures[0]]
    assert isinstance(steady, ChartBlock) and isinstance(steady.chart, TimeChart)
    about = [n for n, event in enumerate(found.events, 1) if event.subject == ""]
    assert [event.number for event in steady.chart.events] == about != numbers, "only what concerns this target"


def test_every_kind_of_event_has_a_name() -> None:
    assert set(KINDS) == set(get_args(EventKind))


def test_numbers_of_events_at_one_time_do_not_cover_each_other(found: SeriesFindings) -> None:
    drawn = svg(chart(found, CHANGED), alone=True, narrow=True)
    boxes = [
        (float(one.get("cx", "0")), float(one.get("cy", "0")))
        for one in ET.fromstring(drawn).iter(f"{NAMESPACE}circle")
        if one.get("r") == "7.5"
    ]
    assert len(boxes) >= 3
    for place, (x, y) in enumerate(boxes):
        assert all(abs(x - a) >= 15 or abs(y - b) >= 15 for a, b in boxes[place + 1 :])


def test_a_value_that_was_not_measured_has_no_dot() -> None:
    nothing = TimePoint(1, None, None, None, "2026-01 –")
    made = TimeChart("x", "x", (TimePanel("p", (Tick(0, "0"), Tick(1, "1")), ((nothing,),)),), (Tick(1, "2026-01"),))
    drawn = svg(made, alone=True)
    assert drawn.count("<circle") == 1, "only that of the key"


# The page


def test_the_answer_is_first_and_hashes_are_last(drifted: SeriesFindings) -> None:
    page = series_page(drifted)
    html = html_of(page)
    check_page(html)
    text = text_of(drifted)
    assert shown(page.title) == "Monthly check: drifted"
    said = f"{CHANGED}: drifted. Accurate and complete answers fell from 2026-09 on: the alarm was raised in 2026-"
    assert text.index(said) < text.index("Events in chart 1") < text.rindex("What got better and worse")
    assert re.findall(r"<h2[^>]*>([^<]*)</h2>", html) == [
        "What got better and worse", "Every point", "Judges", "Cost", "Segments", "Methods", "Notices", "Hashes",
    ]  # fmt: skip
    assert html.index(drifted.head) > html.index(">Hashes</h2>")
    assert drifted.segments[-1].points[-1].run.results_head in text
    assert "offline:rules, a built-in rule-based judge" in text and "A demonstration, not a result" in text


def test_a_drift_of_an_earlier_segment_is_not_forgotten(found: SeriesFindings) -> None:
    assert found.verdict == "no alarm"
    assert "In the segment before, 2026-05 to 2026-12: drifted." in text_of(found)


def test_both_answers_are_side_by_side(drifted: SeriesFindings) -> None:
    section = next(one for one in series_page(drifted).sections if one.anchor == "changed")
    part = next(one for one in section.sections if one.title == say(text_cell(CHANGED), ": answers"))
    pairs = [block for block in part.blocks if isinstance(block, Exhibit)]
    assert pairs and all(len(pair.entries) == 2 for pair in pairs)
    html = blocks_html([pairs[0]])
    assert html.count("<dd>") == 2 and RIGHT in html and WRONG in html
    assert f"{month(0)}: accurate, complete" in html and f"{month(9)}: incorrect" in html
    text = text_of(drifted)
    told = re.search(r"(\d+) better, (\d+) worse \((\d+) answers with another code\)", text)
    assert told and int(told[2]) > int(told[1]) and int(told[3]) == int(told[1]) + int(told[2])


def test_more_answers_than_fit_are_counted(drifted: SeriesFindings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("src.series.page.SHOWN_ANSWERS", 2)
    assert re.search(r"2 of \d+ are shown\.", text_of(drifted))


def test_a_run_that_is_gone_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    folder = make_series(tmp_path / "monthly", Made(months=3, january=None, change=1))
    shutil.rmtree(folder / "points" / month(2))
    text = text_of(read_findings(folder))
    assert f"The run folder points/{month(2)}/run/20260703T060000Z is missing." in text
    assert "Every point" in text and "offline:rules, a built-in rule-based judge" in text


def test_a_series_of_one_point_or_none_has_a_page(tmp_path: Path) -> None:
    one = read_findings(make_series(tmp_path / "one", Made(months=1, january=None)))
    assert "has only one point" in text_of(one) and "there is nothing to compare yet" in text_of(one)
    none = read_findings(make_series(tmp_path / "none", Made(months=0, january=None)))
    page = check_page(html_of(series_page(none)))
    assert "There is no point yet." in "".join(page.texts)
    assert "There is no point yet." in summary_markdown(none)
    assert summary_json(none)["period"] is None and 'tests="0"' in junit_xml(none)


def test_judges_that_drifted_are_named(doubted: SeriesFindings) -> None:
    text = text_of(doubted)
    assert "The panel of judges drifted from 2026-08 on; the alarm was raised in" in text
    assert f"{CHANGED}: cannot tell." in text


def test_a_line_that_ended_says_why(tmp_path: Path) -> None:
    found = read_findings(make_series(tmp_path / "monthly", Made(months=5, january=None, change=None, ended=3)))
    text = text_of(found)
    assert "Its line ended: the provider retired it." in text
    assert [len(part) for part in chart(found, STEADY).panels[0].parts] == [3]


def test_cost_is_added_up_and_unknown_if_a_price_is(tmp_path: Path, drifted: SeriesFindings) -> None:
    text = text_of(drifted)
    assert "$19.50" in text, "ten runs at $1.25, nine times $0.50, ten times $0.25"
    unknown = read_findings(make_series(tmp_path / "monthly", Made(months=2, january=None, no_price=True)))
    assert text_of(unknown).count("unknown") == 6, "two runs, two totals, and their sums"


def test_numbers_as_text() -> None:
    assert [e_value(log) for log in (0.0, 2.5, 20.0)] == ["1.00", "12", "10^9"]
    assert plain_value("incorrect", 0.125) == "13%" and plain_value("accuracy", 0.125) == "0.13"
    assert plain_value("accuracy", None) == "–"


# Words of others


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> list[SeriesFindings]:
    made = []
    for place, said in enumerate(
        (" ".join(HOSTILE[:9]), " ".join(HOSTILE[9:]), "@everyone see #1 and GH-2 a@b.example")
    ):
        names = [f"fake:{''.join(said.split())[:60]}{end}" for end in ("x", "y")]
        of = Made(3, None, 1, None, (names[0], names[1]), said, said, said[:900])
        made.append(read_findings(make_series(tmp_path_factory.mktemp("hostile") / str(place), of)))
    return made


def test_words_of_others_stay_words_on_the_page(hostile: list[SeriesFindings]) -> None:
    for found in hostile:
        page = check_page(html_of(series_page(found)))
        assert page.tags["svg"] == 4 and page.tags["img"] == page.tags["script"] == 0
        assert not [has for tag, has in page.elements if tag == "a" and not has["href"].startswith("#")]


def test_a_summary_cannot_ping_link_or_add_markup(hostile: list[SeriesFindings], drifted: SeriesFindings) -> None:
    parser = MarkdownIt("gfm-like", {"linkify": False, "html": True})
    usual = {token.type for token in parser.parse(summary_markdown(drifted))}
    for found in hostile:
        text = summary_markdown(found)
        first, _, rest = text.partition("\n")
        assert re.fullmatch(r"<!-- medicare-eval series: [A-Za-z0-9 ._]+ -->", first)
        assert rest.startswith("# ") and len(text) < 20_000
        assert not re.search(r"@(?!&#8203;)|(?<=\\#)\d|GH\\?-\d", rest), "no one is pinged, no issue is linked"
        tokens = parser.parse(text)
        inline = [child.type for token in tokens for child in token.children or ()]
        assert {token.type for token in tokens} <= usual
        assert not {"link_open", "image", "html_inline", "em_open", "s_open"} & set(inline)
        assert "://" not in rest


def test_xml_has_no_forbidden_character(hostile: list[SeriesFindings]) -> None:
    for found in hostile:
        suite = ET.fromstring(junit_xml(found))
        assert suite.tag == "testsuite" and suite.get("tests") == str(len(suite))
        json.dumps(summary_json(found), allow_nan=False)


# For bots and programs


def test_the_same_series_has_the_same_marker_and_another_title_another() -> None:
    assert marker("Monthly check") == "<!-- medicare-eval series: Monthly check -->"
    assert marker("a --> b") != marker("a ==> b") and "-->" not in marker("a --> b")[:-3]


def test_the_summary_says_what_to_do(drifted: SeriesFindings) -> None:
    text = summary_markdown(drifted)
    assert text.splitlines()[:2] == [marker("Monthly check"), "# Monthly check: drifted, 2027-02"]
    assert re.search(r"\| fake:changed \| \*\*drifted\*\* \| \d+% \(\d+–\d+%\) \| −\d+ \|", text)
    assert "Read both answers side by side" in text and "No judge drifted (5 lines)." in text
    assert "$2.00 for 2027-02" in text and drifted.head in text
    assert drifted.segments[-1].points[-1].run.results_head in text


def test_the_document_for_programs(drifted: SeriesFindings) -> None:
    made = summary_json(drifted)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert (made["title"], made["verdict"], made["period"]) == ("Monthly check", "drifted", "2027-02")
    target = next(one for one in made["targets"] if one["target"] == CHANGED)
    line = next(one for one in target["lines"] if one["outcome"] == "incorrect")
    assert (target["verdict"], line["since"], line["worse"]) == ("drifted", "2026-09", True)
    assert line["alarm"] in ("2026-09", "2026-10")
    assert line["cusum_up"] > line["limit"] and line["low"] < line["value"] < line["high"]
    assert made["cost"] == {"run": 1.25, "frozen": 0.5, "anchors": 0.25, "total": 2.0}
    assert made["head"] == drifted.head and [one["kind"] for one in made["judges"]] == ["frozen"] * 4 + ["anchors"]


def test_junit_fails_what_drifted_and_errs_on_what_cannot_be_told(
    drifted: SeriesFindings, doubted: SeriesFindings
) -> None:
    text = junit_xml(drifted)
    assert JUNIT_MARK in text
    suite = ET.fromstring(text)
    assert suite.attrib == {"name": "Monthly check", "tests": "9", "failures": "2", "errors": "0"}
    failed = {(one.get("classname"), one.get("name")) for one in suite if one.find("failure") is not None}
    assert failed == {(CHANGED, "accurate and complete answers"), (CHANGED, "incorrect answers")}
    suite = ET.fromstring(junit_xml(doubted))
    assert (suite.get("errors"), suite.get("failures")) == ("4", "1"), "both targets, and the judges' labels"


def test_side_by_side_is_readable_as_markdown() -> None:
    pair = Exhibit(words("t"), (("old", (text_cell("*a*"),)), ("new", (text_cell("b"),))), above=words("asked"))
    text = markdown(Contents(words("x"), (), (pair,), ()))
    assert "- t\n  - asked\n  - old: \\*a\\*\n  - new: b" in text
