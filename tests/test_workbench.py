"""The pages over real sockets: who may open them, what they refuse, and that they write nothing."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import re
import shutil
import signal
import socket
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from src import storage
from src.api.reviews import start_review
from src.cli import review as review_commands
from src.errors import InputError
from src.reading import Run
from src.records.run import Doubt
from src.store.doubts import add_doubt, read_doubts
from src.workbench.serve import OpenSocket, access_for
from tests.browser import Page, Served, running, served
from tests.cases import each_case
from tests.runs import ONE, ROOT, call, copied_run, newest, process
from tests.test_people import answered


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    copied_run(out, "--scenario", ONE, "--target", "fake:careful", "--target", "fake:wrong")
    return out


@pytest.fixture(scope="module")
def view(runs: Path) -> Iterator[Served]:
    with served("view", runs) as found:
        yield found


def test_nothing_is_shown_without_the_link_that_was_printed(view: Served) -> None:
    for path in ("/", "/runs/x/report.html", "/events", "/open?token=wrong", "/open"):
        refused = view.ask("GET", path)
        assert refused.status == 403
        assert "with the link that the program printed" in refused.text


@each_case("host", ["evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost", ""])
def test_a_foreign_host_is_refused_even_with_the_cookie(view: Served, host: str) -> None:
    cookie = view.session("")
    assert view.ask("GET", "/", cookie=cookie, host=host).status in (400, 421)
    assert view.ask("GET", "/", cookie=cookie).status == 200


def test_every_page_has_a_strict_policy_and_is_not_kept(view: Served) -> None:
    page = view.ask("GET", "/", cookie=view.session(""))
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert "server" not in page.headers
    assert "<style" not in page.text and "style=" not in page.text


@each_case("path", ["/runs/..%2F..%2Fetc", "/runs/../x", "/runs/%2e%2e", "/runs/nothing/trials/x", "/nowhere"])
def test_a_path_outside_of_the_runs_is_not_there(view: Served, path: str) -> None:
    assert view.ask("GET", path, cookie=view.session("")).status == 404


def test_readers_see_runs_answers_matrix_trials_and_calls_and_nothing_is_written(view: Served, runs: Path) -> None:
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    cookie, run = view.session(""), newest(runs).name
    listed = view.ask("GET", "/", cookie=cookie)
    assert run in listed.text and "2 of 2" in listed.text
    assert view.ask("GET", f"/runs/{run}", cookie=cookie).headers["location"] == f"/runs/{run}/report.html"
    page = view.ask("GET", f"/runs/{run}/report.html", cookie=cookie)
    assert "Targets and questions" in page.text and 'class="code IN"' in page.text
    trial = re.search(r'href="(/runs/[^"#]+/trials/[^"#]+)', page.text)
    assert trial
    told = view.ask("GET", trial[1], cookie=cookie)
    assert "<article" in told.text and "Facts and sources" in told.text
    calls = view.ask("GET", trial[1].replace("/trials/", "/calls/"), cookie=cookie)
    assert "|extractor|" in calls.text
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before


def test_other_methods_and_forms_from_elsewhere_are_refused(view: Served) -> None:
    cookie = view.session("")
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert view.ask(method, "/", cookie=cookie).status == 405
    own = f"http://{view.host}"
    for headers in (
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": own, "sec_fetch_site": "cross-site"},
        {"origin": own, "sec_fetch_site": "same-site"},
    ):
        assert view.ask("POST", "/", body="x=1", cookie=cookie, **headers).status == 403


@pytest.fixture(scope="module")
def review(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    out = tmp_path_factory.mktemp("reviews")
    words = ("--reviewers", "r1,r2", "--adjudicator", "r3", "--sample", "2", "--out", out)
    with served("review", "start", newest(runs), *words) as found:
        yield found


def fields(page: Page) -> tuple[str, str]:
    """Where a form goes, and its token."""
    action = re.search(r'action="([^"]+)"', page.text)
    token = re.search(r'name="token" value="([^"]+)"', page.text)
    assert action and token
    return action[1], token[1]


def first_form(review: Served, person: str, cookie: str) -> Page:
    home = review.ask("GET", "/", cookie=cookie)
    link = re.search(r'class="button" href="([^"]+)"', home.text)
    assert link, home.text
    return review.ask("GET", link[1], cookie=cookie)


@pytest.mark.slow
def test_a_form_needs_its_token_and_shows_the_rules_that_models_keep(review: Served) -> None:
    cookie, own = review.session("r1"), {"origin": f"http://{review.host}", "sec_fetch_site": "same-origin"}
    form = first_form(review, "r1", cookie)
    assert "fake" not in form.text.lower()  # the target is not named
    assert "judge 1" not in form.text
    action, token = fields(form)
    assert review.ask("POST", action, body="label=NOT_IN_KEY", cookie=cookie, **own).status == 403
    wrong = review.ask("POST", action, body=f"token={token}&label=CONTRADICTED", cookie=cookie, **own)
    assert wrong.status == 422
    assert "tick at least one fact that it breaks" in wrong.text and "needs a severity" in wrong.text
    empty = review.ask("POST", action, body=f"token={token}", cookie=cookie, **own)
    assert empty.status == 422
    other = review.session("r2")
    assert review.ask("GET", action, cookie=other).status == 404  # a task of somebody else
    before = review.ask("GET", f"{action}/others", cookie=cookie)
    assert before.status == 404  # not before one's own is saved
    saved = review.ask("POST", action, body=f"token={token}&label=NOT_IN_KEY&notes=%3Cb%3E", cookie=cookie, **own)
    assert saved.status == 303
    others = review.ask("GET", f"{action}/others", cookie=cookie)
    assert "judge 1" in others.text and "&lt;b&gt;" in others.text and "<b>\n" not in others.text
    again = review.ask("POST", action, body=f"token={token}&label=SUPPORTED", cookie=cookie, **own)
    assert again.status == 303 and again.headers["location"].endswith("/others?again=1")  # a saved answer stays


def test_a_review_needs_two_people_and_a_run(runs: Path, tmp_path: Path) -> None:
    run = newest(runs)
    for words, said in (
        (["--reviewers", "r1"], "at least two people"),
        (["--reviewers", "r1,R2"], "is not a pseudonym"),
        (["--reviewers", "r1,r2", "--adjudicator", "r1"], "cannot also settle ties"),
        ([], "the following arguments are required: --reviewers"),
    ):
        code, _, err = call("review", "start", run, *words, "--out", tmp_path)
        assert code == 2 and said in err, err
    assert not list(tmp_path.iterdir())
    code, _, err = call("review", "continue", run)
    assert code == 2 and "has no judges who are people" in err


def test_a_reader_marks_a_verdict_and_the_next_review_takes_it_up(tmp_path: Path) -> None:
    run = copied_run(tmp_path)
    before = {path: path.read_bytes() for path in run.iterdir()}
    with served("view", run) as view:
        cookie, own = view.session(""), {"origin": f"http://{view.host}", "sec_fetch_site": "same-origin"}
        trial = next(Run(run).trials())
        there = f"/runs/{run.name}/doubt/{trial.trial_id}?claim={trial.final_claims[0].claim_id}"
        form = view.ask("GET", there, cookie=cookie)
        token = re.search(r'name="token" value="([^"]+)"', form.text)
        assert token
        assert view.ask("POST", there, body="note=x", cookie=cookie, **own).status == 403
        empty = view.ask("POST", there, body=f"token={token[1]}&note=+", cookie=cookie, **own)
        assert empty.status == 422 and "Say what is doubtful" in empty.text
        nowhere = view.ask("POST", f"{there}9", body=f"token={token[1]}&note=x", cookie=cookie, **own)
        assert nowhere.status == 404
        sent = view.ask("POST", there, body=f"token={token[1]}&note=%3Cb%3Eno%3C%2Fb%3E", cookie=cookie, **own)
        assert sent.status == 303
        shown = view.ask("GET", f"/runs/{run.name}/report.html", cookie=cookie).text
        assert "&lt;b&gt;no&lt;/b&gt;" in shown and "--only doubtful" in shown
    assert {path: path.read_bytes() for path in run.iterdir()} == before
    made = start_review(run, reviewers=["r1", "r2"], only="doubtful", out=tmp_path)
    assert (made.chosen, made.sampled) == (1, 0)
    transcripts = storage.read_manifest(made.path).transcripts
    assert transcripts and transcripts.selected
    assert [one.note for one in transcripts.selected.doubted] == ["<b>no</b>"]
    assert transcripts.selected.chosen == (trial.trial_id,)


def test_nothing_doubtful_is_nothing_to_review(tmp_path: Path) -> None:
    run = copied_run(tmp_path)
    code, _, err = call("review", "start", run, "--reviewers", "r1,r2", "--only", "doubtful", "--out", tmp_path)
    assert code == 2 and "nothing to review" in err
    (tmp_path / "doubts.jsonl").write_text("{}\n", encoding="utf-8")
    add_doubt(tmp_path, Doubt(run_id=run.name, trial_id="x", claim_id="y", note="z", marked_at="2026"))
    assert [one.note for one in read_doubts(tmp_path, run.name)] == ["z"]  # a line that is no mark is passed over


@pytest.mark.slow
@each_case("release", ["0.1", "0.2", "0.3", "0.5"])
def test_runs_of_earlier_releases_can_be_looked_at(release: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "formats" / release / "run", tmp_path / "run")
    with served("view", tmp_path) as view:
        cookie = view.session("")
        assert "complete" in view.ask("GET", "/", cookie=cookie).text
        page = view.ask("GET", "/runs/run/report.html", cookie=cookie)
        trial = re.search(r'href="(/runs/[^"#]+/trials/[^"#]+)', page.text)
        assert page.status == 200 and trial
        assert view.ask("GET", trial[1], cookie=cookie).status == 200


def test_a_damaged_run_is_listed_and_said_to_be_damaged(tmp_path: Path) -> None:
    run = copied_run(tmp_path)
    with (run / "results.jsonl").open("ab") as file:
        file.write(b"{}\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{", encoding="utf-8")
    with served("view", tmp_path) as view:
        cookie = view.session("")
        assert "damaged" in view.ask("GET", "/", cookie=cookie).text
        shown = view.ask("GET", f"/runs/{run.name}/report.html", cookie=cookie)
        assert shown.status == 500 and "Cannot be shown" in shown.text and "Traceback" not in shown.text


def test_progress_is_told_as_events(view: Served, runs: Path) -> None:
    connection = http.client.HTTPConnection(view.host, timeout=30)
    connection.request("GET", "/events", headers={"cookie": view.session("")})
    with closing(connection), connection.getresponse() as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        line = answer.readline().decode()
    assert json.loads(line.removeprefix("data: ")) == {
        newest(runs).name: {"state": "complete", "progress": "2 of 2 trials"}
    }


def test_an_address_that_others_reach_needs_a_password(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for host, said in (
        ("0.0.0.0", "stands for every address of this machine"),
        ("::", "stands for every address of this machine"),
        ("203.0.113.7", "is not an address of this machine"),
        ("no such name", "is not an address of this machine"),
    ):
        code, _, err = call("view", runs, "--host", host, "--no-open")
        assert code == 2 and said in err and "--host" in err, err
    with socket.socket() as connection:
        place = OpenSocket(connection, "192.0.2.1", 80, here_only=False)
        assert place.hosts == {"192.0.2.1:80", "192.0.2.1"}
        with pytest.raises(InputError, match="at least 12 characters in MEDICARE_EVAL_PASSWORD"):
            access_for(["r1"], place, {"MEDICARE_EVAL_PASSWORD": "short"})
        assert access_for(["r1"], place, {"MEDICARE_EVAL_PASSWORD": "long enough for it"}).password


@contextmanager
def with_password(runs: Path, password: str) -> Iterator[Served]:
    """The pages for readers on this machine, with a password as on any other."""
    program = (
        "import sys; from pathlib import Path; from src.workbench.access import Access; "
        "from src.workbench.serve import open_place, serve, link; from src.workbench.run_folders import RunFolders; "
        "from src.workbench.view_app import ViewApp; place = open_place(None); access = Access({'t' * 20: ''}, sys.argv[2]); "
        "print('open', link(place, 't' * 20), flush=True); print('Ctrl-C', flush=True); "
        "serve(ViewApp(RunFolders(Path(sys.argv[1]))).app(), place, access)"
    )
    with running([sys.executable, "-c", program, str(runs), password]) as found:
        yield found


@pytest.mark.slow
def test_a_password_is_asked_for_and_a_link_alone_opens_nothing(runs: Path) -> None:
    with with_password(runs, "correct horse battery") as view:
        own = {"origin": f"http://{view.host}", "sec_fetch_site": "same-origin"}
        path = view.links[""].partition(view.host)[2]
        asked = view.ask("GET", path)
        assert asked.status == 200 and 'type="password"' in asked.text and "set-cookie" not in asked.headers
        assert view.ask("GET", "/", cookie=f"medicare_eval_{view.host.rpartition(':')[2]}=" + "t" * 20).status == 403
        wrong = view.ask("POST", path, body="password=guess", **own)
        assert wrong.status == 403 and "This is not the password." in wrong.text
        assert view.ask("POST", path, body="password=correct+horse+battery").status == 403  # no origin
        right = view.ask("POST", path, body="password=correct+horse+battery", **own)
        assert right.status == 303
        cookie = right.headers["set-cookie"].partition(";")[0]
        assert view.ask("GET", "/", cookie=cookie).status == 200


def test_a_review_is_exported_for_a_judge_check_only_when_it_is_finished(runs: Path, tmp_path: Path) -> None:
    made = start_review(newest(runs), reviewers=["r1", "r2"], adjudicator="r3", sample=2, out=tmp_path)
    code, _, err = call("review", "export", made.path)
    assert code == 2 and "is not finished" in err
    asyncio.run(answered(made.path))
    code, out, err = call("review", "export", made.path, "--to", tmp_path / "gold")
    assert code == 0, err
    assert re.search(r"gold: \d+ claims in \d+ replies, as a gold set", out)
    code, _, err = call("review", "export", made.path, "--to", tmp_path / "gold")
    assert code == 2 and "will not be overwritten" in err
    words = ("--gold", tmp_path / "gold", "--judge-model", "offline:rules", "--quiet")
    code, out, err = call("judge-check", *words, "--out", tmp_path / "checks")
    assert code == 0, err


OWN = {"sec_fetch_site": "same-origin"}


@pytest.mark.slow
def test_an_answer_that_cannot_be_written_is_not_called_saved_and_the_program_says_why(
    runs: Path, tmp_path: Path
) -> None:
    made = start_review(newest(runs), reviewers=["r1", "r2"], sample=2, out=tmp_path)
    limit = (
        "import resource, sys; from src.cli import main; size = int(sys.argv.pop()); "
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); sys.exit(main())"
    )
    journal = made.path / "calls.jsonl"
    size = (journal.stat().st_size if journal.exists() else 0) + 600_000
    command = [sys.executable, "-c", limit, "review", "continue", str(made.path), "--no-open", str(size)]
    with running(command) as review:
        cookie, own = review.session("r1"), {"origin": f"http://{review.host}", **OWN}
        statuses: list[int] = []
        while 503 not in statuses and len(statuses) < 60:
            form = first_form(review, "r1", cookie)
            action, token = fields(form)
            body = f"token={token}&label=NOT_IN_KEY&notes={'x' * 3_900}"
            statuses.append(review.ask("POST", action, body=body, cookie=cookie, **own).status)
        assert statuses[-1] == 503, statuses
        review.process.wait(timeout=30)
        assert review.process.returncode == 6
        assert review.process.stderr and "cannot" in review.process.stderr.read()
    recorded = list(storage.read_calls(made.path, storage.read_manifest(made.path)))
    assert sum(record.model == "human:r1" for record in recorded) == statuses.count(303)


def test_without_its_packages_the_command_says_what_to_install(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review_commands, "find_spec", lambda name: None)
    code, _, err = call("view", runs, "--no-open")
    assert code == 3 and err.strip().endswith(f"Run: python -m pip install {review_commands.PACKAGES}")
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert " ".join(f"'{one}'" for one in extra["workbench"]) == review_commands.PACKAGES


@pytest.mark.slow
def test_ctrl_c_says_what_is_left_and_how_to_continue(runs: Path, tmp_path: Path) -> None:
    words = ("--reviewers", "r1,r2", "--sample", "1", "--out", tmp_path)
    with served("review", "start", newest(runs), *words) as review:
        review.process.send_signal(signal.SIGINT)
        _, err = review.process.communicate(timeout=30)
    assert review.process.returncode == 4
    assert "wait for r1" in err and "To continue: medicare-eval review continue" in err


@pytest.mark.slow
def test_a_review_that_cannot_start_says_so_before_any_link(runs: Path, tmp_path: Path) -> None:
    made = start_review(newest(runs), reviewers=["r1", "r2"], sample=1, out=tmp_path)
    with served("review", "continue", made.path):
        second = process("review", "continue", made.path, "--no-open")
    assert second.returncode == 6 and "in use by another process" in second.stderr and "http" not in second.stdout


@each_case(
    ("words", "said"),
    [
        (["--reviewers", "r2+r1,r1"], "'r2+r1' is not a pseudonym"),
        (["--reviewers", "r1,r2", "--adjudicator", "r4+r1"], "'r4+r1' is not a pseudonym"),
        (["--reviewers", "r1,r2", "--seed", "99999999999999999999"], "a seed is a whole number from 0"),
        (["--reviewers", "r1,r2", "--port", "99999"], "a port is a number from 1 to 65535"),
        (["--reviewers", "r1,r2", "--host", "::ffff:0.0.0.0"], "stands for every address"),
    ],
)
def test_a_review_that_is_started_wrongly_leaves_nothing(
    runs: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    code, _, err = call("review", "start", newest(runs), *words, "--out", tmp_path, "--no-open")
    assert code == 2 and said in err, err
    assert not list(tmp_path.iterdir())


def test_a_person_may_insist_on_facts_in_other_words(review: Served) -> None:
    cookie, own = review.session("r2"), {"origin": f"http://{review.host}", **OWN}
    asked = 0
    for _ in range(12):
        form = first_form(review, "r2", cookie)
        action, token = fields(form)
        facts = re.findall(r'name="evidence" value="([^"]+)"', form.text)
        fact = next(one for one in reversed(facts) if not re.fullmatch(r"D\d+", one))
        body = f"token={token}&label=SUPPORTED&evidence={fact}"
        answer = review.ask("POST", action, body=body, cookie=cookie, **own)
        if answer.status == 422:
            asked += 1
            assert 'name="insist"' in answer.text and "share no words with the claim" in answer.text
            answer = review.ask("POST", action, body=f"{body}&insist=yes", cookie=cookie, **own)
        assert answer.status == 303
    assert asked


@pytest.mark.slow
def test_an_address_does_not_tell_the_target_and_other_cookies_do_no_harm(review: Served) -> None:
    cookie = review.session("r1")
    shown = review.ask("GET", "/", cookie=cookie).text
    (task,) = re.findall(r'class="button" href="/tasks/([^"]+)"', shown)
    guesses = {
        hashlib.sha256(f"scenario_001.fake-{t}.r1|verifier|Q{q}|1.{kind}{n}|0|1".encode()).hexdigest()[:16]
        for t in ("careful", "wrong")
        for q in range(1, 6)
        for kind in "cs"
        for n in range(1, 30)
    }
    assert task not in guesses
    for other in ('other={"a": 1}', "a@b[c]=x y"):
        assert review.ask("GET", "/", cookie=f"{other}; {cookie}").status == 200
    body = "label=NOT_IN_KEY"
    assert review.ask("HEAD", f"/tasks/{task}", cookie=cookie, body=body).status == 200  # shows, and saves nothing
    assert review.ask("GET", f"/tasks/{task}", cookie=cookie).status == 200
