"""The doctor: what it finds, what it never shows, and that it sends nothing unless asked to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from src.adapters.registry import PROVIDERS, Provider
from src.cli import doctor, reach
from src.cli.doctor import Finding, as_json, examine, origin, table
from tests.proxies import HttpProxy
from tests.runs import HANGS_S, ROOT, environment

KEYS = [provider.key_variable for provider in PROVIDERS.values() if provider.key_variable]
URLS = [provider.base_url_variable for provider in PROVIDERS.values() if provider.base_url_variable]


def sentinel(variable: str) -> str:
    return f"SENTINEL-{variable}-7f3a9c"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no address, no proxy, and time enough for a server on a busy machine."""
    monkeypatch.setattr(reach, "REACH_S", 60.0)
    for name in list(os.environ):
        if name in (*KEYS, *URLS, "GOOGLE_GENAI_API_VERSION") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


LISTS: dict[str, dict[str, Any]] = {
    "/v1/models": {"data": [{"id": "a"}, {"id": "b"}]},
    "/v1beta/models": {"models": [{"name": "models/a"}]},
}


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How a test's server answers."""

    status: int = 200
    body: bytes | None = None
    """Instead of the list of models."""
    chat: int = 400
    """The status for an empty chat request."""
    ahead: timedelta = timedelta()
    date: str | None = None
    hangs: bool = False


class Server:
    """A tiny web server on 127.0.0.1 that keeps what it was sent."""

    def __init__(self, manner: Manner) -> None:
        requests: list[Request] = []
        answered: list[str] = []
        stop = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(manner.status, manner.body)

            def do_POST(self) -> None:
                self._answer(manner.chat, b"{}")

            def _answer(self, status: int, body: bytes | None) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                requests.append(Request(self.command, self.path, dict(self.headers), content))
                if manner.hangs:
                    stop.wait(HANGS_S)
                    return
                answered.append(self.path)
                listed = json.dumps(LISTS.get(self.path.partition("?")[0], {})).encode()
                sent = listed if body is None else body
                date = format_datetime(datetime.now(UTC) + manner.ahead, usegmt=True)
                self.send_response_only(status)
                self.send_header("Date", date if manner.date is None else manner.date)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *_: object) -> None:
                pass

        self.requests, self.answered, self._stop = requests, answered, stop
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(**manner: Any) -> Server:
        made.append(Server(Manner(**manner)))
        return made[-1]

    yield start
    for server in made:
        server.close()


def find(findings: list[Finding], area: str, name: str) -> Finding:
    found = [finding for finding in findings if (finding.area, finding.name) == (area, name)]
    assert len(found) == 1, found
    return found[0]


def shown(findings: list[Finding]) -> str:
    return table(findings, 200) + json.dumps(as_json(findings)) + repr(findings)


def test_python_and_every_sdk_are_named_with_their_version(tmp_path: Path) -> None:
    found = examine(reach=False, out=tmp_path)
    assert find(found, "python", "version") == Finding("python", "version", "ok", sys.version.split()[0])
    assert find(found, "sdk", "google").detail == f"google-genai {metadata.version('google-genai')}"
    assert find(found, "sdk", "xai").detail == f"openai {metadata.version('openai')}"
    assert {finding.name for finding in found}.isdisjoint({"fake", "offline"})


def test_an_old_python_is_an_error() -> None:
    assert doctor._python((3, 10)).state == "error"


def test_a_missing_sdk_comes_with_the_command_that_installs_it(tmp_path: Path) -> None:
    absent = Provider("absent", "absent_adapter", "Absent", sdk="no.such.sdk", extra="absent")
    finding = find(examine(reach=False, out=tmp_path, providers={"absent": absent}), "sdk", "absent")
    assert finding.state == "missing"
    assert finding.detail == "The SDK for absent is not installed; run: python -m pip install 'absent'"


def test_no_sdk_is_imported() -> None:
    code = (
        "import sys; from pathlib import Path; from src.cli.doctor import examine; examine(reach=False, out=Path('.')); "
        "print([name for name in ('openai', 'anthropic', 'google.genai') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=HANGS_S
    )
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")


def test_keys_are_set_or_not_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = examine(reach=False, out=tmp_path)
    assert find(before, "key", "openai") == Finding("key", "openai", "missing", "OPENAI_API_KEY is not set")
    assert find(before, "key", "compatible").state == "ok"
    for variable in KEYS:
        monkeypatch.setenv(variable, sentinel(variable))
    after = examine(reach=False, out=tmp_path)
    for provider in PROVIDERS.values():
        if provider.key_variable:
            finding = find(after, "key", provider.name)
            assert (finding.state, finding.detail) == ("ok", f"{provider.key_variable} is set")
    assert "sentinel" not in shown(after).lower()


def test_keys_of_different_lengths_give_the_same_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for length in (10, 50):
        monkeypatch.setenv("OPENAI_API_KEY", "s" * length)
        texts.append(find(examine(reach=False, out=tmp_path), "key", "openai"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (
            "https://user:SENTINEL@gateway.example:8443/v1/SENTINEL?key=SENTINEL#SENTINEL",
            "https://gateway.example:8443",
        ),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        (" https://gateway.example ", "https://gateway.example"),
        ("SENTINEL", None),
        ("ftp://gateway.example", None),
        ("file:///etc/passwd", None),
        ("https://", None),
        ("https://host:SENTINEL", None),
        ("https://ho\x1b[31mst", None),
        ("https://[::1", None),
    ],
)
def test_only_the_origin_of_an_address_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, expected: str | None
) -> None:
    assert origin(address) == expected
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    found = examine(reach=False, out=tmp_path)
    finding = find(found, "address", "openai")
    assert finding.state == ("ok" if expected else "error")
    assert expected is None or finding.detail == f"OPENAI_BASE_URL points to {expected}"
    assert "sentinel" not in shown(found).lower()


def test_a_key_put_where_an_address_belongs_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XAI_API_KEY", sentinel("XAI"))
    monkeypatch.setenv("XAI_BASE_URL", f"https://{sentinel('XAI')}/v1")
    assert "sentinel" not in shown(examine(reach=False, out=tmp_path)).lower()


def test_a_provider_without_an_address_is_reported_as_missing_one(tmp_path: Path) -> None:
    finding = find(examine(reach=False, out=tmp_path), "address", "compatible")
    assert finding.state == "missing" and "COMPATIBLE_BASE_URL is not set" in finding.detail


@pytest.mark.parametrize(("year", "state"), [(1970, "error"), (2026, "ok"), (2101, "error")])
def test_a_clock_with_an_impossible_year_is_an_error(year: int, state: str) -> None:
    found = list(doctor._clock(datetime(year, 5, 1, tzinfo=UTC)))
    assert [finding.state for finding in found] == [state]
    naive = list(doctor._clock(datetime(2026, 5, 1)))
    assert find(naive, "clock", "UTC offset").state == "warning"


def test_the_disk_is_tested_where_runs_will_go_and_nothing_is_left_there(tmp_path: Path) -> None:
    found = examine(reach=False, out=tmp_path / "not" / "yet" / "made")
    assert find(found, "disk", "runs folder") == Finding("disk", "runs folder", "ok", f"{tmp_path} is writable")
    assert find(found, "disk", "free space").detail.endswith("GiB")
    assert find(found, "disk", "one sync").detail.endswith(" ms")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file_or_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert find(examine(reach=False, out=tmp_path / "file"), "disk", "runs folder").state == "error"

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("src.cli.doctor.os.fsync", refuse)
    finding = find(examine(reach=False, out=tmp_path), "disk", "runs folder")
    assert finding.state == "error" and "No space left on device" in finding.detail


def test_little_space_is_a_warning() -> None:
    assert doctor._space((1 << 30) - 1).state == "warning"
    assert doctor._space(1 << 30).state == "ok"


def test_nothing_is_sent_without_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any) -> None:
    server = serve()
    monkeypatch.setenv("OPENAI_API_KEY", sentinel("OPENAI"))
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    found = examine(reach=False, out=tmp_path)
    assert server.requests == []
    assert not [finding for finding in found if finding.area == "network"]


def reached(tmp_path: Path, name: str) -> Finding:
    found = examine(reach=True, out=tmp_path)
    assert [finding.name for finding in found if finding.area == "network"] == [name], "no other has a key"
    assert "sentinel" not in shown(found).lower()
    return find(found, "network", name)


@pytest.mark.parametrize(
    ("name", "path", "models"),
    [
        ("openai", "/v1/models", "2 models"),
        ("xai", "/v1/models", "2 models"),
        ("compatible", "/v1/models", "2 models"),
        ("anthropic", "/v1/models?limit=1000", "2 models"),
        ("google", "/v1beta/models?pageSize=1000", "1 model"),
    ],
)
@pytest.mark.parametrize("suffix", ["", "/v1/"])
def test_reach_asks_for_the_list_of_models_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, name: str, path: str, models: str, suffix: str
) -> None:
    server, provider = serve(), PROVIDERS[name]
    assert provider.key_variable and provider.base_url_variable
    monkeypatch.setenv(provider.key_variable, sentinel(name))
    monkeypatch.setenv(provider.base_url_variable, server.url + suffix)
    finding = reached(tmp_path, name)
    assert finding == Finding(
        "network", name, "ok", f"{server.url} accepts the key in {provider.key_variable} ({models})"
    )
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", path)
    assert sentinel(name) in json.dumps(request.headers)


@pytest.mark.parametrize(
    ("manner", "state", "detail"),
    [
        ({"status": 401}, "error", "refuses the key in OPENAI_API_KEY (HTTP 401)"),
        (
            {"status": 400, "body": b'{"error": "Incorrect API key provided: SE***9c."}'},
            "error",
            "refuses the key in OPENAI_API_KEY (HTTP 400)",
        ),
        (
            {"status": 429, "body": b'{"error": {"code": "insufficient_quota"}}'},
            "error",
            "refuses the account of the key in OPENAI_API_KEY: no credit or quota is left (HTTP 429)",
        ),
        (
            {"status": 403, "chat": 403},
            "error",
            "does not let the key in OPENAI_API_KEY, its account or its region use the API (HTTP 403)",
        ),
        (
            {"status": 404, "chat": 404},
            "error",
            "has no such API at this address (HTTP 404); correct OPENAI_BASE_URL: it must be the part of the address "
            "before /chat/completions",
        ),
        ({"status": 404, "chat": 401}, "error", "refuses the key in OPENAI_API_KEY (HTTP 401)"),
        (
            {"status": 404, "chat": 400},
            "ok",
            "has no list of models (HTTP 404) but answers chat requests; the key in OPENAI_API_KEY could not be checked",
        ),
        (
            {"status": 403, "chat": 503},
            "warning",
            "answers (HTTP 403), so the key in OPENAI_API_KEY could not be checked",
        ),
        ({"status": 302}, "error", "redirects (HTTP 302); set OPENAI_BASE_URL to the address it redirects to"),
        ({"status": 503}, "warning", "answers (HTTP 503), so the key in OPENAI_API_KEY could not be checked"),
        ({"status": 429}, "warning", "answers (HTTP 429), so the key in OPENAI_API_KEY could not be checked"),
        ({"body": b"<html>SENTINEL</html>"}, "warning", "answers (HTTP 200), but not with a list of models"),
    ],
)
def test_reach_tells_what_is_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    serve: Any,
    manner: dict[str, Any],
    state: doctor.State,
    detail: str,
) -> None:
    server = serve(**manner)
    monkeypatch.setenv("OPENAI_API_KEY", sentinel("OPENAI"))
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/SENTINEL/v1")
    assert reached(tmp_path, "openai") == Finding("network", "openai", state, f"{server.url} {detail}")
    posts = [request for request in server.requests if request.method == "POST"]
    assert [(request.path, request.body) for request in posts] == (
        [("/SENTINEL/v1/chat/completions", b"{}")] if "chat" in manner else []
    )


def test_a_wrong_address_of_google_names_the_setting_of_the_version_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    server = serve(status=404, chat=404)
    monkeypatch.setenv("GEMINI_API_KEY", sentinel("GEMINI"))
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    detail = reached(tmp_path, "google").detail
    assert "correct GOOGLE_GEMINI_BASE_URL or GOOGLE_GENAI_API_VERSION" in detail
    assert detail.endswith("the part of the address before /v1beta/models")


@pytest.mark.parametrize("address", ["http://u:SENTINEL@gateway/v1", "http://gateway/v1?k=SENTINEL", "SENTINEL"])
def test_an_address_that_cannot_be_used_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", sentinel("OPENAI"))
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    finding = reached(tmp_path, "openai")
    assert finding.state == "error"
    assert finding.detail.startswith("not asked: openai: OPENAI_BASE_URL must be an address ")


def test_reach_also_asks_a_server_that_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    server = serve()
    monkeypatch.setenv("COMPATIBLE_BASE_URL", f"{server.url}/v1")
    assert reached(tmp_path, "compatible").detail == f"{server.url} accepts calls without a key (2 models)"
    assert "Authorization" not in server.requests[0].headers


def test_reach_goes_through_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any) -> None:
    with HttpProxy(serve().url) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("COMPATIBLE_BASE_URL", "http://models.invalid:8080")
        assert "accepts calls without a key (2 models)" in reached(tmp_path, "compatible").detail
    assert proxy.asked == ["GET http://models.invalid:8080/v1/models"]


def test_a_host_that_no_resolver_knows_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPATIBLE_BASE_URL", "http://models.invalid:8080")
    finding = reached(tmp_path, "compatible")
    assert finding.state == "error"
    assert finding.detail.startswith("http://models.invalid:8080 cannot be reached: ")


@pytest.mark.parametrize(("hours", "said"), [(1, "behind"), (-1, "ahead of")])
def test_a_clock_that_differs_from_the_servers_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any, hours: int, said: str
) -> None:
    monkeypatch.setenv("COMPATIBLE_BASE_URL", serve(ahead=timedelta(hours=hours)).url)
    finding = find(examine(reach=True, out=tmp_path), "clock", "against servers")
    assert finding.state == "warning"
    seconds, _, rest = finding.detail.partition(" s ")
    assert rest.startswith(said)
    assert abs(int(seconds) - 3600) <= 60


def test_a_server_without_a_valid_date_gives_no_finding_on_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    monkeypatch.setenv("COMPATIBLE_BASE_URL", serve(date="yesterday").url)
    found = examine(reach=True, out=tmp_path)
    assert find(found, "network", "compatible").state == "ok"
    assert not [finding for finding in found if finding.name == "against servers"]


def test_a_server_that_cannot_be_reached_is_an_error_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    server = serve()
    server.close()
    for variable in KEYS:
        monkeypatch.setenv(variable, sentinel(variable))
    for variable in URLS:
        monkeypatch.setenv(variable, f"{server.url}/{sentinel(variable)}")
    found = examine(reach=True, out=tmp_path)
    network = [finding for finding in found if finding.area == "network"]
    assert len(network) == len(URLS)
    for finding in network:
        assert finding.state == "error"
        assert finding.detail == f"{server.url} cannot be reached: Connection refused"
    assert "sentinel" not in shown(found).lower() and "Traceback" not in shown(found)


def test_the_doctor_does_not_wait_for_a_server_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Any
) -> None:
    server = serve(hangs=True)
    monkeypatch.setattr(reach, "REACH_S", 0.2)
    monkeypatch.setenv("COMPATIBLE_BASE_URL", server.url)
    finding = find(examine(reach=True, out=tmp_path), "network", "compatible")
    assert finding.state == "error" and "answer within 0.2 s" in finding.detail
    assert server.answered == []


def test_the_doctor_does_not_wait_for_a_request_that_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = threading.Event()  # as name resolution can be, which knows no time limit
    monkeypatch.setattr(reach, "REACH_S", 0.1)
    monkeypatch.setattr(reach, "ask", lambda question: stuck.wait(HANGS_S))
    monkeypatch.setenv("COMPATIBLE_BASE_URL", "http://127.0.0.1:9")
    finding = find(examine(reach=True, out=tmp_path), "network", "compatible")
    stuck.set()
    assert (finding.state, finding.detail) == ("error", "http://127.0.0.1:9 cannot be reached: no answer within 0.1 s")


def test_the_table_fits_its_width_and_shows_every_finding(tmp_path: Path) -> None:
    found = [Finding("key", "openai", "missing", "[bold]OPENAI_API_KEY[/bold] is not set" + " word" * 40)]
    drawn = table(found, 80)
    assert max(map(len, drawn.splitlines())) <= 80
    assert drawn.splitlines()[0].split() == ["area", "name", "state", "detail"]
    assert "[bold]" in drawn and drawn.count("word") == 40
    assert as_json(found) == [{"area": "key", "name": "openai", "state": "missing", "detail": found[0].detail}]
