"""Numbers and codes in text as pieces: digits, spoken digits, single letters, and letters spelled with words.

"one E G four dash T E five", "1EG4-TE5", "one echo golf four" and "E as in Edward" give the same characters. A run is a
row of pieces with nothing between them but spaces, dashes and words such as "uh" and "okay".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ...text.numbers import TENS, UNITS, Token, lower
from ...text.patterns import load_patterns, load_words

PATTERNS = load_patterns(Path(__file__).with_name("redact_patterns.toml"))
WORDS = load_words(Path(__file__).with_name("redact_words.toml"))
DIGITS = {word: str(value) for value, word in enumerate(UNITS[:10])}
DIGITS |= {"oh": "0", "o": "0", "nought": "0", "niner": "9"}
_TEENS = {word: str(value) for value, word in enumerate(UNITS[10:], 10)}
_TENS = {word: str(ten) for ten, word in enumerate(TENS, 2)}
_TENS["fourty"] = "4"
NUMBER_WORDS = frozenset({*DIGITS, *_TEENS, *_TENS})
_NATO = {word: word[0].upper() for word in WORDS["nato"]}
_TIMES = {"double": 2, "triple": 3}
_SPELLED = frozenset(("as", "for", "like"))
_FILLERS = WORDS["fillers"]
_MOST_FILLERS = 6
_TOKEN = re.compile(r"[^\W\d_]+|[0-9]+|[^\s]")
_BREAKS = frozenset('$%:/;=<>@&+*|[]{}\\"!¢£€')
_FOLD = str.maketrans(
    dict.fromkeys(
        "\t\x0b\x0c\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000", " "
    )
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e", '"')
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", "-")
    | {0xFF10 + digit: str(digit) for digit in range(10)}
    | {0x0660 + digit: str(digit) for digit in range(10)}
)


def folded(text: str) -> str:
    """Plain typography, of the same length."""
    return text.translate(_FOLD)


@dataclass(frozen=True)
class CodePiece:
    """Characters of a code, and where they are said."""

    chars: str
    start: int
    end: int
    spoken: bool
    """Whether it is a word, such as "seven", rather than a figure."""

    @property
    def digits(self) -> bool:
        return self.chars.isdigit()

    @property
    def single(self) -> bool:
        return len(self.chars) == 1 or (self.spoken and len(set(self.chars)) == 1)


def runs(text: str, masked: Sequence[tuple[int, int]] = (), *, capitals: bool = False) -> list[list[CodePiece]]:
    """Rows of pieces in folded text; what is masked (start, end) ends a row. `capitals`: XJK counts as letters.

    Example:
        >>> ["".join(piece.chars for piece in run) for run in runs("It is one E G four dash T E five.")]
        ['1EG4TE5']
    """
    tokens = [Token(one[0], one[0].lower(), one.start(), one.end()) for one in _TOKEN.finditer(text)]
    hidden = _Hidden(masked)
    found: list[list[CodePiece]] = []
    row: list[CodePiece] = []
    fillers = place = 0
    while place < len(tokens):
        token = tokens[place]
        piece, width = (None, 1) if hidden.has(token.start) else _piece(tokens, place, capitals)
        if piece:
            if row and not _may_follow(row[-1], piece, text):
                found.append(row)
                row = []
            row.append(piece)
            fillers = 0
        elif row and (hidden.has(token.start) or not _between(token) or fillers >= _MOST_FILLERS):
            found.append(row)
            row, fillers = [], 0
        elif row:
            fillers += token.lower in _FILLERS
        place += width
    return [*found, row] if row else found


class _Hidden:
    """Whether a place is masked; asked in ascending order."""

    def __init__(self, masked: Sequence[tuple[int, int]]) -> None:
        self._spans = sorted(masked)
        self._at = 0

    def has(self, place: int) -> bool:
        while self._at < len(self._spans) and self._spans[self._at][1] <= place:
            self._at += 1
        return self._at < len(self._spans) and self._spans[self._at][0] <= place


def _between(token: Token) -> bool:
    """Whether a token may be between two pieces of one code."""
    if token.text.isalnum():
        return token.lower in _FILLERS
    return token.text not in _BREAKS


def _may_follow(before: CodePiece, piece: CodePiece, text: str) -> bool:
    """A sentence may end inside a code only if it is said digit by digit, as recognizers write it."""
    gap = text[before.end : piece.start]
    if re.search(r"[.?!]\s", gap):
        return before.single and piece.single and (before.spoken or piece.spoken or len(before.chars) == 1)
    return len(gap) <= 80 and "    " not in gap  # wide gaps are the columns of a table


def _piece(tokens: Sequence[Token], place: int, capitals: bool) -> tuple[CodePiece | None, int]:
    """The piece that begins at a token, and how many tokens it takes."""
    token = tokens[place]
    word = token.lower
    found: tuple[CodePiece | None, int] = (None, 1)
    if spelled := _spelled(tokens, place):
        found = spelled
    elif token.text.isdigit():
        found = CodePiece(token.text, token.start, token.end, False), 1
    elif word in _TIMES:
        following = _digit(tokens, place + 1)
        if following:
            found = CodePiece(following * _TIMES[word], token.start, tokens[place + 1].end, True), 2
    elif word in ("eight", "nine") and lower(tokens, place + 1) == "hundred":
        found = CodePiece(f"{DIGITS[word]}00", token.start, tokens[place + 1].end, True), 2
    elif word in NUMBER_WORDS:
        found = _number(tokens, place)
    elif word in _NATO:
        found = CodePiece(_NATO[word], token.start, token.end, True), 1
    elif word.isascii() and word.isalpha() and _are_letters(tokens, place, capitals):
        found = CodePiece(token.text.upper(), token.start, token.end, False), 1
    return found


def _are_letters(tokens: Sequence[Token], place: int, capitals: bool) -> bool:
    text = tokens[place].text
    return len(text) == 1 or _in_code(tokens, place) or (capitals and text.isupper() and len(text) <= 6)


def _number(tokens: Sequence[Token], place: int) -> tuple[CodePiece | None, int]:
    token = tokens[place]
    word = token.lower
    after = place + 1
    chars = DIGITS.get(word) or _TEENS.get(word) or ""
    if word in _TENS:
        unit = after + (after < len(tokens) and tokens[after].text == "-")
        value = DIGITS.get(lower(tokens, unit), "")
        joined = value not in ("", "0") and lower(tokens, unit) != "o"
        chars, after = (_TENS[word] + value, unit + 1) if joined else (f"{_TENS[word]}0", after)
    if lower(tokens, after) in ("hundred", "thousand", "million", "percent", "dollars", "dollar", "cents", "point"):
        return None, after - place + 1  # an amount
    return CodePiece(chars, token.start, tokens[after - 1].end, True), after - place


def _spelled(tokens: Sequence[Token], place: int) -> tuple[CodePiece, int] | None:
    """`E as in Edward`, `E for Edward`, `M like Mary`."""
    word = tokens[place].lower
    if not (len(word) == 1 and word.isascii() and word.isalpha()):
        return None
    words = [lower(tokens, place + step) for step in range(1, 4)]
    if words[0] == "as" and words[1] == "in" and words[2][:1] == word:
        width = 4
    elif words[0] in _SPELLED and words[1][:1] == word and len(words[1]) > 2:
        width = 3
    else:
        return None
    while lower(tokens, place + width) == "-" and lower(tokens, place + width + 1).isalpha():
        width += 2  # X as in X-ray
    return CodePiece(word.upper(), tokens[place].start, tokens[place + width - 1].end, True), width


def _in_code(tokens: Sequence[Token], place: int) -> bool:
    """Letters that touch digits, as in 1EG4 or TE5, or capitals beside them, as in TE 5."""
    token = tokens[place]
    if len(token.text) > 6:
        return False
    touching = any(
        0 <= other < len(tokens)
        and tokens[other].text.isdigit()
        and (tokens[other].end == token.start or tokens[other].start == token.end)
        for other in (place - 1, place + 1)
    )
    if touching:
        return True
    return token.text.isupper() and any(
        tokens[other].text == "-" and tokens[other].end - tokens[other].start == 1
        for other in (place - 1, place + 1)
        if 0 <= other < len(tokens) and (tokens[other].end == token.start or tokens[other].start == token.end)
    )


def _digit(tokens: Sequence[Token], place: int) -> str:
    word = lower(tokens, place)
    return DIGITS.get(word, "") or (word if len(word) == 1 and word.isdigit() else "")


def chars_of(pieces: Sequence[CodePiece]) -> str:
    return "".join(piece.chars for piece in pieces)


def digit_rows(run: Sequence[CodePiece]) -> Iterator[list[CodePiece]]:
    """The longest parts of a run that have digits only."""
    row: list[CodePiece] = []
    for piece in run:
        if piece.digits:
            row.append(piece)
        elif row:
            yield row
            row = []
    if row:
        yield row


def gaps(pieces: Sequence[CodePiece], text: str) -> list[str]:
    """What is between the pieces."""
    return [text[before.end : after.start] for before, after in pairwise(pieces)]
