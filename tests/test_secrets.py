"""Sentinel keys in every place a key can be given: none may appear in any file or output of a run.

The real command line runs in a process of its own against a loopback server that repeats to the caller everything it
was sent: in replies, in error messages, in headers. Then every byte written is searched for the sentinels, raw or as
JSON, URLs, base64 and hex would write them. Most of it is in the slow suite; a server whose errors repeat the key is in
every run.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.fault_matrix import ANSWER, right_answer, role_and_task, two_facts
from tests.loopback import Loopback, Received, Scripted, Wire
from tests.runs import HANGS_S, ONE, ROOT, command, environment, process

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "COMPATIBLE_API_KEY")
ACCOUNT = ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY")
HEADERS = ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS")
BASE_URLS: dict[str, Wire] = {
    "OPENAI_BASE_URL": "openai",
    "ANTHROPIC_BASE_URL": "anthropic",
    "GOOGLE_GEMINI_BASE_URL": "google",
    "XAI_BASE_URL": "openai",
    "COMPATIBLE_BASE_URL": "openai",
}
SENT = (*KEYS, "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", *HEADERS)
"""Places whose sentinel may go over the wire."""
DEBUG = {
    "PYTHONDEVMODE": "1",
    "OPENAI_LOG": "debug",
    "ANTHROPIC_LOG": "debug",
    "HTTPX_LOG_LEVEL": "trace",
    "GOOGLE_SDK_PYTHON_LOGGING_SCOPE": "google",
}
TARGETS = ("openai:gpt-5.5-2026-04-23", "xai:grok-4.6", "compatible:qwen3-local")
JUDGES = ("anthropic:claude-sonnet-4-6", "google:gemini-3.8-flash")
QUICK = "import src.calls.limits; src.calls.limits.FIRST_CEILING_S = 0.001"
"""Retries without waiting."""


# ---- sentinels --------------------------------------------------------------------------------------------------


def core(place: str) -> str:
    """The part of a place's sentinel that no way of writing it escapes."""
    return f"Zq7{place.replace('_', '')}f3Wk"


def sentinel(place: str) -> str:
    return f"sk-{core(place)}/a+b_c="


def forms(place: str) -> Iterator[bytes]:
    """What to look for. As JSON or in a URL the core stays as it is."""
    plain = core(place).encode()
    yield plain
    yield plain.hex().encode()
    for shift in range(3):  # base64 writes the same bytes in three ways, by where they begin
        encoded = base64.b64encode(b"\0" * shift + plain)
        yield encoded[4 if shift else 0 : len(encoded) - 4]


def settings(server: Loopback, *, userinfo: bool = False) -> dict[str, str]:
    """An environment with a sentinel in every place."""
    made = {place: sentinel(place) for place in (*KEYS, *ACCOUNT)}
    made |= {place: f"X-Gateway: {sentinel(place)}" for place in HEADERS}
    for place, wire in BASE_URLS.items():
        url = urlsplit(server.url(wire))
        netloc = f"user:{core(place)}@{url.netloc}" if userinfo else url.netloc
        made[place] = urlunsplit(url._replace(netloc=netloc))
    return made


def leaks(folder: Path, outputs: Mapping[str, str]) -> list[str]:
    """Where a sentinel appears."""
    found = {name: text.encode() for name, text in outputs.items()}
    found |= {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [
        f"{place} in {name}: ...{data[max(0, data.index(form) - 100) : data.index(form) + 60]!r}"
        for name, data in found.items()
        for place in (*KEYS, *ACCOUNT, *HEADERS, *BASE_URLS)
        for form in forms(place)
        if form in data
    ]


# ---- servers that repeat what they were sent --------------------------------------------------------------------


def sent_headers(received: Received) -> str:
    return "; ".join(f"{name}: {value}" for name, value in received.headers.items())


def headers(received: Received) -> dict[str, str]:
    return {"x-request-id": f"id {received.key}", "request-id": f"id {received.key}", "x-echo": sent_headers(received)}


def obedient(received: Received) -> Scripted:
    return Scripted(text=right_answer(*role_and_task(received)))


def chatty(received: Received) -> Scripted:
    """A target repeats what it was sent; a judge does so at its first ask only."""
    role, task = role_and_task(received)
    asked = received.body.get("messages") or received.body["contents"]
    text = right_answer(role, task)
    if role == "target":
        text = f"{ANSWER} You sent {sent_headers(received)}"
    elif len([message for message in asked if message["role"] != "system"]) == 1:
        text = f"You sent {sent_headers(received)}"
    return Scripted(text=text, served=f"{received.model} {received.key}", headers=headers(received))


def refusing(received: Received) -> Scripted:
    said = {"message": f"Bad credentials: {sent_headers(received)}", "code": received.key, "type": received.key}
    raw = json.dumps({"type": "error", "error": said, "message": sent_headers(received)}).encode()
    return Scripted(status=401, raw=raw.replace(b"/", rb"\/"), headers=headers(received))


def broken() -> Callable[[Received], Scripted]:
    """Four ways to break off, then the answer."""
    numbers = count()

    def answer(received: Received) -> Scripted:
        page = f"<html>{sent_headers(received)}</html>".encode()
        ways = (
            Scripted(fault="reset"),
            Scripted(fault="truncated_body", raw=page, headers=headers(received)),
            Scripted(status=502, raw=page, headers=headers(received)),
            Scripted(raw=b"\xff\xfe" + page, headers=headers(received)),
        )
        number = next(numbers) % 5
        return ways[number] if number < 4 else obedient(received)

    return answer


# ---- runs -------------------------------------------------------------------------------------------------------


@dataclass
class Ran:
    folder: Path
    """Everything the run could write to: runs, home, temporary files."""
    code: int
    out: str
    err: str
    reached: set[str] = field(default_factory=set)
    """Places whose sentinel came to the server."""

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "runs").iterdir())


def run(
    folder: Path,
    script: Callable[[Received], Scripted],
    *,
    env: Mapping[str, str] | None = None,
    userinfo: bool = False,
    before: str = "",
    alone: bool = False,
) -> Ran:
    """A run with every provider (or with OpenAI's alone), after the statements `before`."""
    for name in ("home", "tmp", "runs"):
        (folder / name).mkdir()
    scenario = folder / "scenario.json"
    scenario.write_text(two_facts().model_dump_json(), encoding="utf-8")
    arguments = ["run", "--scenario", str(scenario), "--out", str(folder / "runs")]
    for target in TARGETS[:1] if alone else TARGETS:
        arguments += ["--target", target]
    for judge in ("offline:rules",) if alone else JUDGES:
        arguments += ["--judge-model", judge]
    if not alone:
        arguments += ["--adjudicator-model", "compatible:third-family"]
    entry = command(*arguments)
    if before:
        entry = [sys.executable, "-c", f"{before}\nfrom src.cli import main\nraise SystemExit(main())", *arguments]
    with Loopback(script) as server:
        surroundings = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), **(env or {})}
        done = subprocess.run(
            entry,
            cwd=ROOT,
            env=environment(settings(server, userinfo=userinfo) | surroundings),
            capture_output=True,
            text=True,
            timeout=HANGS_S,
        )
        sent = [sent_headers(received).encode() for received in server.requests]
    places = (*KEYS, *ACCOUNT, *HEADERS, *BASE_URLS)
    reached = {place for place in places if any(form in text for form in forms(place) for text in sent)}
    return Ran(folder, done.returncode, done.stdout, done.stderr, reached)


def assert_clean(ran: Ran, *, code: int = 0) -> None:
    assert leaks(ran.folder, {"stdout": ran.out, "stderr": ran.err}) == []
    assert ran.code == code, ran.err


def outcomes(ran: Ran) -> list[str]:
    lines = (ran.runs[0] / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["outcome"] for line in lines]


debug_or_not = pytest.mark.parametrize("env", [{}, DEBUG], ids=["plain", "debug"])


def test_the_search_finds_a_key_in_every_form(tmp_path: Path) -> None:
    key = sentinel("XAI_API_KEY")
    basic = [base64.b64encode(f"{'u' * length}:{key}".encode()).decode() for length in range(3)]
    for number, text in enumerate((key, json.dumps(key), key.replace("/", "%2F"), key.encode().hex(), *basic)):
        (tmp_path / "file").write_text(f"before {text} after", encoding="utf-8")
        assert leaks(tmp_path, {}), number
    (tmp_path / "file").unlink()
    assert leaks(tmp_path, {"stderr": key})


@pytest.mark.slow
@debug_or_not
def test_no_key_is_written_by_a_run_its_report_and_its_resume(tmp_path: Path, env: dict[str, str]) -> None:
    ran = run(tmp_path, obedient, env=env)
    assert_clean(ran)
    assert outcomes(ran) == ["scored"] * 3
    assert set(KEYS) <= ran.reached <= {*SENT}
    said = {}
    for arguments in (("report", ran.runs[0]), ("verify", ran.runs[0]), ("resume", ran.runs[0], "--json")):
        done = process(*arguments)
        assert_clean(Ran(tmp_path, done.returncode, done.stdout, done.stderr))
        said[arguments[0]] = done.stdout
    assert (ran.runs[0] / "report" / "report.md").stat().st_size > 0
    assert "3 of 3 trials" in said["verify"]
    assert json.loads(said["resume"])["done"] == 3


@pytest.mark.slow
@debug_or_not
def test_no_key_is_written_if_replies_repeat_it(tmp_path: Path, env: dict[str, str]) -> None:
    ran = run(tmp_path, chatty, env=env)
    assert_clean(ran)
    assert outcomes(ran) == ["scored"] * 3
    assert "[redacted]" in (ran.runs[0] / "calls.jsonl").read_text(encoding="utf-8")


def test_no_key_is_written_if_errors_repeat_it(tmp_path: Path) -> None:
    ran = run(tmp_path, refusing, env=DEBUG)
    assert_clean(ran, code=4)  # a refused key stops the run
    assert "cannot be used" in ran.err and "[redacted]" in ran.err
    assert "[redacted]" in (ran.runs[0] / "calls.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_key_is_written_if_connections_break(tmp_path: Path) -> None:
    ran = run(tmp_path, broken(), env=DEBUG, before=QUICK)
    assert_clean(ran, code=4)  # a model that does not answer the probe stops the run
    assert "did not answer a short test call" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("script", [chatty, refusing], ids=["chatty", "refusing"])
def test_no_password_of_a_base_url_is_written(tmp_path: Path, script: Callable[[Received], Scripted]) -> None:
    """The run may refuse the address before anything is sent; what is sent must not be written anywhere."""
    ran = run(tmp_path, script, env=DEBUG, userinfo=True)
    assert_clean(ran, code=3 if not ran.reached else 4 if script is refusing else 0)
    if not ran.reached:
        assert "without a name or password in it" in ran.err


LOOKING: dict[tuple[str, ...], str] = {
    ("models",): "OPENAI_API_KEY set",
    ("models", "--json"): '"key_is_set": true',
    ("doctor", "--reach"): "OPENAI_API_KEY is set",
    ("doctor", "--reach", "--json"): "OPENAI_API_KEY is set",
    ("run", "--dry-run"): "No call was made",
}
"""Commands that look at keys, and what each must say."""


@pytest.mark.slow
@pytest.mark.parametrize("userinfo", [False, True], ids=["keys", "passwords"])
@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_commands_that_look_at_keys_show_none(tmp_path: Path, arguments: tuple[str, ...], userinfo: bool) -> None:
    given = (*arguments, *(("--scenario", ONE, "--target", TARGETS[0]) if "run" in arguments else ()))
    if "doctor" in arguments:
        given = (*given, "--out", str(tmp_path / "runs"))
    with Loopback(refusing) as server:
        env = environment(settings(server, userinfo=userinfo) | DEBUG)
        done = subprocess.run(command(*given), cwd=ROOT, env=env, capture_output=True, text=True, timeout=HANGS_S)
    assert leaks(tmp_path, {"stdout": done.stdout, "stderr": done.stderr}) == []
    refused = userinfo and "run" in arguments
    assert done.returncode == (3 if refused or "--reach" in arguments else 0)  # the server refuses every key
    assert "Traceback" not in done.stderr
    if refused:
        assert "without a name or password in it" in done.stderr
    else:
        assert LOOKING[arguments] in " ".join(done.stdout.split())


FAULTS_OF_OURS = {
    "reading the answer": "import src.adapters.openai_adapter as a; a.OpenAIAdapter._read = lambda *_: 1 / 0",
    "handling the SDK's error": "import src.adapters.http as h; h.classify_exception = lambda *_: 1 / 0",
    "letting the SDK's error out": (
        "import src.adapters.http as h\n"
        "from src.adapters.capabilities import fitted\n"
        "async def attempt(self, request, timeout_s):\n"
        "    await self._send(fitted(self.provider, request), timeout_s)\n"
        "h.HttpAdapter._attempt = attempt"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS_OF_OURS)
def test_no_key_is_in_a_traceback(tmp_path: Path, fault: str) -> None:
    """A bug of ours ends the program with a traceback; the errors of the SDKs contain the request."""
    script = chatty if fault == "reading the answer" else refusing
    ran = run(tmp_path, script, env=DEBUG, before=FAULTS_OF_OURS[fault], alone=True)
    assert "Traceback" in ran.err
    assert_clean(ran, code=1)
