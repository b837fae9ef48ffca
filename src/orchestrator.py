"""The order of the stages of a trial. This is the only file that knows it.

    scenario -> questioner -> target, turn by turn, with its real replies in context
             -> per reply, as soon as it is there: all judges (`runner/judge_turn.py`)
             -> scorer by code, per verifier and for the final verdicts -> one line in results.jsonl, in plan order

Trials run concurrently, and each is a pure function of the plan and the replies from the gateway. So neither
concurrency nor a crash in between can change a result. `execute` serves `run` and `resume`; `recompute` serves
`replay`, through a gateway that can only look calls up.
"""

from __future__ import annotations

if __name__ == "__main__":  # first, because `--help` needs none of the imports below
    from .cli.parser import main

    raise SystemExit(main())

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import storage
from .adapters.base import Message, ModelRequest
from .adapters.web_search import PAUSED, blocks_of, complete
from .agents import questioner
from .agents.ask import AskedTurn, JudgeAnswer, about, state_of
from .agents.verifier import key_in_view
from .calls.batches import make_batcher, with_open_batches
from .calls.breaker import PROBE_TRIAL, probe_requests
from .calls.gateway import CallId, Gateway, LiveGateway, ReplayGateway, ReusedCalls
from .calls.resources import CallResources
from .calls.stop import Stopping
from .errors import IntegrityError
from .inputs.sources.snapshot import Snapshot
from .planning.trials import Trial, in_noise_sample, trials_of
from .records.model_name import family, family_of_id
from .records.target import WebCitation, WebSearch
from .runner.call_resources import JudgeClients
from .runner.judge_turn import Assertions, Turn, TurnJudge, broken, finish
from .runner.schedule import TrialSlots, run_in_plan_order
from .schemas import (
    CallOutcome,
    CallRecord,
    Exchange,
    LimitsNote,
    Manifest,
    QuestionerInput,
    QuestionerOutput,
    RunLimits,
    RunPlan,
    Seal,
    TrialResult,
    TurnOutcome,
    Usage,
)
from .scoring.result import ENDS_CONVERSATION, TurnJudgment, assemble
from .store.failpoints import Failpoints
from .text.coverage import has_content


class TrialRunner:
    """Runs the trials of a plan through a gateway."""

    def __init__(self, plan: RunPlan, gateway: Gateway) -> None:
        self.plan = plan
        self._gateway = gateway
        self._judges = JudgeClients(gateway, plan.prompts, plan.api_ids, plan.parameters_of, plan.policy.max_asks)
        snapshot = Snapshot(plan.citation_checks.pages) if plan.citation_checks else None
        by_judges = {
            judges: TurnJudge(plan.for_target(targets[0]), self._judges, snapshot)
            for judges, targets in plan.groups_of_judges()
        }
        self._judge = {target: by_judges[plan.judges_of(target)] for target in plan.targets}
        self._questions: dict[str, asyncio.Task[JudgeAnswer[QuestionerOutput]]] = {}

    async def run_trial(self, trial: Trial) -> TrialResult:
        turns = await self._turns(trial)
        if turns.value is None:
            return assemble(self.plan, trial, [], [], [], questioner_failure=turns.failure)
        exchanges: list[Exchange] = []
        records: list[CallRecord] = []
        judging: list[asyncio.Task[TurnJudgment]] = []
        asserted = Assertions()
        try:
            async for exchange, record in self._converse(trial, turns.value):
                exchanges.append(exchange)
                if record:
                    records.append(record)
                if exchange.outcome == "answered":
                    turn = self._turn(trial, exchanges, tuple(records))
                    judging.append(asyncio.create_task(self._judge[trial.target].judge(turn, asserted.next_turn())))
        finally:
            await finish(judging)
        judgments = [task.result() for task in judging]
        try:
            return assemble(self.plan, trial, exchanges, records, judgments)
        except Exception as error:  # whatever a reply or a judge said: the trial has an outcome, and others go on
            one = judgments[0].turn_id if judgments else "-"
            faults = [broken(one, len(self.plan.for_target(trial.target).verifiers), error)]
            return assemble(self.plan, trial, exchanges, records, faults)

    async def _turns(self, trial: Trial) -> JudgeAnswer[QuestionerOutput]:
        """The questions; a rewording is made once and shared by all targets."""
        scenario = trial.planned.scenario
        seed = trial.question_seed(self.plan.seed)
        exact = questioner.question(QuestionerInput(scenario=scenario, seed=seed))
        if not self.plan.questioner or not scenario.variation_knobs.paraphrase:
            return JudgeAnswer(exact)
        if trial.questions_id not in self._questions:
            call = CallId(trial.questions_id, "questioner")
            families = tuple(family(target) for target in self.plan.targets)
            client = self._judges.client(
                "questioner", self.plan.questioner, call, seed=seed, families=families, records=[]
            )
            self._questions[trial.questions_id] = asyncio.create_task(questioner.paraphrase(client, exact))
        return await self._questions[trial.questions_id]

    async def _converse(
        self, trial: Trial, turns: QuestionerOutput
    ) -> AsyncIterator[tuple[Exchange, CallRecord | None]]:
        scripted = {turn.turn_id: turn for turn in trial.planned.scenario.scripted_turns}
        recorded = self.plan.settings_of(trial.target).recorded
        context: list[Message] = []
        last_reply: str | None = None
        ended = False
        for turn in turns.turns:
            group, condition = scripted[turn.turn_id].question_group, scripted[turn.turn_id].condition
            unasked: TurnOutcome | None = None
            if ended:
                unasked = "not_asked"
            elif not recorded and not questioner.holds(condition, last_reply):
                unasked = "skipped"
            if unasked:
                yield _exchange(turn.turn_id, group, turn.user_message, unasked, None), None
                continue
            asked = Message("user", turn.user_message)
            reply = await self._reply(trial, turn.turn_id, (*context, asked))
            record = reply.record
            assert record.outcome != "denied"  # it ends no call
            outcome: TurnOutcome = "answered" if record.outcome == "ok" else record.outcome
            if outcome == "answered" and not has_content(record.text or ""):
                outcome = "empty"
            if recorded and record.stop_reason == UNASKED:
                outcome = "not_asked" if questioner.holds(condition, last_reply) else "skipped"
            ended = outcome in ENDS_CONVERSATION
            last_reply = last_reply if outcome in ("not_asked", "skipped") else record.text
            if record.text:  # what the target wrote stays in its context; an exchange without words is left out
                context += [asked, Message("assistant", record.text, blocks=reply.blocks)]
            yield _exchange(turn.turn_id, group, turn.user_message, outcome, record), record

    async def _reply(self, trial: Trial, turn_id: str, messages: tuple[Message, ...]) -> TargetReply:
        """A target's reply. A provider may stop in the middle of a search; it is then asked to continue."""
        parameters, settings = self.plan.parameters_of(trial.target), self.plan.settings_of(trial.target)
        repetition = f"#{trial.repetition}" if settings.recorded else ""
        request = ModelRequest(
            model=trial.target,
            api_id=self.plan.api_ids.get(trial.target, ""),
            messages=messages,
            system=settings.system_prompt.text if settings.system_prompt else None,
            prompt_sha256=settings.system_prompt.sha256 if settings.system_prompt else None,
            temperature=parameters.temperature,
            max_tokens=parameters.max_tokens + settings.reasoning_tokens,
            effort=settings.reasoning_effort,
            search=settings.search,
            seed=trial.seed(self.plan.seed, "target", turn_id),
            hint=f"{trial.planned.name}/{turn_id}{repetition}",
            folder=settings.recorded.folder if settings.recorded else "",
        )
        parts: list[CallRecord] = []
        blocks: list[dict[str, Any]] = []
        for ask in range(MOST_PARTS):
            record = await self._gateway.call(CallId(trial.trial_id, "target", turn_id, ask=ask), request)
            parts.append(record)
            blocks += blocks_of(record) if settings.search else []
            if record.stop_reason != PAUSED:
                break
            so_far = Message("assistant", "".join(part.text or "" for part in parts), blocks=tuple(blocks))
            request = replace(request, messages=(*messages, so_far))
        return TargetReply(joined(parts), complete(blocks))

    def _turn(self, trial: Trial, exchanges: Sequence[Exchange], answered_by: tuple[CallRecord, ...]) -> Turn:
        """The last reply, ready to be judged."""
        scenario, last = trial.planned.scenario, exchanges[-1]
        earlier = tuple(one.user_message for one in exchanges[:-1] if one.outcome not in ("skipped", "not_asked"))
        return Turn(
            trial_id=trial.trial_id,
            turn_id=last.turn_id,
            asked=AskedTurn(
                last.user_message, self.plan.plan_year, earlier, about(scenario.persona), state_of(scenario.persona)
            ),
            reply=last.reply or "",
            key=key_in_view(scenario.answer_key),
            seed=trial.seed(self.plan.seed),
            state=trial.planned.state_code,
            families=_families(trial, answered_by),
            repeats=self.plan.judge_repeats if in_noise_sample(self.plan, trial) else 0,
            search=last.search,
        )


def _families(trial: Trial, records: Sequence[CallRecord]) -> tuple[str, ...]:
    """The target's family as requested and as served."""
    served = [family_of_id(record.served_model) for record in records if record.served_model]
    return tuple(dict.fromkeys((family(trial.target), *served)))


def _exchange(
    turn_id: str, group: str | None, user_message: str, outcome: TurnOutcome, record: CallRecord | None
) -> Exchange:
    return Exchange(
        turn_id=turn_id,
        question_group=group,
        user_message=user_message,
        outcome=outcome,
        reply=record.text if record else None,
        detail=record.error if record else None,
        served_model=record.served_model if record else None,
        search=record.search if record else None,
    )


async def execute(
    folder: Path,
    manifest: Manifest,
    *,
    concurrency: int,
    resources: CallResources,
    on_call: Callable[[CallRecord], None],
    on_start: Callable[[int, int], None],
    on_trial: Callable[[], None],
    earlier: Path | None = None,
    limits: RunLimits | None = None,
    probe: bool = False,
    slots: TrialSlots | None = None,
) -> Seal:
    """Carry a run or a shard to its end from wherever it is. Raises `Stopping` if it was asked to stop before that.

    `limits`: what holds from now on, to be noted in the journal. `probe`: ask every model whether it answers first.
    `slots`: shared with the other shards of this process, instead of `concurrency`.
    """
    failpoints = Failpoints.from_environment()
    everything = trials_of(manifest)
    with storage.RunLock(folder):
        results = storage.Results(folder / storage.RESULTS, [trial.trial_id for trial in everything], failpoints)
        todo = everything[results.count :]
        if results.count and not (folder / storage.JOURNAL).exists():
            raise IntegrityError(f"{folder / storage.JOURNAL} is missing, but results were computed from it.")
        wanted = {trial.trial_id for trial in todo} | {trial.questions_id for trial in todo} | {PROBE_TRIAL}
        journal = storage.Journal(
            folder / storage.JOURNAL, storage.manifest_sha256(folder), wanted=wanted.__contains__, failpoints=failpoints
        )
        reused = _transcripts(earlier, manifest, wanted) if earlier else None
        batcher = make_batcher(journal, resources)
        if batcher or resources.people.attended:  # a few batches for all trials; a person may begin anywhere
            concurrency, slots = max(concurrency, len(todo)), None
        gateway = LiveGateway(journal, manifest.plan.policy, resources, on_call, reused, batcher=batcher)
        on_start(len(everything), results.count)

        try:
            await _note(journal, limits)
            if probe:
                gateway.probes.before_first_call(_probe_requests(manifest))
            await run_in_plan_order(
                TrialRunner(manifest.plan, gateway).run_trial,
                todo,
                slots or TrialSlots(concurrency),
                results.append,
                on_trial,
            )
            return storage.write_seal(folder, journal, results, failpoints)
        except Stopping as stopped:
            raise Stopping(with_open_batches(stopped, batcher)) from None
        finally:
            if batcher:
                await batcher.aclose()
            journal.close()
            results.close()
            if reused:
                reused.close()


async def _note(journal: storage.Journal, limits: RunLimits | None) -> None:
    if limits:
        await journal.append(LimitsNote(limits=limits, started=datetime.now(UTC).isoformat(timespec="seconds")))


async def begin(
    folder: Path,
    manifest: Manifest,
    resources: CallResources,
    on_call: Callable[[CallRecord], None],
    *,
    limits: RunLimits | None,
    probe: bool,
) -> None:
    """Note limits and ask models whether they answer, for a run whose trials are carried out in shards.

    The caller holds the run.
    """
    if not limits and not probe:
        return
    journal = storage.Journal(
        folder / storage.JOURNAL,
        storage.manifest_sha256(folder),
        wanted=PROBE_TRIAL.__eq__,
        failpoints=Failpoints.from_environment(),
    )
    try:
        await _note(journal, limits)
        if probe:
            await LiveGateway(journal, manifest.plan.policy, resources, on_call).probes.probe(_probe_requests(manifest))
    finally:
        journal.close()


def _probe_requests(manifest: Manifest) -> list[ModelRequest]:
    plan = manifest.plan
    called = {model: plan.api_ids.get(model, "") for model in manifest.models_called}
    return probe_requests(called, plan.parameters_of, plan.seed, plan.settings_of)


def _transcripts(earlier: Path, manifest: Manifest, wanted: set[str]) -> ReusedCalls:
    """The calls of an earlier run that this one reuses. It must be exactly the run that the manifest names."""
    named = manifest.transcripts
    assert named is not None
    found = storage.manifest_sha256(earlier), storage.file_sha256(earlier / storage.JOURNAL)
    if found != (named.manifest_sha256, named.journal_sha256):
        raise IntegrityError(f"{earlier} is not, or is no longer, the run whose transcripts this run judges.")
    recorded = storage.RecordedCalls(earlier / storage.JOURNAL, found[0], wanted.__contains__)
    return ReusedCalls(recorded, frozenset(named.stages))


async def recompute(
    manifest: Manifest, recorded: storage.RecordedCalls, todo: Sequence[Trial], sink: Callable[[bytes], None]
) -> None:
    """Recompute the results of these trials from the manifest and recorded calls alone. No adapter is used."""
    runner = TrialRunner(manifest.plan, ReplayGateway(recorded))
    await run_in_plan_order(runner.run_trial, todo, TrialSlots(1), sink, lambda: None)


# A target's reply that may have come in several parts.

MOST_PARTS = 6
"""A reply that is still paused after this many is cut off."""
UNASKED = "not_asked"
"""The stop reason of recorded conversations in which a question was not asked."""


@dataclass(frozen=True)
class TargetReply:
    record: CallRecord
    """The whole reply."""
    blocks: tuple[dict[str, Any], ...]
    """In the provider's form, as it wants them back."""


def joined(parts: Sequence[CallRecord]) -> CallRecord:
    """The parts of a reply as one record: the last, with the words, searches and tokens of all."""
    last = parts[-1]
    if len(parts) == 1 and last.stop_reason != PAUSED:
        return last
    # If the last part brought no reply, there is no reply: its words so far are in the journal.
    text = None if last.text is None else "".join(part.text or "" for part in parts)
    return last.model_copy(
        update={
            "outcome": _outcome(last, text or ""),
            "text": text,
            "search": _searches(parts),
            "usage": Usage(**{name: _total(parts, name) for name in Usage.model_fields}),
            "not_applied": tuple(dict.fromkeys(name for part in parts for name in part.not_applied)),
        }
    )


def _outcome(last: CallRecord, text: str) -> CallOutcome:
    if last.stop_reason == PAUSED:
        return "truncated"
    return "ok" if last.outcome == "empty" and text.strip() else last.outcome


def _total(parts: Sequence[CallRecord], name: str) -> int | None:
    counts = [getattr(part.usage, name) for part in parts]
    return None if None in counts else sum(counts)


def _searches(parts: Sequence[CallRecord]) -> WebSearch | None:
    found = [part.search for part in parts if part.search]
    if not found:
        return None
    return WebSearch(
        searches=sum(one.searches for one in found),
        queries=_all(found, lambda one: one.queries),
        found=tuple(dict.fromkeys(_all(found, lambda one: one.found))),
        citations=tuple(_moved(parts)),
        errors=_all(found, lambda one: one.errors),
    )


def _all(found: Sequence[WebSearch], listed: Callable[[WebSearch], tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(text for one in found for text in listed(one))


def _moved(parts: Sequence[CallRecord]) -> Iterator[WebCitation]:
    """Citations of all parts, at their places in the whole reply."""
    before = 0
    for part in parts:
        for one in part.search.citations if part.search else ():
            at = {name: place + before for name in ("start", "end") if (place := getattr(one, name)) is not None}
            yield one.model_copy(update=at)
        before += len(part.text or "")
