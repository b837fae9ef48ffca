"""Split a reply into sentences, list items, headings and table rows, each with its exact position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from .patterns import WORDS

_LINE_MARK = re.compile(
    r"[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|(?:[-+*•‣◦▪–—·]|\(?[0-9]{1,3}[.)]|[a-zA-Z][)])[ \t]+)?(?:\[[ xX]\][ \t]+)?"
)
_FENCE_LINE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[ \t]*\S*[ \t]*$")
"""The line that opens or closes a code block; a block on one line has words in it."""
_RULE_LINE = re.compile(r"[\s|:=*_~`+-]*$")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]*_]*(?=\s)")
_CLAUSE_END = re.compile(r";(?=\s)|:(?=\s+[A-Z])|,(?=\s+(?:and|but|so)\s)")
_CLAUSE_WORDS = 4
_WORD_BEFORE = re.compile(r"([A-Za-z][A-Za-z.]{0,11})$")


_NEVER_ENDS = WORDS["never_ends_a_sentence"]
_MAY_END = WORDS["may_end_a_sentence"]
_MONTH_SHORT = WORDS["ends_no_sentence_before_a_number"]
_STARTERS = WORDS["begins_a_sentence"]
_LETTER_BEFORE = WORDS["before_a_single_letter"]


LONGEST = 600
"""Characters of a sentence. A longer one is cut into pieces, so that nothing made of one grows without bound."""


@dataclass(frozen=True)
class Span:
    """A sentence, list item or table row: `text[start:end]` is its exact wording."""

    start: int
    end: int
    heading: bool = False
    row: bool = False
    item: bool = False


@lru_cache(maxsize=64)
def sentences(text: str) -> tuple[Span, ...]:
    """All sentences, list items, headings and table rows with content, in order; long ones in pieces."""
    return tuple(piece for block in _blocks(text) for span in _split(text, block) for piece in _pieces(text, span))


def _pieces(text: str, span: Span) -> Iterator[Span]:
    """A sentence, cut at its last space before `LONGEST`, or anywhere if it has none."""
    start = span.start
    while span.end - start > LONGEST:
        at = text.rfind(" ", start + 1, start + LONGEST)
        end = at if at > start else start + LONGEST
        if text[start:end].strip():
            yield _trim(text, start, end, span)
        start = end
    if text[start : span.end].strip():
        yield _trim(text, start, span.end, span)


def _blocks(text: str) -> Iterator[Span]:
    """Lines without their list or heading marks; a wrapped line is joined to the line that it continues."""
    open_block: Span | None = None
    for match in re.finditer(r"[^\r\n\u2028\u2029]+", text):
        line = match.group()
        if _FENCE_LINE.match(line):
            continue
        mark = _LINE_MARK.match(line)
        width = mark.end() if mark else 0
        start, end = match.start() + width, match.start() + len(line.rstrip())
        if start >= end or _RULE_LINE.match(line):
            if open_block:
                yield open_block
            open_block = None
            continue
        marked = bool(line[:width].strip())
        gap = text[open_block.end : match.start()] if open_block else ""
        if open_block and not marked and gap.count("\n") == 1 and _continues(text, open_block, line):
            open_block = replace(open_block, end=end)
            continue
        if open_block:
            yield open_block
        heading = "#" in line[:width]
        open_block = Span(start, end, heading, line.lstrip().startswith("|"), marked and not heading)
    if open_block:
        yield open_block


def _continues(text: str, block: Span, line: str) -> bool:
    if block.heading or block.row or line.lstrip().startswith("|"):
        return False
    last = text[block.end - 1]
    return line.lstrip()[:1].islower() or (last not in ".!?:;*" and block.end - block.start >= 60)


def _split(text: str, block: Span) -> Iterator[Span]:
    if block.row or block.heading:
        yield _trim(text, block.start, block.end, block)
        return
    start = block.start
    for match in _SENTENCE_END.finditer(text, block.start, block.end):
        if _is_boundary(text, start, match, block.end):
            yield _trim(text, start, match.end(), block)
            start = match.end()
    if text[start : block.end].strip():
        yield _trim(text, start, block.end, block)


def clauses(text: str, sentence: Span) -> tuple[Span, ...]:
    """A sentence split at semicolons, colons before a capital, and commas before and, but or so.

    Clauses of a few words stay together.
    """
    found: list[Span] = []
    start = sentence.start
    for match in _CLAUSE_END.finditer(text, sentence.start, sentence.end):
        if (
            min(len(text[start : match.start()].split()), len(text[match.end() : sentence.end].split()))
            >= _CLAUSE_WORDS
        ):
            found.append(_trim(text, start, match.start(), sentence))
            start = match.end()
    return (*found, _trim(text, start, sentence.end, sentence))


_IN_BOLD = re.compile(r"(\*\*|__)[^*_]+\1[.:]?")


def is_title(text: str, span: Span) -> bool:
    """Whether a sentence is a heading or a line in bold."""
    return span.heading or bool(_IN_BOLD.fullmatch(text, span.start, span.end))


def announces(text: str) -> bool:
    """Whether a sentence says what follows it, and ends so."""
    return text.rstrip("*_ ").endswith(":")


@lru_cache(maxsize=64)
def contexts(text: str) -> dict[Span, tuple[Span, ...]]:
    """What each list item, table row and fragment stands under: heading, lead-in, the header of its table."""
    found: dict[Span, tuple[Span, ...]] = {}
    heading: Span | None = None
    lead: Span | None = None
    header: Span | None = None
    for span in sentences(text):
        said = text[span.start : span.end]
        header = (header or span) if span.row else None
        if is_title(text, span):
            heading, lead = span, None
            continue
        fragment = span.item or span.row or said[-1:] not in ".!?"
        if fragment and not (announces(said) and not span.item):
            under = tuple(one for one in (heading, lead, header) if one and one != span)
            if under:
                found[span] = under
        if announces(said):
            lead = span
        elif not fragment:
            lead = None
    return found


@lru_cache(maxsize=64)
def previous_sentences(text: str) -> dict[Span, Span]:
    """Each sentence with the one before it in its paragraph."""
    every = sentences(text)
    return {
        span: before
        for before, span in pairwise(every)
        if "\n\n" not in text[before.end : span.start] and not before.heading and before.row == span.row
    }


def _trim(text: str, start: int, end: int, block: Span) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return replace(block, start=start, end=end)


def _is_boundary(text: str, start: int, match: re.Match[str], end: int) -> bool:
    after = text[match.end() : min(end, match.end() + 40)].lstrip().lstrip("*_\"'“‘([")
    if not after:
        return True
    if "!" in match.group() or "?" in match.group():
        return True
    following = re.match(r"[A-Za-z']+", after)
    next_word = following.group() if following else ""
    word_match = _WORD_BEFORE.search(text, max(start, match.start() - 12), match.start())
    word = word_match.group(1).lower() if word_match else ""
    if word in _NEVER_ENDS or (word in _MONTH_SHORT and after[0].isdigit()):
        return False
    if word in _MAY_END and word not in _MONTH_SHORT:
        return next_word.lower() in _STARTERS and next_word[:1].isupper()
    if len(word) == 1 and word_match and word_match.group(1).isupper():
        # "Part B." ends a sentence, "John Q. Public" does not.
        before = re.findall(r"[A-Za-z&]+", text[max(start, word_match.start() - 20) : word_match.start()])
        if not before or (before[-1].lower() not in _LETTER_BEFORE and before[-1][:1].isupper()):
            return False
    return not next_word[:1].islower()


PARAGRAPH = "\n\n"
"""Between passages that do not follow each other."""


class TextPassage(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True)
class Excerpt:
    """Passages of a text put together, as `text`, and where they are in the whole."""

    text: str
    passages: tuple[tuple[int, int], ...]
    """Start and end of each in the whole, in order."""
    between: str

    @classmethod
    def of(cls, whole: str, passages: Iterable[TextPassage], between: str = PARAGRAPH) -> Excerpt:
        places = tuple((one.start, one.end) for one in passages)
        return cls(between.join(whole[start:end] for start, end in places), places, between)

    @classmethod
    def without(cls, whole: str, passages: Iterable[TextPassage]) -> Excerpt:
        """All but these passages, which are in order."""
        kept, at = [], 0
        for one in passages:
            kept.append(Span(at, one.start))
            at = one.end
        return cls.of(whole, [one for one in (*kept, Span(at, len(whole))) if one.start < one.end], "")

    def in_whole(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where a part of the excerpt is in the whole text, in pieces if something was left out of it."""
        at = 0
        for first, last in self.passages:
            width = last - first
            low, high = max(start, at), min(end, at + width)
            if low < high:
                yield first + low - at, first + high - at
            at += width + len(self.between)
