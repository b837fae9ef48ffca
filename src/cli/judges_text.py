"""What `compare` prints of two judgings of the same transcripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ..findings.analysis.compare_judges import Change, ChangedCode, JudgesCompared
from ..findings.report.drift_page import NO_KNOWN_CHANGE
from ..text.count import counted
from ..text.escape import plain
from . import tables
from .analysis_text import notice_lines, start_of

CODES_SHOWN = 10


def judges_json(found: JudgesCompared) -> dict[str, Any]:
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


def judges_text(found: JudgesCompared, show: int) -> Iterator[str]:
    total = found.same + len(found.changed)
    both = f"{counted(found.trials, 'trial')}, {counted(total, 'claim')} in both runs"
    yield f"{both}: {counted(found.same, 'label')} same, {len(found.changed)} changed."
    yield f"Claims only in the first run: {found.gone}; only in the second: {found.new}."
    rows = [[str(a), str(b), str(n)] for (a, b), n in sorted(found.moves.items(), key=lambda move: -move[1])]
    yield tables.plain_table([("first", "left"), ("second", "left"), ("claims", "right")], rows)
    yield f"\nStudy codes: {found.codes_same} same, {sum(found.codes_changed.values())} changed."
    for change, n in found.codes_changed.most_common(CODES_SHOWN):
        yield f"  {change.question_group}: {change.first} -> {change.second} ({n})"
    if len(found.codes_changed) > CODES_SHOWN:
        yield f"  {CODES_SHOWN} of {len(found.codes_changed)} kinds of change shown; --json has all."
    for outcome, n in found.outcomes_changed.most_common():
        yield f"Trials: {outcome.first} -> {outcome.second} ({n})"
    yield "\nWhat differs between the judgings:"
    yield from (f"  {plain(one)}" for one in found.differences or (NO_KNOWN_CHANGE,))
    for one in found.changed[:show]:
        yield from _changed_claim_text(one)
    for code in found.changed_codes[:show]:
        yield from _changed_code_text(code)
    for all_of_them, what in ((found.changed, "changed label"), (found.changed_codes, "changed code")):
        if len(all_of_them) > show:
            yield f"\n{show} of {counted(len(all_of_them), what)} shown; --show N or --json has more."
    yield from notice_lines(found.notices)


def _changed_claim_text(change: Change) -> Iterator[str]:
    yield f"\n{change.trial_id} {change.turn_id}: {change.before.label} -> {change.after.label}"
    yield f"  “{start_of(change.quote, 300)}”"
    for name, side in (("first", change.before), ("second", change.after)):
        yield f"  {name}: {side.label} ({', '.join(side.evidence) or '-'})"
        yield from (f"    {start_of(reason, 200)}" for reason in side.reasons)


def _changed_code_text(change: ChangedCode) -> Iterator[str]:
    yield f"\n{change.trial_id} {change.question_group}: {change.before} -> {change.after}"
    yield f"  first: {start_of(change.reason_before, 300) or '-'}"
    yield f"  second: {start_of(change.reason_after, 300) or '-'}"
