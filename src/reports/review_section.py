"""The section on a review: how far people agree with each other and with judges, and headlines corrected by people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..findings.review import JUDGES, PEOPLE, RatedClaim, Rater, Review, is_review, read_review, unfinished
from ..findings.review_agreement import (
    CorrectedHeadline,
    PairAgreement,
    ReviewAgreement,
    corrected_headlines,
    review_agreement,
)
from ..scoring.definitions import CODE_HEADINGS
from ..stats.agreement import Agreement
from ..stats.labeled_sample import StratumLabels
from ..text.count import counted
from .document import (
    NOTHING,
    Block,
    Cell,
    Column,
    Paragraph,
    Section,
    Table,
    count_cell,
    number_cell,
    of_cell,
    say,
    share_cell,
    text_cell,
    words,
)
from .series import Run, Runs

_PARTS = {"flagged": "flagged trials", "sampled": "sampled from the others", "whole run": "whole run, estimated"}
_HEADLINE = (
    "Corrected: the judges' share plus, for flagged trials and for the others, the mean difference between people's "
    "and judges' codes on the trials that people judged, weighted by how many trials there are of each (stratified "
    "difference estimator, or prediction-powered inference). Its interval carries the choice of scenarios and of "
    "sampled trials. People judged the claims that the extractor found; what it missed, they did not see."
)
_AGREEMENT = (
    "Flagged trials are the hard ones. The whole run is estimated from both: each trial counts for the number of "
    "trials that it represents. Intervals are from resampling scenarios, exact if two always agree. A dash means not "
    "defined."
)


_PAIR_COLUMNS = (
    Column("first", "text"),
    Column("second", "text"),
    Column("on", "text"),
    Column("trials", "text"),
    Column("claims or questions"),
    Column("scenarios"),
    Column("agreement (95% interval)", "other"),
    Column("Cohen's kappa (95% interval)", "other"),
)


@dataclass(frozen=True)
class _Read:
    run: Run
    review: Review
    agreement: ReviewAgreement


def review_sections(runs: Runs) -> Iterator[Section]:
    """One section if people judged a run of this report; nothing otherwise."""
    reviews = [run for run in runs.runs if is_review(run.found.manifest)]
    if not reviews:
        return
    blocks: list[Block] = []
    known: list[_Read] = []
    for run in reviews:
        read = read_review(run.found)
        if isinstance(read, str):
            blocks.append(
                Paragraph(say(*_which(runs, run), "Nothing is compared with judges, because ", text_cell(read), "."))
            )
        else:
            known.append(_Read(run, read, review_agreement(read)))
            blocks.append(Paragraph(_what(runs, known[-1])))
    if known:
        blocks += [*_headline_blocks(runs, known), *_agreement_blocks(runs, known)]
    pairs = Section(words("Agreement by pair"), (_pair_table(runs, known),), folded=True)
    yield Section(words("Review by people"), tuple(blocks), (pairs,) if known else (), short="Review by people")


def _which(runs: Runs, run: Run) -> tuple[Cell, ...]:
    return say(text_cell(run.name), ": ") if runs.several else ()


def _what(runs: Runs, one: _Read) -> tuple[Cell, ...]:
    planned, review = one.review.planned, one.review
    readers = " or marked by a reader" if review.selected.doubted else ""
    text = (
        f" was reviewed by {counted(len(review.people), 'person', 'people')}: {counted(planned['flagged'], 'trial')} "
        f"flagged by its judges{readers}, and {planned['sampled']} drawn at random from {review.selected.of:,} others. "
        "Its own shares describe these trials as people judged them, not the whole run."
    )
    both = [claim for claim in review.claims if len(_given(claim)) > 1]
    if both:
        alike = sum(len(set(_given(claim))) == 1 for claim in both)
        text += f" Of {counted(len(both), 'claim')} that two or more people judged, they agreed on {alike:,}."
    not_yet = unfinished(review)
    return (
        *_which(runs, one.run),
        *say("Run ", text_cell(review.earlier.manifest.run_id), text, f" {not_yet}".rstrip()),
    )


def _given(claim: RatedClaim) -> list[str]:
    """What people said of a claim, before anybody settled it."""
    return [label for rater, label in claim.labels.items() if rater.kind == "person"]


def _headline_blocks(runs: Runs, known: Sequence[_Read]) -> Iterator[Block]:
    rows: list[tuple[Cell, ...]] = []
    reasons: dict[str, list[str]] = {}
    outside = unsettled = 0
    for one in known:
        for target, by_code in corrected_headlines(one.review).items():
            for code, found in by_code.items():
                rows.append(
                    (text_cell(one.run.name), text_cell(target), Cell(CODE_HEADINGS[code]), *_headline_cells(found))
                )
                if found.corrected.why_not:
                    what = "no corrected share" if found.corrected.value is None else "no interval"
                    reasons.setdefault(f"{what}: {found.corrected.why_not}", []).append(target)
            outside += found.outside
            unsettled += found.unsettled
    columns = (
        *runs.lead_columns(),
        Column("answers that are", "text"),
        Column("as judged (95% interval)", "share"),
        Column("corrected by people (95% interval)", "share"),
        Column("flagged trials judged by people", "other"),
        Column("other trials judged by people", "other"),
    )
    yield Table("The reviewed run: shares of all questions, as its judges gave them and as people correct them.",
                columns, tuple(rows))  # fmt: skip
    yield Paragraph(words(_HEADLINE))
    for why, targets in reasons.items():
        names = text_cell(", ".join(dict.fromkeys(targets)))
        yield Paragraph(say(names, ": ", Cell(why), "."))
    if unsettled:
        text = f"People did not settle {counted(unsettled, 'answer')}, so that these have no code of theirs."
        yield Paragraph(words(text))
    if outside:
        text = f"Outside the review: {counted(outside, 'trial')} without claims to judge, which count as they are."
        yield Paragraph(words(text))


def _headline_cells(found: CorrectedHeadline) -> Iterable[Cell]:
    yield share_cell(found.judged)
    yield share_cell(found.share)
    yield from (_labeled(stratum) for stratum in (found.flagged, found.sampled))


def _labeled(stratum: StratumLabels | None) -> Cell:
    return of_cell(stratum.labeled, stratum.trials) if stratum else Cell(NOTHING)


def _agreement_blocks(runs: Runs, known: Sequence[_Read]) -> Iterator[Block]:
    yield _people_table(runs, known)
    yield _main_table(runs, known)
    yield Paragraph(words(_AGREEMENT))
    for one in known:
        if one.agreement.why_no_whole:
            because = say("Agreement over the whole run is not known, because ", Cell(one.agreement.why_no_whole), ".")
            yield Paragraph((*_which(runs, one.run), *because))


def _people_table(runs: Runs, known: Sequence[_Read]) -> Table:
    rows = tuple(
        (*runs.lead(one.run), Cell(_PARTS[found.part]), count_cell(found.claims), _number(found.alpha))
        for one in known
        for found in one.agreement.people
    )
    columns = (
        *runs.lead_columns(target=False),
        Column("trials", "text"),
        Column("claims"),
        Column("Krippendorff's alpha (95% interval)", "other"),
    )
    return Table("Agreement of all people with each other, on labels of claims.", columns, rows)


def _main_table(runs: Runs, known: Sequence[_Read]) -> Table:
    """All people together with the judges' final labels and codes; pairs of single raters are in the folded table."""
    rows = tuple(
        (*runs.lead(one.run), *_pair_cells(pair)[2:])
        for one in known
        for pair in one.agreement.pairs
        if (pair.first, pair.second) == (PEOPLE, JUDGES)
    )
    columns = (*runs.lead_columns(target=False), *_PAIR_COLUMNS[2:])
    return Table("What people settled on, compared with the judges' final labels and codes.", columns, rows)


def _pair_table(runs: Runs, known: Sequence[_Read]) -> Table:
    rows = tuple((*runs.lead(one.run), *_pair_cells(pair)) for one in known for pair in one.agreement.pairs)
    columns = (*runs.lead_columns(target=False), *_PAIR_COLUMNS)
    return Table("Agreement by pair: people with people, and people with judges.", columns, rows)


def _pair_cells(pair: PairAgreement) -> tuple[Cell, ...]:
    return (
        _rater(pair.first),
        _rater(pair.second),
        Cell("labels of claims" if pair.on == "labels" else "codes of questions"),
        Cell(_PARTS[pair.part]),
        count_cell(pair.items),
        count_cell(pair.scenarios),
        *map(_number, (pair.agreement, pair.kappa)),
    )


def _number(found: Agreement) -> Cell:
    return number_cell(found.value, found.low, found.high)


def _rater(rater: Rater) -> Cell:
    return text_cell(rater.name)
