"""WebVTT and SRT. Both are lists of cues with times; we read the words and who says them, and no layout."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from ..errors import InputError
from .read_text import LABEL, MOST_LABEL_WORDS, seconds
from .utterances import Utterance

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
