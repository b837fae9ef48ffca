"""Evidence pages: every link leads somewhere, counts are those of the report, and nothing in them comes alive."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from src.errors import InputError, IntegrityError, StorageError
from src.findings.processes import in_processes
from src.findings.read_run import Findings, gather
from src.reports import evidence, evidence_shell, links, report_folder, template, write
from src.reports.evidence import evidence_pages as pages_of
from src.reports.evidence_shell import page_bytes, safe, safe_lines
from src.reports.series import Runs, runs_of
from src.reports.trial_page import ClaimMark, MarkedSpan, marked_text
from src.reports.write import write_files, write_report
from src.schemas import QuoteSpan, TrialResult
from src.scoring.definitions import CODE_HEADINGS
from src.store import hash_chain
from tests.cases import each_case
from tests.findings import made_runs
from tests.findings.report_run import A, code, coded, small_manifest, small_plan, small_run, write_run
from tests.helpers import ROOT, plan, result, scenario

FORMATS = sorted((ROOT / "tests" / "formats").iterdir())
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "main",
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "section",
        "article",
        "div",
        "span",
        "b",
        "br",
        "code",
        "sup",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
    ]
)
"""The elements of an evidence page: none of them loads or runs anything."""
ATTRIBUTES = frozenset(
    [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "href",
        "rel",
        "dir",
        "scope",
        "role",
        "aria-label",
        "tabindex",
        "data-label",
        "open",
    ]
)
HIDDEN = re.compile("[\u0000-\u0008\u000b-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


@dataclass
class Page(HTMLParser):
    """What is in a page, for tests."""

    ids: Counter[str] = field(default_factory=Counter)
    hrefs: list[str] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        given = dict(attrs)
        if given.get("id"):
            self.ids[str(given["id"])] += 1
        if "href" in given:
            self.hrefs.append(str(given["href"]))
        if tag not in ("meta", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)


def parsed(text: str) -> Page:
    found = Page()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


def pages(folder: Path) -> dict[Path, Page]:
    return {path: parsed(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}


def dead_links(folder: Path) -> list[str]:
    """Links of all pages of a folder that lead to no file, or to no place in it."""
    there = pages(folder)
    dead = []
    for path, one in there.items():
        for href in one.hrefs:
            if href.startswith(("http://", "https://")):
                continue
            file, _, place = href.partition("#")
            target = (path.parent / file).resolve() if file else path
            if (
                not target.is_file()
                or folder.resolve() not in target.parents
                or (place and place not in there[target].ids)
            ):
                dead.append(f"{path.name}: {href}")
    return dead


def repeated(count: int, **changes: object) -> list[TrialResult]:
    """Repetitions of two scripts and two targets, with a code each."""
    codes = ("accurate_complete", "incorrect", "not_substantive")
    return [
        coded(
            result(scenario_id="medicare_only", target=target, repetition=n, accuracy=1.0),
            code("g1", codes[n % 3]),  # type: ignore[arg-type]
        )
        for n in range(1, count + 1)
        for target in (A, "fake:wrong")
    ]


def written(folder: Path, results: list[TrialResult]) -> Path:
    """The report of a run with these results."""
    write_run(folder / "run", results, small_manifest())
    write_report([folder / "run"], folder / "out")
    return folder / "out"


def series_of(found: Findings) -> Runs:
    return runs_of([found], [None])


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# Links


def test_every_link_leads_to_a_place(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path / "run")
    write_files([found], [judges], tmp_path / "out")
    there = pages(tmp_path / "out")
    assert dead_links(tmp_path / "out") == []
    from_report = [href for href in there[tmp_path / "out" / "report.html"].hrefs if href.startswith("evidence/")]
    assert any("#r1-c-Q1.C1" in href for href in from_report), "a wrong answer leads to its claim"
    assert {path.name for path in there} >= {"index.html", "study.html", "medicare_only.html", "s1.t1.html"}
    for path, one in there.items():
        assert not [name for name, count in one.ids.items() if count > 1], path


PUBLISHED = ("counselors, phone (95% interval)", "counselors, face to face (95% interval)")
"""Columns of numbers that no trial is behind."""
NUMBER_CELL = re.compile(r'<td data-label="([^"]*)">([+−]?[0-9$].*?)</td>')


def test_every_number_of_a_table_leads_to_its_evidence(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path / "run")
    write_files([found], [judges], tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    before, published = text.split('aria-label="Counts of counselors', 1)
    results = before + published.split("</table>", 1)[1]
    assert results.count('<a class="number"') > 200
    assert [found for found in NUMBER_CELL.findall(results) if found[0] not in PUBLISHED] == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="#x">1</a><a href="#y">2</a><a href="b.html">3</a></p>')
    assert dead_links(tmp_path) == ["a.html: #y", "a.html: b.html"]


@each_case("folder", FORMATS, ids=[path.name for path in FORMATS])
def test_runs_of_every_format_have_evidence(folder: Path, tmp_path: Path) -> None:
    write_report([folder / "run"], tmp_path / "out")
    there = pages(tmp_path / "out" / "evidence")
    trials = [path for path in there if re.search(r"\.t\d+\.html$", path.name)]
    assert len(trials) >= 2
    assert dead_links(tmp_path / "out") == []
    shown = sum(name.startswith("r") and "-" not in name for path in trials for name in there[path].ids)
    assert shown == len(gather(folder / "run").rows)


def test_two_runs_with_the_same_target_have_folders_of_their_own(tmp_path: Path) -> None:
    runs = [small_run(tmp_path / "a")[0], small_run(tmp_path / "b")[0]]
    write_files(runs, [None, None], tmp_path / "out")
    folders = {path.name for path in (tmp_path / "out" / "evidence").iterdir() if path.is_dir()}
    assert len(folders) == 4
    assert dead_links(tmp_path / "out") == []


NAMES = st.one_of(st.text(max_size=80), st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True))
PLAIN_FILE = re.compile(r"[a-z0-9][a-z0-9._-]{0,159}\.html")


@given(st.lists(st.tuples(NAMES, st.none() | NAMES), min_size=2, max_size=8, unique=True))
def test_no_two_scripts_share_a_file_on_any_file_system(scripts: list[tuple[str, str | None]]) -> None:
    files = {links.trial_file(scenario_id, variant, 1).lower() for scenario_id, variant in scripts}
    assert len(files) == len(scripts)
    assert all(PLAIN_FILE.fullmatch(file) for file in files)
    names = {scenario_id for scenario_id, _ in scripts}
    assert len({links.scenario_file(name).lower() for name in names}) == len(names)


@each_case("name", ["index", "study", "con", "lpt1", "../../etc/passwd", "A", "a b", "é", "", "." * 9])
def test_names_that_a_file_cannot_have_get_another(name: str) -> None:
    file = links.scenario_file(name)
    assert PLAIN_FILE.fullmatch(file)
    assert file.split(".")[0] not in ("index", "study", "con", "lpt1") or ".x" in file
    assert file != links.scenario_file(name.lower() + "x")


def test_pages_of_a_scenario_and_trials_never_share_a_name() -> None:
    names = [links.scenario_file("a"), links.scenario_file("a", 2), links.trial_file("a", None, 2)]
    names += [links.trial_file("a", "p2", 1), links.trial_file("a", "t2", 2), links.scenario_file("A")]
    assert len(set(names)) == len(names)


def test_a_trial_that_is_not_there_leads_to_the_target(tmp_path: Path) -> None:
    found, _ = small_run(tmp_path / "run")
    series = series_of(found).series[0]
    assert links.of_trial(series, "nothing") == links.of_claim(series, "nothing", "C1") == links.of_target(series)


# What pages say


def test_a_trial_page_shows_the_claim_its_fact_its_source_and_every_judge(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path / "run")
    write_files([found], [judges], tmp_path / "out")
    path = tmp_path / "out" / "evidence" / "2-fake-wrong" / "medicare_only.t1.html"
    raw = path.read_text(encoding="utf-8")
    text = " ".join("".join(parsed(raw).words).split())
    assert '<a class="m C" href="#r1-c-Q1.C1">Plans have no networks at all.</a><sup class="C">' in raw
    assert "C1 Plans have no networks." in text
    assert "judge_1: contradicted by F1, high. The key says they do." in text
    assert "judge_2: contradicted by F1, high. Contrary to F1." in text
    assert "page 9. https://www.medicare.gov/a?b=c&d=e" in text
    assert "Primary: read in the source itself." in text
    assert "IN incorrect" in text and "1 claim materially wrong against F1." in text
    assert "Missed: F2 The premium is $202.90 a month." in text
    assert "medicare_only.fake-wrong.r1|" in text, "how to find its calls"
    assert "Repetition 3: refused" in text


def test_what_a_judge_and_a_screen_did_is_said(tmp_path: Path) -> None:
    made_runs.write_run(tmp_path / "run", [made_runs.rich()], made_runs.planned())
    write_report([tmp_path / "run"], tmp_path / "out")
    text = (tmp_path / "out" / "evidence" / "1-fake-careful" / "s1.t1.html").read_text(encoding="utf-8")
    for said in ("hedge: “perhaps”", "Verifier failed at Q1", "rejected: Plans have networks. (no quote)", "no verdict",
                 "Asked again: contradicted.", "the judges left it open", "by a majority of judges", "Skipped"):  # fmt: skip
        assert said in text, said
    assert '<sup class="O">' in text and '<sup class="S">' in text


def counted(text: str) -> dict[str, int]:
    """What `counts_text` shows, read back."""
    names: dict[str, str] = {heading: name for name, heading in CODE_HEADINGS.items()}
    pairs = [part.strip().split(" ", 1) for part in text.rstrip(".").split(";")] if "no answer" not in text else []
    return {names.get(name, name): int(number.replace(",", "")) for number, name in pairs}


def test_counts_are_those_of_the_reports_tables(tmp_path: Path) -> None:
    found, judges = small_run(tmp_path / "run")
    write_files([found], [judges], tmp_path / "out")
    folders = {one.target: tmp_path / "out" / "evidence" / links.folder_of(one) for one in series_of(found).series}
    with (tmp_path / "out" / "per_question.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 4
    for row in rows:
        page_of = (folders[row["target"]] / links.scenario_file(row["scenario_id"])).read_text(encoding="utf-8")
        _, _, section = page_of.partition(f'id="{links.question_anchor(row["question_group"])}"')
        said = re.search(r"All trials of this scenario: (.*?)</p>", section)
        assert said
        wanted: dict[str, int] = {name: int(row[name]) for name in CODE_HEADINGS if int(row[name])}
        wanted |= {answer: n for answer in ("yes", "no", "unsure") if (n := int(row[f"answer_{answer}"]))}
        assert counted(said[1]) == wanted


def test_a_study_group_counts_both_of_its_scenarios(tmp_path: Path) -> None:
    out = written(tmp_path, repeated(4))
    text = (out / "evidence" / "1-compatible-model-a" / "study.html").read_text(encoding="utf-8")
    _, _, section = text.partition('id="g-1"')
    said = re.search(r"<p>(.*?)\.</p>", section)
    assert said and counted(said[1]) == {"incorrect": 2, "not_substantive": 1, "accurate_complete": 1}
    assert '<a href="medicare_only.html#q-g1">medicare_only</a>' in section


def test_what_incomplete_data_counts_as_is_said(tmp_path: Path) -> None:
    unlike = [coded(result(scenario_id="medicare_only", target=A, repetition=n), code("g1", "incomplete_data"))
              for n in (1, 2, 3)]  # fmt: skip
    said_no = unlike[2].conversation[0].model_copy(update={"outcome": "refused"})
    unlike[2] = unlike[2].model_copy(update={"conversation": (said_no,)})
    out = written(tmp_path, unlike)
    text = (out / "evidence" / "1-compatible-model-a" / "medicare_only.html").read_text(encoding="utf-8")
    assert "Of those with incomplete data, 2 count as missing, 1 count as not substantive." in text
    assert text.count("Why. Counts as missing.") == 2
    assert text.count("Why. Counts as not substantive.") == 1


# Splitting


def test_many_repeats_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "TRIALS_OF_A_SCENARIO_PAGE", 20)
    out = written(tmp_path, repeated(45))
    folder = out / "evidence" / "1-compatible-model-a"
    there = pages(folder)
    for number, shown in ((1, range(1, 11)), (2, range(11, 21)), (5, range(41, 46))):
        ids = there[folder / f"medicare_only.t{number}.html"].ids
        assert [name for name in ids if re.fullmatch(r"r\d+", name)] == [f"r{n}" for n in shown]
    assert [path.name for path in there if re.fullmatch(r"medicare_only(\.p\d+)?\.html", path.name)] == [
        "medicare_only.html", "medicare_only.p2.html", "medicare_only.p3.html",
    ]  # fmt: skip
    rows = [
        len(re.findall('<tr><th scope="row"><a href="[^"]*#r[0-9]+">', (folder / name).read_text(encoding="utf-8")))
        for name in ("medicare_only.html", "medicare_only.p2.html", "medicare_only.p3.html")
    ]
    assert rows == [20, 20, 5]
    for number in (1, 2, 3):
        text = (folder / links.scenario_file("medicare_only", number)).read_text(encoding="utf-8")
        assert "All trials of this scenario: 15 accurate, complete; 15 not substantive; 15 incorrect." in text
    assert dead_links(out) == []


def test_a_scenario_without_trials_has_a_page(tmp_path: Path) -> None:
    out = written(tmp_path, [])
    text = (out / "evidence" / "1-compatible-model-a" / "medicare_only.html").read_text(encoding="utf-8")
    assert "No trial of this scenario has run yet." in text
    assert dead_links(out) == []


def test_variants_are_in_the_order_of_the_plan(tmp_path: Path) -> None:
    of = plan(scenarios=[scenario()], targets=["fake:careful"], repeats=1)
    variants = [of.scenarios[0].model_copy(update={"variant": variant}) for variant in ("z", "B", "b")]
    of = of.model_copy(update={"scenarios": tuple(variants)})
    results = [
        result(repetition=1).model_copy(update={"variant": one.variant, "trial_id": f"{one.name}.fake-careful.r1"})
        for one in reversed(variants)
    ]
    made_runs.write_run(tmp_path / "run", results, of)
    write_report([tmp_path / "run"], tmp_path / "out")
    folder = tmp_path / "out" / "evidence" / "1-fake-careful"
    text = (folder / "s1.html").read_text(encoding="utf-8")
    assert re.findall(r'<th scope="row"><a href="([^"#]*)#r1">', text) == [
        links.trial_file("s1", variant, 1) for variant in ("z", "B", "b")
    ]
    assert dead_links(tmp_path / "out") == []


# Hostile text


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    made_runs.write_run(tmp_path / "run", made_runs.hostile(), made_runs.planned())
    write_report([tmp_path / "run"], tmp_path / "out")
    there = pages(tmp_path / "out" / "evidence")
    assert len(there) > 4
    words = "".join(word for one in there.values() for word in one.words)
    assert "<script>alert(1)</script>" in words, "shown as words"
    for path, one in there.items():
        assert one.tags <= TAGS, path
        assert one.attributes <= ATTRIBUTES, path
        assert not HIDDEN.search("".join(one.words)), path
        assert all(re.fullmatch(r"https?://\S+|[A-Za-z0-9._/-]*(#[A-Za-z0-9._-]+)?", href) for href in one.hrefs), path
    assert dead_links(tmp_path / "out") == []


@given(st.text(max_size=200))
def test_text_of_others_stays_text(text: str) -> None:
    for made in (safe(text), safe_lines(text)):
        one = parsed(f'<p class="{made}">{made}</p>')
        assert one.tags == {"p"} and one.attributes == {"class"}
        assert not HIDDEN.search("".join(one.words))


@each_case("address", ["javascript:alert(1)", 'https://a"onclick="x', "https://a b", "data:text/html,x"])
def test_an_address_of_another_form_is_no_link(address: str) -> None:
    assert "<a" not in template.macro("document", "web", address)
    assert template.macro("document", "web", "https://www.medicare.gov/a?b=c&d=e").count("<a ") == 1


def test_a_page_says_that_nothing_may_be_loaded() -> None:
    text = page_bytes(evidence_shell.Page("<b>", Markup("<p>body</p>"))).decode()
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in text and "<title>&lt;b&gt;</title>" in text
    assert "script" not in text.replace("description", "")


# Marks


def marks(count: int) -> list[ClaimMark]:
    return [ClaimMark("SCNO"[n % 4], n + 1, f"#c{n}") for n in range(count)]


@st.composite
def marked_replies(draw: st.DrawFn) -> tuple[str, list[MarkedSpan]]:
    reply = draw(st.text("ab <>&\n", min_size=1, max_size=40))
    places = st.integers(0, len(reply) + 5)
    spans = []
    for mark in marks(draw(st.integers(0, 6))):
        start = draw(places)
        spans.append(MarkedSpan(start, start + draw(st.integers(1, 12)), draw(st.sampled_from([mark, mark, None]))))
    return reply, spans


@given(marked_replies())
@settings(max_examples=300)
def test_marks_may_overlap_and_every_word_stays(case: tuple[str, list[MarkedSpan]]) -> None:
    reply, spans = case
    made = marked_text(reply, spans)
    found = parsed(f"<div>{made}</div>")
    assert found.tags <= {"div", "a", "span", "sup"}
    words = "".join(parsed(re.sub(r"<sup.*?</sup>", "", made)).words)
    assert "".join(words.split()) == "".join(reply.split())
    shown = Counter(found.hrefs)
    for span in spans:
        if span.mark and span.start < len(reply):
            assert shown[span.mark.href] >= 1, "its mark is there"


def test_the_heaviest_claim_gives_the_color() -> None:
    supported, contradicted = ClaimMark("S", 1, "#s"), ClaimMark("C", 2, "#c")
    made = marked_text("one two three", [MarkedSpan(0, 7, supported), MarkedSpan(4, 13, contradicted)])
    assert made == (
        '<a class="m S" href="#s">one </a><a class="m C" href="#c">two</a><sup class="S"><a href="#s">S1</a></sup>'
        '<a class="m C" href="#c"> three</a><sup class="C"><a href="#c">C2</a></sup>'
    )


def test_a_mark_follows_the_last_of_several_quotes(tmp_path: Path) -> None:
    made = made_runs.rich(text="One thing. Another thing. The end.")
    spans = (QuoteSpan(start=0, end=10), QuoteSpan(start=11, end=25))
    claims = (made.claims[0].model_copy(update={"quote_spans": spans}), *made.claims[1:])
    made_runs.write_run(tmp_path / "run", [made.model_copy(update={"claims": claims[:1]})], made_runs.planned())
    write_report([tmp_path / "run"], tmp_path / "out")
    text = (tmp_path / "out" / "evidence" / "1-fake-careful" / "s1.t1.html").read_text(encoding="utf-8")
    assert text.count('<sup class="S"><a href="#r1-c-Q1.C1">S1</a></sup>') == 1
    assert 'Another thing.</a><sup class="S">' in text


# The folder


@FORKS
def test_the_same_run_gives_the_same_bytes_however_many_processes_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "TRIALS_OF_A_SCENARIO_PAGE", 10)
    out = written(tmp_path, repeated(33))
    before = read_all(out)
    assert {"codes.csv", "report.html"} < before.keys()
    monkeypatch.setattr(write, "WORTH_IT", 1)
    monkeypatch.setattr(write, "process_count", lambda: 3)
    write_report([tmp_path / "run"], out)
    assert read_all(out) == before
    assert sorted(path.name for path in out.iterdir() if path.name.startswith(".")) == []


def dead_process() -> int:
    """The id of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_pages_of_an_earlier_report_are_replaced(tmp_path: Path) -> None:
    out = written(tmp_path, repeated(2))
    stale = out / "evidence" / "9-gone"
    stale.mkdir()
    (stale / "index.html").write_text("old")
    killed = out / f".report-{dead_process()}-0123456789abcdef"
    (killed / "evidence").mkdir(parents=True)
    write_report([tmp_path / "run"], out)
    assert not stale.exists()
    assert {path.name for path in out.iterdir() if path.name.startswith(".")} == set()


def test_a_folder_of_someone_else_is_never_touched(tmp_path: Path) -> None:
    write_run(tmp_path / "run", repeated(2), small_manifest())
    mine = tmp_path / "out" / "evidence"
    mine.mkdir(parents=True)
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"evidence exists and was not written by medicare-eval.*--no-evidence"):
        write_report([tmp_path / "run"], tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["evidence"], "nothing was written"
    write_report([tmp_path / "run"], tmp_path / "out", evidence=False)
    assert (mine / "notes.txt").read_text() == "mine"


def test_a_report_can_be_without_evidence(tmp_path: Path) -> None:
    out = written(tmp_path, repeated(2))
    with_pages = write_report([tmp_path / "run"], out)
    assert with_pages[-1] == out / "evidence" / "index.html"
    without = write_report([tmp_path / "run"], out, evidence=False)
    assert without == with_pages[:-1]
    assert not (out / "evidence").exists(), "pages of an earlier report would not fit this one"
    for name in ("report.html", "report.md"):
        text = (out / name).read_text(encoding="utf-8")
        assert "evidence/" not in text


def test_a_page_that_cannot_be_written_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = written(tmp_path, repeated(2))
    before = read_all(out)
    write_run(tmp_path / "more", repeated(3), small_manifest())

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(evidence, "scenario_page", full)
    with pytest.raises(StorageError, match="No space left"):
        write_report([tmp_path / "more"], out)
    assert read_all(out) == before


# The report folder


def test_a_file_that_was_changed_is_never_replaced(tmp_path: Path) -> None:
    out = written(tmp_path, repeated(2))
    draft = out / "methods.md"
    draft.write_text(draft.read_text(encoding="utf-8") + "Our own words.", encoding="utf-8")
    before = read_all(out)
    with pytest.raises(InputError, match=r"methods\.md was changed after a report wrote it, and will not be replaced"):
        write_report([tmp_path / "run"], out)
    assert read_all(out) == before


def test_a_file_that_no_report_wrote_is_never_replaced(tmp_path: Path) -> None:
    write_run(tmp_path / "run", repeated(2), small_manifest())
    for name in ("report.md", "codes.csv"):
        out = tmp_path / name.replace(".", "-")
        out.mkdir()
        (out / name).write_text("mine")
        with pytest.raises(InputError, match=rf"{re.escape(name)} exists, and no list of files says that a report"):
            write_report([tmp_path / "run"], out)
        assert read_all(out) == {name: b"mine"}


def test_files_of_an_earlier_report_go_unless_they_were_changed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", repeated(2), small_manifest())
    out = tmp_path / "out"
    write_report([tmp_path / "run"], out, checklist="all")
    assert (out / "chart_checklist.md").exists()
    write_report([tmp_path / "run"], out)
    assert not list(out.glob("*_checklist.md"))
    assert read_all(out) == read_all(written(tmp_path / "again", repeated(2)))


def test_a_list_of_files_cannot_name_a_file_outside(tmp_path: Path) -> None:
    out = written(tmp_path, repeated(2))
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    listed = out / report_folder.LIST
    listed.write_text(f"{listed.read_text()}{hashlib.sha256(b'mine').hexdigest()}  ../outside.txt\n")
    write_report([tmp_path / "run"], out)
    assert outside.read_text() == "mine"


def test_a_link_to_another_folder_is_not_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", repeated(2), small_manifest())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes.txt").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "evidence").symlink_to(elsewhere)
    with pytest.raises(InputError, match="evidence exists and was not written by medicare-eval"):
        write_report([tmp_path / "run"], tmp_path / "out")
    assert read_all(elsewhere) == {"notes.txt": b"mine"}


def test_a_run_without_results_has_pages_too(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [], small_manifest())
    (tmp_path / "run" / "results.jsonl").unlink(missing_ok=True)
    write_report([tmp_path / "run"], tmp_path / "out")
    assert (tmp_path / "out" / "evidence" / "index.html").exists()
    assert dead_links(tmp_path / "out") == []


@each_case(("field", "value"), [("severity", "<meta http-equiv=refresh content=0>"), ("label", "MAYBE")])
def test_a_verdict_of_no_known_kind_is_refused(field: str, value: str, tmp_path: Path) -> None:
    small_run(tmp_path / "run")
    path = tmp_path / "run" / "results.jsonl"
    lines = []
    for line in hash_chain.ChainReader(path, hash_chain.GENESIS):
        trial = json.loads(line.payload)
        for verdicts in trial["verdicts"].values():
            for verdict in verdicts:
                verdict[field] = value
        lines.append(json.dumps(trial).encode())
    head = hash_chain.GENESIS
    with path.open("wb") as file:
        for payload in lines:
            head, raw = hash_chain.chained(head, payload)
            file.write(raw)
    (tmp_path / "out").mkdir()
    with pytest.raises(IntegrityError, match="this version cannot read"):
        in_processes(list(pages_of(series_of(gather(tmp_path / "run")), tmp_path / "out")), 1)
    assert not list((tmp_path / "out").rglob("*.t1.html"))


def test_results_that_change_while_they_are_read_are_noticed(tmp_path: Path) -> None:
    write_run(tmp_path / "run", repeated(2), small_manifest())
    found = gather(tmp_path / "run")
    path = tmp_path / "run" / "results.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
    (tmp_path / "out").mkdir()
    with pytest.raises(IntegrityError, match="changed while it was read"):
        in_processes(list(pages_of(series_of(found), tmp_path / "out")), 1)


def test_a_trial_of_no_scenario_of_the_plan_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [result(scenario_id="elsewhere", target=A)], small_manifest(small_plan()))
    (tmp_path / "out").mkdir()
    with pytest.raises(IntegrityError, match=r"elsewhere\.\S+ is of no scenario of the run's plan"):
        in_processes(list(pages_of(series_of(gather(tmp_path / "run")), tmp_path / "out")), 1)


def test_series_are_named_by_their_place(tmp_path: Path) -> None:
    found, _ = small_run(tmp_path / "run")
    names = [links.folder_of(one) for one in series_of(found).series]
    assert names == ["1-compatible-model-a", "2-fake-wrong"]
