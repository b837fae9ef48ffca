"""The pages of `compare`: which target is better, on which measures, and how sure that is; or two judgings of the same
transcripts: which labels and codes changed, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ..findings.compare import Compared, Comparison, best_first
from ..findings.compare_judges import Change, ChangedCode, JudgesCompared, Side
from ..findings.estimates import Estimated
from ..scoring.definitions import KEY_COVERAGE, MEASURES, READING_ORDER
from ..text.count import counted
from ..text.rounded import percent, rounded
from .analysis_pages import (
    CHART_ROWS,
    MISSING_COLUMN,
    SENTENCES,
    answers,
    caveat,
    difference_mark,
    difference_panel,
    methods_section,
    notice_sections,
    p_text,
    without_empty,
)
from .analysis_sentences import comparison_sentences
from .document import (
    NOTHING,
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
    Entry,
    Exhibit,
    Figure,
    Paragraph,
    Section,
    Table,
    code_cell,
    count_cell,
    gap_cell,
    passage_cell,
    say,
    share_cell,
    text_cell,
    words,
)
from .forest import ForestChart, ForestGroup, ForestRow
from .score_section import UNDECIDED

COMPARE_NOTE = (
    "Two targets are compared on the questions that both answered in trials of the same scenario, variant and "
    "repetition. Answers to one question are averaged over repeats, then over variants; n is the number of different "
    "questions (of scenarios, for scores of whole trials). Intervals are 95%, take "
    "scenarios as the independent units, and stay within the possible range (mid-P limits with the effective n of the "
    "CR2 variance). p comes from flipping the signs of whole scenarios, adjusted within a measure by the method of "
    "Holm. d_z is the effect size: the mean difference divided by the standard deviation of the differences. MDD is "
    "the minimum detectable difference at 80% power, from the same error as the interval."
)
MISSING_NOTE = (
    "Missing answers (failed, cut off, not asked, or not judged) are left out. Where there are any, a range says where "
    "the difference would be if all of them had been at one end of the scale. Refused, blocked and empty replies count "
    "as answers that convey nothing."
)
COVERAGE_NOTE = (
    f"Key coverage is {KEY_COVERAGE.brief} (95% interval). Accuracy speaks of these claims only; {UNDECIDED}."
)


def compare_page(found: Compared, *, floor: float) -> Contents:
    """`floor` is the smallest difference that matters."""
    measures = [name for name in READING_ORDER if name in found.measures]
    sentences = comparison_sentences(found, measures, floor)
    first = [*answers(sentences, "the tables below have all comparisons"), *_charts(found, measures[:2])]
    first.append(caveat(found.systems, found.notices))
    said = set(sentences[:SENTENCES])
    sections = [
        _measure_section(
            found, measure, [one for one in comparison_sentences(found, [measure], floor) if one not in said]
        )
        for measure in measures
    ]
    return Contents(
        words("Which AI assistant answers Medicare questions better?"),
        say(
            f"{counted(len(found.systems), 'target')} compared on the same questions, "
            f"{counted(len(measures), 'measure')}. Points are questions of 100, or hundredths of a score."
        ),
        tuple(first),
        (*sections, *_coverage(found), methods_section(method_notes(found, floor)), *notice_sections(found.notices)),
    )


def method_notes(found: Compared, floor: float) -> list[str]:
    """How it was done, for the terminal and the page."""
    notes = [COMPARE_NOTE, MISSING_NOTE]
    if "accuracy" in found.measures:
        notes.append(COVERAGE_NOTE)
    notes.append(f"A difference below {percent(floor)} points is not called one (--floor).")
    if found.noise_floor is not None:
        notes.append(noise_text(found.noise_floor))
    return notes


def noise_text(floor: float) -> str:
    if not floor:
        return "Asked again, the judges changed no label; the report says how many labels that is."
    return f"The judges' noise floor is {percent(floor, 1)}%; smaller differences are not called better."


def _charts(found: Compared, measures: Sequence[str]) -> list[Block]:
    """The first measures side by side, one row for each pair of targets."""
    pairs = list(dict.fromkeys((one.first, one.second) for one in found.comparisons))
    by_pair = {(one.measure, one.first, one.second): one.difference for one in found.comparisons}
    if not pairs or not measures:
        return []
    panels = tuple(
        difference_panel(
            f"{MEASURES[measure].caption}, points", (by_pair[measure, first, second] for first, second in pairs)
        )
        for measure in measures
    )
    rows = tuple(
        ForestRow(
            f"{first}\nminus {second}", tuple(difference_mark(by_pair[measure, first, second]) for measure in measures)
        )
        for first, second in pairs[:CHART_ROWS]
    )
    cut = f" {CHART_ROWS} of {len(pairs)} pairs of targets shown." if len(pairs) > CHART_ROWS else ""
    beside = f"Dots are differences, the first target minus the second; lines are 95% intervals.{cut}"
    return [Figure(ForestChart("differences", "Differences between targets", panels, (ForestGroup("", rows),)), beside)]


def _measure_section(found: Compared, measure: str, sentences: Sequence[tuple[Cell, ...]]) -> Section:
    comparisons = [one for one in found.comparisons if one.measure == measure]
    name = MEASURES[measure].in_sentence
    table = Table(
        f"Differences in {name}: the first target minus the second",
        (
            Column("first", "text"),
            Column("second", "text"),
            Column("difference (95% interval), points", "other"),
            Column(MISSING_COLUMN, "other"),
            Column("missing"),
            Column("n"),
            Column("scenarios"),
            Column("p, Holm", "other"),
            Column("d_z", "other"),
            Column("MDD, points", "other"),
            Column("verdict", "text"),
        ),
        tuple(map(_row, comparisons)),
    )
    blocks: list[Block] = [
        without_empty(table, MISSING_COLUMN),
        *(Paragraph(sentence) for sentence in sentences),
        _own_table(found, measure, name),
    ]
    return Section(words(name.capitalize()), tuple(blocks), short=MEASURES[measure].caption)


def _row(one: Comparison) -> tuple[Cell, ...]:
    gap, paired = one.difference, one.paired
    return (
        text_cell(one.first),
        text_cell(one.second),
        gap_cell(gap.mean, gap.low, gap.high, gap.clusters),
        Cell(missing_range(paired.lowest, paired.highest)),
        count_cell(paired.one_sided + paired.neither),
        count_cell(gap.n),
        count_cell(gap.clusters),
        Cell(p_text(one.p_holm)),
        Cell(NOTHING if gap.effect.d_z is None else rounded(gap.effect.d_z).replace("-", "−")),
        Cell(NOTHING if one.minimum is None else percent(one.minimum)),
        text_cell(one.verdict),
    )


def missing_range(low: float | None, high: float | None) -> str:
    """Where a difference would be if missing answers had been at one end of the scale."""
    if low is None or high is None:
        return NOTHING
    return " to ".join(percent(one).replace("-", "−") for one in (low, high))


def _own_table(found: Compared, measure: str, name: str) -> Table:
    return Table(
        f"Each target on its own, {name}, the best first",
        (
            Column("target", "text"),
            Column("value (95% interval)", "share"),
            Column("n"),
            Column("scenarios"),
            Column("effective n", "other"),
            Column("missing"),
        ),
        tuple(_own_row(system, found.means[measure][system]) for system in best_first(found, measure)),
    )


def _own_row(system: str, one: Estimated) -> tuple[Cell, ...]:
    return (
        text_cell(system),
        share_cell(one),
        count_cell(one.questions),
        count_cell(one.units),
        Cell(NOTHING if one.effective is None else rounded(one.effective, 0)),
        count_cell(one.missing),
    )


def _coverage(found: Compared) -> tuple[Section, ...]:
    if "accuracy" not in found.measures:
        return ()
    rows = tuple((text_cell(name), share_cell(share), count_cell(share.n)) for name, share in found.coverage.items())
    columns = (Column("target", "text"), Column("key coverage (95% interval)", "share"), Column("factual claims"))
    table = Table("Factual claims that the answer keys could decide", columns, rows)
    return (Section(words("Key coverage"), (Paragraph(words(COVERAGE_NOTE)), table)),)


SHOWN = 200
"""Changed claims, and changed codes, on the page."""
JUDGES_NOTE = (
    "Both runs judged the same replies. Claims may have been extracted again, so they are matched within a reply by "
    "what they quote. A claim that matches none of the other run is counted as only in its own."
)


def judges_page(found: JudgesCompared, *, first: str, second: str) -> Contents:
    """`first` and `second` name the two runs."""
    return Contents(
        words("Do two judgings of the same answers agree?"),
        say("Run ", text_cell(first), " and run ", text_cell(second), "."),
        (Paragraph(judges_sentence(found), "answer"), caveat((), found.notices)),
        (
            Section(words("What differs between the judgings"), (Bullets(_differences(found)),), short="Differences"),
            Section(words("Labels of claims"), (_moves(found), *_claims(found))),
            Section(words("Study codes of questions"), (_codes(found), *_changed_codes(found))),
            methods_section((JUDGES_NOTE,)),
            *notice_sections(found.notices),
        ),
    )


def judges_sentence(found: JudgesCompared) -> tuple[Cell, ...]:
    total, changed = found.same + len(found.changed), len(found.changed)
    codes = sum(found.codes_changed.values())
    share = f" ({percent(changed / total)}%)" if total else ""
    return words(
        f"Of {counted(total, 'claim')} in both judgings of {counted(found.trials, 'trial')}, {changed:,} got another "
        f"label{share}; of {counted(found.codes_same + codes, 'question')}, {codes:,} got another code."
    )


def _differences(found: JudgesCompared) -> tuple[tuple[Cell, ...], ...]:
    return tuple((text_cell(one),) for one in found.differences) or (words("no known change"),)


def _moves(found: JudgesCompared) -> Table:
    rows = tuple(
        (text_cell(str(one.first)), text_cell(str(one.second)), count_cell(n))
        for one, n in sorted(found.moves.items(), key=lambda move: (-move[1], str(move[0])))
    )
    caption = f"Labels of matched claims; {found.gone:,} only in the first run, {found.new:,} only in the second"
    return Table(caption, (Column("first", "text"), Column("second", "text"), Column("claims")), rows)


def _claims(found: JudgesCompared) -> list[Block]:
    return [*_cut(len(found.changed), "changed claim"), *(_claim(one) for one in found.changed[:SHOWN])]


def _cut(n: int, what: str) -> list[Block]:
    return [Paragraph(words(f"{SHOWN} of {n:,} {what}s shown; --json has all."))] if n > SHOWN else []


def _claim(one: Change) -> Exhibit:
    title = say(
        code_cell(one.trial_id), " ", text_cell(one.turn_id), ": ",
        text_cell(str(one.before.label)), " → ", text_cell(str(one.after.label)),
    )  # fmt: skip
    quote = passage_cell([(one.quote, False)]) if one.quote else Cell("no quote")
    return Exhibit(title, (("quote", (quote,)), *_side("first", one.before), *_side("second", one.after)))


def _side(name: str, side: Side) -> tuple[Entry, ...]:
    evidence = (name, say(text_cell(str(side.label)), " (", text_cell(", ".join(side.evidence) or "–"), ")"))
    return (evidence, *(("reason", (text_cell(reason),)) for reason in side.reasons))


def _codes(found: JudgesCompared) -> Table:
    rows = tuple(
        (text_cell(one.question_group), text_cell(one.first), text_cell(one.second), count_cell(n))
        for one, n in sorted(found.codes_changed.items(), key=lambda change: (-change[1], str(change[0])))
    )
    columns = (Column("question", "text"), Column("first", "text"), Column("second", "text"), Column("trials"))
    return Table(f"Changed codes; {found.codes_same:,} are the same", columns, rows)


def _changed_codes(found: JudgesCompared) -> list[Block]:
    return [*_cut(len(found.changed_codes), "changed code"), *(_code(one) for one in found.changed_codes[:SHOWN])]


def _code(one: ChangedCode) -> Exhibit:
    title = say(
        code_cell(one.trial_id), " ", text_cell(one.question_group), ": ",
        text_cell(str(one.before)), " → ", text_cell(str(one.after)),
    )  # fmt: skip
    return Exhibit(
        title, (("first", (text_cell(one.reason_before or "–"),)), ("second", (text_cell(one.reason_after or "–"),)))
    )
