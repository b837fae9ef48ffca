"""The page of `drift`: whether the answers changed between two runs of the same study."""

from __future__ import annotations

from collections.abc import Sequence

from ..findings.drift import DECIDING, ChangedAnswer, Drifts, JudgeDrift, TargetDrift
from ..findings.pairs import PairedQuestions
from ..scoring.definitions import MEASURES, READING_ORDER, SHARES
from ..stats.drift import Drift, QuestionDrift
from ..text.count import counted
from ..text.rounded import percent
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
from .analysis_sentences import drift_sentence
from .compare_page import MISSING_NOTE, missing_range
from .document import (
    Block,
    Bullets,
    Cell,
    Column,
    Contents,
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

NO_KNOWN_CHANGE = "no known change"
SHOWN_REPLY = 1_200
"""Characters of a reply on the page."""
DRIFT_NOTE = (
    "Trials of the two runs are paired by scenario, variant and repetition. A target has drifted if a deciding measure "
    "(accuracy, or accurate and complete answers) changed by the floor or more and p is below 0.05; there is no "
    "evidence of drift if the 90% interval is within the floor, which equals two one-sided tests; no change means that "
    "nothing differs. p comes from flipping the signs of whole scenarios. Intervals are 95% and take scenarios as the "
    "independent units. Key, questions and judges must be the same, or one cannot tell."
)


def drift_page(found: Drifts, *, old: str, new: str) -> Contents:
    """`old` and `new` name the two runs."""
    sentences = [drift_sentence(target) for target in found.targets]
    first = [*answers(sentences, "the sections below have all targets"), *_chart(found)]
    first.append(caveat((target.target for target in found.targets), found.notices))
    return Contents(
        words("Have the answers changed?"),
        say("Run ", text_cell(old), " compared with the later run ", text_cell(new), f". Verdict: {found.verdict}."),
        tuple(first),
        (
            *(_target_section(one, told=len(sentences) > SENTENCES) for one in found.targets),
            _judge_section(found),
            methods_section((DRIFT_NOTE, MISSING_NOTE)),
            *notice_sections(found.notices),
        ),
    )


def _chart(found: Drifts) -> list[Block]:
    targets = [one for one in found.targets if any(one.measures[name].difference.mean is not None for name in SHARES)]
    if not targets:
        return []
    panels = tuple(
        difference_panel(f"{MEASURES[name].caption}, points", (one.measures[name].difference for one in targets))
        for name in SHARES
    )
    rows = tuple(
        ForestRow(one.target, tuple(difference_mark(one.measures[name].difference) for name in SHARES))
        for one in targets[:CHART_ROWS]
    )
    cut = f" {CHART_ROWS} of {len(targets)} targets shown." if len(targets) > CHART_ROWS else ""
    chart = ForestChart("changes", "Changes from the old run to the new", panels, (ForestGroup("", rows),))
    return [Figure(chart, f"Dots are changes, new minus old; lines are 95% intervals.{cut}")]


def _target_section(target: TargetDrift, *, told: bool) -> Section:
    """`told` if the first screen does not have all sentences."""
    known = tuple((text_cell(fact),) for fact in target.facts) or (words(NO_KNOWN_CHANGE),)
    before, after = target.coverage.before, target.coverage.after
    blocks: list[Block] = [
        *([Paragraph(drift_sentence(target))] if told else []),
        Paragraph(words("Known changes:")),
        Bullets(known),
        _measure_table(target),
        Paragraph(say("Key coverage: ", share_cell(before), " before, ", share_cell(after), " now.")),
        *_questions(target.questions),
        *_answers(target),
    ]
    return Section((text_cell(target.target), Cell(f": {target.verdict}")), tuple(blocks), short=target.target)


def _measure_table(target: TargetDrift) -> Table:
    table = Table(
        "Changes by measure, new minus old",
        (
            Column("measure", "text"),
            Column("change (95% interval), points", "other"),
            Column(MISSING_COLUMN, "other"),
            Column("missing"),
            Column("n"),
            Column("scenarios"),
            Column("p", "other"),
            Column("decides", "word"),
            Column("verdict", "text"),
        ),
        tuple(_measure_row(name, target.measures[name], target.paired[name]) for name in READING_ORDER),
    )
    return without_empty(table, MISSING_COLUMN)


def _measure_row(name: str, one: Drift, paired: PairedQuestions) -> tuple[Cell, ...]:
    gap = one.difference
    # Pairs are (old, new), so the bounds of old minus new are turned around.
    low, high = (None if end is None else -end for end in (paired.highest, paired.lowest))
    return (
        Cell(MEASURES[name].in_sentence),
        gap_cell(gap.mean, gap.low, gap.high, gap.clusters),
        Cell(missing_range(low, high)),
        count_cell(paired.one_sided + paired.neither),
        count_cell(gap.n),
        count_cell(gap.clusters),
        Cell(p_text(gap.p)),
        Cell("yes" if name in DECIDING else "no"),
        Cell(one.verdict),
    )


def changed_questions(questions: Sequence[QuestionDrift]) -> list[QuestionDrift]:
    """Questions whose code changed, those with the most changes first."""
    moved = [one for one in questions if one.better or one.worse]
    return sorted(moved, key=lambda one: (-(one.better + one.worse), one.question))


def _questions(questions: Sequence[QuestionDrift]) -> list[Block]:
    moved = changed_questions(questions)
    if not moved:
        return [Paragraph(words("No question's code changed."))]
    rows = tuple(
        (
            text_cell(one.question),
            count_cell(one.better),
            count_cell(one.worse),
            count_cell(one.same),
            Cell(p_text(one.p_holm)),
        )
        for one in moved
    )
    columns = (
        Column("question", "text"),
        Column("better"),
        Column("worse"),
        Column("same"),
        Column("p, Holm", "other"),
    )
    caption = f"Questions whose code changed: {len(moved)} of {len(questions)}"
    return [Table(caption, columns, rows)]


def _answers(target: TargetDrift) -> list[Block]:
    if not target.answers:
        return []
    told = f"{counted(target.answers_changed, 'answer')} got another code."
    if target.answers_changed > len(target.answers):
        told += f" The {len(target.answers)} largest changes are shown."
    return [Paragraph(words(told)), *map(_exhibit, target.answers)]


def _exhibit(one: ChangedAnswer) -> Exhibit:
    return Exhibit(
        say(
            code_cell(one.trial_id), " ", text_cell(one.group), ": ", text_cell(one.before), " → ", text_cell(one.after)
        ),
        (
            ("asked", (text_cell(one.question),)),
            ("old reply", (_reply(one.old_reply),)),
            ("new reply", (_reply(one.new_reply),)),
        ),
    )


def _reply(text: str) -> Cell:
    cut = f"{text[:SHOWN_REPLY]} […]" if len(text) > SHOWN_REPLY else text
    return passage_cell([(cut, False)]) if cut else Cell("no reply")


def _judge_section(found: Drifts) -> Section:
    known = tuple((text_cell(fact),) for fact in found.judge_facts) or (words(NO_KNOWN_CHANGE),)
    return Section(words("Judges"), (Bullets(known), Paragraph(words(frozen_text(found.judge)))))


def frozen_text(judge: JudgeDrift | None) -> str:
    """What judging the old transcripts again showed."""
    if judge is None:
        return "Not checked on frozen transcripts: `rejudge OLD`, then pass it as --frozen."
    share = judge.changed
    if share.value is None:
        return "On frozen transcripts, the two judgings have no claim in common, so nothing is known."
    state = "more than judges may drift" if judge.drifted else "within bounds"
    return f"On frozen transcripts, {share.count:,} of {share.n:,} labels changed ({percent(share.value)}%): {state}."
