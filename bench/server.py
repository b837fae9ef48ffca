"""A minimal, fast loopback server that speaks OpenAI's Chat Completions: `python -m bench.server`.

It runs in a process of its own, so that its work is not counted with the client's. It prints its port and then answers:

    POST /<latency in ms>/v1/chat/completions   a canned answer after that time (see `bench.replies`)
    GET  /stats                                 requests, most at once, when the first came (CLOCK_MONOTONIC), CPU
    GET  /reset                                 the same, and starts counting again
    GET  /hold/<number>                         after that many requests, keep the answers back ...
    GET  /release                               ... until now
    GET  /stop                                  ends the process

It also ends when its standard input closes, so it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from .replies import REPLIES, Reply, Said

CHARACTERS_PER_TOKEN = 4

_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_LEFT_OUT = re.compile(rb'"model": ?"bench-target-([a-z])"')
_CANARY = re.compile(rb'\\"canary\\": ?\\"([0-9a-f]+)\\"')
_CLAIM_ID = re.compile(rb'\\"claim_id\\": ?\\"((Q[0-9])\.c([0-9]+))\\"')
_CANARY_FIELD, _CLAIM_FIELD = rb"\"canary\"", rb"\"claim_id\""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LATENCY = re.compile(rb"POST /(\d+)/")
_ADMIN = re.compile(rb"GET /(stats|reset|hold|release|stop)(?:/(\d+))? ")


def _claim(number: int, said: Said) -> str:
    claim = {"claim_id": f"c{number}", "text": said.quote, "type": "factual", "confidence": said.confidence}
    return json.dumps({**claim, "verifiable": True, "quotes": [said.quote]})


def _remark(number: int, quote: str) -> str:
    claim = {"claim_id": f"r{number}", "text": quote, "type": "other", "confidence": "medium"}
    return json.dumps({**claim, "verifiable": False, "quotes": [quote]})


def _verdict(said: Said) -> str:
    """One verdict but for its claim id, which the request gives."""
    notes = {
        "SUPPORTED": f"The claim states what {', '.join(said.evidence)} says, and no figure differs.",
        "CONTRADICTED": f"The claim cannot be true together with {', '.join(said.evidence)}.",
        "NOT_IN_KEY": "No fact of the key confirms this or speaks against it.",
    }
    verdict = {"label": said.label, "evidence": said.evidence, "severity": said.severity, "notes": notes[said.label]}
    return json.dumps(verdict)[1:]


def _escaped(text: str) -> bytes:
    """Text as it is inside a JSON string, without the quotation marks."""
    return json.dumps(text)[1:-1].encode()


@dataclass(frozen=True)
class _Turn:
    """What every role says about one reply, as bytes that are ready to be sent."""

    question: bytes
    replies: tuple[bytes, ...]
    """Without the last claims: none, one, two ..."""
    claims: tuple[tuple[bytes, bytes], ...]
    """The words in the request, and the claim."""
    verdicts: tuple[bytes, ...]
    observations: bytes

    @staticmethod
    def of(reply: Reply) -> _Turn:
        claims = [(said.quote.encode(), _escaped(_claim(n, said))) for n, said in enumerate(reply.claims, 1)]
        claims += [(quote.encode(), _escaped(_remark(n, quote))) for n, quote in enumerate(reply.remarks, 1)]
        return _Turn(
            reply.question.encode(),
            tuple(_escaped(reply.text(left_out)) for left_out in range(len(reply.claims))),
            tuple(claims),
            tuple(_escaped(_verdict(said)) for said in reply.claims),
            _escaped(json.dumps([asdict(seen) for seen in reply.observations])),
        )


class Answers:
    """What every role says. All of it is made once, and a request only chooses: the server shares the machine."""

    def __init__(self) -> None:
        self._turns = {reply.turn_id.encode(): _Turn.of(reply) for reply in REPLIES}

    def content(self, body: bytes) -> bytes:
        """What the model says, as the inside of a JSON string.

        The schema that a request asks for says which judge is meant; a target gets none. The names below appear without
        a backslash only in that schema: all other text is inside a JSON string.
        """
        if b'"response_format"' not in body:
            return self._asked(body).replies[_left_out(body)]
        if b'"verdicts"' in body:
            answer = b'\\"verdicts\\": [' + self._verify(body)
        elif b'"observations"' in body:
            answer = b'\\"observations\\": ' + self._asked(body).observations[:-1]
        elif b'"claims"' in body:
            answer = b'\\"claims\\": [' + b", ".join(c for quote, c in self._asked(body).claims if quote in body)
        else:
            raise ValueError("the canned conversation has no ties, so nothing else should be asked")
        found = _CANARY.search(body, max(0, body.find(_CANARY_FIELD)))
        return b'{\\"canary\\": \\"%s\\", %s]}' % (found.group(1) if found else b"", answer)

    def _verify(self, body: bytes) -> bytes:
        return b", ".join(
            b'{\\"claim_id\\": \\"%s\\", %s' % (claim_id, self._turns[turn].verdicts[int(number) - 1])
            for claim_id, turn, number in _CLAIM_ID.findall(body, max(0, body.find(_CLAIM_FIELD)))
        )

    def _asked(self, body: bytes) -> _Turn:
        """The reply to the latest question in the request."""
        return next(turn for turn in self._turns.values() if turn.question in body)


def _left_out(body: bytes) -> int:
    """Target `a` makes all claims, `b` all but the last, and so on."""
    found = _LEFT_OUT.search(body)
    return found.group(1)[0] - ord("a") if found else 0


def _completion(answers: Answers, body: bytes) -> bytes:
    found = _MODEL.search(body)
    content = answers.content(body)
    asked, answered = len(body) // CHARACTERS_PER_TOKEN, len(content) // CHARACTERS_PER_TOKEN
    answer = (
        b'{"id":"chatcmpl-bench","object":"chat.completion","created":1767225600,"model":"%s","choices":[{"index":0,'
        b'"message":{"role":"assistant","content":"%s","refusal":null},"logprobs":null,"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},'
        b'"system_fingerprint":"fp_bench"}'
    )
    return answer % (found.group(1) if found else b"bench", content, asked, answered, asked + answered)


def _response(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: req-bench\r\ncontent-length: "
    return b"".join((head.encode(), str(len(body)).encode(), b"\r\n\r\n", body))


@dataclass
class Counts:
    requests: int = 0
    in_flight: int = 0
    most_at_once: int = 0
    first_at: float | None = None

    def begin(self) -> None:
        if self.first_at is None:
            self.first_at = time.monotonic()
        self.requests += 1
        self.in_flight += 1
        self.most_at_once = max(self.most_at_once, self.in_flight)


class State:
    def __init__(self) -> None:
        self.answers = Answers()
        self.counts = Counts()
        self.stopped = asyncio.Event()
        self._hold_after: int | None = None
        self._held: list[Callable[[], None]] = []

    def schedule(self, latency_s: float, answer: Callable[[Counts], None]) -> None:
        """Count a request and answer it after its latency, or when the server is released."""
        counts = self.counts
        counts.begin()
        if self._hold_after is not None and counts.requests > self._hold_after:
            self._held.append(lambda: answer(counts))
        else:
            asyncio.get_running_loop().call_later(latency_s, answer, counts)

    def admin(self, what: str, number: int) -> bytes:
        seen = json.dumps({**asdict(self.counts), "cpu_s": time.process_time()}).encode()
        if what == "reset":
            self.counts = Counts()
        elif what == "hold":
            self._hold_after = number
        elif what == "release":
            self._hold_after, held, self._held = None, self._held, []
            for answer in held:
                answer()
        elif what == "stop":
            self.stopped.set()
        return seen


class Connection(asyncio.Protocol):
    """One keep-alive connection. No pipelining: the clients measured here do not use it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, end + 2)
        whole = end + 4 + (int(length.group(1)) if length else 0)
        if len(self._buffer) < whole:
            return
        head, body, self._buffer = self._buffer[:end], self._buffer[end + 4 : whole], self._buffer[whole:]
        self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        latency, admin = _LATENCY.match(head), _ADMIN.match(head)
        if latency and b"/chat/completions " in head:
            self._state.schedule(int(latency.group(1)) / 1_000, lambda counts: self._complete(counts, body))
        elif admin:
            self._transport.write(_response(self._state.admin(admin.group(1).decode(), int(admin.group(2) or 0))))
        else:
            self._transport.write(_response(b'{"error":{"message":"no such path"}}', "404 Not Found"))

    def _complete(self, counts: Counts, body: bytes) -> None:
        counts.in_flight -= 1
        if not self._transport.is_closing():
            self._transport.write(_response(_completion(self._state.answers, body)))


async def serve() -> None:
    loop = asyncio.get_running_loop()
    state = State()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop.add_reader(sys.stdin.fileno(), state.stopped.set)
    await state.stopped.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
