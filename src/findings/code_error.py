"""Judge error carried through to the shares of study codes: corrected with a judge check, or bounded by the run itself.

With a check that measured codes, a share is corrected by Rogan and Gladen's formula for how often the same judges find
the code on the gold set, and how often they give it wrongly. Without one, the run shows how far the share could move if
every code that hangs on a claim the judges disagreed on, or left open, fell the other way (`split_codes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..records.judge_check import CodesMeasured, JudgeCheck
from ..scoring.definitions import CODE_HEADINGS, ShareName
from ..stats.bounded import Interval
from ..stats.clustered import ClusterCount
from ..stats.confusion import PREVALENCE_DRAWS, Corrected, ErrorRates, corrected_limits, independent_size, rogan_gladen
from ..stats.intervals import Share, wilson
from ..trials.missing import MISSING, NOT_CODED
from ..trials.row import CodedQuestion, Row
from ..trials.split_codes import SplitCode
from .estimates import Estimated
from .judge_agreement import SEED

LEAST_REPLIES = 10
"""Gold replies with the code, and without it. With fewer, the judges' error is hardly known."""
LEAST_APART = 0.2
"""By how much the judges must give a code more often to replies that have it than to others."""


def code_rates(measured: CodesMeasured, code: ShareName) -> tuple[Share, Share]:
    """How often judges find one study code on gold replies, and how often they give it wrongly to others.

    Replies that the judges left without a code do not count: they are missing in a run, too.
    """
    coded = [one for one in measured.replies if one.given != NOT_CODED]
    those = [one.given == code for one in coded if one.gold == code]
    others = [one.given == code for one in coded if one.gold != code]
    return wilson(sum(those), len(those)), wilson(sum(others), len(others))


def _by_scenario(measured: CodesMeasured, code: ShareName) -> ErrorRates:
    """The same by scenario, because judges may err alike on replies to the same questions."""
    found: dict[tuple[bool, str], list[bool]] = {}
    for one in measured.replies:
        if one.given != NOT_CODED:
            found.setdefault((one.gold == code, one.scenario_id), []).append(one.given == code)
    those, others = (
        tuple(ClusterCount(sum(given), len(given)) for (has, _), given in found.items() if has is wanted)
        for wanted in (True, False)
    )
    return ErrorRates(those, others)


def corrected_share(
    estimated: Estimated, measured: CodesMeasured, code: ShareName, *, seed: int = SEED, draws: int = PREVALENCE_DRAWS
) -> Corrected:
    """The share of a code in a run, as judged, corrected for the same judges' errors on the gold set."""
    raw = estimated.value
    if raw is None or estimated.low is None or estimated.high is None:
        return Corrected(raw, why_not=estimated.why_no_interval or "no question was coded")
    why_not = _unusable(*code_rates(measured, code), code)
    if why_not:
        return Corrected(raw, why_not=why_not)
    counts = _by_scenario(measured, code)
    size = independent_size(raw, Interval(estimated.low, estimated.high))
    limits = corrected_limits(raw, size, counts, seed=seed, draws=draws)
    if limits is None:
        what = f"their errors on the gold set do not fit how many answers of this run are “{CODE_HEADINGS[code]}”"
        return Corrected(raw, why_not=what)
    value = min(1.0, max(0.0, rogan_gladen(raw, counts.sensitivity, counts.false_alarms)))
    return Corrected(raw, value, min(value, limits.low), max(value, limits.high))


def _unusable(found: Share, wrongly: Share, code: ShareName) -> str | None:
    """Why a check cannot correct this code."""
    name = f"“{CODE_HEADINGS[code]}”"
    for words, share in ((name, found), (f"not {name}", wrongly)):
        if share.n < LEAST_REPLIES:
            few = f"the check coded {share.n} gold replies that are {words}, and {LEAST_REPLIES} are needed"
            return f"{few}; measure the judges on more of the gold set"
    assert found.value is not None and wrongly.value is not None
    if found.value - wrongly.value <= LEAST_APART:
        return (
            f"the judges do not tell {name} from other answers: on the gold set they find {found.count} of "
            f"{found.n} and wrongly give it to {wrongly.count} of {wrongly.n}"
        )
    return None


@dataclass(frozen=True)
class JudgeBounds:
    """How far a share could move if split verdicts fell the other way; no further than itself if none was split."""

    lowest: float | None
    highest: float | None
    questions: int
    """Answers for which it depends on a split or open verdict whether they have the code, or any code."""


def judge_bounds(
    rows: Sequence[Row], code: ShareName, estimate_of: Callable[[Sequence[Row]], Estimated], share: Estimated
) -> JudgeBounds:
    """The lowest and highest share of a code over all ways in which split verdicts could fall.

    `estimate_of`: how the share is estimated from the trials of a target. `share`: as judged.
    """
    hanging = sum(_hangs(row, split, code) for row in rows for split in row.split_codes)
    if not hanging:
        return JudgeBounds(share.value, share.value, 0)
    fallen = (estimate_of([_fallen(row, code, to_it=to_it) for row in rows]) for to_it in (False, True))
    # The share as judged is without the answers that were left open, so it can be outside of the two ends.
    ends = [one.value for one in (share, *fallen) if one.value is not None]
    return JudgeBounds(min(ends, default=None), max(ends, default=None), hanging)


def _hangs(row: Row, split: SplitCode, code: ShareName) -> bool:
    """Whether the share of a code changes with how the verdicts on this question fall, or with that they fall."""
    return len({one == code for one in split.possible}) > 1 or CodedQuestion(split.group, MISSING) in row.counted


def _fallen(row: Row, code: ShareName, *, to_it: bool) -> Row:
    """The trial with every split code at one end: as this code wherever possible, or nowhere possible."""
    if not row.split_codes:
        return row
    possible = {split.group: split.possible for split in row.split_codes}
    counted = tuple(
        CodedQuestion(one.group, _end(possible[one.group], code, to_it=to_it)) if one.group in possible else one
        for one in row.counted
    )
    return row._replace(counted=counted)


def _end(possible: Sequence[str], code: ShareName, *, to_it: bool) -> str:
    wanted = [one for one in possible if (one == code) == to_it]
    return wanted[0] if wanted else possible[0]


@dataclass(frozen=True)
class JudgedShare:
    """What is known of the judges' part in one share."""

    share: Estimated
    """As judged."""
    corrected: Corrected | None
    """By a judge check that measured codes; None if none was given, or if it cannot correct this share."""
    bounds: JudgeBounds | None
    """By the run itself; None if all verifiers are one model."""
    why_not: str | None = None
    """Why the share is not corrected although a check was given."""


OLD_CHECK = "this check did not measure codes; run judge-check again"


def judge_error(
    rows: Sequence[Row],
    code: ShareName,
    estimate_of: Callable[[Sequence[Row]], Estimated],
    *,
    verifiers: Sequence[str],
    check: JudgeCheck | None,
) -> JudgedShare:
    """The correction of a share by a check of the same judges, and its bounds, as far as they are known."""
    share = estimate_of(rows)
    bounds = judge_bounds(rows, code, estimate_of, share) if len(set(verifiers)) > 1 else None
    if check is None:
        return JudgedShare(share, None, bounds)
    if check.codes is None:
        return JudgedShare(share, None, bounds, OLD_CHECK)
    corrected = corrected_share(share, check.codes, code)
    return JudgedShare(share, None if corrected.why_not else corrected, bounds, corrected.why_not)
