r"""Find the addresses in a reply, and the sources that it names without an address.

An address has a scheme, or `www.`, or a host name with a path, or is the target of a Markdown link. A host name alone,
such as Medicare.gov, is a named source if it is official: it cannot be invented. Any other host name alone is an
address, because it can be disguised or not official. An e-mail address is neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...records.citation import OFFICIAL, Citation
from ...store.strict_json import clean_text
from .addresses import classify, page_key
from .hosts import WORDS, classify_host, looks_like_gov

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_STOPS = r'\s<>"`|^\u201c\u201d\u00ab\u00bb\u2014\u2026'
_RUN = rf"[^{_STOPS}]"
_LINK = re.compile(r"\[((?:[^\[\]\\\n]|\\.){0,400})\]\([ \t]{0,3}<?")
_LINK_TITLE = re.compile(r"""[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\))[ \t]*$""")
"""What may follow the target of a link. Any other words after a space make the target malformed."""
_ANGLED = re.compile(r"<(?P<url>https?:[^<>\n]{1,2000})>", re.IGNORECASE)
_ONLY_SCHEME = re.compile(r"(?<![A-Za-z0-9])https?://(?=[\s.,;!?)]|$)", re.IGNORECASE)
_SCHEMED = re.compile(
    rf"(?<![A-Za-z0-9])(?:[a-z][a-z0-9+.-]{{1,15}}:[/\\]{{2}}|https?:[/\\]?(?=[\w\[])|ht{{1,2}}ps?(?=//)){_RUN}+",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(rf"[^{_STOPS}\x00-\x1f\x7f]+")
_PREFIX = re.compile(r"(?:[A-Za-z]{2,12}[:=])?[(\[*_~'\u2018]*")
_DOT = r"[.\u3002\uff0e\uff61]"
_NAME = rf"(?:[^\W_]|[-_{_INVISIBLE}])"
_BARE = re.compile(
    rf"(?P<user>[^/?#\\@]{{1,100}}@)?(?P<host>{_NAME}+(?:{_DOT}{_NAME}+)+)(?P<port>:[0-9]{{1,6}})?(?P<path>[/?#\\].*)?",
    re.DOTALL,
)
_ENDINGS = WORDS["endings"]
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_TRAILING = ".,;:!?'\u2019*_~\\\u3002\uff0c"
_CUT = re.compile(r"\]\(|&(?:gt|lt|quot);")
"""What ends an address though it is written without a space: the rest of a link, or of HTML."""
_ESCAPED = re.compile(r"\\([_*~()#&\[\]+=!-])")
_DEFINITION = re.compile(r"^[ \t]*(?:[-*][ \t]+)?\[\^?([^\[\]\n]{1,40})\]:?[ \t]*([^\n]{0,200})$")
_NOT_PAGES = ("mailto:", "tel:", "sms:", "cid:")
_SAYS = re.compile(
    r"\b(?:according to|as stated by|as reported by|as per|citing|sources?:)[ \t*_]{1,5}(?:the[ \t]{1,5})?",
    re.IGNORECASE,
)
_CAPITAL = r"(?:U\.S\.|[A-Z][\w&'’-]*)"
_PROPER = re.compile(rf"{_CAPITAL}(?:[ \t]+(?:(?:of|for|and|&|on|the)[ \t]+){{0,2}}{_CAPITAL})*")
"""A name in capital letters, such as Centers for Medicare & Medicaid Services."""
_MAX_SHOWN = 20_000
_MAX_TITLE = 500
_MAX_TARGET = 3_000
"""Characters in which the target of a link must end."""
_MAX_MARKS = 50


@dataclass(frozen=True)
class NamedSource:
    """A source that the reply names without an address."""

    name: str
    start: int


@dataclass(frozen=True)
class _Found:
    url: str
    start: int
    end: int
    title: str | None = None
    named: bool = False
    """An official host name alone: a source, not an address."""


def find_citations(text: str) -> tuple[Citation, ...]:
    """The addresses in a reply, in order. An address in a list of sources is given once for each mark that names it.

    Example:
        >>> [one.url for one in find_citations("See [costs](https://www.medicare.gov/costs) or ssa.gov/medicare.")]
        ['https://www.medicare.gov/costs', 'ssa.gov/medicare']
    """
    found = [one for one in _find(text) if not one.named]
    return tuple(_citation(one) for item in found for one in _places(text, item))


def find_named_sources(text: str) -> tuple[NamedSource, ...]:
    """The sources named without an address: official host names alone, and names after "according to".

    Example:
        >>> [one.name for one in find_named_sources("According to CMS it is $202.90; see Medicare.gov.")]
        ['CMS', 'Medicare.gov']
    """
    found = [NamedSource(one.url, one.start) for one in _find(text) if one.named]
    addresses = [(one.start, one.end) for one in _find(text)]
    for match in _SAYS.finditer(text):
        name = _PROPER.match(text, match.end())
        if name and not any(start < name.end() and name.start() < end for start, end in addresses):
            found.append(NamedSource(name.group().rstrip(".'’"), name.start()))
    return tuple(sorted(found, key=lambda one: one.start))


def collect_citations(text: str, annotations: Sequence[Citation] = ()) -> tuple[Citation, ...]:
    """The provider's annotations and the addresses in the text; an address that both have is given once."""
    kept = list(annotations)
    for one in find_citations(text):
        page = page_key(one.url) or one.url
        if not any((page_key(other.url) or other.url) == page and _overlap(one, other) for other in annotations):
            kept.append(one)
    return tuple(kept)


def _overlap(one: Citation, other: Citation) -> bool:
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return True
    return one.start < other.end and other.start < one.end


def _citation(found: _Found) -> Citation:
    title = clean_text(found.title[:_MAX_TITLE]).strip() if found.title else None
    url = clean_text(found.url[:_MAX_SHOWN])
    return Citation(url=url, title=title or None, start=found.start, end=found.end, where="text")


def _find(text: str) -> list[_Found]:
    found = list(_links(text))
    rest = _blanked(text, found)
    angled = [_Found(match["url"], match.start(), match.end()) for match in _ANGLED.finditer(rest)]
    found += angled
    rest = _blanked(rest, angled)
    schemed = [one for match in _SCHEMED.finditer(rest) if (one := _schemed(match))]
    schemed += [_Found(match.group(), match.start(), match.end()) for match in _ONLY_SCHEME.finditer(rest)]
    found += schemed
    rest = _blanked(rest, schemed)
    found += [one for match in _CANDIDATE.finditer(rest) if (one := _bare(match))]
    return sorted(found, key=lambda one: one.start)


def _blanked(text: str, found: Sequence[_Found]) -> str:
    parts, at = [], 0
    for one in sorted(found, key=lambda one: one.start):
        parts += [text[at : one.start], " " * (one.end - one.start)]
        at = one.end
    return "".join([*parts, text[at:]])


def _links(text: str) -> Iterator[_Found]:
    """Targets of Markdown links. The span is the whole link, so that it overlaps a quote of its words."""
    at = 0
    for match in _LINK.finditer(text):
        if match.start() < at:
            continue
        end = _link_end(text, match.end())
        if end is None:
            continue
        target = _LINK_TITLE.sub("", text[match.end() : end]).strip(" \t<>")
        at = min(end + 1, len(text))
        url = _ESCAPED.sub(r"\1", target)
        if _is_target(url):
            start = match.start() - (text[match.start() - 1 : match.start()] == "!")
            yield _Found(url, start, at, _ESCAPED.sub(r"\1", match[1]))


def _link_end(text: str, start: int) -> int | None:
    """Where the closing bracket of a link's target is; None if it is never closed on its line."""
    depth = 0
    for place in range(start, min(len(text), start + _MAX_TARGET)):
        if text[place] == "\n":
            return None
        if text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
            if depth < 0:
                return place
    return None


def _is_target(url: str) -> bool:
    """Whether the target of a link is an address on the web, not an e-mail address or a place on the same page."""
    if not url or url.lower().startswith(_NOT_PAGES):
        return False
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])|//", url):
        return True
    bare = _BARE.fullmatch(url)
    return bool(bare and not bare["user"] and _has_ending(bare["host"], countries=True))


def _schemed(match: re.Match[str]) -> _Found | None:
    url = _trimmed(_CUT.split(match.group(), maxsplit=1)[0])
    after = re.sub(r"^[A-Za-z0-9+.-]*:?[/\\]*", "", url)
    return _Found(_ESCAPED.sub(r"\1", url), match.start(), match.start() + len(url)) if after else None


def _trimmed(url: str) -> str:
    """Without the punctuation and the brackets of the sentence around it."""
    while url:
        last = url[-1]
        opener = _CLOSERS.get(last)
        if url.endswith(("'s", "\u2019s")):
            url = url[:-2]
        elif last in _TRAILING or re.match(f"[{_INVISIBLE}]", last) or (opener and url.count(last) > url.count(opener)):
            url = url[:-1]
        else:
            break
    return url


def _bare(match: re.Match[str]) -> _Found | None:
    """An address without a scheme."""
    if not re.search(_DOT, match.group()):
        return None
    prefix = _PREFIX.match(match.group())
    start = match.start() + (prefix.end() if prefix else 0)
    url = _trimmed(_CUT.split(match.group()[start - match.start() :], maxsplit=1)[0])
    parts = _BARE.fullmatch(url)
    if parts is None:
        return None
    host, path = parts["host"], parts["path"]
    found = _Found(_ESCAPED.sub(r"\1", url), start, start + len(url))
    if parts["user"]:
        shown = classify_host(parts["user"][:-1].split(":")[0]).host_class
        return found if shown in OFFICIAL else None  # otherwise it is an e-mail address
    www = host.lower().startswith("www.")
    if not www and not _has_ending(host, countries=bool(path and len(path) > 1)):
        return None
    if www or (path and len(path) > 1):
        return found
    official = classify(host).is_official
    return _Found(host, start, start + len(host), named=True) if official else found


def _has_ending(host: str, *, countries: bool) -> bool:
    """Whether a host name ends as one on the web does; a word after a full stop without a space does not."""
    *before, ending = re.split(_DOT, host)
    if not (ending.islower() or host.isupper() or looks_like_gov(ending)) or not any(map(str.isalpha, "".join(before))):
        return False
    plain = ending.lower()
    country = countries and len(plain) == 2 and plain.isascii() and plain.isalpha()
    return plain in _ENDINGS or country or looks_like_gov(ending) or plain.startswith("xn--")


def _places(text: str, found: _Found) -> Iterator[_Found]:
    """Where an address is cited: at the marks that name it, if its line is an entry in a list of sources."""
    line = text.rfind("\n", 0, found.start) + 1
    entry = _DEFINITION.match(text[line : found.start])
    if entry:
        mark = re.compile(rf"\[\^?{re.escape(entry[1])}\](?![:(])")
        places = [one for one in mark.finditer(text) if not line <= one.start() < found.start][:_MAX_MARKS]
        title = found.title or entry[2].strip(" \t-:*_,.\u2013\u2014\"'“”") or None
        if places:
            yield from (_Found(found.url, one.start(), one.end(), title) for one in places)
            return
    yield found
