"""What a reader must know about the runs of a report before the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..findings.read_run import Findings
from ..findings.review import is_review
from ..findings.rule_judge import offline_notices
from ..records.target import KIND_NAMES
from ..text.count import counted
from .document import Cell, say, text_cell, words
from .failure_section import nothing_scored
from .run_section import KINDS_NOTICE, SEARCH_NOTICE, SHORT_HASH, kinds_of
from .series import Runs

FAKE_NOTICE = "fake: targets return canned text written for this project; no model was called."
REVIEW_NOTICE = (
    "This is a review: people judged flagged trials of an earlier run and a sample of the others. These shares are of "
    "those trials alone; the section on the review has the corrected shares of the whole run."
)
WORDING_NOTICE = "The questions cover the topics of the published study in our own words."


@dataclass(frozen=True)
class Notice:
    cells: tuple[Cell, ...]
    urgent: bool = False
    """Something is not as planned, so it is on the first screen."""


def notices(runs: Runs) -> Iterator[tuple[Cell, ...]]:
    """The notices as they are shown."""
    return (notice.cells for notice in notices_of(runs))


def notices_of(runs: Runs) -> Iterator[Notice]:
    """All notices; one that does not hold for all runs names its runs."""
    if not runs.runs:
        yield Notice(words("There is no run in this report."), urgent=True)
    by_notice: dict[Notice, list[str]] = {}
    for run in runs.runs:
        for notice in (*_usual(run.found), *_urgent(run.found)):
            by_notice.setdefault(notice, []).append(run.name)
    for notice, names in by_notice.items():
        which = "" if len(names) == len(runs.runs) else ", ".join(names)
        yield replace(notice, cells=(*say(text_cell(which), ": "), *notice.cells)) if which else notice


def _usual(found: Findings) -> Iterator[Notice]:
    plan = found.manifest.plan
    for text in offline_notices([found.manifest]):
        yield Notice(words(text))
    if found.fake:
        yield Notice(words(FAKE_NOTICE))
    kinds = kinds_of(plan)
    if len(kinds) > 1:
        yield Notice(words(KINDS_NOTICE.format(kinds=", ".join(KIND_NAMES[kind] for kind in kinds))))
    if any(plan.settings_of(target).search for target in plan.targets):
        yield Notice(words(SEARCH_NOTICE))
    if left_out := plan.points_left_out:
        yield Notice(
            words(
                f"{counted(left_out, 'point')} of the questions left out, because the figures of {plan.plan_year} are "
                "not published, or not in the file of figures. Nobody was scored on them. If they are out, add them to "
                "the file, or give one with --facts."
            )
        )
    if plan.wording:
        turns = "; ".join(f"{name} {', '.join(ids)}" for name, ids in plan.wording.turns.items())
        digest = plan.wording.sha256[:SHORT_HASH]
        yield Notice(
            say("Wording of ", text_cell(plan.wording.title), f" (sha256 {digest}) used in ", text_cell(turns), ".")
        )
    if found.study_groups:
        yield Notice(words(WORDING_NOTICE if not plan.wording else "All other questions are in our own words."))
    if found.manifest.transcripts:
        source = text_cell(found.manifest.transcripts.run_id)
        yield Notice(say("Judged again: the replies are those of run ", source, "; no target was asked."))
    for name, service in found.services.items():
        if service.unlike and not service.differs:
            served = text_cell(", ".join(sorted(service.served)))
            text = " reported a model id that cannot be compared with the one requested: "
            yield Notice(say(text_cell(name), text, served, "."))
    yield from _marked(found)


def _urgent(found: Findings) -> Iterator[Notice]:
    plan = found.manifest.plan
    done = len(found.rows)
    if is_review(found.manifest):
        yield Notice(words(REVIEW_NOTICE), urgent=True)
    if found.incomplete:
        yield Notice(words(found.incomplete), urgent=True)
    if found.nothing_scored:
        yield Notice(nothing_scored(found), urgent=True)
    if done > found.planned:
        more = f"This run has more trials than planned: {done:,} instead of {found.planned:,}."
        yield Notice(words(more), urgent=True)
    for reason in plan.expired:
        yield Notice(say("Expired answer key, allowed by the user: ", text_cell(reason), "."), urgent=True)
    if plan.coming:
        text = (
            f"Answer keys of the coming plan year: {plan.plan_year} had not begun when this run was planned, so its "
            "figures may still be published or corrected."
        )
        yield Notice(words(text), urgent=True)
    for name, service in found.services.items():
        if service.differs:
            served = text_cell(", ".join(sorted(service.served)))
            text = " was answered by a different model than the one requested: "
            yield Notice(say(text_cell(name), text, served, "."), urgent=True)
    for deviation in found.manifest.registration.deviations if found.manifest.registration else ():
        yield Notice(say("Deviation from the pre-registration: ", text_cell(deviation)), urgent=True)


def _marked(found: Findings) -> Iterator[Notice]:
    for target in found.plan_targets:
        marked = sum(row.marked for row in found.of_target(target))
        if marked:
            yield Notice(
                say(
                    f"The screen marked {counted(marked, 'reply', 'replies')} of ",
                    text_cell(target),
                    ": passages speak to those who check the answer, or hide something. Scores are for the replies as "
                    "written; the report gives bounds with and without these passages.",
                )
            )
