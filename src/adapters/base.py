"""The interface between the pipeline and any model: what is asked, what comes back, how a call can fail.

An adapter does three things: map a `ModelRequest` to its provider's wire format, read the response into a
`ModelReply`, and classify what went wrong as a `CallFailure`. The gateway retries, waits and stores;
an adapter never does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from ..records.model_name import split_name
from ..records.target import Effort, SearchOptions, WebSearch
from ..schemas import CallOutcome, Usage
from ..store.strict_json import fingerprint, sha256

ReplyOutcome = Literal["ok", "refused", "blocked", "truncated", "empty"]
FailureOutcome = Literal["transient", "timeout", "rate_limited", "malformed", "permanent", "denied"]
RETRYABLE: frozenset[CallOutcome] = frozenset({"transient", "timeout", "rate_limited", "malformed"})
"""Outcomes worth another attempt. `denied` stops the run; every other one is final."""

_PLAIN_NUMBER = re.compile(r"None|[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class Message:
    """One message of the conversation that a model is sent."""

    role: Literal["user", "assistant"]
    content: str
    stable: int = 0
    """How many leading characters of `content` are equal in all calls of this role and scenario, so that a provider
    may read them from its cache. Not part of what the call says: a request with other values has the same hash."""
    blocks: tuple[dict[str, Any], ...] = ()
    """A reply of a target that searches, in the provider's own form, as it wants it back in the next request. Empty:
    `content` is all there is."""

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {"role": self.role, "content": self.content}
        return {**said, "blocks": list(self.blocks)} if self.blocks else said


@dataclass(frozen=True)
class About:
    """The reply that a judge's call is about, as a form shows it to a person."""

    earlier: tuple[str, ...]
    """Questions that were asked before."""
    question: str
    reply: str


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """One call as the pipeline wants it, before any provider's wire format."""

    model: str
    """`provider:model`, as the user named it."""
    api_id: str = ""
    """The id the provider knows the model by, where it is not what the user wrote."""
    messages: tuple[Message, ...]
    system: str | None = None
    temperature: float | None = None
    max_tokens: int
    """Of all that is written, with reasoning."""
    seed: int
    effort: Effort | None = None
    """How much to reason; None: as the provider does by default."""
    search: SearchOptions | None = None
    """How the model may search the web; None: not at all."""
    response_schema: dict[str, Any] | None = None
    """The JSON Schema a judge's answer must fit; None where free text is wanted."""
    prompt_sha256: str | None = None
    """The fingerprint of the prompt file behind `system`, for the record. Never sent."""
    hint: str = ""
    """For `fake:` targets only: `scenario_id/turn_id` or `scenario_id@variant/turn_id`, by which canned replies are
    found. Never sent to a provider."""
    folder: str = field(default="", compare=False)
    """For `transcript:` targets only: where their conversations are. Never sent."""
    check: Callable[[str], tuple[str, ...]] | None = field(default=None, compare=False, repr=False)
    """What is wrong with an answer to this, for a person, who can correct it before it is given. Never sent."""
    about: About | None = field(default=None, compare=False, repr=False)
    """For a person's form only. Never sent."""

    @property
    def may_be_cached(self) -> bool:
        """Whether a provider may be told what to cache: a judge's call. A target is called as people call it."""
        return self.response_schema is not None or any(message.stable for message in self.messages)

    @property
    def most_searches(self) -> int:
        """As far as the provider takes a limit."""
        return self.search.max_searches if self.search else 0

    @property
    def sent_as(self) -> str:
        """The model id that goes over the wire."""
        return self.api_id or split_name(self.model).model

    def as_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "model": self.model,
            "api_id": self.sent_as,
            "system": self.system,
            "messages": [message.as_json() for message in self.messages],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
        }
        if self.effort:
            said["effort"] = self.effort
        if self.search:
            said["search"] = self.search.model_dump(mode="json")
        return said

    @cached_property
    def characters(self) -> int:
        """Of all that is sent to be read."""
        schema = len(str(self.response_schema)) if self.response_schema else 0
        return sum(map(_characters, self.messages)) + len(self.system or "") + schema

    def sha256(self) -> str:
        """What the call says, by which a replay knows it again. The schema is left out: its text differs between
        versions of the library that writes it, and a reviewer may have another one."""
        if not _PLAIN_NUMBER.fullmatch(str(self.temperature)):
            return fingerprint(self.as_json())
        return sha256(msgspec.json.encode(self.as_json(), order="sorted"))  # the same bytes, several times faster


def _characters(message: Message) -> int:
    return len(msgspec.json.encode(message.blocks)) if message.blocks else len(message.content)


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """What came back: an answer, or one of the ways a provider says it has none."""

    outcome: ReplyOutcome
    text: str
    sent: Any
    received: Any
    stop_reason: str | None = None
    served_model: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    not_applied: tuple[str, ...] = ()
    search: WebSearch | None = None
    """What was searched for this reply."""
    address: str | None = None
    """Where the request was sent, without query, name or password."""
    api_version: str | None = None


class CallFailure(Exception):  # noqa: N818 - a classified outcome of a call, not an error of the program
    """A call that brought no reply. `outcome` decides whether it is tried again; all of it goes to the journal."""

    def __init__(
        self,
        outcome: FailureOutcome,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        sent: Any = None,
        received: Any = None,
        request_id: str | None = None,
        not_applied: tuple[str, ...] = (),
        address: str | None = None,
        api_version: str | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome: FailureOutcome = outcome
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.sent = sent
        self.received = received
        self.request_id = request_id
        self.not_applied = not_applied
        self.address = address
        self.api_version = api_version


class Adapter(Protocol):
    """One provider. Made once per run, without opening a connection; its calls run concurrently."""

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        """Make one attempt, which may take `timeout_s` in all. Raise only `CallFailure` when there is no reply."""
        ...

    async def aclose(self) -> None:
        """Close connections, at the end of a run. Closing twice does no harm."""
        ...


@dataclass(frozen=True)
class BatchLimits:
    """The most that fits into one batch."""

    requests: int
    size: int
    """Bytes of all bodies."""


@dataclass(frozen=True)
class BatchRequest:
    """One line of a batch."""

    custom_id: str
    request: ModelRequest


@dataclass(frozen=True)
class KnownBatch:
    """A batch that a provider has accepted."""

    batch: str
    """The provider's id of it."""
    ends: str | None = None
    """When the provider ends it at the latest, as far as it says."""


@dataclass(frozen=True, kw_only=True)
class LostBatch:
    """A batch that was sent, or was about to be sent, without a word from the provider."""

    intent: str
    lines: int
    since: datetime
    others: Collection[str]
    """Ids of batches that are known to be other ones."""


@dataclass(frozen=True)
class FoundBatch:
    """What a provider knows of a batch whose acceptance we did not see."""

    known: KnownBatch | None
    undecided: bool = False
    """True if another batch may be the one; only its results will tell."""


@dataclass(frozen=True)
class BatchState:
    """How far a batch is."""

    name: str
    """As the provider calls it."""
    ended: bool
    failed: str | None = None
    """The provider's reason, if it refused the batch as a whole, so that there are no results."""


@dataclass(frozen=True, kw_only=True)
class BatchReply:
    """What came back for one line of a batch: a response with its status, or a problem."""

    custom_id: str
    status: int | None = None
    content: bytes | None = None
    """The response body, verbatim."""
    request_id: str | None = None
    problem: str | None = None
    """Why the line has no response: the batch expired or was canceled before its turn, for example."""


class Batches(Protocol):
    """A provider's batch API. Methods raise only `CallFailure`."""

    limits: BatchLimits

    def body(self, request: ModelRequest) -> bytes:
        """The request body, exactly as a call of its own would send it."""
        ...

    async def send(self, intent: str, requests: Sequence[BatchRequest]) -> KnownBatch:
        """Send a batch that our journal calls `intent`; all its requests are to one model."""
        ...

    async def find(self, lost: LostBatch) -> FoundBatch:
        """Look for a batch that may have been accepted."""
        ...

    async def state(self, batch: str, lines: int) -> BatchState: ...

    async def results(self, batch: str, custom_ids: Sequence[str]) -> list[BatchReply]:
        """The lines of a batch that has ended, in any order; lines may be missing."""
        ...

    def read(self, request: ModelRequest, reply: BatchReply) -> ModelReply | CallFailure:
        """Read a line exactly as the response to a call of its own."""
        ...


@runtime_checkable
class HasBatches(Protocol):
    """What an adapter of a plugin may also offer."""

    def batches(self) -> Batches | None:
        """The provider's batch API; None if this server has none."""
        ...


@runtime_checkable
class ChecksModels(Protocol):
    """What an adapter may also offer: refusing a model before anything is spent."""

    def check(self, model: str) -> None:
        """Raise `InputError` if there is no such model; `model` is the part after `provider:`."""
        ...


def verbatim(body: bytes) -> Any:
    """A response body as the journal can keep it, without any change.

    Args:
        body: the bytes that a server sent.

    Returns:
        The text, if it is UTF-8; otherwise a dict with its base64 form.

    Raises:
        Nothing.

    Example:
        >>> import medicare_eval as me
        >>> me.verbatim(b"ok"), me.verbatim(b"\\xff")
        ('ok', {'base64': '/w=='})
    """
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}
