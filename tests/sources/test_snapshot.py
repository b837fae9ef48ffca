"""Snapshots: what is read from a server, what is kept, what is found again, and what is refused."""

from __future__ import annotations

import doctest
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import src.api.sources
import src.inputs.sources.addresses
import src.inputs.sources.check
import src.inputs.sources.finding
import src.inputs.sources.hosts
import src.inputs.sources.snapshot
from src.api.sources import check_text, list_sources, snapshot_pages
from src.cli.parser import main
from src.errors import InputError
from src.inputs.sources.fetch import NotFetched, fetch_page, is_federal, page_text
from src.inputs.sources.snapshot import ORIGIN, PAGES, append_pages, bundled_lines, load_snapshot
from src.records.citation import SnapshotPage
from src.store.package_data import data_folder
from src.store.strict_json import sha256
from tests.cases import each_case

TODAY = date(2026, 11, 16)
PAGE = (
    "<!doctype html><html><head><title>Part B  costs</title><style>p{}</style><script>var x = '<p>no</p>';</script></head>"
    "<body><nav><a href=/>Menu</a></nav><h1>Costs</h1><p>The premium is <b>$202.90</b> a&nbsp;month.</p>"
    "<ul><li>One</li><li>Two &amp; three</li></ul><footer>Contact</footer></body></html>"
)  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """Answers by path."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        type(self).seen.append({name.lower(): value for name, value in self.headers.items()})
        name = self.path.strip("/").partition("?")[0]
        if name.startswith("loop"):
            return self.redirect(f"/loop{int(name[4:] or 0) + 1}")
        if name in ("moved", "away", "no-web", "data"):
            target = {
                "moved": "/page#top",
                "away": "https://",
                "no-web": "file:///etc/passwd",
                "data": "data:text/html,x",
            }
            return self.redirect(target[name])
        answers: dict[str, tuple[int, str, bytes]] = {
            "page": (200, "text/html; charset=utf-8", PAGE.encode()),
            "latin": (200, "text/html; charset=iso-8859-1", "<p>Se\u00f1or: 20%</p>".encode("latin-1")),
            "meta": (200, "text/html", b'<meta charset="windows-1252"><p>\x93Part B\x94</p>'),
            "liar": (200, "text/html; charset=hex", b"<p>caf\xe9 \xff</p>"),
            "plain": (200, "text/plain", b"Part B\n\n is $202.90"),
            "pdf": (200, "application/pdf", b"%PDF-1.7 \x00\xff"),
            "gone": (410, "text/html", b"<p>gone</p>"),
            "error": (500, "text/html", b"<p>sorry</p>"),
            "denied": (403, "text/html", b"<p>no</p>"),
            "huge": (200, "text/html", b"x" * 5_000),
            "empty": (200, "text/html", b""),
        }
        status, kind, body = answers.get(name, (404, "text/html", b"<p>not found</p>"))
        if name in ("gzip", "bomb", "bad-gzip"):
            data = gzip.compress(b"x" * 1_000_000 if name == "bomb" else b"<p>Part B is $202.90</p>")
            status, kind, body = 200, "text/html", data[:20] + b"\xff" * 9 if name == "bad-gzip" else data
        if name == "silent":
            self.server.released.wait(60)  # type: ignore[attr-defined]
            return None
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) + (50 if name == "empty" else 0)))
        if name in ("gzip", "bomb", "bad-gzip"):
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)
        return None

    def redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.released.set()  # type: ignore[attr-defined]
    made.shutdown()
    made.server_close()
    thread.join(60)


def fetch(url: str, **options: Any) -> SnapshotPage | NotFetched:
    return fetch_page(url, TODAY, keeps_text=lambda _: True, **options)


def got(url: str, **options: Any) -> SnapshotPage:
    found = fetch(url, **options)
    assert isinstance(found, SnapshotPage), found
    return found


def refused(url: str, **options: Any) -> str:
    found = fetch(url, **options)
    assert isinstance(found, NotFetched), found
    return found.why


def test_a_page_is_kept_with_its_hash_title_and_text(server: str) -> None:
    page = got(f"{server}/page")
    assert (page.status, page.title, page.fetched) == (200, "Part B costs", TODAY)
    assert page.text == "Costs\nThe premium is $202.90 a month.\nOne\nTwo & three"
    assert page.sha256 == sha256(PAGE.encode()) and page.bytes == len(PAGE)
    assert "medicare-eval/" in Handler.seen[0]["user-agent"]


def test_a_redirect_is_followed_and_both_addresses_are_kept(server: str) -> None:
    page = got(f"{server}/moved")
    assert (page.url, page.final_url) == (f"{server}/moved", f"{server}/page")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("loop", "more than 5 redirects"), ("no-web", "no web address"), ("data", "no web address"), ("away", ""),
        ("error", "status 500"), ("denied", "status 403"), ("huge", "larger than 4,000 bytes"), ("empty", "before its end"),
        ("bomb", "larger than 4,000 bytes"), ("bad-gzip", "damaged"),
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_kept_says_why(server: str, path: str, why: str) -> None:
    assert why in refused(f"{server}/{path}", limit=4_000)


def test_a_server_that_does_not_answer_is_given_up(server: str) -> None:
    assert refused(f"{server}/silent", timeout=0.2) == "no answer within 0.2 seconds"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert "refused" in refused(f"http://127.0.0.1:{port}/")


def test_proxies_of_the_environment_are_not_used(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert got(f"{server}/page").status == 200


def test_a_page_that_does_not_exist_is_recorded_as_missing(server: str) -> None:
    for path in ("nothing", "gone"):
        page = got(f"{server}/{path}")
        assert page.is_missing and page.text is None


def test_texts_in_other_encodings_are_read(server: str) -> None:
    assert got(f"{server}/latin").text == "Se\u00f1or: 20%"
    assert got(f"{server}/meta").text == "\u201cPart B\u201d"
    assert got(f"{server}/liar").text == "caf\ufffd \ufffd"
    assert got(f"{server}/plain").text == "Part B\nis $202.90"
    assert got(f"{server}/gzip").text == "Part B is $202.90"


def test_a_format_that_is_not_read_keeps_its_hash_and_says_so(server: str) -> None:
    page = got(f"{server}/pdf")
    assert page.text is None and page.sha256 == sha256(b"%PDF-1.7 \x00\xff")
    assert "not read" in page.origin


def test_only_the_text_of_federal_pages_is_kept(server: str) -> None:
    page = fetch_page(f"{server}/page", TODAY)
    assert isinstance(page, SnapshotPage)
    assert page.text is None and "hash" in page.origin
    assert is_federal("https://www.medicare.gov/x") and is_federal("https://www.hhs.gov/x")
    assert not is_federal("https://www.insurance.ca.gov/x") and not is_federal("https://medicare.com/x")


@each_case(
    "source",
    [
        "<![foo[x]]><p>kept</p>", "<p>kept</p><!-- <p>not", "<!x <p>kept</p>", "<nav><p>kept</p>", "<p>kept</p><script>if (a < b",
        "<p>kept</p>&#x110000;&#xD800;&bogus;", "<" * 50_000 + "<p>kept</p>", "<!--" * 50_000 + "--><p>kept</p>",
        "<a " * 50_000 + "><p>kept</p>", "<div>" * 50_000 + "kept", "<p>kept</p>" + "&" * 50_000, "<p>ke\x00pt kept</p>",
        "<?" * 20_000 + "><p>kept</p>", "<p title='" + "<" * 20_000 + "'>kept</p>",
    ],
    ids=lambda source: source[:20],
)  # fmt: skip
def test_hostile_html_gives_its_text_and_nothing_hidden(source: str) -> None:
    text = page_text(source.encode("utf-8", "surrogatepass"), "text/html").text
    assert text is not None
    assert "kept" in text and "not" not in text


def line(
    url: str, day: int = 1, *, status: int = 200, text: str | None = "x", final: str | None = None
) -> SnapshotPage:
    return SnapshotPage(
        url=url, final_url=final or url, fetched=date(2026, 1, day), status=status, content_type="text/html", bytes=1,
        sha256="0" * 64, title=None, text=text, origin="a test",
    )  # fmt: skip


def test_a_second_line_for_a_page_is_added_and_the_newest_is_found(tmp_path: Path) -> None:
    append_pages(tmp_path, [line("https://www.cms.gov/a", 2, text="old")])
    before = (tmp_path / PAGES).read_bytes()
    append_pages(tmp_path, [line("http://cms.gov/a/", 5, text="new"), line("https://cms.gov/a", 3, text="between")])
    assert (tmp_path / PAGES).read_bytes().startswith(before)
    held = load_snapshot(tmp_path)
    assert len(held.pages) == 3 and len(held.newest()) == 1
    found = held.find("www.cms.gov/a?utm_source=openai#x")
    assert found is not None and found.text == "new"


def test_a_page_is_found_by_where_it_led_but_its_own_line_comes_first(tmp_path: Path) -> None:
    append_pages(tmp_path, [line("https://cms.gov/old", 9, text="led", final="https://cms.gov/new")])
    found = load_snapshot(tmp_path).find("cms.gov/new")
    assert found is not None and found.text == "led"
    append_pages(tmp_path, [line("https://cms.gov/new", 1, text="own")])
    found = load_snapshot(tmp_path).find("cms.gov/new")
    assert found is not None and found.text == "own"
    assert load_snapshot(tmp_path).find("cms.gov/other") is None
    assert load_snapshot(tmp_path).find("https://cms.gov@evil.com/new") is None


@each_case(
    ("data", "why"),
    [
        (b"{}\n", "line 1: field url: required but missing"),
        (b'{"url": "x", "url": "y"}\n', "appears twice"),
        (b"\xff\n", "not UTF-8"),
        (b'{"url": "https://a.gov/x"', "line 1: the line is not complete"),
        (b"\n", "line 1: invalid JSON"),
    ],
)
def test_a_damaged_snapshot_is_refused_and_never_added_to(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / PAGES).write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_snapshot(tmp_path)
    assert why in str(caught.value)
    with pytest.raises(InputError):
        append_pages(tmp_path, [line("https://a.gov/x")])
    assert (tmp_path / PAGES).read_bytes() == data


def test_the_bundled_snapshot_is_what_the_script_writes_and_says_what_it_is() -> None:
    path = data_folder("sources") / "v1" / PAGES
    assert path.read_bytes() == bundled_lines(), "write it again: python -m src.inputs.sources.snapshot"
    pages = load_snapshot(path.parent).pages
    assert 12 <= len(pages) <= 20
    assert all(page.origin == ORIGIN and not page.whole and is_federal(page.url) and page.text for page in pages)
    assert not any("{{" in (page.text or "") for page in pages)


def test_the_command_keeps_what_it_could_read_and_names_the_rest(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urls = [f"{server}/{path}" for path in ("page", "error", "nothing", "moved")]
    code = main(["sources", "snapshot", *urls, "--to", str(tmp_path / "new" / "pages")])
    printed = capsys.readouterr()
    assert code == 4
    assert f"{server}/error: not read: the server answered with status 500." in printed.err
    assert "1 of 4 pages could not be read" in printed.err
    assert "3 pages added" in printed.out and "recorded as dead" in printed.out
    assert [page.status for page in load_snapshot(tmp_path / "new" / "pages").pages] == [200, 404, 200]


def test_addresses_that_are_not_web_pages_are_refused_before_anything_is_read(server: str, tmp_path: Path) -> None:
    for bad in ("https://medicare-gov.com/x", "nonsense", "file:///etc/passwd"):
        with pytest.raises(InputError):
            snapshot_pages([f"{server}/page", bad], tmp_path / "to")
    assert Handler.seen == [] and not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["snapshot"], "the following arguments are required: URL, --to. Try: medicare-eval sources snapshot --help"),
        (["snapshot", "https://www.cms.gov/"], "the following arguments are required: --to."),
        (["check"], "Give one file or a text"),
        (["check", "a.txt", "--text", "b"], "Give one file or a text"),
        (["check", "missing.txt"], "missing.txt cannot be read"),
        (["check", "--text", "x", "--to", "dir"], "sources check: unrecognized arguments: --to."),
        (["list", "x"], "sources list: unrecognized arguments: x."),
        (["list", "--snapshot", "nowhere"], "nowhere is not a snapshot"),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["sources", *arguments])
    except SystemExit as refused:  # by the parser
        code = int(str(refused.code))
    printed = capsys.readouterr()
    assert code == 2 and says in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_the_list_fits_a_terminal_and_its_json_has_everything(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["sources", "list"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "not a copy of the page" in printed and "medicare-and-you.pdf" in printed
    assert main(["sources", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed["pages"]) == len(list_sources().pages) and len(listed["lacking"]) > 100
    assert not {one["url"] for one in listed["pages"]} & {one["address"] for one in listed["lacking"]}


def test_a_text_is_checked_from_a_file_and_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (
        "The Part A deductible is $1,736 (https://www.medicare.gov/publications/11579-medicare-costs.pdf). "
        "Enroll at medicare.gov.plans-help.com/enroll\u202e. According to CMS, see Medicare.gov.\x1b[31m"
    )
    (tmp_path / "answer.txt").write_text(text, encoding="utf-8")
    assert main(["sources", "check", str(tmp_path / "answer.txt")]) == 0
    printed = capsys.readouterr().out
    assert "disguised" in printed and "1 of 1 figures of the sentence are in it" in " ".join(printed.split())
    assert "Named without an address: CMS, Medicare.gov." in printed
    assert "\x1b" not in printed and max(map(len, printed.splitlines())) <= 80
    assert main(["sources", "check", "--text", text, "--json"]) == 0
    (known, fake) = json.loads(capsys.readouterr().out)["citations"]
    assert (known["outcome"], known["host_class"], known["page_date"]) == ("undecided", "medicare", "2026-11-16")
    assert fake["outcome"] == "disguised"
    assert main(["sources", "check", "--text", "Nothing here."]) == 0
    assert capsys.readouterr().out == "No address found.\n"
    assert [one.outcome for one in check_text(text).citations] == ["undecided", "disguised"]


MODULES = (
    src.inputs.sources.addresses, src.inputs.sources.check, src.inputs.sources.finding, src.inputs.sources.hosts, src.inputs.sources.check,
    src.inputs.sources.snapshot, src.api.sources,
)  # fmt: skip


@each_case("module", MODULES, ids=lambda module: module.__name__)
def test_the_examples_in_the_docstrings_run(module: ModuleType) -> None:
    found = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed
