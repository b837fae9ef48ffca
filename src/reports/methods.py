"""A Methods section and a Table 1 that a paper can start from, with the run's own numbers, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from ..findings.cost import CallTimes
from ..findings.read_run import Service, software_version
from ..findings.rule_judge import by_targets
from ..records.target import KIND_NAMES
from ..scoring.definitions import IF_REFUSED_TEXT, MEASURES, SCORES
from ..stats.bounded import LEAST_IN_STRATA, LEAST_UNITS
from ..text.count import counted
from ..text.rounded import rounded
from . import template
from .markdown import notice_lines
from .notices import notices_of
from .run_section import confirmed_text, key_facts
from .series import ReportedRun, Runs
from .table_one import table_one

METHODS_MD = "methods.md"
AUTHOR = Markup("**AUTHOR:**")


def methods_markdown(runs: Runs) -> str:
    """The whole file: notices, one Methods section per run, and Table 1."""
    return template.text(
        "methods", runs=runs, notices=notices_text(runs), parts=zip("AB", table_one(runs), strict=True)
    )


def notices_text(runs: Runs) -> Markup:
    """The notices of a report as a block quote."""
    return Markup("\n".join(notice_lines(one.cells for one in notices_of(runs))))  # noqa: S704 - without markup of others


def times_of(run: ReportedRun) -> CallTimes | None:
    """When the targets were called."""
    plan, times = run.found.manifest.plan, run.calls.times
    called = [target for target in plan.targets if not plan.settings_of(target).recorded]
    return CallTimes.spanning([times[target] for target in called if target in times])


def left_out_by(targets: Iterable[str], services: Mapping[str, Service]) -> list[tuple[str, list[str]]]:
    """Targets, and the requested parameters that each of them does not accept."""
    found = [(target, sorted(services[target].not_applied)) for target in targets if target in services]
    return [one for one in found if one[1]]


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


template.environment("text").filters.update(counted=counted, listed=listed)
template.environment("text").globals.update(
    author=AUTHOR, by_targets=by_targets, confirmed_text=confirmed_text, if_refused=IF_REFUSED_TEXT,
    key_facts=key_facts,
    kind_names=KIND_NAMES, left_out_by=left_out_by, least_in_strata=LEAST_IN_STRATA, least_units=LEAST_UNITS,
    rounded=rounded,
    scores="; ".join(f"{MEASURES[name].heading} {MEASURES[name].methods}" for name in SCORES).capitalize(),
    software_version=software_version, times_of=times_of,
)  # fmt: skip
