"""A whole report as plain data, from what was read from runs. Nothing here is formatted for one rendering.

Several runs make one report: every target of every run has its own row. What belongs to a whole run (its files, prices,
judges) has one row or column per run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...text.count import counted
from ..analysis.judge_agreement import Judging
from ..analysis.read_run import Findings
from ..analysis.rule_judge import offline_notices
from .document import Bullets, Cell, Contents, Paragraph, Section, Text, say, words
from .dollar_section import dollar_sections
from .exhibits import example_section, review_section
from .failure_section import cost_section, failure_section
from .judge_section import judging_section
from .marked_section import marked_section
from .run_section import SHORT_HASH, run_section
from .score_section import distribution_section, flow_section, scenario_table, score_section
from .series import Runs, runs_of
from .study_section import count_codes, question_table, study_section, topic_section

FAKE_NOTICE = "fake: targets return canned text written for this project; no model was called."
WORDING_NOTICE = "The questions cover the topics of the published study in our own words."
ETHICS = (
    "This system evaluates AI-generated information for research purposes only. "
    "It does not provide medical, legal, or insurance advice."
)
PEOPLE = (
    "The people, doctors and plans in the scenarios are invented. For help with Medicare, call 1-800-MEDICARE or your "
    "State Health Insurance Assistance Program (SHIP)."
)
LIMITS = (
    "Each result is a snapshot of one model on these dates, with this wording and this answer key. It does not "
    "generalize to other models, dates or wordings.",
    "Judge models make mistakes. Read the quotes and reasons before you rely on a single verdict.",
    "Intervals are Student's t over trials for means, Wilson's for shares and Newcombe's for differences. All treat "
    "trials as independent. Repeats of one question to one model are more alike than independent trials, so they show "
    "how consistent a model is rather than how it would do on other questions.",
    "If all values are equal, or there is only one, no interval is given, because the spread is unknown.",
    "Not measured: intent, tone, user experience, persuasion, answers with live web access or retrieval, and whether "
    "anyone acted on an answer.",
    "Counselors could look things up; a bare model cannot. The published study used different questions, plans, "
    "doctors and places.",
    "Answer keys were written from the sources they name, some of them read in a secondary source, and can be wrong.",
)


def contents(findings: Sequence[Findings], judgings: Sequence[Judging | None]) -> Contents:
    """The whole report of these runs; `judgings` has one entry per run, None if its judges were not analyzed."""
    runs = runs_of(findings, judgings)
    counted = count_codes(runs)
    per_scenario = scenario_table(runs)
    names = say(*_between(", ", [Text(run.name) for run in runs.runs]))
    return Contents(
        title=(*say(f"AI Medicare evaluation: {'runs' if runs.several else 'run'} "), *names),
        about=(),
        first=(Bullets(tuple(notices(runs)), notices=True),),
        notices=tuple(notices(runs)),
        sections=(
            run_section(runs),
            flow_section(runs),
            score_section(runs, per_scenario),
            distribution_section(runs),
            study_section(runs, counted),
            topic_section(runs, counted),
            failure_section(runs, counted),
            *dollar_sections(runs),
            example_section(runs),
            review_section(runs),
            marked_section(runs),
            judging_section(runs),
            cost_section(runs),
            Section(words("Limits"), (Bullets(tuple(words(limit) for limit in LIMITS)),)),
            Section(words("Ethics and framing"), (Paragraph(words(ETHICS)), Paragraph(words(PEOPLE)))),
        ),
        per_scenario=per_scenario,
        per_question=question_table(runs, counted),
    )


def _between(gap: str, cells: Sequence[Cell]) -> Iterator[str | Cell]:
    for place, cell in enumerate(cells):
        if place:
            yield gap
        yield cell


def notices(runs: Runs) -> Iterator[tuple[Cell, ...]]:
    """What every reader must know before the numbers; a notice that does not hold for all runs names its runs."""
    if not runs.runs:
        yield words("There is no run in this report.")
    by_notice: dict[tuple[Cell, ...], list[str]] = {}
    for run in runs.runs:
        for notice in _notices_of(run.found):
            by_notice.setdefault(notice, []).append(run.name)
    for notice, names in by_notice.items():
        which = "" if len(names) == len(runs.runs) else ", ".join(names)
        yield (*say(Text(which), ": "), *notice) if which else notice


def _notices_of(found: Findings) -> Iterator[tuple[Cell, ...]]:
    plan = found.manifest.plan
    yield from map(words, offline_notices([found.manifest]))
    if found.fake:
        yield words(FAKE_NOTICE)
    for reason in plan.expired:
        yield say("Expired answer key, allowed by the user: ", Text(reason), ".")
    if plan.coming:
        yield words(
            f"Answer keys of the coming plan year: {plan.plan_year} had not begun when this run was planned, so its "
            "figures may still be published or corrected."
        )
    if left_out := plan.points_left_out:
        yield words(
            f"{counted(left_out, 'point')} of the questions left out, because the figures of {plan.plan_year} are "
            "not published, or not in the file of figures. Nobody was scored on them. If they are out, add them to "
            "the file, or give one with --facts."
        )
    if plan.wording:
        turns = "; ".join(f"{name} {', '.join(ids)}" for name, ids in plan.wording.turns.items())
        digest = plan.wording.sha256[:SHORT_HASH]
        yield say("Wording of ", Text(plan.wording.title), f" (sha256 {digest}) used in ", Text(turns), ".")
    if any(turn.question_group for planned in plan.scenarios for turn in planned.scenario.scripted_turns):
        yield words(WORDING_NOTICE if not plan.wording else "All other questions are in our own words.")
    for name, service in found.services.items():
        if service.differs:
            served = Text(", ".join(sorted(service.served)))
            yield say(Text(name), " was answered by a different model than the one requested: ", served, ".")
    if found.manifest.transcripts:
        source = Text(found.manifest.transcripts.run_id)
        yield say("Judged again: the replies are those of run ", source, "; no target was asked.")
    for deviation in found.manifest.registration.deviations if found.manifest.registration else ():
        yield say("Deviation from the pre-registration: ", Text(deviation))
    yield from _marked_notices(found)
    done = len(found.rows)
    if done < found.planned:
        yield words(f"Incomplete: this run has {done} of {found.planned} planned trials.")
    if done > found.planned:
        yield words(f"This run has more trials than planned: {done} instead of {found.planned}.")


def _marked_notices(found: Findings) -> Iterator[tuple[Cell, ...]]:
    for target in found.plan_targets:
        marked = sum(row.marked for row in found.of_target(target))
        if marked:
            yield say(
                f"The screen marked {counted(marked, 'reply', 'replies')} of ",
                Text(target),
                ": passages speak to those who check the answer, or hide something. Scores are for the replies as "
                "written; the report gives bounds with and without these passages.",
            )
