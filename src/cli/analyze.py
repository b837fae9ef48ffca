"""Commands on finished runs: report, compare, drift, sensitivity, power, export."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import api
from ..errors import ExportError
from ..findings.analysis.compare_judges import Change, ChangedCode, JudgesCompared
from ..findings.analysis.compare_targets import Compared, Comparison
from ..findings.analysis.drift import ChangedAnswer, Drifts, JudgeDrift, TargetDrift
from ..findings.analysis.power import planned_design
from ..findings.analysis.sensitivity import Sensitivities, Sensitivity
from ..findings.report.document import share_text
from ..stats.comparison import Difference
from ..stats.variance import Components
from ..stats.variants import RankChange
from ..text.count import counted
from ..text.escape import plain
from ..text.rounded import percent, signed
from . import tables
from .power_text import power_text

DRIFTED, CANNOT_TELL = 7, 8
"""Exit codes of `drift`, for scheduled use; 0 is no evidence of drift."""
QUESTIONS_SHOWN = 30
WORST_SHOWN = 5
CODES_SHOWN = 10
COMPARE_NOTE = (
    "Pairs are trials of the same scenario, variant and repetition. Intervals are 95% and take scenarios as the "
    "independent units. p comes from flipping the signs of whole scenarios, adjusted within a measure by the methods "
    "of Holm and of Benjamini and Hochberg (BH). d_z is the effect size: the mean difference divided by the standard "
    "deviation of the differences. MDD is the minimum detectable difference at 80% power, if pairs are independent. "
    "Left out: pairs with a value on one side only (one-sided) and trials without a partner (unmatched)."
)
COVERAGE_NOTE = (
    "Key coverage is the share of the factual claims that the answer keys could decide (95% interval). Accuracy speaks "
    "of these claims only; the judges found nothing in the keys that decides the rest."
)
NO_KNOWN_CHANGE = "no known change"


def compare(arguments: argparse.Namespace) -> int:
    found = api.compare(arguments.run, by=arguments.by, measures=arguments.measure, floor=arguments.floor)
    if isinstance(found, JudgesCompared):
        return _print(_judges_json(found) if arguments.json else _judges_text(found, arguments.show))
    return _print(asdict(found) if arguments.json else _comparison_text(found))


def drift(arguments: argparse.Namespace) -> int:
    found = api.drift(arguments.old, arguments.new, frozen=arguments.frozen, floor=arguments.floor)
    _print(asdict(found) if arguments.json else _drift_text(found, arguments.show))
    return {"drifted": DRIFTED, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def sensitivity(arguments: argparse.Namespace) -> int:
    found = api.sensitivity(arguments.run, arguments.measure)
    return _print(asdict(found) if arguments.json else _sensitivity_text(found))


def power(arguments: argparse.Namespace) -> int:
    design = planned_design(
        arguments.pilot,
        arguments.sd,
        arguments.measure,
        alpha=arguments.alpha,
        power=arguments.power,
        clusters=arguments.clusters,
        icc=arguments.icc,
    )
    return _print(
        power_text(
            design, arguments.difference, measure=arguments.measure, pilot=arguments.pilot, pairs=arguments.trials
        )
    )


def export(arguments: argparse.Namespace) -> int:
    formats = [name.strip() for name in arguments.to.split(",") if name.strip()]
    try:
        return _print(_paths(api.export(arguments.run, formats, arguments.out)))
    except ExportError as error:
        _print(_paths(error.written))
        raise


def report(arguments: argparse.Namespace) -> int:
    written = api.report(
        arguments.run,
        arguments.out,
        judge_check=arguments.judge_check,
        checklist=arguments.checklist,
        evidence=arguments.evidence,
    )
    return _print(_paths(written))


def _print(found: dict[str, Any] | Iterator[str]) -> int:
    """Print a JSON document, or lines of text."""
    if isinstance(found, dict):
        print(json.dumps(found, indent=2, ensure_ascii=False, default=str))
    else:
        print("\n".join(found))
    return 0


def _paths(paths: Sequence[Path]) -> Iterator[str]:
    return map(str, paths)


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 makes -0.0 positive


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def _interval(one: Difference) -> str:
    if one.mean is None:
        return "-"
    if one.low is None or one.high is None:
        return f"{signed(one.mean)} (n={one.n})"
    return f"{signed(one.mean)} ({signed(one.low)} to {signed(one.high)})"


def _comparison_text(compared: Compared) -> Iterator[str]:
    for measure in compared.measures:
        yield measure
        for one in compared.comparisons:
            if one.measure == measure:
                yield from _pair_text(one)
        for rank in compared.ranks[measure]:
            first = f"{percent(rank.ranks[0])}%" if rank.ranks else "-"
            yield f"  {rank.system}: mean {_number(rank.mean)}, best in {first} of resamples"
            if measure == "accuracy":
                yield f"    key coverage {share_text(compared.coverage[rank.system])}"
        yield ""
    yield tables.wrapped(COMPARE_NOTE)
    if "accuracy" in compared.measures:
        yield tables.wrapped(COVERAGE_NOTE)
    if compared.noise_floor is not None:
        yield tables.wrapped(_noise_text(compared.noise_floor))
    yield from _notices(compared.notices)


def _noise_text(floor: float) -> str:
    if not floor:
        return "Asked again, the judges changed no label; the report says how many labels that is."
    return f"The judges' noise floor is {percent(floor, 1)}%; smaller differences are not called better."


def _notices(notices: Sequence[str]) -> Iterator[str]:
    for notice in notices:
        yield f"\n{tables.wrapped(notice)}"


def _pair_text(one: Comparison) -> Iterator[str]:
    gap = one.difference
    yield f"  {one.first} - {one.second}: {one.verdict}"
    yield f"    difference {_interval(gap)}, {counted(gap.n, 'pair')} in {counted(gap.clusters, 'scenario')}"
    yield (
        f"    p Holm {_p(one.p_holm)}, BH {_p(one.p_bh)}; d_z {_number(gap.effect.d_z)}; "
        f"MDD {_number(one.minimum)}; one-sided {one.one_sided}, unmatched {one.unmatched}"
    )


def _judges_json(found: JudgesCompared) -> dict[str, Any]:
    return {
        "trials": found.trials,
        "same": found.same,
        "gone": found.gone,
        "new": found.new,
        "moves": [{**move._asdict(), "claims": n} for move, n in sorted(found.moves.items(), key=str)],
        "codes_same": found.codes_same,
        "codes_changed": [{**change._asdict(), "questions": n} for change, n in sorted(found.codes_changed.items())],
        "outcomes_changed": [{**one._asdict(), "trials": n} for one, n in sorted(found.outcomes_changed.items())],
        "differences": list(found.differences),
        "changed": [asdict(change) for change in found.changed],
        "changed_codes": [asdict(change) for change in found.changed_codes],
        "notices": list(found.notices),
    }


def _judges_text(found: JudgesCompared, show: int) -> Iterator[str]:
    total = found.same + len(found.changed)
    both = f"{counted(found.trials, 'trial')}, {counted(total, 'claim')} in both runs"
    yield f"{both}: {counted(found.same, 'label')} same, {len(found.changed)} changed."
    yield f"Claims only in the first run: {found.gone}; only in the second: {found.new}."
    rows = [[str(a), str(b), str(n)] for (a, b), n in sorted(found.moves.items(), key=lambda move: -move[1])]
    yield tables.plain_table([("first", "left"), ("second", "left"), ("claims", "right")], rows)
    yield f"\nStudy codes: {found.codes_same} same, {sum(found.codes_changed.values())} changed."
    for change, n in found.codes_changed.most_common(CODES_SHOWN):
        yield f"  {change.question_group}: {change.first} -> {change.second} ({n})"
    for outcome, n in found.outcomes_changed.most_common():
        yield f"Trials: {outcome.first} -> {outcome.second} ({n})"
    yield "\nWhat differs between the judgings:"
    yield from (f"  {plain(one)}" for one in found.differences or (NO_KNOWN_CHANGE,))
    for one in found.changed[:show]:
        yield from _changed_claim_text(one)
    for code in found.changed_codes[:show]:
        yield from _changed_code_text(code)
    left = max(0, len(found.changed) - show) + max(0, len(found.changed_codes) - show)
    if left:
        yield f"\n{counted(left, 'change')} not shown (--show N, or --json for all of them)."
    yield from _notices(found.notices)


def _changed_claim_text(change: Change) -> Iterator[str]:
    yield f"\n{change.trial_id} {change.turn_id}: {change.before.label} -> {change.after.label}"
    yield f"  “{plain(change.quote)[:300]}”"
    for name, side in (("first", change.before), ("second", change.after)):
        yield f"  {name}: {side.label} ({', '.join(side.evidence) or '-'})"
        yield from (f"    {plain(reason)[:200]}" for reason in side.reasons)


def _changed_code_text(change: ChangedCode) -> Iterator[str]:
    yield f"\n{change.trial_id} {change.question_group}: {change.before} -> {change.after}"
    yield f"  first: {plain(change.reason_before)[:300] or '-'}"
    yield f"  second: {plain(change.reason_after)[:300] or '-'}"


def _drift_text(found: Drifts, show: int) -> Iterator[str]:
    yield "Judges"
    yield from (f"  {plain(fact)}" for fact in found.judge_facts or (NO_KNOWN_CHANGE,))
    yield f"  {_frozen_text(found.judge)}"
    for target in found.targets:
        yield from _target_text(target, show)
    yield from _notices(found.notices)
    yield f"\nVerdict: {found.verdict}."


def _frozen_text(judge: JudgeDrift | None) -> str:
    if judge is None:
        return "not checked on frozen transcripts: `rejudge OLD`, then pass it as --frozen"
    state = "drifted" if judge.drifted else "within bounds"
    return f"on frozen transcripts, {judge.changed.count} of {judge.changed.n} labels changed: {state}"


def _target_text(target: TargetDrift, show: int) -> Iterator[str]:
    yield f"\n{target.target}: {target.verdict}"
    yield from (f"  {plain(fact)}" for fact in target.facts or (NO_KNOWN_CHANGE,))
    rows = [
        [name, str(one.difference.n), _interval(one.difference), _p(one.difference.p), one.verdict]
        for name, one in target.measures.items()
    ]
    columns: tables.Columns = [
        ("measure", "left"), ("n", "right"), ("new - old", "right"), ("p", "right"), ("verdict", "right"),
    ]  # fmt: skip
    yield tables.plain_table(columns, rows)
    covered = target.coverage
    yield f"  key coverage {share_text(covered.before)} before, {share_text(covered.after)} now"
    moved = [one for one in target.questions if one.better or one.worse]
    rows = [
        [one.question, str(one.better), str(one.worse), str(one.same), _p(one.p_holm)]
        for one in sorted(moved, key=lambda one: (-(one.better + one.worse), one.question))[:QUESTIONS_SHOWN]
    ]
    names: tables.Columns = [
        ("question", "left"), ("better", "right"), ("worse", "right"), ("same", "right"), ("p Holm", "right"),
    ]  # fmt: skip
    yield tables.plain_table(names, rows) if rows else "  No question's code changed."
    if len(moved) > len(rows):
        yield f"  {len(rows)} of {len(moved)} questions with a changed code shown"
    for answer in target.answers[:show]:
        yield from _answer_text(answer)


def _answer_text(one: ChangedAnswer) -> Iterator[str]:
    yield f"\n  {one.trial_id} {one.group}: {one.before} -> {one.after}"
    yield f"    asked: {plain(one.question)[:200]}"
    yield f"    old:   {plain(one.old_reply)[:400]}"
    yield f"    new:   {plain(one.new_reply)[:400]}"


def _sensitivity_text(found: Sensitivities) -> Iterator[str]:
    for one in found.targets:
        yield from _variance_text(one)
        voices = ", ".join(f"{voice} {mean:.2f}" for voice, mean in found.styles[one.target].items())
        yield f"  by voice: {voices or '-'}\n"
    if len(found.ranks) == 1:
        yield f"Rank order by voice: all trials have voice {found.ranks[0].variant!r}, so nothing can be compared."
    elif found.ranks:
        yield "Rank order of the targets for each voice vs. the other voices:"
        yield from map(_rank_text, found.ranks)
    yield from _notices(found.notices)


def _rank_text(change: RankChange) -> str:
    tau = "tau undefined" if change.tau is None else f"tau {_number(change.tau)}"
    swapped = "; ".join(f"{a} and {b}" for a, b in change.swapped)
    return f"  {change.variant}: {tau}; {f'swapped: {swapped}' if swapped else 'no targets swapped'}"


def _variance_text(one: Sensitivity) -> Iterator[str]:
    covered = f"; key coverage {share_text(one.coverage)}" if one.measure == "accuracy" else ""
    yield f"{one.target}: {one.measure}, {counted(one.components.n, 'trial')}{covered}"
    yield _variance_table(one.components)
    if one.judges:
        yield f"{one.target}: {one.measure} according to each judge, {one.judges.n} values"
        yield _variance_table(one.judges)
    for case in sorted(one.worst.scenarios, key=lambda case: (-case.gap, case.scenario))[:WORST_SHOWN]:
        if case.gap > 0:
            yield f"  {case.scenario}: worst variant {case.variant} {case.worst:.2f}, mean {case.mean:.2f}"


def _variance_table(components: Components) -> str:
    rows = [
        [
            part.name,
            str(part.groups),
            _number(part.variance, 4),
            "-" if part.share is None else f"{percent(part.share)}%",
        ]
        for part in components.parts
    ]
    columns: tables.Columns = [
        ("between", "left"), ("groups", "right"), ("variance", "right"), ("share", "right"),
    ]  # fmt: skip
    return tables.plain_table(columns, rows)
