"""Whose address it is, by the host name alone.

Official names are matched label by label from the right, never as a part of a text. A name is disguised if it is not
official but made to look so. Three signs are enough: it spells a government ending before its own ending
(medicare.gov.example.com, medicare-gov.com), it uses characters that look like others (medlcare.gov, Cyrillic letters),
or it hides characters. A private site under its own ending, such as medicare.com or medicareinteractive.org, claims no
government ending: it is not official, and not disguised.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import get_args

from ...records.citation import OFFICIAL, HostClass
from ...text.patterns import STATES, load_words

WORDS = load_words(Path(__file__).with_name("words.toml"))
"""The lists of this package."""
_NAMED: dict[tuple[str, ...], HostClass] = {
    tuple(name.split(".")): kind for kind in get_args(HostClass) for name in WORDS.get(kind, ())
}
_STATE_CODES = frozenset(name for name in STATES if len(name) == 2)
_STATE_NAMES = frozenset(name.replace(" ", "") for name in STATES if len(name) > 2) | {"mass", "wyo"}
_STATE_OFFICES = WORDS["state_offices"]
_FEDERAL_CODES = frozenset({"va"})
"""Codes of a state under .gov that are a federal agency: va.gov is Veterans Affairs, Virginia is virginia.gov."""
_GOVERNMENT = frozenset({"gov", "mil"})
"""Endings that only governments get."""
IMITATED = ("medicare", "medicaid", "healthcare", "socialsecurity", "shiphelp", "cms", "ssa", "hhs")
"""Names that an answer about Medicare rests on."""
_LONG = 7
"""Letters from which on a name that differs in one is an imitation; three letters apart by one are other agencies."""
_RESERVED = WORDS["reserved"]
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ENDING = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{2,59}")
_DOTS = re.compile("[\u3002\uff0e\uff61]")
_ALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_ALIKE = str.maketrans("01i|!3456789q", "olllleasgtbgg")
_LOOKS_LIKE = str.maketrans({pair[0]: pair[1] for pair in WORDS["looks_like"]})
_ALPHABETS = WORDS["alphabets"]
UNKNOWN = "?"
"""Takes the place of a character that looks like no known letter; it matches any one letter."""


@dataclass(frozen=True)
class HostName:
    """What a host name is."""

    host_class: HostClass
    why: str


def classify_host(written: str) -> HostName:
    """The class of a host name, without port and user name.

    Example:
        >>> classify_host("www.medicare.gov").host_class
        'medicare'
        >>> classify_host("medicare.gov.plans-help.com").host_class
        'disguised'
        >>> classify_host("medicare.com").host_class
        'other'
    """
    name = written.lower().removesuffix(".")
    hidden = next((one for one in name if unicodedata.category(one) in ("Cf", "Mn", "Me", "Zs")), None)
    if hidden:
        return HostName("disguised", f"The host name hides the character U+{ord(hidden):04X}.")
    if not name or any(unicodedata.category(one).startswith("C") for one in name):
        return HostName("malformed", "The address has no host name that a browser could open.")
    if not name.isascii() or "xn--" in name:
        return _other_script(name)
    return _ascii(name)


def _ascii(name: str) -> HostName:
    labels = name.split(".")
    if _is_number(labels):
        return _numeric(name)
    imitation = _imitates(labels) if len(labels) > 1 and all(map(_LABEL.fullmatch, labels)) else ""
    if imitation:
        return HostName("disguised", imitation)
    wrong = _syntax(name, labels)
    if wrong:
        return HostName("malformed", wrong)
    found = _official(labels)
    if found:
        return HostName(found, f"{'.'.join(labels[-2:])} is an official name.")
    return HostName("other", f"{name[:100]} is not an official site.")


def _syntax(name: str, labels: Sequence[str]) -> str:
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        return "The host name has characters or parts that no host name can have."
    if len(labels) < 2 or (len(labels) == 2 and labels[0] == "www") or not _ENDING.fullmatch(labels[-1]):
        return "The host name has no ending such as .gov or .com."
    return f".{labels[-1]} is not an ending on the public web." if labels[-1] in _RESERVED else ""


def _is_number(labels: Sequence[str]) -> bool:
    """Whether a browser would read the name as an IP address: its last part is a number."""
    return bool(re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]))


def _numeric(name: str) -> HostName:
    try:
        IPv4Address(name)
    except AddressValueError:
        return HostName("malformed", "The host is neither a name nor a valid IP address.")
    return HostName("other", "The host is an IP address, which names no agency.")


def _official(labels: Sequence[str]) -> HostClass | None:
    """The class by the labels at the end; None if they are nobody's."""
    for suffix, found in _NAMED.items():
        if tuple(labels[-len(suffix) :]) == suffix:
            return found
    if labels[-1] in _GOVERNMENT:
        owner = labels[-2]
        return "state_agency" if labels[-1] == "gov" and _is_state(owner) else "other_federal"
    if labels[-1] == "us" and len(labels) >= 3 and labels[-2] in _STATE_CODES and labels[-3] == "state":
        return "state_agency"
    return None


def _is_state(owner: str) -> bool:
    if owner in _FEDERAL_CODES:
        return False
    if owner in _STATE_CODES or owner in _STATE_NAMES:
        return True
    return any(owner.removeprefix(name) in _STATE_OFFICES for name in _STATE_NAMES if owner.startswith(name))


def looks_like_gov(ending: str) -> bool:
    """Whether the last part of a name is .gov, or is spelled to look like it."""
    return _same(_skeleton(_folded(ending)), "gov")


def _imitates(labels: Sequence[str]) -> str:
    """Why a name is made to look official though it is not; empty if it is not."""
    if _official(labels) and labels[-1] not in _GOVERNMENT:
        return ""
    return _ending_in_the_middle(labels) or _ending_in_a_word(labels) or _look_alike(labels)


def _ending_in_the_middle(labels: Sequence[str]) -> str:
    """medicare.gov.plans-help.com: an official ending that is not at the end."""
    owner = ".".join(labels[-2:])
    if labels[-1] in _GOVERNMENT:
        return ""
    abroad = len(labels[-1]) == 2 and labels[-1] not in ("us",)  # gov.uk and gov.au are other governments
    for place, label in enumerate(labels[1:-1], 1):
        if label not in _GOVERNMENT and _skeleton(label) != "gov":
            continue
        if place == len(labels) - 2 and abroad and not any(map(_is_imitated, _words(labels[:place]))):
            continue
        before = ".".join(labels[max(0, place - 1) : place + 1])
        return f"It shows {before[:80]}, but belongs to {owner[:80]}."
    if labels[0] == "gov" and any(map(_is_imitated, _words(labels[1:]))):
        return f"It shows gov, but belongs to {owner[:80]}."
    for place in range(len(labels) - 2):
        ship = tuple(labels[place : place + 2]) == ("shiphelp", "org")
        state = labels[place] == "state" and labels[place + 1] in _STATE_CODES and "us" in labels[place + 2 : -1]
        if ship or state:
            return f"It shows an official name, but belongs to {owner[:80]}."
    return ""


def _ending_in_a_word(labels: Sequence[str]) -> str:
    """medicare-gov.com, cms.gov-login.com, medicaregov.org: a government ending as a part of another name."""
    if labels[-1] in _GOVERNMENT:
        return ""
    rests_on = any(map(_is_imitated, _words(labels[:-1])))
    for label in labels[:-1]:
        parts = [_skeleton(part) for part in label.split("-")]
        whole = len(parts) > 1 and "gov" in parts
        if whole or any(_is_joined(part) or (rests_on and re.search("^gov(?!ern)|.gov$", part)) for part in parts):
            return f"{label[:80]} imitates a .gov name, but the address ends in .{labels[-1][:20]}."
    return ""


def _is_joined(part: str) -> bool:
    """medicaregov, govssa, mymedicaregov; short names only if there is nothing else in the word."""
    bare = part.removeprefix("www")
    for name in map(_skeleton, IMITATED):
        forms = (f"{name}gov", f"gov{name}")
        if bare in forms or (len(name) >= _LONG and any(form in bare for form in forms)):
            return True
    return False


def _look_alike(labels: Sequence[str]) -> str:
    """medlcare.gov, medicare.g0v, rnedicare-plans.com: characters that look like others, or one letter off."""
    ending, owner = labels[-1], labels[-2] if len(labels) > 1 else ""
    if ending != "gov" and _skeleton(ending) == "gov":
        return f".{ending[:20]} imitates .gov."
    if (
        ending != "gov"
        and len(ending) <= 4
        and _distance_one(ending, "gov")
        and any(map(_is_imitated, _words([owner])))
    ):
        return f"{owner[:80]}.{ending} imitates {owner[:80]}.gov."
    glued = owner.removeprefix("www").strip("-")
    if ending == "gov" and glued != owner and glued in IMITATED:
        return f"{owner[:80]}.gov imitates {glued}.gov."
    for name in IMITATED:
        short = len(name) < _LONG
        if ending == "gov" and owner != name and owner not in IMITATED and _is_near(owner, name, exact=short):
            return f"{owner[:80]}.gov imitates {name}.gov."
        if ending in _GOVERNMENT or short:
            continue
        for word in _words(labels[:-1]):
            if word != name and _same(_skeleton(word), _skeleton(name)):
                return f"{word[:80]} imitates the name {name}."
    return ""


def _words(labels: Sequence[str]) -> Iterator[str]:
    for label in labels:
        yield from label.split("-")


def _is_imitated(word: str) -> bool:
    return any(_same(_skeleton(word), _skeleton(name)) for name in IMITATED)


def _is_near(word: str, name: str, *, exact: bool) -> bool:
    return _same(_skeleton(word), _skeleton(name)) or (not exact and _distance_one(word, name))


def _same(one: str, other: str) -> bool:
    """Equal, where an unknown character is equal to any; at least half of the letters must be known."""
    if UNKNOWN not in one:
        return one == other
    known = sum(letter != UNKNOWN for letter in one)
    return (
        len(one) == len(other)
        and known * 2 >= len(other)
        and all(a in (b, UNKNOWN) for a, b in zip(one, other, strict=True))
    )


def _skeleton(word: str) -> str:
    """A word with one character for all that look alike."""
    for pair, single in _ALIKE_PAIRS:
        word = word.replace(pair, single)
    return word.translate(_ALIKE)


def _distance_one(one: str, other: str) -> bool:
    """Whether one change makes a word of another: a letter replaced, left out or added, or two swapped."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[2:] == b[2:] and a[:2] == b[:2][::-1])


def _other_script(name: str) -> HostName:
    """A name with characters beyond ASCII, or with labels in their ASCII form (xn--)."""
    labels = []
    for label in _DOTS.sub(".", name).split("."):
        try:
            labels.append(label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label)
        except UnicodeError:
            return HostName("malformed", "A part of the host name begins with xn-- but is no encoded name.")
    if not all(labels):
        return HostName("malformed", "The host name has an empty part.")
    why = _disguise(labels)
    return HostName("disguised", why) if why else HostName("other", f"{name[:100]} is not an official site.")


def _disguise(labels: Sequence[str]) -> str:
    """Why a name with characters beyond ASCII is made to look official; empty if it is not."""
    shown = [unicodedata.category(one) for label in labels for one in label if one not in "-_"]
    if any(one[0] in "CZMP" or one == "Sm" for one in shown):
        return "The host name has characters that hide where it ends."
    mixed = next((label for label in labels if _mixes_scripts(label)), None)
    if mixed:
        return f"{mixed[:80]} mixes letters of several scripts that look alike."
    if looks_like_gov(labels[-1]):
        return "No .gov name has characters beyond ASCII."
    folded = [_folded(label) for label in labels]
    for word in _words(folded):
        if any(_same(_skeleton(word), _skeleton(one)) for one in IMITATED):
            return f"{word[:80]} is spelled with characters that look like others."
    alike = _ascii(".".join(folded)).host_class if not any(UNKNOWN in label for label in folded) else "other"
    official = alike in OFFICIAL or alike == "disguised"
    return f"It looks like {'.'.join(folded)[:80]}, but has other characters." if official else ""


def _folded(label: str) -> str:
    """A label in ASCII: without accents, look-alikes as Latin letters, and `?` for what looks like nothing known."""
    plain = unicodedata.normalize("NFKC", label).casefold()
    bare = "".join(one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one))
    return "".join(one if one.isascii() else UNKNOWN for one in bare.translate(_LOOKS_LIKE))


def _mixes_scripts(label: str) -> bool:
    """Whether letters of the Latin and of another alphabet are in one label."""
    scripts = {unicodedata.name(one, "UNKNOWN").split(" ")[0] for one in label if one.isalpha()}
    return "LATIN" in scripts and bool(scripts & _ALPHABETS)
