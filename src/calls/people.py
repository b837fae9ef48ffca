"""Questions to people: `human:r1` judges like a model, but nobody knows when.

A call to a person waits here. While a form is open (`attended`), it waits as long as it must. Otherwise the run goes as
far as it can without the person, and then stops and says what waits for whom. What waits is not stored: a resumed run
asks the same questions again, and what was answered is in its journal.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..adapters.base import ModelRequest
from ..records.model_name import split_name
from ..store.strict_json import derive_seed
from ..text.count import counted
from .stop import Stop, Stopping, pause

QUIET_S = 0.3
"""Nothing else of a run goes on if nothing has happened for so long."""


@dataclass(frozen=True, eq=False)
class WaitingCall:
    """A call that waits for a person."""

    name: str
    """Of the call, with its attempt."""
    person: str
    request: ModelRequest
    answer: asyncio.Future[str]


def person_asked(model: str, trial: str, number: int) -> str:
    """Who is asked: the person named, or one of several (`human:r1+r2+r3`), by the trial and the number of the judge.

    So each of several people gets a part of the trials, and two judges of one trial are never the same person.
    """
    people = split_name(model).model.split("+")
    return people[(derive_seed(model, trial) + number) % len(people)]


class People:
    """Where calls to people wait. For one run and one event loop."""

    def __init__(self, *, attended: bool = False) -> None:
        """`attended`: a form is open, so that the run waits."""
        self.attended = attended
        self._busy = 0
        self._changes = 0
        self._watching: asyncio.Task[None] | None = None
        self._stop: Stop | None = None
        self.questions: dict[str, WaitingCall] = {}
        """Those without an answer, by name, in the order in which they were asked."""
        self.on_change: Callable[[], None] = lambda: None
        self._kept: dict[str, asyncio.Future[bool]] = {}
        self.needed = False
        """Whether the run stopped because nothing goes on without people."""

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Around every call that is not to a person."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    async def answer(self, name: str, person: str, request: ModelRequest, stop: Stop) -> str:
        """What the person says. Raises `Stopping` if the run stops before that."""
        stop.check()
        if self._stop is None:
            self._stop = stop
            stop.listen(lambda: self.give_up(Stopping(stop.reason)))
        question = WaitingCall(name, person, request, asyncio.get_running_loop().create_future())
        self.questions[name] = question
        self._count(0)
        if not self.attended and self._watching is None:
            self._watching = asyncio.create_task(self._stop_when_idle(stop))
        try:
            said = await question.answer
        except BaseException:
            self.kept(name, on_disk=False)
            raise
        finally:
            del self.questions[name]
            self._count(0)
        return said

    async def submit(self, name: str, said: str) -> bool:
        """Answer a question; True once the answer is in the journal, False if it did not get there."""
        question = self.questions.get(name)
        if question is None or question.answer.done():
            return False
        kept: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._kept[name] = kept
        question.answer.set_result(said)
        return await kept

    def kept(self, name: str, *, on_disk: bool) -> None:
        """The answer to this question is in the journal, or could not be written."""
        waiting = self._kept.pop(name, None)
        if waiting and not waiting.done():
            waiting.set_result(on_disk)

    def waiting(self) -> Counter[str]:
        """Questions by person."""
        return Counter(one.person for one in self.questions.values())

    def _count(self, change: int) -> None:
        self._busy += change
        self._changes += 1
        self.on_change()

    def give_up(self, error: BaseException) -> None:
        """Nobody is asked any more, because answers cannot be kept."""
        for question in self.questions.values():
            if not question.answer.done():
                question.answer.set_exception(error)

    async def _stop_when_idle(self, stop: Stop) -> None:
        while not stop.event.is_set():
            before = self._changes
            await pause(stop, QUIET_S)
            if self._busy == 0 and self._changes == before and self.questions:
                self.needed = True
                stop.ask(waits_for(self.waiting()))


def waits_for(waiting: Counter[str]) -> str:
    """`12 questions wait for r1, and 3 for r2.`"""
    first, *others = sorted(waiting.items())
    parts = [f"{counted(first[1], 'question waits', 'questions wait')} for {first[0]}"]
    parts += [f"{number} for {person}" for person, number in others]
    return f"{', '.join(parts[:-1])}, and {parts[-1]}." if others else f"{parts[0]}."
