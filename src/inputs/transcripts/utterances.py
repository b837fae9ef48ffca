"""What was said, by whom, in order: the common form of every format that can be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import InputError
from ...records.ids import scenario_name
from ...schemas import Condition
from ...store.strict_json import fingerprint

MOST_UTTERANCES = 20_000
"""Of one file. An hour of speech has about a thousand."""
NO_SPEAKER = ""
"""The speaker of words whose speaker the file does not name."""


@dataclass(frozen=True)
class WordConfidence:
    """Where a word is in an utterance, and how sure the speech recognizer was of it."""

    start: int
    end: int
    confidence: float


@dataclass(frozen=True)
class Utterance:
    speaker: str
    text: str
    start_s: float | None = None
    end_s: float | None = None
    confidence: float | None = None
    """Mean over its words, 0 to 1."""
    words: tuple[WordConfidence, ...] = ()


def checked(utterances: Iterable[Utterance], where: str) -> list[Utterance]:
    """The utterances that say something; `InputError` if there are none, or too many."""
    kept = []
    for one in utterances:
        if one.text.strip():
            kept.append(one)
        if len(kept) > MOST_UTTERANCES:
            raise InputError(f"{where} has more than {MOST_UTTERANCES:,} utterances, the limit for one conversation.")
    if not kept:
        raise InputError(f"{where}: nothing is said in this file. Check the file and --format.")
    return kept


def joined(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Neighbors by the same speaker as one utterance: formats differ in where they cut."""
    found: list[Utterance] = []
    group: list[Utterance] = []
    for one in utterances:
        if group and group[0].speaker != one.speaker:
            found.append(as_one(group))
            group = []
        group.append(one)
    return [*found, as_one(group)] if group else found


def as_one(parts: Sequence[Utterance], between: str = " ") -> Utterance:
    """Several utterances as one text."""
    if len(parts) == 1:
        return parts[0]
    text, words = "", []
    for part in parts:
        start = len(text) + (len(between) if text else 0)
        text = f"{text}{between}{part.text}" if text else part.text
        words += [WordConfidence(start + one.start, start + one.end, one.confidence) for one in part.words]
    return replace(parts[0], text=text, end_s=parts[-1].end_s, confidence=mean_confidence(parts), words=tuple(words))


def mean_confidence(parts: Sequence[Utterance]) -> float | None:
    """Weighted by the number of words."""
    known = [(one.confidence, len(one.text.split())) for one in parts if one.confidence is not None]
    size = sum(words for _, words in known)
    return sum(confidence * words for confidence, words in known) / size if size else None


def speakers(utterances: Sequence[Utterance]) -> list[str]:
    """Each speaker once, in the order in which they begin to speak."""
    return list(dict.fromkeys(one.speaker for one in utterances))


# The script of a conversation: what is to be asked, as the API takes it from a planned scenario.

Holds = Callable[[Condition | None, str | None], bool]
"""Whether to ask a turn after this reply (`agents.questioner.holds`)."""


@dataclass(frozen=True)
class ScriptTurn:
    turn_id: str
    user_message: str
    """With its slots filled."""
    condition: Condition | None = None


@dataclass(frozen=True)
class AskedScript:
    scenario_id: str
    variant: str | None
    turns: tuple[ScriptTurn, ...]
    fictional: tuple[str, ...] = ()
    """Texts of the invented person: never personal."""

    @property
    def name(self) -> str:
        return scenario_name(self.scenario_id, self.variant)

    def sha256(self) -> str:
        return fingerprint([[turn.turn_id, turn.user_message] for turn in self.turns])
