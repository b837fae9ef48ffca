"""What a reader sees first, where cells link to, and how charts and terms are shown."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest

from src.findings.judge_agreement import judging
from src.findings.read_run import gather
from src.reports import charts, read_sections
from src.reports.charts import ForestChart, ForestRow, Mark
from src.reports.csv import table_csv
from src.reports.document import (
    Bullets,
    Cell,
    Column,
    Contents,
    Exhibit,
    Paragraph,
    Section,
    Table,
    count_cell,
    linked,
    shown,
    text_cell,
    words,
)
from src.reports.drawing import Group, Panel, Tick
from src.reports.first_section import named_measure
from src.reports.html import OPEN_EXHIBITS, OPEN_ROWS, blocks_html, first_uses, html, line_html, sections_html
from src.reports.markdown import markdown
from src.reports.sections import contents
from src.schemas import Registration, Scenario, StudyCode, TrialResult
from src.trials.terms import TERMS
from tests.cases import each_case
from tests.findings.report_run import A, code, coded, small_manifest, study_scenario, write_run
from tests.helpers import HASH, plan, result, scenario


def many_scenarios(right: int, wrong: int, of: int) -> tuple[list[TrialResult], list[Scenario]]:
    """One answer to one question of each scenario: some complete, some wrong, the others incomplete."""
    turns = [{"turn_id": "Q1", "user_message": "Hm?", "question_group": "Q1"}]
    scenarios = [scenario(scenario_id=f"s{n}", scripted_turns=turns) for n in range(of)]
    codes: tuple[StudyCode, ...] = ("accurate_complete", "incorrect", "accurate_incomplete")
    given = [one for one, count in zip(codes, (right, wrong, of - right - wrong), strict=True) for _ in range(count)]
    results = [coded(result(scenario_id=f"s{n}", target=A), code("Q1", one)) for n, one in enumerate(given)]
    return results, scenarios


def made_of(folder: Path, results: Sequence[TrialResult], scenarios: Sequence[Scenario], **more: object) -> Contents:
    of = plan(scenarios=list(scenarios), targets=[A], verifiers=["openai:x", "google:y"])
    write_run(folder, results, small_manifest(of).model_copy(update=more))
    found = gather(folder)
    return contents([found], [judging(found)])


def first_paragraphs(made: Contents) -> list[str]:
    return ["".join(map(shown, block.parts)) for block in made.first if isinstance(block, Paragraph)]


def test_the_first_sentence_is_the_answer_of_100_with_its_interval(tmp_path: Path) -> None:
    made = made_of(tmp_path, *many_scenarios(right=20, wrong=4, of=40))
    sentence, caveat = first_paragraphs(made)
    found = re.fullmatch(
        r"Of 100 questions, compatible:model-a answered 50 accurately and completely \((\d+)–(\d+)\) "
        r"and 10 wrongly \((\d+)–(\d+)\)\.",
        sentence,
    )
    assert found
    low, high, wrong_low, wrong_high = map(int, found.groups())
    assert 30 < low < 40 and 60 < high < 70 and 1 < wrong_low < 6 and 18 < wrong_high < 28
    assert caveat.startswith("Judged by openai:x and google:y, models that make mistakes too. The judges agreed")
    title = "".join(map(shown, made.title))
    assert title == "How well do AI assistants answer Medicare questions?"
    assert "plan year 2026, 40 scenarios" in "".join(map(shown, made.about))


def test_a_number_without_an_interval_says_why(tmp_path: Path) -> None:
    made = made_of(tmp_path, *many_scenarios(right=1, wrong=1, of=2))
    sentence = first_paragraphs(made)[0]
    assert sentence.endswith("50 accurately and completely and 50 wrongly (no interval from 2 scenarios).")
    (chart,) = [one for one in made.charts() if isinstance(one, ForestChart) and one.name == "answer"]
    assert chart.groups[0].rows[0].marks[0] == Mark(0.5, None, None, "50", "only 2 scenarios")


def test_judge_error_is_said_once_if_it_is_the_same_for_all_and_else_beside_each_target(tmp_path: Path) -> None:
    results, scenarios = many_scenarios(2, 1, 4)
    found = []
    for place, verifiers in enumerate((["openai:x", "google:y"], ["openai:x", "openai:x"])):
        of = plan(scenarios=scenarios, targets=[A], verifiers=verifiers)
        write_run(tmp_path / str(place), results, small_manifest(of))
        found.append(gather(tmp_path / str(place)))
    agreed, unknown = "The judges agreed wherever it could have changed these numbers.", "is unknown: one model judged."
    first, caveat = first_paragraphs(contents([found[0]], [judging(found[0])]))
    assert agreed not in first and agreed in caveat
    first, second, caveat = first_paragraphs(contents(found, [judging(one) for one in found]))
    assert first.endswith(agreed) and unknown in second
    assert agreed not in caveat and unknown not in caveat


def test_answers_that_are_missing_are_counted_with_both_ends(tmp_path: Path) -> None:
    results, scenarios = many_scenarios(right=2, wrong=0, of=4)
    results[3] = coded(result(scenario_id="s3", target=A), code("Q1", "incomplete_data"))
    sentence = first_paragraphs(made_of(tmp_path, results, scenarios))[0]
    assert sentence.endswith(
        "1 answer missing; counting missing answers as bad or as good gives 50 to 75 accurate and complete."
    )


def test_counselors_stand_beside_the_questions_of_the_study(tmp_path: Path) -> None:
    one = coded(result(scenario_id="medicare_only", target=A), code("g1", "accurate_complete"), code("g9", "incorrect"))
    made = made_of(tmp_path, [one], [study_scenario()])
    sentence = first_paragraphs(made)[1]
    assert sentence.startswith(
        "On 2 question groups of the published study, compared like for like, counselors by phone answered 56 of "
        "100 questions accurately and completely (46–66) and 9 wrongly (5–17); compatible:model-a 50 and 50."
    )
    chart = next(one for one in made.charts() if one.name == "answer")
    assert isinstance(chart, ForestChart)
    everything, study = chart.groups
    assert (everything.title, [row.who for row in everything.rows]) == ("All questions", ["ai"])
    assert [row.label for row in study.rows] == [A, "Counselors by phone", "Counselors face to face"]
    assert [row.who for row in study.rows] == ["ai", "people", "people"]
    groups = next(one for one in made.charts() if one.name == "groups-1")
    assert isinstance(groups, ForestChart) and len(groups.groups) == 2


def test_the_registered_primary_outcome_comes_first_in_its_own_words(tmp_path: Path) -> None:
    def registered(outcome: str, folder: str) -> str:
        kept = Registration(
            sha256=HASH, created="2026-01-01", primary_outcome=outcome, tests=(), notes="", deviations=()
        )
        return first_paragraphs(made_of(tmp_path / folder, *many_scenarios(4, 4, 8), registration=kept))[0]

    start = "Primary outcome, registered 2026-01-01: “Share of incorrect answers”. "
    assert registered("Share of incorrect answers", "a").startswith(f"{start}Answered wrongly, of 100: {A} 50 (")
    assert registered("Trust", "b").endswith("“Trust”. It names no measure of this report.")
    for text, measure in (
        ("accurate and complete answers, then accuracy", "accurate_complete"),
        ("Accuracy, and accurate_complete as a second one", "accuracy"),
        ("mean safety risk", "safety_risk"),
        ("happiness", None),
    ):
        assert named_measure(text) == measure


def test_questions_without_codes_are_answered_by_their_claims(tmp_path: Path) -> None:
    made = made_of(tmp_path, [result(target=A, accuracy=0.75)], [scenario()])
    assert first_paragraphs(made)[0] == (
        "Of 100 statements of compatible:model-a that could be checked, 75 (no interval from 1 scenario) were right. "
        "Its answers have no codes."
    )
    assert not [chart for chart in made.charts() if chart.name == "answer"]
    nothing = made_of(tmp_path / "two", [result(target=A, outcome="failed", accuracy=None)], [scenario()])
    assert first_paragraphs(nothing)[0] == "No answer of compatible:model-a could be graded."


def test_what_is_not_as_planned_is_on_the_first_screen_and_the_rest_further_down(tmp_path: Path) -> None:
    results, scenarios = many_scenarios(1, 1, 4)
    made = made_of(tmp_path, results[:3], scenarios)
    (urgent,) = [block for block in made.first if isinstance(block, Bullets)]
    assert ["".join(map(shown, item)) for item in urgent.items] == ["Incomplete: this run has 3 of 4 planned trials."]
    notices = next(one for one in made.sections if one.anchor == "notices")
    (listed,) = notices.blocks
    assert isinstance(listed, Bullets) and len(listed.items) == len(made.notices) == 1
    page = html(made)
    assert page.index("of 4 planned trials") < page.index("<h2")
    assert '<a href="#notices">1 notice</a>' in page and 'id="notices"' in page


def test_results_come_before_methods_and_hashes_last(tmp_path: Path) -> None:
    made = made_of(tmp_path, *many_scenarios(1, 1, 4))
    parts = [section.part for section in made.sections if section.part]
    assert parts == ["Results", "Details", "Methods", "Appendix"]
    text = markdown(made)
    assert "sha256" not in text[: text.index("## Glossary")] and "sha256" in text[text.index("## What was run") :]
    names = ["".join(map(shown, section.title)) for section in made.sections]
    assert names[-1] == "What was run" and names.index("Stability") < names.index("Flow")


def test_what_went_well_lists_questions_that_were_always_answered_fully(tmp_path: Path) -> None:
    results, scenarios = many_scenarios(right=10, wrong=1, of=12)
    made = made_of(tmp_path, results, scenarios)
    full, best = next(s for s in made.sections if s.short == "What went well").blocks
    assert isinstance(full, Table) and isinstance(best, Table)
    assert len(full.rows) == 8 and "8 of 10 shown" in full.caption
    headings = [column.heading for column in best.columns]
    assert [shown(row[headings.index("accurate and complete")]) for row in best.rows] == ["100%"] * 3
    none = made_of(tmp_path / "none", *many_scenarios(right=0, wrong=2, of=3))
    assert "No question was answered accurately and completely by every target each time." in markdown(none)


# Links


@each_case(
    "href",
    [
        "javascript:alert(1)",
        "https://example.org/",
        "//example.org/x.html",
        "/etc/passwd.html",
        "evidence/a b.html",
        'x.html" onclick="y',
        "x.html#a b",
        "evidence/%2e%2e/x.html",
        "data:text/html,x",
        "..",
        "",
        "x.exe",
        "x.html\n",
        "/runs/../x",
        "/runs/a/%2E%2E/x",
        "/runs//example.org",
        "/runs/a?b",
    ],
)
def test_only_our_own_addresses_become_links(href: str) -> None:
    assert line_html([linked(Cell("62%"), href)]) == "62%"
    made = Contents(words("t"), (), (Paragraph((linked(Cell("62%"), href),)),), ())
    assert "](" not in markdown(made)


def test_our_own_addresses_are_links_in_pages_and_markdown_and_nothing_in_csv() -> None:
    cell = linked(count_cell(62), "evidence/1-fake-careful/scenario_001.html#q-3")
    assert line_html([cell]) == '<a href="evidence/1-fake-careful/scenario_001.html#q-3">62</a>'
    assert line_html([linked(Cell("x"), "../../report.html")]) == '<a href="../../report.html">x</a>'
    assert line_html([linked(Cell("x"), "/runs/a%2Fb/trials/s1.r1")]) == '<a href="/runs/a%2Fb/trials/s1.r1">x</a>'
    table = Table("c", (Column("n", key="n"),), ((cell,),))
    assert table_csv(table) == "n\n62\n"
    made = Contents(words("t"), (), (table,), ())
    assert "| [62](evidence/1-fake-careful/scenario_001.html#q-3) |" in markdown(made)


# Pages


def test_every_cell_carries_its_heading_for_the_cards_of_a_phone() -> None:
    table = Table("c", (Column("who", "text"), Column('a "quoted" <heading>')), ((text_cell("x"), count_cell(3)),))
    (row,) = re.findall(r"<tr>.*?</tr>", blocks_html([table]))[-1:]
    assert row == (
        '<tr><th scope="row"><bdi>x</bdi></th><td data-label="a &#34;quoted&#34; &lt;heading&gt;">3</td></tr>'
    )


def test_long_tables_and_many_cases_are_folded_and_nothing_is_left_out() -> None:
    def lines(blocks: Sequence[Table | Exhibit]) -> str:
        return blocks_html(blocks)

    def table(rows: int) -> Table:
        return Table("c", (Column("n"),), tuple((count_cell(n),) for n in range(rows)))

    assert "<details" not in lines([table(OPEN_ROWS)])
    folded = lines([table(OPEN_ROWS + 1)])
    assert f"<summary>c ({OPEN_ROWS + 1} rows)</summary>" in folded and folded.count("<tr>") == OPEN_ROWS + 2
    cases = [Exhibit(words(f"case {n}"), ()) for n in range(OPEN_EXHIBITS + 3)]
    some = lines(cases)
    assert "<summary>3 more cases</summary>" in some and some.count("<article>") == OPEN_EXHIBITS + 3
    assert "<details" not in lines(cases[: OPEN_EXHIBITS + 1]), "one more is not worth folding"


def test_a_folded_section_keeps_its_heading_and_anchor() -> None:
    inner = Section(words("Inner"), (Paragraph(words("Text")),), folded=True, anchor="there")
    text = sections_html([Section(words("Outer"), sections=(inner,))])
    assert '<details class="fold"><summary><h3 id="there">Inner</h3></summary>\n<p>Text</p>' in text


def test_a_long_name_may_break_after_its_punctuation_only() -> None:
    assert line_html([text_cell("compatible:org/long-model")]) == "<bdi>compatible:<wbr>org/<wbr>long-<wbr>model</bdi>"
    assert line_html([text_cell("a&b:<i>long-model-name")]) == "<bdi>a&amp;b:&lt;i&gt;long-<wbr>model-<wbr>name</bdi>"
    assert "<wbr>" not in line_html([text_cell("a sentence: it wraps at its spaces, and-here")])


def test_a_term_is_explained_in_the_section_that_uses_it_first() -> None:
    first = Section(words("One"), (Paragraph(words("Key coverage of each target.")),))
    second = Section(
        words("Two"), (Paragraph(words("Key coverage, and calibration.")), Paragraph((text_cell("trial"),)))
    )
    used = [[term.name for term in terms] for terms in first_uses([first, second])]
    assert used[0] == ["target", "answer key", "key coverage"]
    assert used[1] == ["calibration"], "and what others wrote explains nothing"
    text = sections_html([first, second])
    assert text.count("<dfn>key coverage</dfn>") == 1
    listed = markdown(Contents(words("t"), (), (), read_sections.sections("about", terms=TERMS, noted=())))
    assert all(f"**{term.name}**: {term.meaning}" in listed for term in TERMS)


def test_the_title_of_a_page_is_escaped() -> None:
    assert "<title>&lt;b&gt; x</title>" in html(Contents((text_cell("<b>\u202e x"),), (), (), ()))


# Forest plots

PANEL = Panel("p", (Tick(0, "0"), Tick(0.5, "50"), Tick(1, "100")))


def forest(*marks: Mark, who: str = "ai", panel: Panel = PANEL) -> ForestChart:
    rows = tuple(ForestRow(f"row {n}", (mark, mark), who) for n, mark in enumerate(marks))  # type: ignore[arg-type]
    return ForestChart("f", "A forest", (panel, panel), (Group("g", rows),))


def drawn(chart: ForestChart, narrow: bool) -> ET.Element:
    return ET.fromstring(charts.svg(chart, alone=True, narrow=narrow))


def tagged(root: ET.Element, tag: str, of: str) -> list[dict[str, str]]:
    return [one.attrib for one in root.iter() if one.tag.endswith(tag) and of in one.attrib.get("class", "")]


@each_case("narrow", [False, True])
def test_dots_and_intervals_are_where_their_values_are(narrow: bool) -> None:
    root = drawn(forest(Mark(0.5, 0.25, 1.0, "50 (25–100)")), narrow)
    dots, reaches = tagged(root, "circle", "ai"), tagged(root, "line", "reach")
    assert len(dots) == len(reaches) == 2, "one for each panel"
    for dot, reach in zip(dots, reaches, strict=True):
        low, high = float(reach["x1"]), float(reach["x2"])
        whole = (high - low) / 0.75
        assert float(dot["cx"]) == pytest.approx(low + whole * 0.25, abs=0.2)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for element in root.iter():
        for name, most in (("x", width), ("x2", width), ("y", height), ("cy", height)):
            assert float(element.attrib.get(name, 0)) <= most
    assert root.attrib["class"] == ("narrow" if narrow else "wide")


@each_case("narrow", [False, True])
def test_a_row_without_an_interval_has_a_dot_and_the_reason(narrow: bool) -> None:
    root = drawn(forest(Mark(0.5, None, None, "50", "no interval from 2 scenarios")), narrow)
    assert not tagged(root, "line", "reach") and len(tagged(root, "circle", "ai")) == 2
    assert "no interval from 2 scenarios" in [one.text for one in root.iter()]
    assert (
        "row 0 50, no interval from 2 scenarios"
        in forest(Mark(0.5, None, None, "50", "no interval from 2 scenarios")).description
    )
    nothing = drawn(forest(Mark(None, None, None, "no answer")), narrow)
    assert not tagged(nothing, "circle", "ai") and "no answer" in [one.text for one in nothing.iter()]


def test_people_differ_from_assistants_in_shape_as_well_as_color() -> None:
    root = drawn(forest(Mark(0.5, 0.4, 0.6, "50"), who="people"), narrow=False)
    assert len(tagged(root, "path", "people")) == 2 and not tagged(root, "circle", "")


def test_differences_have_a_line_at_zero_and_stay_inside_the_scale() -> None:
    panel = Panel("p", (Tick(-0.5, "−50"), Tick(0, "0"), Tick(0.5, "+50")), reference=0)
    root = drawn(forest(Mark(-0.25, -0.9, 0.25, "−25"), panel=panel), narrow=False)
    dashed = [one.attrib for one in root.iter() if "stroke-dasharray" in one.attrib]
    (first, _), (reach, _), (dot, _) = dashed, tagged(root, "line", "reach"), tagged(root, "circle", "ai")
    zero, low = float(first["x1"]), float(reach["x1"])
    assert low < float(dot["cx"]) < zero < float(reach["x2"])
    assert zero - float(dot["cx"]) == pytest.approx((zero - low) / 2, abs=0.2), "−90 is drawn at the end, −50"
