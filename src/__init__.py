"""AI Medicare Evaluation Harness: asks AI systems Medicare questions and judges the answers against a written key.

The package is `src` in a checkout and `medicare_eval` once installed. Importing it imports nothing heavy: public names
are loaded when they are first used. `__init__.pyi` lists them. docs/python.md is the guide.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.7.0"

_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
_MODULE_OF = {line.split()[3]: line.split()[1] for line in _STUB if line.startswith("from ")}
"""Public name to the module that has it. A line of the stub is `from MODULE import NAME as NAME`."""
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
