"""Reviews: people judge a part of a run again, under the rules of any other judge."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import storage
from ..errors import InputError
from ..judge_check.review_gold import ExportedGold, export_gold
from ..planning.plan import replan
from ..planning.study_file import make_judge_options
from ..reading import Run
from ..records.model_name import PSEUDONYMS, is_pseudonym
from ..records.run import Doubt, SelectedTrials
from ..records.study import ExecutionOptions
from ..runner.new_run import create_run, transcripts_of
from ..schemas import TrialResult
from ..store.doubts import read_doubts
from ..store.run_folder import PathLike, as_path
from ..text.count import counted

Only = Literal["flagged", "doubtful"]

_WHY = {
    None: "marked for review by the judges' run, or by a reader",
    "flagged": "marked for review by the judges' run, or by a reader",
    "doubtful": "marked by a reader",
}
SAMPLE = 30
"""Trials that are drawn from those that nothing marked, unless a number is given."""


@dataclass(frozen=True)
class Review:
    """A review that was started: a run whose judges are people."""

    path: Path
    chosen: int
    """Trials that the judges' run or a reader marked."""
    sampled: int
    others: int
    """Trials that the sample was drawn from."""
    claims: int
    """To be judged, in all trials of the review."""
    targets: int


def start_review(
    path: PathLike,
    *,
    reviewers: Sequence[str],
    adjudicator: str | None = None,
    split: bool = False,
    only: Only | None = None,
    sample: int = SAMPLE,
    seed: int | None = None,
    out: PathLike = "runs",
) -> Review:
    """Make the run folder of a review: flagged trials, and a random sample of the others, to be judged by people.

    Args:
        path: the complete run that is reviewed; it is read and left as it is.
        reviewers: pseudonyms of at least two people. All judge every claim.
        adjudicator: a third person, who settles what they disagree about. None: it stays open.
        split: every trial is judged by two of the reviewers, who take turns.
        only: `flagged`: trials that the judges or a reader marked, and no sample. `doubtful`: only those that a
            reader marked. Agreement and corrected shares then speak for these cases only.
        sample: trials to draw from those that nothing marked.
        seed: of the draw. None: that of the run.
        out: the folder that gets the new run folder.

    Returns:
        Where it is, and how many trials it has.

    Raises:
        InputError: not a complete run, a pseudonym that cannot be used, or nothing to review.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> made = me.start_review(run.path, reviewers=["r1", "r2"], adjudicator="r3")
        >>> made.chosen + made.sampled  # people answer with: medicare-eval review continue
        1
    """
    earlier, names = as_path(path), list(dict.fromkeys(reviewers))
    if len(names) < 2:
        raise InputError("a review needs at least two people, so that their agreement is known.", field="reviewers")
    for name in (*names, *([adjudicator] if adjudicator else ())):
        if not is_pseudonym(name):
            raise InputError(f"{name[:40]!r} is not a pseudonym. {PSEUDONYMS}", field="reviewers")
    if seed is not None and not 0 <= seed < 2**63:
        raise InputError("a seed is a whole number from 0 to 2**63 - 1.", field="seed")
    if adjudicator in names:
        raise InputError(f"{adjudicator} is a reviewer, and cannot also settle ties. Name somebody else.")
    manifest = storage.read_manifest(earlier)
    storage.require_current(earlier, manifest, "review")
    if manifest.transcripts and manifest.transcripts.selected:
        raise InputError(
            f"{earlier} is itself a review. Review the run that it reviews: {manifest.transcripts.run_id}."
        )
    draw = manifest.plan.seed if seed is None else seed
    doubts = read_doubts(earlier.resolve().parent, manifest.run_id)
    results = list(Run(earlier).trials())
    selected = select_trials(results, sample=sample, seed=draw, doubts=doubts, only=only)
    judges = [f"human:{'+'.join(names)}"] if split else [f"human:{name}" for name in names]
    options = make_judge_options(
        {
            "judges": judges,
            "verifiers": 2 if split else len(names),
            "adjudicator": f"human:{adjudicator}" if adjudicator else "none",
            "isolation": "claim",
        }
    )
    made = replan(manifest.plan, options, keep_claims=True, keep_readings=True)
    transcripts = transcripts_of(earlier, Path(out), keep_claims=True, keep_readings=True, selected=selected)
    new = create_run(made, out=Path(out), options=ExecutionOptions(no_probe=True), transcripts=transcripts)
    wanted = {*selected.chosen, *selected.sampled}
    return Review(
        new.folder,
        chosen=len(selected.chosen),
        sampled=len(selected.sampled),
        others=selected.of,
        claims=sum(len(one.final_claims) for one in results if one.trial_id in wanted),
        targets=len(made.targets),
    )


def select_trials(
    results: Sequence[TrialResult], *, sample: int, seed: int, doubts: Sequence[Doubt] = (), only: Only | None = None
) -> SelectedTrials:
    """The trials that the judges' run or a reader marked, and a random sample of the scored others."""
    doubted = {one.trial_id for one in doubts}
    flagged = {one.trial_id for one in results if one.needs_manual_review} if only != "doubtful" else set()
    chosen = [one.trial_id for one in results if one.trial_id in flagged | doubted and one.claims]
    others = [one.trial_id for one in results if one.outcome == "scored" and one.trial_id not in flagged | doubted]
    size = 0 if only else min(sample, len(others))
    drawn = set(random.Random(seed).sample(others, size))  # noqa: S311 - a draw that can be repeated
    selected = SelectedTrials(
        chosen=tuple(chosen),
        why=_WHY[only],
        sampled=tuple(one for one in others if one in drawn),
        of=len(others),
        seed=seed,
        doubted=tuple(doubts),
    )
    if not selected.chosen and not selected.sampled:
        raise InputError(f"nothing to review: none of {counted(len(results), 'trial')} is marked, and none was drawn.")
    return selected


def export_review(path: PathLike, out: PathLike | None = None) -> ExportedGold:
    """Write the labels of a finished review as a gold set, on which `judge-check` measures judges.

    Args:
        path: the run folder of the review.
        out: the folder to write to, which must not have files. None: `gold` in the run folder.

    Returns:
        The files written, and how many claims were left out for which reason.

    Raises:
        InputError: not a finished review, nothing to export, or `out` has files.
        StorageError: a file cannot be written.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> made = me.start_review(run.path, reviewers=["r1", "r2"], adjudicator="r3")
        >>> me.export_review(made.path)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        medicare_eval.errors.InputError: ... is not finished. Export it when all questions are answered.
    """
    folder = as_path(path)
    return export_gold(folder, as_path(out) if out else folder / "gold")
