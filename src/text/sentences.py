"""Split a reply into sentences, list items, headings and table rows, each with its exact position."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
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


@dataclass(frozen=True)
class Span:
    """A sentence, list item or table row: `text[start:end]` is its exact wording."""

    start: int
    end: int
    heading: bool = False
    row: bool = False


@lru_cache(maxsize=64)
def sentences(text: str) -> tuple[Span, ...]:
    """All sentences, list items, headings and table rows with content, in order."""
    return tuple(span for block in _blocks(text) for span in _split(text, block))


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
            open_block = Span(open_block.start, end)
            continue
        if open_block:
            yield open_block
        open_block = Span(start, end, heading="#" in line[:width], row=line.lstrip().startswith("|"))
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


def table_headers(text: str) -> dict[Span, tuple[Span, ...]]:
    """Each table row with the first row of its table; the first row has none."""
    found: dict[Span, tuple[Span, ...]] = {}
    header: Span | None = None
    for span in sentences(text):
        header = (header or span) if span.row else None
        if header and span != header:
            found[span] = (header,)
    return found


def _trim(text: str, start: int, end: int, block: Span) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end, block.heading, block.row)


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


class TextPassage(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


def cut(text: str, passages: Iterable[TextPassage]) -> str:
    """A text without some of its passages, which are in order."""
    kept, at = [], 0
    for passage in passages:
        kept.append(text[at : passage.start])
        at = passage.end
    return "".join([*kept, text[at:]])
