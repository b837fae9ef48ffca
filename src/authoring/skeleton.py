"""A commented scenario file to start from."""

from __future__ import annotations

from pathlib import Path

from ..errors import InputError, StorageError
from ..store.package_data import data_folder


def write_skeleton(scenario_id: str, path: Path) -> None:
    """Write the skeleton to a new file. An existing file is never overwritten."""
    if path.exists():
        raise InputError(f"{path} already exists and will not be overwritten. Choose another file with `out`.")
    template = (data_folder("scenarios") / "skeleton.txt").read_text(encoding="utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(template.replace("SCENARIO_ID", scenario_id))
    except OSError as error:
        raise StorageError(f"{path}: write failed ({error.strerror}). Choose another file with `out`.") from None
