"""A review beside the run whose trials people judged again: who said what of each claim, and how questions are coded.

A review has all trials that were flagged, and a simple random sample of the other scored ones. Claims and readings are
those of the earlier run, so claims are paired by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from .. import storage
from ..errors import HarnessError
from ..records.model_name import is_person
from ..records.run import SelectedTrials
from ..schemas import CallRecord, Manifest, TrialResult
from ..store import hash_chain
from ..store.projection import projection
from ..text.count import counted
from ..trials.missing import MISSING
from ..trials.row import Row
from .read_run import Findings, gather

Stratum = Literal["flagged", "sampled"]
STRATA: tuple[Stratum, ...] = ("flagged", "sampled")


class Rater(NamedTuple):
    kind: Literal["person", "people", "judge", "judges"]
    """`people` and `judges`: the final label of all of them together."""
    name: str


PEOPLE = Rater("people", "people, settled")
JUDGES = Rater("judges", "judges, final")


class RatedClaim(NamedTuple):
    """A claim of a reviewed trial, and the labels that it got."""

    scenario_id: str
    stratum: Stratum
    labels: dict[Rater, str]


class RatedItem(NamedTuple):
    """A claim or a question with its ratings, in the order of the raters."""

    scenario_id: str
    stratum: Stratum
    pattern: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class ReadReview:
    """A review and its earlier run, as they were read."""

    found: Findings
    earlier: Findings
    selected: SelectedTrials
    people: tuple[str, ...]
    """Who judged claims, by pseudonym; without an adjudicator who only settled ties."""
    claims: tuple[RatedClaim, ...]
    questions: tuple[RatedItem, ...]
    """Those that both people and judges led to a study code, in this order."""
    done: dict[Stratum, int]
    """Trials that people have judged."""

    @property
    def planned(self) -> dict[Stratum, int]:
        return {"flagged": len(self.selected.chosen), "sampled": len(self.selected.sampled)}

    @property
    def population(self) -> dict[Stratum, int]:
        """Trials of the earlier run that those of a stratum represent."""
        return {"flagged": len(self.selected.chosen), "sampled": self.selected.of}

    @property
    def judges(self) -> tuple[Rater, ...]:
        verifiers = self.earlier.manifest.plan.verifiers
        return tuple(_judge(number, model) for number, model in enumerate(verifiers, 1))


def is_review(manifest: Manifest) -> bool:
    """Whether people judged selected trials of an earlier run."""
    selected = manifest.transcripts and manifest.transcripts.selected
    return bool(selected) and any(map(is_person, manifest.plan.verifiers))


def read_review(found: Findings) -> ReadReview | str:
    """The review with its earlier run, or why it cannot be had."""
    transcripts = found.manifest.transcripts
    assert transcripts is not None and transcripts.selected is not None
    folder = storage.earlier_folder(found.folder, found.manifest)
    if not folder.is_dir():
        return f"the run that it reviews, {transcripts.run_id}, is not at {folder}"
    try:
        if storage.manifest_sha256(folder) != transcripts.manifest_sha256:
            return f"{folder} is not the run that it reviews ({transcripts.run_id})"
        earlier = gather(folder)
    except (HarnessError, OSError) as error:
        return f"the run that it reviews cannot be read ({error})"
    return _joined(found, earlier, transcripts.selected)


def _joined(found: Findings, earlier: Findings, selected: SelectedTrials) -> ReadReview:
    stratum_of: dict[str, Stratum] = {
        **dict.fromkeys(selected.chosen, "flagged"),
        **dict.fromkeys(selected.sampled, "sampled"),
    }
    persons = _persons(found.folder)
    names = [row.trial_id for row in found.rows if row.trial_id in stratum_of and row.trial_id in earlier.places]
    claims: list[RatedClaim] = []
    for one, two in zip(earlier.decoded(names, _decode), found.decoded(names, _decode), strict=True):
        claims += _rated(one, two, stratum_of[one.trial_id], persons, earlier.manifest.plan.verifiers)
    by_id = {row.trial_id: row for row in earlier.rows}
    questions = [
        question
        for row in found.rows
        if row.trial_id in stratum_of and row.trial_id in by_id
        for question in _coded(by_id[row.trial_id], row, stratum_of[row.trial_id])
    ]
    who = sorted({rater.name for claim in claims for rater in claim.labels if rater.kind == "person"})
    done: dict[Stratum, int] = {name: sum(stratum_of[trial] == name for trial in names) for name in STRATA}
    return ReadReview(found, earlier, selected, tuple(who), tuple(claims), tuple(questions), done)


def _judge(number: int, model: str) -> Rater:
    return Rater("judge", f"judge_{number} ({model})")


_decode = projection(
    TrialResult, {"": "trial_id scenario_id", "verdicts": "claim_id label", "final_claims": "claim_id label"}
)
_decode_call = projection(CallRecord, {"": "call model served_model"})


def _persons(folder: Path) -> dict[tuple[str, int], str]:
    """By trial and number of the verifier: the person who was asked."""
    found: dict[tuple[str, int], str] = {}
    path = folder / storage.JOURNAL
    if not path.exists():
        return found
    for line in hash_chain.ChainReader(path, storage.manifest_sha256(folder)):
        if hash_chain.is_call(line.payload):
            call = _decode_call(line.payload)
            trial, stage, _, judge, *_ = call.call.split("|")
            if stage == "verifier" and call.served_model and is_person(call.model):
                found[trial, int(judge.partition(".")[0])] = call.served_model
    return found


def _rated(
    one: TrialResult, two: TrialResult, stratum: Stratum, persons: dict[tuple[str, int], str], models: tuple[str, ...]
) -> Iterator[RatedClaim]:
    """The claims of one trial, from the earlier run and from the review."""
    labels: dict[str, dict[Rater, str]] = {}
    for judge, verdicts in two.verdicts.items():
        person = persons.get((two.trial_id, int(judge.removeprefix("judge_"))))
        for verdict in verdicts if person else ():
            labels.setdefault(verdict.claim_id, {})[Rater("person", person or "")] = verdict.label
    for judge, verdicts in one.verdicts.items():
        number = int(judge.removeprefix("judge_"))
        for verdict in verdicts:
            labels.setdefault(verdict.claim_id, {})[_judge(number, models[number - 1])] = verdict.label
    for rater, trial in ((JUDGES, one), (PEOPLE, two)):
        for final in trial.final_claims:
            if final.label is not None:
                labels.setdefault(final.claim_id, {})[rater] = final.label
    return (RatedClaim(one.scenario_id, stratum, given) for given in labels.values())


def _coded(one: Row, two: Row, stratum: Stratum) -> Iterator[RatedItem]:
    theirs = dict(two.counted)
    for group, code in one.counted:
        other = theirs.get(group, MISSING)
        if MISSING not in (code, other):
            yield RatedItem(one.scenario_id, stratum, (other, code))


def unfinished(review: ReadReview) -> str:
    """That people have not judged all selected trials; empty if they have."""
    done, planned = sum(review.done.values()), sum(review.planned.values())
    return "" if done >= planned else f"People have judged {done} of {counted(planned, 'trial')}."
