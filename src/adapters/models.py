"""The models of `models.toml`: friendly names, their API ids, and which are retired or will be soon.

An id without a row is used as it is, so a new model needs no new version of this project. Names are canonical: `xai:`,
not `grok:`. Nothing here reads the clock or asks a provider: the caller passes the date.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from ..errors import ConfigError
from ..records.model_name import bare_name, split_name

Status = Literal["present", "ending", "retired"]


@dataclass(frozen=True)
class ModelRow:
    provider: str
    name: str
    """What the user writes after the colon."""
    api_id: str
    """What is sent: a dated id if the provider has one."""
    status: Status = "present"
    since: date | None = None
    """The date since which it is retired, or on which it ends."""
    since_note: str = ""
    successors: tuple[str, ...] = ()
    """Names of the same provider."""

    @property
    def full_name(self) -> str:
        return f"{self.provider}:{self.name}"

    def status_on(self, today: date) -> Status:
        """The status on a day: an ending model is retired after its last day."""
        if self.status == "ending" and self.since is not None and today > self.since:
            return "retired"
        return self.status


_FILE = tomllib.loads(Path(__file__).with_name("models.toml").read_text(encoding="utf-8"))
MODELS = tuple(
    ModelRow(**{"provider": provider, "api_id": row["name"], **row, "successors": tuple(row.get("successors", ()))})
    for provider, rows in _FILE.items()
    for row in rows
)
_BY_NAME = {f"{row.provider}:{known}": row for row in MODELS for known in (row.name, row.api_id)}


def row_for(name: str) -> ModelRow | None:
    """The row of `provider:model`, by friendly name or API id; None if the table has none."""
    return _BY_NAME.get(bare_name(name))


def resolve(name: str) -> str:
    """The API id to send: `openai:gpt-4.1` -> `gpt-4.1-2025-04-14`; an id not in the table stays as it is."""
    row = row_for(name)
    return row.api_id if row else split_name(name).model


def full_id(name: str) -> str:
    """`provider:API id`, as in the price table: `xai:grok-2` -> `xai:grok-2-1212`."""
    return f"{split_name(name).provider}:{resolve(name)}"


def check_not_retired(name: str, *, today: date, allow_retired: bool) -> None:
    """Refuse a model that its provider no longer serves, before anything is spent."""
    row = row_for(name)
    if allow_retired or row is None or row.status_on(today) != "retired":
        return
    since = f" since {row.since.isoformat()}" if row.since else ""
    note = f" ({row.since_note})" if row.since_note else ""
    instead = ", ".join(f"{row.provider}:{successor}" for successor in row.successors)
    raise ConfigError(
        f"{name} has been retired{since}{note}. Use a successor ({instead}), or add `allow_retired` if your gateway or "
        "private deployment still serves it."
    )
