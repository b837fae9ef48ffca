"""Plain text: transcripts with speaker labels, and chats pasted from an app."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...errors import InputError
from .codes import WORDS
from .utterances import Utterance

_TIME = r"(?:[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:\s?[AaPp]\.?[Mm]\.?)?[\])]?)"
_NAME = r"[^\W\d_][\w .'’()&/#-]{0,39}?"
LABEL = re.compile(
    rf"^\s*(?:(?P<before>{_TIME}(?:\s*(?:-->|-|–|to)\s*{_TIME})?)\s*[-–:]?\s*)?"
    rf"(?:[*_]{{1,3}}|#{{1,6}}\s*|>\s*)*(?P<name>{_NAME})(?:[*_]{{1,3}})?"
    rf"\s*(?:[\[(]?(?P<after>{_TIME})[\])]?)?\s*:(?:[*_]{{1,3}})?(?:\s+|$)(?P<text>.*)$"
)
"""`Caller: ...`, `[00:01:02] Agent: ...`, `Agent (00:01:02): ...`, `**Agent:** ...`."""
MOST_LABEL_WORDS = 4
LEAST_USES = 2
"""A label that appears once is a label only if a conversation would have one speaker without it."""
_NOT_NAMES = WORDS["not_labels"]
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s")
_SPEAKERS = (
    r"you|user|me|human|customer|caller|assistant|chatgpt|chat ?gpt|gpt-?[\w.]*|claude|gemini|copilot|"
    r"microsoft copilot|bing|perplexity|grok|meta ai|bard|ai|bot|chatbot|virtual assistant|model|system|agent|"
    r"deepseek|le chat|mistral"
)
CHAT_LABEL = re.compile(
    rf"^\s*(?:#{{1,6}}\s*|[*_]{{1,3}}|>\s*)?(?P<name>{_SPEAKERS})(?:\s+(?:said|says|wrote|replied|asked))?\s*:?"
    rf"(?:[*_]{{1,3}})?:?\s*$",
    re.IGNORECASE,
)
"""A line that only says who speaks: `You said:`, `ChatGPT said:`, `## Assistant`, `**You**`."""
_MARKED_LABEL = re.compile(
    r"^\s*(?:#{1,6}\s*(?P<heading>[^\W\d_][\w .'-]{0,30}?):?|\*\*(?P<bold>[^\W\d_][\w .'-]{0,30}?):?\*\*:?)\s*$"
)
_SAID = re.compile(r"\s+(?:said|says|wrote|replied|asked)\s*:?$", re.IGNORECASE)


def read_labeled(text: str, where: str) -> Iterator[Utterance]:
    """A transcript whose lines begin with a speaker's label; other lines belong to the speaker before."""
    lines = text.splitlines()
    labels = _labels(lines)
    if not labels:
        raise InputError(
            f"{where}, line 1: no speaker labels were found. Begin each speaker's words with a label, such as "
            "'Caller: ...' and 'Counselor: ...'."
        )
    speaker, at, said, blank = "", None, "", False
    for line in lines:
        match = LABEL.match(line)
        name = _label_of(match) if match else ""
        if match and name in labels:
            yield Utterance(speaker, said.strip(), at)
            speaker, at = name, seconds(match["before"] or match["after"] or "")
            said, blank = match["text"], False
        elif not line.strip():
            blank = True
        elif not speaker:
            continue  # a title or a note above the first label
        else:
            said += ("\n\n" if blank else "\n" if _BULLET.match(line) else " ") + line.strip()
            blank = False
    yield Utterance(speaker, said.strip(), at)


def has_labels(text: str) -> bool:
    return len(_labels(text.splitlines())) >= 2


def _labels(lines: Sequence[str]) -> set[str]:
    """The names that are used as labels."""
    counts: dict[str, int] = {}
    for line in lines:
        match = LABEL.match(line)
        if match and (name := _label_of(match)):
            counts[name] = counts.get(name, 0) + 1
    repeated = {name for name, count in counts.items() if count >= LEAST_USES}
    return repeated if len(repeated) >= 2 else set(counts)


def _label_of(match: re.Match[str]) -> str:
    name = match["name"].strip()
    if len(name.split()) > MOST_LABEL_WORDS or name.lower().split()[0] in _NOT_NAMES or match["text"].startswith("//"):
        return ""
    return _SAID.sub("", name)


def read_chat(text: str, where: str) -> Iterator[Utterance]:
    """A chat pasted from an app. The words of a message are kept as they are, with their line breaks."""
    lines = text.splitlines()
    names = _chat_labels(lines)
    if len(set(names.values())) < 2:
        raise InputError(
            f"{where}, line 1: the two sides of the chat were not found. Put a line such as 'You said:' before each "
            "question and 'Assistant said:' before each reply."
        )
    speaker, said = "", list[str]()
    for number, line in enumerate(lines):
        if number in names:
            if speaker:
                yield Utterance(speaker, "\n".join(said).strip())
            speaker, said = names[number], []
        elif speaker:
            said.append(line.rstrip())
    yield Utterance(speaker, "\n".join(said).strip())


def is_chat(text: str) -> bool:
    return len(set(_chat_labels(text.splitlines()).values())) >= 2


def _chat_labels(lines: Sequence[str]) -> dict[int, str]:
    """Line index to the speaker that it names. Marked names of other speakers count if they are repeated."""
    known = {
        number: _chat_name(match["name"]) for number, line in enumerate(lines) if (match := CHAT_LABEL.match(line))
    }
    if len(set(known.values())) >= 2:
        return known
    marked = {
        number: _chat_name(match["heading"] or match["bold"])
        for number, line in enumerate(lines)
        if (match := _MARKED_LABEL.match(line))
    }
    counts = list(marked.values())
    repeated = {number: name for number, name in marked.items() if counts.count(name) >= LEAST_USES}
    return {**repeated, **known}


def _chat_name(name: str) -> str:
    name = _SAID.sub("", name.strip())
    return name.capitalize() if name.islower() else name


def seconds(time: str) -> float | None:
    """`[00:01:02.500]` -> 62.5."""
    found = re.search(r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})(?:[.,](\d{1,3}))?", time)
    if not found:
        return None
    hours, minutes, whole, fraction = found.groups()
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(whole) + float(f"0.{fraction or 0}")
