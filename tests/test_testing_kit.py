"""`medicare_eval.testing`: our own adapters pass, and each planted fault is found for what it is."""

from __future__ import annotations

import asyncio
import doctest
import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from src.adapters.anthropic_adapter import AnthropicAdapter
from src.adapters.base import CallFailure, ModelReply, ModelRequest
from src.adapters.google_adapter import GoogleAdapter
from src.adapters.grok_adapter import GrokAdapter
from src.adapters.openai_adapter import CompatibleAdapter, OpenAIAdapter
from src.testing import AdapterCheckError, ChatCompletions, Dialect, Report, Response, Said, check_adapter
from src.testing import check as check_module
from tests.test_plugin_tutorial import FILES

PATIENCE_S = 60.0
"""For adapters that never hang: a busy machine costs nothing then."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "XAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


# Our own adapters


class Messages(Dialect):
    """Anthropic's format; its filter answers with an error status."""

    def ok(self, said: Said) -> Any:
        return self._answer(said, "end_turn")

    def truncated(self, said: Said) -> Any:
        return self._answer(said, "max_tokens")

    def refused(self, said: Said) -> Any:
        return self._answer(said, "refusal")

    def blocked(self, said: Said) -> Any:
        message = "Output blocked by content filtering policy"
        return self.response({"type": "error", "error": {"type": "invalid", "message": message}}, status=400)

    def _answer(self, said: Said, stop: str) -> Any:
        return {
            "id": "msg_check",
            "type": "message",
            "role": "assistant",
            "model": said.model,
            "content": [{"type": "text", "text": said.text}],
            "stop_reason": stop,
            "usage": {"input_tokens": said.input_tokens, "output_tokens": said.output_tokens},
        }


class GenerateContent(Dialect):
    """Google's format; it has no refusal of its own."""

    def ok(self, said: Said) -> Any:
        return self._answer(said, "STOP")

    def truncated(self, said: Said) -> Any:
        return self._answer(said, "MAX_TOKENS")

    def blocked(self, said: Said) -> Any:
        return self._answer(said, "SAFETY")

    def _answer(self, said: Said, stop: str) -> Any:
        content = {"role": "model", "parts": [{"text": said.text}]}
        counts = {"promptTokenCount": said.input_tokens, "candidatesTokenCount": said.output_tokens}
        candidates = [{"index": 0, "content": content, "finishReason": stop}]
        return {"candidates": candidates, "modelVersion": said.model, "usageMetadata": counts}


OURS = [
    pytest.param(OpenAIAdapter, ChatCompletions(), "openai:gpt-4.1-2025-04-14", 0, marks=pytest.mark.slow),
    pytest.param(GrokAdapter, ChatCompletions(), "xai:grok-2-1212", 0, marks=pytest.mark.slow),
    pytest.param(AnthropicAdapter, Messages(), "anthropic:claude-sonnet-4-6", 0, marks=pytest.mark.slow),
    pytest.param(GoogleAdapter, GenerateContent(), "google:gemini-1.5-pro-002", 1, marks=pytest.mark.slow),
    pytest.param(CompatibleAdapter, ChatCompletions(), "compatible:qwen3:8b", 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("adapter", "dialect", "model", "skipped"), OURS)
def test_our_own_adapters_pass(adapter: Any, dialect: Dialect, model: str, skipped: int) -> None:
    report = check_adapter(adapter, dialect=dialect, model=model, patience_s=PATIENCE_S)
    states = [case.state for case in report.cases]
    assert (states.count("passed"), states.count("skipped")) == (len(states) - skipped, skipped)
    assert len(states) > 50


# Other people's adapters, one planted fault each, made from the tutorial's adapter


def of_the_tutorial(file: str, name: str) -> Any:
    """A class of the tutorial's package, bound to `src` instead of the installed package."""
    found: dict[str, Any] = {}
    source = FILES[file].replace("from acme_medicare.adapter import AcmeAdapter\n", "").replace("medicare_eval", "src")
    exec(source, found)
    return found[name]


ACME = of_the_tutorial("acme-medicare/acme_medicare/adapter.py", "AcmeAdapter")
DIALECT: Dialect = of_the_tutorial("acme-medicare/test_acme.py", "AcmeDialect")()


class Wrapped:
    """The tutorial's adapter, with a fault planted by a subclass."""

    def __init__(self, *, base_url: str, api_key: str) -> None:
        self.api_key = api_key
        self.inner = ACME(base_url=base_url, api_key=api_key)

    def __repr__(self) -> str:
        return "Wrapped()"

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        reply: ModelReply = await self.inner.complete(request, timeout_s=timeout_s)
        return reply

    async def aclose(self) -> None:
        await self.inner.aclose()


class Retries(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=timeout_s)
        except CallFailure as failure:
            if failure.outcome in ("permanent", "denied"):
                raise
            return await super().complete(request, timeout_s=timeout_s)


class ShowsTheKeyInErrors(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=timeout_s)
        except CallFailure as failure:
            failure.message += f" (key {self.api_key})"
            raise


class ShowsTheKeyInItsName(Wrapped):
    def __repr__(self) -> str:
        return f"Wrapped({self.api_key!r})"


class KeepsTheKey(Wrapped):
    def __init__(self, *, base_url: str, api_key: str) -> None:
        super().__init__(base_url=base_url, api_key=api_key)
        self.inner._key = b"another key altogether"


class RaisesSomethingElse(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=timeout_s)
        except CallFailure as failure:
            if failure.outcome == "malformed":
                raise KeyError("text") from None
            raise


class IgnoresTheTimeout(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return await super().complete(request, timeout_s=3_600)


class TimesOutBetweenBytesOnly(Wrapped):
    """As an HTTP library's own timeout does: each byte that arrives starts it again."""

    def __init__(self, *, base_url: str, api_key: str) -> None:
        super().__init__(base_url=base_url, api_key=api_key)
        self.inner._client.timeout = 0.5

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=3_600)
        except CallFailure as failure:
            if failure.message == "acme: ReadTimeout":
                failure.outcome = "timeout"
            raise


class MixesCalls(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        self.request = request
        await asyncio.sleep(0)
        return await super().complete(self.request, timeout_s=timeout_s)


class OneCallAtATime(Wrapped):
    def __init__(self, *, base_url: str, api_key: str) -> None:
        super().__init__(base_url=base_url, api_key=api_key)
        self.lock = asyncio.Lock()

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        async with self.lock:
            return await super().complete(request, timeout_s=timeout_s)


class ClosesOnce(Wrapped):
    closed = False

    async def aclose(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True
        await super().aclose()


class SwallowsCancellation(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=timeout_s)
        except asyncio.CancelledError:
            raise CallFailure("transient", "canceled") from None


class Rewrites(Wrapped):
    """Keeps something other than the bytes that came, and not what was sent."""

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        reply = await super().complete(request, timeout_s=timeout_s)
        return replace(reply, received={"text": reply.text}, sent={"turns": reply.sent["turns"]})


class ReportsWhatWasAsked(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        reply = await super().complete(request, timeout_s=timeout_s)
        return replace(reply, served_model=request.sent_as, usage=type(reply.usage)())


class SaysItAppliedAll(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return replace(await super().complete(request, timeout_s=timeout_s), not_applied=())


class LosesTheSystemPrompt(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return await super().complete(replace(request, system=None), timeout_s=timeout_s)


class SendsTheHint(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        system = f"{request.system} {request.hint}"
        return await super().complete(replace(request, system=system), timeout_s=timeout_s)


class TakesAllErrorsForBusy(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        try:
            return await super().complete(request, timeout_s=timeout_s)
        except CallFailure as failure:
            failure.outcome = "transient" if failure.status not in (None, 200) else failure.outcome
            raise


class CallsEverythingOk(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return replace(await super().complete(request, timeout_s=timeout_s), outcome="ok")


class ReturnsADict(Wrapped):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        reply: Any = vars(await super().complete(request, timeout_s=timeout_s))
        return reply  # type: ignore[no-any-return]


RETRIED = r"HTTP (408|429|5\d\d|200 with).*|a server that never.*|a body.*|a reset.*"
BROKEN: list[tuple[type[Wrapped], str, str]] = [
    (Retries, RETRIED, "2 requests were sent for one call: adapters do not retry"),
    (ShowsTheKeyInErrors, r"the API key (in an error|is not shown when).*", "the API key is in the message"),
    (ShowsTheKeyInItsName, r"the API key is not in repr.*", r"the API key is in repr\(adapter\)"),
    (KeepsTheKey, r"the API key in an? (answer|error|question).*", "the API key is in (text|received|sent)"),
    (RaisesSomethingElse, r"HTTP 200 with.*", "raised KeyError instead of CallFailure"),
    (IgnoresTheTimeout, r"a server that never.*|a body that comes.*", r"the call did not return in .* timeout_s=0\.5"),
    (TimesOutBetweenBytesOnly, r"a body that comes.*", r"the call did not return in .* timeout_s=0\.5"),
    (MixesCalls, r"calls at once.*", "a call returned what another call sent|the reply to 'question-00' is .*"),
    (OneCallAtATime, r"calls at once get.*", "8 calls do not run at the same time.*"),
    (ClosesOnce, r"aclose can be called twice", "RuntimeError: closed already"),
    (SwallowsCancellation, r"a canceled call.*", "a canceled call ends with something other than CancelledError"),
    (Rewrites, r"an answer: (the body|what was sent).*", "(received|sent) is not .*"),
    (ReportsWhatWasAsked, r"an answer: (the model|token).*", "served_model is .*|usage is None in, None out.*"),
    (SaysItAppliedAll, r"a request: each parameter.*", "seed must be either sent or listed.*"),
    (LosesTheSystemPrompt, r"a request: system prompt.*", "the system prompt was not sent"),
    (SendsTheHint, r"a request: hint.*", "hint or prompt_sha256 was sent.*"),
    (TakesAllErrorsForBusy, r"HTTP (302|4(00|01|02|03|04|22|29)).*", "outcome is 'transient' instead of .*"),
    (CallsEverythingOk, r"(an empty|a cut-off) answer.*|a refusal.*|a filtered.*", "outcome is 'ok' instead of .*"),
]


def failing(adapter: type[Wrapped], *, only: str = "", patience_s: float = PATIENCE_S) -> Report:
    with pytest.raises(AdapterCheckError) as caught:
        check_adapter(adapter, dialect=DIALECT, model="acme:small", only=only, patience_s=patience_s)
    return caught.value.report


@pytest.mark.slow
@pytest.mark.parametrize(("adapter", "names", "problem"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_fault_is_found_for_what_it_is_and_nothing_else(
    adapter: type[Wrapped], names: str, problem: str
) -> None:
    hangs = adapter in (IgnoresTheTimeout, TimesOutBetweenBytesOnly, OneCallAtATime)
    report = failing(adapter, patience_s=4 if hangs else PATIENCE_S)
    found = {case.name: case.note for case in report.failed}
    assert set(found) == {case.name for case in report.cases if re.fullmatch(names, case.name)}
    for name, note in found.items():
        assert re.fullmatch(problem, note), f"{name}: {note}"


FIRST = [
    (Retries, "HTTP 503"),
    (ShowsTheKeyInErrors, "key in an error"),
    (RaisesSomethingElse, "an HTML page is 'malformed'"),
    (IgnoresTheTimeout, "never answers"),
    (MixesCalls, "their own answers"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("adapter", "case"), FIRST, ids=lambda value: getattr(value, "__name__", ""))
def test_the_commonest_faults_are_found(adapter: type[Wrapped], case: str) -> None:
    assert check_adapter(Wrapped, dialect=DIALECT, only=case, patience_s=PATIENCE_S).failed == ()
    report = failing(adapter, only=case, patience_s=2 if adapter is IgnoresTheTimeout else PATIENCE_S)
    assert [result.state for result in report.cases] == ["failed"]
    problem = next(problem for broken, _, problem in BROKEN if broken is adapter)
    assert re.fullmatch(problem, report.failed[0].note)


def test_the_error_lists_every_failed_case_and_is_an_assertion() -> None:
    with pytest.raises(AssertionError) as caught:
        check_adapter(ReturnsADict, dialect=DIALECT, only="an answer: ", patience_s=PATIENCE_S)
    lines = str(caught.value).splitlines()
    assert lines[0] == "ReturnsADict: 5 of 5 cases failed"
    assert len(lines) == 6
    assert lines[1] == "failed   an answer: its text is returned: returned dict instead of ModelReply"


def test_a_fault_of_the_factory_is_a_failed_case() -> None:
    def factory(*, base_url: str, api_key: str) -> Wrapped:
        raise ConnectionError("no such host")

    with pytest.raises(AdapterCheckError, match="ConnectionError: no such host"):
        check_adapter(factory, dialect=DIALECT, only="an unused adapter")


# Without HTTP


class Local:
    """An adapter of a local library."""

    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        said = request.messages[-1].content
        return ModelReply(outcome="ok", text=f"You said {said}", sent=request.as_json(), received=said)

    async def aclose(self) -> None:
        """Nothing is open."""


class LocalMixing(Local):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        self.request = request
        await asyncio.sleep(0)
        return await super().complete(self.request, timeout_s=timeout_s)


class LocalUnstorable(Local):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        return replace(await super().complete(request, timeout_s=timeout_s), received=object())


class LocalRaising(Local):
    async def complete(self, request: ModelRequest, *, timeout_s: float) -> ModelReply:
        if request.model.endswith("unknown"):
            raise FileNotFoundError(request.model)
        return await super().complete(request, timeout_s=timeout_s)


def test_an_adapter_without_http_is_checked_by_the_contract_alone() -> None:
    report = check_adapter(Local)
    assert [case.state for case in report.cases] == ["passed"] * 7
    assert report.table().splitlines()[0] == "passed   a reply is a well-formed ModelReply"


@pytest.mark.parametrize(
    ("adapter", "case", "note"),
    [
        (LocalMixing, "calls at once keep to themselves", "a call returned what another call sent"),
        (LocalUnstorable, "a reply is a well-formed ModelReply", "received cannot be written as JSON"),
        (
            LocalRaising,
            "an unknown model raises nothing but CallFailure",
            "raised FileNotFoundError instead of CallFailure",
        ),
    ],
)
def test_faults_of_an_adapter_without_http_are_found(adapter: type[Local], case: str, note: str) -> None:
    with pytest.raises(AdapterCheckError) as caught:
        check_adapter(adapter)
    assert [(failed.name, failed.note) for failed in caught.value.report.failed] == [(case, note)]


# The kit itself


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> Report:
        return check_adapter(Local)

    assert asyncio.run(notebook()).failed == ()


def test_a_dialect_that_says_little_skips_cases() -> None:
    class Terse(ChatCompletions):
        reports_model = False
        reports_usage = False

        def truncated(self, said: Said) -> Any:
            return None

    report = check_adapter(CompatibleAdapter, dialect=Terse(), only="answer", patience_s=PATIENCE_S)
    skipped = {case.name: case.note for case in report.cases if case.state == "skipped"}
    assert skipped == {
        "an answer: the model that gave it is reported": "the dialect names no model",
        "an answer: token usage is reported": "the dialect gives no token counts",
        "a cut-off answer is 'truncated'": "the dialect has no way to say 'truncated'",
    }


def test_a_dialect_may_set_the_status_itself() -> None:
    assert Messages().response(Messages().blocked(Said(text="t", model="m"))).status == 400
    assert Messages().response({"a": 1}) == Response(body=b'{"a": 1}')


def test_a_choice_that_matches_no_case_is_an_error() -> None:
    with pytest.raises(ValueError, match="no case has 'HTTP 999' in its name"):
        check_adapter(Wrapped, dialect=DIALECT, only="HTTP 999")


@pytest.mark.slow
def test_the_example_in_the_docstring_is_right() -> None:
    text = (check_module.check_adapter.__doc__ or "").replace("medicare_eval", "src")
    test = doctest.DocTestParser().get_doctest(text, {}, "check_adapter", None, 0)
    assert len(test.examples) == 4
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_kit_is_imported_by_nothing_else_of_ours() -> None:
    code = "import sys, src.api, src.cli.parser, src.adapters.registry; print('src.testing' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
