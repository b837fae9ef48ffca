"""AI Medicare Evaluation Harness: asks AI systems Medicare questions and judges the answers against a written key.

The package is `src` in a checkout and `medicare_eval` once installed. Importing it imports nothing heavy: public names
are loaded when they are first used. docs/python.md is the guide.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters.base import Adapter, CallFailure, Message, ModelReply, ModelRequest, verbatim
    from .api import (
        ExportedGold,
        Frozen,
        Review,
        VerifiedSeries,
        add_to_series,
        compare,
        drift,
        export,
        export_review,
        freeze,
        init_series,
        merge,
        open_run,
        plan,
        plot_series,
        rejudge,
        rejudge_async,
        replay,
        report,
        resume,
        resume_async,
        run,
        run_async,
        run_series,
        run_series_async,
        sensitivity,
        series_status,
        start_review,
        study,
        verify,
        verify_series,
    )
    from .calls.stop import Stop
    from .cli.progress import ShowProgress
    from .errors import ConfigError, ExportError, HarnessError, IncompleteRun, InputError, IntegrityError, StorageError
    from .reading import Run
    from .records.study import ModelSettings, Study, TargetOptions
    from .runner.progress import RunProgress
    from .schemas import RunPlan, TrialResult, Usage

__version__ = "0.6.0"

_PUBLIC = {
    "adapters.base": ("Adapter", "CallFailure", "Message", "ModelReply", "ModelRequest", "verbatim"),
    "api": (
        "ExportedGold", "Frozen", "Review", "VerifiedSeries", "add_to_series", "compare", "drift", "export",
        "export_review", "freeze", "init_series", "merge", "open_run", "plan", "plot_series", "rejudge",
        "rejudge_async", "replay", "report", "resume", "resume_async", "run", "run_async", "run_series",
        "run_series_async", "sensitivity", "series_status", "start_review", "study", "verify", "verify_series",
    ),
    "calls.stop": ("Stop",),
    "cli.progress": ("ShowProgress",),
    "errors": (
        "ConfigError", "ExportError", "HarnessError", "IncompleteRun", "InputError", "IntegrityError", "StorageError",
    ),
    "reading": ("Run",),
    "records.study": ("ModelSettings", "Study", "TargetOptions"),
    "runner.progress": ("RunProgress",),
    "schemas": ("RunPlan", "TrialResult", "Usage"),
}  # fmt: skip
"""Public names by the module that has them."""
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = [
    "Adapter", "CallFailure", "ConfigError", "ExportError", "ExportedGold", "Frozen", "HarnessError", "IncompleteRun",
    "InputError", "IntegrityError", "Message", "ModelReply", "ModelRequest", "ModelSettings", "Review", "Run",
    "RunPlan", "RunProgress", "ShowProgress", "Stop", "StorageError", "Study", "TargetOptions", "TrialResult", "Usage",
    "VerifiedSeries", "add_to_series", "compare", "drift", "export", "export_review", "freeze", "init_series", "merge",
    "open_run", "plan", "plot_series", "rejudge", "rejudge_async", "replay", "report", "resume", "resume_async", "run",
    "run_async", "run_series", "run_series_async", "sensitivity", "series_status", "start_review", "study", "verbatim",
    "verify", "verify_series",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
