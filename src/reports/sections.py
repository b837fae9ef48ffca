"""A whole report as plain data, from what was read from runs. Nothing here is formatted for one rendering.

Several runs make one report: every target of every run has its own row. What belongs to a whole run (its files, prices,
judges) has one row or column per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..findings.judge_agreement import Judging
from ..findings.processes import collector_paused
from ..findings.read_run import Findings
from .citation_section import citation_sections
from .document import Bullets, Cell, Contents, Paragraph, Section, words
from .dollar_section import dollar_sections
from .exhibits import example_section, review_section
from .failure_section import cost_section, error_sections, failure_section, strength_section
from .first_section import LIMITS_ANCHOR, NOTICES_ANCHOR, TITLE, about, first_blocks, group_figures
from .glossary import glossary_section
from .judge_section import judging_section
from .marked_section import marked_section
from .notices import notices_of
from .review_section import review_sections
from .run_section import run_section, target_sections
from .score_section import distribution_section, flow_section, score_section, stability_section
from .series import Runs, runs_of
from .study_section import Counted, count_codes, study_section, topic_section

ETHICS = (
    "This system evaluates AI-generated information for research purposes only. "
    "It does not provide medical, legal, or insurance advice."
)
PEOPLE = (
    "The people, doctors and plans in the scenarios are invented. For help with Medicare, call 1-800-MEDICARE or your "
    "State Health Insurance Assistance Program (SHIP)."
)
METHODS = (
    "Each target was asked the questions of every scenario in order, as a person would ask them, in one conversation "
    "per trial. The same wording went to all targets.",
    "Judges split each reply into claims and compared every claim with written facts and nothing else: those of the "
    "scenario's answer key and, where it is silent, background facts of the same library. "
    "From the labels of the claims, fixed rules computed the code of each question and the scores of each trial; no "
    "model chose a code or a score.",
    "A share of questions is a mean over all different questions: answers to one question are averaged over repeats, "
    "then over variants, and every question has the same weight. A score is a mean over scenarios. The independent "
    "units of both are the scenarios; repeats and variants do not add to n. In a row about one question group of the "
    "study the question is fixed, and the units are the scripts in which it was asked.",
    "Some of our own questions can be answered only by looking something up, which a bare model cannot do. There, a "
    "reply that says so and names where to look is the complete answer.",
    "Intervals are 95% mid-P limits with the effective n of a variance clustered by scenario; if all answers agree, "
    "the limit is exact. Differences from counselors combine the limits of both sides. With too few independent "
    "units there is no interval, and the report says why.",
    "A reply that refuses, is blocked or is empty conveys nothing: it counts as not substantive. What failed, was cut "
    "off, was not asked or could not be judged is missing: it is left out, and the report gives the lowest and highest "
    "value if all missing answers had been wrong or right.",
)
LIMITS = (
    "Each result is a snapshot of one model on these dates, with this wording and this answer key. It does not "
    "generalize to other models, dates or wordings.",
    "Judge models make mistakes. Read the quotes and reasons before you rely on a single verdict.",
    "Repeats of one question to one model are more alike than different questions, so they show how consistent a model "
    "is rather than how it would do on other questions.",
    "Not measured: intent, tone, user experience, persuasion, and whether anyone acted on an answer.",
    "A bare model is not what most people use: their assistants have a system prompt and may search the web. Only "
    "targets that are marked with a system prompt or with search say anything about those.",
    "Counselors could look things up; a bare model cannot. The published study used different questions, plans, "
    "doctors and places.",
    "Answer keys were written from the sources they name, some of them read in a secondary source, and can be wrong.",
)


@collector_paused()
def contents(findings: Sequence[Findings], judgings: Sequence[Judging | None]) -> Contents:
    """The whole report of these runs; `judgings` has one entry per run, None if its judges were not analyzed."""
    runs = runs_of(findings, judgings)
    counted = count_codes(runs)
    listed = list(notices_of(runs))
    noted = tuple(notice.cells for notice in listed)
    urgent = tuple(notice.cells for notice in listed if notice.urgent)
    sections = (*_results(runs, counted), *_how(runs), *_appendix(runs, noted))
    return Contents(
        title=words(TITLE),
        about=about(runs),
        first=(*first_blocks(runs, len(noted)), *((Bullets(urgent, notices=True),) if urgent else ())),
        notices=noted,
        sections=sections,
    )


def _results(runs: Runs, counted: Counted) -> Iterator[Section]:
    yield _study(runs, counted)
    yield replace(topic_section(runs, counted), short="Other questions")
    yield example_section(runs)
    yield replace(strength_section(runs), short="What went well")
    yield from citation_sections(runs)
    yield stability_section(runs)
    yield from dollar_sections(runs)
    yield cost_section(runs)
    yield replace(score_section(runs), short="Scores", part="Details")
    yield replace(distribution_section(runs), short="Spread of scores")
    yield replace(failure_section(runs, counted), short="Failure modes")


def _study(runs: Runs, counted: Counted) -> Section:
    """The chart of all targets comes first; the tables of each target are folded below it."""
    made = replace(study_section(runs, counted), short="Beside counselors", part="Results")
    figures = group_figures(runs)
    if not figures:
        return made
    folded = tuple(replace(part, folded=True) for part in made.sections)
    return replace(made, blocks=(*figures, *made.blocks), sections=folded)


def _how(runs: Runs) -> Iterator[Section]:
    yield Section(words("How it was done"), (Bullets(tuple(map(words, METHODS))),), short="Methods", part="Methods")
    yield from target_sections(runs)
    yield flow_section(runs)
    yield from error_sections(runs)
    yield judging_section(runs)
    yield from review_sections(runs)
    yield marked_section(runs)
    yield review_section(runs)
    yield Section(words("Limits"), (Bullets(tuple(map(words, LIMITS))),), anchor=LIMITS_ANCHOR)
    yield Section(words("Ethics and framing"), (Paragraph(words(ETHICS)), Paragraph(words(PEOPLE))), short="Ethics")


def _appendix(runs: Runs, noted: Sequence[tuple[Cell, ...]]) -> Iterator[Section]:
    yield replace(glossary_section(), part="Appendix")
    if noted:
        yield Section(words("Notices"), (Bullets(tuple(noted)),), anchor=NOTICES_ANCHOR)
    yield run_section(runs)
