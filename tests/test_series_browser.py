"""The page of a series in a real browser, as a file and in the workbench: it fits, it is accessible, text stays text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from src.reports.analysis_pages import write_page
from src.series.findings import read_findings
from src.series.page import series_page
from tests.browser import NEEDS_CHROMIUM, chromium, click, opened, served
from tests.findings.made_series import CHANGED, RIGHT, WRONG, Made, make_series
from tests.findings.test_pages_in_browser import SIZES, check, context_of, visit
from tests.findings.test_report import HOSTILE
from tests.test_workbench_browser import color_only, inert, sideways, violations, watched

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]
LONG_WORD = "Krankenversicherung" * 12
SCHEMES = ("light", "dark")


def hostile(folder: Path, place: int) -> Path:
    said = " ".join((*(HOSTILE[:9] if place == 0 else HOSTILE[9:]), LONG_WORD))
    targets = tuple(f"fake:{''.join(said.split())[:150]}{end}" for end in "xy")
    made = Made(3, None, 1, targets=(targets[0], targets[1]), wrong=said, asked=said, title=said[:900])
    return make_series(folder / f"hostile-{place}", made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three series: an ordinary one, and two with hostile words in every place."""
    made = tmp_path_factory.mktemp("series")
    make_series(made / "monthly", Made(judge=6))
    for place in range(2):
        hostile(made, place)
    return made


@pytest.fixture(scope="module")
def pages(folder: Path) -> list[Path]:
    return [
        write_page(series_page(read_findings(one)), folder / f"{one.name}.html") for one in sorted(folder.iterdir())
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_and_loads_and_runs_nothing(pages: list[Path], browser: Any, size: str, scheme: str) -> None:
    assert len(pages) == 3
    context = context_of(browser, size, scheme)
    for path in pages:
        check(visit(context, path), path)
    context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("size", SIZES)
def test_the_page_is_accessible(pages: list[Path], browser: Any, size: str, scheme: str) -> None:
    page = context_of(browser, size, scheme).new_page()
    page.goto(pages[-1].as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
    assert (violations(page), color_only(page), sideways(page)) == ([], [], 0)
    page.context.close()


def test_the_chart_has_one_form_per_screen_and_answers_are_beside_or_below_each_other(
    pages: list[Path], browser: Any
) -> None:
    for size, form in (("desktop", "wide"), ("phone", "narrow")):
        page = context_of(browser, size).new_page()
        page.goto(pages[-1].as_uri())
        shown = page.evaluate(
            "() => [...document.querySelectorAll('figure svg')].filter(one => one.getBoundingClientRect().width > 0)"
            ".map(one => one.getAttribute('class'))"
        )
        assert shown == [form, form]
        left, right = page.evaluate(
            "() => [...document.querySelector('dl.sides').children].map(one => one.getBoundingClientRect())"
            ".map(box => [box.left, box.top, box.width])"
        )
        assert (left[1] == right[1]) == (size == "desktop") and (left[0] == right[0]) == (size == "phone")
        text = page.inner_text("main")
        assert RIGHT in text and WRONG in text
        page.context.close()


def test_the_letters_of_a_chart_do_not_leave_it(pages: list[Path], browser: Any) -> None:
    for size in SIZES:
        page = context_of(browser, size).new_page()
        page.goto(pages[-1].as_uri())
        outside = page.evaluate(
            "() => [...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 0)"
            ".flatMap(s => { const b = s.getBoundingClientRect(); return [...s.querySelectorAll('text')].filter(t => {"
            " const r = t.getBoundingClientRect(); return r.left < b.left - 1 || r.right > b.right + 1"
            " || r.bottom > b.bottom + 1 || r.top < b.top - 1; }).map(t => t.textContent); })"
        )
        page.context.close()
        assert outside == []


def test_a_reader_gets_from_the_list_to_a_trial_of_a_point_and_back(folder: Path, browser: Any) -> None:
    with served("view", folder) as view:
        page = opened(browser, view, "")
        with watched(page, view.host) as seen:
            click(page.get_by_role("link", name="Monthly check"))
            assert page.url.endswith("/series/monthly") and CHANGED in page.inner_text("main")
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                for scheme in SCHEMES:
                    page.emulate_media(color_scheme=scheme)
                    assert (violations(page), sideways(page)) == ([], 0)
            click(page.get_by_role("link", name="Trial in 2026-05").first)
            assert "/trials/" in page.url and "points" not in page.url
            assert page.locator("h1").inner_text() == "A small scenario"
            assert (violations(page), sideways(page)) == ([], 0)
            click(page.get_by_role("link", name="monthly", exact=True))
            click(page.get_by_role("link", name="2026-06", exact=True).first)
            assert page.url.endswith("/report.html") and "202606" in page.inner_text(".bar")
        assert seen == []
        page.context.close()


@pytest.mark.parametrize("place", [0, 1])
def test_hostile_words_are_inert_in_the_workbench(folder: Path, browser: Any, place: int) -> None:
    with served("view", folder) as view:
        page = opened(browser, view, "", 390)
        with watched(page, view.host) as seen:
            pages, visited = ["/", f"/series/hostile-{place}"], list[str]()
            while pages and len(visited) < 25:
                path = pages.pop(0)
                visited.append(path)
                page.goto(f"http://{view.host}{path}")
                inert(page)
                assert sideways(page) == 0, path
                for href in page.evaluate("[...document.links].map(a => a.href)"):
                    there = href.partition("#")[0].removeprefix(f"http://{view.host}")
                    if there.startswith("/runs/") and there not in (*visited, *pages):
                        pages.append(there)
        assert any("/trials/" in path for path in visited)
        assert seen == []
        page.context.close()
