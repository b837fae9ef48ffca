"""The examples for scheduled reruns, carried out: cron's line, systemd's units and the steps of the CI schedule.

The targets are fakes, `gh` and `mail` are fakes that record what they are asked, and the dates are made up. The
processes, the shell, git, the series and its alarms are real.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import src as me
from src import storage
from src.calls.budget import PASSES_MAX_COST
from src.series.folder import read_lines
from tests.batch_server import BatchServer, redirected
from tests.cases import each_case
from tests.runs import HANGS_S, ONE, ROOT, SCENARIOS
from tests.test_examples import filled
from tests.test_wire_runs import SENTINEL, sensible

EXAMPLES = ROOT / "examples"
CRONTAB, WORKFLOW, SCRIPT = (EXAMPLES / name for name in ("series_crontab", "series_schedule.yml", "series_point.sh"))
UNITS = [EXAMPLES / name for name in ("series.service", "series.timer", "series_alarm.service")]
TOPICS = ("appeals", "cobra", "esrd", "home_health", "hospice", "irmaa")
SMALL: dict[str, Any] = {"anchors": 0, "points": 3}
OPT, VAR, ETC = "/opt/medicare-eval", "/var/lib/medicare-eval", "/etc/medicare-eval"

PROGRAM = """\
#!{python}
# medicare-eval of this checkout, on the day that control.json names and with what it says about the target.
import json, os, signal, sys
sys.path.insert(0, {root!r})
with open({control!r}) as file:
    control = json.load(file)
os.environ["MEDICARE_EVAL_TODAY"] = control["today"]
from src.adapters.local_adapters import FakeAdapter
from src.cli import main
own, asked = FakeAdapter._reply, 0
def reply(self, model, *where):
    global asked
    asked += 1
    if asked == control.get("stop_after"):
        os.kill(0 if control.get("group") else os.getpid(), signal.SIGTERM)
    return own(self, control.get("says", model), *where)
FakeAdapter._reply = reply
sys.exit(main(sys.argv[1:]))
"""

GH = """\
#!{python}
# A fake gh: issues in a file. It knows the commands and flags of the manual that the workflow uses, and no others.
import argparse, json, sys
from pathlib import Path
place = Path({state!r})
state = json.loads(place.read_text())
state["calls"].append(sys.argv[1:])
place.write_text(json.dumps(state))
if state["down"]:
    sys.exit("gh: HTTP 502")
group, action, *rest = sys.argv[1:]
parser = argparse.ArgumentParser(allow_abbrev=False)
known = {{
    ("label", "create"): ["name", "--description", "--force"],
    ("issue", "list"): ["--label", "--state", "--limit", "--json"],
    ("issue", "create"): ["--title", "--label", "--body-file"],
    ("issue", "edit"): ["which", "--body-file"],
    ("issue", "reopen"): ["which"],
    ("issue", "comment"): ["which", "--body-file"],
}}
for name in known[group, action]:
    parser.add_argument(name, **({{"action": "store_true"}} if name == "--force" else {{}}))
given = parser.parse_args(rest)
def text():
    return sys.stdin.read() if given.body_file == "-" else Path(given.body_file).read_text()
if hasattr(given, "which"):
    issue = next(one for one in state["issues"] if one["number"] == int(given.which.rpartition("/")[2]))
if group == "label":
    state["labels"] = sorted({{*state["labels"], given.name}})
elif action == "list":
    if given.state != "all":
        sys.exit("this fake lists all issues only")
    found = [one for one in state["issues"] if given.label in one["labels"]][: int(given.limit)]
    print(json.dumps([{{name: one[name] for name in given.json.split(",")}} for one in found]))
elif action == "create":
    if given.label not in state["labels"]:
        sys.exit("gh: there is no such label")
    number = len(state["issues"]) + 1
    state["issues"].insert(0, {{"number": number, "title": given.title, "labels": [given.label], "body": text(),
                               "state": "OPEN", "comments": []}})
    print(f"https://git.example/owner/repository/issues/{{number}}")
elif action == "edit":
    issue["body"] = text()
elif action == "reopen":
    issue["state"] = "OPEN"
else:
    issue["comments"].append(text())
place.write_text(json.dumps(state))
"""


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Place:
    """A machine with the program in its `opt`, and series in its `var`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.opt, self.var, self.etc = folder, folder / "opt", folder / "var", folder / "etc"
        self.bin, self.series = self.opt / ".venv" / "bin", self.var / "monthly"
        self.control, self.keys = folder / "control.json", self.var / "keys.env"
        (self.opt / "examples").mkdir(parents=True)
        self.var.mkdir()
        self.etc.mkdir()
        shutil.copy(SCRIPT, self.opt / "examples")
        self.write_keys({})
        program = PROGRAM.format(python=sys.executable, root=str(ROOT), control=str(self.control))
        executable(self.bin / "medicare-eval", program)

    def write_keys(self, keys: Mapping[str, str]) -> None:
        for path in (self.keys, self.etc / "keys.env"):
            path.write_text("".join(f"{name}={value}\n" for name, value in keys.items()), encoding="utf-8")
            path.chmod(0o600)

    def on(self, today: str, **behavior: object) -> None:
        """It is this day now, and the target says what `says` would."""
        self.control.write_text(json.dumps({"today": today, **behavior}), encoding="utf-8")

    def installed(self, text: str) -> str:
        """An example after its paths were changed to those of this place."""
        for path, own in ((OPT, self.opt), (VAR, self.var), (ETC, self.etc)):
            text = text.replace(path, str(own))
        return text

    @property
    def periods(self) -> list[str]:
        return [point.period for point in read_lines(self.series).points]

    def run(self, command: list[str], env: Mapping[str, str], **settings: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=dict(env), capture_output=True, text=True, timeout=HANGS_S, **{"cwd": self.var, **settings}
        )

    def point(self, *options: object, **env: str) -> subprocess.CompletedProcess[str]:
        """series_point.sh by itself."""
        words = ["sh", str(self.opt / "examples" / SCRIPT.name), "monthly", "--max-cost", "1", *map(str, options)]
        return self.run(words, {"PATH": f"{self.bin}:/usr/bin:/bin", **env})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def two_points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with the points of June and July."""
    folder = tmp_path_factory.mktemp("series") / "monthly"
    study = {
        "scenarios": [str(SCENARIOS / "topics" / f"{name}.json") for name in TOPICS],
        "targets": ["fake:careful"],
        "variants": ["plain"],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        me.init_series(folder, study, **SMALL)
        for day in ("2026-06-05", "2026-07-05"):
            patch.setenv("MEDICARE_EVAL_TODAY", day)
            assert me.run_series(folder, max_cost=1.0).verdict == "no alarm"
    return folder


# series_point.sh


def stub(place: Place, code: int, words: str, status: int = 0) -> None:
    """A medicare-eval that says one thing on `run`, and ends `status` with a code."""
    place.series.mkdir(exist_ok=True)
    (place.series / "points.jsonl").write_text("a line\n", encoding="utf-8")
    executable(
        place.bin / "medicare-eval",
        f'#!/bin/sh\n[ "$2" = run ] || {{ echo "the status"; exit {status}; }}\n'
        f"printf '%s\\n' {shlex.quote(words)} >&2\nexit {code}\n",
    )


@pytest.mark.parametrize(
    ("code", "words", "ends", "begins", "loud"),
    [
        (0, "all is well", 0, "monthly: a new point, no alarm.", False),
        (7, "drifted", 7, "ALARM: monthly has drifted", True),
        (8, "cannot tell", 8, "ALARM: monthly cannot tell", True),
        (4, f"{PASSES_MAX_COST} To continue: ...", 4, "ERROR: monthly has no new point (exit code 4)", True),
        (4, "The run was stopped before its end. To continue: ...", 75, "monthly: not finished.", False),
        (2, "study.toml: this is no longer the frozen study", 2, "ERROR: monthly has no new point", True),
        (3, "OPENAI_API_KEY is not set.", 3, "ERROR: monthly has no new point", True),
        (6, "monthly: write failed (No space left on device).", 6, "ERROR: monthly has no new point", True),
        (6, "monthly is in use by another process. Wait for it to finish, or stop it.", 0, "", False),
    ],
)
def test_every_exit_code_is_reported_on_the_right_stream(
    code: int, words: str, ends: int, begins: str, loud: bool, place: Place
) -> None:
    stub(place, code, words)
    done = place.point()
    said, silent = (done.stderr, done.stdout) if loud else (done.stdout, done.stderr)
    assert (done.returncode, silent) == (ends, "")
    assert said.startswith(begins)
    assert (words in said) == bool(begins)
    assert (place.var / "monthly.reported").exists() == (ends in (0, 7, 8) and bool(begins))


def test_a_point_that_no_one_was_told_about_is_reported_by_the_next_start_and_only_by_that(place: Place) -> None:
    """The machine failed after the point was stored."""
    stub(place, 2, "medicare-eval: monthly already has a point for 2026-07. The next one is due in ...", status=7)
    first, second = place.point(), place.point()
    assert (first.returncode, first.stdout) == (7, "")
    assert first.stderr.startswith("ALARM: monthly has drifted (exit code 7).\nthe status")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


def test_a_report_that_could_not_be_written_is_not_taken_for_read(place: Place) -> None:
    stub(place, 7, "drifted")
    script = shlex.join(["sh", str(self_script(place)), "monthly", "--max-cost", "1"])
    done = place.run(["sh", "-c", f"{script} 2>/dev/full"], {"PATH": f"{place.bin}:/usr/bin:/bin"})
    assert done.returncode == 1
    assert not (place.var / "monthly.reported").exists()


def self_script(place: Place) -> Path:
    return place.opt / "examples" / SCRIPT.name


@pytest.mark.parametrize(("mode", "refused"), [(0o600, False), (0o640, True), (0o604, True), (0o620, True)])
def test_a_file_of_keys_that_others_can_use_is_refused(mode: int, refused: bool, place: Place) -> None:
    stub(place, 0, "all is well")
    executable(place.bin / "medicare-eval", '#!/bin/sh\necho "key: $OPENAI_API_KEY"\n')
    place.write_keys({"OPENAI_API_KEY": SENTINEL})
    place.keys.chmod(mode)
    done = place.point(KEYS="keys.env")
    if refused:
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr == "./keys.env can be read or changed by others. First run: chmod 600 ./keys.env\n"
    else:
        assert (done.returncode, f"key: {SENTINEL}" in done.stdout) == (0, True)


@pytest.mark.slow
def test_batches_that_are_not_back_are_no_error_and_a_used_up_budget_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a real SDK, a batch API on loopback, and keys from the file: no key is in any other file."""
    with BatchServer(sensible, polls=1_000_000) as server:
        for name, value in redirected(server).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("MEDICARE_EVAL_TODAY", "2026-06-05")
        judges = {"judges": ["openai:gpt-5.5-2026-04-23"], "adjudicator": "none", "no_probe": True}
        me.init_series(place.series, {"scenarios": [ONE], "targets": ["fake:partial"], **judges}, **SMALL)
        place.write_keys(redirected(server))
        place.on("2026-06-05")
        poor = place.point("--max-cost", 0.0001, KEYS="keys.env")
        assert (poor.returncode, "The next call could pass" in poor.stderr) == (4, True)
        assert poor.stderr.startswith("ERROR: monthly has no new point (exit code 4).")
        batches = ["--batch", "judges", "--batch-wait", 0]
        waits = place.point("--max-cost", 9, *batches, KEYS="keys.env")
        assert (waits.returncode, waits.stderr) == (75, "")
        assert waits.stdout.startswith("monthly: not finished. The next start continues it.\n")
        assert "is at openai, submitted at" in waits.stdout
        server.polls = 0
        for batch in server.batches:
            batch.polls = 0
        done = place.point("--max-cost", 9, "--batch", "judges", KEYS="keys.env")
        assert done.returncode == 0, done.stderr
        journal = next(place.series.glob("points/2026-06/run/*/calls.jsonl")).read_text(encoding="utf-8")
        calls = [json.loads(line) for line in journal.splitlines()]
        recorded = [one for one in calls if "call" in one and one["model"].startswith("openai:")]
        assert sum(server.billed.values()) == len(recorded) > 10  # nothing was paid for twice
    assert place.periods == ["2026-06"]
    files = [path for path in place.var.rglob("*") if path.is_file() and path != place.keys]
    assert len(files) > 5
    assert not [path for path in files if SENTINEL.encode() in path.read_bytes()]


# cron


def crontab(text: str) -> tuple[dict[str, str], list[str], str]:
    """The variables, the five fields of the time, and the command of a crontab with one entry."""
    variables: dict[str, str] = {}
    entries = []
    for line in text.splitlines():
        setting = re.fullmatch(r"\s*(\w+)\s*=\s*(.*?)\s*", line)
        if setting:
            variables[setting[1]] = setting[2]
        elif line.strip() and not line.lstrip().startswith("#"):
            entries.append(line.split(maxsplit=5))
    (entry,) = entries
    return variables, entry[:5], entry[5]


def as_cron(place: Place, text: str) -> subprocess.CompletedProcess[str]:
    """Run the entry as cron does: its environment, its rule for %, and the shell that the crontab names."""
    variables, _, command = crontab(text)
    first, *more = re.split(r"(?<!\\)%", command)
    env = {"HOME": str(place.folder), "LOGNAME": "series", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin", **variables}
    command, given = first.replace("\\%", "%"), "\n".join(more).replace("\\%", "%")
    return place.run([env["SHELL"], "-c", command], env, cwd=place.folder, input=given)


def test_the_crontab_is_one_entry_that_runs_every_day_with_options_that_exist(place: Place) -> None:
    variables, (minute, hours, *days), command = crontab(CRONTAB.read_text(encoding="utf-8"))
    assert days == ["*", "*", "*"]
    assert 0 < int(minute) < 60
    assert all(0 <= int(hour) < 24 for hour in hours.split(","))
    assert {"SHELL", "PATH", "MAILTO", "KEYS"} == set(variables)
    assert not {"$", "%", '"', "'"} & set("".join(variables.values()))  # cron would take them as they are
    assert "%" not in command
    assert CRONTAB.read_bytes().endswith(b"\n")  # without it, cron ignores the last line
    options = command[command.index("--max-cost") :]
    api_options(shlex.split(options))
    if shutil.which("crontab"):
        checked = subprocess.run(["crontab", "-T", str(CRONTAB)], capture_output=True, text=True)
        assert checked.returncode == 0 or "invalid option" in checked.stderr, checked.stderr


def api_options(options: list[str]) -> None:
    from src.cli.parser import build_parser

    build_parser().parse_args(["series", "run", "monthly", *options])


def test_the_rule_for_percent_signs_is_applied(place: Place) -> None:
    done = as_cron(place, "PATH=/usr/bin:/bin\n1 2 * * * printf 'a\\%s' b && cat%first%second\n")
    assert done.stdout == "abfirst\nsecond"


def test_cron_without_a_series_makes_noise(place: Place) -> None:
    place.on("2026-08-01")
    done = as_cron(place, place.installed(CRONTAB.read_text(encoding="utf-8")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ERROR: monthly has no new point (exit code 2).")
    assert "monthly is not a series" in done.stderr


@pytest.mark.slow
def test_cron_makes_one_point_a_month_and_mails_only_news(place: Place, two_points: Path) -> None:
    shutil.copytree(two_points, place.series)
    text = place.installed(CRONTAB.read_text(encoding="utf-8"))
    told: list[tuple[int, str, str]] = []
    mails: list[str] = []
    for day, behavior in (
        ("2026-07-06", {}),  # July was made by hand, and no one was told by this script
        ("2026-07-31", {}),
        ("2026-08-01", {"says": "no one"}),
        ("2026-08-02", {}),
        ("2026-09-01", {}),
        ("2026-10-01", {"says": "wrong"}),
        ("2026-10-02", {"says": "wrong"}),
    ):
        place.on(day, **behavior)
        done = as_cron(place, text)
        told.append((done.returncode, done.stdout.partition("\n")[0], done.stderr.partition("\n")[0]))
        mails.append(done.stdout + done.stderr)
    silence, news = (0, "", ""), (0, "monthly: a new point, no alarm.", "")
    assert told == [
        news,
        silence,
        (8, "", "ALARM: monthly cannot tell whether anything drifted (exit code 8)."),
        silence,
        news,
        (7, "", "ALARM: monthly has drifted (exit code 7)."),
        silence,
    ]
    assert place.periods == ["2026-06", "2026-07", "2026-08", "2026-09", "2026-10"]
    with storage.RunLock(place.series):  # another process is making the point of November
        place.on("2026-11-01")
        busy = as_cron(place, text)
    assert (busy.returncode, busy.stdout, busy.stderr) == (0, "", "")
    head = read_lines(place.series).head
    assert head in mails[-2]  # the hash to keep is in the mail
    assert head in (place.var / "monthly.md").read_text(encoding="utf-8")
    assert 'type="drifted"' in (place.var / "monthly.xml").read_text(encoding="utf-8")
    me.verify_series(place.series, expect=head)


# systemd


needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def unit(text: str) -> dict[str, list[str]]:
    """The settings of a unit. None of ours continues on another line."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def started(place: Place, text: str, extra: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ExecStart with the unit's own environment and folder, in a group of processes of its own."""
    settings = unit(place.installed(text))
    (command,) = settings["ExecStart"]
    assert "%" not in command  # a specifier, which this test would not expand
    env = dict(word.split("=", 1) for line in settings["Environment"] for word in shlex.split(line))
    for path in settings.get("EnvironmentFile", []):
        env |= dict(line.split("=", 1) for line in Path(path).read_text(encoding="utf-8").splitlines())
    (folder,) = settings.get("WorkingDirectory", [str(place.folder)])
    words = [word.replace("$$", "$") for word in shlex.split(command)]
    return place.run(words, {**env, **(extra or {})}, cwd=folder, start_new_session=True)


@needs_systemd
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for path in UNITS:
        shutil.copy(path, tmp_path)
    units = [str(tmp_path / path.name) for path in UNITS]
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    broken = UNITS[0].read_text(encoding="utf-8").replace("SuccessExitStatus=75", "Restart=always")
    (tmp_path / "series.service").write_text(broken, encoding="utf-8")
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert checked.returncode  # so it would have said what is wrong


@needs_systemd
def test_systemd_starts_the_timer_every_day_and_catches_up() -> None:
    settings = unit(UNITS[1].read_text(encoding="utf-8"))
    (when,) = settings["OnCalendar"]
    command = ["systemd-analyze", "calendar", "--iterations=3", "--base-time=2026-12-30 12:00:00", when]
    said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TZ": "UTC"})
    assert said.returncode == 0, said.stderr
    days = re.findall(r"(?:Next elapse|Iter\. #\d): \w+ (\S+) (\S+)", said.stdout)
    assert days == [(day, "06:17:00") for day in ("2026-12-31", "2027-01-01", "2027-01-02")]
    assert (settings["Persistent"], settings["RandomizedDelaySec"]) == (["true"], ["1h"])


def test_the_service_has_no_secret_and_can_write_to_one_folder() -> None:
    text = UNITS[0].read_text(encoding="utf-8")
    settings = unit(text)
    assert "_API_KEY" not in text
    assert settings["EnvironmentFile"] == [f"{ETC}/keys.env"]
    assert (settings["ProtectSystem"], settings["StateDirectory"]) == (["strict"], ["medicare-eval"])
    assert settings["WorkingDirectory"] == [VAR]
    assert not settings.get("ReadWritePaths")
    assert settings["SuccessExitStatus"] == ["75"]
    assert settings["OnFailure"] == [UNITS[2].name]
    assert settings["NoNewPrivileges"] == ["true"]
    (command,) = settings["ExecStart"]
    api_options(shlex.split(command[command.index("--max-cost") :]))


def test_the_alarm_unit_mails_what_the_failed_start_said(place: Place) -> None:
    executable(place.bin / "journalctl", '#!/bin/sh\necho "journal: $*"\n')
    executable(place.bin / "mail", f'#!/bin/sh\n{{ echo "$*"; cat; }} >"{place.folder}/mail.txt"\n')
    env = {"MONITOR_EXIT_STATUS": "7", "MONITOR_INVOCATION_ID": "abc", "PATH": f"{place.bin}:/usr/bin:/bin"}
    done = started(place, UNITS[2].read_text(encoding="utf-8"), env)
    assert done.returncode == 0, done.stderr
    assert (place.folder / "mail.txt").read_text(encoding="utf-8").splitlines() == [
        "-s medicare-eval series: exit code 7 root",
        "journal: --no-pager --output=cat _SYSTEMD_INVOCATION_ID=abc",
    ]


@pytest.mark.slow
def test_a_service_that_was_stopped_in_the_middle_is_continued_the_next_day(place: Place, two_points: Path) -> None:
    shutil.copytree(two_points, place.series)
    text = UNITS[0].read_text(encoding="utf-8")
    place.on("2026-08-01", stop_after=5, group=True)  # systemd sends the signal to all processes of the service
    stopped = started(place, text)
    assert (stopped.returncode, stopped.stderr) == (75, "")
    assert stopped.stdout.startswith("monthly: not finished. The next start continues it.\n")
    assert place.periods == ["2026-06", "2026-07"]
    begun = [path.name for path in (place.series / "points" / "2026-08" / "run").iterdir()]
    place.on("2026-08-02")
    done = started(place, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("monthly: a new point, no alarm.\n")
    assert place.periods == ["2026-06", "2026-07", "2026-08"]
    assert [path.name for path in (place.series / "points" / "2026-08" / "run").iterdir()] == begun
    again = started(place, text)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    me.verify_series(place.series)


# CI


class Ci:
    """A repository, a place for its issues, and a runner that begins with a fresh clone every day."""

    def __init__(self, place: Place) -> None:
        self.place, self.remote, self.gh = place, place.folder / "remote.git", place.folder / "gh.json"
        self.gh.write_text(json.dumps({"calls": [], "labels": [], "issues": [], "down": False}), encoding="utf-8")
        executable(place.bin / "gh", GH.format(python=sys.executable, state=str(self.gh)))
        executable(place.bin / "sleep", "#!/bin/sh\n")
        self.env = {
            "PATH": f"{place.bin}:{os.environ['PATH']}", "HOME": str(place.folder), "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        self.days = 0

    def git(self, *words: object, cwd: Path | None = None) -> str:
        author = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command = ["git", *map(str, words)]
        done = self.place.run(command, {**self.env, **author}, cwd=cwd or self.place.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self, scenarios: tuple[str, ...] = TOPICS) -> None:
        """A repository with a study, and the series begun as docs/schedule.md says."""
        self.git("init", "--quiet", "--bare", "--initial-branch=main", self.remote)
        self.git("clone", "--quiet", self.remote.as_uri(), "first")
        first = self.place.folder / "first"
        shutil.copytree(self.place.opt / "examples", first / "examples")
        (first / "topics").mkdir()
        for name in scenarios:
            shutil.copy(SCENARIOS / "topics" / f"{name}.json", first / "topics")
        study = 'scenarios = ["topics/*.json"]\ntargets = ["fake:careful"]\nvariants = ["plain"]\n'
        (first / "study.toml").write_text(study, encoding="utf-8")
        self.git("add", "--all", cwd=first)
        self.git("commit", "--quiet", "--message=A study", cwd=first)
        self.git("push", "--quiet", "origin", "HEAD:refs/heads/main", cwd=first)
        script = setup_block().replace("study.toml\n", "study.toml --anchors 0 --points 3\n")
        author = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.place.on("2026-06-01")
        done = self.place.run(["bash", "-e", "-c", script], {**self.env, **author}, cwd=first)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(first)

    def day(self, today: str, **behavior: object) -> dict[str, str]:
        """Carry out the job in a fresh clone. How each step ended, and `job`: failure if one failed."""
        self.place.on(today, **behavior)
        self.days += 1
        work = self.place.folder / f"day{self.days}"
        self.git("clone", "--quiet", "--depth=1", self.remote.as_uri(), work)
        job = workflow()["jobs"]["point"]
        outputs, outcomes = {"github.token": "a token"}, {"job": "success"}
        for step in job["steps"]:
            if "run" not in step or step["name"] == "Install":
                continue
            if not wanted(step.get("if", ""), outcomes):
                continue
            written = work / "output"
            written.write_text("", encoding="utf-8")
            own = {name: filled(str(value), outputs) for name, value in {**job["env"], **step.get("env", {})}.items()}
            env = {**self.env, **own, "GITHUB_OUTPUT": str(written)}
            done = self.place.run(["bash", "-e", "-c", filled(step["run"], outputs)], env, cwd=work)
            outcome = "success" if done.returncode == 0 else "failure"
            outcomes |= {step.get("id", step["name"]): outcome, "said": done.stdout + done.stderr}
            if outcome == "failure":
                outcomes["job"] = "failure"
            for line in written.read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                outputs[f"steps.{step['id']}.outputs.{name}"] = outcomes[name] = value
        return outcomes

    def stored(self) -> Path:
        """The series as the branch has it."""
        self.days += 1
        copy = self.place.folder / f"stored{self.days}"
        self.git("clone", "--quiet", "--depth=1", "--branch=series-data", self.remote.as_uri(), copy)
        return copy / "monthly"

    def periods(self) -> list[str]:
        return [point.period for point in read_lines(self.stored()).points]

    def commits(self) -> list[str]:
        return self.git("--git-dir", self.remote, "log", "--format=%s", "series-data").splitlines()

    @property
    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.gh.read_text(encoding="utf-8"))
        return state

    def change(self, **state: object) -> None:
        self.gh.write_text(json.dumps({**self.state, **state}), encoding="utf-8")


def workflow() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    document: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    return document


def wanted(condition: str, outcomes: Mapping[str, str]) -> bool:
    """Whether a step is carried out: its condition, or that no step before it failed."""
    if not condition:
        return outcomes["job"] == "success"
    always, *others = condition.split(" && ")
    assert always == "always()"
    for other in others:
        found = re.fullmatch(r"steps\.(\w+)\.outcome == '(\w+)'", other)
        assert found, other
        if outcomes.get(found[1]) != found[2]:
            return False
    return True


def setup_block() -> str:
    """How docs/schedule.md says that the branch is begun."""
    text = (ROOT / "docs" / "schedule.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- example: tests/test_series_examples\.py [^\n]*\n```sh\n(.*?)```", text, re.S)
    assert found
    return found[1]


@pytest.fixture
def ci(place: Place) -> Ci:
    return Ci(place)


def test_the_workflow_gives_keys_to_one_step_and_its_scripts_parse() -> None:
    document = workflow()
    job = document["jobs"]["point"]
    assert "_API_KEY" not in json.dumps([document.get("env"), job["env"]])
    with_keys = [step.get("id") for step in job["steps"] if "_API_KEY" in json.dumps(step)]
    with_token = [step["name"] for step in job["steps"] if "github.token" in json.dumps(step)]
    assert (with_keys, with_token) == (["point"], ["Keep one issue up to date"])
    assert document["permissions"] == {"contents": "write", "issues": "write"}
    assert document["concurrency"]["cancel-in-progress"] is False
    (schedule,) = dict[Any, Any](document)[True]["schedule"]  # YAML reads the word `on` as true
    assert schedule["cron"].split()[2:] == ["*", "*", "*"]
    for step in job["steps"]:
        if "run" in step:
            assert "${{" not in step["run"]  # values reach scripts by the environment, never as their text
            parsed = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
            assert parsed.returncode == 0, parsed.stderr
    (command,) = re.findall(r"series_point\.sh \S+ \\\n\s*(.*?) \|\|", job["steps"][4]["run"])
    api_options(shlex.split(command))
    (minutes,) = re.findall(r"timeout --preserve-status (\d+)m", job["steps"][4]["run"])
    assert int(minutes) + 30 < job["timeout-minutes"]


@each_case("name", ["Store the series", "Keep one issue up to date", "Report the exit code"])
def test_a_job_that_is_canceled_while_it_makes_the_point_still_stores_and_reports_it(name: str) -> None:
    step = next(step for step in workflow()["jobs"]["point"]["steps"] if step.get("name") == name)
    assert wanted(step.get("if", ""), {"restore": "success", "job": "failure"})


@pytest.mark.slow
def test_the_schedule_keeps_every_point_on_its_branch_and_one_issue(ci: Ci) -> None:
    ci.begin()
    june = ci.day("2026-06-01")
    assert (june["code"], june["job"]) == ("0", "success"), june["said"]
    assert ci.periods() == ["2026-06"]
    commits = len(ci.commits())
    again = ci.day("2026-06-02")
    assert (again["code"], again["job"], len(ci.commits())) == ("0", "success", commits)

    stopped = ci.day("2026-07-01", stop_after=5)
    assert (stopped["code"], stopped["job"]) == ("75", "success")
    begun = [path.name for path in (ci.stored() / "points" / "2026-07" / "run").iterdir()]
    assert (ci.periods(), len(begun)) == (["2026-06"], 1)
    july = ci.day("2026-07-02")
    assert (july["code"], july["job"]) == ("0", "success"), july["said"]
    assert [path.name for path in (ci.stored() / "points" / "2026-07" / "run").iterdir()] == begun
    (issue,) = ci.state["issues"]
    assert "no alarm, 2026-07" in issue["body"]
    assert issue["comments"] == []

    ci.change(issues=[{**issue, "state": "CLOSED"}])
    august = ci.day("2026-08-01", says="no one")
    assert (august["code"], august["job"]) == ("8", "failure")
    assert ci.periods() == ["2026-06", "2026-07", "2026-08"]
    (issue,) = ci.state["issues"]
    assert (issue["state"], len(issue["comments"])) == ("OPEN", 1)
    assert all("cannot tell, 2026-08" in text for text in (issue["body"], issue["comments"][0]))
    assert "<!--" not in issue["comments"][0]
    quiet = ci.day("2026-08-02")
    assert (quiet["code"], quiet["job"], len(ci.state["issues"][0]["comments"])) == ("0", "success", 1)

    september = ci.day("2026-09-01", says="wrong")
    assert (september["code"], september["job"]) == ("7", "failure")
    (issue,) = ci.state["issues"]
    assert (issue["number"], len(issue["comments"])) == (1, 2)
    assert "drifted, 2026-09" in issue["body"]
    stored = ci.stored()
    assert read_lines(stored).head in issue["body"]
    assert me.verify_series(stored).points == 4
    assert ci.commits()[::-1] == [
        "Begin the series", "monthly: exit code 0", "monthly: exit code 75", "monthly: exit code 0",
        "monthly: exit code 8", "monthly: exit code 7",
    ]  # fmt: skip
    assert ci.git("--git-dir", ci.remote, "log", "--format=%s", "main").splitlines() == ["A study"]


@pytest.mark.slow
def test_a_failed_push_or_a_silent_issue_tracker_loses_no_point_and_makes_no_second_issue(ci: Ci) -> None:
    ci.begin(TOPICS[:1])
    hook, count = ci.remote / "hooks" / "pre-receive", ci.place.folder / "refused"
    executable(hook, f'#!/bin/sh\nif [ ! -e "{count}" ]; then touch "{count}"; echo busy >&2; exit 1; fi\n')
    june = ci.day("2026-06-01")
    assert (june["store"], june["job"], count.exists()) == ("success", "success", True)
    assert ci.periods() == ["2026-06"]

    ci.change(down=True)
    july = ci.day("2026-07-01")
    assert (july["code"], july["store"], july["Keep one issue up to date"]) == ("0", "success", "failure")
    assert july["job"] == "failure"
    assert ci.periods() == ["2026-06", "2026-07"]
    ci.change(down=False)
    assert ci.day("2026-07-02")["job"] == "success"
    (issue,) = ci.state["issues"]
    assert "2026-07" in issue["body"].splitlines()[1]

    executable(hook, "#!/bin/sh\nexit 1\n")
    august = ci.day("2026-08-01")
    assert (august["code"], august["store"], august["job"]) == ("0", "failure", "failure")
    assert ci.periods() == ["2026-06", "2026-07"]
    rescue = next(step for step in workflow()["jobs"]["point"]["steps"] if step.get("name") == "Rescue the series")
    assert wanted(rescue["if"], august)
    assert not wanted(rescue["if"], july)

    hook.unlink()
    missing = ci.git("--git-dir", ci.remote, "update-ref", "-d", "refs/heads/series-data")
    lost = ci.day("2026-08-02")
    assert (missing, lost["restore"], lost["job"]) == ("", "failure", "failure")
    assert "store" not in lost  # nothing is written where no series was restored
    assert len(ci.state["issues"]) == 1
