"""A new pre-registration file. It is written once and never replaced."""

from __future__ import annotations

from pathlib import Path

from .. import storage
from ..errors import InputError
from ..planning.preregistration import frozen_bytes, frozen_sha256
from ..records.preregistration import Preregistration
from ..store.failpoints import Failpoints


def write_preregistration(path: Path, frozen: Preregistration) -> str:
    """Write a pre-registration where no file is yet. Returns the hash of the file, which is what to publish."""
    if path.exists():
        raise InputError(f"{path} already exists and will not be overwritten. Choose another file with `to`.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}). Choose another file with `to`.") from None
    storage.write_once(path, frozen_bytes(frozen), Failpoints(None), "frozen")
    return frozen_sha256(frozen)
