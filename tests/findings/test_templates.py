"""Every template is filled with hostile text here, and nothing of it acts as markup or as syntax of a template.

Templates are found by listing their folder: for a new one, add what makes it to `MAKERS`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Environment, Template
from markdown_it import MarkdownIt
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from src.api.findings import compare, drift, sensitivity
from src.findings.compare_judges import compare_judges
from src.inputs.transcripts.collect import CollectSession
from src.records.run import SelectedTrials
from src.records.study_code import OwnPoints
from src.reports.analysis_pages import judges_page, write_page
from src.reports.template import FOLDER
from src.reports.write import write_report
from src.schemas import Registration, Transcripts
from src.series.findings import read_findings
from src.series.page import series_page, summary_markdown
from src.storage import RESULTS, StoredResults
from src.workbench.collect_app import CollectApp
from src.workbench.frame import page
from src.workbench.run_folders import RunFolders
from src.workbench.view_app import ViewApp
from tests.cases import each_case
from tests.helpers import HASH, manifest
from tests.transcripts.sample import script

from .made_runs import manifest_of, planned, rich
from .made_series import Made, make_series
from .report_run import write_run
from .test_report import VISIBLE_CONTROL, hostile_run

HOSTILE = "\n\n".join((
    "<b x='\">|{{ 7 * 191 }}\x1b[31m\u202e**s**[c](javascript:x){short=x}",
    "</bdi></td></table><script>x()</script><img src=x onerror=x()><!-- &lt;b&gt; ![p](q) <http://x> \x07\x9b31m\x00 \ufeff",
    "{% raw %} {# note #} {{ runs }} {%- endfor -%} {% include 'cost.md.j2' %} \ue0000\ue001 \ue001 \u2066 \u200b \u2028",
    "!answer Table: a.", "| a: text | b |", "=== case\nabove: x", "## T {anchor=x}", "- item\n> quote\n```\ncode\n```\n_em_ `c`",
))  # fmt: skip
HARMLESS = "".join(char if char.isalnum() or char in " \n" else "x" for char in HOSTILE)
"""On as many lines, because some pages count those."""
PARSER = MarkdownIt("gfm-like", {"linkify": False})
PLAIN = {"text", "text_special", "softbreak", "inline", "paragraph_open", "paragraph_close", "code_inline"}
"""Tokens of Markdown that are no markup, or only that of an id."""


def report(folder: Path, words: str) -> Iterator[Path]:
    """A report with its evidence and checklists, and one of a review by people whose earlier run is not there."""
    hostile_run(folder, words)
    made = manifest_of(folder / "run")
    one = next(iter(StoredResults(folder / "run", made)))
    own = OwnPoints(code="incorrect", points_met=(), points_missed=("F1",))
    codes = tuple(code.model_copy(update={"own": own}) for code in one.study_codes)
    one = one.model_copy(update={"study_codes": codes, "citations": rich(text=words).citations})
    selected = SelectedTrials(chosen=(one.trial_id,), why="flagged", sampled=(), of=1, seed=1)
    old = Transcripts(
        folder=words[:90],
        run_id=words[:90],
        manifest_sha256=HASH,
        journal_sha256=HASH,
        stages=("target",),
        selected=selected,
    )
    kept = Registration(
        sha256=HASH, created="2026-01-01", primary_outcome=words, tests=(words,), notes=words, deviations=(words,)
    )
    people = made.plan.model_copy(update={"verifiers": ("human:r1", "human:r2")})
    write_run(
        folder / "reviewed", [one], made.model_copy(update={"plan": people, "transcripts": old, "registration": kept})
    )
    for name in ("run", "reviewed"):
        write_report([folder / name], folder / f"report of {name}", checklist="all")
        yield from (folder / f"report of {name}").rglob("*.*")


def analyses(folder: Path, words: str) -> Iterator[Path]:
    """A page of a series with its summary, and pages that compare its runs, their targets and their judges."""
    names = [f"fake:{''.join(words.split())[:60]}{end}" for end in "xy"]
    path = make_series(folder / "series", Made(3, None, 1, None, (names[0], names[1]), words, words, words[:900]))
    series = read_findings(path)
    (folder / "series.md").write_text(summary_markdown(series), encoding="utf-8")
    write_page(series_page(series), folder / "series.html")
    old, new = sorted(one.parent for one in path.rglob(RESULTS))[:2]
    compare(old, html=folder / "compare.html")
    sensitivity(old, html=folder / "sensitivity.html")
    drift(old, new, html=folder / "drift.html")
    one = rich(text=words)
    other = tuple(claim.model_copy(update={"label": "NOT_IN_KEY"}) for claim in one.final_claims)
    for name, judged in (("a", one), ("b", one.model_copy(update={"final_claims": other}))):
        write_run(folder / name, [judged], manifest(planned()))
    judges = compare_judges(folder / "a", folder / "b")
    write_page(judges_page(judges, first=words, second=words), folder / "judges.html")
    yield from folder.glob("*.*")


def workbench(folder: Path, words: str) -> Iterator[Path]:
    """A page of each kind for readers of a run, a conversation that is collected, and the password."""
    hostile_run(folder / "runs", words)
    line = "".join(char for char in " ".join(words.split()) if char.isprintable())
    session = CollectSession(
        folder / "chats", script(), holds=lambda *_: True, today=date(2026, 1, 1), system=line[:90]
    )
    session.answer(words)
    view, collect = ViewApp(RunFolders(folder / "runs")), CollectApp(session, redacted_by=line, to_judge=line)
    found = [*pages(view.app()), *pages(collect.app()), page("password", wrong=True)]
    found.append(page("message", about="damaged", why=words))
    for number, text in enumerate(found):
        (folder / f"{number}.html").write_text(text, encoding="utf-8")
    yield from folder.glob("*.html")


def pages(app: ASGIApp) -> Iterator[str]:
    """The first page of an application, and one of each kind of those that it leads to."""

    async def opened(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "session": "s", "person": "r1"}, receive, send)

    client = TestClient(opened, raise_server_exceptions=True)
    waiting, seen = ["/"], set[tuple[str, ...]]()
    while waiting:
        path = waiting.pop(0)
        kind = (*path.split("/")[1:2], *path.split("/")[3:4])
        if kind not in seen:
            seen.add(kind)
            found = client.get(path, follow_redirects=False).text
            yield found
            waiting += [unescape(one) for one in re.findall(r'href="(/(?:runs|series)/[^"#]*)', found)]


IN_A_BROWSER = {f"html/workbench/review{page}.html.j2" for page in ("", "_home", "_others", "_task")}
"""Pages of a review, which runs while they are served: `tests/test_workbench_browser.py` fills them."""
MAKERS: dict[str, Callable[[Path, str], Iterator[Path]]] = {
    "report": report, "analyses": analyses, "workbench": workbench,
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[dict[str, str], set[str]]]:
    """By maker and words: the pages and texts that were made, and the templates that were used."""

    @cache
    def texts(maker: str, words: str) -> tuple[dict[str, str], set[str]]:
        folder = tmp_path_factory.mktemp("made")
        used: set[str] = set()
        load = Environment._load_template

        def recorded(self: Environment, *given: object) -> Template:
            found: Template = load(self, *given)  # type: ignore[arg-type]
            used.add(str(Path(str(found.filename)).relative_to(FOLDER)))
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Environment, "_load_template", recorded)
            paths = [path for path in MAKERS[maker](folder, words) if path.suffix in (".md", ".html")]
        names = [re.sub(r"/1-[^/]+/", "/1-target/", str(path.relative_to(folder))) for path in paths]
        return dict(zip(names, (path.read_text(encoding="utf-8") for path in paths), strict=True)), used

    return texts


def test_every_template_has_a_case(made: Callable[[str, str], tuple[dict[str, str], set[str]]]) -> None:
    listed = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.j2")}
    used = {name for maker in MAKERS for name in made(maker, HARMLESS)[1]}
    assert listed == used | IN_A_BROWSER, "add what makes a template to MAKERS, or delete a template that nothing uses"


@each_case("maker", MAKERS)
def test_hostile_text_is_neither_markup_nor_syntax(
    maker: str, made: Callable[[str, str], tuple[dict[str, str], set[str]]]
) -> None:
    usual, found = made(maker, HARMLESS)[0], made(maker, HOSTILE)[0]
    assert set(found) == set(usual) and found
    for name, text in found.items():
        assert {unicodedata.category(char) for char in text if char != "\n"}.isdisjoint(VISIBLE_CONTROL), name
        assert "1337" not in text
        check = elements if name.endswith(".html") else tokens
        assert check(text) - check(usual[name]) == Counter(), name


class Elements(HTMLParser):
    """Elements with the names of their attributes; not those that a long name or an id may have."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("wbr", "code"):
            self.found[f"{tag} {' '.join(sorted(name for name, _ in attrs))}"] += 1

    def handle_comment(self, data: str) -> None:
        self.found["a comment"] += 1


def elements(text: str) -> Counter[str]:
    page = Elements()
    page.feed(text)
    page.close()
    return page.found


def tokens(text: str) -> Counter[str]:
    parsed = PARSER.parse(text)
    inner = [child for token in parsed for child in token.children or []]
    return Counter(f"{token.type} {token.tag}" for token in (*parsed, *inner) if token.type not in PLAIN)
