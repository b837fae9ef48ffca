"""Names of people: behind words such as "my name is", behind titles, as a known first name, or from a list."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from .codes import PATTERNS, WORDS, gaps, runs
from .redact_numbers import PersonalText

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_PLACE_AFTER = re.compile(r"\s+(?:County|Parish|Borough|City|Springs|Falls|Beach|Township|Valley|Heights)\b")
_PLACE_BEFORE = re.compile(r"(?:\bSt\.?|\bSaint|\bFort|\bLake|\bMount|\bSan|\bSanta|\bPort|\bCape)\s+$")
_LOWER_TITLES = WORDS["titles"]
_GREETED = re.compile(r"(?i)\b(?:hello|hi|hey|yes|yeah|good morning|good afternoon),? this is (?=[^\n]{2,40}(?:\n|$))")
_PARTICLES = WORDS["particles"]
_SPELL_CONTEXT = re.compile(r"(?i)\b(?:spell\w*|names?|letters?|that's|that is)\b")
_MOST = 3


@cache
def first_names() -> frozenset[str]:
    """Common first names that are hardly ever anything else."""
    return frozenset(Path(__file__).with_name("first_names.txt").read_text(encoding="utf-8").split())


def find_names(text: str, listed: Sequence[str] = ()) -> list[PersonalText]:
    """Names of people in folded text. Lines of `listed` are names, in full; their parts count where capitalized."""
    found = [*_introduced(text), *_titled(text), *_known(text), *_from_list(text, listed)]
    return [*found, *_spelled(text, found)]


def _found(text: str, start: int, end: int) -> PersonalText:
    return PersonalText("NAME", start, end, re.sub(r"[\W_]+", " ", text[start:end].lower()).strip())


def _introduced(text: str) -> Iterator[PersonalText]:
    for one in PATTERNS["introduced"].finditer(text):
        strict = bool(re.search(r"(?i)ask for|go(?:es)? by|named|signed|att", one[0])) or not re.search(
            r"(?i)(?:\bis|'s|:|was|be)[\s,]+$|(?:first|last|middle|maiden)\s+name[\s,]+$", one[0]
        )
        span = _name_at(text, one.end(), sure=not strict)
        if span:
            yield _found(text, *span)
    yield from _answered(text)


def _answered(text: str) -> Iterator[PersonalText]:
    """Names behind a question for one, a greeting or a relation."""
    for pattern in (PATTERNS["asked"], PATTERNS["hello"]):
        for one in pattern.finditer(text):
            span = _name_at(text, one.end(), sure=True)
            if span:
                yield _found(text, *span)
    for pattern in (PATTERNS["own"], PATTERNS["field"], PATTERNS["thanked"]):
        for one in pattern.finditer(text):
            span = _name_at(text, one.end(), sure=False)
            if span:
                rest = (
                    re.match(r", [A-Z][a-z]+(?: [A-Z]\.?)?", text[span[1] :]) if pattern is PATTERNS["field"] else None
                )
                yield _found(text, span[0], span[1] + (rest.end() if rest else 0))
    for one in _GREETED.finditer(text):
        span = _name_at(text, one.end(), sure=True)
        if span and re.match(r"[.,!?]?\s*(?:\n|$)", text[span[1] :]):
            yield _found(text, *span)
    for one in PATTERNS["speaking"].finditer(text):
        words = [word.lower() for word in _WORD.findall(one["name"])]
        if not any(word in WORDS["no_name"] or word in WORDS["vocabulary"] for word in words):
            yield _found(text, *one.span("name"))
    for one in PATTERNS["maybe"].finditer(text):
        yield from _maybe(text, one)


def _maybe(text: str, one: re.Match[str]) -> Iterator[PersonalText]:
    """Behind "I'm", "this is", "hello": a known first name, or two capitalized words after "I'm" and the like."""
    word = _WORD.match(text, one.end())
    if not word:
        return
    known = word[0].lower().removesuffix("'s") in first_names()
    lead = one[0].strip(" ,").lower()
    presents = (
        lead in ("this is", "i'm", "i am", "it's", "it is")
        or re.search(r"speak|spoke|talk|call me|reached", lead) is not None
    )
    relation = bool(PATTERNS["relation"].search(lead))
    if known and (presents or relation or word[0][0].isupper()):
        span = _name_at(text, one.end(), sure=presents)
        if span:
            yield _found(text, *span)
    elif (presents or relation) and word[0][0].isupper():
        span = _name_at(text, one.end(), sure=False)
        if span and (relation or len(text[span[0] : span[1]].split()) >= 2 or _alone(text, span, lead)):
            yield _found(text, *span)


def _alone(text: str, span: tuple[int, int], lead: str) -> bool:
    """Whether one capitalized word is a name: "I'm Trevor, a volunteer", "you're speaking with Trevor"."""
    if text[span[0] : span[1]].lower() in WORDS["states"]:
        return False
    if re.search(r"call me|speaking|reached", lead):
        return True
    return lead in ("i'm", "i am", "this is") and re.match(r"[,.!]", text[span[1] :]) is not None


def _name_at(text: str, start: int, *, sure: bool) -> tuple[int, int] | None:
    """The words of a name that begins here. Without capitals, only if a name must follow."""
    end, count, at = start, 0, start
    while count < _MOST:
        word = _WORD.match(text, at)
        if not word or word[0].lower() in WORDS["no_name"] or word[0].lower() in WORDS["vocabulary"]:
            break
        capital = word[0][0].isupper() or _is_particle(text, word)
        if not capital and (not sure or count >= 2 or (count and text[start].isupper())):
            break
        initial = len(word[0]) == 1
        end, count = word.end(), count + (not initial and word[0].lower() not in _PARTICLES)
        gap = re.match(r"\.? " if initial else r" |,? (?=(?:Jr|Sr|I{2,3}|IV)\b)", text[end:])
        if not gap:
            break
        at = end + gap.end()
    return (start, end) if end > start and count else None


def _is_particle(text: str, word: re.Match[str]) -> bool:
    """`der` in Van der Berg."""
    following = re.match(r" ([^\W\d_]+)", text[word.end() : word.end() + 40])
    if word[0].lower() not in _PARTICLES or not following:
        return False
    return following[1][0].isupper() or following[1].lower() in _PARTICLES


def _titled(text: str) -> Iterator[PersonalText]:
    for one in PATTERNS["title"].finditer(text):
        title = one[0].strip(" .\n").lower()
        if title == "ms" and re.search(r"\d\s*$", text[max(0, one.start() - 4) : one.start()]):
            continue  # milliseconds
        span = _name_at(text, one.end(), sure=title in _LOWER_TITLES)
        if span:
            yield _found(text, *span)


def _known(text: str) -> Iterator[PersonalText]:
    """Known first names with a capital, and the capitalized word behind them."""
    for word in _WORD.finditer(text):
        name = word[0].removesuffix("'s")
        if not name[0].isupper() or name.lower() not in first_names() or (name.isupper() and len(name) < 3):
            continue
        if _PLACE_AFTER.match(text, word.end()) or _PLACE_BEFORE.search(text[max(0, word.start() - 8) : word.start()]):
            continue
        span = _name_at(text, word.start(), sure=False)
        if span is None:
            continue
        words = text[span[0] : span[1]].split()
        after = _PLACE_AFTER.match(text, span[1])
        in_state = re.match(r",\s*(\w+)(?:\s+(\w+))?", text[span[1] :])
        state = in_state and any(part and part.lower() in WORDS["states"] for part in in_state.groups())
        if not after and not (state and len(words) == 1):
            yield _found(text, *span)


def _from_list(text: str, listed: Sequence[str]) -> Iterator[PersonalText]:
    for line in listed:
        parts = _WORD.findall(line)
        if not parts:
            continue
        whole = r"[\s.,-]+(?:[^\W\d_]\.?\s+)?".join(re.escape(part) for part in parts)
        for one in re.finditer(rf"(?i)(?<!\w){whole}(?:'s)?(?!\w)", text):
            yield _found(text, *one.span())
        for part in parts if len(parts) > 1 else ():
            if len(part) < 3 or part.lower() in WORDS["vocabulary"] or part.lower() in WORDS["no_name"]:
                continue
            for one in re.finditer(rf"(?<!\w)(?:{re.escape(part.capitalize())}|{re.escape(part.upper())})(?!\w)", text):
                yield _found(text, *one.span())
        spelled = "".join(parts).upper()
        for word in {spelled, *(part.upper() for part in parts if len(part) >= 3)}:
            letters = r"[\s.,-]+".join(re.escape(letter) for letter in word)
            for one in re.finditer(rf"(?i)(?<!\w){letters}(?!\w)", text):
                yield _found(text, *one.span())


def _spelled(text: str, names: Sequence[PersonalText]) -> Iterator[PersonalText]:
    """A name spelled letter by letter, behind a name or words such as "spelled" and "last name"."""
    ends = sorted(one.end for one in names)
    for run in runs(text):
        letters = [piece for piece in run if not piece.digits or text[piece.start : piece.end] in "oO"]
        if len(letters) < 3 or len(letters) < len(run) or any(len(piece.chars) > 1 for piece in letters):
            continue
        if any(not re.fullmatch(r"[\s.,-]+", gap) for gap in gaps(run, text)):
            continue  # "I'm a"
        start, end = run[0].start, run[-1].end
        before = bisect_right(ends, start) - 1
        near = before >= 0 and start - ends[before] <= 40
        context = _SPELL_CONTEXT.search(text, max(0, start - 40), start) or re.search(
            r"(?i)spell", text[end : end + 30]
        )
        plans = re.search(r"(?i)\b(?:parts?|plans?|medigap|letters?)\b[^.]{0,20}$", text[max(0, start - 40) : start])
        if (near or context) and not plans:
            yield _found(text, start, end)
