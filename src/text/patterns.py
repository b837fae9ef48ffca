"""Regular expressions and lists of words that are data: in files beside the code that uses them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def load_patterns(file: Path) -> dict[str, re.Pattern[str]]:
    """The patterns of a TOML file. A line ends nowhere in a pattern, and `{name}` stands for an entry of `[parts]`."""
    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    parts = tables.pop("parts", {})

    def whole(text: str) -> str:
        return re.sub(r"\{([a-z_]+)\}", lambda found: whole(parts[found[1]]), text.replace("\n", ""))

    return {name: re.compile(whole(text)) for name, text in tables.items()}


def load_words(file: Path) -> dict[str, frozenset[str]]:
    """The lists of words of a TOML file, each a text with spaces between the words."""
    return {name: frozenset(text.split()) for name, text in tomllib.loads(file.read_text(encoding="utf-8")).items()}


WORDS = load_words(Path(__file__).with_name("words.toml"))
"""The lists of this package."""
_STATES = Path(__file__).with_name("states.txt").read_text(encoding="utf-8").splitlines()
STATES = frozenset(
    text.casefold() for name, _, code in (row.rpartition(" ") for row in _STATES) for text in (name, code)
)
"""The states, the District of Columbia and the territories, by name and postal code, as `str.casefold` writes them."""
