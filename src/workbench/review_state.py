"""A review while it goes on: what each person is asked, in which order, and what they have said.

The review is an ordinary run whose calls to people wait (`calls.people`). Everything here is made from the questions
that wait and from the journal, so a server that was killed finds everything again.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from .. import storage
from ..agents.ask import AskedTurn
from ..agents.verifier import Shown, off_topic
from ..api.runs import resume_with_people
from ..calls.people import People, WaitingCall
from ..calls.stop import Stop
from ..errors import IncompleteRun
from ..planning.trials import Trial, trials_of
from ..reading import Run
from ..records.model_name import is_person, split_name
from ..records.target import TargetSettings
from ..schemas import (
    AdjudicatorInput,
    AdjudicatorReply,
    ClaimInView,
    Decision,
    PlannedScenario,
    TrialResult,
    Verdict,
    VerifierInput,
    VerifierOutput,
)
from ..store.strict_json import derive_seed
from ..text.fence import Unwrapped, unwrap


@dataclass(frozen=True)
class QuestionPlace:
    """Where in the run a question belongs."""

    trial: str
    stage: str
    turn: str

    @classmethod
    def of(cls, call: str) -> QuestionPlace:
        return cls(*call.split("|")[:3])


@dataclass(frozen=True)
class Kept:
    """An answer that is in the journal."""

    call: str
    person: str
    text: str

    @property
    def place(self) -> QuestionPlace:
        return QuestionPlace.of(self.call)

    def verdicts(self) -> tuple[Verdict, ...]:
        document = json.loads(self.text)
        document.pop("canary", None)
        return VerifierOutput.model_validate_json(json.dumps(document)).verdicts


@dataclass(frozen=True)
class Task:
    """A question to a person, as a form shows it."""

    name: str
    person: str
    task_id: str
    """Names the task in addresses. It tells nothing of the target."""
    sent: Unwrapped
    question: WaitingCall

    @cached_property
    def place(self) -> QuestionPlace:
        return QuestionPlace.of(self.name)

    @property
    def settles(self) -> bool:
        """Whether it asks an adjudicator."""
        return self.place.stage == "adjudicator"

    @cached_property
    def shown(self) -> VerifierInput:
        return (AdjudicatorInput if self.settles else VerifierInput).model_validate_json(self.sent.input)

    @property
    def claim(self) -> ClaimInView:
        return self.shown.claims[0]

    def answer(self, said: Verdict) -> str:
        """The answer as a judge gives it."""
        reply: AdjudicatorReply | VerifierOutput = VerifierOutput(verdicts=(said,))
        if self.settles:
            decision = Decision(claim_id=said.claim_id, label=said.label, notes=said.notes)
            reply = AdjudicatorReply(decisions=(decision,))
        return json.dumps({"canary": self.sent.canary, **reply.model_dump(mode="json")}, ensure_ascii=False)

    def problems(self, said: Verdict) -> list[str]:
        """What is wrong with an answer, by the rules for every judge."""
        check = self.question.request.check
        return [one.removeprefix(f"{said.claim_id} ") for one in check(self.answer(said))] if check else []

    def off_topic(self, said: Verdict) -> bool:
        """Whether the facts cited seem to be about something else. A person is asked, and may insist."""
        shown = self.shown
        if isinstance(shown, AdjudicatorInput):
            return False
        asked = AskedTurn(plan_year=shown.plan_year, question=shown.question, earlier=shown.earlier_questions)
        return off_topic(said, shown.claims[0], Shown(asked, shown.answer_key, shown.background_facts))


@dataclass(eq=False)
class ReviewState:
    """One review. For one event loop."""

    folder: Path
    people: People = field(default_factory=lambda: People(attended=True))
    stop: Stop = field(default_factory=Stop)
    failure: Exception | None = None
    complete: bool = False
    on_ready: Callable[[], None] = lambda: None
    """Called once the run has asked what it can ask."""
    on_complete: Callable[[], None] = lambda: None
    on_failure: Callable[[], None] = lambda: None
    left: Counter[str] = field(default_factory=Counter)
    """When it stopped: questions by person."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def __post_init__(self) -> None:
        self.manifest = storage.read_manifest(self.folder)
        self._tasks: dict[str, Task] = {}
        self.said: dict[str, Kept] = {}
        """Answers of people, by the name of the call."""
        for record in storage.read_calls(self.folder, self.manifest):
            if is_person(record.model):
                self.said[record.call] = Kept(record.call, record.served_model or "", record.text or "{}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Everybody who takes part."""
        people = filter(is_person, self.manifest.plan.judge_models())
        return tuple(dict.fromkeys(name for model in people for name in split_name(model).model.split("+")))

    @cached_property
    def _trials(self) -> dict[str, Trial]:
        return {trial.trial_id: trial for trial in trials_of(self.manifest)}

    @cached_property
    def planned(self) -> dict[str, PlannedScenario]:
        """The script of each trial."""
        return {name: trial.planned for name, trial in self._trials.items()}

    def settings_of(self, trial_id: str) -> TargetSettings:
        """Of the target of a trial."""
        return self.manifest.plan.settings_of(self._trials[trial_id].target)

    @cached_property
    def trials(self) -> dict[str, TrialResult]:
        """The trials under review as the judges left them; none if this is no review, or if their run is gone."""
        if self.manifest.transcripts is None:
            return {}
        earlier = storage.earlier_folder(self.folder, self.manifest)
        if not earlier.is_dir():
            return {}
        return {one.trial_id: one for one in Run(earlier).trials() if one.trial_id in self.planned}

    def ends_with(self, end: Callable[[], None]) -> None:
        """What to call if the run fails."""
        self.on_failure = end

    async def run(self) -> None:
        """Carry the review out until it is complete or stops."""
        try:
            await resume_with_people(self.folder, self.people, {}, stop=self.stop)
            self.complete = True
            self.on_complete()
        except IncompleteRun:
            pass
        except Exception as error:
            self.failure = error
            self.on_failure()

    def tasks(self, person: str) -> list[Task]:
        """What waits for a person, in an order of their own that stays the same from day to day."""
        mine = [self._task(one) for one in self.people.questions.values() if one.person == person]
        return sorted(mine, key=self._order)

    def _order(self, task: Task) -> int:
        return derive_seed(self.manifest.plan.seed, "order", task.person, task.name)

    def task(self, person: str, wanted: str) -> Task | None:
        return next((one for one in self.tasks(person) if one.task_id == wanted), None)

    def task_id(self, name: str) -> str:
        """An id that only this start of the program can tell from a name, which contains the target."""
        return hmac.new(self.secret, name.encode(), "sha256").hexdigest()[:16]

    def done(self, person: str) -> list[Kept]:
        """What a person has answered, in the order in which they did."""
        return [kept for kept in self.said.values() if kept.person == person]

    def answered(self, person: str, wanted: str) -> Kept | None:
        return next((one for one in self.done(person) if self.task_id(one.call) == wanted), None)

    def same_words_wait(self, person: str, place: QuestionPlace, claims: Collection[str]) -> bool:
        """Whether this person has still to judge one of these claims in the same words, in another trial."""
        scenario = self.planned[place.trial].scenario.scenario_id
        return any(
            task.place.turn == place.turn
            and self.planned[task.place.trial].scenario.scenario_id == scenario
            and task.shown.claims[0].text in claims
            for task in self.tasks(person)
        )

    async def save(self, task: Task, said: Verdict) -> bool:
        """Keep an answer; True once it is on disk."""
        text = task.answer(said)
        if not await self.people.submit(task.name, text):
            return False
        self.said[task.name] = Kept(task.name, task.person, text)
        return True

    def verdicts(self, place: QuestionPlace, claim_id: str) -> Iterator[tuple[str, Verdict]]:
        """What reviewers said about a claim so far, by person."""
        for kept in self.said.values():
            if kept.place == replace(place, stage="verifier"):
                yield from ((kept.person, said) for said in kept.verdicts() if said.claim_id == claim_id)

    def claim_text(self, place: QuestionPlace, claim_id: str) -> str:
        result = self.trials.get(place.trial)
        return next((one.text for one in result.claims if one.claim_id == claim_id), claim_id) if result else claim_id

    def doubts(self, trial: str, claim_id: str) -> list[str]:
        """What readers had said of the judges' verdict on a claim."""
        selected = self.manifest.transcripts.selected if self.manifest.transcripts else None
        marks = selected.doubted if selected else ()
        return [one.note for one in marks if (one.trial_id, one.claim_id) == (trial, claim_id)]

    def _task(self, question: WaitingCall) -> Task:
        known = self._tasks.get(question.name)
        if known is None or known.question is not question:
            sent = unwrap(question.request.messages[0].content)
            known = Task(question.name, question.person, self.task_id(question.name), sent, question)
            self._tasks[question.name] = known
        return known


async def wait_until_asked(state: ReviewState, running: asyncio.Task[None], quiet_s: float = 0.2) -> None:
    """Wait until the run has asked what it can ask, or has ended."""
    before = -1
    while not running.done() and (not state.people.questions or before != len(state.people.questions)):
        before = len(state.people.questions)
        await asyncio.sleep(quiet_s)
