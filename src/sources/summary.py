"""Outcomes of citations, counted for a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..records.citation import CITATION_OUTCOMES, OFFICIAL, CheckedCitation, CitationOutcome


@dataclass(frozen=True)
class CitationCounts:
    """The citations of one target, or of any other group of answers."""

    citations: int
    """Checked citations; an address that backs two claims counts twice."""
    outcomes: Mapping[CitationOutcome, int]
    """Every outcome, also those that did not occur, in a fixed order."""
    official: int
    """Citations of an official host."""
    invented: int
    """Addresses that are disguised, malformed or dead; each address counts once."""

    @property
    def decided(self) -> int:
        """Citations whose page was compared with the statement."""
        return self.outcomes["supported"] + self.outcomes["not_supported"]

    @property
    def supported_share(self) -> float | None:
        """Supported citations among those whose page was compared; None if none was."""
        return self.outcomes["supported"] / self.decided if self.decided else None


def count_citations(checked: Iterable[CheckedCitation]) -> CitationCounts:
    """The counts of some citations.

    Example:
        >>> count_citations([]).supported_share is None
        True
    """
    listed = list(checked)
    counts = Counter(one.outcome for one in listed)
    return CitationCounts(
        citations=len(listed),
        outcomes={outcome: counts[outcome] for outcome in CITATION_OUTCOMES},
        official=sum(one.host_class in OFFICIAL for one in listed),
        invented=len({one.url for one in listed if one.invented}),
    )
