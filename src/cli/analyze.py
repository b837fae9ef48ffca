"""Commands on finished runs: compare, drift, sensitivity, power, export, freeze."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from statistics import stdev
from typing import Any

from .. import storage
from ..errors import InputError
from ..findings.analysis import compare_targets
from ..findings.analysis import drift as drift_analysis
from ..findings.analysis import sensitivity as sensing
from ..findings.analysis.compare_judges import JudgesCompared, compare_judges, same_transcripts
from ..findings.analysis.judge_agreement import judging, read_check
from ..findings.analysis.pairs import (
    MEASURES,
    by_system,
    pair,
    value,
)
from ..findings.analysis.read_run import Findings, gather
from ..stats.comparison import Difference
from ..stats.power import power_of, trials_needed
from ..text.escape import plain
from . import tables

DRIFTED, CANNOT_TELL = 7, 8
"""Exit codes of `drift`, for scheduled use; 0 is no evidence of drift."""


def _json(document: Any) -> int:
    print(json.dumps(document, indent=2, ensure_ascii=False, default=str))
    return 0


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.001" if value < 0.0005 else f"{value:.3f}"


def _interval(one: Difference) -> str:
    if one.mean is None:
        return "-"
    return f"{one.mean:+.2f}" + (f" ({one.low:+.2f} to {one.high:+.2f})" if one.low is not None else f" (n={one.n})")


def compare(arguments: argparse.Namespace) -> int:
    runs: list[Path] = arguments.run
    for run in runs:
        storage.read_manifest(run)
    if arguments.by == "judges" and len(runs) != 2:
        raise InputError(f"--by judges: compares two runs of the same transcripts, not {len(runs)}.")
    if len(runs) == 2 and (arguments.by == "judges" or same_transcripts(*runs)):
        found = compare_judges(runs[0], runs[1])
        return _json(_judges_json(found)) if arguments.json else _show_judges(found, arguments.show)
    gathered = [gather(run) for run in runs]
    if len(by_system(gathered)) < 2:
        raise InputError("compare: there is only one target; give a run of several, or several runs.")
    noise = max((n for one in gathered if (n := judging(one).noise_floor) is not None), default=None)
    compared = compare_targets.compare(gathered, arguments.measure or MEASURES, floor=arguments.floor, noise=noise)
    return _json(asdict(compared)) if arguments.json else _show_comparison(compared)


def _judges_json(found: JudgesCompared) -> dict[str, Any]:
    return {
        "trials": found.trials,
        "same": found.same,
        "gone": found.gone,
        "new": found.new,
        "moves": [{"first": a, "second": b, "claims": n} for (a, b), n in sorted(found.moves.items(), key=str)],
        "codes_same": found.codes_same,
        "codes_changed": [
            {"question_group": group, "first": a, "second": b, "questions": n}
            for (group, a, b), n in sorted(found.codes_changed.items())
        ],
        "changed": [asdict(change) for change in found.changed],
    }


def _show_comparison(compared: compare_targets.Compared) -> int:
    for measure in compared.measures:
        print(measure)
        for one in compared.comparisons:
            if one.measure != measure:
                continue
            gap = one.difference
            print(f"  {one.first} - {one.second}: {one.verdict}")
            print(f"    difference {_interval(gap)}, {gap.n} pairs in {gap.clusters} scenarios")
            print(
                f"    p Holm {_p(one.p_holm)}, BH {_p(one.p_bh)}; d_z {_number(gap.effect.d_z)}; "
                f"MDD {_number(one.minimum)}; one-sided {one.one_sided}, unmatched {one.unmatched}"
            )
        for rank in compared.ranks[measure]:
            first = f"{rank.ranks[0]:.0%}" if rank.ranks else "-"
            print(f"  {rank.system}: mean {_number(rank.mean)}, best in {first} of resamples")
        print()
    print("Pairs: same scenario, variant and repetition. Intervals 95%, by scenario. p: sign flips of whole scenarios,")
    print("adjusted within a measure. MDD: minimum detectable difference at 80% power, pairs taken as independent.")
    if compared.noise_floor is not None:
        print(f"Differences below the judges' noise of {compared.noise_floor:.1%} are not told apart.")
    return 0


def _show_judges(found: JudgesCompared, show: int) -> int:
    total = found.same + len(found.changed)
    print(f"{found.trials} trials, {total} claims in both: {found.same} labeled alike, {len(found.changed)} not.")
    print(f"Only in the first: {found.gone}; only in the second: {found.new}.")
    rows = [[str(a), str(b), str(n)] for (a, b), n in sorted(found.moves.items(), key=lambda move: -move[1])]
    print(tables.plain_table([("first", "left"), ("second", "left"), ("claims", "right")], rows))
    changed = sum(found.codes_changed.values())
    print(f"\nStudy codes: {found.codes_same} alike, {changed} changed.")
    for (group, a, b), n in found.codes_changed.most_common(10):
        print(f"  {group}: {a} -> {b} ({n})")
    for change in found.changed[:show]:
        print(f"\n{change.trial_id} {change.turn_id}: {change.before.label} -> {change.after.label}")
        print(f"  “{plain(change.quote)[:300]}”")
        for name, side in (("first", change.before), ("second", change.after)):
            cited = ", ".join(side.evidence) or "-"
            print(f"  {name}: {side.label} ({cited})")
            for reason in side.reasons:
                print(f"    {plain(reason)[:200]}")
    return 0


def drift(arguments: argparse.Namespace) -> int:
    old, new = gather(arguments.old), gather(arguments.new)
    found = drift_analysis.compare_runs(old, new, arguments.frozen, floor=arguments.floor)
    if arguments.json:
        _json(asdict(found))
    else:
        _show_drift(found, arguments.show)
    return {"drifted": DRIFTED, "cannot tell": CANNOT_TELL}.get(found.verdict, 0)


def _show_drift(found: drift_analysis.Drifts, show: int) -> None:
    print("Judges")
    for fact in found.judge_facts or ("nothing changed as fact",):
        print(f"  {plain(fact)}")
    if found.judge:
        share = found.judge.changed
        told = "drifted" if found.judge.drifted else "within bounds"
        print(f"  on frozen transcripts {share.count} of {share.n} labels changed: {told}")
    else:
        print("  not checked on frozen transcripts: `rejudge OLD`, then give that run as --frozen")
    for target in found.targets:
        print(f"\n{target.target}: {target.verdict}")
        for fact in target.facts or ("nothing changed as fact",):
            print(f"  {plain(fact)}")
        rows = [
            [name, str(one.difference.n), _interval(one.difference), _p(one.difference.p), one.verdict]
            for name, one in target.measures.items()
        ]
        columns: tables.Columns = [
            ("measure", "left"), ("n", "right"), ("new - old", "right"), ("p", "right"), ("verdict", "right"),
        ]  # fmt: skip
        print(tables.plain_table(columns, rows))
        moved = [one for one in target.questions if one.better or one.worse]
        rows = [
            [one.question, str(one.better), str(one.worse), str(one.same), _p(one.p_holm)]
            for one in sorted(moved, key=lambda one: (-(one.better + one.worse), one.question))[:30]
        ]
        names: tables.Columns = [
            ("question", "left"), ("better", "right"), ("worse", "right"), ("same", "right"), ("p Holm", "right"),
        ]  # fmt: skip
        print(tables.plain_table(names, rows) if rows else "  No question's code changed.")
        for one in target.answers[:show]:
            print(f"\n  {one.trial_id} {one.group}: {one.before} -> {one.after}")
            print(f"    asked: {plain(one.question)[:200]}")
            print(f"    old:   {plain(one.old_reply)[:400]}")
            print(f"    new:   {plain(one.new_reply)[:400]}")
    print(f"\nVerdict: {found.verdict}.")


def sensitivity(arguments: argparse.Namespace) -> int:
    found = sensing.sensitivity(gather(arguments.run), arguments.measure)
    if arguments.json:
        return _json(asdict(found))
    for one in found.targets:
        print(f"{one.target}: {one.measure}, {one.components.n} trials")
        rows = [
            [part.name, str(part.groups), _number(part.variance, 4), "-" if part.share is None else f"{part.share:.0%}"]
            for part in (*one.components.parts, *(one.judges.parts if one.judges else ()))
        ]
        columns: tables.Columns = [
            ("between", "left"), ("groups", "right"), ("variance", "right"), ("share", "right"),
        ]  # fmt: skip
        print(tables.plain_table(columns, rows))
        worst = sorted(one.worst.scenarios, key=lambda w: (-w.gap, w.scenario))[:5]
        for case in worst:
            if case.gap > 0:
                print(f"  {case.scenario}: worst variant {case.variant} {case.worst.mean:.2f}, mean {case.mean:.2f}")
        styles = ", ".join(f"{style} {mean:.2f}" for style, mean in found.styles[one.target].items())
        print(f"  by voice: {styles or '-'}\n")
    for change in found.ranks:
        swapped = "; ".join(f"{a} and {b}" for a, b in change.swapped) or "none"
        print(f"ranks under {change.variant}: Kendall's tau {_number(change.tau)} to the rest; swapped: {swapped}")
    return 0


def power(arguments: argparse.Namespace) -> int:
    try:
        return _power(arguments)
    except ValueError as error:
        raise InputError(f"power: {error}.") from None


def _power(arguments: argparse.Namespace) -> int:
    sd, clusters = arguments.sd, arguments.clusters
    if arguments.pilot:
        found = gather(arguments.pilot)
        sd = _pilot_sd(found, arguments.measure)
        print(f"From {arguments.pilot}: standard deviation of paired differences in {arguments.measure} {sd:.3f}.")
    if sd is None:
        raise InputError("power: give --pilot RUN, or --sd, the standard deviation of paired differences.")
    if arguments.trials:
        reached = power_of(
            arguments.trials, arguments.difference, sd, alpha=arguments.alpha, clusters=clusters, icc=arguments.icc
        )
        print(f"{arguments.trials} pairs show a difference of {arguments.difference} with power {_number(reached)}.")
        return 0
    rows = []
    for difference in sorted({arguments.difference, 0.02, 0.05, 0.1, 0.2}):
        needed = trials_needed(
            difference, sd, power=arguments.power, alpha=arguments.alpha, clusters=clusters, icc=arguments.icc
        )
        rows.append([f"{difference:.2f}", "more scenarios needed" if needed is None else f"{needed:,}"])
    print(tables.plain_table([("difference", "right"), ("pairs of trials needed", "right")], rows))
    print(f"Paired t test, two-sided alpha {arguments.alpha}, power {arguments.power}, icc {arguments.icc}.")
    return 0


def _pilot_sd(found: Findings, measure: str) -> float:
    """The spread of paired differences between the run's targets, or between repeats of its one target."""
    systems = by_system([found])
    rows = list(systems.values())
    gaps: list[float] = []
    for first, second in pairwise(rows):
        gaps += [a - b for _, a, b in pair(first, second, measure).pairs]
    if not gaps and rows:
        by_name: dict[tuple[str, str | None], list[float]] = {}
        for row in rows[0]:
            one = value(row, measure)
            if one is not None:
                by_name.setdefault((row.scenario_id, row.variant), []).append(one)
        gaps = [b - a for values in by_name.values() for a, b in pairwise(values)]
    if len(gaps) < 2:
        raise InputError(f"power: the pilot has too few pairs of trials with {measure}; give --sd instead.")
    found_sd = stdev(gaps)
    if not found_sd:
        raise InputError(f"power: all differences of the pilot in {measure} are alike; give --sd instead.")
    return found_sd


def export(arguments: argparse.Namespace) -> int:
    from ..findings.export.export import export as write_export

    formats = [name.strip() for name in arguments.to.split(",") if name.strip()]
    for path in write_export(arguments.run, arguments.out or arguments.run / "export", formats):
        print(path)
    return 0


def report(arguments: argparse.Namespace) -> int:
    from ..findings.report.checklist import chart_checklist
    from ..findings.report.write import write_report

    found = [gather(run) for run in arguments.run]
    record = read_check(arguments.judge_check) if arguments.judge_check else None
    judged = [judging(one, record) for one in found]
    out: Path = arguments.out or arguments.run[0] / "report"
    paths = write_report(found, judged, out)
    if arguments.checklist:
        path = out / "chart_checklist.md"
        try:
            path.write_text(chart_checklist(found[0]), encoding="utf-8")
        except OSError as error:
            raise storage.storage_error(path, error) from None
        paths.append(path)
    for path in paths:
        print(path)
    return 0
