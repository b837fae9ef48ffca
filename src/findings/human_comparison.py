"""A target's answers to the questions of the published study, beside those of human counselors.

Both sides leave out what is missing. A target's interval is over the scripts in which a question was asked. Within one
question group every shop counts once, so the counselors' interval is that of a proportion; for several groups together
it is that of as many answers as there were shops, because how alike the answers of one shop are was not published.

The baseline has published counts of mystery shops with SHIP counselors, and their caveats. `Headline` is what a
report says first about a target.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from pydantic import Field

from ..errors import ConfigError
from ..records.base import Line, Record
from ..schemas import CODES, GroupRule, StudyCode
from ..scoring.definitions import SHARES, ShareName
from ..stats.bounded import mid_p_limits
from ..stats.confusion import Corrected
from ..store.input_files import read_user_file
from ..store.package_data import data_folder
from ..trials.row import Row
from .estimates import Estimated, Question, Tallies, estimate, estimate_questions, tallied_rows

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


STUDY_SCENARIOS = ("medicare_only", "dual_eligible")
FIRST_EDITION_OWN_POINTS = frozenset({3, 8, 10, 11})
"""Groups whose points or levels were not the study's in rubrics that do not state whether they are."""
CONFIDENCE = 0.95
Kind = Literal["like", "other_rules", "lookup"]
"""Like for like; not coded by the study's points; or counselors could look the answer up and the target could not."""

Rules = Mapping[tuple[str, str], GroupRule]
"""By scenario and question group."""


@dataclass(frozen=True)
class CounselorShare:
    n: int
    """Answers that were coded."""
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Gap:
    """The target's share minus the counselors'."""

    value: float | None
    low: float | None
    high: float | None
    after_adjustment: bool
    """Whether the interval still excludes 0 at the level adjusted for the number of comparisons (Bonferroni)."""


@dataclass(frozen=True)
class BesideCounselors:
    """One outcome of some question groups: the target, and counselors by mode."""

    target: Estimated
    counselors: dict[str, CounselorShare]
    gaps: dict[str, Gap]


@dataclass(frozen=True)
class ComparedGroups:
    """One question group, or several together."""

    numbers: tuple[int, ...]
    topic: str
    outcomes: dict[StudyCode, BesideCounselors]


@dataclass(frozen=True)
class HumanComparison:
    groups: dict[Kind, tuple[ComparedGroups, ...]]
    pooled: dict[Kind, ComparedGroups]
    """Groups of a kind together, if there are several. The one of kind `like` is the primary comparison."""
    comparisons: int
    """Differences that are shown, which decides the adjusted level."""

    @property
    def primary(self) -> ComparedGroups | None:
        """The groups that are compared like for like, together."""
        alone = self.groups.get("like", ())
        return self.pooled.get("like") or (alone[0] if alone else None)


def study_questions(rules: Rules) -> dict[int, list[Question]]:
    """The questions of each group of the published study, in the order of its numbers."""
    found: dict[int, list[Question]] = {}
    for (scenario_id, group), rule in rules.items():
        if rule.study_group and scenario_id in STUDY_SCENARIOS:
            found.setdefault(rule.study_group, []).append(Question(scenario_id, group))
    return dict(sorted(found.items()))


def study_rules(rules: Rules) -> dict[int, GroupRule]:
    """The rule of each group of the published study."""
    return {
        number: rules[questions[0].scenario_id, questions[0].group]
        for number, questions in study_questions(rules).items()
    }


def kind_of(group: BaselineGroup, rule: GroupRule | None) -> Kind:
    """Whether a group may be compared like for like."""
    if group.lookup_dependent:
        return "lookup"
    faithful = rule.study_faithful if rule else None
    if faithful is None:
        faithful = group.group not in FIRST_EDITION_OWN_POINTS
    return "like" if faithful else "other_rules"


def compare_with_counselors(rows: Sequence[Row], rules: Rules, baseline: Baseline) -> HumanComparison:
    """Every group of the study that was asked, and all groups of a kind together."""
    questions = {n: asked for n, asked in study_questions(rules).items() if n in baseline.groups}
    present = {(row.scenario_id, one.group) for row in rows for one in row.codes}
    asked = {n: mine for n, listed in questions.items() if (mine := [one for one in listed if one in present])}
    ours = study_rules(rules)
    kinds: dict[Kind, list[int]] = {}
    for number in asked:
        kinds.setdefault(kind_of(baseline.groups[number], ours.get(number)), []).append(number)
    several = [kind for kind, numbers in kinds.items() if len(numbers) > 1]
    comparisons = (len(asked) + len(several)) * len(SHARES) * len(MODES)
    tallies = {code: tallied_rows(rows, code) for code in SHARES}

    def compared(numbers: Sequence[int], topic: str) -> ComparedGroups:
        wanted = {question for number in numbers for question in asked[number]}
        weights = {baseline.groups[n]: len(asked[n]) for n in numbers}
        return ComparedGroups(tuple(numbers), topic, _outcomes(tallies, wanted, weights, comparisons))

    return HumanComparison(
        {kind: tuple(compared([n], baseline.groups[n].topic) for n in numbers) for kind, numbers in kinds.items()},
        {kind: compared(kinds[kind], "all of these together") for kind in several},
        comparisons,
    )


def _outcomes(
    tallies: Mapping[ShareName, Tallies], wanted: set[Question], groups: Mapping[BaselineGroup, int], comparisons: int
) -> dict[StudyCode, BesideCounselors]:
    found: dict[StudyCode, BesideCounselors] = {}
    adjusted = 1 - (1 - CONFIDENCE) / max(1, comparisons)
    for code in SHARES:
        target = estimate_questions(tallies[code], wanted)
        strict = estimate_questions(tallies[code], wanted, adjusted)
        people = {mode: counselor_share(groups, mode, code) for mode in MODES}
        strictly = {mode: counselor_share(groups, mode, code, adjusted) for mode in MODES}
        found[code] = BesideCounselors(
            target, people, {mode: _gap(target, people[mode], strict, strictly[mode]) for mode in MODES}
        )
    return found


def counselor_share(
    groups: Mapping[BaselineGroup, int], mode: str, code: StudyCode, confidence: float = CONFIDENCE
) -> CounselorShare:
    """The counselors' share of a code over some groups; answers that were not coded are left out.

    Every group has the weight that it has for the target: the number of its questions. How alike the answers of one
    counselor are was not published, so the interval takes them as if they were all alike.
    """
    coded = {group: _coded(group.by_mode[mode]) for group in groups if _coded(group.by_mode[mode])}
    if not coded:
        return CounselorShare(0, None, None, None)
    total = sum(groups[group] for group in coded)
    shares = {group: groups[group] / total for group in coded}
    value = math.fsum(share * group.by_mode[mode].codes[code] / coded[group] for group, share in shares.items())
    n = 1 / math.fsum(share / math.sqrt(coded[group]) for group, share in shares.items()) ** 2
    limits = mid_p_limits(min(1.0, value), n, (1 - confidence) / 2)
    return CounselorShare(sum(coded.values()), value, limits.low, limits.high)


def _coded(counts: Counts) -> int:
    return counts.shops - counts.codes["incomplete_data"]


def corrected_gaps(beside: BesideCounselors, corrected: Corrected) -> dict[str, Gap]:
    """The differences of a share that was corrected for judge error.

    One is called clear after adjustment only if it is so as judged, too: draws are too few for the adjusted level.
    """
    target = replace(beside.target, value=corrected.value, low=corrected.low, high=corrected.high)
    found: dict[str, Gap] = {}
    for mode, people in beside.counselors.items():
        gap = _gap(target, people, target, people)
        found[mode] = replace(gap, after_adjustment=gap.after_adjustment and beside.gaps[mode].after_adjustment)
    return found


def _gap(target: Estimated, people: CounselorShare, strict: Estimated, strictly: CounselorShare) -> Gap:
    if target.value is None or people.value is None:
        return Gap(None, None, None, after_adjustment=False)
    value = target.value - people.value
    ends = _ends(target, people)
    if ends is None:
        return Gap(value, None, None, after_adjustment=False)
    farther = _ends(strict, strictly)
    excludes = farther is not None and (farther[0] > 0 or farther[1] < 0)
    return Gap(value, *ends, after_adjustment=excludes)


def _ends(first: Estimated, second: CounselorShare) -> tuple[float, float] | None:
    """Limits of a difference from the limits of both sides (MOVER, Newcombe's hybrid method)."""
    if first.value is None or first.low is None or first.high is None:
        return None
    if second.value is None or second.low is None or second.high is None:
        return None
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return value - below, value + above


@dataclass(frozen=True)
class Headline:
    complete: Estimated
    """Of all coded questions, the share that was answered accurately and completely."""
    incorrect: Estimated
    study: ComparedGroups | None
    """The same on the study's questions that are compared like for like, beside counselors; None if none was asked."""


def headline(rows: Sequence[Row], compared: HumanComparison) -> Headline:
    return Headline(estimate(rows, "accurate_complete"), estimate(rows, "incorrect"), compared.primary)
