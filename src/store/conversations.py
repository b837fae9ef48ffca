"""A folder of recorded conversations: one JSON file each, and `collection.json`. Nothing here writes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TypeVar

from ..errors import InputError
from ..records.transcript import Collection, Conversation
from ..schemas import Record
from .input_files import read_bytes, record_in
from .strict_json import sha256

COLLECTION = "collection.json"
MAX_BYTES = 20_000_000
"""Of one conversation."""
R = TypeVar("R", bound=Record)


def read_collection(folder: Path) -> Collection:
    """What the conversations of a folder have in common; `InputError` if it is not such a folder."""
    try:
        if not folder.is_dir():
            raise InputError(f"{folder} is not a folder of conversations. Make one with: {_HOW}")
        if not (folder / COLLECTION).is_file():
            raise InputError(f"{folder} has no {COLLECTION}, so it is not a folder of conversations. Use: {_HOW}")
    except (OSError, ValueError) as error:
        raise InputError(f"{str(folder)[:80]!r} cannot be read ({error}). Give a folder of conversations.") from None
    return _read(folder / COLLECTION, Collection)


_HOW = "medicare-eval import-transcripts FILE --scenario S --to DIR"


def conversation_files(folder: Path) -> list[Path]:
    """The files of finished conversations, by name. A name that begins with a dot is of an unfinished one."""
    try:
        found = [path for path in folder.glob("*.json") if path.name != COLLECTION and not path.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror}).") from None
    return sorted(found, key=lambda path: path.name)


def read_conversation(path: Path) -> Conversation:
    found = _read(path, Conversation)
    if found.file_name != path.name:
        raise InputError(f"{path} holds conversation {found.file_name}. Give the file its own name again.")
    return found


def _read(path: Path, kind: type[R]) -> R:
    return record_in(read_bytes(path, MAX_BYTES), kind, path, advice=" Restore it from a copy.")


class RecordedConversations:
    """The conversations in a folder, read once. A conversation is found by its scenario's name and its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.collection = read_collection(folder)

    @cached_property
    def _by_scenario(self) -> dict[str, tuple[Conversation, ...]]:
        found: dict[str, list[Conversation]] = {}
        for path in conversation_files(self.folder):
            one = read_conversation(path)
            found.setdefault(one.scenario_name, []).append(one)
        return {name: tuple(sorted(them, key=lambda one: one.conversation_id)) for name, them in found.items()}

    @property
    def scenario_names(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_scenario))

    def conversations(self, scenario_name: str) -> tuple[Conversation, ...]:
        """Those about `scenario_001` or `medicare_only@hmo`, by their ids. The first is number 1 of a hint."""
        return self._by_scenario.get(scenario_name, ())

    def sha256(self) -> str:
        """One hash over the names and bytes of all files, for a manifest."""
        files = [self.folder / COLLECTION, *conversation_files(self.folder)]
        return sha256("".join(f"{path.name} {sha256(read_bytes(path, MAX_BYTES))}\n" for path in files))
