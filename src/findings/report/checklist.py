"""Reporting checklists for a study of a language model's health advice, filled in with what a run knows.

Topics and item numbers are those of the published lists; their sub-items are not reproduced: ids and text are this
project's own. All text is in JSON files, one per list, and lines that several lists share are in checklist_lines.json.
`checklist_facts` computes the values for their {placeholders}. What a run cannot know is marked `AUTHOR:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from ...errors import InputError
from ...records.preregistration import Registration
from ..analysis.judge_agreement import Judging, judging
from ..analysis.read_run import Findings
from .checklist_facts import facts_of
from .checklist_results import Value
from .markdown import notice_lines
from .methods import AUTHOR
from .notices import notices_of
from .series import runs_of

ChecklistName = Literal["chart", "tripod-llm", "mi-clear-llm"]
CHECKLISTS: tuple[ChecklistName, ...] = get_args(ChecklistName)
ALL = "all"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SHARED = "@"


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to report."""

    item_id: str
    number: int
    """Of the published item on this topic."""
    topic: str
    report: str
    """What to report."""
    known: tuple[str, ...] = ()
    """What the run knows, as lines with {placeholders}; `@name` stands for shared lines."""
    ask: str = ""
    """What the author must add; empty if the run knows everything."""
    ask_if_registered: str = ""
    """Instead of `ask`, if the run was pre-registered."""


class Checklist(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    source: str
    main_items: dict[int, str]
    """Number of the published item to its topic."""
    items: tuple[Item, ...]


def file_name(name: ChecklistName) -> str:
    """The file that a report has the list in."""
    return f"{name.replace('-', '_')}_checklist.md"


def chosen_checklists(names: str | Sequence[str]) -> tuple[ChecklistName, ...]:
    """The lists that these names mean, each once; a name may be `all`, or several with commas between them."""
    given = [one.strip() for name in ([names] if isinstance(names, str) else names) for one in name.split(",")]
    for name in given:
        if name not in (*CHECKLISTS, ALL):
            known = ", ".join((*CHECKLISTS, ALL))
            raise InputError(f"{name!r} is not a checklist. Choose from {known}.")
    return tuple(name for name in CHECKLISTS if name in given or ALL in given)


@cache
def shared_lines() -> dict[str, tuple[str, ...]]:
    return msgspec.json.decode(_text_file("lines").read_bytes(), type=dict[str, tuple[str, ...]])


@cache
def load_checklist(name: ChecklistName) -> Checklist:
    """A list, with shared lines in place."""
    read = msgspec.json.decode(_text_file(name.replace("-", "_")).read_bytes(), type=Checklist)
    items = tuple(msgspec.structs.replace(item, known=tuple(_lines(item.known))) for item in read.items)
    return msgspec.structs.replace(read, items=items)


def _text_file(name: str) -> Path:
    return Path(__file__).with_name(f"checklist_{name}.json")


def _lines(known: Sequence[str]) -> Iterator[str]:
    for line in known:
        if line.startswith(_SHARED):
            yield from shared_lines()[line.removeprefix(_SHARED)]
        else:
            yield line


def checklists(
    names: Sequence[ChecklistName],
    findings: Findings,
    *,
    registration: Registration | None = None,
    measured: Judging | None = None,
) -> dict[ChecklistName, str]:
    """Checklists in Markdown, filled in from a run; what its author must add is marked `AUTHOR:`.

    Args:
        names: Which lists.
        findings: The run.
        registration: A pre-registration other than the one in the manifest.
        measured: What is known about the judges, if it was computed already.

    Returns:
        The text of each list.
    """
    runs = runs_of([findings], [measured or judging(findings)])
    registered = registration or findings.manifest.registration
    facts = facts_of(runs, registered)
    notices = "\n".join(notice_lines(one.cells for one in notices_of(runs)))
    return {name: _text(load_checklist(name), facts, notices, registered=bool(registered)) for name in names}


def _text(texts: Checklist, facts: Mapping[str, Value], notices: str, *, registered: bool) -> str:
    head = [f"# Reporting checklist ({texts.name}): run {{run_id}}", texts.source, *shared_lines()["intro"]]
    blocks = [*fill(head, facts), notices]
    number = 0
    for item in texts.items:
        if item.number != number:
            number = item.number
            blocks.append(f"## {texts.name} item {number}: {texts.main_items[number]}")
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
