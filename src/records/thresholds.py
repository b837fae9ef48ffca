"""Limits beyond which a trial needs manual review. Code and reports both use them."""

from __future__ import annotations

REVIEW_ABOVE = 0.2
"""Fraction of claims on which the verifiers disagree."""
REJECTED_ABOVE = 0.2
"""Fraction of claims without a real quote: above it, the extractor did not read the reply well."""
LONG_REPLY_WORDS = 20
"""If the extractor finds nothing to check in a reply with more words than this, it probably missed something."""
COVERAGE_BELOW = 0.8
"""Fraction of factual sentences that claims must cover; below it the extractor is asked once more for the rest."""
