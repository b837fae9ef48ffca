"""The section on a review: how far people agree with each other and with judges, and headlines corrected by people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..findings.review import (
    JUDGES,
    PEOPLE,
    CorrectedHeadline,
    ReadReview,
    ReviewAgreement,
    corrected_headlines,
    is_review,
    read_review,
    review_agreement,
    unfinished,
)
from ..scoring.definitions import CODE_HEADINGS, ShareName
from . import read_sections
from .document import Section
from .series import ReportedRun, Runs


class _Read(NamedTuple):
    run: ReportedRun
    review: ReadReview
    agreement: ReviewAgreement
    headlines: dict[str, dict[ShareName, CorrectedHeadline]]
    rated_twice: list[set[str]]
    """For each claim that two or more people judged: the labels that they gave before anyone settled it."""


def review_sections(runs: Runs) -> Iterator[Section]:
    """One section if people judged a run of this report; nothing otherwise."""
    found = [_read(run) for run in runs.runs if is_review(run.found.manifest)]
    known = [one for _, one in found if isinstance(one, _Read)]
    by_target = [one for read in known for one in read.headlines.items()]
    reasons: dict[tuple[bool, str], list[str]] = {}
    for target, by_code in by_target:
        for one in by_code.values():
            if why_not := one.corrected.why_not:
                reasons.setdefault((one.corrected.value is None, why_not), []).append(target)
    last = [list(by_code.values())[-1] for _, by_code in by_target]
    if found:
        yield read_sections.section(
            "review",
            runs=runs,
            found=found,
            known=known,
            reasons=reasons,
            unsettled=sum(one.unsettled for one in last),
            outside=sum(one.outside for one in last),
            unfinished=unfinished,
            headings=CODE_HEADINGS,
            all_people_and_judges=(PEOPLE, JUDGES),
        )


def _read(run: ReportedRun) -> tuple[ReportedRun, _Read | str]:
    review = read_review(run.found)
    if isinstance(review, str):
        return run, review
    given = [[label for rater, label in claim.labels.items() if rater.kind == "person"] for claim in review.claims]
    twice = [set(labels) for labels in given if len(labels) > 1]
    return run, _Read(run, review, review_agreement(review), corrected_headlines(review), twice)
