"""Limits beyond which a trial needs a person, where code and reports can both name them."""

from __future__ import annotations

REVIEW_ABOVE = 0.2
"""Share of claims on which the verifiers disagree."""
REJECTED_ABOVE = 0.2
"""Share of claims without a true quote: the extractor did not read this reply."""
LONG_REPLY_WORDS = 20
"""Words of a reply in which an extractor that finds nothing to check is taken to have overlooked something."""
COVERAGE_BELOW = 0.8
"""Share of factual sentences that claims must cover; below it the extractor is asked once more for the rest."""
