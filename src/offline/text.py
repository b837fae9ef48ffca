"""Read English for the offline judge.

`read_words` turns a sentence into folded tokens with their polarity: phrases and synonyms become one token, and a token
that a negation governs is marked. Everything is a pure function of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..text.figures import Figure, find_figures, fold
from .spanish import to_english
from .words import (
    CLAUSE_WORDS,
    CONDITIONS,
    MODIFIERS,
    NEGATIVE_WORDS,
    NEGATORS,
    NOT_NEGATIONS,
    PHRASES,
    STOPWORDS,
    SYNONYMS,
    UNCOUNTED,
)

_MARKUP = re.compile(r"\*\*|__|~~|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^[ \t]*#{1,6}[ \t]+|\[(?=[^\]]{1,200}\]\()")
SECOND = 2
_LINK_END = re.compile(r"\]\([^()\s]{1,500}\)")


@dataclass(frozen=True)
class Word:
    token: str
    negated: bool = False
    """There is a negation before it in its clause."""
    head: bool = False
    """It is the first content word after the negation: the word that is denied."""


@dataclass(frozen=True)
class Reading:
    text: str
    words: tuple[Word, ...]
    content: frozenset[str]
    """Content tokens, including programs but not figures."""
    figures: frozenset[str]
    raw: frozenset[str]
    """All plain words, including stopwords."""
    denials: int = 0
    """Negations outside conditions: `if you do not enroll` denies nothing."""


def strip_markup(quote: str) -> str:
    """A quote without Markdown marks."""
    if quote.lstrip().startswith("|") or quote.rstrip().endswith("|"):
        cells = [cell.strip() for cell in quote.strip().strip("|").split("|")]
        quote = " | ".join(cell for cell in cells if cell)
    plain = _LINK_END.sub("", _MARKUP.sub("", quote))
    return " ".join(plain.split())


_IRREGULAR = {
    "paid": "pay", "sold": "sell", "bought": "buy", "began": "begin", "begun": "begin", "lost": "lose", "went": "go",
    "chose": "choose", "chosen": "choose", "kept": "keep", "left": "leave", "got": "get", "policies": "policy",
    "taken": "take", "took": "take", "given": "give", "saw": "see", "seen": "see", "costs": "cost", "gave": "give",
}  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A light stemmer: removes plural, -ed, -ing, -ly and silent e, so that most inflections of a verb match."""
    word = _IRREGULAR.get(word, word)
    if len(word) <= 3:
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    if word.endswith("ll"):
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_CANON = {
    stem(word): group.split()[0] for group in SYNONYMS for word in group.split()
}  # each word becomes the first word of its group
_PHRASE = re.compile(
    r"\b(?:" + "|".join(re.escape(phrase) for phrase in sorted(PHRASES, key=lambda p: (-len(p), p))) + r")\b"
)
_NOT_NEGATION = re.compile(r"\b(?:" + "|".join(sorted(NOT_NEGATIONS, key=lambda p: (-len(p), p))) + r")\b")
_LEADING_NO = re.compile(r"^[^a-z]*no(?= ?[,.!:-])")
_MODAL = re.compile(r"\b(?:have|has|had) (?:got )?to\b|\b(?:is|are|be) required to\b|\bneed(?:s|ed)? to\b")
# "cannot be higher than $50" and "no plan may charge more than $50" set a limit and deny nothing.
_CEILING = re.compile(
    r"\b(?:not|no|never|nobody)\b([^.;,#]{0,60})"
    r"\b(?:above|over|more than|higher than|greater than|exceed|beyond)\b(?=[ $]{0,3}#)"
)
# A plan that pays nothing does not cover it; a person who pays nothing gets it free.
_PAYER = (
    r"\b(plans?|medicare|medigap|medicaid|part [abd]|insurers?|insurance|polic(?:y|ies)|[hp]pos?|hmos?|"
    r"programs?|qmb|slmb|qi)"
    r" (?:(?:will|would|can|may|also|generally|usually|then) )*"
)
_PAYS_NOTHING = re.compile(_PAYER + r"(?:pays?|covers?) nothing\b")
_PAYS_ALL = re.compile(_PAYER + r"(?:pays?|covers?) (?:everything|it all|all of it|the full (?:cost|bill|price))\b")
# "The open enrollment period" is Medigap's if the text is about insurers and underwriting.
_BARE_PERIOD = re.compile(r"@aep\b")
_FALL_PERIOD = re.compile(r"\b(?:annual|fall|yearly|october|december|election)\b|@ma\b|@d\b")
_OF_MEDIGAP = re.compile(r"@medigap\b|\bunderwrit|\binsurers?\b")
_GOES_AWAY = re.compile(
    r"\b(premium|deductible|coinsurance|copay)s? (?:goes away|go away|disappears?|stops|is waived|are waived|"
    r"vanishes)\b"
)
_WHAT_IS_PAID = re.compile(r"\bwhat (?:[a-z]+ ){1,3}pays? for\b")
_PERSON_PAYS = re.compile(
    r"\b(you|person|people|member|members|they|beneficiary|patients?|enrollees?) "
    r"(no longer |do not |not |never |still )?pays? for\b"
)
_APPROVED_FIRST = re.compile(r"\bapprov[a-z]*\b([^.;#]{0,40}?)\b(?:beforehand|in advance|ahead of time|first)\b")
_STOP_DOING = re.compile(r"\b(?:stop|stops|stopped|quit)\s+(?=(?!working)[a-z]+ing\b)")
_TOKEN = re.compile(r"@?[a-z]+|#[0-9]+#|[.;:!?,()|]")
_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def canonical(word: str) -> str:
    """The token of a plain word: its stem, or the first word of its group of synonyms."""
    root = stem(word)
    return _CANON.get(root, root)


@lru_cache(maxsize=8192)
def plain_lower(text: str) -> str:
    """Folded, lower case, with contractions expanded and spaces for hyphens; figures stay as they are."""
    plain = fold(text).translate(_ASCII_LOWER)
    plain = plain.replace("can't", "can not").replace("cannot", "can not").replace("won't", "will not")
    plain = plain.replace("n't", " not").replace("'s", "").replace("enrolment", "enrollment").replace("'", " ")
    return " ".join(plain.replace("-", " ").split())


@lru_cache(maxsize=8192)
def read_words(text: str) -> Reading:
    text = to_english(text)
    found = find_figures(text)
    plain = plain_lower(_mark_figures(text, found))
    plain = _NOT_NEGATION.sub(" ", _LEADING_NO.sub(" ", plain))
    plain = _CEILING.sub(r" \1 limit ", _STOP_DOING.sub(" not ", _MODAL.sub("require", plain)))
    plain = _PAYS_ALL.sub(r"\1 cover", _PAYS_NOTHING.sub(r"\1 not cover", plain))
    plain = _GOES_AWAY.sub(r"not pay \1", plain)
    plain = _WHAT_IS_PAID.sub("cost ", plain)
    plain = _PERSON_PAYS.sub(r"\1 \2 pay ", plain)
    plain = _APPROVED_FIRST.sub(r"priorauth \1", plain)
    raw = frozenset(re.findall(r"[a-z]+", plain))
    plain = _PHRASE.sub(lambda match: f" {PHRASES[match.group()]} ", plain)
    if _BARE_PERIOD.search(plain) and not _FALL_PERIOD.search(plain) and _OF_MEDIGAP.search(plain):
        plain = _BARE_PERIOD.sub("@medigap @mgoep", plain)
    words, denials = _polarized(plain, found)
    content = frozenset(word.token for word in words if not word.token.startswith("#"))
    return Reading(text, words, content, frozenset(figure.token for figure in found), raw, denials)


def _mark_figures(text: str, found: tuple[Figure, ...]) -> str:
    """Replace each figure by its index, so that its digits and units are not read as words."""
    parts, last = [], 0
    for index, figure in enumerate(found):
        if figure.start >= last:
            parts.append(f"{text[last : figure.start]} #{index}# ")
            last = figure.end
    return "".join(parts) + text[last:]


def _polarized(plain: str, found: tuple[Figure, ...]) -> tuple[tuple[Word, ...], int]:
    """The content words with their polarity, and the number of negations outside conditions."""
    words: list[Word] = []
    denials, last, subjects = 0, 0, 0
    negated = head = noun_phrase = conditional = relative = False
    for match in _TOKEN.finditer(plain):
        token = match.group()
        # "no provider networks" denies all its words; "not cover routine dental care" denies only the first.
        noun_phrase = noun_phrase and not plain[last : match.start()].strip()
        last = match.end()
        if token in CLAUSE_WORDS or token in CONDITIONS or not (token[0] in "#@" or token[0].isalpha()):
            negated = head = noun_phrase = False
            relative = token in ("who", "whose")  # "who is not on Medicaid": a condition up to its first word
            conditional = token in CONDITIONS or (conditional and token[0].isalpha())
            subjects = 0
        elif token in NEGATORS:
            negated = head = True
            noun_phrase = token in ("no", "without", "insteadof")
            denials += not conditional and token not in UNCOUNTED
        elif token in NEGATIVE_WORDS:
            words.append(Word(NEGATIVE_WORDS[token], not negated, not negated))
            denials += 0 if conditional else -1 if negated else 1
            head = noun_phrase = False
        elif token.startswith("#"):
            words.append(Word(f"#{found[int(token[1:-1])].token}", negated))
            noun_phrase = False
        elif token in STOPWORDS:
            # "If you join, you ...": a second subject ends the condition, with or without a comma.
            subjects += token in ("you", "they", "it", "he", "she")
            conditional = conditional and subjects < SECOND
            head = head and not (noun_phrase and words and words[-1].head)
            noun_phrase = False
        else:
            folded = canonical(token) if token[0] != "@" else token
            words.append(Word(folded, negated, head))
            conditional, relative = conditional and not relative, False
            head = head and (noun_phrase or folded in MODIFIERS)
    return tuple(words), denials
