"""Where calls go: base URLs in every usual form, and the address and API version that the journal keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from src.adapters.addresses import OWN_ADDRESSES, Endpoint, endpoint
from src.adapters.base import CallFailure
from src.adapters.google_adapter import GoogleAdapter
from src.adapters.registry import PROVIDERS, check_settings, make_adapter
from src.errors import ConfigError
from tests.adapters.test_contract import (
    BY_NAME,
    CASES,
    KEY,
    OPENERS,
    AdapterCase,
    asked,
    clean_environment,
    every_adapter,
    once,
)
from tests.cases import each_case
from tests.loopback import Loopback, Scripted
from tests.runs import ROOT
from tests.third_party import readme_settings

__all__ = ["clean_environment"]
SUFFIXES = ("", "/", "/v1", "/v1/", "/v1beta", "/v1beta/")
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
CHAT = ("openai", "xai", "compatible")


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


def path_of(case: AdapterCase, version: str = "v1beta") -> str:
    return PATHS.get(case.wire, f"/{version}/models/{case.model}:generateContent")


@pytest.mark.slow
@every_adapter
@each_case("prefix", ["", "/proxy/gateway"])
@each_case("suffix", SUFFIXES)
def test_base_urls_with_and_without_a_version_reach_the_same_path(
    server: Loopback, case: AdapterCase, prefix: str, suffix: str
) -> None:
    own_path = prefix and case.name in CHAT and not suffix.strip("/")
    path = prefix + ("/chat/completions" if own_path else path_of(case))
    server.script()
    adapter = OPENERS[case.name](api_key=KEY, base_url=f"{server.address}{prefix}{suffix}")
    reply = asyncio.run(once(adapter, asked(case)))
    assert server.last.path == path
    assert reply.address == server.address + path


@each_case(
    ("provider", "given", "used"),
    [
        ("openai", "http://gateway/openai", "http://gateway/openai"),
        ("openai", "http://gateway/v1beta/openai/", "http://gateway/v1beta/openai"),
        ("openai", "http://gateway/api/v3", "http://gateway/api/v3"),
        ("openai", "http://gateway/v1/chat/completions", "http://gateway/v1"),
        ("openai", " http://gateway:8080 ", "http://gateway:8080/v1"),
        ("xai", "http://gateway/xai/v1/", "http://gateway/xai/v1"),
        ("compatible", "http://[::1]:8000", "http://[::1]:8000/v1"),
        ("anthropic", "http://gateway/proxy/anthropic", "http://gateway/proxy/anthropic"),
        ("anthropic", "http://gateway/anthropic/v1/messages", "http://gateway/anthropic"),
        *((name, None, address) for name, address in OWN_ADDRESSES.items()),
    ],
)
def test_a_path_that_is_no_version_is_kept(provider: str, given: str | None, used: str) -> None:
    assert endpoint(provider, given).base_url == used


@each_case(
    ("given", "setting", "base_url", "version"),
    [
        (None, None, OWN_ADDRESSES["google"], "v1"),
        (None, "v1beta", OWN_ADDRESSES["google"], "v1beta"),
        (f"{OWN_ADDRESSES['google']}/v1beta", None, OWN_ADDRESSES["google"], "v1beta"),
        (f"{OWN_ADDRESSES['google']}/", None, OWN_ADDRESSES["google"], "v1"),
        ("http://gateway/gemini", None, "http://gateway/gemini", "v1beta"),
        ("http://gateway/gemini/v1", None, "http://gateway/gemini", "v1beta"),
        ("http://gateway/v1alpha", None, "http://gateway", "v1alpha"),
        ("http://gateway/v1beta", "v1", "http://gateway", "v1"),
        ("http://gateway", "beta", "http://gateway", "v1beta"),
    ],
)
def test_googles_version_is_the_sdks_own_at_google_and_v1beta_elsewhere(
    given: str | None, setting: str | None, base_url: str, version: str
) -> None:
    assert endpoint("google", given, api_version=setting) == Endpoint(base_url, version)


@each_case("given", ["gateway/v1", "ftp://gateway", "http://", "http://gateway:port", "http://[::1"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=r"The base URL for openai must be an address that starts with http"):
        endpoint("openai", given)


@each_case(
    ("given", "problem"),
    [
        ("http://user:sentinel@gateway/v1", "without a name or password in it"),
        ("http://gateway/v1?key=sentinel", r"without \? or #"),
        ("http://gateway/v1#sentinel", r"without \? or #"),
    ],
)
def test_secrets_in_an_address_are_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, given: str, problem: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", given)
    with pytest.raises(ConfigError, match=problem) as caught:
        check_settings("openai:gpt-4.1")
    assert "sentinel" not in str(caught.value)
    assert str(caught.value).startswith("openai:gpt-4.1: OPENAI_BASE_URL must be an address without ")


def test_a_strange_version_is_refused_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "../v1")
    with pytest.raises(ConfigError, match="GOOGLE_GENAI_API_VERSION must be a version such as v1 or v1beta"):
        check_settings("google:gemini-3.8-flash")


@every_adapter
def test_the_registry_reads_address_and_version_from_the_environment(
    server: Loopback, case: AdapterCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = PROVIDERS[case.name]
    assert provider.key_variable and provider.base_url_variable
    monkeypatch.setenv(provider.key_variable, KEY)
    monkeypatch.setenv(provider.base_url_variable, f"{server.address}/")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v1")
    server.script()
    asyncio.run(once(make_adapter(case.name), asked(case)))
    assert (server.last.path, server.last.key) == (path_of(case, "v1"), KEY)


@each_case(
    ("server", "addresses"),
    [
        ("LiteLLM proxy", {"openai": "/v1", "anthropic": "", "google": "", "xai": "/v1"}),
        ("aimock", {"openai": "/v1", "anthropic": "", "google": "", "xai": "/v1"}),
        ("llmock", {"openai": "/v1", "anthropic": "/anthropic", "google": "/gemini", "xai": "/xai/v1"}),
    ],
)
def test_the_readmes_settings_lead_to_the_addresses_that_the_servers_have(
    server: str, addresses: dict[str, str]
) -> None:
    given = readme_settings(server, 8080)
    for name, path in addresses.items():
        place = endpoint(name, given[PROVIDERS[name].base_url_variable or ""])
        assert place == Endpoint(f"http://127.0.0.1:8080{path}", "v1beta" if name == "google" else None)


def test_the_readme_names_the_variables_that_are_read() -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Gateways, proxies and local servers")[2]
    named = {variable for row in PROVIDERS.values() for variable in (row.base_url_variable, row.version_variable)}
    for variable in named - {None}:
        assert f"`{variable}" in section.partition("\n## ")[0]


# What the journal keeps


@each_case("case", CASES, ids=lambda case: case.name)
def test_the_version_that_was_really_asked_for_is_kept(server: Loopback, case: AdapterCase) -> None:
    server.script()
    reply = asyncio.run(once(case.open(server), asked(case)))
    sent = {"anthropic": server.last.headers.get("anthropic-version"), "google": "v1beta"}.get(case.name)
    assert reply.api_version == sent
    assert (sent is None) == (case.wire == "openai")


@every_adapter
def test_failures_keep_the_address_too(server: Loopback, case: AdapterCase) -> None:
    server.script(Scripted(status=404))
    with pytest.raises(CallFailure) as caught:
        asyncio.run(once(case.open(server), asked(case)))
    assert caught.value.address == server.address + path_of(case)
    with Loopback() as gone:
        adapter = case.open(gone)
    with pytest.raises(CallFailure) as unreachable:
        asyncio.run(once(adapter, asked(case)))
    assert unreachable.value.address == gone.address + path_of(case)


@every_adapter
def test_a_key_in_the_path_is_redacted(server: Loopback, case: AdapterCase) -> None:
    key = "sentinel/key+0123456789"
    for form in (key, quote(key, safe="")):
        server.script()
        adapter = OPENERS[case.name](api_key=key, base_url=f"{server.address}/for/{form}/v1")
        reply = asyncio.run(once(adapter, asked(case)))
        assert "sentinel" in server.last.path, "the key was really in the path"
        assert reply.address == f"{server.address}/for/[redacted]{path_of(case)}"
        assert "sentinel" not in json.dumps([reply.address, reply.api_version])


def test_a_query_that_the_sdk_adds_is_not_kept(server: Loopback) -> None:
    server.script()
    case = BY_NAME["google"]
    adapter = GoogleAdapter(api_key=KEY, base_url=server.address)

    async def add_query(request: object) -> None:
        request.url = request.url.copy_merge_params({"key": KEY})  # type: ignore[attr-defined]

    adapter._http.event_hooks["request"].insert(0, add_query)
    reply = asyncio.run(once(adapter, asked(case)))
    assert server.last.path.endswith(f"?key={KEY}")
    assert reply.address == server.address + path_of(case)
