"""What the words of a report mean, for a reader without the guides. Each is explained where it is used first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...scoring.definitions import KEY_COVERAGE, MEASURES, SCORES, SHARES, Definition
from .document import Block, Bullets, Cell, Entry, Exhibit, Figure, Paragraph, Section, SideBySide, Table, Words, words


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    meaning: str
    pattern: str = ""
    """Finds it in a text, if other forms than the name and its plural are used."""

    @classmethod
    def of(cls, one: Definition) -> Term:
        return cls(one.heading, one.plain, one.found_by)

    def found_in(self, text: str) -> bool:
        return re.search(self.pattern or rf"\b{re.escape(self.name)}s?\b", text, re.IGNORECASE) is not None


TERMS = (
    Term("target", "An AI assistant that was tested, written as provider:model."),
    Term("scenario", "An invented person in a described situation, with a fixed list of questions to ask."),
    Term("variant", "The same scenario in another wording, or with one detail of the person changed."),
    Term("trial", "One conversation: one target is asked all questions of one scenario."),
    Term("repeat", "The same conversation, held again with the same target.", r"\brepeats?\b"),
    Term(
        "answer key",
        "The facts that answers are checked against, each with its source and date. Nothing else counts as evidence.",
        r"\b(answer )?keys?\b",
    ),
    Term("claim", "One statement of a reply that can be checked."),
    Term(
        "label",
        "What a judge decides about a claim: SUPPORTED (the answer key says so), CONTRADICTED (the key says "
        "otherwise), or NOT_IN_KEY (the key says nothing about it).",
        r"\blabels?\b|SUPPORTED|CONTRADICTED|NOT_IN_KEY",
    ),
    Term(
        "judge",
        "A model that checks a reply against the answer key. An extractor splits the reply into claims, verifiers "
        "label each claim, and an adjudicator settles ties.",
        r"\b(judges?|verifiers?|extractor|adjudicator)\b",
    ),
    Term(
        "code",
        "The grade of one answer, from the published study of counselors: accurate and complete; accurate but "
        "incomplete; not substantive (says nothing that helps, or refuses); incorrect; or incomplete data (could not "
        "be decided).",
        r"\bcode[sd]?\b",
    ),
    *(Term.of(MEASURES[name]) for name in SHARES),
    Term(
        "95% interval",
        "The range of values that fit the data. In 95 of 100 studies like this one, such a range contains the true "
        "value. A wide range means that the study is too small to say more.",
        r"95% intervals?|\bintervals?\b",
    ),
    Term(
        "effective n",
        "How many independent answers would tell as much: the interval is about that of so many. Answers within one "
        "scenario resemble each other, and few scenarios show badly how much they differ, so it is often far lower "
        "than their number.",
    ),
    Term("percentage points", "A difference of two percentages: from 40% to 50% is 10 points."),
    Term.of(MEASURES["accuracy"]),
    Term.of(KEY_COVERAGE),
    *(Term.of(MEASURES[name]) for name in SCORES if name != "accuracy"),
    Term(
        "lookup",
        "A question that needs a tool such as Medicare's Plan Finder. Counselors had one; an assistant without web "
        "access does not.",
        r"\blook-?ups?\b|Plan Finder",
    ),
    Term(
        "like for like",
        "The question is graded by the same points as in the published study, and neither side needed to look "
        "anything up.",
        r"like[- ]for[- ]like|\b(not )?comparable\b",
    ),
    Term(
        "agreement",
        "How often judges decide alike, beyond what chance would give (Cohen's kappa, Krippendorff's alpha): 1 is "
        "always, 0 is chance.",
        r"\bkappa\b|\balpha\b|coefficient",
    ),
    Term(
        "noise floor",
        "How often a judge that is asked again changes its label. Smaller differences may come from the judge.",
    ),
    Term("fabricated", "An exact detail, such as a plan's price, that nobody gave the model and it could not know."),
    Term("pre-registration", "The plan of a study, written down before it began.", r"pre-regist\w+"),
    Term("sha256", "A fingerprint of a file. If the file changes, so does the fingerprint.", r"sha256|\bhash\b"),
)


GLOSSARY = words("Glossary")


def first_uses(sections: Sequence[Section]) -> list[tuple[Term, ...]]:
    """For each section, the terms that it is the first to use."""
    left = list(TERMS)
    found: list[tuple[Term, ...]] = []
    for section in sections:
        text = "" if section.title == GLOSSARY else " ".join(_own_words(section))
        used = tuple(term for term in left if term.found_in(text))
        left = [term for term in left if term not in used]
        found.append(used)
    return found


def glossary_section() -> Section:
    """All terms, in the order of the alphabet."""
    listed = sorted(TERMS, key=lambda term: term.name.lower())
    items = tuple((Words(term.name, strong=True), Words(f": {term.meaning}")) for term in listed)
    return Section(GLOSSARY, (Bullets(items),))


def _own_words(section: Section) -> Iterator[str]:
    """The text of this project in a section; what others wrote has no part in it."""
    yield from _of_cells(section.title)
    for block in section.blocks:
        yield from _of_block(block)
    for part in section.sections:
        yield from _own_words(part)


def _of_block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield from _of_cells(block.parts)
        case Bullets():
            for item in block.items:
                yield from _of_cells(item)
        case Table():
            yield block.caption
            yield from (column.heading for column in block.in_report().columns)
        case Exhibit():
            yield from (Entry(*entry).label for entry in block.entries)
        case SideBySide():
            yield from (side.label for side in block.sides)
        case Figure():
            yield f"{block.chart.title} {block.beside}"


def _of_cells(cells: Sequence[Cell]) -> Iterator[str]:
    return (cell.text for cell in cells if isinstance(cell, Words))
