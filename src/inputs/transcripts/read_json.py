"""JSON of speech recognizers (Whisper, AWS Transcribe) and of chats (a list of roles and contents)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

from ...errors import InputError
from ...store.strict_json import StrictJSONError, clean_text, loads
from .utterances import NO_SPEAKER, Utterance, WordConfidence

JsonFormat = Literal["whisper", "aws", "chat"]
_NO_SPACE_BEFORE = re.compile(r"^[.,!?;:%)\]]")


def parse(text: str, where: str) -> Any:
    try:
        return loads(text)
    except StrictJSONError as error:
        raise InputError(f"{where}: {error}.") from None


def json_format(document: Any) -> JsonFormat | None:
    """Which of the formats a document has."""
    if isinstance(document, dict):
        if isinstance(document.get("results"), dict):
            return "aws"
        if isinstance(document.get("segments"), list):
            return "whisper"
    return "chat" if _messages(document) is not None else None


def read_json(document: Any, kind: JsonFormat, where: str) -> Iterator[Utterance]:
    readers = {"aws": _aws, "whisper": _whisper, "chat": _chat}
    return readers[kind](document, where)


def _chat(document: Any, where: str) -> Iterator[Utterance]:
    messages = _messages(document)
    if messages is None:
        raise InputError(f"{where}: expected a list of objects with role and content.")
    for one in messages:
        role = _text(one.get("role", one.get("speaker", one.get("author"))))
        if role.lower() not in ("system", "tool"):
            yield Utterance(role or NO_SPEAKER, _content(one))


def _messages(document: Any) -> list[dict[str, Any]] | None:
    if isinstance(document, dict):
        document = document.get("messages", document.get("conversation", document.get("turns")))
    if not isinstance(document, list) or not document or not all(isinstance(one, dict) for one in document):
        return None
    fits = all(
        {"role", "speaker", "author"} & one.keys() and {"content", "text", "message"} & one.keys() for one in document
    )
    return document if fits else None


def _content(message: dict[str, Any]) -> str:
    """Text, or the text parts of a list of parts."""
    content = message.get("content", message.get("text", message.get("message")))
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "\n".join(_text(part) for part in parts if isinstance(part, str)).strip()
    return _text(content).strip()


def _whisper(document: Any, where: str) -> Iterator[Utterance]:
    segments = document.get("segments") if isinstance(document, dict) else None
    if not isinstance(segments, list):
        raise InputError(f"{where}: expected the JSON of Whisper, with a list of segments.")
    for segment in segments:
        if not isinstance(segment, dict):
            raise InputError(f"{where}: a segment is not an object with text.")
        words = [one for one in _list(segment.get("words")) if isinstance(one, dict)]
        base = _speaker(segment.get("speaker"))
        by_speaker = _same_speaker(words, base) if words else []
        if len(by_speaker) > 1:
            for speaker, group in by_speaker:
                yield _from_words(
                    speaker, [(_text(one.get("word", one.get("text"))), _sure(one)) for one in group], group
                )
            continue
        speaker = by_speaker[0][0] if by_speaker else base
        text = " ".join(_text(segment.get("text")).split())
        named = re.match(r"^\[?([A-Za-z][\w ]{0,30})\]?:\s+(.*)$", text) if not speaker else None
        if named and re.match(r"(?i)speaker|spk|caller|counselor|agent|customer|user", named[1]):
            speaker, text = named[1], named[2]
        found = _placed(text, [(_text(one.get("word", one.get("text"))), _sure(one)) for one in words])
        yield Utterance(
            speaker, text, _number(segment.get("start")), _number(segment.get("end")),
            _mean(found) if found else _from_log(segment.get("avg_logprob")), found,
        )  # fmt: skip


def _same_speaker(words: list[dict[str, Any]], base: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Words in groups of one speaker. A word without one is said by the speaker before."""
    groups: list[tuple[str, list[dict[str, Any]]]] = []
    for word in words:
        speaker = _speaker(word.get("speaker")) or (groups[-1][0] if groups else base)
        if not groups or groups[-1][0] != speaker:
            groups.append((speaker, []))
        groups[-1][1].append(word)
    return groups


def _sure(word: dict[str, Any]) -> float | None:
    for name in ("probability", "score", "confidence"):
        value = _number(word.get(name))
        if value is not None:
            return _unit(value)
    return None


def _aws(document: Any, where: str) -> Iterator[Utterance]:
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict):
        raise InputError(f"{where}: expected the JSON of AWS Transcribe, with results.")
    items = [one for one in _list(results.get("items")) if isinstance(one, dict)]
    segments = [one for one in _list(results.get("audio_segments")) if isinstance(one, dict)]
    if segments and any(one.get("speaker_label") for one in segments):
        return _aws_segments(segments, items)
    if items:
        return _aws_items(items, results)
    if segments:
        return _aws_segments(segments, items)
    raise InputError(f"{where}: the results have neither items nor audio_segments.")


def _aws_segments(segments: list[dict[str, Any]], items: list[dict[str, Any]]) -> Iterator[Utterance]:
    by_id = {one.get("id"): one for one in items if isinstance(one.get("id"), int)}
    for segment in segments:
        text = " ".join(_text(segment.get("transcript")).split())
        mine = [by_id[number] for number in _list(segment.get("items")) if isinstance(number, int) and number in by_id]
        words = _placed(text, [_aws_word(one) for one in mine if one.get("type") != "punctuation"])
        yield Utterance(
            _text(segment.get("speaker_label")), text, _number(segment.get("start_time")),
            _number(segment.get("end_time")), _mean(words), words,
        )  # fmt: skip


def _aws_items(items: list[dict[str, Any]], results: dict[str, Any]) -> Iterator[Utterance]:
    by_time = _speaker_by_time(results)
    speaker, group = NO_SPEAKER, list[dict[str, Any]]()
    for one in items:
        start = one.get("start_time")
        here = _text(one.get("speaker_label")) or (by_time.get(start, "") if isinstance(start, str) else "")
        here = here or speaker
        if one.get("type") != "punctuation" and here != speaker and group:
            yield _from_words(speaker, [_aws_word(item) for item in group], group)
            group = []
        speaker = here if one.get("type") != "punctuation" else speaker
        group.append(one)
    if group:
        yield _from_words(speaker, [_aws_word(item) for item in group], group)


def _speaker_by_time(results: dict[str, Any]) -> dict[str, str]:
    labels = results.get("speaker_labels")
    found: dict[str, str] = {}
    for segment in _list(labels.get("segments")) if isinstance(labels, dict) else []:
        for one in _list(segment.get("items")) if isinstance(segment, dict) else []:
            if isinstance(one, dict) and isinstance(one.get("start_time"), str):
                found[one["start_time"]] = _text(one.get("speaker_label", segment.get("speaker_label")))
    return found


def _aws_word(item: dict[str, Any]) -> tuple[str, float | None]:
    choices = [one for one in _list(item.get("alternatives")) if isinstance(one, dict)]
    best = choices[0] if choices else {}
    sure = _number(best.get("confidence")) if item.get("type") != "punctuation" else None
    return _text(best.get("content")), _unit(sure) if sure is not None else None


def _from_words(speaker: str, said: list[tuple[str, float | None]], raw: list[dict[str, Any]]) -> Utterance:
    """An utterance from single words, with spaces where speech has them."""
    words = [(word.strip(), sure) for word, sure in said if word.strip()]
    text = words[0][0] if words else ""
    for (_, _), (word, _) in pairwise(words):
        text += word if _NO_SPACE_BEFORE.match(word) else f" {word}"
    found = _placed(text, [(word, sure) for word, sure in words if sure is not None])
    times = [
        (_number(one.get("start_time", one.get("start"))), _number(one.get("end_time", one.get("end")))) for one in raw
    ]
    known = [(start, end) for start, end in times if start is not None]
    return Utterance(
        speaker, text, known[0][0] if known else None, known[-1][1] if known else None, _mean(found), found
    )


def _placed(text: str, words: list[tuple[str, float | None]]) -> tuple[WordConfidence, ...]:
    """Where each word with a confidence is in the text, in order."""
    found, at = list[WordConfidence](), 0
    for raw, sure in words:
        word = raw.strip()
        start = text.find(word, at) if word else -1
        if start < 0:
            continue
        at = start + len(word)
        if sure is not None:
            found.append(WordConfidence(start, at, sure))
    return tuple(found)


def _mean(words: tuple[WordConfidence, ...]) -> float | None:
    return sum(one.confidence for one in words) / len(words) if words else None


def _from_log(value: object) -> float | None:
    """Whisper's mean log probability of a segment, as a probability."""
    log = _number(value)
    return _unit(math.exp(min(0.0, max(log, -50.0)))) if log is not None else None


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < 1e12 else None


def _text(value: object) -> str:
    return clean_text(value) if isinstance(value, str) else ""


def _speaker(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("name", value.get("id"))
    return str(value)[:80] if isinstance(value, str | int) and not isinstance(value, bool) else NO_SPEAKER


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
