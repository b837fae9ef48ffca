"""Where the data files lie: inside the installed package first, in the checkout second."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..errors import ConfigError

DataKind = Literal["prompts", "scenarios", "fakes", "facts", "plans", "rubrics", "baseline", "gold"]


def data_folder(kind: DataKind) -> Path:
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_data" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise ConfigError(f"The {kind} that ship with this project are missing; install it again.")
