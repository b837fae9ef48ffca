"""`check_adapter`: runs every case against an adapter and says which failed."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from ..adapters.base import Adapter
from .fault_cases import FAULT_CASES
from .server import Dialect
from .subject import AdapterProblem, Case, Http, NotApplicable, ScriptedServer, Subject
from .wire_cases import CONTRACT_CASES, WIRE_CASES


def check_adapter(
    factory: Callable[..., Adapter],
    *,
    dialect: Dialect | None = None,
    model: str = "checked:model-1",
    only: str = "",
    patience_s: float = 10.0,
) -> Report:
    """Check that an adapter keeps the contract of `Adapter`, and that it fails as it should.

    With a dialect, the adapter talks to a server that the kit starts on 127.0.0.1, and every case runs. Without one,
    only the cases run that need no server: this is for adapters that do not speak HTTP.

    Args:
        factory: with a dialect, called as `factory(base_url=..., api_key=...)`; without one, as `factory()`. It is
            called once per case and must open no connection by itself.
        dialect: the wire format of the adapter; `ChatCompletions()` if it is OpenAI's.
        model: the model that requests ask for, as `provider:model`.
        only: run only the cases whose name contains this text.
        patience_s: a call that hangs for so long is given up as failed. Calls that must succeed get half of it as
            their timeout.

    Returns:
        The report, with every case passed or skipped.

    Raises:
        AdapterCheckError: an AssertionError that lists every case that failed; its `report` has them all.

    Example:
        >>> from medicare_eval.testing import ChatCompletions, check_adapter
        >>> from medicare_eval.adapters.openai_adapter import CompatibleAdapter
        >>> report = check_adapter(CompatibleAdapter, dialect=ChatCompletions())
        >>> report.failed
        ()
    """
    key = f"check-key-{secrets.token_hex(12)}"
    with ExitStack() as stack:
        if dialect is None:
            subject = Subject(make=factory, model=model, api_key=key, patience_s=patience_s)
            cases: Sequence[Case] = CONTRACT_CASES
        else:
            server = stack.enter_context(ScriptedServer(dialect, longest_wait_s=3 * patience_s))

            def make_at(base_url: str) -> Adapter:
                return factory(base_url=base_url, api_key=key)

            http = Http(dialect, server, make_at)
            subject = Subject(
                make=lambda: make_at(server.address), model=model, api_key=key, patience_s=patience_s, http=http
            )
            cases = (*CONTRACT_CASES, *WIRE_CASES, *FAULT_CASES)
        chosen = [case for case in cases if only in case.name]
        if not chosen:
            raise ValueError(f"no case has {only!r} in its name")
        results = tuple(_result(case, subject) for case in chosen)
    report = Report(getattr(factory, "__name__", "adapter"), results)
    if report.failed:
        raise AdapterCheckError(report)
    return report


def _result(case: Case, subject: Subject) -> CaseResult:
    """Run one case in a thread of its own, so that it works inside a running event loop too."""
    results: list[CaseResult] = []
    if subject.http:
        subject.http.server.script()
    thread = threading.Thread(target=lambda: results.append(asyncio.run(_judged(case, subject))), name="adapter-check")
    thread.start()
    thread.join()
    return results[0] if results else CaseResult(case.name, "failed", "the case ended without a result")


async def _judged(case: Case, subject: Subject) -> CaseResult:
    try:
        await case.run(subject)
    except NotApplicable as reason:
        return CaseResult(case.name, "skipped", str(reason))
    except AdapterProblem as problem:
        return CaseResult(case.name, "failed", str(problem))
    except Exception as error:
        return CaseResult(case.name, "failed", f"{type(error).__name__}: {error}")
    return CaseResult(case.name, "passed")


# What a check of an adapter found.


@dataclass(frozen=True)
class CaseResult:
    name: str
    state: Literal["passed", "failed", "skipped"]
    note: str = ""
    """What went wrong, or why the case was skipped."""


@dataclass(frozen=True)
class Report:
    """One check of one adapter: every case with its result."""

    adapter: str
    cases: tuple[CaseResult, ...]

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(case for case in self.cases if case.state == "failed")

    def table(self) -> str:
        """All cases, one per line."""
        return "\n".join(_line(case) for case in self.cases)

    def __str__(self) -> str:
        lines = [f"{self.adapter}: {len(self.failed)} of {len(self.cases)} cases failed"]
        return "\n".join([*lines, *(_line(case) for case in self.failed)])


def _line(case: CaseResult) -> str:
    return f"{case.state:7}  {case.name}{f': {case.note}' if case.note else ''}"


class AdapterCheckError(AssertionError):
    """Some cases failed; `report` holds all of them."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report
