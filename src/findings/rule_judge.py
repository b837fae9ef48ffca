"""What every reader of scores by the rule-based judge must know: it is a test double, and how little it decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..schemas import Manifest
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


def offline_notices(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """What to say of runs that the rule-based judge took part in, each notice once."""
    judged = (one for one in manifests if judged_offline(one.plan))
    return tuple(dict.fromkeys(OFFLINE_NOTICE if one.format >= FIRST_FORMAT else EARLIER_NOTICE for one in judged))
