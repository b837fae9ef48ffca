"""What every reader of scores must know of who judged: rules, which are a test double, or one model twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..records.model_name import is_person, split_name
from ..schemas import Manifest, RunPlan
from ..text.rounded import percent
from .read_run import NOTICES, Findings, judged_offline

FIRST_FORMAT = 4
"""Of the runs that the rules measured here have judged."""


MEASURED: dict[str, dict[str, Any]] = NOTICES["measured"]
"""By part of the gold set."""
_PARTS = [
    NOTICES["rule_judge_part"].format(share=percent(one["right"] / one["claims"]), **one) for one in MEASURED.values()
]
OFFLINE_NOTICE: str = NOTICES["rule_judge"].format(parts="; ".join(_PARTS))
EARLIER_NOTICE: str = NOTICES["rule_judge_earlier"]


def run_notices(runs: Sequence[Findings]) -> tuple[str, ...]:
    """What a reader of an analysis must know of its runs: that one is not complete, and who judged."""
    unfinished = [f"{one.folder.name}: {one.incomplete}" for one in runs if one.incomplete]
    return (*unfinished, *offline_notices(one.manifest for one in runs))


def by_targets(plan: RunPlan, role: str, nobody: str = "") -> str:
    """Who has a role for all targets; if that differs, each of them with its targets."""
    found: dict[str, list[str]] = {}
    for judges, targets in plan.groups_of_judges():
        who = dict(judges)[role] or nobody
        found.setdefault(who if isinstance(who, str) else ", ".join(who), []).extend(targets)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{who} ({', '.join(targets)})" for who, targets in found.items())


def one_model_notices(plan: RunPlan) -> tuple[str, ...]:
    """For whom one model is all verifiers. The rule-based judge has a notice of its own."""
    targets: dict[str, list[str]] = {}
    for judges, judged in plan.groups_of_judges():
        model = judges.verifiers[0]
        if judges.one_model and not is_person(model) and split_name(model).provider != "offline":
            targets.setdefault(model, []).extend(judged)
    return tuple(NOTICES["one_model"].format(model=model, targets=", ".join(of)) for model, of in targets.items())


def offline_notices(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """What to say of runs that the rule-based judge took part in, each notice once."""
    judged = (one for one in manifests if judged_offline(one.plan))
    return tuple(dict.fromkeys(OFFLINE_NOTICE if one.format >= FIRST_FORMAT else EARLIER_NOTICE for one in judged))
