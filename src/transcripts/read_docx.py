"""Word documents: the paragraphs of `word/document.xml`, read with the standard library.

The file comes from somebody else. It is refused if it unpacks to more than is reasonable, and if its XML declares a
document type, which is what XML bombs and outside references need.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from xml.etree import ElementTree

from ..errors import InputError

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
