"""Reports of finished runs (spec 10): the front of `findings/`, and the summary that is printed when a run ends.

Needs no SDK, no key and no model; a run folder is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .findings.cost import CallError, Spending
from .findings.estimates import ClaimsBehind, Estimated, claims_behind, estimate, key_coverage
from .findings.read_run import Findings, Service, gather
from .reports.document import Cell, estimate_text, range_text, shown
from .reports.failure_section import kind_text
from .reports.failure_section import nothing_scored as nothing_scored_cells
from .reports.notices import notices_of
from .reports.score_section import coverage_sentence
from .reports.series import runs_of
from .reports.write import write_report
from .schemas import CODES, Manifest, TrialOutcome
from .scoring.definitions import SCORES, SHARES
from .stats.clustered import ClusteredShare, clustered_share
from .text.escape import plain
from .trials.row import Row

__all__ = [
    "SCORES",
    "CallError",
    "Spending",
    "Summary",
    "Tally",
    "coverage_sentence",
    "estimate_text",
    "kind_text",
    "nothing_scored",
    "notices",
    "range_text",
    "summarize",
    "summary_json",
    "write_report",
]


NOTHING_SAID = clustered_share([])


@dataclass
class Tally:
    """Counts and scores of one target's trials."""

    trials: int = 0
    outcomes: Counter[TrialOutcome] = field(default_factory=Counter)
    rows: list[Row] = field(default_factory=list)
    codes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    fabricated: int = 0
    review: int = 0
    marked: int = 0
    """Replies that the screen marked."""
    coverage: ClusteredShare = NOTHING_SAID
    """Of the factual claims of scored trials, the share that the answer keys could decide."""

    def add(self, row: Row) -> None:
        self.trials += 1
        self.outcomes[row.outcome] += 1
        self.codes.update(question.value for question in row.codes)
        self.errors.update(row.errors)
        self.refusals += row.refusal
        self.fabricated += row.fabricated
        self.review += row.review
        self.marked += row.marked
        self.rows.append(row)

    @property
    def claims(self) -> ClaimsBehind:
        """Of its scored trials."""
        return claims_behind(row for row in self.rows if row.outcome == "scored")

    def estimate(self, name: str) -> Estimated:
        """A score or the share of a study code, as in every report."""
        return estimate(self.rows, name)


@dataclass
class Summary:
    found: Findings
    by_target: dict[str, Tally]

    @property
    def planned(self) -> int:
        return self.found.planned

    @property
    def done(self) -> int:
        return len(self.found.rows)

    @property
    def coverage(self) -> ClusteredShare:
        """Key coverage over all targets."""
        return key_coverage(self.found.rows)

    @property
    def errors(self) -> tuple[CallError, ...]:
        """Why calls failed, by kind; the kinds that lost most answers first."""
        return self.found.errors

    @property
    def services(self) -> dict[str, Service]:
        return self.found.services


def summarize(folder: Path, manifest: Manifest) -> Summary:
    found = gather(folder, manifest)
    by_target = {target: Tally() for target in manifest.plan.targets}
    for row in found.rows:
        by_target.setdefault(row.target, Tally()).add(row)
    for target, tally in by_target.items():
        tally.coverage = key_coverage(found.of_target(target))
    return Summary(found, by_target)


def notices(summary: Summary) -> list[str]:
    """What every reader must know before the numbers."""
    runs = runs_of([summary.found], [None])
    return [_text(notice.cells) for notice in notices_of(runs)]


def _text(cells: Sequence[Cell]) -> str:
    return plain("".join(shown(cell) for cell in cells))


def nothing_scored(summary: Summary) -> str | None:
    """That a run has trials but no scores, why, and what to do; None if it has some. Refusals have scores."""
    found = summary.found
    if not found.nothing_scored:
        return None
    only_judging = all(row.outcome == "judge_failure" for row in found.rows)
    again = f"judge the replies again: medicare-eval rejudge {found.folder}" if only_judging else "start a new run."
    return f"{found.folder}: {_text(nothing_scored_cells(found))} Correct the cause, then {again}"


def summary_json(summary: Summary) -> dict[str, object]:
    return {
        "planned": summary.planned,
        "done": summary.done,
        "notices": notices(summary),
        "key_coverage": _coverage_json(summary.coverage),
        "services": {
            name: {
                "called_as": service.called,
                "served_by": sorted(service.served),
                "differs": service.differs,
                "not_applied": sorted(service.not_applied),
            }
            for name, service in summary.services.items()
        },
        "targets": {target: _tally_json(tally) for target, tally in summary.by_target.items()},
    }


def _tally_json(tally: Tally) -> dict[str, object]:
    scores = {}
    for name in SCORES:
        scores[name] = _estimate_json(tally.estimate(name))
    return {
        "trials": tally.trials,
        "claims": tally.claims.judged,
        "open_claims": tally.claims.open,
        "outcomes": dict(sorted(tally.outcomes.items())),
        "scores": scores,
        "shares_of_questions": {name: _estimate_json(tally.estimate(name)) for name in SHARES},
        "key_coverage": _coverage_json(tally.coverage),
        "study_codes": {code: tally.codes[code] for code in CODES},
        "refusals": tally.refusals,
        "fabricated_specifics": tally.fabricated,
        "needs_manual_review": tally.review,
        "marked_replies": tally.marked,
    }


def _estimate_json(found: Estimated) -> dict[str, object]:
    return {
        "mean": found.value,
        "low": found.low,
        "high": found.high,
        "scenarios": found.units,
        "effective_n": found.effective,
        "n": found.answers,
        "missing": found.missing,
        "with_open_claims": found.open,
        "lowest": found.lowest,
        "highest": found.highest,
        "why_no_interval": found.why_no_interval,
    }


def _coverage_json(share: ClusteredShare) -> dict[str, object]:
    return {
        "key_decided": share.count,
        "factual_claims": share.n,
        "share": share.value,
        "low": share.low,
        "high": share.high,
    }
