"""CSV with a column for the speaker and one for the words."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from ..errors import InputError
from .read_text import seconds
from .utterances import Utterance

SPEAKER = ("speaker", "role", "who", "name", "speaker_label", "participant", "author", "from")
TEXT = ("text", "utterance", "content", "message", "transcript", "words", "said")
TIME = ("time", "start", "start_time", "start_s", "timestamp", "begin")
CONFIDENCE = ("confidence", "score", "probability")
LONGEST_CELL = 400_000


def read_csv(text: str, where: str) -> Iterator[Utterance]:
    """One row per utterance; commas, semicolons or tabs between the columns."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=False)
    line = 1
    try:
        head = [name.strip().lower().replace(" ", "_") for name in next(rows, [])]
        who, what = _column(head, SPEAKER), _column(head, TEXT)
        if who is None or what is None:
            raise InputError(
                f"{where}, line 1: a column for the speaker ({', '.join(SPEAKER[:3])}) and one for the words "
                f"({', '.join(TEXT[:4])}) are needed; the file has {', '.join(head)[:100] or 'none'}."
            )
        when, sure = _column(head, TIME), _column(head, CONFIDENCE)
        for row in rows:
            line = rows.line_num
            if any(cell.strip() for cell in row):
                yield Utterance(
                    _cell(row, who), _cell(row, what), _time(_cell(row, when)), None, _confidence(_cell(row, sure))
                )
    except csv.Error as error:
        raise InputError(f"{where}, line {max(line, rows.line_num)}: not valid CSV ({error}).") from None


def looks_like_csv(text: str) -> bool:
    head = text.lstrip().partition("\n")[0].lower()
    names = {name.strip().strip('"').replace(" ", "_") for name in head.split(_delimiter(head))}
    return bool(names & {*SPEAKER}) and bool(names & {*TEXT})


def _delimiter(text: str) -> str:
    head = text.lstrip().partition("\n")[0]
    return max(",;\t|", key=head.count)


def _column(head: Sequence[str], names: Sequence[str]) -> int | None:
    return next((head.index(name) for name in names if name in head), None)


def _cell(row: Sequence[str], column: int | None) -> str:
    return row[column].strip()[:LONGEST_CELL] if column is not None and column < len(row) else ""


def _time(cell: str) -> float | None:
    if ":" in cell:
        return seconds(cell)
    return _number(cell)


def _confidence(cell: str) -> float | None:
    value = _number(cell.rstrip("%"))
    if value is None:
        return None
    value = value / 100 if cell.endswith("%") or value > 1 else value
    return value if 0 <= value <= 1 else None


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None
