"""One file to utterances: its size, its encoding, its format, and the reader for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..records.transcript import SourceFile, SourceFormat
from ..store.input_files import read_bytes
from ..store.strict_json import clean_text, sha256
from . import read_json as json_files
from .read_csv import looks_like_csv, read_csv
from .read_docx import docx_text
from .read_subtitles import looks_like_subtitles, read_subtitles
from .read_text import has_labels, is_chat, read_chat, read_labeled
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
    data = read_bytes(path, MAX_BYTES)
    where = str(path)
    found = read_data(data, where, given, path.suffix.lower())
    source = SourceFile(name=path.name, sha256=sha256(data), format=found.format)
    return ReadFile(source, found.utterances)


@dataclass(frozen=True)
class _Read:
    format: SourceFormat
    utterances: tuple[Utterance, ...]


def read_data(data: bytes, where: str, given: SourceFormat | None = None, suffix: str = "") -> _Read:
    """The same of bytes."""
    if given == "docx" or (given is None and data[:4] == b"PK\x03\x04"):
        text = docx_text(data, where)
        read = read_labeled if has_labels(text) or not is_chat(text) else read_chat
        return _Read("docx", tuple(checked(read(clean_text(text), where), where)))
    text = decoded(data, where)
    if given in ("whisper", "aws") or (given in (None, "chat") and text.lstrip()[:1] in ("{", "[")):
        found = _read_json(text, where, given, suffix)
        if found:
            return found
    kind = given or _recognized(text, suffix)
    readers = {"csv": read_csv, "vtt": read_subtitles, "srt": read_subtitles, "chat": read_chat, "text": read_labeled}
    return _Read(kind, tuple(checked(readers[kind](text, where), where)))


def _read_json(text: str, where: str, given: SourceFormat | None, suffix: str) -> _Read | None:
    """None: a text that only begins like JSON, such as `[00:01] Caller: ...`."""
    if given is None and suffix != ".json" and re.match(r"\s*[\[{]\s*[^\s\[\]{}\"]", text):
        return None
    document = json_files.parse(text, where)
    kind = json_files.json_format(document)
    if kind is None or given not in (None, kind):
        wanted = given or "Whisper, AWS Transcribe or a chat (a list of role and content)"
        raise InputError(f"{where}: this JSON is not that of {wanted}. Check the file and --format.")
    return _Read(kind, tuple(checked(json_files.read_json(document, kind, where), where)))


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
