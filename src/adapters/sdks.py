"""How to install what is missing, in words that work wherever this runs: a checkout, a wheel, a notebook.

The SDK itself is named, never this project: no public index has a distribution of its name that is ours.
"""

from __future__ import annotations

REQUIREMENTS = {
    "openai": "openai>=3.40,<4",
    "anthropic": "anthropic>=2.6,<3",
    "google": "google-genai>=3.0,<4",
    "grok": "openai>=3.40,<4",
}
"""By extra, as in pyproject.toml."""


def missing_sdk(extra: str) -> str:
    """The sentence for an SDK that is not installed."""
    return f"The SDK for {extra} is not installed; run: python -m pip install '{REQUIREMENTS.get(extra, extra)}'"
