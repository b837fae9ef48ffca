"""A reporting checklist for a study of a chatbot's health advice, filled in with what a run knows.

Its topics are those of the CHART statement (Chatbot Assessment Reporting Tool, 2025): twelve items, whose numbers are
given. The statement's sub-items are not reproduced: ids and text are this project's own. All text is in checklist.json;
`checklist_facts` computes the values for its {placeholders}. What a run cannot know is marked `AUTHOR:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from ...records.preregistration import Registration
from ..analysis.read_run import Findings
from .checklist_facts import AUTHOR, Value, facts_of
from .markdown import notice_lines
from .notices import notices
from .series import runs_of

TEXTS = Path(__file__).with_name("checklist.json")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to report."""

    item_id: str
    chart_item: int
    """The number of CHART's item on this topic."""
    topic: str
    report: str
    """What to report."""
    known: tuple[str, ...] = ()
    """What the run knows, as lines with {placeholders}."""
    ask: str = ""
    """What the author must add; empty if the run knows everything."""
    ask_if_registered: str = ""
    """Instead of `ask`, if the run was pre-registered."""


class Checklist(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    filled_in: str
    chart_items: dict[int, str]
    """Number of CHART's item to its topic."""
    items: tuple[Item, ...]


@cache
def load_checklist() -> Checklist:
    return msgspec.json.decode(TEXTS.read_bytes(), type=Checklist)


def chart_checklist(findings: Findings, registration: Registration | None = None) -> str:
    """The checklist in Markdown, filled in from a run; what its author must add is marked `AUTHOR:`.

    `registration` is the one in the manifest, unless another is given.
    """
    texts = load_checklist()
    registered = registration or findings.manifest.registration
    facts = facts_of(findings, registered)
    blocks = [*fill(["# Reporting checklist: run {run_id}", texts.source, texts.filled_in], facts)]
    blocks.append("\n".join(notice_lines(notices(runs_of([findings], [None])))))
    number = 0
    for item in texts.items:
        if item.chart_item != number:
            number = item.chart_item
            blocks.append(f"## CHART item {number}: {texts.chart_items[number]}")
        ask = item.ask_if_registered if registered and item.ask_if_registered else item.ask
        lines = [*fill(item.known, facts), *([f"- {AUTHOR} {ask}"] if ask else [])]
        blocks += [f"### {item.item_id} {item.topic}", f"*{item.report}*", "\n".join(lines).rstrip("\n")]
    return "\n\n".join(filter(None, blocks)) + "\n"


def fill(lines: Sequence[str], facts: Mapping[str, Value]) -> Iterator[str]:
    """Lines with their placeholders replaced.

    A line is left out if one of its values is None, and repeated for each entry if one of its values is a list.
    """
    for line in lines:
        names = _PLACEHOLDER.findall(line)
        lists = [name for name in names if isinstance(facts[name], list)]
        for entry in facts[lists[0]] or () if lists else [""]:
            values = {name: entry if name in lists else facts[name] for name in names}
            if None not in values.values():
                yield _filled(line, values)


def _filled(line: str, values: Mapping[str, Value]) -> str:
    return _PLACEHOLDER.sub(lambda found: str(values[found[1]]), line)
