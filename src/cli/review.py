"""`view` and `review`: people look at runs, and judge a part of them again, in a browser."""

from __future__ import annotations

import argparse
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .. import storage
from ..api import reviews
from ..errors import ConfigError, IncompleteRun, InputError
from ..records.model_name import is_person
from ..text.count import counted
from .options import own

if TYPE_CHECKING:
    from ..workbench.serve import OpenSocket

NEEDED = ("starlette", "uvicorn")
PACKAGES = "'starlette>=1,<2' 'uvicorn>=0.40,<1'"
ADVISED = 25
"""Sampled trials of a target from which on its corrected share has a useful interval (docs/review_coverage.md)."""


def view(arguments: argparse.Namespace) -> int:
    """Serve the pages for readers until Ctrl-C."""
    with place_for(arguments.port, arguments.host) as place:
        from ..workbench.run_folders import RunFolders
        from ..workbench.serve import access_for, link, serve
        from ..workbench.view_app import ViewApp

        folders = RunFolders(arguments.runs)
        access = access_for([""], place)
        address = link(place, next(iter(access.links)))
        print(f"{arguments.runs}: open {address}", flush=True)
        _say_who_reaches(place)
        print("The link works until this program ends. Stop it with Ctrl-C.", flush=True)
        if arguments.open:
            webbrowser.open(address)
        serve(ViewApp(folders).app(), place, access)
    return 0


def start(arguments: argparse.Namespace) -> int:
    with place_for(arguments.port, arguments.host) as place:
        return _started(place, arguments)


def _started(place: OpenSocket, arguments: argparse.Namespace) -> int:
    made = reviews.start_review(arguments.run, **own(arguments, without="run port host open"))
    marked = f"{counted(made.chosen, 'marked trial')} and {made.sampled} of {counted(made.others, 'other')}"
    print(f"{made.path}: {marked} to review, with {counted(made.claims, 'claim')} to judge.")
    enough = min(made.others, ADVISED * made.targets)
    if made.sampled < enough:
        what = "Without a sample" if not made.sampled else f"With a sample of {made.sampled}"
        print(f"{what}, the report may give no shares corrected by people. --sample {enough} would be better.")
    return _serve(made.path, place, arguments)


def resume(arguments: argparse.Namespace) -> int:
    manifest = storage.read_manifest(arguments.run)
    if not any(map(is_person, manifest.plan.judge_models())):
        text = f"{arguments.run} has no judges who are people. Start a review with: medicare-eval review start RUN"
        raise InputError(text)
    if storage.read_seal(arguments.run, manifest):
        print(_complete(arguments.run))
        return 0
    with place_for(arguments.port, arguments.host) as place:
        return _serve(arguments.run, place, arguments)


def export(arguments: argparse.Namespace) -> int:
    made = reviews.export_review(arguments.run, arguments.to)
    print(
        f"{made.folder}: {counted(made.claims, 'claim')} in {counted(made.replies, 'reply', 'replies')}, as a gold set."
    )
    for why, number in sorted(made.left_out.items()):
        print(f"  {counted(number, 'claim')} left out: {why}")
    print(f"To measure judges on it: medicare-eval judge-check --gold {made.folder} --judge-model MODEL")
    return 0


def _say_who_reaches(place: OpenSocket) -> None:
    if not place.here_only:
        print("Other machines can reach it, with the password. Nothing is encrypted: use it in a network you trust.")


def place_for(port: int | None, host: str) -> OpenSocket:
    """Where pages will be served, before anything is written."""
    if any(find_spec(name) is None for name in NEEDED):
        raise ConfigError(f"The pages need two more packages. Run: python -m pip install {PACKAGES}")
    from ..workbench.serve import check_password, open_place

    place = open_place(port, host)
    try:
        check_password(place)
    except InputError:
        place.connection.close()
        raise
    return place


def _serve(folder: Path, place: OpenSocket, arguments: argparse.Namespace) -> int:
    from ..workbench.review_app import ReviewApp
    from ..workbench.review_state import ReviewState
    from ..workbench.serve import access_for, link, serve

    state = ReviewState(folder)
    access = access_for(state.names, place)
    links = {person: link(place, token) for token, person in access.links.items()}

    def ready() -> None:
        _say_who_reaches(place)
        print("A link for each person, which works until this program ends:")
        for person, address in links.items():
            print(f"  {person}: {address}")
        print("Stop it with Ctrl-C: every saved answer is kept.", flush=True)
        if arguments.open and len(links) == 1:
            webbrowser.open(next(iter(links.values())))

    state.on_ready = ready
    state.on_complete = lambda: print(f"{_complete(folder)} End this program with Ctrl-C.", flush=True)
    serve(ReviewApp(state).app(), place, access, stop_on=state.ends_with)
    if state.failure:
        raise state.failure
    if not state.complete:
        raise IncompleteRun(
            f"The review is not complete{_left(state.left)}. To continue: medicare-eval review continue {folder}"
        )
    return 0


def _complete(folder: Path) -> str:
    return f"{folder}: the review is complete. Agreement and corrected shares: medicare-eval report {folder}"


def _left(waiting: dict[str, int]) -> str:
    return "".join(f"; {number} wait for {person}" for person, number in sorted(waiting.items()))
