"""Tests give the same result in any year and on any machine: the date is fixed, and no test has a time limit of its own.

Hypothesis would fail an example that takes more than 200 ms and a test whose data is slow to make. Both happen to good
code on a busy machine, so both are off. `make nightly` tries more examples (`--hypothesis-profile thorough`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from src.reports import charts
from tests.budget import Counts

os.environ["MEDICARE_EVAL_TODAY"] = "2026-11-16"
# Commands that are shown name the program by its path, unless PATH leads to it: as if no environment were activated.
_OWN = str(Path(sys.executable).parent)
os.environ["PATH"] = os.pathsep.join(one for one in os.environ["PATH"].split(os.pathsep) if one != _OWN)

settings.register_profile("quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")


def pytest_configure(config: pytest.Config) -> None:
    counts = Counts()
    sys.addaudithook(counts.heard)
    config.pluginmanager.register(counts)


@pytest.fixture(autouse=True, scope="session")
def _small_pictures() -> Iterator[None]:
    """Charts as PNG are drawn small: at full size, they take half of the time of writing a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "PNG_WIDTH", 60)
        yield
