"""A report without links to evidence pages, for a report that is written without them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from .document import Linked
from .links import FOLDER

T = TypeVar("T")


def without_evidence_links(part: T) -> T:
    """A report, or any part of one, in which cells that lead to an evidence page lead nowhere."""
    changed: T = _unlinked(part)
    return changed


def _unlinked(part: Any) -> Any:
    if isinstance(part, Linked) and part.href.startswith(f"{FOLDER}/"):
        return _unlinked(part.cell)
    if isinstance(part, tuple):
        inner = [_unlinked(one) for one in part]
        return type(part)(*inner) if hasattr(part, "_fields") else tuple(inner)
    if is_dataclass(part) and not isinstance(part, type):
        values = {field.name: getattr(part, field.name) for field in fields(part)}
        changed = {name: new for name, value in values.items() if (new := _unlinked(value)) is not value}
        return replace(part, **changed)
    return part
