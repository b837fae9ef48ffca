"""`sources`: pages that answers cite. What it prints; the work is done in `api.sources`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from ..api import sources as api
from ..errors import IncompleteRun, InputError
from ..inputs.sources.fetch import NotFetched
from ..records.citation import SnapshotPage
from ..store.input_files import read_bytes, text_in
from ..text.count import counted
from . import tables
from .options import own

SHOWN = 20
"""Addresses without a page that are listed; --json lists all."""


def snapshot(arguments: argparse.Namespace) -> int:
    made = api.snapshot_pages(on_done=_report, **own(arguments))
    print(f"{arguments.to}: {counted(len(made.pages), 'page')} added.")
    if made.failed:
        raise IncompleteRun(
            f"{len(made.failed)} of {counted(len(made.failed) + len(made.pages), 'page')} could not be read; the rest "
            "is saved. Try again later with only these addresses."
        )
    return 0


def _report(got: SnapshotPage | NotFetched) -> None:
    if isinstance(got, NotFetched):
        print(f"medicare-eval: {got.url}: not read: {got.why}.", file=sys.stderr, flush=True)
    elif got.is_missing:
        print(f"{got.url}: the site has no such page (status {got.status}); recorded as dead.", flush=True)
    else:
        led = f", which led to {got.final_url}" if got.final_url != got.url else ""
        print(f"{got.url}{led}: {got.bytes:,} bytes. Source: {got.origin}.", flush=True)


def list_pages(arguments: argparse.Namespace) -> int:
    found = api.list_sources(arguments.snapshot)
    if arguments.json:
        print(json.dumps(asdict(found), indent=2, ensure_ascii=False, default=str))
        return 0
    rows = [[one.url, f"{one.fetched}", one.host_class, _size(one)] for one in found.pages]
    origins = dict.fromkeys(one.origin for one in found.pages)
    caption = f"{counted(len(found.pages), 'page')}. Text from: {'; '.join(origins) or 'nowhere'}."
    print(tables.plain_table(("page", "date", "class", "bytes"), rows, "lll", caption=caption))
    if found.lacking:
        print()
        print(_lacking_text(found))
    return 0


def _size(page: api.ListedPage) -> str:
    if page.status in (404, 410):
        return "dead"
    return f"{page.bytes:,}" if page.has_text else f"{page.bytes:,}\n(no text)"


def _lacking_text(found: api.SourceList) -> str:
    rows = [[one.address, one.host_class, f"{one.facts:,}"] for one in found.lacking[:SHOWN]]
    more = len(found.lacking) - SHOWN
    rest = f" The {SHOWN} that most facts cite are listed; --json lists all." if more > 0 else ""
    caption = f"{counted(len(found.lacking), 'address', 'addresses')} of the fact bank without a page.{rest}"
    return tables.plain_table(("cited by facts, not in the snapshot", "class", "facts"), rows, "ll", caption=caption)


def check(arguments: argparse.Namespace) -> int:
    found = api.check_text(_text(arguments), arguments.snapshot)
    if arguments.json:
        print(json.dumps(_fields(found), indent=2, ensure_ascii=False))
        return 0
    if found.citations:
        rows = [[f"{one.url}\n{one.why}", one.host_class, one.outcome] for one in found.citations]
        print(tables.plain_table(("address and reason", "class", "outcome"), rows, "lll"))
    else:
        print("No address found.")
    if found.named:
        names = dict.fromkeys(one.name for one in found.named)
        print(tables.wrapped(f"Named without an address: {', '.join(names)}."))
    return 0


def _fields(found: api.CheckedText) -> dict[str, Any]:
    return {
        "citations": [one.model_dump(mode="json") for one in found.citations],
        "named": [asdict(one) for one in found.named],
    }


def _text(arguments: argparse.Namespace) -> str:
    if (arguments.file is None) == (arguments.text is None):
        raise InputError("Give one file or a text: medicare-eval sources check FILE, or sources check --text TEXT")
    if arguments.text is not None:
        return str(arguments.text)
    return text_in(read_bytes(arguments.file), arguments.file)
