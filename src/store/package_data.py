"""Where the data files are: in the installed package, or else in the checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..errors import ConfigError

DataKind = Literal[
    "prompts", "scenarios", "fakes", "facts", "plans", "rubrics", "baseline", "gold", "schemas", "sources"
]


def data_folder(kind: DataKind) -> Path:
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_data" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise ConfigError(f"The data folder {kind!r} of medicare-eval is missing. Reinstall the package.")
