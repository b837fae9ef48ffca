"""What `compare` does: targets on the same trials, or judges on the same transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ... import storage
from ...errors import InputError
from ...scoring.definitions import MEASURES
from .collector import collector_paused
from .compare_judges import JudgesCompared, compare_judges, same_transcripts
from .compare_targets import FLOOR, Compared, compare_targets
from .judge_agreement import judging
from .pairs import by_system
from .read_run import gather


@collector_paused()
def compare_runs(
    runs: Sequence[Path],
    *,
    by: Literal["target", "judges"] = "target",
    measures: Sequence[str] | None = None,
    floor: float = FLOOR,
) -> Compared | JudgesCompared:
    """Compare the targets of one or more runs, or two judgings of the same transcripts.

    Args:
        runs: Run folders. Two runs of the same transcripts are compared judge by judge, whatever `by` says.
        by: What to compare.
        measures: The measures to compare targets on; all of them by default.
        floor: The smallest difference that matters.

    Raises:
        InputError: Not a run folder, an unknown measure, fewer than two targets, or different transcripts.
    """
    chosen = tuple(measures or MEASURES)
    unknown = [name for name in chosen if name not in MEASURES]
    if unknown:
        raise InputError(f"{unknown[0][:40]!r} is not a measure. Use {', '.join(MEASURES)}.")
    if not runs:
        raise InputError("compare needs at least one run folder.")
    for run in runs:
        storage.read_manifest(run)
    if by == "judges" and len(runs) != 2:
        raise InputError(f"Comparing judges takes two runs of the same transcripts, not {len(runs)}.")
    if len(runs) == 2 and (by == "judges" or same_transcripts(*runs)):
        return compare_judges(runs[0], runs[1])
    found = [gather(run) for run in runs]
    if len(by_system(found)) < 2:
        raise InputError("compare needs two targets, but there is only one. Give a run of several, or several runs.")
    noise = max((one.noise_floor for one in map(judging, found) if one.noise_floor is not None), default=None)
    return compare_targets(found, chosen, floor=floor, noise=noise)
