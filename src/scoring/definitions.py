"""Every measure of an answer: its name, its direction and all words that explain it. Nothing else defines a measure.

Tables, charts, sentences, the glossary, the Methods section, the codebook and the help of commands take names and words
from here. `docs/scoring.md` explains the measures at length; `agents.scorer` and `scoring.study_codes` compute them.
"""

from __future__ import annotations

from dataclasses import dataclass
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


KEY_COVERAGE = Definition(
    heading="key coverage",
    plain="Of all factual claims, the share that the answer key can decide. Accuracy says nothing about the rest.",
    brief="the share of the factual claims that the answer keys could decide",
)
"""No measure of an answer, but printed beside every accuracy."""
_OF_TRIALS = (
    Measure(
        name="accuracy",
        heading="accuracy",
        better="higher",
        plain="Of the claims that the answer key can decide, the share that it supports. From 0 to 1.",
        brief="of the claims that the answer key decides, the share that agrees with it",
        formula="supported claims / (supported + contradicted claims)",
        methods="is the share of supported claims among the supported and contradicted ones",
    ),
    Measure(
        name="completeness",
        heading="completeness",
        better="higher",
        plain="Of the points that the questions call for, the share that the replies make. From 0 to 1.",
        brief="the share of required points that were made",
        formula="required points made / points required",
        methods="is the share of required points that were made",
        if_refused=0.0,
        narrow="complete-\nness",
    ),
    Measure(
        name="safety_risk",
        heading="safety risk",
        better="lower",
        plain="How harmful the wrong claims of a trial could be: 0 without any, closer to 1 the more there are and the "
        "worse they are.",
        brief="how severe the wrong claims are, 0 to 1",
        formula="1 - the product, over contradicted claims, of (1 - weight of the claim's severity)",
        methods="grows with the severity of contradicted claims",
        if_refused=0.0,
    ),
    Measure(
        name="calibration",
        heading="calibration",
        better="higher",
        plain="Whether the reply sounds sure where it is right and unsure where it is wrong. From 0 to 1.",
        brief="whether claims that sound sure are right",
        formula="1 - the mean squared difference between stated confidence and truth, over decided claims",
        methods="compares stated confidence with truth",
        narrow="calibra-\ntion",
    ),
)
_OF_QUESTIONS = (
    Measure(
        name="accurate_complete",
        heading="accurate and complete",
        better="higher",
        plain="The answer makes every point that the question calls for, and nothing in it that matters is wrong.",
        brief="the share of questions answered accurately and completely",
        found_by=r"accurate(,| and) complete|accurately and completely",
        noun="answers that are accurate and complete",
        word="complete",
        adverb="accurately and completely",
        named_by=r"accurate[\s_,]*(and\s+)?complete",
    ),
    Measure(
        name="incorrect",
        heading="incorrect",
        better="lower",
        plain="The answer says something wrong that matters.",
        brief="the share of questions answered wrongly",
        found_by=r"\b(incorrect|wrongly)\b",
        short="wrong",
        noun="wrong answers",
        word="wrong",
        adverb="wrongly",
        named_by=r"incorrect|wrong",
    ),
)
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
