"""A run folder opened for reading: its trials, claims, verdicts and calls. Needs no key and takes no lock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from . import storage
from .errors import InputError
from .schemas import CallRecord, Claim, FinalClaim, Manifest, RunPlan, TrialResult, Verdict
from .store.run_folder import PathLike, as_path

if TYPE_CHECKING:
    import pandas

    from .reporting import CallError, Summary


@dataclass(frozen=True)
class RunClaim:
    """A claim of a trial, with the judges' final label; `final` is None if the claim cannot be verified."""

    trial_id: str
    target: str
    claim: Claim
    final: FinalClaim | None


@dataclass(frozen=True)
class RunVerdict:
    """One verifier's verdict on one claim."""

    trial_id: str
    target: str
    judge: str
    """`judge_1`, `judge_2`, ..."""
    model: str
    verdict: Verdict


@dataclass(frozen=True)
class Run:
    """A run folder, complete or not. Reading it needs no key and takes no lock.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> [trial.outcome for trial in run.trials()]
        ['scored']
        >>> me.open_run(run.path) == run
        True
    """

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def manifest(self) -> Manifest:
        """What was planned, and what it ran on."""
        return storage.read_manifest(self.path)

    @property
    def plan(self) -> RunPlan:
        return self.manifest.plan

    @property
    def complete(self) -> bool:
        """Whether the run is sealed: every planned trial has its result.

        Raises:
            IntegrityError: the run is sealed, but a file is missing or does not end as the seal says.
        """
        return storage.read_seal(self.path, self.manifest) is not None

    def trials(self) -> Iterator[TrialResult]:
        """Every result so far, in plan order, read one at a time."""
        return iter(storage.StoredResults(self.path, self.manifest))

    def trial(self, trial_id: str) -> TrialResult:
        """One result by its id.

        Raises:
            InputError: the run has no such result.
        """
        for trial in self.trials():
            if trial.trial_id == trial_id:
                return trial
        raise InputError(f"{self.path} has no result for trial {trial_id!r}.")

    def claims(self) -> Iterator[RunClaim]:
        """Every claim of every trial."""
        for trial in self.trials():
            final = {claim.claim_id: claim for claim in trial.final_claims}
            for claim in trial.claims:
                yield RunClaim(trial.trial_id, trial.target.name, claim, final.get(claim.same_as or claim.claim_id))

    def verdicts(self) -> Iterator[RunVerdict]:
        """Every verdict of every verifier, without the repeats that measure noise."""
        for trial in self.trials():
            for judge, verdicts in trial.verdicts.items():
                model = trial.judged_by.verifiers[judge]
                for verdict in verdicts:
                    yield RunVerdict(trial.trial_id, trial.target.name, judge, model, verdict)

    def calls(self) -> Iterator[CallRecord]:
        """Every attempt at every call, with the request and response as they were sent and received."""
        return storage.read_calls(self.path, self.manifest)

    def errors(self) -> tuple[CallError, ...]:
        """Why calls failed and judges gave no usable answer: one entry per kind, those that lost most answers first.

        Example:
            >>> import medicare_eval as me
            >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
            >>> run.errors()
            ()
        """
        return self.summary().errors

    def to_frame(self, table: str = "trials") -> pandas.DataFrame:
        """A table of the run as a pandas data frame.

        Args:
            table: runs, trials, judges, turns, claims, verdicts or questions.

        Returns:
            One row per item of that name; `medicare-eval export` writes the same columns and a codebook.

        Raises:
            InputError: there is no such table.
            ConfigError: pandas is not installed.

        Example:
            >>> import medicare_eval as me
            >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
            >>> len(run.to_frame("trials"))
            1
        """
        from .exports.export import to_frame

        return to_frame(self.path, table)

    def summary(self) -> Summary:
        """Counts and mean scores by target."""
        from . import reporting

        return reporting.summarize(self.path, self.manifest)


def open_run(path: PathLike) -> Run:
    """Open a run folder for reading.

    Args:
        path: the run folder.

    Returns:
        The run. Its trials, claims and verdicts are read when they are asked for.

    Raises:
        InputError: the folder is not a run folder, or a later release wrote it.
        IntegrityError: its manifest is not what was written.

    Example:
        >>> import medicare_eval as me
        >>> run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
        >>> me.open_run(run.path).complete
        True
    """
    run = Run(as_path(path))
    _ = run.manifest
    return run
