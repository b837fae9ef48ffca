"""A whole report as plain data, from what was read from runs. Nothing here is formatted for one rendering.

Several runs make one report: every target of every run has its own row. What belongs to a whole run (its files, prices,
judges) has one row or column per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..findings.judge_agreement import Judging
from ..findings.processes import collector_paused
from ..findings.read_run import Findings
from ..trials.terms import alphabetical
from . import read_sections
from .citation_section import citation_sections
from .document import Bullets, Contents, Line, Section, words
from .dollar_section import dollar_sections
from .exhibits import example_section, review_section
from .failure_section import cost_section, error_sections, failure_sections
from .first_section import TITLE, about, first_blocks, group_figures
from .judge_section import judging_section
from .marked_section import marked_section
from .notices import notices_of
from .review_section import review_sections
from .run_section import run_sections
from .score_section import score_sections
from .series import Runs, runs_of
from .study_section import count_codes, study_sections


@collector_paused()
def contents(findings: Sequence[Findings], judgings: Sequence[Judging | None]) -> Contents:
    """The whole report of these runs; `judgings` has one entry per run, None if its judges were not analyzed."""
    runs = runs_of(findings, judgings)
    listed = list(notices_of(runs))
    noted = tuple(notice.cells for notice in listed)
    urgent = tuple(notice.cells for notice in listed if notice.urgent)
    return Contents(
        title=words(TITLE),
        about=about(runs),
        first=(*first_blocks(runs, len(noted)), *((Bullets(urgent, notices=True),) if urgent else ())),
        notices=noted,
        sections=tuple(_sections(runs, noted)),
    )


def _sections(runs: Runs, noted: Sequence[Line]) -> Iterator[Section]:
    counted = count_codes(runs)
    methods, ethics, glossary, *notices = read_sections.sections("about", terms=alphabetical(), noted=noted)
    study, topics = study_sections(runs, counted, group_figures(runs))
    strengths, failures = failure_sections(runs, counted)
    flow, scores, spread, stability = score_sections(runs)
    *targets, what_was_run = run_sections(runs)
    yield from (study, topics, example_section(runs), strengths)
    yield from (*citation_sections(runs), stability, *dollar_sections(runs), cost_section(runs))
    yield from (scores, spread, failures)
    yield from (methods, *targets, flow, *error_sections(runs), judging_section(runs))
    yield from (*review_sections(runs), marked_section(runs), review_section(runs))
    yield from (limits_section(), ethics, glossary, *notices, what_was_run)


def limits_section() -> Section:
    return read_sections.section("limits")
