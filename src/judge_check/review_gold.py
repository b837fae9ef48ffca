"""A finished review as a gold set: the labels that people agreed on, or that were settled, for `judge-check`.

A gold file names a scenario of the bank and a plan year; key and facts are filled in when it is read. So a reply is
left out if its scenario is not in the bank, or has other questions, figures or facts there now. So are claims that
people left open, and labels that break the rules of gold labels: a fact that they cite may have changed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .. import storage
from ..errors import InputError
from ..findings.review import is_review
from ..planning.library import Library
from ..planning.scenario_files import expand, read_scenario
from ..records.judge_check import ClaimKind, GoldClaim, GoldFile, GoldReply, Labeling
from ..schemas import Claim, FinalClaim, Manifest, PlannedScenario, TrialResult, Verdict
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from ..text.quotes import find_quote
from .gold import gold_of, label_problems

LONGEST_ID, LONGEST_REASON = 64, 1_000
NO_REASON = "Settled by people; no reason was given."
Quality = Literal["good", "mixed", "poor"]


@dataclass
class ExportedGold:
    """What was written, and what was left out."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    replies: int = 0
    claims: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Claims by reason."""


def export_gold(review: Path, out: Path) -> ExportedGold:
    """Write the gold files of a finished review, one per scenario; see `api.reviews.export_review`."""
    manifest = storage.read_manifest(review)
    if not is_review(manifest):
        raise InputError(f"{review} is not a review by people. Start one with `medicare-eval review`.")
    if storage.read_seal(review, manifest) is None:
        raise InputError(f"{review} is not finished. Export it when all questions are answered.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} already exists and will not be overwritten. Give another folder.")
    found = ExportedGold(out)
    replies: dict[str, list[GoldReply]] = {}
    bank, settled = _Bank(manifest), _settled(review, manifest)
    for trial in storage.StoredResults(review, manifest):
        for reply in _replies(trial, bank, settled, found.left_out):
            replies.setdefault(trial.scenario_id, []).append(reply)
    year, note = manifest.plan.plan_year, f"Labeled by people in review {manifest.run_id}."
    made = [
        GoldFile(scenario_id=name, plan_year=year, note=note, replies=tuple(replies[name])) for name in sorted(replies)
    ]
    files = _valid(made, out, found.left_out)
    if not files:
        why = "; ".join(f"{n} left out: {why}" for why, n in sorted(found.left_out.items())) or "it has no claims"
        raise InputError(f"{review} has no settled claim that a gold set can hold ({why}).")
    _write(found, files)
    return found


class _Bank:
    """Which scenarios of a run are those of the bank, as it is now."""

    def __init__(self, manifest: Manifest) -> None:
        self._year = manifest.plan.plan_year
        self._planned = {(one.scenario.scenario_id, one.variant): one for one in manifest.plan.scenarios}
        self._paths = {path.stem: path for path in expand([str(data_folder("scenarios"))])}
        self._library = Library()
        self._known: dict[str, dict[str | None, PlannedScenario]] = {}

    def same(self, scenario_id: str, variant: str | None) -> bool:
        if scenario_id not in self._known:
            path = self._paths.get(scenario_id)
            planned = read_scenario(path).planned(self._year, self._library) if path else ()
            self._known[scenario_id] = {one.variant: one for one in planned}
        mine, theirs = self._planned.get((scenario_id, variant)), self._known[scenario_id].get(variant)
        return mine is not None and theirs is not None and mine.scenario == theirs.scenario


Settled = Mapping[tuple[str, str], str]
"""By trial and claim: the notes of the person who settled it."""


def _settled(review: Path, manifest: Manifest) -> Settled:
    found: dict[tuple[str, str], str] = {}
    for record in storage.read_calls(review, manifest):
        trial, stage, *_ = record.call.split("|")
        if stage == "adjudicator" and record.outcome == "ok" and record.text:
            for one in json.loads(record.text).get("decisions", ()):
                found[trial, str(one["claim_id"])] = str(one.get("notes", ""))
    return found


def _replies(trial: TrialResult, bank: _Bank, settled: Settled, left_out: Counter[str]) -> Iterator[GoldReply]:
    claims = {claim.claim_id: claim for claim in trial.claims}
    same = bank.same(trial.scenario_id, trial.variant)
    for exchange in trial.conversation:
        finals = [one for one in trial.final_claims if one.turn_id == exchange.turn_id]
        if not finals or not exchange.reply:
            continue
        if not same:
            left_out["its scenario is not that of the bank"] += len(finals)
            continue
        kept: list[GoldClaim] = []
        for final in finals:
            notes = settled.get((trial.trial_id, final.claim_id), "")
            made = _claim(trial, exchange.reply, claims[final.claim_id], final, left_out, notes=notes)
            if made and all(made.claim_id != one.claim_id for one in kept):
                kept.append(made)
        if kept:
            yield GoldReply(
                reply_id=_ident(f"{trial.trial_id}.{exchange.turn_id}"),
                turn_id=exchange.turn_id,
                variant=trial.variant,
                quality=_quality(kept),
                text=exchange.reply,
                asked=_asked(trial, exchange.turn_id),
                claims=tuple(kept),
            )


def _asked(trial: TrialResult, turn_id: str) -> tuple[str, ...]:
    """What the person said up to this turn."""
    place = next(at for at, one in enumerate(trial.conversation) if one.turn_id == turn_id)
    said = trial.conversation[: place + 1]
    return tuple(one.user_message for one in said if one.outcome not in ("skipped", "not_asked"))


def _claim(
    trial: TrialResult, reply: str, claim: Claim, final: FinalClaim, left_out: Counter[str], *, notes: str
) -> GoldClaim | None:  # fmt: skip
    if final.label is None:
        left_out["people did not agree on it"] += 1
        return None
    quotes = tuple(reply[span.start : span.end] for span in claim.quote_spans)
    if not all(quote and find_quote(reply, quote) for quote in quotes):
        left_out["its quote is not found in the reply"] += 1
        return None
    verdicts = [one for given in trial.verdicts.values() for one in given if one.claim_id == claim.claim_id]
    agreeing = [one for one in verdicts if one.label == final.label]
    return GoldClaim(
        claim_id=_ident(claim.claim_id),
        text=claim.text,
        quotes=quotes,
        label=final.label,
        evidence=final.evidence,
        severity=final.severity,
        kind=_kind(final),
        reason=_reason(notes or next((one.notes for one in agreeing if one.notes), "")),
        labelings=tuple(_labeling(one) for one in verdicts),
    )


def _labeling(verdict: Verdict) -> Labeling:
    return Labeling(
        label=verdict.label,
        evidence=verdict.evidence,
        severity=verdict.severity,
        kind=_kind(verdict),
        reason=_reason(verdict.notes),
    )


def _kind(of: Verdict | FinalClaim) -> ClaimKind:
    """As far as a label tells: people are not asked what kind of claim it is."""
    if of.label == "NOT_IN_KEY":
        return "not_in_key"
    return "disallowed" if any(re.fullmatch(r"D\d+", one) for one in of.evidence) else "plain"


def _reason(notes: str) -> str:
    return " ".join(notes.split())[:LONGEST_REASON] or NO_REASON


def _quality(claims: Sequence[GoldClaim]) -> Quality:
    labels = Counter(claim.label for claim in claims)
    if not labels["CONTRADICTED"]:
        return "good"
    return "mixed" if labels["SUPPORTED"] > labels["CONTRADICTED"] else "poor"


def _ident(name: str) -> str:
    """An id of letters, digits, - and _; a long one ends with a hash."""
    made = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    return made if len(made) <= LONGEST_ID else f"{made[: LONGEST_ID - 13]}-{sha256(name)[:12]}"


def _valid(files: Sequence[GoldFile], out: Path, left_out: Counter[str]) -> list[GoldFile]:
    """The files without claims whose labels a gold set may not have."""
    if not files:
        return []
    sources = {out / f"{one.scenario_id}.json": one for one in files}
    broken = {item.reply.reply_id: label_problems(item) for item in gold_of(out, sources).items}
    left_out["its label breaks a rule of gold labels"] += sum(map(len, broken.values()))
    left_out += Counter()  # without zeros
    kept: list[GoldFile] = []
    for one in files:
        replies = []
        for reply in one.replies:
            claims = tuple(claim for claim in reply.claims if claim.claim_id not in broken[reply.reply_id])
            if claims:
                replies.append(reply.model_copy(update={"claims": claims}))
        if replies:
            kept.append(one.model_copy(update={"replies": tuple(replies)}))
    return kept


def _write(found: ExportedGold, files: Sequence[GoldFile]) -> None:
    try:
        found.folder.mkdir(parents=True, exist_ok=True)
        for one in files:
            path = found.folder / f"{one.scenario_id}.json"
            text = json.dumps(one.model_dump(mode="json", exclude_none=True), indent=2, ensure_ascii=False)
            path.write_text(f"{text}\n", encoding="utf-8")
            found.files.append(path)
            found.replies += len(one.replies)
            found.claims += sum(len(reply.claims) for reply in one.replies)
    except OSError as error:
        raise storage.storage_error(found.folder, error) from None
