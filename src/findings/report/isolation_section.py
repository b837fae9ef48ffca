"""One claim per verifier call compared with shared calls, on the audit sample."""

from __future__ import annotations

from ...text.count import counted
from ...trials.row import LABELS
from .document import Block, Column, Count, Number, Paragraph, Proportion, Table, Text, Words, say, words
from .series import Run, Runs


def isolation_blocks(runs: Runs) -> list[Block]:
    audited = [run for run in runs.runs if run.found.audit.claims]
    if not audited:
        note = (
            "Effect of shared calls: none measured, because no reply was verified both ways (--isolation flagged, "
            "audit sample)."
        )
        return [Paragraph(words(note))]
    return [
        *(Paragraph(say(*_effect(runs, run))) for run in audited),
        _difference_table(runs, audited),
        _label_table(runs, audited),
    ]


def _effect(runs: Runs, run: Run) -> list[str | Text | Number]:
    audit = run.found.audit
    effect = audit.effect()
    sample = f"Verified both ways: {counted(audit.replies, 'reply', 'replies')} with {counted(audit.claims, 'claim')}"
    change: list[str | Text | Number] = (
        ["No trial has decided claims both ways, so the effect on accuracy is unknown."]
        if effect.value is None
        else [
            "In shared calls, accuracy over these claims differs from one claim per call by ",
            Number(effect.value, effect.low, effect.high),
            f" on average over {counted(len(audit.accuracy), 'trial')} of {counted(effect.units, 'scenario')}.",
        ]
    )
    which: list[str | Text | Number] = [Text(run.name), ": "] if runs.several else []
    return [
        *which,
        f"{sample}, with one claim per call, which counts, and in shared calls, as other replies are. ",
        *change,
    ]


def _difference_table(runs: Runs, audited: list[Run]) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            Text(judge),
            Text(run.found.manifest.plan.verifiers[int(judge.removeprefix("judge_")) - 1]),
            Proportion(share),
            Count(share.n),
        )
        for run in audited
        for judge in sorted(run.found.audit.labels)
        for share in [run.found.audit.differing(judge)]
    )
    columns = (
        *runs.lead_columns(target=False),
        Column("judge", "text"),
        Column("model", "text"),
        Column("label differs (95% interval)", "share"),
        Column("verdicts"),
    )
    return Table("Verdicts on the audit sample: one claim per call compared with shared calls.", columns, rows)


def _label_table(runs: Runs, audited: list[Run]) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            Words(alone),
            *(Count(sum(n for pair, n in pairs.items() if pair == (alone, shared))) for shared in LABELS),
        )
        for run in audited
        for pairs in [run.found.audit.pooled()]
        for alone in LABELS
    )
    columns = (
        *runs.lead_columns(target=False),
        Column("one claim per call", "text"),
        *(Column(f"shared: {label}") for label in LABELS),
    )
    return Table("The same verdicts by label, over all verifiers.", columns, rows)
