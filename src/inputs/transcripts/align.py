"""Which of the caller's words are which scripted question, and what the other side said to each.

The questions are asked in the order of the script, so a monotone alignment by shared words finds them. Rare words count
more than words that every question has. A caller may also say things that are no scripted question, may leave questions
out, and may be interrupted in the middle of one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ...errors import InputError
from ...text.figures import figures
from ...text.overlap import words
from .utterances import NO_SPEAKER, ScriptTurn, Utterance, as_one, joined, speakers

ENOUGH = 0.34
"""Similarity from which on an utterance can be a scripted question."""
SURE = 0.6
_MOST_PARTS = 3
"""Utterances of the caller that one question can be spread over."""
_FEW_WORDS = 12
"""The other side's words between two parts of one question."""
_PART_COST = 0.04
_MOST_CALLS = 4_000


@dataclass(frozen=True)
class Match:
    """A scripted turn, and which of the caller's utterances ask it."""

    turn_id: str
    calls: tuple[int, ...]
    """Numbers of the caller's utterances, from 1; empty: not asked."""
    similarity: float
    asked_with: str | None = None
    """The turn whose utterance asks this one too, or whose reply answers it."""


@dataclass(frozen=True)
class Alignment:
    caller: str
    recognized: bool
    """Whether the caller was recognized by the scripted questions, not named by a person."""
    utterances: tuple[Utterance, ...]
    calls: tuple[int, ...]
    """Indices of the caller's utterances."""
    matches: tuple[Match, ...]
    """One per scripted turn, in the order of the script."""


def align(
    utterances: Sequence[Utterance],
    turns: Sequence[ScriptTurn],
    *,
    caller: str | None = None,
    where: str = "the conversation",
) -> Alignment:
    """Align a conversation with a script.

    Args:
        utterances: what was said, in order; neighbors of one speaker should be joined, unless they are messages.
        turns: the scripted turns, with their slots filled.
        caller: the label of the one who asks; None: whose words match the scripted questions best.
        where: the file, for errors.

    Raises:
        InputError: there is no such speaker, or it cannot be recognized who asks.
    """
    said = list(utterances)
    if caller is None and speakers(said) == [NO_SPEAKER]:
        said, caller = joined(_split_by_script(utterances, turns, where)), "caller (by the script)"
        recognized = True
    else:
        recognized = caller is None
        caller = _caller(said, turns, caller, where)
    calls = tuple(index for index, one in enumerate(said) if one.speaker == caller)
    matches = _matches(said, calls, turns)
    return Alignment(caller, recognized, tuple(said), calls, tuple(matches))


def _caller(said: Sequence[Utterance], turns: Sequence[ScriptTurn], given: str | None, where: str) -> str:
    labels = speakers(said)
    shown = ", ".join(repr(label[:40]) for label in labels[:8])
    if given is not None:
        found = next((label for label in labels if label.lower() == given.strip().lower()), None)
        if found is None:
            raise InputError(f"{where}: there is no speaker {given[:40]!r}. --caller is one of {shown}.")
        return found
    if len(labels) < 2:
        raise InputError(f"{where}: only one speaker ({shown}) was found. Check the labels, or --format.")
    scores = {}
    for label in labels:
        calls = tuple(index for index, one in enumerate(said) if one.speaker == label)
        scores[label] = sum(match.similarity for match in _matches(said, calls, turns) if match.calls)
    best = max(labels, key=lambda label: scores[label])
    if not scores[best]:
        raise InputError(
            f"{where}: nobody asks the scripted questions, so the caller is not known. Check --scenario, or name the "
            f"caller: --caller LABEL, one of {shown}."
        )
    return best


class _Similarity:
    """How much of a scripted question a text says. Words that few questions have weigh more."""

    def __init__(self, turns: Sequence[ScriptTurn]) -> None:
        self._turns = [_tokens(turn.user_message) for turn in turns]
        counts = Counter(token for turn in self._turns for token in turn)
        self._weights = {token: math.log(1 + len(turns) / count) for token, count in counts.items()}
        self._totals = [self._weight(turn) for turn in self._turns]
        self._common = math.log(2)

    def _weight(self, tokens: frozenset[str]) -> float:
        return sum(self._weights[token] for token in tokens if token in self._weights)

    def of(self, tokens: frozenset[str], turn: int) -> float:
        shared = self._weight(tokens & self._turns[turn])
        if not shared or not self._totals[turn]:
            return 0.0
        recall = shared / self._totals[turn]
        size = self._weight(tokens) + self._common * 0.5 * len(tokens - self._weights.keys())
        precision = min(1.0, shared / size) if size else 0.0
        return 0.75 * recall + 0.25 * precision


def _tokens(text: str) -> frozenset[str]:
    plain = re.sub(r"[’‘]", "'", text)
    return words(plain) | {f"={figure.removeprefix('n')}" for figure in figures(plain)}


def _matches(said: Sequence[Utterance], calls: Sequence[int], turns: Sequence[ScriptTurn]) -> list[Match]:
    """Dynamic programming over the caller's utterances and the turns; ties go to the earlier utterance."""
    if len(calls) > _MOST_CALLS:
        raise InputError(f"The caller speaks {len(calls):,} times; the limit is {_MOST_CALLS:,}. Split the file.")
    similar = _Similarity(turns)
    tokens = [_tokens(said[index].text) for index in calls]
    gaps = [
        sum(len(said[index].text.split()) for index in range(before + 1, after)) for before, after in pairwise(calls)
    ]
    best = [[0.0] * (len(turns) + 1) for _ in range(len(calls) + 1)]
    step: list[list[int]] = [[0] * (len(turns) + 1) for _ in range(len(calls) + 1)]
    for at in range(len(calls) - 1, -1, -1):
        for turn in range(len(turns) - 1, -1, -1):
            score, choice = best[at][turn + 1], -1  # the turn is not asked
            together: frozenset[str] = frozenset()
            for parts in range(1, min(_MOST_PARTS, len(calls) - at) + 1):
                if parts > 1 and gaps[at + parts - 2] > _FEW_WORDS:
                    break
                together |= tokens[at + parts - 1]
                value = similar.of(together, turn) - _PART_COST * (parts - 1)
                if value >= ENOUGH and value + best[at + parts][turn + 1] > score + 1e-9:
                    score, choice = value + best[at + parts][turn + 1], parts
            if best[at + 1][turn] > score + 1e-9:
                score, choice = best[at + 1][turn], 0  # these words are no scripted question
            best[at][turn], step[at][turn] = score, choice
    found = _walk(step, len(calls), turns)
    return _asked_together(_earliest(found, tokens, similar), tokens, similar, turns)


def _walk(step: Sequence[Sequence[int]], size: int, turns: Sequence[ScriptTurn]) -> list[tuple[int, int]]:
    """Per turn: the first utterance (from 0) and how many; (-1, 0) if it is not asked."""
    found, at, turn = [], 0, 0
    while turn < len(turns):
        choice = step[at][turn] if at < size else -1
        if choice == 0:
            at += 1
            continue
        found.append((at, choice) if choice > 0 else (-1, 0))
        at, turn = at + max(choice, 0), turn + 1
    return found


def _earliest(
    found: Sequence[tuple[int, int]], tokens: Sequence[frozenset[str]], similar: _Similarity
) -> list[tuple[int, int, float]]:
    """A question that is repeated counts from the first time it is asked in almost the same words."""
    moved, free = [], 0
    for turn, (at, parts) in enumerate(found):
        if not parts:
            moved.append((-1, 0, 0.0))
            continue
        value = similar.of(frozenset().union(*tokens[at : at + parts]), turn)
        values = {earlier: similar.of(tokens[earlier], turn) for earlier in range(free, at)}
        first = next((earlier for earlier, other in values.items() if other >= max(SURE, 0.85 * value)), None)
        moved.append((at, parts, value) if first is None else (first, 1, values[first]))
        free = moved[-1][0] + moved[-1][1]
    return moved


def _asked_together(
    found: Sequence[tuple[int, int, float]],
    tokens: Sequence[frozenset[str]],
    similar: _Similarity,
    turns: Sequence[ScriptTurn],
) -> list[Match]:
    """Matches; a turn without an utterance of its own may be asked in that of a neighbor."""
    matches = []
    for turn, (at, parts, value) in enumerate(found):
        if parts:
            calls = tuple(range(at + 1, at + parts + 1))
            matches.append(Match(turns[turn].turn_id, calls, value))
            continue
        with_turn, most = None, 0.0
        for other in (turn - 1, turn + 1):
            if 0 <= other < len(found) and found[other][1]:
                start, count, _ = found[other]
                here = similar.of(frozenset().union(*tokens[start : start + count]), turn)
                if here >= SURE and here > most:
                    with_turn, most = turns[other].turn_id, here
        matches.append(Match(turns[turn].turn_id, (), most, with_turn))
    return matches


_SENTENCE = re.compile(r"[^.?!\n]+[.?!]*\s*")


def _split_by_script(utterances: Sequence[Utterance], turns: Sequence[ScriptTurn], where: str) -> list[Utterance]:
    """A file without speakers: sentences in a row that say a scripted question are the caller's, the rest is not."""
    pieces = [
        Utterance(NO_SPEAKER, match[0].strip(), one.start_s, one.end_s, one.confidence)
        for one in utterances
        for match in _SENTENCE.finditer(one.text)
        if match[0].strip()
    ]
    if len(pieces) > _MOST_CALLS:
        raise InputError(f"{where} has no speakers and more than {_MOST_CALLS:,} sentences. Use a file with speakers.")
    similar = _Similarity(turns)
    tokens = [_tokens(piece.text) for piece in pieces]
    asked, at = set[int](), 0
    for turn in range(len(turns)):
        best, place, size = 0.0, -1, 0
        for start in range(at, len(pieces)):
            for width in range(1, 7):
                if start + width > len(pieces):
                    break
                value = similar.of(frozenset().union(*tokens[start : start + width]), turn) - 0.02 * width
                if value > best + 1e-9:
                    best, place, size = value, start, width
        if best >= 0.5:
            asked.update(range(place, place + size))
            at = place + size
    if not asked:
        raise InputError(f"{where} names no speakers, and none of its words are the scripted questions. Add labels.")
    marked = [("caller (by the script)" if index in asked else "other", piece) for index, piece in enumerate(pieces)]
    return [
        as_one([Utterance(label, piece.text, piece.start_s, piece.end_s, piece.confidence) for _, piece in group])
        for label, group in groupby(marked, key=lambda one: one[0])
    ]


@dataclass(frozen=True)
class Correction:
    """What a person says about one turn."""

    call: int | None = None
    """The caller's utterance that asks it; None: it was not asked."""
    early: str | None = None
    """The turn whose reply answers it."""


def read_map(text: str) -> dict[str, Correction]:
    """`Q2=7,Q3=none,Q4=early:Q2` -> what each turn is.

    Raises:
        InputError: a part has another form.
    """
    found: dict[str, Correction] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        turn, _, value = (piece.strip() for piece in part.partition("="))
        kind, _, early = value.partition(":")
        if turn in found:
            raise InputError(f"--map names {turn} twice.")
        if value.isascii() and value.isdigit() and len(value) < 7 and int(value):
            found[turn] = Correction(int(value))
        elif value.lower() == "none":
            found[turn] = Correction()
        elif kind.lower() == "early" and early:
            found[turn] = Correction(None, early.strip())
        else:
            raise InputError(
                f"--map {part[:60]!r}: write TURN=NUMBER, TURN=none or TURN=early:TURN, as in Q2=7,Q3=none."
            )
    return found


def corrected(alignment: Alignment, corrections: Mapping[str, Correction]) -> Alignment:
    """The alignment with a person's corrections.

    Raises:
        InputError: there is no such turn or utterance, or two turns have the same utterance.
    """
    known = [match.turn_id for match in alignment.matches]
    for turn, one in corrections.items():
        for name in filter(None, (turn, one.early)):
            if name not in known:
                raise InputError(f"--map: the scenario has no turn {name[:40]!r}. Its turns are {', '.join(known)}.")
        if one.call is not None and one.call > len(alignment.calls):
            raise InputError(f"--map {turn}={one.call}: the caller speaks only {len(alignment.calls)} times.")
        if one.early == turn:
            raise InputError(f"--map {turn}=early:{turn}: name another turn, whose reply answers it.")
    taken = {one.call for one in corrections.values() if one.call}
    matches = []
    for match in alignment.matches:
        said = corrections.get(match.turn_id)
        calls: tuple[int, ...]
        if said:
            calls = (said.call,) if said.call else ()
            matches.append(Match(match.turn_id, calls, match.similarity if calls == match.calls else 0.0, said.early))
        else:
            calls = tuple(call for call in match.calls if call not in taken)
            matches.append(match if calls == match.calls else Match(match.turn_id, calls, match.similarity))
    used = [call for match in matches for call in match.calls]
    for call in used:
        if used.count(call) > 1:
            both = [match.turn_id for match in matches if call in match.calls]
            raise InputError(f"--map: {' and '.join(both)} have the same words {call}. Use {both[1]}=early:{both[0]}.")
    return Alignment(alignment.caller, alignment.recognized, alignment.utterances, alignment.calls, tuple(matches))
