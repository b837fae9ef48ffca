"""Ask a judge for JSON until it fits the contract, up to a set number of times.

The schema is sent in the provider's own way; if a server rejects it, the judge is asked once more without it. Every
answer is checked three times: for the canary that the judge was given (see `text.fence`), against the record's schema,
and by the agent's own rules (`check`). The judge is then sent the problems and asked again; each ask is a separate call
in the journal. When all asks are used up, the judge has failed. A failure is an outcome, never a verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from ..adapters.base import About, Message, ModelRequest
from ..records.result import CALL_FAILED
from ..schemas import CallParameters, CallRecord, Decision, Persona, Record, Verdict
from ..store.strict_json import StrictJSONError, derive_seed, encode, loads
from ..text.fence import reply_schema, wrap

Reply = TypeVar("Reply", bound=Record)
Value = TypeVar("Value")
MAX_REPLY_CHARS = 2_000_000
SCHEMA_REFUSED = frozenset({400, 422})
"""Statuses that may mean that a server rejects the response schema."""
ASK_AGAIN = "Answer again with JSON that fixes these problems."
REST_ACCEPTED = "Entries that are not named here are accepted: leave them out."


@dataclass(frozen=True, kw_only=True)
class JudgeClient:
    """One judge in one role, ready to be asked."""

    model: str
    system: str
    prompt_sha256: str | None = None
    api_id: str = ""
    seed: int
    parameters: CallParameters
    max_asks: int
    about: About | None = None
    call: Callable[[int, ModelRequest], Awaitable[CallRecord]]
    """Makes the call with this number (0 is the first ask) and returns its record."""


@dataclass(frozen=True)
class JudgeAnswer(Generic[Value]):
    """What was accepted of a judge's replies to one question, and what is wrong with the rest."""

    value: Value | None = None
    """None if nothing was accepted."""
    problems: tuple[str, ...] = ()
    """In words that the judge can act on; empty if the answer is complete."""

    @property
    def failure(self) -> str | None:
        return "; ".join(self.problems) or None


Check = Callable[[Reply, Value | None], JudgeAnswer[Value]]
"""Checks a reply, given what was accepted of earlier replies to the same question."""


async def ask(
    client: JudgeClient,
    payload: Record,
    reply_type: type[Reply],
    check: Check[Reply, Value],
    *,
    longest: int,
    first: int = 0,
    keeps_entries: bool = False,
) -> JudgeAnswer[Value]:
    """Ask until `check` finds no problem or all asks are used up.

    `longest` is the most entries that the answer's list can need. `first` is the number of the first ask, for a client
    that is asked more than one question. `keeps_entries`: `check` keeps the entries that pass, and only the rest is
    asked for again.
    """
    wrapped = wrap(payload, derive_seed(client.seed, "fence", first))
    question = Message("user", wrapped.text, wrapped.stable)
    request = ModelRequest(
        model=client.model,
        api_id=client.api_id,
        system=client.system,
        prompt_sha256=client.prompt_sha256,
        messages=(question,),
        temperature=client.parameters.temperature,
        max_tokens=client.parameters.max_tokens,
        seed=client.seed,
        response_schema=reply_schema(reply_type, longest),
        about=client.about,
    )
    answer: JudgeAnswer[Value] = JudgeAnswer()
    for number in range(first, first + client.max_asks):
        checked = _Checked(reply_type, check, wrapped.canary, answer.value)
        asked = replace(request, seed=derive_seed(client.seed, number), check=checked.problems)
        record = await client.call(number, asked)
        if record.text is None:
            answer = JudgeAnswer(answer.value, (f"{CALL_FAILED}{record.outcome}: {record.error}",))
            if request.response_schema is None or record.status not in SCHEMA_REFUSED:
                return answer
            # A server that takes no schema may still answer in JSON: the prompt asks for it too.
            request = replace(request, response_schema=None)
            continue
        before = answer.value
        if record.outcome == "ok":
            answer = checked.answer(record.text)
        else:
            answer = JudgeAnswer(before, (f"your answer was {record.outcome}, not JSON",))
        if not answer.problems:
            return answer
        read = answer.value is not before  # the problems of an answer that was not JSON name no entries
        instruction = f"{ASK_AGAIN} {REST_ACCEPTED}" if keeps_entries and read and answer.value else ASK_AGAIN
        again = encode({"problems": answer.problems, "instruction": instruction}).decode("utf-8")
        said = Message("assistant", record.text or "(no answer)")
        request = replace(request, messages=(question, said, Message("user", again)))
    return JudgeAnswer(answer.value, (f"no usable answer after {client.max_asks} asks: {answer.failure}",))


@dataclass(frozen=True)
class _Checked(Generic[Reply, Value]):
    """What an answer must fit, given what was accepted of earlier answers to the same question."""

    reply_type: type[Reply]
    check: Check[Reply, Value]
    canary: str
    accepted: Value | None

    def answer(self, text: str) -> JudgeAnswer[Value]:
        try:
            return self.check(parse(text, self.reply_type, self.canary), self.accepted)
        except StrictJSONError as error:
            return JudgeAnswer(self.accepted, (str(error),))
        except ValidationError as error:
            named = [(".".join(str(part) for part in e["loc"]) or "answer", e["msg"]) for e in error.errors()[:5]]
            return JudgeAnswer(self.accepted, tuple(f"{where}: {what}" for where, what in named))

    def problems(self, text: str) -> tuple[str, ...]:
        return self.answer(text).problems


def parse(text: str, reply_type: type[Reply], canary: str) -> Reply:
    """Read a judge's answer: one strictly valid JSON object, bare or in a code fence, with the right canary."""
    if len(text) > MAX_REPLY_CHARS:
        raise StrictJSONError(f"the answer is longer than {MAX_REPLY_CHARS:,} characters")
    body = text.strip()
    if body.startswith("```") and body.endswith("```") and len(body) > 6:
        body = body[3:-3].removeprefix("json").strip()
    document = loads(body)
    if isinstance(document, dict) and document.pop("canary", None) != canary:
        raise StrictJSONError('the canary is wrong or missing; copy the value of "canary" into the field "canary"')
    return reply_type.model_validate_json(encode(document))


Entry = TypeVar("Entry", bound=Decision | Verdict)
"""One entry of a reply, about one claim."""


def one_per_claim(
    entries: Sequence[Entry],
    claim_ids: Collection[str],
    accepted: Mapping[str, Entry] | None,
    violations: Callable[[Entry], list[str]],
) -> JudgeAnswer[dict[str, Entry]]:
    """Check that there is one entry per claim; add the entries that break no rule to those accepted before."""
    kept = dict(accepted or {})
    counts = Counter(entry.claim_id for entry in entries)
    problems = []
    for entry in entries:
        claim_id = entry.claim_id
        if claim_id not in claim_ids:
            problems.append(f"{claim_id[:80]} is not one of the claims")
        elif claim_id not in kept:
            found = [*violations(entry), *(["is in your answer more than once"] if counts[claim_id] > 1 else [])]
            problems += [f"{claim_id} {problem}" for problem in found]
            if not found:
                kept[claim_id] = entry
    missing = [claim_id for claim_id in claim_ids if claim_id not in kept and not counts[claim_id]]
    return JudgeAnswer(kept, (*problems, *(f"{claim_id} is missing from your answer" for claim_id in missing)))


@dataclass(frozen=True)
class AskedTurn:
    """What a reply answers: the question, and what is known about the person who asked it."""

    question: str
    plan_year: int
    earlier: tuple[str, ...] = ()
    """What the same person asked before, in the same conversation."""
    persona: tuple[str, ...] = ()
    """What the scenario says about the person."""
    lives_in: str | None = None
    """The person's state."""

    @property
    def given(self) -> tuple[str, ...]:
        """Everything that supplies figures to an answer: a person's own numbers, and the year that is meant."""
        year = f"{self.plan_year} plans"  # a bare number could be money
        return (self.question, *self.earlier, *self.persona, year)


def about(persona: Persona) -> tuple[str, ...]:
    """What a persona says, as text. A ZIP code is no figure: 00000 does not state $0."""
    return tuple(_leaves(persona.model_dump(mode="json", exclude={"zip_code"})))


def state_of(persona: Persona) -> str | None:
    """The persona's state; None if the scenario gives none as text."""
    return persona.state if isinstance(persona.state, str) else None


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, float) and value.is_integer():
        yield f"{value:.0f}"
    elif value is not None and not isinstance(value, bool):
        yield str(value)
