"""The Flesch-Kincaid grade of an English text: years of school that a reader needs."""

from __future__ import annotations

import re

_WORD = re.compile(r"\$?\d[\d,.]*\d%?|\$?\d%?|[^\W\d_]+(?:[’'-][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"[.?!]+(?=[”\"’)]*(?:\s|$))")
_SILENT_END = re.compile(r"(?:[^aeiouyl]e|[^aeiouydt]ed|[^aeiouysxzcgh]es)$")
_TWO_SOUNDS = re.compile(r"iu|eo(?!p)|ua|ia(?!l)|io(?!n|u)|[ao]y[aei]|i[eo]t|uing|ying|eing|iest|ier")
"""Vowels side by side that are two syllables, as in premium, video, annual and employer."""


def syllables(word: str) -> int:
    """How many syllables a word has when it is read aloud, roughly. Digits and the letters of QMB count one each."""
    if any(character.isdigit() for character in word):
        return sum(character.isdigit() for character in word) + word.startswith("$") + word.endswith("%")
    if word.isupper() and len(word) > 1 and not re.search("[AEIOUY]", word[1:-1]):
        return len(word)
    small = word.casefold()
    vowels = len(re.findall(r"[aeiouyáéíóúü]+", small))
    return max(1, vowels + len(_TWO_SOUNDS.findall(small)) - bool(_SILENT_END.search(small)))


def grade(text: str) -> float:
    """0.39 times words for each sentence, plus 11.8 times syllables for each word, minus 15.59."""
    words = _WORD.findall(text)
    sentences = max(1, len(_SENTENCE_END.findall(text)))
    return 0.39 * len(words) / sentences + 11.8 * sum(map(syllables, words)) / len(words) - 15.59
