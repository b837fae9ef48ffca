"""Reading English for the offline judge.

`sentences` cuts a reply into sentences, list items and table rows and keeps their exact places in it. `read_words`
turns a sentence into folded tokens with their polarity: phrases and synonyms become one token, and a token that a
negation governs is marked. Everything is a pure function of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..figures import Figure, find_figures, fold
from .words import (
    CLAUSE_WORDS,
    CONDITIONS,
    MODIFIERS,
    NEGATIVE_WORDS,
    NEGATORS,
    NOT_NEGATIONS,
    PHRASES,
    STOPWORDS,
    SYNONYMS,
    UNCOUNTED,
    word_set,
)

_LINE_MARK = re.compile(
    r"[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|(?:[-+*•‣◦▪–—·]|\(?[0-9]{1,3}[.)]|[a-zA-Z][)])[ \t]+)?(?:\[[ xX]\][ \t]+)?"
)
_RULE_LINE = re.compile(r"[\s|:=*_~`+-]*$")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s)")
_WORD_BEFORE = re.compile(r"([A-Za-z][A-Za-z.]{0,11})$")
_MARKUP = re.compile(r"\*\*|__|~~|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^[ \t]*#{1,6}[ \t]+|\[(?=[^\]]{1,200}\]\()")
_LINK_END = re.compile(r"\]\([^()\s]{1,500}\)")

_NEVER_ENDS = word_set("dr mr mrs ms prof st e.g i.e eg ie vs approx fig cf jr sr gen rep sen dept hon rev")
_MAY_END = word_set("u.s u.s.a etc inc a.m p.m ph.d m.d d.c no ext est dept corp ltd co")
_MONTH_SHORT = word_set("jan feb mar apr jun jul aug sep sept oct nov dec no ext")
_STARTERS = word_set(
    "the you your it its if in this that these those there they we i he she a an for to with when while at on as "
    "medicare medicaid part original most some many all each no yes please call contact but and or so however also "
    "here what how where why who because after before once during until unless since enrollment coverage plans"
)
_LETTER_BEFORE = word_set("part parts plan plans and or type group tier vitamin hepatitis class option &")


@dataclass(frozen=True)
class Span:
    """A sentence, list item or table row: `text[start:end]` is its exact wording."""

    start: int
    end: int
    heading: bool = False
    row: bool = False


@dataclass(frozen=True)
class Word:
    token: str
    negated: bool = False
    """A negation stands before it in its clause."""
    head: bool = False
    """It is the first content word behind that negation: the word that is denied."""


@dataclass(frozen=True)
class Reading:
    text: str
    words: tuple[Word, ...]
    content: frozenset[str]
    """Content tokens, programmes among them, figures not."""
    figures: frozenset[str]
    raw: frozenset[str]
    """Every plain word, stopwords too."""
    denials: int = 0
    """Negations outside conditions: `if you do not enroll` denies nothing."""


def sentences(text: str) -> tuple[Span, ...]:
    """All sentences, list items, headings and table rows with content, in order."""
    return tuple(span for block in _blocks(text) for span in _split(text, block))


def _blocks(text: str) -> Iterator[Span]:
    """Lines without their marks; a wrapped line is joined to the line it continues."""
    open_block: Span | None = None
    fenced = False
    for match in re.finditer(r"[^\r\n\u2028\u2029]+", text):
        line = match.group()
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
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


def _trim(text: str, start: int, end: int, block: Span) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end, block.heading, block.row)


def _is_boundary(text: str, start: int, match: re.Match[str], end: int) -> bool:
    behind = text[match.end() : min(end, match.end() + 40)].lstrip().lstrip("*_\"'“‘([")
    if not behind:
        return True
    if "!" in match.group() or "?" in match.group():
        return True
    following = re.match(r"[A-Za-z']+", behind)
    next_word = following.group() if following else ""
    word_match = _WORD_BEFORE.search(text, max(start, match.start() - 12), match.start())
    word = word_match.group(1).lower() if word_match else ""
    if word in _NEVER_ENDS or (word in _MONTH_SHORT and behind[0].isdigit()):
        return False
    if word in _MAY_END and word not in _MONTH_SHORT:
        return next_word.lower() in _STARTERS and next_word[:1].isupper()
    if len(word) == 1 and word_match and word_match.group(1).isupper():
        # "Part B." ends a sentence, "John Q. Public" does not.
        before = re.findall(r"[A-Za-z&]+", text[max(start, word_match.start() - 20) : word_match.start()])
        if not before or (before[-1].lower() not in _LETTER_BEFORE and before[-1][:1].isupper()):
            return False
    return not next_word[:1].islower()


def strip_markup(quote: str) -> str:
    """The words of a quote without Markdown marks; nothing is added."""
    if quote.lstrip().startswith("|") or quote.rstrip().endswith("|"):
        cells = [cell.strip() for cell in quote.strip().strip("|").split("|")]
        quote = " | ".join(cell for cell in cells if cell)
    plain = _LINK_END.sub("", _MARKUP.sub("", quote))
    return " ".join(plain.split())


# ---- words ------------------------------------------------------------------------------------------------------


_IRREGULAR = {
    "paid": "pay", "sold": "sell", "bought": "buy", "began": "begin", "begun": "begin", "lost": "lose", "went": "go",
    "chose": "choose", "chosen": "choose", "kept": "keep", "left": "leave", "got": "get", "policies": "policy",
    "taken": "take", "took": "take", "given": "give", "saw": "see", "seen": "see", "costs": "cost", "gave": "give",
}  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A light stemmer: plural, -ed, -ing, -ly and a silent e; the same for every inflection of most verbs."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("ll"):
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_CANON = {
    stem(word): group.split()[0] for group in SYNONYMS for word in group.split()
}  # the first word of its group stands for each
_PHRASE = re.compile(
    r"\b(?:" + "|".join(re.escape(phrase) for phrase in sorted(PHRASES, key=lambda p: (-len(p), p))) + r")\b"
)
_NOT_NEGATION = re.compile(r"\b(?:" + "|".join(sorted(NOT_NEGATIONS, key=lambda p: (-len(p), p))) + r")\b")
_LEADING_NO = re.compile(r"^[^a-z]*no(?= ?[,.!:-])")
_MODAL = re.compile(r"\b(?:have|has|had) (?:got )?to\b|\b(?:is|are|be) required to\b|\bneed(?:s|ed)? to\b")
# "cannot be higher than $50" and "no plan may charge more than $50" set a limit; they deny nothing.
_CEILING = re.compile(
    r"\b(?:not|no|never|nobody)\b([^.;,#]{0,60})"
    r"\b(?:above|over|more than|higher than|greater than|exceed|beyond)\b(?=[ $]{0,3}#)"
)
_STOP_DOING = re.compile(r"\b(?:stop|stops|stopped|quit)\s+(?=(?!working)[a-z]+ing\b)")
_TOKEN = re.compile(r"@?[a-z]+|#[0-9]+#|[.;:!?,()|]")
_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def canonical(word: str) -> str:
    """A plain word's token: its stem, or the head of its group of synonyms."""
    root = stem(word)
    return _CANON.get(root, root)


@lru_cache(maxsize=8192)
def plain_lower(text: str) -> str:
    """Folded, lower case, contractions opened, hyphens as spaces; figures are left as they are."""
    plain = fold(text).translate(_ASCII_LOWER)
    plain = plain.replace("can't", "can not").replace("cannot", "can not").replace("won't", "will not")
    plain = plain.replace("n't", " not").replace("'s", "").replace("enrolment", "enrollment").replace("'", " ")
    return " ".join(plain.replace("-", " ").split())


@lru_cache(maxsize=8192)
def read_words(text: str) -> Reading:
    found = find_figures(text)
    plain = plain_lower(_mark_figures(text, found))
    plain = _NOT_NEGATION.sub(" ", _LEADING_NO.sub(" ", plain))
    plain = _CEILING.sub(r" \1 limit ", _STOP_DOING.sub(" not ", _MODAL.sub("require", plain)))
    raw = frozenset(re.findall(r"[a-z]+", plain))
    plain = _PHRASE.sub(lambda match: f" {PHRASES[match.group()]} ", plain)
    words, denials = _polarise(plain, found)
    content = frozenset(word.token for word in words if not word.token.startswith("#"))
    return Reading(text, words, content, frozenset(figure.token for figure in found), raw, denials)


def _mark_figures(text: str, found: tuple[Figure, ...]) -> str:
    """Each figure replaced by its number, so that its digits and units are not read as words."""
    parts, last = [], 0
    for index, figure in enumerate(found):
        if figure.start >= last:
            parts.append(f"{text[last : figure.start]} #{index}# ")
            last = figure.end
    return "".join(parts) + text[last:]


def _polarise(plain: str, found: tuple[Figure, ...]) -> tuple[tuple[Word, ...], int]:
    """The content words with their polarity, and how many negations stand outside conditions."""
    words: list[Word] = []
    denials, last = 0, 0
    negated = head = noun_phrase = conditional = relative = False
    for match in _TOKEN.finditer(plain):
        token = match.group()
        # "no provider networks" denies the whole run of words; "not cover routine dental care" the first only.
        noun_phrase = noun_phrase and not plain[last : match.start()].strip()
        last = match.end()
        if token in CLAUSE_WORDS or token in CONDITIONS or not (token[0] in "#@" or token[0].isalpha()):
            negated = head = noun_phrase = False
            relative = token in ("who", "whose")  # "who is not on Medicaid": a condition up to its first word
            conditional = token in CONDITIONS or (conditional and token[0].isalpha())
        elif token in NEGATORS:
            negated = head = True
            noun_phrase = token in ("no", "without")
            denials += not conditional and token not in UNCOUNTED
        elif token in NEGATIVE_WORDS:
            words.append(Word(NEGATIVE_WORDS[token], not negated, not negated))
            denials += 0 if conditional else -1 if negated else 1
            head = noun_phrase = False
        elif token.startswith("#"):
            words.append(Word(f"#{found[int(token[1:-1])].token}", negated))
            noun_phrase = False
        elif token in STOPWORDS:
            head = head and not (noun_phrase and words and words[-1].head)
            noun_phrase = False
        else:
            folded = canonical(token) if token[0] != "@" else token
            words.append(Word(folded, negated, head))
            conditional, relative = conditional and not relative, False
            head = head and (noun_phrase or folded in MODIFIERS)
    return tuple(words), denials
