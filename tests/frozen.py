"""What people read, frozen: reports, tables, exports and pages of kept runs and of the demo, which a test compares.

The texts of `TEXTS` are kept in full in `tests/frozen/`; of every other file the index has the hash. HTML is compared as
it is parsed, so that its white space may differ. Time stamps and folders are replaced by fixed ones.

`python -m tests.frozen --to DIR` writes all outputs to a folder: do that before and after a change, and read the
difference. `python -m tests.frozen --write` takes the corpus again.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

from src import __version__
from tests.browser import served
from tests.runs import ROOT, call, shared

KEPT = ROOT / "tests" / "frozen"
INDEX = "index.txt"
TEXTS = ("report/report.md", "report/methods.md", "codebook.csv", ".txt")
"""Ends of the names of files that are kept in full."""
_STAMP = re.compile(r"\d{8}T\d{6}Z(?:-\d+)?")
_TIME = re.compile(r"20\d\d\\?-\d\d\\?-\d\d(T| )\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\\?\+00:00| UTC)?")
_VERSIONS = re.compile(r"medicare\\?-eval \d[\d.]+, python [^|\n]*?(?=<| \||$)", re.M)
_PYTHON = platform.python_version()
_OWN_PYTHON = re.compile(r"\S*python[\d.]* -m")
_COMMANDS = {
    "compare": ("compare",), "compare-json": ("compare", "--json"), "sensitivity": ("sensitivity",),
    "sensitivity-json": ("sensitivity", "--json"),
}  # fmt: skip


def outputs(folder: Path) -> None:
    """Write every output to a folder."""
    runs = folder / "runs"
    for version in ("0.1", "0.5"):
        shutil.copytree(ROOT / "tests" / "formats" / version / "run", runs / f"kept-{version}")
    demo = shared("demo")
    summary = demo.printed.replace(str(demo.folder.parent), str(folder / "made"))
    (folder / "demo.txt").write_text(summary, encoding="utf-8")
    shutil.copytree(demo.folder, runs / "demo")
    for run in sorted(runs.iterdir()):
        _of_run(run, folder / run.name)
    _pages(runs, folder / "pages")
    shutil.rmtree(runs)


def _of_run(run: Path, to: Path) -> None:
    checklists = () if run.name == "demo" else ("--checklist", "all")  # they have hashes of the journal, with its times
    _said("report", run, "--out", to / "report", *checklists)
    _said("export", run, "--out", to / "export", "--to", "csv,jsonl")
    for path in [*to.rglob("*.png"), to / "report" / "WRITTEN-BY-MEDICARE-EVAL.txt"]:
        path.unlink()
    for name, words in _COMMANDS.items():
        (to / f"{name}.txt").write_text(_said(words[0], run, *words[1:]), encoding="utf-8")
    pilot = ("power", "--pilot", run, "--difference", "0.1")
    (to / "power.txt").write_text(call(*pilot).out, encoding="utf-8")
    for name in ("compare", "sensitivity"):
        _said(name, run, "--html", to / f"{name}.html")


def _said(*words: object) -> str:
    code, out, err = call(*words)
    assert code == 0, err
    return out


def _pages(runs: Path, to: Path) -> None:
    """Pages of `view`: all that the pages of the kept runs lead to, and the first ones of the demo."""
    to.mkdir()
    with served("view", runs) as view:
        cookie = view.session("")
        waiting, seen = ["/", "/runs/demo/report.html", "/runs/demo/errors.html"], set[str]()
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            page = view.ask("GET", path, cookie=cookie)
            name = re.sub(r"[^A-Za-z0-9.]+", "_", path).strip("_") or "index"
            (to / f"{page.status}_{name}.html").write_text(page.text, encoding="utf-8")
            found = (link.partition("#")[0].replace("&amp;", "&") for link in re.findall(r'href="(/[^"]*)"', page.text))
            left_out = ("/calls/", "/doubt/") if any("/doubt/" in one for one in seen) else ("/calls/",)
            kept = [link for link in found if link.startswith("/runs/kept-")]
            waiting += [link for link in kept if not any(one in link for one in left_out)]


class _Tokens(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"<{tag} {sorted(attrs, key=str)}>")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if words := " ".join(data.split()):
            self.found.append(words)


def parsed(text: str) -> str:
    """HTML as its elements and texts, one per line."""
    tokens = _Tokens()
    tokens.feed(text)
    return "\n".join(tokens.found)


def normal(path: Path, folder: Path) -> str:
    """A file without what differs from run to run and from machine to machine."""
    text = path.read_bytes().decode()
    text = text.replace("<wbr>", "").replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    text = _VERSIONS.sub("VERSIONS", text).replace(f",{_PYTHON},", ",PYTHON,").replace(f'"{_PYTHON}"', '"PYTHON"')
    text = text.replace(__version__, "RELEASE")
    text = _OWN_PYTHON.sub("PYTHON -m", text)
    text = _STAMP.sub("20261116T120000Z", text)
    text = _TIME.sub("2026-11-16T12:00:00Z", text)
    text = re.sub("|".join(map(_any_form, _days())), "2026-11-16", text)
    text = re.sub(r'name="token" value="[^"]*"', "", text)
    return parsed(text) if path.suffix == ".html" else text


def _days() -> list[date]:
    """On which the demo can have been made that is read here: the day of its folder's name, and the next."""
    made = datetime.strptime(shared("demo").folder.name[:8], "%Y%m%d").date()
    return [made, made + timedelta(days=1)]


def _any_form(day: date) -> str:
    """A day as it is written in text, and in Markdown that is escaped."""
    return day.strftime(r"%Y\\?-%m\\?-%d")


def corpus(folder: Path) -> dict[str, str]:
    """By name, every output as it is compared."""
    outputs(folder)
    return dict(sorted(_read(folder)))


def _read(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), normal(path, folder)


def index(found: dict[str, str]) -> str:
    lines = (f"{hashlib.sha256(text.encode()).hexdigest()[:16]}  {name}\n" for name, text in found.items())
    return "".join(lines)


def kept_texts(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name.endswith(TEXTS)}


def write(found: dict[str, str], to: Path) -> None:
    for name, text in found.items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, metavar="DIR", help="write all outputs to this folder")
    parser.add_argument("--write", action="store_true", help="take the corpus again")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        found = corpus(Path(temporary).resolve() / "frozen")
    if arguments.to:
        write(found, arguments.to)
    if arguments.write:
        shutil.rmtree(KEPT, ignore_errors=True)
        write(kept_texts(found), KEPT)
        (KEPT / INDEX).write_text(index(found), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
