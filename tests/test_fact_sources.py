"""Where facts come from: no fact of the bank rests on the help desk or support pages of a company."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from tests.cases import each_case
from tests.helpers import ROOT

HELP_DESKS = ("freshdesk", "zendesk", "helpscout", "intercom", "helpjuice", "groovehq", "kayako", "uservoice")
FILES = sorted([*(ROOT / "facts").rglob("*.json"), *(ROOT / "scenarios").rglob("*.json")])


def addresses(value: Any) -> Iterator[str]:
    """Every web address in a file."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from addresses(part)
    elif isinstance(value, str) and value.startswith(("http://", "https://")):
        yield value


def is_help_desk(address: str) -> bool:
    host, path = urlparse(address).netloc.lower(), urlparse(address).path.lower()
    official = host.endswith(".gov")
    named = any(name in host for name in HELP_DESKS) or host.split(".")[0] in ("help", "support")
    return not official and (named or path.startswith(("/support/solutions", "/hc/")))


@each_case("path", FILES, ids=lambda path: path.stem)
def test_no_fact_cites_a_help_desk(path: Path) -> None:
    assert [one for one in addresses(json.loads(path.read_bytes())) if is_help_desk(one)] == []


def test_help_desks_are_recognized() -> None:
    assert is_help_desk("https://seller.freshdesk.com/support/solutions/articles/1-medigap")
    assert is_help_desk("https://help.seller.com/medigap")
    assert is_help_desk("https://www.seller.com/hc/en-us/articles/1")
    assert not is_help_desk("https://www.medicare.gov/publications/02110-choosing-a-medigap-policy.pdf")
    assert sum(1 for path in FILES for _ in addresses(json.loads(path.read_bytes()))) > 1000
