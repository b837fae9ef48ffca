"""Series in the workbench: what is listed, what a name leads to, and that links leave neither the folder nor a run."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from src.series.folder import POINTS
from src.store.run_folder import SERIES
from src.workbench.run_folders import RunFolders
from src.workbench.view_app import SeriesPages, runs_page, trial_page
from tests.findings.made_series import Made, make_series
from tests.findings.report_run import small_run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_series(tmp_path / "monthly", Made(months=2, january=None, change=1))
    small_run(tmp_path / "other")
    return tmp_path


def test_series_are_listed_above_runs_and_their_runs_are_not(runs: Path) -> None:
    folders = RunFolders(runs)
    assert [one.name for one in folders.heads()] == ["other"]
    page = runs_page(folders)
    assert page.index('href="/series/monthly">Monthly check<') < page.index('href="/runs/other/report.html"')
    assert page.count('href="/series/') == 1
    for label, text in (("last point", "2026-06"), ("verdict", "no alarm"), ("points", "2")):
        assert f'data-label="{label}">{text}</td>' in page


def test_a_link_on_the_page_leads_to_the_trial_of_that_point(runs: Path) -> None:
    folders = RunFolders(runs)
    page = SeriesPages(folders).page("monthly")
    assert page is not None
    found = re.findall(r'href="/runs/([^/"]+)/trials/([^"]+)">Trial in (2026-\d\d)<', page)
    assert {period for _, _, period in found} == {"2026-05", "2026-06"}
    for name, trial_id, period in found:
        run = folders.open(unquote(name))
        assert run and f"/points/{period}/run/" in run.folder.as_posix() and run.series_name == "monthly"
        opened = trial_page(run, unquote(trial_id))
        assert opened and 'href="/series/monthly"' in opened, "and back"
    assert len(re.findall(r'<th scope="row"><a href="/runs/[^/"]+/report.html"><bdi>2026-', page)) == 8, (
        "in every table"
    )


def test_a_folder_of_one_series_can_be_viewed(runs: Path) -> None:
    folders = RunFolders(runs / "monthly")
    assert list(folders.series()) == ["monthly"] and folders.heads() == []
    assert set(folders.folders()) == {"monthly:2026-05:run:20260503T060000Z", "monthly:2026-06:run:20260603T060000Z"}
    assert "There is no run" not in runs_page(folders)


@pytest.mark.parametrize("name", ["..", "monthly/../monthly", "", "other", "monthly:2026-05:run:20260503T060000Z"])
def test_only_names_of_the_listing_are_series(runs: Path, name: str) -> None:
    assert SeriesPages(RunFolders(runs)).page(name) is None


def test_symbolic_links_are_not_followed(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make_series(elsewhere / "secret", Made(months=1, january=None))
    (runs / "link").symlink_to(elsewhere / "secret", target_is_directory=True)
    (runs / "monthly" / "points" / "2026-07").symlink_to(elsewhere / "secret" / "points" / "2026-05")
    folders = RunFolders(runs)
    assert list(folders.series()) == ["monthly"]
    assert not [name for name in folders.folders() if "link" in name or "2026-07" in name]


def test_a_run_outside_of_what_is_served_is_named_and_not_linked(runs: Path) -> None:
    """A point can be a run that was made elsewhere."""
    (runs / "monthly" / "points" / "2026-05").rename(runs / "monthly" / "moved")
    page = SeriesPages(RunFolders(runs)).page("monthly")
    assert page and "is missing" in page and "monthly%3A2026-05" not in page and "monthly%3A2026-06" in page


def test_a_page_is_made_again_when_a_point_is_added(runs: Path) -> None:
    views = SeriesPages(RunFolders(runs))
    before = views.page("monthly")
    assert views.page("monthly") is before
    later = make_series(runs.parent / f"{runs.name}-later", Made(months=3, january=None, change=1))
    for name in (SERIES, POINTS):
        (runs / "monthly" / name).write_bytes((later / name).read_bytes())
    after = views.page("monthly")
    assert after and after != before and "2026-07" in after


def test_a_damaged_series_does_not_hide_the_others(runs: Path) -> None:
    path = runs / "monthly" / POINTS
    path.write_bytes(path.read_bytes().replace(b"2026-05", b"2026-04", 1))
    page = runs_page(RunFolders(runs))
    assert 'data-label="verdict">damaged: verify says what is wrong</td>' in page
    assert 'href="/runs/other/report.html"' in page
