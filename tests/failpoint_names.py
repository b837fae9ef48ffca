"""The places of `src/store/failpoints.py` that tests kill a process at, by name."""

from __future__ import annotations

NAMES = (
    "run.after_mkdir",
    "manifest.before_link",
    "manifest.after_link",
    "journal.before_write",
    "journal.torn_write",
    "journal.after_write",
    "journal.fsync",
    "journal.after_fsync",
    "journal.before_recovery",
    "results.before_write",
    "results.torn_write",
    "results.after_write",
    "results.fsync",
    "batch.before_intent",
    "batch.after_intent",
    "batch.after_post",
    "batch.after_created",
    "batch.polling",
    "batch.after_line",
    "batch.before_ended",
    "seal.before_link",
    "seal.after_link",
)
SHARD_NAMES = (
    "shards.before_rename",
    "shards.after_rename",
    "merge.after_journal",
    "merge.before_rename",
    "merge.after_rename",
    "merge.after_journal_move",
    "merge.after_results_move",
    "merge.after_seal_move",
)
"""Places in runs of several processes and in merges."""
SERIES_NAMES = (
    "series.before_link",
    "series.after_link",
    "series_point.before_link",
    "series_point.after_link",
    "series.before_line",
    "series.torn_line",
    "series.after_line",
)
"""Places in a series. Its runs and checks have those of every run."""
