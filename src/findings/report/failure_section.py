"""The report's sections on common failures and on cost."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from .document import Block, Cell, Column, Count, Linked, Money, Of, Paragraph, Section, Table, Text, Words, say, words
from .links import of_question
from .score_section import scored
from .series import Runs, Series
from .study_section import CodeCounts, Counted

MOST_INCORRECT = 10


def failure_section(runs: Runs, counted: Counted) -> Section:
    names = Counter(error for series in runs.series for row in series.rows for error in row.errors)
    order = sorted(names, key=lambda name: (-names[name], name))
    rows = []
    for series in runs.series:
        errors = Counter(error for row in series.rows for error in row.errors)
        done = len(series.rows)
        rows.append(
            (
                *runs.lead(series),
                *(Of(errors[name], scored(series.rows)) for name in order),
                Of(sum(row.refusal for row in series.rows), done),
                Of(sum(row.fabricated for row in series.rows), done),
            )
        )
    columns = (
        *runs.lead_columns(),
        *(Column(name.replace("_", " "), "other") for name in order),
        Column("any refusal", "other"),
        Column("any fabricated specific", "other"),
    )
    note = words("Error categories are counted over scored trials; the last two columns over all trials run.")
    blocks: list[Block] = [
        Paragraph(note),
        Table("Trials with each kind of failure.", columns, tuple(rows)),
        _incorrect_table(runs, counted),
    ]
    return Section(words("Common failure modes"), tuple(blocks))


class _Question(NamedTuple):
    """A question group of one target that was answered incorrectly at least once."""

    series: Series
    scenario_id: str
    group: str
    counts: CodeCounts

    @property
    def incorrect(self) -> int:
        return self.counts.codes["incorrect"]


def _incorrect_table(runs: Runs, counted: Counted) -> Table:
    wrong = [_Question(*key, counts) for key, counts in counted.items() if counts.codes["incorrect"]]
    wrong.sort(key=lambda one: (-one.incorrect / one.counts.n, -one.incorrect))
    rows = []
    for one in wrong[:MOST_INCORRECT]:
        rule = one.series.run.found.rules.get((one.scenario_id, one.group))
        group = Linked(Text(one.group), of_question(one.series, one.scenario_id, one.group))
        named = (Text(one.scenario_id), group, Text(rule.topic if rule else ""))
        rows.append((*runs.lead(one.series), *named, Of(one.incorrect, one.counts.n)))
    columns = (
        *runs.lead_columns(),
        *(Column(name, "text") for name in ("scenario", "question group", "topic")),
        Column("incorrect", "other"),
    )
    more = f"; {len(wrong) - MOST_INCORRECT} more are in per_question.csv" if len(wrong) > MOST_INCORRECT else ""
    return Table(f"Questions most often answered incorrectly{more}.", columns, tuple(rows))


def cost_section(runs: Runs) -> Section:
    rows: list[tuple[Cell, ...]] = []
    without_usage = 0
    for run in runs.runs:
        spent = run.calls.spending
        without_usage += sum(one.without_usage for one in spent)
        rows += [
            (
                *runs.lead(run),
                Words(one.part),
                Text(one.model),
                Count(one.attempts),
                Count(one.input_tokens),
                Count(one.output_tokens),
                Count(one.without_usage),
                Money(one.cost),
            )
            for one in spent
        ]
    columns = (
        *runs.lead_columns(target=False),
        Column("part", "text"),
        Column("model", "text"),
        Column("attempts"),
        Column("tokens in"),
        Column("tokens out"),
        Column("no usage reported"),
        Column("cost", "other"),
    )
    dates = ", ".join(dict.fromkeys(run.found.manifest.prices_as_of for run in runs.runs))
    usage = (
        f"{without_usage:,} attempts reported no token usage and are not included in the cost."
        if without_usage
        else "All attempts reported their token usage."
    )
    note = say("At list prices as of ", Text(dates), ". ", usage)
    return Section(words("Cost"), (Paragraph(note), Table("Calls, tokens and cost.", columns, tuple(rows))))
