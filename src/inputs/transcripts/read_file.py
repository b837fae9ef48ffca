"""One file to utterances: its size, its encoding, its format, and the reader for it."""

from __future__ import annotations

import csv
import html
import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ...errors import InputError
from ...records.transcript import SourceFile, SourceFormat
from ...store.input_files import read_bytes
from ...store.strict_json import clean_text, sha256
from . import read_json as json_files
from .read_text import LABEL, MOST_LABEL_WORDS, has_labels, is_chat, read_chat, read_labeled, seconds
from .utterances import Utterance, checked

MAX_BYTES = 30_000_000
FORMATS: tuple[SourceFormat, ...] = ("text", "csv", "whisper", "aws", "vtt", "srt", "docx", "chat")
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


@dataclass(frozen=True)
class ReadFile:
    """What a file says, and what it is."""

    source: SourceFile
    utterances: tuple[Utterance, ...]


def read_transcript(path: Path, given: SourceFormat | None = None) -> ReadFile:
    """Read a transcript in the format given, or in the one that its name and contents show.

    Raises:
        InputError: the file cannot be read, or its format is not one of `FORMATS`.
    """
    if not path.name.isprintable() or len(path.name) > 255:
        raise InputError(f"{str(path)!r}: the file name is not printable text. Rename the file.")
    return read_data(read_bytes(path, MAX_BYTES), str(path), given, path.suffix.lower())


def read_data(data: bytes, where: str, given: SourceFormat | None = None, suffix: str = "") -> ReadFile:
    """The same of bytes."""

    def read(kind: SourceFormat, utterances: Iterable[Utterance]) -> ReadFile:
        source = SourceFile(name=Path(where).name, sha256=sha256(data), format=kind)
        return ReadFile(source, tuple(checked(utterances, where)))

    if given == "docx" or (given is None and data[:4] == b"PK\x03\x04"):
        text = docx_text(data, where)
        reader = read_labeled if has_labels(text) or not is_chat(text) else read_chat
        return read("docx", reader(clean_text(text), where))
    text = decoded(data, where)
    if given in ("whisper", "aws") or (given in (None, "chat") and text.lstrip()[:1] in ("{", "[")):
        document = _json_of(text, where, given, suffix)
        if document is not None and (found := json_files.json_format(document)):
            return read(found, json_files.read_json(document, found, where))
    kind = given or _recognized(text, suffix)
    readers = {"csv": read_csv, "vtt": read_subtitles, "srt": read_subtitles, "chat": read_chat, "text": read_labeled}
    return read(kind, readers[kind](text, where))


def _json_of(text: str, where: str, given: SourceFormat | None, suffix: str) -> Any:
    """None: a text that only begins like JSON, such as `[00:01] Caller: ...`."""
    if given is None and suffix != ".json" and re.match(r"\s*[\[{]\s*[^\s\[\]{}\"]", text):
        return None
    document = json_files.parse(text, where)
    kind = json_files.json_format(document)
    if kind is None or given not in (None, kind):
        wanted = given or "Whisper, AWS Transcribe or a chat (a list of role and content)"
        raise InputError(f"{where}: this JSON is not that of {wanted}. Check the file and --format.")
    return document


def _recognized(text: str, suffix: str) -> SourceFormat:
    if text.startswith("WEBVTT") or suffix == ".vtt":
        return "vtt"
    if suffix == ".srt" or looks_like_subtitles(text):
        return "srt"
    if suffix in (".csv", ".tsv") or looks_like_csv(text):
        return "csv"
    return "chat" if is_chat(text) else "text"


def decoded(data: bytes, where: str) -> str:
    """Text in UTF-8, or in UTF-16 with a byte order mark. Line ends become those of Unix."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{where}, line {line}: not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    if found := _BINARY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"{where}, line {line}: not a text file. Use one of {', '.join(FORMATS)}.")
    return clean_text(_LINE_ENDS.sub("\n", text))


# CSV with a column for the speaker and one for the words.

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


# Word documents: the paragraphs of `word/document.xml`, read with the standard library.
#
# The file comes from somebody else. It is refused if it unpacks to more than is reasonable, and if its XML declares a
# document type, which is what XML bombs and outside references need.

MOST_MEMBERS = 2_000
MOST_BYTES = 50_000_000
"""Of the text's XML, unpacked."""
DEEPEST = 200
_DOCUMENT = "word/document.xml"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"


def docx_text(data: bytes, where: str) -> str:
    """The paragraphs, one per line; the cells of a table's row are on one line, with a colon after the first."""
    xml = _unpacked(data, where)
    head = xml[:1_000_000]
    if b"<!DOCTYPE" in head.upper() or b"<!ENTITY" in xml.upper() or xml[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{where}: its XML declares a document type or is not UTF-8. Save it again with Word.")
    try:
        return _paragraphs(xml)
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a valid Word document ({error}).") from None


def _unpacked(data: bytes, where: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if len(archive.namelist()) > MOST_MEMBERS:
                raise InputError(f"{where} has more than {MOST_MEMBERS:,} parts, which no transcript needs.")
            with archive.open(_DOCUMENT) as member:
                xml = member.read(MOST_BYTES + 1)
    except KeyError:
        raise InputError(f"{where}: not a Word document; it has no {_DOCUMENT}.") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        raise InputError(f"{where}: not a valid Word document ({error}).") from None
    if len(xml) > MOST_BYTES:
        raise InputError(f"{where} unpacks to more than {MOST_BYTES:,} bytes, the limit for a transcript.")
    return xml


def _paragraphs(xml: bytes) -> str:
    """Read as events, so that no depth of nesting needs a deep stack."""
    lines: list[str] = []
    text: list[str] = []
    depth = cells = 0
    for event, element in ElementTree.iterparse(io.BytesIO(xml), events=("start", "end")):  # noqa: S314 - see above
        tag = element.tag.removeprefix(_WORD).removeprefix(_STRICT)
        depth += 1 if event == "start" else -1
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST} levels")
        if event == "start":
            cells += tag == "tr"
            continue
        if tag == "t":
            text.append(element.text or "")
        elif tag in ("tab", "br", "cr"):
            text.append(" " if tag == "tab" else "\n")
        elif tag == "p" and not cells:
            lines.append("".join(text))
            text = []
        elif tag == "p":
            text.append("\n")
        elif tag == "tc":
            text.append("\t")
        elif tag == "tr":
            cells -= 1
            lines.append(_row("".join(text)))
            text = []
        element.clear()
    return "\n".join(lines)


def _row(text: str) -> str:
    cells = [" ".join(cell.split()) for cell in text.split("\t")]
    first, rest = cells[0], " ".join(filter(None, cells[1:]))
    return f"{first.rstrip(':')}: {rest}" if first and rest else first or rest


# WebVTT and SRT. Both are lists of cues with times; we read the words and who says them, and no layout.

_TIMES = re.compile(r"^\s*((?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3})\s*-->\s*((?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3})")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]{1,80})>")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>]{0,200}>|\{\\[^{}]{0,80}\}")
_DASH = re.compile(r"^\s*[-–]\s+")


def read_subtitles(text: str, where: str) -> Iterator[Utterance]:
    """Cues with `<v Name>` or `Name: ` before the words. A cue without a name is said by the speaker before."""
    lines = text.splitlines()
    speaker, found, number = "", False, 0
    while number < len(lines):
        times = _TIMES.match(lines[number])
        number += 1
        if not times:
            continue
        found = True
        payload = []
        while number < len(lines) and lines[number].strip() and not _TIMES.match(lines[number]):
            payload.append(lines[number])
            number += 1
        for name, words in _cue(payload):
            speaker = name or speaker
            yield Utterance(speaker, words, seconds(times[1]), seconds(times[2]))
    if not found:
        raise InputError(f"{where}, line 1: no cue with times such as 00:00:01.000 --> 00:00:04.000 was found.")


def looks_like_subtitles(text: str) -> bool:
    return text.lstrip("\ufeff \n\r").startswith("WEBVTT") or any(_TIMES.match(line) for line in text.splitlines()[:50])


def _cue(payload: list[str]) -> Iterator[tuple[str, str]]:
    """Who says what in one cue; a cue may have several speakers."""
    name, said = "", list[str]()
    for line in payload:
        for voice, piece in _voices(line):
            words = _DASH.sub("", html.unescape(_TAG.sub("", piece))).strip()
            label = None if voice else LABEL.match(words)
            labeled = label is not None and len(label["name"].split()) <= MOST_LABEL_WORDS
            who = label["name"].strip() if label and labeled else voice
            words = label["text"].strip() if label and labeled else words
            if who:
                yield name, " ".join(said)
                name, said = who, []
            said.append(words)
    yield name, " ".join(filter(None, said))


def _voices(line: str) -> Iterator[tuple[str, str]]:
    """A line cut at its voice tags."""
    pieces = _VOICE.split(line)
    if pieces[0].strip():
        yield "", pieces[0]
    for place in range(1, len(pieces), 2):
        yield html.unescape(pieces[place]).strip(), pieces[place + 1]
