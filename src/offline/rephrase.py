"""A seeded rewording of a beneficiary's questions that keeps their content.

Only the style changes: a polite opening or closing, contractions, a few interchangeable phrases. Figures, names and
Medicare terms stay the same, and nothing is added that could hint at an answer.
"""

from __future__ import annotations

import hashlib
import re

from ..records.contracts import PlannedTurn, QuestionerOutput

_OPENERS = ("", "", "Hello. ", "Hi there. ", "Thanks for your help. ", "Good morning. ", "I have a question. ")
_CLOSERS = ("", "", "", " Thank you.", " Thanks.", " I'd appreciate your help.")
_CONTRACTIONS: tuple[tuple[str, str], ...] = (
    ("What is", "What's"), ("what is", "what's"), ("I am", "I'm"), ("I have been", "I've been"), ("I would", "I'd"),
    ("do not", "don't"), ("does not", "doesn't"), ("is not", "isn't"), ("are not", "aren't"), ("cannot", "can't"),
    ("will not", "won't"), ("That is", "That's"), ("that is", "that's"), ("it is", "it's"), ("It is", "It's"),
)  # fmt: skip
_SWAPS: tuple[tuple[str, str], ...] = (
    ("Could you tell me", "Can you tell me"), ("I'd like to know", "I want to know"), ("trying to", "looking to"),
    ("I'm not sure", "I'm unsure"), ("Also,", "And"), ("Could you explain", "Can you explain"),
)  # fmt: skip


def rephrase(turns: tuple[PlannedTurn, ...], seed: int) -> QuestionerOutput:
    """The same turns in other words. The same seed gives the same words."""
    return QuestionerOutput(
        turns=tuple(
            PlannedTurn(turn_id=turn.turn_id, user_message=_reword(turn.user_message, f"{seed}|{at}|{turn.turn_id}"))
            for at, turn in enumerate(turns)
        )
    )


def _draw(key: str, what: str, count: int) -> int:
    """A choice that depends only on the seed and its use, not on Python's hash."""
    return int.from_bytes(hashlib.sha256(f"{key}|{what}".encode("utf-8", "surrogatepass")).digest()[:8], "big") % count


def _reword(message: str, key: str) -> str:
    text = message.replace("’", "'")
    expand = bool(_draw(key, "contractions", 2))
    for full, short in _CONTRACTIONS:
        old, new = (short, full) if expand else (full, short)
        text = re.sub(rf"\b{re.escape(old)}\b(?!')", new, text)
    for number, pair in enumerate(_SWAPS):
        if _draw(key, f"swap{number}", 2):
            text = re.sub(rf"\b{re.escape(pair[0])}(?!\w)", pair[1], text)
    opener = _OPENERS[_draw(key, "opener", len(_OPENERS))]
    closer = _CLOSERS[_draw(key, "closer", len(_CLOSERS))]
    greeted = re.match(r"\s*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks)\b", text, re.IGNORECASE)
    opener = "" if greeted else opener
    closer = "" if re.search(r"\bthank", text, re.IGNORECASE) or "Thanks" in opener or "{{" in text[-3:] else closer
    reworded = f"{opener}{text}{closer}"
    return reworded if len(reworded) <= 20_000 else message
