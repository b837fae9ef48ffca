"""Load the gold set: each reply with its question, its answer key and its labeled claims, checked for errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..agents import questioner, verifier
from ..errors import InputError
from ..planning.library import Library
from ..planning.scenario_files import expand, read_scenario
from ..records.gold import GoldClaim, GoldFile, GoldReply, Split
from ..schemas import ClaimInView, KeyInView, PlannedScenario, QuestionerInput, Verdict
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..store.strict_json import sha256
from ..text.quotes import find_quote


@dataclass(frozen=True)
class GoldItem:
    """One reply of the gold set, with what judges are shown of it."""

    reply: GoldReply
    question: str
    key: KeyInView
    claims: tuple[ClaimInView, ...]


@dataclass(frozen=True)
class Gold:
    items: tuple[GoldItem, ...]
    files: Mapping[str, str]
    """Gold file to its hash."""
    references: Mapping[str, str]
    """Facts and plan files that filled the keys, to their hashes."""

    @property
    def claims(self) -> int:
        return sum(len(item.claims) for item in self.items)


def load_gold(split: Split, folder: Path | None = None) -> Gold:
    """Read one part of the gold set, or all files of a folder.

    Each scenario is filled in for the plan year that its gold file was written for.

    Raises:
        InputError: a file is not valid, or a label breaks the rules that judges must follow.
    """
    root = folder or data_folder("gold") / split
    library = Library()
    bank = {path.stem: path for path in expand([str(data_folder("scenarios"))])}
    items: list[GoldItem] = []
    files: dict[str, str] = {}
    for path in sorted(root.glob("*.json")):
        data, gold = read_user_file(path, GoldFile)
        files[f"{split}/{path.name}"] = sha256(data)
        if gold.scenario_id not in bank:
            raise InputError(f"{path}: field scenario_id: there is no scenario {gold.scenario_id!r} in the bank.")
        planned = {one.variant: one for one in read_scenario(bank[gold.scenario_id]).planned(gold.plan_year, library)}
        for reply in gold.replies:
            _check_ids(path, reply, items)
            items.append(_item(path, reply, planned))
    if not items:
        raise InputError(f"{root} contains no gold files. Give a folder of .json files with `gold`.")
    return Gold(tuple(items), files, library.used)


def _check_ids(path: Path, reply: GoldReply, items: Sequence[GoldItem]) -> None:
    if any(item.reply.reply_id == reply.reply_id for item in items):
        raise InputError(f"{path}: reply_id {reply.reply_id!r} is used more than once in the gold set.")
    names = [claim.claim_id for claim in reply.claims]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{path}: {reply.reply_id}: claim_id {repeated[0]!r} is used more than once.")


def _item(path: Path, reply: GoldReply, planned: Mapping[str | None, PlannedScenario]) -> GoldItem:
    if reply.variant and reply.variant not in planned:
        raise InputError(f"{path}: {reply.reply_id}: the scenario has no variant {reply.variant!r}.")
    scenario = (planned.get(reply.variant) or next(iter(planned.values()))).scenario
    if reply.turn_id not in [turn.turn_id for turn in scenario.scripted_turns]:
        raise InputError(f"{path}: {reply.reply_id}: the scenario has no turn {reply.turn_id!r}.")
    asked = questioner.question(QuestionerInput(scenario=scenario, seed=0))
    item = GoldItem(
        reply=reply,
        question=next((turn.user_message for turn in asked.turns if turn.turn_id == reply.turn_id), ""),
        key=verifier.key_in_view(scenario.answer_key),
        claims=tuple(_in_view(path, reply, claim) for claim in reply.claims),
    )
    _check_labels(path, item)
    return item


def _in_view(path: Path, reply: GoldReply, claim: GoldClaim) -> ClaimInView:
    """The claim as judges see it: without its label and reason."""
    spans = [find_quote(reply.text, quote) for quote in claim.quotes]
    if None in spans:
        raise InputError(f"{path}: {reply.reply_id} {claim.claim_id}: a quote is not in the reply.")
    quotes = tuple(reply.text[span.start : span.end] for span in spans if span)
    return ClaimInView(claim_id=claim.claim_id, text=claim.text, quotes=quotes)


def _check_labels(path: Path, item: GoldItem) -> None:
    """Gold labels must follow the rules that a judge's verdicts must follow."""
    for claim, seen in zip(item.reply.claims, item.claims, strict=True):
        label = Verdict(
            claim_id=claim.claim_id, label=claim.label, evidence=claim.evidence, severity=claim.severity, notes=""
        )
        for problem in verifier.violations(label, seen, item.key, item.question):
            raise InputError(f"{path}: {item.reply.reply_id} {claim.claim_id} {problem}.")
