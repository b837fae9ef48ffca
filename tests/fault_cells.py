"""The cells of the fault matrix: every fault, in every role, at every provider, and what must become of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from src.adapters.base import RETRYABLE
from src.agents.ask import SCHEMA_REFUSED
from src.schemas import CallOutcome
from tests.adapters.test_contract import BY_NAME
from tests.loopback import Scripted

Role = Literal["target", "extractor", "verifier", "scorer", "adjudicator"]
ROLES: tuple[Role, ...] = get_args(Role)
PROVIDERS = ("openai", "anthropic", "google", "xai", "compatible")
ATTEMPTS = 2
LAST_OR_ONE_MORE = -1
"""Attempts at a call while others to the same model may be answered first, which saves the probe."""


@dataclass(frozen=True)
class Fault:
    name: str
    scripted: Scripted = field(hash=False)
    outcome: CallOutcome
    """The class it must be given."""
    status: int | None = 200
    """The HTTP status the journal must hold."""
    times: int = 1_000
    """How many requests of the role it hits; what comes after is answered."""

    @property
    def slow(self) -> bool:
        """Whether it is only over when the attempt's time is."""
        return self.outcome == "timeout"


def _status(status: int, outcome: CallOutcome) -> Fault:
    return Fault(str(status), Scripted(status=status), outcome, status)


NO_FAULT = Fault("no fault", Scripted(), "ok", None)
FAULTS: tuple[Fault, ...] = (
    _status(400, "permanent"),
    *(_status(status, "denied") for status in (401, 402, 403, 404)),
    *(_status(status, "transient") for status in (408, 409)),
    *(_status(status, "permanent") for status in (413, 422)),
    _status(429, "rate_limited"),
    *(_status(status, "transient") for status in (500, 502, 503, 529)),
    Fault("timeout", Scripted(fault="timeout"), "timeout", None),
    Fault("reset", Scripted(fault="reset"), "transient", None),
    Fault("truncated body", Scripted(fault="truncated_body"), "transient"),
    Fault("malformed JSON", Scripted(fault="malformed_json"), "malformed"),
    Fault("HTML with 200", Scripted(fault="html"), "malformed"),
    Fault("`null`", Scripted(fault="null"), "malformed"),
    Fault("`{}`", Scripted(fault="empty_object"), "malformed"),
    Fault("empty body", Scripted(fault="empty_body"), "malformed"),
    Fault("slow drip", Scripted(fault="slow_drip"), "timeout"),
)


@dataclass(frozen=True)
class Cell:
    role: Role
    fault: Fault
    provider: str
    outage: bool = False
    """Whether the fault also hits the probes that ask whether the model answers at all."""

    def __str__(self) -> str:
        return f"{self.role}, {self.fault.name}, {self.provider}" + (", outage" if self.outage else "")


@dataclass(frozen=True)
class Finding:
    """What a cell came to, as its place in the table shows it."""

    outcome: str
    """The class of every attempt at the failed call."""
    attempts: int
    """At each call; 0: as many as fit into its time."""
    askings: int
    """Calls of the judge; where both verifiers failed, of each."""
    trial: str
    stopped: bool = False
    """Whether the run stopped, and came to the trial's outcome when it was resumed after the fault."""

    def __str__(self) -> str:
        if self.stopped:
            return f"{self.outcome}, stopped; resumed → {self.trial}"
        asked = f" asked {self.askings}x" if self.askings > 1 else ""
        times = f"x{self.attempts}" if self.attempts else "until its time is up"
        if self.attempts == LAST_OR_ONE_MORE:
            times = f"x{ATTEMPTS} or x{ATTEMPTS + 1}"
        return f"{self.outcome} {times}{asked} → {self.trial}"


TRIAL: dict[Role, str] = {
    "target": "failed",
    "extractor": "judge_failure",
    "verifier": "judge_failure",
    "scorer": "judge_failure",
    "adjudicator": "judge_failure",
}
"""What becomes of a trial in which the role brings nothing but failures."""


def expected(cell: Cell) -> Finding:
    if cell.fault is NO_FAULT:
        return Finding("ok", 1, 1, "scored")
    if cell.outage or cell.fault.outcome == "denied":
        return Finding(cell.fault.outcome, 0, 0, "scored", stopped=True)
    attempts = ATTEMPTS + 1 if cell.fault.outcome in RETRYABLE else 1
    if cell.fault.outcome == "rate_limited":
        attempts = 0
    elif cell.role == "scorer" and attempts > 1:
        attempts = LAST_OR_ONE_MORE
    askings = 2 if cell.role != "target" and cell.fault.status in SCHEMA_REFUSED else 1
    return Finding(cell.fault.outcome, attempts, askings, TRIAL[cell.role])


def cells(
    roles: Iterable[Role] = ROLES, faults: Iterable[Fault] = FAULTS, providers: Iterable[str] = PROVIDERS
) -> list[Cell]:
    given = list(faults), list(providers)
    return [Cell(role, fault, provider) for role in roles for fault in given[0] for provider in given[1]]


def outages(roles: Iterable[Role] = ("target", "verifier")) -> list[Cell]:
    """Every fault that may pass, at every call of the model."""
    passing = [fault for fault in FAULTS if fault.outcome in RETRYABLE]
    return [Cell(one.role, one.fault, one.provider, outage=True) for one in cells(roles, passing)]


def whole() -> list[Cell]:
    return [*cells(faults=(NO_FAULT, *FAULTS)), *outages()]


@dataclass
class Place:
    """A cell being run: its name on the wire, its folder, and what the server saw of it."""

    cell: Cell
    number: int
    folder: Path
    seen: Counter[str] = field(default_factory=Counter)
    """Requests by role."""
    crash: str | None = None
    stopped: str | None = None
    """What the run said when it stopped. From then on there is no fault."""

    @property
    def model(self) -> str:
        provider = BY_NAME[self.cell.provider]
        return f"{provider.name}:{provider.model}-c{self.number}"

    @property
    def contrary(self) -> str:
        """The second verifier, which where ties are wanted finds nothing in the key."""
        return f"{self.model}-contrary"
