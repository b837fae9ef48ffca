"""Tests give the same in any year: the day that keys and models are checked against is fixed."""

from __future__ import annotations

import os

os.environ["MEDICARE_EVAL_TODAY"] = "2026-11-16"
