"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from types import ModuleType

from src.inputs.transcripts import codes, redact
from src.text import spoken_numbers
from tests.cases import each_case


@each_case("module", [spoken_numbers, codes, redact], ids=lambda module: module.__name__)
def test_examples(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
