"""Assisted collection as a page: who may open it, what it refuses, and that every reply is saved at once."""

from __future__ import annotations

import html
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from src.inputs.transcripts.collect import UNFINISHED, unfinished
from src.store.conversations import conversation_files, read_conversation
from tests.browser import NEEDS_CHROMIUM, Page, Served, chromium, click, go, opened, served
from tests.cases import each_case
from tests.findings.test_report import HOSTILE
from tests.runs import ONE, call
from tests.test_workbench_browser import inert, sideways, tab_to, violations, watched
from tests.transcripts.sample import script

PHONE = "615-555-0142"
"""Invented; it must never be stored or shown in full."""


def words(folder: Path, *more: str) -> tuple[object, ...]:
    return ("collect", "--scenario", ONE, "--to", folder, "--system", "Chat app X", "--browser", *more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "chats"


@pytest.fixture
def page(folder: Path) -> Iterator[Served]:
    with served(*words(folder)) as found:
        yield found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Path]]:
    """A page for tests in which nothing may be saved, and its folder."""
    folder = tmp_path_factory.mktemp("made") / "chats"
    with served(*words(folder)) as found:
        yield found, folder


def own(page: Served) -> dict[str, str]:
    return {"origin": f"http://{page.host}", "sec_fetch_site": "same-origin", "cookie": page.session("")}


def home(page: Served) -> Page:
    return page.ask("GET", "/", cookie=page.session(""))


def fields(shown: Page) -> dict[str, str]:
    """The hidden fields of the form."""
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', shown.text))


def send(page: Served, shown: Page | None = None, **given: str) -> Page:
    """Send the form of the page that is shown now, or of an earlier one; the page that follows."""
    body = urlencode({**fields(shown or home(page)), **given})
    answer = page.ask("POST", "/", body=body, **own(page))
    return home(page) if answer.status == 303 else answer


def heading(shown: Page) -> str:
    found = re.search(r"<h1>(.*?)</h1>", shown.text)
    assert found, shown.text
    return found[1]


def saved(folder: Path) -> list[str]:
    """Replies and outcomes on disk."""
    (path,) = folder.glob(f".*{UNFINISHED}")
    return [turn.get("reply") or turn["outcome"] for turn in json.loads(path.read_text(encoding="utf-8"))["turns"]]


def test_nothing_is_shown_without_the_link_or_through_another_host(untouched: tuple[Served, Path]) -> None:
    page, folder = untouched
    for path in ("/", "/open?token=wrong", "/open"):
        assert page.ask("GET", path).status == 403
    cookie = page.session("")
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", f"evil.example:{page.host.rpartition(':')[2]}"):
        assert page.ask("GET", "/", cookie=cookie, host=host).status == 421
    assert page.ask("GET", "/nowhere", cookie=cookie).status == 404
    shown = page.ask("GET", "/", cookie=cookie)
    assert shown.status == 200
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]
    assert shown.headers["cache-control"] == "no-store"
    assert "<style" not in shown.text and "style=" not in shown.text
    assert not folder.exists()


def test_a_form_from_elsewhere_saves_nothing(page: Served, folder: Path) -> None:
    good, real = fields(home(page)), own(page)
    body = urlencode({**good, "reply": "Planted."})
    for change in (
        {"origin": ""},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"cookie": ""},
        {"host": "evil.example"},
        {"content_type": "text/plain"},
    ):
        assert page.ask("POST", "/", body=body, **{**real, **change}).status in (403, 421), change
    for token in ("", "wrong"):
        wrong = urlencode({**good, "token": token, "reply": "Planted."})
        assert page.ask("POST", "/", body=wrong, **real).status == 403
    assert not folder.exists()
    assert page.ask("POST", "/", body=body, **real).status == 303  # the same form, as our own page sends it
    assert saved(folder) == ["Planted."]


def test_a_conversation_is_collected_checked_and_finished(page: Served, folder: Path) -> None:
    first = home(page)
    asked = script().turns
    assert heading(first) == "Question 1 of 4"
    box = re.search(r"<textarea id=\"question\" readonly[^>]*>\n(.*?)</textarea>", first.text, re.DOTALL)
    assert box and html.unescape(box[1]) == asked[0].user_message
    assert "Undo the last reply" not in first.text
    second = send(page, reply=f"Hello.\r\n\r\nCall me at {PHONE}, please.", action="save")
    assert heading(second) == "Question 2 of 4"
    assert "1: [PHONE 1], was 6… (12 characters)" in second.text
    assert saved(folder) == ["Hello.\n\nCall me at [PHONE 1], please."]
    assert heading(send(page, action="skip")) == "Question 3 of 4"
    assert heading(send(page, action="no_reply")) == "Question 4 of 4"
    back = send(page, action="undo")
    assert heading(back) == "Question 3 of 4" and "Taken back: Q3." in back.text
    assert saved(folder) == ["Hello.\n\nCall me at [PHONE 1], please.", "not_asked"]
    send(page, reply="Three.")  # without a button: Ctrl+Enter
    last = send(page, reply="Four.", action="save")
    assert heading(last) == "Check and finish"
    assert "PHONE in the reply to Q1: Hello. Call me at <b>[PHONE 1]</b>, please.<" in last.text
    assert conversation_files(folder) == []
    done = send(page, action="finish")
    (path,) = conversation_files(folder)
    assert heading(done) == "Finished" and str(path) in done.text
    assert f"--scenario {ONE} --target transcript:{folder}" in done.text
    found = read_conversation(path)
    assert [turn.reply for turn in found.turns] == ["Hello.\n\nCall me at [PHONE 1], please.", None, "Three.", "Four."]
    assert [turn.outcome for turn in found.turns] == ["answered", "not_asked", "answered", "answered"]
    assert heading(send(page, last, action="finish")) == "Finished"  # sent twice
    assert len(conversation_files(folder)) == 1 and unfinished(folder) == []
    for shown in (second, last, done):
        assert PHONE not in shown.text
    assert not [path for path in folder.rglob("*") if path.is_file() and PHONE in path.read_text(encoding="utf-8")]
    page.process.send_signal(signal.SIGINT)
    out, err = page.process.communicate(timeout=60)
    assert page.process.returncode == 0, err
    assert str(path) in out and "To judge it: medicare-eval run" in out


def test_what_the_page_says_can_be_judged(page: Served, folder: Path, tmp_path: Path) -> None:
    for _ in range(4):
        last = send(page, reply="Medicare Advantage plans have networks.")
    send(page, last, action="finish")
    target = ("--scenario", ONE, "--target", f"transcript:{folder}")
    code, _, err = call("run", *target, "--judge-model", "offline:rules", "--out", tmp_path / "runs", "--quiet")
    assert code == 0, err


def test_a_redaction_is_corrected_by_undoing_and_pasting_again(page: Served, folder: Path) -> None:
    reply = f"The line {PHONE} is for everyone. Ask for the blue folder."
    send(page, reply=reply)
    undone = send(page, action="undo")
    assert "1: [PHONE 1]" in undone.text
    for keep, why in (("2", "no redaction with the number 2"), ("x", "give numbers")):
        refused = send(page, reply=reply, keep=keep)
        assert refused.status == 422 and why in refused.text and reply in refused.text
    send(page, reply=reply, keep="1", also="blue folder")
    assert saved(folder) == [f"The line {PHONE} is for everyone. Ask for the [REDACTED 1]."]


def test_a_form_that_is_sent_twice_or_late_never_answers_the_next_question(page: Served, folder: Path) -> None:
    first = home(page)
    send(page, first, reply="One.")
    again = send(page, first, reply="One.")
    assert again.status == 200 and heading(again) == "Question 2 of 4"
    late = send(page, first, reply="Other words.")
    assert late.status == 409 and "from an earlier page" in late.text
    box = re.search(r'<textarea id="reply"[^>]*>\n(.*?)</textarea>', late.text, re.DOTALL)
    assert box and box[1] == "" and "Other words." in late.text
    second = home(page)
    send(page, second, action="undo")
    assert send(page, second, action="undo").status == 409
    assert heading(send(page, first, reply="One.")) == "Question 2 of 4"  # after it was taken back, it is new
    assert saved(folder) == ["One."]
    send(page, action="undo")
    send(page, action="skip")
    assert send(page, first, reply="One.").status == 409  # it was taken back, so it is not saved


@each_case(
    ("given", "why"),
    [
        ({"reply": " \n "}, "The reply is empty"),
        ({"reply": "é" * 200_001}, "the limit is 200,000"),
        ({"reply": "A reply.", "action": "skip"}, "There is a reply in the box"),
        ({"reply": "A reply.", "action": "undo"}, "There is a reply in the box"),
        ({"action": "undo"}, "nothing to take back"),
        ({"action": "finish"}, "4 questions are left"),
        ({"action": "delete"}, "no such button"),
    ],
)
def test_a_form_that_cannot_be_used_says_why_and_keeps_what_was_typed(
    untouched: tuple[Served, Path], given: dict[str, str], why: str
) -> None:
    page, folder = untouched
    refused = send(page, None, **given)
    assert refused.status == 422 and why in refused.text
    assert given.get("reply", "").strip() in refused.text
    assert not folder.exists()


@pytest.mark.slow
def test_the_longest_reply_fits_into_the_form(page: Served, folder: Path) -> None:
    reply = "\N{GRINNING FACE}" * 199_999 + "!"
    assert heading(send(page, reply=reply)) == "Question 2 of 4"
    assert saved(folder) == [reply]


def test_nothing_is_finished_if_nothing_was_asked(page: Served, folder: Path) -> None:
    for _ in range(4):
        send(page, action="skip")
    refused = send(page, action="finish")
    assert refused.status == 422 and "No question was asked" in refused.text
    assert conversation_files(folder) == []


def tags(shown: Page) -> list[str]:
    return re.findall(r"<[/!]?\w+", shown.text)


def test_hostile_replies_stay_text(page: Served) -> None:
    tame = [send(page, reply=f"Word {PHONE} word.") for _ in range(4)]
    while "Undo the last reply" in home(page).text:
        send(page, action="undo")
    hostile = f"<svg onload=alert(1)> {PHONE} <img onerror=alert(1)></textarea></form>{' '.join(HOSTILE)}"
    shown = [send(page, reply=hostile) for _ in range(4)]
    assert [tags(one) for one in shown] == [tags(one) for one in tame]
    assert all("PWNED" in one.text for one in shown)
    assert "&lt;svg onload=alert(1)&gt; <b>[PHONE 4]</b> &lt;img" in shown[-1].text
    late = send(page, shown[0], reply=hostile)
    assert late.status == 409 and "<script>" not in late.text and "&lt;script&gt;" in late.text


def test_a_refused_reply_goes_back_into_its_box_unchanged_and_inert(untouched: tuple[Served, Path]) -> None:
    page, _ = untouched
    hostile = "</textarea><script>alert(1)</script>\n\n\n\ttab &amp; \"quotes\" 'too'"
    refused = send(page, reply=hostile, keep="7")
    box = re.search(r'<textarea id="reply"[^>]*>\n(.*?)</textarea>', refused.text, re.DOTALL)
    assert box and html.unescape(box[1]) == hostile
    assert "<script>" not in refused.text


@pytest.mark.slow
def test_a_killed_server_loses_nothing_and_the_same_command_continues(folder: Path) -> None:
    with served(*words(folder)) as page:
        send(page, reply="One.")
        send(page, reply=f"Two: {PHONE}.")
        os.kill(page.process.pid, signal.SIGKILL)
        page.process.wait(timeout=60)
    assert saved(folder) == ["One.", "Two: [PHONE 1]."]
    with served(*words(folder)) as page:
        shown = home(page)
        assert heading(shown) == "Question 3 of 4" and "Two: [PHONE 1]." in shown.text
        send(page, action="undo")
        send(page, reply="Two.")
        page.process.send_signal(signal.SIGINT)
        _, err = page.process.communicate(timeout=60)
        assert page.process.returncode == 4
        assert "2 of 4 questions done. To continue: medicare-eval collect" in err and "--browser" in err
    with served(*words(folder, "--by", "r1")) as page:
        for reply in ("Three.", "Four."):
            shown = send(page, reply=reply)
        assert "checked by r1" in shown.text
        send(page, action="finish")
    (path,) = conversation_files(folder)
    found = read_conversation(path)
    assert [turn.reply for turn in found.turns] == ["One.", "Two.", "Three.", "Four."]
    assert found.redacted_by == "r1"


@pytest.mark.slow
def test_two_programs_do_not_overwrite_each_other_and_the_page_says_so(page: Served, folder: Path) -> None:
    with served(*words(folder)) as other:
        send(other, reply="One.")
    refused = send(page, reply="Mine.")
    assert refused.status == 503
    assert "changed by another program" in refused.text and "start it again" in refused.text and "Mine." in refused.text
    assert saved(folder) == ["One."]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--browser", "--yes"), "are for the terminal"),
        (("--browser", "--reply-file", "x"), "are for the terminal"),
        (("--port", "8080"), "Add --browser"),
        (("--no-open",), "Add --browser"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, more: tuple[str, ...], why: str) -> None:
    code, _, err = call("collect", "--scenario", ONE, "--to", folder, "--system", "X", *more)
    assert code == 2 and why in err
    assert not folder.exists()


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.parametrize("width", [1280, 390])
def test_a_conversation_is_collected_by_keys_alone_and_every_page_is_accessible(folder: Path, width: int) -> None:
    asked = script().turns
    problems: list[str] = []

    def look(page: Any, where: str) -> None:
        inert(page)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            problems.extend(f"{where}, {scheme}: {one}" for one in violations(page))
        if sideways(page):
            problems.append(f"{where}: {sideways(page)} pixels too wide")

    with served(*words(folder)) as found, chromium() as browser:
        page = opened(browser, found, "", width)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=f"http://{found.host}")
        with watched(page, found.host) as seen:
            look(page, "first")
            page.keyboard.press("c")
            page.wait_for_function("document.getElementById('copied').textContent === 'Copied.'")
            assert page.evaluate("navigator.clipboard.readText()") == asked[0].user_message
            assert page.evaluate("document.activeElement.id") == "reply"
            page.keyboard.insert_text(f"c {PHONE} " + " ".join(HOSTILE[:9]))
            go(page, "Control+Enter")
            assert page.inner_text("h1") == "Question 2 of 4"
            assert "[PHONE 1]" in page.inner_text(".saved")
            look(page, "second")
            tab_to(page, "button[data-copy]")
            page.keyboard.press("Enter")
            page.wait_for_function("document.getElementById('copied').textContent === 'Copied.'")
            assert page.evaluate("navigator.clipboard.readText()") == asked[1].user_message
            tab_to(page, "button[value=no_reply]")
            go(page, "Enter")
            tab_to(page, "button[value=undo]")
            go(page, "Enter")
            assert page.inner_text("h1") == "Question 2 of 4"
            tab_to(page, "button[value=skip]")
            go(page, "Enter")
            tab_to(page, "#reply")
            page.keyboard.type("Three.")
            tab_to(page, "summary")
            page.keyboard.press("Enter")
            look(page, "open")
            tab_to(page, "button[value=save]")
            go(page, "Enter")
            tab_to(page, "#reply")
            page.keyboard.type("Four.")
            go(page, "Control+Enter")
            assert page.inner_text("h1") == "Check and finish"
            look(page, "check")
            tab_to(page, "button[value=finish]")
            go(page, "Enter")
            assert page.inner_text("h1") == "Finished"
            look(page, "finished")
        assert seen == []
    assert problems == [], "\n".join(dict.fromkeys(problems))
    (path,) = conversation_files(folder)
    replies = [turn.reply for turn in read_conversation(path).turns]
    assert replies[1:] == [None, "Three.", "Four."] and (replies[0] or "").startswith("c [PHONE 1] <script>")


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_the_page_works_without_its_script_and_a_refused_reply_is_accessible(folder: Path) -> None:
    with served(*words(folder)) as found, chromium() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(found.links[""])
        assert page.locator("button[data-copy]").is_hidden()
        assert page.locator("#question").input_value() == script().turns[0].user_message
        page.fill("#reply", "One.")
        click(page.get_by_role("button", name="Save"))
        assert page.inner_text("h1") == "Question 2 of 4"
        page = opened(browser, found, "", 390)
        page.fill("#reply", "Two.")
        click(page.get_by_role("button", name="Not asked"))
        assert "There is a reply in the box" in page.inner_text(".problems")
        assert page.locator("#reply").input_value() == "Two."
        assert violations(page) == [] and sideways(page) == 0
    assert saved(folder) == ["One."]
