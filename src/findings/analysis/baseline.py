"""The human baseline: published counts of mystery shops with SHIP counselors, and their caveats."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache

from pydantic import Field

from ...errors import ConfigError
from ...records.base import Line, Record
from ...schemas import CODES, StudyCode
from ...store.input_files import read_user_file
from ...store.package_data import data_folder

MODES = ("phone", "face_to_face")


class BaselineNotes(Record):
    baseline_id: Line
    citation: Line
    address: Line
    read_in: Line
    shops: dict[str, int]
    caveats: tuple[Line, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Counts:
    """How many answers to one question group, in one mode, got each code."""

    shops: int
    codes: dict[StudyCode, int]


@dataclass(frozen=True, eq=False)
class BaselineGroup:
    group: int
    topic: str
    scenario: str
    lookup_dependent: bool
    by_mode: dict[str, Counts]


@dataclass(frozen=True)
class Baseline:
    notes: BaselineNotes
    groups: dict[int, BaselineGroup]


@cache
def load_baseline(name: str = "ship_2025") -> Baseline:
    folder = data_folder("baseline")
    _, notes = read_user_file(folder / f"{name}.json", BaselineNotes)
    text = (folder / f"{name}.csv").read_text(encoding="utf-8")
    groups: dict[int, BaselineGroup] = {}
    for row in csv.DictReader(io.StringIO(text)):
        number = int(row["group"])
        counts = Counts(int(row["shops"]), {code: int(row[code]) for code in CODES})
        if sum(counts.codes.values()) != counts.shops:
            raise ConfigError(
                f"baseline/{name}.csv: group {number} {row['mode']}: the codes do not add up to the number of shops."
            )
        looked_up = row["lookup_dependent"] == "yes"
        group = groups.setdefault(number, BaselineGroup(number, row["topic"], row["scenario"], looked_up, {}))
        group.by_mode[row["mode"]] = counts
    return Baseline(notes, groups)
