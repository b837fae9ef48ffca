"""What the words of reports and codebooks mean: `terms.toml`, and the measures as `scoring.definitions` has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..scoring.definitions import KEY_COVERAGE, MEASURES, Definition


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    meaning: str
    found_by: str = ""
    """A pattern that finds it in a text, if other forms than the name and its plural are used."""

    def found_in(self, text: str) -> bool:
        return re.search(self.found_by or rf"\b{re.escape(self.name)}s?\b", text, re.IGNORECASE) is not None


def _terms() -> Iterator[Term]:
    measures: dict[str, Definition] = {**MEASURES, "key_coverage": KEY_COVERAGE}
    for one in tomllib.loads(Path(__file__).with_name("terms.toml").read_text(encoding="utf-8"))["term"]:
        yield _of(measures.pop(one["measure"])) if "measure" in one else Term(**one)
    yield from map(_of, measures.values())


def _of(one: Definition) -> Term:
    return Term(one.heading, one.plain, one.found_by)


TERMS = tuple(_terms())
"""In the order in which a report explains them."""


def alphabetical(text: str = "") -> list[Term]:
    """The terms that a text uses; without a text, all."""
    return sorted((one for one in TERMS if not text or one.found_in(text)), key=lambda one: one.name.lower())
