"""Street addresses and e-mail addresses, written and spoken. Places such as a county, and websites, stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .codes import NUMBER_WORDS, PATTERNS, word_list
from .redact_numbers import PersonalText, personal_text

_EMAIL = re.compile(r"[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_SPOKEN_AT = PATTERNS["spoken_at"]
_list = str.split
_MAIL = re.compile(r"(?i)\be-?mails?\b|\be mail\b")
_NOT_LOCAL = frozenset(_list("at is it's i'm its to me my the on or and address email mail was that's us"))
_LOCAL_MARKS = frozenset(("dot", "underscore", "dash", "hyphen", "period", "plus"))
_ADDRESSES = (PATTERNS["address_to_first_end"], PATTERNS["address_to_last_end"])
_NUMBERED_ROAD = PATTERNS["numbered_road"]
_PO_BOX = PATTERNS["po_box"]
_OFFICIAL = re.compile(r"(?i)medicare premium|collection center|cms\b|social security admin|department of")
_DIRECTIONS = frozenset(("north", "south", "east", "west", "n", "s", "e", "w", "ne", "nw", "se", "sw"))


def find_addresses(text: str) -> Iterator[PersonalText]:
    """Street addresses with a house number, post boxes and e-mail addresses, in folded text."""
    yield from _emails(text)
    yield from _streets(text)


def _emails(text: str) -> Iterator[PersonalText]:
    for one in _EMAIL.finditer(text):
        yield personal_text("EMAIL", text, *one.span())
    for at in _SPOKEN_AT.finditer(text):
        start = _local_part(text, at)
        if start is not None:
            yield personal_text("EMAIL", text, start, at.end())


def _local_part(text: str, at: re.Match[str]) -> int | None:
    """Where a spoken e-mail address begins; None if "at" is followed by a website: "look at medicare dot gov"."""
    before = text[max(0, at.start() - 160) : at.start()]
    offset = at.start() - len(before)
    words = list(re.finditer(r"[\w'-]+|[.?!\n]", before))
    mail = list(_MAIL.finditer(before))
    host = at["domain"].split()[0].lower()
    known = host in word_list("mail_hosts")
    if mail:
        first = mail[-1].end()
        lead = re.compile(
            r"(?i)(?:[\s,:;?.-]|\b(?:address|is|it's|its|that|that's|would|be|um|uh|my|me|the|and|sure|yes|at|to|us|"
            r"them|him|her)\b)*"
        )
        match = lead.match(before, first)
        begin = match.end() if match else first
        local = before[begin:].strip()
        if local and len(local) <= 60 and not re.search(r"[|?!\n]", local):
            return offset + begin
    start, expect_mark = None, False
    for word in reversed(words):
        said = word[0].lower()
        is_mark = said in _LOCAL_MARKS
        is_piece = len(said) == 1 or said in NUMBER_WORDS or said.isdigit()
        if expect_mark and not is_mark and not is_piece:
            break
        if not re.match(r"\w", said) or said in _NOT_LOCAL:
            break
        start = word.start()
        expect_mark = not is_mark and not is_piece
        if is_mark:
            known = True
    return offset + start if known and start is not None else None


def _streets(text: str) -> Iterator[PersonalText]:
    for pattern in _ADDRESSES:
        for one in pattern.finditer(text):
            if _is_street(text, one):
                yield personal_text("ADDRESS", text, *one.span())
    for one in _NUMBERED_ROAD.finditer(text):
        yield personal_text("ADDRESS", text, *one.span())
    for one in _PO_BOX.finditer(text):
        if not _OFFICIAL.search(text, max(0, one.start() - 100), min(len(text), one.end() + 60)):
            yield personal_text("ADDRESS", text, *one.span())


def _is_street(text: str, one: re.Match[str]) -> bool:
    names = [word.strip(".").lower() for word in one["name"].split()]
    if any(name in word_list("no_street") and name not in _DIRECTIONS for name in names):
        return False
    spelled_out = not re.match(r"\d", one["house"])
    suffix = one["suffix"]
    lower = one["name"].islower() and suffix.islower()
    if re.search(
        r"(?i)[$%]\s?$|\b(?:part|plan|section|age|ages|title)\s$", text[max(0, one.start() - 9) : one.start()]
    ):
        return False
    return suffix.lower() in word_list("street_kinds") if lower or spelled_out else True
