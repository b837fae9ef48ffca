"""Writing a folder of conversations: created if need be, each file written once, nothing overwritten."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from ...errors import InputError
from ...records.transcript import Collection, Conversation, ConversationKind
from ...storage import require_folder, storage_error, sync_folder, write_once
from ...store.conversations import COLLECTION, conversation_files, read_collection, read_conversation
from ...store.failpoints import Failpoints
from ...store.run_files import encode_record
from .codes import folded
from .redact_names import find_names


def plan_collection(
    folder: Path, *, kind: ConversationKind | None, system: str | None, today: date, fallback: ConversationKind
) -> Collection:
    """The collection in a folder, or the one that will be made there. Nothing is written.

    Raises:
        InputError: the folder is something else, or was made for another kind or system.
    """
    if any(char.isspace() or not char.isprintable() for char in str(folder)) or len(str(folder)) > 180:
        raise InputError(f"--to {str(folder)[:80]!r}: use a short path without spaces; it becomes transcript:DIR.")
    require_folder(folder)
    if folder.is_dir() and (folder / COLLECTION).exists():
        found = read_collection(folder)
        if kind and kind != found.kind:
            raise InputError(f"{folder} holds conversations by {found.kind}, not {kind}. Use another folder with --to.")
        if system and system.strip() != found.system:
            raise InputError(f"{folder} holds conversations with {found.system!r}. Use another folder with --to.")
        return found
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise InputError(f"{folder} has other files in it. Give a new or empty folder with --to.")
    if not system or not system.strip():
        raise InputError("--system is missing: say what was spoken to, for example --system 'SHIP counselors'.")
    system = system.strip()
    if len(system) > 200 or not system.isprintable():
        raise InputError("--system: use up to 200 printable characters.")
    if find_names(folded(system)):
        raise InputError(f"--system {system!r} looks like a person's name. Name the service, not the person.")
    name = folder.resolve().name or "conversations"
    return Collection(name=name, kind=kind or fallback, system=system, created=today)


def refuse_repeated(folder: Path, conversations: Sequence[Conversation]) -> None:
    """Refuse a source file that was imported for the same scenario before, or is given twice."""
    seen: dict[tuple[str, str], str] = {}
    for path in conversation_files(folder) if folder.is_dir() else ():
        one = read_conversation(path)
        seen[one.scenario_name, one.source.sha256] = path.name
    for one in conversations:
        key = (one.scenario_name, one.source.sha256)
        if key in seen:
            raise InputError(f"{one.source.name} was already imported for {one.scenario_name}: it is {seen[key]}.")
        seen[key] = f"the same as {one.source.name}"


def save_all(folder: Path, collection: Collection, conversations: Sequence[Conversation]) -> list[Path]:
    """Write the collection, if it is new, and its conversations."""
    refuse_repeated(folder, conversations)
    points = Failpoints.from_environment()
    make_collection(folder, collection, points)
    paths = []
    for one in conversations:
        path = folder / one.file_name
        write_once(path, encode_record(one) + b"\n", points, "conversation")
        paths.append(path)
    return paths


def make_collection(folder: Path, collection: Collection, points: Failpoints) -> None:
    """Make the folder and its `collection.json`, unless they are there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        exists = (folder / COLLECTION).exists()
    except OSError as error:
        raise storage_error(folder, error) from None
    if not exists:
        write_once(folder / COLLECTION, encode_record(collection) + b"\n", points, "collection")


def replace_file(path: Path, data: bytes, points: Failpoints) -> None:
    """Replace a whole file durably: after a crash, it is the old one or the new one."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        points.hit("collect.before_rename")
        temporary.replace(path)
        points.hit("collect.after_rename")
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from None
