"""Marks passages of a reply that are to be judged apart from the rest of it. It decides nothing by itself.

An answer about Medicare talks about Medicare and the person. Text that steers a judge talks about the text itself and
how it is to be taken. A sentence is marked for its words by a sum of weights: of the words, of the classes that they
belong to, and of pairs of classes. The weights are fitted to attacks and to innocent replies by a logistic regression
(`python -m tests.fit_screen`). Machine text and characters that no reader sees are found by their form. Patterns are
bounded, so the time is linear.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations
from operator import or_
from pathlib import Path

from ..schemas import AdjudicatorReply, ExtractorReply, ScorerReply, VerifierOutput
from .sentences import sentences

MARKED_FROM = 115
"""The sum of weights from which a sentence is marked, in hundredths of a logit."""
REACH = 3
"""How many words away from a part of a text a word may stand that points at it."""
_WORDS = Path(__file__).with_name("screen_words.json")
_CLASSES: dict[str, list[str]] = json.loads(_WORDS.read_text(encoding="utf-8"))
"""The words of each class, without accents. A star: the usual English endings too. Two classes have no words: a part or
a unit of a text beside a word that points at it."""
WEIGHTS = Path(__file__).with_name("screen_weights.json")
_WEIGHTS: dict[str, int] = json.loads(WEIGHTS.read_text(encoding="utf-8"))
_ALWAYS = "always"
_MADE = {
    "id": [f"{kind}{number}" for kind in "cdf" for number in range(1, 30)],
    "subject": [str(year) for year in range(2000, 2100)],
}
"""More words of two classes: the ids of a key, and years."""
_BIT = {name: 1 << place for place, name in enumerate(_CLASSES)}
_USUAL = (
    r"\t\n\r -~\u00a0-\u00ac\u00ae-\u02af\u2010-\u2027\u202f-\u205f\u2070-\u24b5\u24ea-\u27ff\u2900-\u2bff"
    r"\U0001f000-\U0001f12f\U0001f18e-\U0001f1ad\U0001f200-\U0001faff"
)
_JOINING = r"\u00ad\u200c\u200d\ufe00-\ufe0f"
_OTHER = r"\u0370-\u03bb\u03bd-\u0482\u048a-\u06ff\u13a0-\u13ff\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af"
_MAYBE = rf"{_OTHER}{_JOINING}\u1e00-\u1eff\u0300-\u0333\u0339-\u036f\u03bc\ufeff\uff01-\uff20\U0001f1e6-\U0001f1ff"
_NAMES = "|".join(
    (
        "canary",
        "claim_id",
        *chain(*(one.model_fields for one in (ExtractorReply, VerifierOutput, ScorerReply, AdjudicatorReply))),
    )
)
"""Names of fields in the answers of judges."""
_FORMS = {
    "hidden characters": rf"[^{_USUAL}](?:(?<=[^{_MAYBE}])|(?<=[A-Za-z][{_JOINING}])[A-Za-z ]|[\u0300-\u036f]|"
    rf"(?<=[A-Za-z][{_OTHER}])|(?<=[{_OTHER}])(?:[A-Za-z]|(?:[{_OTHER} ]|,(?! )){{7}})|[\U0001f1e6-\U0001f1ff]{{4}})",
    "machine text": r"[<\[\]‹«《%&\\](?:(?<=<)(?:[<|?]|!--|(?i:script|style|meta|iframe|object|template)\b|"
    r"[A-Za-z]{1,20} [^<>]{0,200}?\b(?:style|hidden|class|id)\b)|(?<=])]>|(?<=[‹«《]) ?/|(?<=\[)(?:/?INST|//)]|"
    r"(?<=\\)[ux][0-9a-f]{2,4}|(?<=%)[0-9a-fA-F]{2}(?:%[0-9a-fA-F]{2}){3}|(?<=&)#\w{2,5};&#)",
    "an answer in a judge's form": rf"[\"'“”‘’](?:{_NAMES})[\"'“”‘’] ?:",
    "another speaker": r"(?m)^[>#*_ ]{0,9}(?i:system|assistant|human|user|operator|developer)\b[*_ ]{0,3}(?=[:\n])",
    "a code": r"[01.-](?:(?<=[01])[01]{7} [01]{8}|(?<=[.-])[.-]{1,4} [.-]{1,5} [.-]{1,5} [.-])",
}
"""A pattern begins with a set of characters, so that its search leaps to the next of them."""
_PATTERNS = {why: re.compile(pattern) for why, pattern in _FORMS.items()}
_SPELLED = re.compile(r"(?<![a-z])[a-z](?:[-._* ]{1,3}[a-z]){4}(?![a-z])")
_ENDS = r"\.(?:com|edu|gov|net|org|us)\b\S*"
_ADDRESS = re.compile(rf"(?:https?://|www\.)\S+|\b[\w-]{{1,60}}(?:\.[\w-]{{1,60}}){{0,4}}{_ENDS}", re.IGNORECASE)
_LETTERS = re.compile(r"(?<![\w&#%\\'’])[^\W\d_]{2,}(?!\w)")
_VOCABULARY = frozenset(Path(__file__).with_name("known_words.txt").read_text(encoding="utf-8").split())
"""Words of our facts, questions and documents: enough to tell English from what is not English."""
FEWEST_WORDS = 5
LEAST_KNOWN = 1 / 3
MOST_UNKNOWN = 1 / 5
"""Share of the sentences of a reply."""
_WORD, _LONG, _TURN = re.compile(r"\w+"), re.compile(r"\w{12,}"), re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]")


@dataclass(frozen=True)
class Marked:
    """A sentence or block of the reply as written, `reply[start:end]`, and why it is marked."""

    start: int
    end: int
    why: str


def _forms(entry: str) -> set[str]:
    """A word, with a star also its usual endings; a form that English does not have does no harm."""
    word = entry.rstrip("*")
    stem, ie = word.removesuffix("e"), word.removesuffix("y") + "ie"
    return {word} if word == entry else {word, word + "s", word + "es", ie + "s", ie + "d", stem + "ed", stem + "ing"}


_KNOWN: dict[str, int] = {}
for _name, _class in _CLASSES.items():
    for _form in (form for entry in [*" ".join(_class).split(), *_MADE.get(_name, ())] for form in _forms(entry)):
        _KNOWN[_form] = _KNOWN.get(_form, 0) | _BIT[_name]


def marked_passages(reply: str) -> tuple[Marked, ...]:
    """Passages to be judged apart, in order, not overlapping. A mark says nothing about who wrote the reply."""
    odd = sorted(((m.end() - 1, why) for why, p in _PATTERNS.items() for m in p.finditer(reply)), reverse=True)
    # The line of a code fence counts as text, and odd line ends as spaces; every character keeps its place.
    read = reply.replace("```", "   ").replace("~~~", "   ").replace("\u2028", " ").replace("\u2029", " ")
    found = list[Marked]()
    spans = sentences(read)
    texts = [reply[span.start : span.end] for span in spans]
    unknown = {place for place, text in enumerate(texts) if _is_in_no_known_language(text)}
    if len(unknown) > MOST_UNKNOWN * len(texts):
        unknown = set()  # the answer is in another language: that hides nothing
    for place, span in enumerate(spans):
        why = "hardly a word of English or Spanish" if place in unknown else _why(texts[place])
        while odd and odd[-1][0] < span.end:
            at, what = odd.pop()
            why = what if at >= span.start else why
        if why and found and found[-1].why == why and not any(map(str.isalnum, reply[found[-1].end : span.start])):
            found[-1] = Marked(found[-1].start, span.end, why)
        elif why:
            found.append(Marked(span.start, span.end, why))
    return tuple(found)


def _without_accents(text: str) -> str:
    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text.lower()))


def _is_in_no_known_language(piece: str) -> bool:
    """Whether most words of a sentence are in no text of ours. Names, abbreviations and addresses do not count."""
    found = [
        word
        for place, word in enumerate(_LETTERS.findall(_ADDRESS.sub(" ", piece)))
        if not (word.isupper() or (place and word[0].isupper()))
    ]
    known = sum(one in _VOCABULARY or one in _KNOWN for one in map(_without_accents, found))
    return len(found) >= FEWEST_WORDS and known < LEAST_KNOWN * len(found)


def _why(piece: str) -> str:
    """Why a sentence is marked for its words, or nothing."""
    piece = _ADDRESS.sub(" ", piece)
    words = _WORD.findall(plain := _without_accents(piece))
    spelled = sum(map(len, words)) < 2 * len(words) and _SPELLED.search(plain)
    if spelled or any(len(_TURN.findall(long)) > 1 for long in _LONG.findall(piece)):
        return "a code"
    return (
        "says how the text is to be taken"
        if sum(_WEIGHTS.get(one, 0) for one in _features(words)) >= MARKED_FROM
        else ""
    )


def features(sentence: str) -> set[str]:
    """What the weights of a sentence are of."""
    return _features(_WORD.findall(_without_accents(_ADDRESS.sub(" ", sentence))))


def _features(words: list[str]) -> set[str]:
    bits = [_KNOWN.get(word, 0) for word in words]
    used = reduce(or_, bits, 0)
    for place in (place for place, bit in enumerate(bits) if bit & (_BIT["part"] | _BIT["unit"])):
        if any(near & _BIT["pointing"] for near in bits[max(0, place - REACH) : place + REACH]):
            used |= _BIT["this part" if bits[place] & _BIT["part"] else "this unit"]
    classes = [f"{name}:" for name, bit in _BIT.items() if used & bit and name != "little"]
    pairs = (one + other for one, other in combinations(classes, 2))
    return {_ALWAYS, *classes, *pairs, *map(_stem, words)}


def _stem(word: str) -> str:
    if word.isdigit():
        return "0"
    ending = next((one for one in ("ing", "ed", "es", "s") if word.endswith(one) and len(word) > len(one) + 3), "")
    return word.removesuffix(ending)
