"""API keys, and the redaction of everything that an SDK may send as a credential."""

from __future__ import annotations

import json
import os
from urllib.parse import quote

from ..errors import ConfigError

REDACTED = "[redacted]"
SHORTEST_SECRET = 8
"""Shorter keys are placeholders such as `none`: words that a reply may contain."""
_OWNERS = ("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "XAI_", "COMPATIBLE_")
_KINDS = ("_KEY", "_TOKEN", "_ORG_ID", "_PROJECT_ID", "_SECRET")


def given_secrets() -> set[str]:
    """Everything in the environment that an SDK may send as a credential."""
    found = set()
    for name, value in os.environ.items():
        if name.startswith(_OWNERS) and name.endswith(_KINDS):
            found.add(value.strip())
        elif name.startswith(_OWNERS) and name.endswith("_CUSTOM_HEADERS"):
            for text in custom_headers(value).values():
                found.update((text, text.rpartition(" ")[2]))
    return found


def custom_headers(value: str) -> dict[str, str]:
    """The headers in a `..._CUSTOM_HEADERS` variable, one `Name: value` per line."""
    pairs = (line.partition(":") for line in value.splitlines())
    return {name.strip(): text.strip() for name, colon, text in pairs if colon}


def _forms(secret: str) -> set[str]:
    if len(secret) < SHORTEST_SECRET:
        return set()
    return {secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/"), quote(secret, safe="")}


class Secret:
    """An API key that is never printed."""

    def __init__(self, value: str) -> None:
        self._value = value
        self._forms = sorted(
            {form for secret in {value, *given_secrets()} for form in _forms(secret)}, key=len, reverse=True
        )

    def __repr__(self) -> str:
        return REDACTED

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def redact_bytes(self, data: bytes) -> bytes:
        for form in self._forms:
            data = data.replace(form.encode(), REDACTED.encode())
        return data


def checked_key(api_key: str, owner: str) -> Secret:
    """A key that can be sent in an HTTP header, or a `ConfigError` that does not show it."""
    key = api_key.strip()
    if not key:
        raise ConfigError(f"The API key for {owner} is empty. Set it and try again.")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(f"The API key for {owner} has characters that no key has. Copy it again, without quotes.")
    return Secret(key)
