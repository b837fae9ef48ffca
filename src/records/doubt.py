"""A verdict that a reader doubts. It is kept beside runs and changes none; a review takes it up."""

from __future__ import annotations

from .base import Line, Record


class Doubt(Record):
    run_id: str
    trial_id: str
    claim_id: str
    note: Line
    """Why, in the reader's words."""
    marked_at: str
    """UTC."""
