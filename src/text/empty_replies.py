"""Replies that no judge needs to read: without a letter or digit, a stock refusal, or a few words without a fact."""

from __future__ import annotations

import re

from .coverage import factual_sentences, names_a_program
from .figures import figures

_BOILERPLATE = re.compile(
    r"\bas an ai\b|\bi(?:['’]m| am) (?:sorry(?! to hear)|unable|not able|afraid|not allowed|"
    r"not in a position)\b|"
    r"\bi (?:can(?:no|['’])t|cannot|won['’]t|will not|do not|don['’]t) (?:help|assist|provide|"
    r"answer|discuss|comment|advise|"
    r"offer|give|respond|do that)\b|\bno (?:puedo|podemos) ayudar",
    re.IGNORECASE,
)
_ANSWERS = re.compile(r"\b(?:yes|no|nothing|free|ask|call|must|need|have to|never|always)\b", re.IGNORECASE)
"""Words that make even a short reply an answer."""
SHORT = 3
"""A reply of at most this many words needs no judge if it answers nothing; four words can be a false statement."""
BOILERPLATE_LENGTH = 40
STOCK_REFUSAL = "a stock refusal"
STOCK_QUOTE = 1_000
"""How many characters of a stock refusal are kept as its quote."""


def has_content(text: str) -> bool:
    """Whether there is any letter or digit."""
    return any(char.isalnum() for char in text)


def says_nothing(reply: str) -> str | None:
    """Why a reply needs no judge (a stock refusal, or a few words without a fact); None if a judge must read it."""
    if factual_sentences(reply):
        return None
    words = len(reply.split())
    if words <= BOILERPLATE_LENGTH and _BOILERPLATE.search(reply):
        return STOCK_REFUSAL
    answers = names_a_program(reply) or figures(reply) or _ANSWERS.search(reply)
    return "a few words without a fact" if words <= SHORT and not answers else None
