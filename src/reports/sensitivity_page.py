"""The page of `sensitivity`: how much scores vary with scenario, variant, wording, repeats and judges."""

from __future__ import annotations

from ..findings.sensitivity import Sensitivities, Sensitivity
from ..scoring.definitions import LESS_IS_BETTER, MEASURES
from ..stats.variance import Components
from ..stats.variants import RankChange, WorstVariant
from ..text.count import counted
from ..text.rounded import percent, rounded
from .analysis_pages import CHART_ROWS, answers, caveat, methods_section, notice_sections
from .analysis_sentences import level_name, points, sensitivity_sentence
from .document import (
    NOTHING,
    Block,
    Cell,
    Column,
    Contents,
    Figure,
    Paragraph,
    Section,
    Table,
    count_cell,
    number_cell,
    say,
    share_cell,
    text_cell,
    words,
)
from .first_section import OF_HUNDRED
from .forest import ForestChart, ForestGroup, ForestPanel, ForestRow, Mark

_CHART_NAMES = {
    "scenario": "Between scenarios",
    "variant": "Between variants",
    "wording": "Between wordings",
    "residual": "Between repeats",
}
METHOD_NOTES = {
    "REML": "restricted maximum likelihood (REML) for random effects, as lme4 estimates them",
    "none": "no estimate: too few values",
}
VARIANCE_NOTE = (
    "The variance of trial scores is split into parts: between scenarios, between variants of a scenario, between "
    "wordings of a variant, and between repeats. A part of 0% means that no variance above 0 fits the data better. A "
    "level with one value per group cannot be told from the repeats and is counted there; a level with the same groups "
    "as the one above it has no estimate of its own. How judges differ is estimated from the trials that every judge "
    "scored, with trials and judges crossed. Trials without a value (failed, not judged, or with nothing to score) are "
    "left out, as in reports. Means over scenarios give each scenario the same weight."
)
LEAST_GAP = 0.0005
"""A smaller gap would be shown as 0."""
RANK_NOTE = (
    "tau is Kendall's tau-b between the order of the targets with one voice and with the others: 1 is the same order, "
    "-1 the opposite. Its interval comes from resampling whole scenarios."
)


def method_text(components: Components) -> str:
    """How components were estimated."""
    return METHOD_NOTES[components.method]


def sensitivity_page(found: Sensitivities) -> Contents:
    sentences = [sensitivity_sentence(one) for one in found.targets]
    first = [*answers(sentences, "the sections below have all targets"), *_chart(found)]
    first.append(caveat((one.target for one in found.targets), found.notices))
    name = MEASURES[found.targets[0].measure if found.targets else "accuracy"].in_sentence
    notes = [VARIANCE_NOTE, *_method_notes(found), *([RANK_NOTE] if len(found.ranks) > 1 else [])]
    return Contents(
        words("What do the scores depend on?"),
        say(f"{counted(len(found.targets), 'target')}, {name}. Points are hundredths of a score."),
        tuple(first),
        (
            *(_target_section(one, found.styles.get(one.target, {})) for one in found.targets),
            *_rank_sections(found.ranks),
            methods_section(notes),
            *notice_sections(found.notices),
        ),
    )


def _method_notes(found: Sensitivities) -> list[str]:
    by_method: dict[str, list[str]] = {}
    for one in found.targets:
        by_method.setdefault(one.components.method, []).append(one.target)
    if len(by_method) == 1:
        return [f"Components of variance: {METHOD_NOTES[next(iter(by_method))]}."]
    return [f"Components of variance of {', '.join(names)}: {METHOD_NOTES[one]}." for one, names in by_method.items()]


def _chart(found: Sensitivities) -> list[Block]:
    shown = [one for one in found.targets if any(part.share is not None for part in one.components.parts)]
    if not shown:
        return []
    groups = tuple(
        ForestGroup(
            one.target,
            tuple(
                ForestRow(
                    _CHART_NAMES.get(part.name, part.name), (Mark(part.share, None, None, f"{percent(part.share)}%"),)
                )
                for part in one.components.parts
                if part.share is not None
            ),
        )
        for one in shown[: CHART_ROWS // 4]
    )
    cut = f" {len(groups)} of {len(shown)} targets shown." if len(groups) < len(shown) else ""
    panel = ForestPanel("Part of the variance, %", OF_HUNDRED)
    chart = ForestChart("variance", "Where the variation comes from", (panel,), groups)
    return [Figure(chart, f"The parts of one target sum to 100%.{cut}")]


def _target_section(one: Sensitivity, voices: dict[str, float]) -> Section:
    told = f"{counted(one.components.n, 'trial')} with a value, {one.left_out:,} without one."
    covered = say(" Key coverage ", share_cell(one.coverage), ".") if one.measure == "accuracy" else ()
    blocks: list[Block] = [
        Paragraph((Cell(told), *covered)),
        _components_table(f"Variance between trials: {method_text(one.components)}", one.components),
    ]
    if one.judges:
        caption = f"Variance of the accuracy according to each judge: {method_text(one.judges)}"
        blocks.append(_components_table(caption, one.judges))
    blocks += _worst(one)
    if voices:
        rows = tuple((text_cell(voice), number_cell(mean)) for voice, mean in voices.items())
        columns = (Column("voice", "text"), Column("mean", "other"))
        blocks.append(Table("Mean by voice of the questioner, over scenarios", columns, rows))
    return Section((text_cell(one.target),), tuple(blocks), short=one.target)


def _components_table(caption: str, components: Components) -> Table:
    rows = []
    for part in components.parts:
        share = NOTHING if part.share is None else f"{percent(part.share)}%"
        rows.append(
            (
                Cell(level_name(part.name, components)),
                count_cell(part.groups),
                Cell(NOTHING if part.variance is None else rounded(part.variance, 4)),
                Cell(share),
            )
        )
    columns = (Column("", "text"), Column("groups"), Column("variance", "other"), Column("part", "other"))
    return Table(caption, columns, tuple(rows))


def worst_first(one: Sensitivity) -> list[WorstVariant]:
    """Scenarios whose worst variant differs from their mean, the largest gap first."""
    cases = [case for case in one.worst.scenarios if case.gap >= LEAST_GAP]
    return sorted(cases, key=lambda case: (-case.gap, case.scenario))


def _worst(one: Sensitivity) -> list[Block]:
    cases = worst_first(one)
    if not cases:
        return []
    mean = one.worst.worst
    side = "highest" if one.measure in LESS_IS_BETTER else "lowest"
    rows: list[tuple[Cell, ...]] = [
        (
            text_cell(case.scenario),
            text_cell(case.variant),
            number_cell(case.worst),
            number_cell(case.mean),
            Cell(points(case.gap)),
        )
        for case in cases
    ]
    columns = (
        Column("scenario", "text"),
        Column("worst variant", "text"),
        Column("its mean", "other"),
        Column("mean of variants", "other"),
        Column("difference", "other"),
    )
    told = say(
        f"The mean over scenarios of the {side} variant mean is ", number_cell(mean.value, mean.low, mean.high),
        ". The worst of several noisy means tends to be worse than the worst true mean.",
    )  # fmt: skip
    return [Paragraph(told), Table("Scenarios by how far their worst variant is from their mean", columns, tuple(rows))]


def _rank_sections(ranks: tuple[RankChange, ...]) -> tuple[Section, ...]:
    if len(ranks) < 2:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (
            text_cell(one.variant),
            number_cell(one.tau, one.low, one.high),
            text_cell("; ".join(f"{a} and {b}" for a, b in one.swapped) or "none"),
        )
        for one in ranks
    ]
    columns = (
        Column("voice", "text"),
        Column("tau (95% interval)", "other"),
        Column("targets that swap places", "text"),
    )
    table = Table("Order of the targets with each voice, compared with the other voices", columns, tuple(rows))
    return (Section(words("Order of the targets by voice"), (table,), short="Order by voice"),)
