"""Every measure of an answer, as definitions.toml has it: its name, its direction and all words that explain it.

Tables, charts, sentences, the glossary, the Methods section, the codebook and the help of commands take names and words
from here.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..records.contracts import MeasureName
    from ..records.rubric import StudyCode

ShareName = Literal["accurate_complete", "incorrect"]
"""The study codes whose share of all questions is a measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    heading: str
    """Its name in tables, charts and sentences."""
    plain: str
    """For a reader who knows no statistics; whole sentences."""
    brief: str
    """What it is, in one clause that follows its name."""
    found_by: str = ""
    """A pattern that finds it in a text, if other forms than the heading and its plural are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure(Definition):
    """A number from 0 to 1: a score of a trial, or the share of questions that got a study code."""

    name: MeasureName
    better: Literal["higher", "lower"]
    formula: str = ""
    """Of a score: how it is computed."""
    methods: str = ""
    """Of a score: what it is or does, for the Methods section of a paper; follows its name."""
    if_refused: float | None = None
    """The score of a trial in which every question was refused. None: it has none, because nothing was said."""
    short: str = ""
    """In captions of charts, if other than the heading."""
    noun: str = ""
    """In the middle of a sentence, if other than the heading."""
    word: str = ""
    """Of a share of questions: what these answers are."""
    adverb: str = ""
    """Of a share of questions: how they were answered."""
    narrow: str = ""
    """The heading of a narrow column, if breaking the heading between its words is not enough."""
    named_by: str = ""
    """A pattern by which a pre-registration, a free text, names it, if not by its heading."""

    @property
    def caption(self) -> str:
        return (self.short or self.heading).capitalize()

    @property
    def in_sentence(self) -> str:
        return self.noun or self.heading

    @property
    def subject(self) -> str:
        """What rises or falls."""
        return f"{self.heading} answers" if self.adverb else self.heading

    @property
    def lines(self) -> str:
        return self.narrow or self.heading.replace(" ", "\n")

    @property
    def clause(self) -> str:
        """`brief`, and which direction is better if it is the unusual one."""
        return f"{self.brief}; lower is better" if self.better == "lower" else self.brief


_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KEY_COVERAGE = Definition(**_READ["key_coverage"])
"""No measure of an answer, but printed beside every accuracy."""
_OF_TRIALS, _OF_QUESTIONS = ([Measure(**one) for one in _READ[kind]] for kind in ("score", "share"))
MEASURES: dict[str, Measure] = {one.name: one for one in (*_OF_TRIALS, *_OF_QUESTIONS)}
"""By name: the scores of a trial, then the shares of questions."""
SCORES = tuple(one.name for one in _OF_TRIALS)
SCORE_HEADINGS = {name: MEASURES[name].heading for name in SCORES}
SHARES: tuple[ShareName, ...] = ("accurate_complete", "incorrect")
READING_ORDER = (*SHARES, *SCORES)
"""What a reader wants to know first."""
LESS_IS_BETTER = frozenset(name for name, one in MEASURES.items() if one.better == "lower")
IF_REFUSED = {name: one.if_refused for name, one in MEASURES.items() if one.if_refused is not None}
"""Scores of a trial in which every question was refused."""
IF_REFUSED_TEXT = " and ".join(f"{MEASURES[name].heading} {score:g}" for name, score in IF_REFUSED.items())
CODE_HEADINGS: dict[StudyCode, str] = {
    "accurate_complete": "accurate, complete",
    "accurate_incomplete": "accurate, incomplete",
    "not_substantive": "not substantive",
    "incorrect": "incorrect",
    "incomplete_data": "incomplete data",
}
"""How tables name the study codes, the best first."""
