"""A minimal, quick loopback server that speaks OpenAI's Chat Completions: `python -m bench.server`.

It is a process of its own, so that its work is not counted with the client's. It prints its port and then answers:

    POST /<latency in ms>/v1/chat/completions   a canned reply after that long; judges are answered to their contract
    GET  /stats                                 requests, most at once, and when the first came (CLOCK_MONOTONIC)
    GET  /reset                                 the same, and begins to count again
    GET  /stop                                  ends the process

It also ends when its standard input does, so it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

REPLY = (
    "Original Medicare is run by the federal government and has two parts. Part A covers hospital stays, skilled "
    "nursing after a stay, hospice and some home health care, and Part B covers doctors, outpatient care, tests and "
    "equipment. You can see any doctor or hospital in the country that takes Medicare, and you need no referral. "
    "There is no yearly limit on what you pay out of pocket, which is why many people add a Medigap policy. Medicare "
    "Advantage plans are sold by private companies that Medicare pays to give you the same benefits. They must cover "
    "everything that Part A and Part B cover, and most of them add drug coverage and some dental, vision or hearing "
    "care. Medicare Advantage plans have provider networks, so seeing a doctor outside of the network costs more or "
    "is not covered at all. They may also ask for prior authorization before they pay for some services. You keep "
    "paying the Part B premium in either case, and some plans have a premium of their own. A plan has a yearly limit "
    "on what you pay for covered services, after which it pays all of it. Which one suits you depends on your "
    "doctors, your drugs, how much you travel and what you can pay in a bad year. A counselor of the State Health "
    "Insurance Assistance Program can compare them with you without charge, and the plan finder on medicare.gov shows "
    "what is sold where you live."
)
"""About 300 tokens."""
_SENTENCES = REPLY.split(". ")
CLAIMS = tuple(sentence.rstrip(".") for sentence in (_SENTENCES[3], _SENTENCES[6], _SENTENCES[8]))
"""Three sentences of the reply, word for word."""

_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_CLAIM_ID = re.compile(rb'\\"claim_id\\": ?\\"([^"\\]+\.[^"\\]+)\\"')
"""Ids of claims hold a dot, those of disallowed claims do not."""
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LATENCY = re.compile(rb"POST /(\d+)/")


CANARY = "CANARY"
"""Stands in the canned answers for the word that each message asks to have back."""
_CANARY = re.compile(rb'\\"canary\\": ?\\"([0-9a-f]+)\\"')


def _extraction() -> str:
    claims = [
        {
            "claim_id": f"c{number}",
            "text": text,
            "type": "factual",
            "confidence": "high",
            "verifiable": True,
            "quotes": [text],
        }
        for number, text in enumerate(CLAIMS, 1)
    ]
    return json.dumps({"canary": CANARY, "claims": claims})


def _verdicts(body: bytes) -> str:
    verdicts = [
        {"claim_id": found.decode(), "label": "NOT_IN_KEY", "evidence": [], "severity": "none", "notes": "Not there."}
        for found in dict.fromkeys(_CLAIM_ID.findall(body))
    ]
    return json.dumps({"canary": CANARY, "verdicts": verdicts})


_QUOTED_REPLY = json.dumps(REPLY)
_QUOTED_EXTRACTION = json.dumps(_extraction())
_QUOTED_READING = json.dumps(json.dumps({"canary": CANARY, "observations": []}))


def _content(body: bytes) -> str:
    found = _CANARY.search(body)
    return _canned(body).replace(CANARY, found.group(1).decode() if found else "")


def _canned(body: bytes) -> str:
    """What the model says, as a JSON string: by the schema asked for, which names the role."""
    if b'"response_format"' not in body:
        return _QUOTED_REPLY
    if b"ExtractorReply" in body:
        return _QUOTED_EXTRACTION
    if b"ScorerReply" in body:
        return _QUOTED_READING
    return json.dumps(_verdicts(body))


def _completion(body: bytes) -> bytes:
    found = _MODEL.search(body)
    model = found.group(1).decode() if found else "bench"
    answer = (
        '{"id":"chatcmpl-bench","object":"chat.completion","created":1767225600,"model":"%s","choices":[{"index":0,'
        '"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"stop"}],'
        '"usage":{"prompt_tokens":900,"completion_tokens":300,"total_tokens":1200,'
        '"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},'
        '"system_fingerprint":"fp_bench"}'
    )
    return (answer % (model, _content(body))).encode()


def _response(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-request-id: req-bench\r\ncontent-length: "
    return b"".join((head.encode(), str(len(body)).encode(), b"\r\n\r\n", body))


class Counts:
    def __init__(self) -> None:
        self.requests = self.under_way = self.most_at_once = self.connections = 0
        self.first_at: float | None = None

    def begin(self) -> None:
        if self.first_at is None:
            self.first_at = time.monotonic()
        self.requests += 1
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)

    def as_json(self) -> bytes:
        return json.dumps(vars(self)).encode()


class Server:
    def __init__(self) -> None:
        self.counts = Counts()
        self.stopped = asyncio.Event()


class Connection(asyncio.Protocol):
    """One keep-alive connection. No pipelining: the clients measured here do not."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.counts.connections += 1

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
        latency = _LATENCY.match(head)
        if latency and b"/chat/completions " in head:
            counts = self._server.counts
            counts.begin()
            asyncio.get_running_loop().call_later(int(latency.group(1)) / 1_000, self._complete, counts, body)
        elif head.startswith((b"GET /stats", b"GET /reset", b"GET /stop")):
            self._transport.write(_response(self._server.counts.as_json()))
            if head.startswith(b"GET /reset"):
                self._server.counts = Counts()
            if head.startswith(b"GET /stop"):
                self._server.stopped.set()
        else:
            self._transport.write(_response(b'{"error":{"message":"no such path"}}', "404 Not Found"))

    def _complete(self, counts: Counts, body: bytes) -> None:
        counts.under_way -= 1
        if not self._transport.is_closing():
            self._transport.write(_response(_completion(body)))


async def serve() -> None:
    loop = asyncio.get_running_loop()
    state = Server()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop.add_reader(sys.stdin.fileno(), state.stopped.set)
    await state.stopped.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
