"""The section on the judges: how well they agree with each other and with themselves, and accuracy corrected for it.

On the audit sample, one claim per verifier call is compared with shared calls.
"""

from __future__ import annotations

from collections import Counter

from ..findings.code_error import JudgeError
from ..findings.estimates import key_coverage
from ..findings.judge_agreement import METHOD, Judging
from ..findings.read_run import Findings
from ..records.model_name import family
from ..scoring.definitions import CODE_HEADINGS, ShareName
from ..text.count import counted
from ..trials.row import DECIDED, LABELS, OPEN_TIE
from ..trials.tables import COUNTED
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
    percent,
    say,
    share_cell,
    size_of,
    text_cell,
    words,
)
from .judge_error import bounds_text, corrected_text
from .score_section import COVERAGE_COLUMNS, knows_tampered
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
        _both_ways_table(runs, audited),
    ]


def _effect(runs: Runs, run: Run) -> list[str | Cell]:
    audit = run.found.audit
    effect = audit.effect()
    sample = f"Verified both ways: {counted(audit.replies, 'reply', 'replies')} with {counted(audit.claims, 'claim')}"
    change: list[str | Cell] = (
        ["No trial has decided claims both ways, so the effect on accuracy is unknown."]
        if effect.value is None
        else [
            "In shared calls, accuracy over these claims differs from one claim per call by ",
            number_cell(effect.value, effect.low, effect.high),
            f" on average over {counted(len(audit.accuracy), 'trial')} of {counted(effect.units, 'scenario')}.",
        ]
    )
    which: list[str | Cell] = [text_cell(run.name), ": "] if runs.several else []
    return [
        *which,
        f"{sample}, with one claim per call, which counts, and in shared calls, as other replies are. ",
        *change,
    ]


def _difference_table(runs: Runs, audited: list[Run]) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(judge),
            text_cell(run.found.manifest.plan.verifiers[int(judge.removeprefix("judge_")) - 1]),
            share_cell(share),
            count_cell(share.n),
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


def _both_ways_table(runs: Runs, audited: list[Run]) -> Table:
    rows = tuple(
        (
            *runs.lead(run),
            Cell(alone),
            *(count_cell(sum(n for pair, n in pairs.items() if pair == (alone, shared))) for shared in LABELS),
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


_CODE_METHOD = (
    "Corrected: by Rogan and Gladen's formula, for how often the same judges found the code on gold replies that have "
    "it and how often they gave it to others; the interval carries the error of the run and of the gold set. If split "
    "verdicts fell the other way: the lowest and highest share over all answers whose code hangs on a claim that the "
    "judges disagreed on or left open. This says nothing of errors that the judges share."
)
_ONE_JUDGE = (
    "Where all verifiers are one model, nothing in the run tells how wrong they are. Measure them with judge-check, "
    "and give the check to report --judge-check."
)


def judging_section(runs: Runs) -> Section:
    blocks: list[Block] = [_decided_table(runs), _reading_table(runs)]
    if any(run.found.judge_failures for run in runs.runs):
        blocks.append(_failure_table(runs))
    blocks += isolation_blocks(runs)
    known = [run for run in runs.runs if run.judging]
    if not known:
        blocks.append(Paragraph(words("Agreement and noise of the judges were not computed for this report.")))
        blocks += _code_blocks(runs)
        return Section(words("Judges: agreement and noise"), tuple(blocks))
    blocks.append(_agreement_table(runs))
    blocks += [Paragraph(one) for one in dict.fromkeys(one for run in known for one in _cautions(run.found))]
    blocks += [_label_table(runs), *_noise_blocks(runs), *_corrected_blocks(runs), *_code_blocks(runs)]
    return Section(words("Judges: agreement and noise"), tuple(blocks))


def _decided_table(runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        decided = run.found.decided
        counts = (count_cell(sum(decided[how] for how in DECIDED)), *(count_cell(decided[how]) for how in DECIDED))
        open_ties = count_cell(decided[OPEN_TIE])
        rows.append((*runs.lead(run), *counts, open_ties, count_cell(run.found.severity_disagreements)))
    columns = (
        *runs.lead_columns(target=False),
        Column("claims"),
        *(Column(how) for how in DECIDED),
        Column("of these, ties open for a person"),
        Column("same label, different severity"),
    )
    caption = (
        "How the final labels of claims were decided. A tie is open for a person if no model of a third family could "
        "settle it; the trials that need review list them."
    )
    return Table(caption, columns, tuple(rows))


def _reading_table(runs: Runs) -> Table:
    ways = {"judges": "evaluated by judges", "rule": "by a fixed rule"}
    if any(knows_tampered(run.found) for run in runs.runs):
        ways["tampered"] = "tampered"
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        read = run.found.readings
        rows.append(
            (
                *runs.lead(run),
                *(count_cell(read[how]) for how in ways),
                of_cell(read["covered_first"], read["sentences"]),
                of_cell(read["covered"], read["sentences"]),
                of_cell(read["sentences"] - read["covered"], read["sentences"]),
                *(count_cell(run.found.counts[one.key]) for one in COUNTED),
            )
        )
    names = (*ways.values(), "sentences covered at first", "covered finally", "left out")
    columns = (
        *runs.lead_columns(target=False),
        *(Column(name, "other") for name in names),
        *(Column(one.column.in_report) for one in COUNTED),
    )
    caption = (
        "How replies were evaluated, how many of their sentences the extractor's claims cover, and how many it left "
        "out. Since release 0.3, each clause of a sentence that is left out becomes a claim in its own words."
    )
    return Table(caption, columns, tuple(rows))


def _failure_table(runs: Runs) -> Table:
    rows = tuple(
        (*runs.lead(run), text_cell(stage), count_cell(count))
        for run in runs.runs
        for stage, count in sorted(run.found.judge_failures.items())
    )
    columns = (*runs.lead_columns(target=False), Column("stage", "text"), Column("failures"))
    return Table("Times a judge gave no usable answer.", columns, rows)


def _agreement_table(runs: Runs) -> Table:
    rows = tuple(
        (*runs.lead(run), Cell(name), number_cell(value.value, value.low, value.high), count_cell(run.judging.claims))
        for run in runs.runs
        if run.judging
        for name, value in run.judging.coefficients.items()
    )
    columns = (
        *runs.lead_columns(target=False),
        Column("coefficient", "text"),
        Column("value (95% interval)", "other"),
        Column("claims"),
    )
    caption = (
        "Agreement of the verifiers on labels; intervals from resampling blocks of trials, exact if they always agree. "
        "A dash means not defined."
    )
    return Table(caption, columns, rows)


def _cautions(found: Findings) -> list[tuple[Cell, ...]]:
    verifiers = found.manifest.plan.verifiers
    if len(set(verifiers)) == 1:
        same = f"The {len(verifiers)} verifiers are the same model, "
        return [say(same, text_cell(verifiers[0]), ". Its agreement with itself says nothing about other judges.")]
    if len({family(name) for name in verifiers}) == 1:
        return [words("All verifiers are from one model family and may share its errors.")]
    return []


def _label_table(runs: Runs) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for run in runs.runs:
        if run.judging:
            verifiers = run.found.manifest.plan.verifiers
            for (judge, rates), model in zip(run.judging.by_judge.items(), verifiers, strict=True):
                given = (number_cell(rates.get(label)) for label in LABELS)
                rows.append((*runs.lead(run), text_cell(judge), text_cell(model), *given))
            everything = (number_cell(run.judging.base_rates.get(label)) for label in LABELS)
            rows.append((*runs.lead(run), Cell("all"), Cell(""), *everything))
    columns = (
        *runs.lead_columns(target=False),
        Column("judge", "text"),
        Column("model", "text"),
        *(Column(label, "other") for label in LABELS),
    )
    return Table("Share of each label among a judge's verdicts.", columns, tuple(rows))


def _noise_blocks(runs: Runs) -> list[Block]:
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(one.judge),
            text_cell(one.model),
            share_cell(one.changed),
            count_cell(one.changed.n),
        )
        for run in runs.runs
        if run.judging
        for one in run.judging.noise
    )
    if not rows:
        return [Paragraph(words("No trial was judged again (--judge-repeats), so the judges' noise is unknown."))]
    columns = (
        *runs.lead_columns(target=False),
        Column("judge", "text"),
        Column("model", "text"),
        Column("label changed (95% interval)", "share"),
        Column("verdicts repeated"),
    )
    blocks: list[Block] = [Table("Judges that were asked again about the same claims.", columns, rows)]
    for run in runs.runs:
        if run.judging and run.judging.noise_floor is not None:
            which = say(" in run ", text_cell(run.name)) if runs.several else ()
            blocks.append(Paragraph(say("Noise floor", *which, f": {_floor(run.judging)}")))
    return blocks


def _floor(judging: Judging) -> str:
    """The noise floor as a sentence; zero changes are a count, because nothing measured is exactly 0%."""
    if not judging.noise_floor:
        asked = sum(one.changed.n for one in judging.noise)
        return f"no label changed in {counted(asked, 'repeated verdict')}."
    floor = percent(judging.noise_floor, min(one.changed.n for one in judging.noise))
    return f"{floor}%. A smaller difference may be due to the judges."


def _corrected_blocks(runs: Runs) -> list[Block]:
    known = [(run, target, one) for run in runs.runs if run.judging for target, one in run.judging.corrected.items()]
    if not known:
        note = "Accuracy is not corrected for judge error, because no judge check was given (--judge-check)."
        return [Paragraph(words(note))]
    rows = tuple(
        (
            *runs.lead(run),
            text_cell(target),
            number_cell(one.raw),
            number_cell(one.value, one.low, one.high),
            share_cell(key_coverage(run.found.of_target(target))),
        )
        for run, target, one in known
    )
    columns = (
        *runs.lead_columns(),
        Column("as judged", "other"),
        Column("corrected (95% interval)", "other"),
        COVERAGE_COLUMNS[0],
    )
    checks = Counter(run.judging.check.check_id for run in runs.runs if run.judging and run.judging.check)
    method = say("Corrected with judge check ", text_cell(", ".join(checks)), " for ", Cell(METHOD), ".")
    return [
        Table("Accuracy over all claims, as judged and corrected for the judges' measured error.", columns, rows),
        Paragraph(method),
        *(
            Paragraph(say(text_cell(target), ": accuracy cannot be corrected, because ", Cell(one.why_not), "."))
            for _, target, one in known
            if one.why_not
        ),
    ]


def _code_blocks(runs: Runs) -> list[Block]:
    """The study codes of each target: as judged, corrected, and how far split verdicts could move them."""
    known = [(series, code, error) for series in runs.series for code, error in series.judge_errors.items()]
    known = [one for one in known if one[2].share.value is not None]
    if not known:
        return []
    rows = tuple(
        (*runs.lead(series), Cell(CODE_HEADINGS[code]), share_cell(error.share), *_code_cells(error))
        for series, code, error in known
    )
    columns = (
        *runs.lead_columns(),
        Column("answers that are", "text"),
        Column("as judged (95% interval)", "share"),
        Column("corrected for judge error (95% interval)", "other"),
        Column("if split verdicts fell the other way", "other"),
        Column("answers with a split verdict that matters", "other"),
    )
    caption = "Study codes and judge error."
    return [Table(caption, columns, rows), Paragraph(words(_CODE_METHOD)), *_code_notes(runs)]


def _code_cells(error: JudgeError) -> tuple[Cell, ...]:
    n = size_of(error.share)
    corrected = Cell(corrected_text(error.corrected, n) if error.corrected else NOTHING)
    if error.bounds is None:
        return corrected, Cell(NOTHING), Cell(NOTHING)
    return corrected, Cell(bounds_text(error.bounds, n)), count_cell(error.bounds.questions)


def _code_notes(runs: Runs) -> list[Block]:
    """Why a share is not corrected, or has no range."""
    notes: list[tuple[Cell, ...]] = []
    unknown = [series for series in runs.series if any(one.bounds is None for one in series.judge_errors.values())]
    if any(not (series.run.judging and series.run.judging.check) for series in unknown):
        notes.append(words(_ONE_JUDGE))
    reasons: dict[tuple[ShareName, str], list[str]] = {}
    for series in runs.series:
        for code, error in series.judge_errors.items():
            if error.why_not and error.share.value is not None:
                reasons.setdefault((code, error.why_not), []).append(series.label)
    for (code, why_not), labels in reasons.items():
        what = f": {CODE_HEADINGS[code]} cannot be corrected, because "
        notes.append(say(text_cell(", ".join(labels)), what, Cell(why_not), "."))
    return [Paragraph(note) for note in notes]
