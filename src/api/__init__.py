"""The Python API: what notebooks, the command line and other front ends call. Nothing here prints.

    import medicare_eval as me
    run = me.run(scenarios=["scenarios/v1/scenario_001.json"], targets=["fake:careful"])
    run.to_frame("claims")

Every function that calls models exists twice: `run` waits, also inside a notebook whose event loop is running, and
`run_async` is awaited.
"""

from ..judge_check.review_gold import ExportedGold
from ..reading import open_run
from .checks import replay, verify
from .findings import compare, drift, export, report, sensitivity
from .reviews import Review, export_review, start_review
from .runs import Frozen, freeze, plan, rejudge, rejudge_async, resume, resume_async, run, run_async, study
from .series import add_to_series, init_series, plot_series, run_series, run_series_async, series_status
from .series_checks import VerifiedSeries, verify_series
from .shards import merge

__all__ = [
    "ExportedGold", "Frozen", "Review", "VerifiedSeries", "add_to_series", "compare", "drift", "export",
    "export_review", "freeze", "init_series", "merge", "open_run", "plan", "plot_series", "rejudge", "rejudge_async",
    "replay", "report", "resume", "resume_async", "run", "run_async", "run_series", "run_series_async", "sensitivity",
    "series_status", "start_review", "study", "verify", "verify_series",
]  # fmt: skip
