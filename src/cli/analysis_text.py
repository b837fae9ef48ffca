"""What `compare`, `drift` and `sensitivity` print."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import indent
from typing import Any

from ..findings.compare import Compared, Comparison, best_first
from ..findings.compare_judges import Change, ChangedCode, JudgesCompared
from ..findings.drift import ChangedAnswer, Drifts, TargetDrift
from ..findings.estimates import Estimated
from ..findings.pairs import PairedQuestions
from ..findings.sensitivity import Sensitivities, Sensitivity
from ..reports.analysis_pages import changed_questions, compare_methods, swapped, worst_first
from ..reports.analysis_sentences import (
    compared_sentence,
    drift_sentence,
    frozen_sentence,
    method_sentence,
    p_text,
    sensitivity_sentence,
)
from ..reports.document import Cell, share_text, shown
from ..scoring.definitions import SCORES
from ..stats.comparison import Difference
from ..stats.variance import Components
from ..stats.variants import RankChange
from ..text.count import counted
from ..text.escape import plain
from ..text.rounded import percent, rounded, signed
from . import tables

NO_KNOWN_CHANGE = "no known change"
QUESTIONS_SHOWN = 30
WORST_SHOWN = 5
FACTS_SHOWN = 20


def notice_lines(notices: Sequence[str]) -> Iterator[str]:
    for notice in notices:
        yield f"\n{tables.wrapped(notice)}"


def _told(cells: Sequence[Cell], before: str = "") -> str:
    """A sentence for the terminal, where text of others has no control characters."""
    text = "".join(plain(cell.text) if cell.kind == "text" else shown(cell) for cell in cells)
    return _wrapped(text, before)


def _wrapped(text: str, before: str) -> str:
    width = shutil.get_terminal_size().columns - len(before)
    return indent(tables.wrapped(text, width), before)


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else rounded(value, digits)


def _p(value: float | None) -> str:
    return p_text(value).replace("–", "-")


def _interval(one: Difference) -> str:
    if one.mean is None:
        return "-"
    if one.low is None or one.high is None:
        return f"{signed(one.mean)} (no interval)"
    return f"{signed(one.mean)} ({signed(one.low)} to {signed(one.high)})"


# compare


def comparison_text(compared: Compared, floor: float) -> Iterator[str]:
    least = max(floor, compared.noise_floor or 0.0)
    for measure in compared.measures:
        yield measure
        for one in compared.comparisons:
            if one.measure == measure:
                yield from _pair_text(one, least)
        for system in best_first(compared, measure):
            if compared.means[measure][system].value is None:
                continue
            yield f"  {system}: {_own_text(compared, measure, system)}"
            if measure == "accuracy":
                yield f"    key coverage {share_text(compared.coverage[system])}"
        yield ""
    for note in compare_methods(compared, floor):
        yield tables.wrapped(note)
    yield from notice_lines(compared.notices)


def _own_text(compared: Compared, measure: str, system: str) -> str:
    one = compared.means[measure][system]
    told = f"mean {_number(one.value)}"
    if one.low is not None and one.high is not None:
        told += f" ({rounded(one.low)} to {rounded(one.high)})"
    if one.claims:
        told += f", {counted(one.answers, 'trial')}, {counted(one.claims.judged, 'claim')}"
    else:
        told += f", {counted(one.answers, 'answer')}"
    if one.lowest is not None and one.highest is not None:
        told += f"; {rounded(one.lowest)} to {rounded(one.highest)} with {unsure_text(one)} at the ends"
    return told


def unsure_text(one: Estimated) -> str:
    """3 missing and 36 open claims."""
    still_open = [counted(one.claims.open, "open claim")] if one.claims and one.claims.open else []
    return " and ".join([*([f"{one.missing:,} missing"] if one.missing or not still_open else []), *still_open])


def _pair_text(one: Comparison, floor: float) -> Iterator[str]:
    gap = one.difference
    yield f"  {one.first} - {one.second}: {one.verdict}"
    yield _told(compared_sentence(one, floor), "    ")
    what = counted(one.paired.answers, "pair") + " of trials" if one.measure in SCORES else counted(gap.n, "question")
    yield f"    difference {_interval(gap)}, {what} in {counted(gap.clusters, 'scenario')}"
    yield f"    p Holm {_p(one.p_holm)}; d_z {_number(gap.effect.d_z)}; MDD {_number(one.minimum)}"
    yield from _missing_text(one.paired, turned=False)


def _missing_text(paired: PairedQuestions, *, turned: bool) -> Iterator[str]:
    """What was left out; `turned` if the difference is second minus first."""
    missing = paired.one_sided + paired.neither
    if paired.lowest is not None and paired.highest is not None:
        ends = (-paired.highest, -paired.lowest) if turned else (paired.lowest, paired.highest)
        low, high = map(signed, ends)
        still_open = f"; open claims in {paired.open}" if paired.open else ""
        yield (
            f"    missing: {paired.one_sided} on one side, {paired.neither} on both, of "
            f"{counted(paired.answers + missing, 'pair')}{still_open}; with them, {low} to {high}"
        )
    if paired.unmatched:
        yield f"    {counted(paired.unmatched, 'trial')} that the other side had not planned left out"


# drift


def drift_text(found: Drifts, show: int) -> Iterator[str]:
    yield "Judges"
    yield from (f"  {plain(fact)}" for fact in found.judge_facts or (NO_KNOWN_CHANGE,))
    yield _told(frozen_sentence(found.judge), "  ")
    for target in found.targets:
        yield from _target_text(target, show)
    yield from notice_lines(found.notices)
    yield f"\nVerdict: {found.verdict}."


def _target_text(target: TargetDrift, show: int) -> Iterator[str]:
    yield f"\n{target.target}: {target.verdict}"
    yield _told(drift_sentence(target), "  ")
    yield from (_wrapped(plain(fact), "  ") for fact in target.facts[:FACTS_SHOWN] or (NO_KNOWN_CHANGE,))
    if len(target.facts) > FACTS_SHOWN:
        yield f"  {FACTS_SHOWN} of {len(target.facts)} known changes shown; --json and --html have all"
    rows = [
        [
            name,
            str(one.difference.n),
            str(one.difference.clusters),
            _interval(one.difference),
            _p(one.difference.p),
            one.verdict,
        ]
        for name, one in target.measures.items()
    ]
    yield tables.plain_table(("measure", "n", "scenarios", "new - old", "p", "verdict"), rows)
    yield from _missing_text(target.paired["accurate_complete"], turned=True)
    covered = target.coverage
    yield f"  key coverage {share_text(covered.before)} before, {share_text(covered.after)} now"
    yield from _questions_text(target)
    for answer in target.answers[:show]:
        yield from _answer_text(answer)
    if target.answers_changed > min(show, len(target.answers)):
        shown_now = min(show, len(target.answers))
        more = "; --show N shows more" if shown_now < len(target.answers) else ", those that changed most"
        yield f"\n  {shown_now} of {counted(target.answers_changed, 'changed answer')} shown{more}"


def _questions_text(target: TargetDrift) -> Iterator[str]:
    moved = changed_questions(target.questions)
    rows = [
        [one.question, str(one.better), str(one.worse), str(one.same), _p(one.p_holm)]
        for one in moved[:QUESTIONS_SHOWN]
    ]
    names = ("question", "better", "worse", "same", "p Holm")
    yield tables.plain_table(names, rows) if rows else "  No question's code changed."
    if len(moved) > len(rows):
        yield f"  {len(rows)} of {len(moved)} questions with a changed code shown; --json and --html have all"


def _answer_text(one: ChangedAnswer) -> Iterator[str]:
    yield f"\n  {one.trial_id} {one.group}: {one.before} -> {one.after}"
    for name, text, length in (("asked", one.question, 200), ("old", one.old_reply, 400), ("new", one.new_reply, 400)):
        yield _wrapped(f"{name}: {start_of(text, length) or '(no reply)'}", "    ")


def start_of(text: str, length: int) -> str:
    """The start of a text of others; dots say that there is more."""
    shown_text = plain(text)
    if len(shown_text) <= length:
        return shown_text
    whole = shown_text[: length + 1].rsplit(" ", 1)[0]  # up to the last word that ends in time
    return f"{whole[:length]} [...]"


# sensitivity


def sensitivity_text(found: Sensitivities) -> Iterator[str]:
    for one in found.targets:
        yield from _variance_text(one)
        voices = ", ".join(f"{voice} {rounded(mean)}" for voice, mean in found.styles[one.target].items())
        yield f"  by voice: {voices or '-'}\n"
    if len(found.ranks) == 1:
        yield f"Rank order by voice: all trials have voice {found.ranks[0].variant!r}, so nothing can be compared."
    elif found.ranks:
        yield "Rank order of the targets for each voice vs. the other voices:"
        yield from map(_rank_text, found.ranks)
    yield from notice_lines(found.notices)


def _rank_text(change: RankChange) -> str:
    tau = "tau undefined" if change.tau is None else f"tau {_number(change.tau)}"
    if change.low is not None and change.high is not None:
        tau += f" ({rounded(change.low)} to {rounded(change.high)})"
    pairs = swapped(change)
    return f"  {change.variant}: {tau}; {f'swapped: {pairs}' if pairs else 'no targets swapped'}"


def _variance_text(one: Sensitivity) -> Iterator[str]:
    covered = f"; key coverage {share_text(one.coverage)}" if one.measure == "accuracy" else ""
    left_out = f", {one.left_out} without a value left out" if one.left_out else ""
    yield _wrapped(f"{one.target}: {one.measure}, {counted(one.components.n, 'trial')}{left_out}{covered}", "")
    yield _told(sensitivity_sentence(one), "  ")
    if one.estimate.lowest is not None and one.estimate.highest is not None:
        ends = f"{rounded(one.estimate.lowest)} to {rounded(one.estimate.highest)}"
        yield _wrapped(f"{unsure_text(one.estimate)}; with them at the ends of the scale, the mean is {ends}.", "  ")
    yield _variance_table(one.components)
    if one.judges:
        yield f"{one.target}: {one.measure} according to each judge, {one.judges.n} values"
        yield _variance_table(one.judges)
    cases = worst_first(one)
    for case in cases[:WORST_SHOWN]:
        yield f"  {case.scenario}: worst variant {case.variant} {rounded(case.worst)}, mean {rounded(case.mean)}"
    if len(cases) > WORST_SHOWN:
        yield f"  {WORST_SHOWN} of {len(cases)} scenarios shown; --json and --html have all"


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
    method = (
        [] if components.method == "none" else [_wrapped(f"Estimated by {shown(method_sentence(components))}.", "  ")]
    )
    return "\n".join([tables.plain_table(("between", "groups", "variance", "share"), rows), *method])


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
    yield tables.plain_table(("first", "second", "claims"), rows, "ll")
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
