"""Calls through real HTTP and SOCKS5 proxies, and what is said if one cannot be used."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from src.adapters import addresses
from src.adapters.addresses import proxy_for
from src.adapters.base import CallFailure
from src.adapters.registry import check_settings
from src.errors import ConfigError
from tests.adapters.test_contract import (
    BY_NAME,
    KEY,
    OPENERS,
    AdapterCase,
    asked,
    clean_environment,
    every_adapter,
    once,
)
from tests.cases import each_case
from tests.loopback import Loopback
from tests.proxies import HttpProxy, Proxy, Socks5Proxy

__all__ = ["clean_environment"]
HOST = "models.invalid"
"""A name that no resolver knows: only the proxy can reach it."""


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def called(case: AdapterCase, base_url: str) -> str:
    """The text of one reply."""
    return asyncio.run(once(OPENERS[case.name](api_key=KEY, base_url=base_url), asked(case))).text


def failed(case: AdapterCase, base_url: str) -> CallFailure:
    with pytest.raises(CallFailure) as caught:
        called(case, base_url)
    return caught.value


@every_adapter
@each_case("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_calls_go_through_an_http_proxy(
    server: Loopback, case: AdapterCase, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpProxy(server.address) as proxy:
        monkeypatch.setenv(variable, proxy.url if variable != "ALL_PROXY" else proxy.url.removeprefix("http://"))
        assert called(case, f"http://{HOST}:8080") == "Part B covers it."
    assert len(proxy.asked) == 1
    assert proxy.asked[0].startswith(f"POST http://{HOST}:8080/v1")


@every_adapter
def test_calls_go_through_a_socks_proxy(server: Loopback, case: AdapterCase, monkeypatch: pytest.MonkeyPatch) -> None:
    with Socks5Proxy(server.address) as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert called(case, f"http://{HOST}:8080") == "Part B covers it."
    assert proxy.asked == [f"{HOST}:8080"]


# The HTTP library does not close the connection to a SOCKS proxy that refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@each_case("kind", [HttpProxy, Socks5Proxy])
def test_a_proxy_that_wants_a_password_gets_it_or_denies(
    server: Loopback, kind: type[Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = BY_NAME["openai"]
    with kind(server.address, password="sentinel-pass") as proxy:
        address = f"127.0.0.1:{proxy.port}"
        monkeypatch.setenv("ALL_PROXY", f"{kind.scheme}://user:sentinel-pass@{address}")
        assert called(case, f"http://{HOST}") == "Part B covers it."
        for wrong in (f"{kind.scheme}://user:sentinel-wrong@{address}", proxy.url):
            monkeypatch.setenv("ALL_PROXY", wrong)
            failure = failed(case, f"http://{HOST}")
            assert failure.outcome == "denied"
            assert "407" in failure.message
            assert "sentinel-" not in repr(vars(failure)).replace(KEY, "")
            del failure
    gc.collect()  # so that its warning comes here and not in another test


def test_a_tunnel_that_is_refused_is_denied_and_a_dead_proxy_is_not(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpProxy(server.address, password="sentinel-pass") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        failure = failed(BY_NAME["openai"], f"https://{HOST}")
        assert proxy.asked == [f"CONNECT {HOST}:443"]
    assert failure.outcome == "denied"
    assert failure.message.startswith("openai: the proxy refused (HTTP 407): ")
    assert failed(BY_NAME["openai"], f"https://{HOST}").outcome == "transient"


@contextmanager
def https_server(folder: Path) -> Iterator[ThreadingHTTPServer]:
    """A server with a certificate of its own for `HOST`, which `folder/cert.pem` vouches for."""
    wanted = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *wanted, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=120)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"choices": [{"message": {"content": "Over TLS."}, "finish_reason": "stop"}]}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@each_case("kind", [HttpProxy, Socks5Proxy])
def test_an_https_address_is_reached_through_a_tunnel(
    kind: type[Proxy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with https_server(tmp_path) as there, kind(f"http://127.0.0.1:{there.server_port}") as proxy:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert called(BY_NAME["compatible"], f"https://{HOST}") == "Over TLS."
    assert proxy.asked == [f"CONNECT {HOST}:443" if kind is HttpProxy else f"{HOST}:443"]


# Which proxy


@each_case("host", ["127.0.0.1", "127.8.8.8", "localhost", "me.localhost", "[::1]"])
def test_a_loopback_address_never_goes_through_a_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy:3128")
    monkeypatch.setenv("HTTP_PROXY", "socks4://proxy")
    assert proxy_for(f"http://{host}:8000/v1") is None


@each_case(
    ("exempt", "address", "goes_through"),
    [
        ("", "https://api.example.org/v1", True),
        ("example.org", "https://api.example.org/v1", False),
        (".example.org, other", "https://api.example.org/v1", False),
        ("api.example.org:8443", "https://api.example.org/v1", True),
        ("api.example.org:8443", "https://api.example.org:8443/v1", False),
        ("ample.org", "https://api.example.org/v1", True),
        ("10.0.0.0/8", "https://10.1.2.3:8000/v1", False),
        ("10.0.0.0/8", "https://11.1.2.3:8000/v1", True),
        ("fd00::/8, word", "https://[fd00::1]/v1", False),
        ("*", "https://api.example.org/v1", False),
    ],
)
def test_no_proxy_is_respected(exempt: str, address: str, goes_through: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", exempt)
    assert proxy_for(address) == ("http://proxy:3128" if goes_through else None)


def test_the_variable_of_the_scheme_comes_before_the_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://for-all")
    monkeypatch.setenv("HTTPS_PROXY", "for-https:3128")
    assert proxy_for("https://api.example.org") == "http://for-https:3128"
    assert proxy_for("http://api.example.org") == "http://for-all"


def test_a_socks_proxy_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "find_spec", lambda name: None)
    monkeypatch.setenv("ALL_PROXY", "socks5://user:sentinel-pass@proxy:1080")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for refused in (lambda: check_settings("openai:gpt-4.1"), lambda: OPENERS["openai"](api_key=KEY)):
        with pytest.raises(ConfigError) as caught:
            refused()
        said = str(caught.value)
        assert "ALL_PROXY names a SOCKS proxy, which needs one more package." in said
        assert "python -m pip install 'aiohttp-socks>=0.11,<1'" in said
        assert "sentinel" not in said and "SDK" not in said and "BASE_URL" not in said


def test_a_proxy_of_another_kind_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks4://user:sentinel-pass@proxy:1080")
    with pytest.raises(ConfigError, match="HTTPS_PROXY names a proxy of a kind that is not supported") as caught:
        OPENERS["anthropic"](api_key=KEY)
    assert "sentinel" not in str(caught.value)


def test_asking_for_a_proxy_imports_no_sdk() -> None:
    code = "import sys, src.adapters.addresses as p; p.proxy_for('https://x.example'); print('httpx2' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.strip() == "False"


@each_case(
    ("given", "used"),
    [
        ("SOCKS5://proxy:99", "socks5://proxy:99"),
        ("socks5://user:pass@proxy", "socks5://user:pass@proxy:1080"),
        ("HTTP://proxy:3128/", "http://proxy:3128"),
        ("socks5h://[::2]", "socks5h://[::2]:1080"),
        ("user:p%40ss@proxy:3128", "http://user:p%40ss@proxy:3128"),
    ],
)
def test_a_proxy_is_read_as_other_programs_do(given: str, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "find_spec", lambda name: name)
    monkeypatch.setenv("ALL_PROXY", given)
    assert proxy_for("https://api.example.org") == used


@each_case(
    "given",
    ["http://", "socks5://", "http://h:99999", "socks5://h:99999", "http://h:x", "http://u:p%C3%A4ss@h:1", "://"],
)
def test_a_proxy_that_cannot_be_used_is_refused_before_anything_is_made(
    given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", given)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ConfigError, match=r"HTTPS_PROXY (is not the address of a proxy|names a proxy of a kind)"):
        check_settings("openai:gpt-4.1")
