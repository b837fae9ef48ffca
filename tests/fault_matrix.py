"""Every provider, every fault, every role, through the whole pipeline: `python -m tests.fault_matrix`.

Each cell is a run of its own: one scenario of one turn, the real SDK on the wire against the loopback server, the real
journal, results and seal. The server knows by the model's name which cell a request belongs to and by the system prompt
which role it is in; the role under test gets the fault at every attempt, every other role a valid answer. Then the run
folder is read back and compared with what was expected, and `verify`, `replay` and `report` must work on it.

Without a fault (the controls) the same runs must be scored, so that no cell passes because nothing was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from src import orchestrator, storage
from src.adapters.base import Adapter, ModelReply, ModelRequest
from src.adapters.local_adapters import ROLE_OF_SCHEMA, OfflineAdapter
from src.calls import breaker, limits
from src.calls.breaker import PROBE
from src.calls.limits import Limits
from src.calls.resources import CallResources
from src.calls.stop import Stop, Stopping
from src.planning.judges import OFFLINE_JUDGE
from src.planning.prompts import REPLY_TYPES, load_prompts
from src.schemas import (
    AdjudicatorInput,
    AdjudicatorReply,
    CallPolicy,
    Decision,
    Manifest,
    RunPlan,
    Scenario,
    Verdict,
    VerifierOutput,
)
from src.store.failpoints import Failpoints
from src.text.fence import unwrap
from tests.adapters.test_contract import BY_NAME, ENVIRONMENT
from tests.fault_cells import ATTEMPTS, FAULTS, NO_FAULT, PROVIDERS, ROLES, Cell, Finding, Place, Role, outages, whole
from tests.fault_checks import examine
from tests.helpers import fact_json, manifest, plan, scenario, with_canary
from tests.loopback import Loopback, Received, Scripted, text_in
from tests.runs import ROOT

FACTS = ("The standard Part B premium is $202.90 a month in 2026.", "The Part B deductible is $283 a year in 2026.")
ANSWER = " ".join(FACTS)
RATE_LIMITED_S = 1.0
MAX_OUTAGE_S = 0.5
SLOW_FAULT_S = 2.0
"""How long an attempt may take that meets a fault which never ends by itself. All others may take minutes."""
PAGE = ROOT / "docs" / "faults.md"

# ---- the server's part ------------------------------------------------------------------------------------------

_ROLE_OF_PROMPT = {prompt.text: role for role, prompt in load_prompts().items()}


def role_and_task(received: Received) -> tuple[str, str]:
    """Which role a request is in, and the first thing the user says in it."""
    body = received.body
    if received.wire == "google":
        parts = body.get("systemInstruction", {}).get("parts", [])
        system, task = "".join(part["text"] for part in parts), body["contents"][0]["parts"][0]["text"]
    elif received.wire == "anthropic":
        system, task = text_in(body.get("system")), text_in(body["messages"][0]["content"])
    else:
        said = [message["content"] for message in body["messages"] if message["role"] == "system"]
        system, task = "".join(said), body["messages"][len(said)]["content"]
    return (_ROLE_OF_PROMPT[system] if system else "target"), task


def right_answer(role: str, task: str) -> str:
    """What a working model says: the target its fixed answer, a judge what the rules compute, and for ties the truth.

    The rules settle no tie, so they would leave the control without the label that is right.
    """
    if role == "target":
        return ANSWER
    if role == "adjudicator":
        tied = AdjudicatorInput.model_validate_json(unwrap(task)[1]).claims
        decisions = tuple(Decision(claim_id=one.claim_id, label="SUPPORTED", notes="In the key.") for one in tied)
        return with_canary(AdjudicatorReply(decisions=decisions).model_dump_json(), task)
    input_type, compute = ROLE_OF_SCHEMA[REPLY_TYPES[role].__name__]  # type: ignore[index]
    answer = compute(input_type.model_validate_json(unwrap(task)[1])).model_dump_json()
    return with_canary(answer, task)


def contrary_answer(task: str) -> str:
    ids = [claim["claim_id"] for claim in json.loads(unwrap(task)[1])["claims"]]
    verdicts = [Verdict(claim_id=name, label="NOT_IN_KEY", evidence=(), severity="none", notes="") for name in ids]
    return with_canary(VerifierOutput(verdicts=tuple(verdicts)).model_dump_json(), task)


def script(places: Sequence[Place]) -> Callable[[Received], Scripted]:
    by_number = {str(place.number): place for place in places}

    def answer(received: Received) -> Scripted:
        role, task = role_and_task(received)
        place = by_number[received.model.removesuffix("-contrary").rpartition("-c")[2]]
        fault = place.cell.fault if place.stopped is None else NO_FAULT
        if task == PROBE:
            place.seen["probe"] += 1
            return fault.scripted if place.cell.outage else Scripted(text="OK")
        place.seen[role] += 1
        if role == place.cell.role and fault is not NO_FAULT and place.seen[role] <= fault.times:
            return fault.scripted
        if role == "verifier" and place.cell.role == "adjudicator" and received.model.endswith("-contrary"):
            return Scripted(text=contrary_answer(task))
        return Scripted(text=right_answer(role, task))

    return answer


# ---- one run per cell -------------------------------------------------------------------------------------------


class FixedTarget:
    """A target in this process that always gives the same answer."""

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return ModelReply(outcome="ok", text=ANSWER, sent=request.as_json(), received=ANSWER, served_model="fake-fixed")

    async def aclose(self) -> None: ...


@dataclass
class Hurried:
    """An adapter that gives up soon on the role under test where its fault never ends; other roles have all their time,
    so that a cell comes out the same on a busy machine."""

    inner: Adapter
    cell: Cell

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        role = _ROLE_OF_PROMPT[request.system] if request.system else "target"
        probe = request.messages[0].content == PROBE
        hurried = self.cell.fault.slow and (self.cell.outage if probe else role == self.cell.role)
        return await self.inner.complete(request, timeout_s=SLOW_FAULT_S if hurried else timeout_s)

    async def aclose(self) -> None:
        await self.inner.aclose()


def two_facts() -> Scenario:
    facts = [fact_json(f"F{number}", statement) for number, statement in enumerate(FACTS, 1)]
    return scenario(answer_key={"canonical_facts": facts, "required_points": ["F1", "F2"], "disallowed_claims": []})


def plan_of(place: Place) -> RunPlan:
    patience = RATE_LIMITED_S if place.cell.fault.outcome == "rate_limited" else 900.0
    policy = CallPolicy(max_attempts=ATTEMPTS, timeout_s=300.0, deadline_s=patience)
    if place.cell.role == "target":
        made = plan(scenarios=[two_facts()], targets=[place.model])
    else:
        made = plan(scenarios=[two_facts()], targets=["fake:fixed"], verifiers=[place.model, place.contrary])
    if place.cell.outage and place.cell.role == "verifier":  # a model that is down answers in no other role
        made = made.model_copy(update={"extractor": OFFLINE_JUDGE, "scorer": OFFLINE_JUDGE})
    return made.model_copy(update={"policy": policy, "prompts": load_prompts()})


async def carry_out(place: Place, adapters: dict[str, Adapter]) -> None:
    made = manifest(plan_of(place))
    place.folder.mkdir(parents=True)
    storage.write_once(
        place.folder / storage.MANIFEST, storage.encode_record(made) + b"\n", Failpoints.from_environment(), "manifest"
    )
    try:
        try:
            await _execute(place, made, adapters)
        except Stopping as stopped:
            place.stopped = str(stopped)
            await _execute(place, made, adapters)
    except Exception:
        place.crash = traceback.format_exc()


async def _execute(place: Place, made: Manifest, adapters: dict[str, Adapter]) -> None:
    await orchestrator.execute(
        place.folder,
        made,
        concurrency=1,
        resources=CallResources(
            adapter_for=lambda provider: Hurried(adapters[provider], place.cell),
            limits=Limits(8),
            stop=Stop(),
            max_outage_s=MAX_OUTAGE_S,
        ),
        on_call=lambda record: None,
        on_start=lambda total, done: None,
        on_trial=lambda: None,
    )


async def carry_out_all(places: Sequence[Place], server: Loopback) -> list[str]:
    """Run the cells, some at a time; complaints of the event loop come back as problems."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(str(context)))
    providers = dict.fromkeys(place.cell.provider for place in places)
    adapters: dict[str, Adapter] = {name: BY_NAME[name].open(server) for name in providers}
    adapters |= {"fake": FixedTarget(), "offline": OfflineAdapter()}

    waiting = iter(places)

    async def worker() -> None:
        for place in waiting:
            await carry_out(place, adapters)

    try:
        await asyncio.gather(*(worker() for _ in range(10)))
    finally:
        for adapter in adapters.values():
            await adapter.aclose()
    return complaints


@contextmanager
def bare_environment() -> Iterator[None]:
    """No setting of an SDK and no proxy."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(ENVIRONMENT) and not name.lower().endswith("_proxy")
    }
    with patch.dict(os.environ, kept, clear=True):
        yield


@dataclass
class Outcome:
    findings: dict[Cell, Finding] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def run(chosen: Sequence[Cell], parent: Path) -> Outcome:
    """Run the cells and examine what each left behind."""
    places = [Place(cell, number, parent / f"{number}") for number, cell in enumerate(chosen)]
    outcome = Outcome()
    quick = patch.object(limits, "FIRST_CEILING_S", 0.001)
    paused = patch.object(breaker, "FIRST_PAUSE_S", 0.1)
    with bare_environment(), quick, paused, Loopback(script(places), keep=1) as server:
        outcome.problems += asyncio.run(carry_out_all(places, server))
    for place in places:
        examined = examine(place)
        outcome.findings[place.cell] = examined.finding
        outcome.problems += [f"{place.cell}: {problem}" for problem in examined.problems]
    return outcome


# ---- the table --------------------------------------------------------------------------------------------------

MEANS: dict[Role, str] = {
    "target": "The provider is asked as the target. The turn has no answer, and the trial no claim and no score.",
    "extractor": "The provider splits the answer into claims. There are none to check, and the trial has no score.",
    "verifier": "The provider is both verifiers. No claim has a verdict, and the trial has no score.",
    "scorer": "The provider reads for refusals and hedges. There is no observation, and the trial has no score.",
    "adjudicator": (
        "The provider settles ties. The tied claims stay without a label, the trial has no score, and it is marked for a "
        "person to look at."
    ),
}
INTRODUCTION = f"""\
# What a provider's faults do to a run

Every fault, at every provider, in every role, through the whole pipeline: a failure has its class, is retried as its
class allows, is recorded at every attempt, and is never treated as an answer.

Made by `python -m tests.fault_matrix --write docs/faults.md`; do not edit. Every cell is a run of its own with the
provider's real SDK against a server on the loopback interface ([tests/loopback.py](../tests/loopback.py)) that
answers each attempt of the role in question with the fault, and every other role as it should.

A cell reads: class of each attempt x attempts at a call → outcome of the trial. Attempts are limited to {ATTEMPTS} here (a
run's default is {CallPolicy().max_attempts}). When they are used up and nothing shows that the model is up, it is asked for a word (a probe). In
these tables it answers the probe, so that the fault is one of this call: after one more attempt, the call has failed. A
judge that answers 400 or 422 may be refusing the response schema, so it is asked again without one: asked 2x. The first
row is the control: the same run without a fault.

A request that is refused (`permanent`) is checked with a probe too. If the model refuses that as well, the refusal is not
about the request: the run stops and can be resumed, whatever the status and the words.

`denied, stopped; resumed → scored`: the provider refuses the key, the account or the model, whatever is asked. The run
stops at once. No attempt is the outcome of a call, and the resumed run, with the fault gone, comes to what it would have
come to without it.

Also checked for each cell: requests at the server equal records in `calls.jsonl`, each with its status, its error and
the body received; no claim, verdict, observation or label comes from a failed call; `verify`, `replay` and `report`
work on the run; nothing ends in a traceback.
"""


OUTAGES = """\
## Outages

The same faults, but at every call to the model, also at the probes. The model's calls are paused and it is probed until
`--max-outage` is over (half a second here; a run's default is half an hour). Then the run stops. No failed attempt is the
outcome of a call, and the resumed run, with the fault gone, comes to what it would have come to without it. An outage that
ends sooner is waited out: `tests/test_breaker.py`, `tests/test_outages.py`.
"""


def outage_roles() -> list[Role]:
    return list(dict.fromkeys(cell.role for cell in outages()))


def table(role: Role, findings: dict[Cell, Finding], *, outage: bool = False) -> str:
    lines = [["fault", *PROVIDERS]]
    for fault in (NO_FAULT, *FAULTS):
        row = [findings.get(Cell(role, fault, provider, outage)) for provider in PROVIDERS]
        if any(row):
            lines.append([fault.name, *(str(finding or "") for finding in row)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    rows = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rows.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rows)


def page(findings: dict[Cell, Finding], problems: int) -> str:
    parts = [INTRODUCTION]
    for role in ROLES:
        parts.append(f"## {role.capitalize()}\n\n{MEANS[role]}\n\n{table(role, findings)}\n")
    parts.append(OUTAGES)
    for role in outage_roles():
        parts.append(f"### {role.capitalize()}\n\n{table(role, findings, outage=True)}\n")
    return "\n".join([*parts, total(findings, problems)]) + "\n"


def total(findings: dict[Cell, Finding], problems: int) -> str:
    return f"{sum(cell.fault is not NO_FAULT for cell in findings)} cells, {problems} problems"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page, if there is no problem")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="faults-") as parent:
        outcome = run(whole(), Path(parent))
    for role in ROLES:
        print(f"{role.capitalize()}\n{table(role, outcome.findings)}\n")
    for role in outage_roles():
        print(f"{role.capitalize()}, outage\n{table(role, outcome.findings, outage=True)}\n")
    for problem in outcome.problems:
        print(f"problem: {problem}")
    print(total(outcome.findings, len(outcome.problems)))
    if options.write and not outcome.problems:
        options.write.write_text(page(outcome.findings, 0), encoding="utf-8")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
