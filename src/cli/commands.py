"""The table of commands: name, function, summary and options. A command's module is imported only when it runs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any

from ..scoring.definitions import MEASURES, SHARES
from .options import (
    CHECKLISTS,
    TRANSCRIPT_FORMATS,
    Adds,
    amount,
    argument,
    checklists,
    day,
    identifier,
    names,
    natural,
    numbers,
    port,
    positive,
    questions,
    study,
    switch,
    value,
    whole,
)

RUNS = Path("runs")
WIDTH = 79
"""Of descriptions, which are printed as they are; argparse wraps the rest to the terminal."""


@dataclass(frozen=True)
class Command:
    name: str
    function: str
    """The module of this package and its function, which takes the parsed arguments and returns the exit code; empty
    for a command that has parts."""
    summary: str
    options: tuple[Adds, ...] = ()

    @property
    def text(self) -> str:
        """What the help says first, if there is more to say than the summary."""
        return texts().get(self.name, "")

    def __call__(self, arguments: argparse.Namespace) -> int:
        module, _, function = self.function.partition(":")
        return int(getattr(import_module(f".{module}", __package__), function)(arguments))


@cache
def texts() -> dict[str, str]:
    """The longer texts of help, by command."""
    _, *parts = Path(__file__).with_name("help.txt").read_text(encoding="utf-8").split("\n## ")
    found = (part.replace("{measures}", _measures()).rstrip().partition("\n") for part in parts)
    return {name: f"{text}\n" for name, _, text in found}


def _measures() -> str:
    first = 2 + max(map(len, MEASURES)) + 2
    lines = (
        fill(one.clause, WIDTH, initial_indent=f"  {name}".ljust(first), subsequent_indent=" " * first)
        for name, one in MEASURES.items()
    )
    return "\n".join(["Measures:", *lines])


def _measure(meaning: str, **how: Any) -> Adds:
    return value("--measure", "NAME", f"{', '.join(MEASURES)}; {meaning}", choices=tuple(MEASURES), **how)


STUDY_FILE = argument("study", "STUDY", "a study file (TOML); flags override it", nargs="?")
RUN = argument("run", "RUN")
SEVERAL_RUNS = argument("runs", "RUN", nargs="+")
SERIES = argument("series", "SERIES", "the folder of the series")
JSON = switch("--json", "print JSON")
QUIET = switch("--quiet", "no progress on stderr")
SUMMARY = (switch("--json", "print the summary as JSON on stdout"), QUIET)
HTML = value("--html", "FILE", "also write a page; replaces only an earlier page of this program", Path)
FLOOR = value("--floor", "D", "the smallest difference that matters", amount, 0.05)
REFERENCE_FILES = study("facts", "invented_plans", type=Path, default=None)
PLAN_YEAR = value("--plan-year", "YEAR", "of the keys (default: this year; facts and sources: all)", positive)
BANK = argument(
    "scenario", "SCENARIO", "file, folder, glob or pack:NAME (default: the bank)", str, nargs="*", default=[]
)
LISTED = (BANK, PLAN_YEAR, REFERENCE_FILES, JSON)
"""What `scenarios` lists."""
PAGES_KNOWN = value("--snapshot", "DIR", "the pages to look in (default: the bundled ones)", Path)
NEW_RUN = study("out", "execution", "prices")
WRITTEN = (
    JSON,
    value("--junit", "FILE", "write the verdicts as JUnit XML, for CI", Path),
    value("--summary", "FILE", "write a Markdown summary that a bot can post as one issue", Path),
    value("--html", "FILE", "write the page with the charts", Path),
)
"""What the parts of `series` write."""
PORT = (
    value("--port", "N", "port of the pages (default: a free one)", port),
    switch("--no-open", "do not open a browser", dest="open", action="store_false"),
)
"""Of pages that only this machine reaches."""
PAGES = (
    *PORT,
    value(
        "--host",
        "ADDRESS",
        "serve on this address of the machine; one that other machines reach needs a password in "
        "MEDICARE_EVAL_PASSWORD",
        default="127.0.0.1",
    ),
)


def _script(*, required: bool) -> tuple[Adds, ...]:
    """What is asked, where conversations go, and how they are redacted."""
    return (
        value("--scenario", "FILE", "the scenario that was asked", required=required),
        value("--variant", "ID", "of the scenario, if it has variants"),
        value("--to", "DIR", "the folder of conversations", Path, required=True),
        value("--system", "NAME", "what was spoken to, for example 'SHIP counselors'; never a person"),
        value("--names", "FILE", "names to redact, one per line", Path),
        value("--by", "r1", "pseudonym of the person who checks the redactions"),
        value("--plan-year", "YEAR", "of figures in questions (default: this year)", positive),
        REFERENCE_FILES,
        switch("--yes", "save without asking"),
    )


# fmt: off
COMMANDS = (
    Command("run", "run:run", "ask targets every scenario and judge the answers", (
        STUDY_FILE,
        questions,
        switch("--dry-run",
            "show the study in full, its trials, calls and estimated cost; call nothing, write nothing"),
        value("--registered", "FILE", "a pre-registration (`freeze`) that this run must match", Path),
        switch("--allow-deviations",
            "run even if the plan differs from the pre-registration; every report lists the differences"),
        value("--shard", "I/K",
            "only the I-th of K parts, with a K-th of the money, rates and calls in flight; see `merge`"),
        NEW_RUN,
        *SUMMARY,
    )),
    Command("demo", "run:demo", "a complete evaluation of four fake targets, without a key or network", (
        NEW_RUN,
        *SUMMARY,
    )),
    Command("resume", "run:resume", "resume a run that was stopped or killed; no recorded call is made again", (
        argument("run", "RUN", "the run folder"),
        study("execution"),
        *SUMMARY,
    )),
    Command("rejudge", "run:rejudge", "judge an earlier run's transcripts again, with other judges, as a new run", (
        argument("run", "RUN", "a complete run; it is read and left as it is"),
        switch("--keep-claims", "reuse the claims too, so that verdicts compare claim by claim"),
        study("judges"),
        NEW_RUN,
        *SUMMARY,
    )),
    Command("merge", "run:merge", "join the shards of a study into one run", (
        argument("shard", "SHARD", "the folders of all shards, in any order", nargs="+"),
        value("--to", "RUN", "the folder to write; never overwritten", Path, required=True),
        JSON,
    )),
    Command("freeze", "run:freeze", "write a pre-registration of a study", (
        STUDY_FILE,
        questions,
        study("registration.primary_outcome", "registration.tests", "registration.notes"),
        value("--to", "FILE", "the file to write; never overwritten", Path, required=True),
    )),
    Command("verify", "check_run:verify",
            "check that a run is exactly what was written, down to every quote and evidence id", (
        RUN,
        value("--expect", "HASH", "the results hash that you kept elsewhere"),
        JSON,
    )),
    Command("replay", "check_run:replay",
            "recompute a run's results from its journal, without any key, and compare bytes", (
        RUN,
        JSON,
    )),
    Command("judge-check", "judge_check:judge_check", "measure judge error rates on the human-labeled gold set", (
        value("--split", None, "(default: held_out)", choices=("held_out", "dev", "second", "third")),
        value("--only", None, "measure only whole replies, or only verifiers on gold claims (default: both)",
            choices=("end-to-end", "verifier")),
        value("--gold", "DIR", "a gold set of your own, in the same format", Path),
        value("--worst", "N", "show the N worst errors with both reasons", natural, 0),
        value("--limit", "N", "judge only N replies, drawn by the seed (default: all)", positive),
        value("--resume", "DIR", "resume a check that was stopped", Path),
        value("--seed", "N", "seed of every random draw (default: 42)", whole),
        value("--out", "DIR", "where checks go", Path, Path("judge-checks")),
        value("--timeout", "S", "seconds per attempt (default: 120)", amount),
        study("targets",
            help="a target of the run that the check is for: judges that are not named are chosen as for it; "
            "repeatable"),
        study("judges", "execution",
            without="judge_repeats judge_sample concurrency max_cost processes engine ray_address"),
        JSON,
        QUIET,
    )),
    Command("view", "review:view", "look at runs in a browser", (
        argument("runs", "RUNS", "a folder of runs, a run, or a series (default: runs)", nargs="?", default=RUNS),
        *PAGES,
    )),
    Command("review", "", "people judge a part of a run again, in a browser"),
    Command("review start", "review:start", "draw trials, and serve the pages on which they are judged", (
        argument("run", "RUN", "the run to review"),
        value("--reviewers", "r1,r2", "pseudonyms of two or more people", names, required=True),
        value("--adjudicator", "r3", "who settles what they disagree about; without one it stays open"),
        switch("--split", "each trial is judged by two of them, not by all"),
        value("--only", None, "no sample; trials that judges or readers marked, or only those that readers marked",
            choices=("flagged", "doubtful")),
        value("--sample", "N", "other trials to draw", natural, 30),
        value("--seed", "N", "seed of the draw (default: the run's)", whole),
        value("--out", "DIR", "where the review goes", Path, RUNS),
        *PAGES,
    )),
    Command("review continue", "review:resume", "serve the pages of a review again", (
        argument("run", "RUN", "the review"),
        *PAGES,
    )),
    Command("review export", "review:export", "write the labels of a finished review as a gold set", (
        argument("run", "RUN", "the review"),
        value("--to", "DIR", "a new folder for the gold set (default: RUN/gold)", Path),
    )),
    Command("import-transcripts", "transcripts:import_transcripts",
            "import recorded phone calls or chats, to judge them like a model's answers", (
        argument("files", "FILE", "transcripts, one conversation each", nargs="+"),
        *_script(required=True),
        value("--kind", None, "how they took place (default: by the format)", choices=("phone", "chat")),
        value("--caller", "LABEL", "the speaker who asks (default: recognized)"),
        value("--format", "F",
            f"of the files: {', '.join(TRANSCRIPT_FORMATS)} (default: recognized by name and contents)",
            choices=TRANSCRIPT_FORMATS),
        value("--map", "LIST",
            "correct the alignment: Q2=7 (the caller's words no. 7 ask Q2), Q3=none (it was not asked), "
            "Q4=early:Q2 (the reply to Q2 answers it)", dest="corrections"),
        value("--keep", "N,N", "redactions that are not personal", numbers),
        value("--redact", "TEXT", "redact this text too; repeatable", dest="also", action="append"),
        value("--collected", "DATE", "when they took place, for example 2026-11-02", day),
    )),
    Command("collect", "transcripts:collect",
            "collect a conversation with a chat app without an API, question by question", (
        *_script(required=False),
        value("--reply-file", "FILE", "take the reply to the next question from a file, then stop", Path),
        switch("--status", "list the unfinished conversations of the folder"),
        switch("--browser", "ask on a page in your browser instead of in the terminal"),
        *PORT,
    )),
    Command("report", "analyze:report", "write a report: CSV, Markdown, HTML and charts", (
        SEVERAL_RUNS,
        value("--out", "DIR", "where to write (default: RUN/report)", Path),
        value("--judge-check", "DIR", "correct estimates by the error rates of this judge check", Path),
        value("--checklist", "NAME",
            f"also write a reporting checklist, prefilled: {', '.join(CHECKLISTS)}; repeatable", checklists,
            action="extend"),
        switch("--no-evidence", "leave out the pages with every trial in full", dest="evidence", action="store_false"),
    )),
    Command("compare", "analyze:compare", "compare targets, or two judgings of the same transcripts, trial by trial", (
        SEVERAL_RUNS,
        value("--by", None, "what to compare", default="target", choices=("target", "judges")),
        _measure("repeatable (default: all)", dest="measures", action="append"),
        FLOOR,
        value("--show", "N", "changed claims to show", natural, 20),
        HTML,
        JSON,
    )),
    Command("drift", "analyze:drift",
            "compare two runs of the same study over time; reports drifted / no evidence / cannot tell", (
        argument("old", "OLD"),
        argument("new", "NEW"),
        value("--frozen", "RUN", "OLD's transcripts judged again by NEW's judges", Path),
        FLOOR,
        value("--show", "N", "changed answers to show", natural, 5),
        HTML,
        JSON,
    )),
    Command("sensitivity", "analyze:sensitivity",
            "how much scores vary with wording, voice, knobs, repeats and judges", (
        RUN,
        _measure("of the run", default="accuracy"),
        HTML,
        JSON,
    )),
    Command("power", "analyze:power",
            "scenarios and trials needed to detect a difference, from a pilot run or an assumed spread", (
        value("--pilot", "RUN", "take spread, scenarios and ICC from this run", Path),
        value("--sd", "SD", "standard deviation of the paired differences (instead of --pilot)", amount),
        _measure("of the pilot", default="accuracy"),
        value("--difference", "D", "difference to detect", amount, 0.1),
        value("--trials", "N", "report the power achieved with N paired trials instead", positive),
        value("--power", "P", "power wanted", float, 0.8),
        value("--alpha", "A", "two-sided", float, 0.05),
        value("--clusters", "N", "scenarios (default: as in the pilot)", positive),
        value("--icc", "R",
            "how alike differences are within a scenario, 0 to 1 (default: as in the pilot; without one, 0)", float),
    )),
    Command("export", "analyze:export", "write tidy tables with a codebook for other tools", (
        RUN,
        value("--to", "LIST", "csv,parquet,jsonl,dta,sav,inspect or plugins", default="csv,jsonl"),
        value("--out", "DIR", "where to write (default: RUN/export)", Path),
    )),
    Command("series", "", "run the same study again and again, with alarms"),
    Command("series init", "series:init", "freeze a study and compute the thresholds of its alarms", (
        argument("series", "SERIES", "a new folder for the series"),
        STUDY_FILE,
        value("--every", None, "how often a point is made", default="month",
            choices=("day", "week", "month", "quarter")),
        value("--outcome", "NAME",
            f"a primary outcome: {', '.join(MEASURES)}; repeatable (default: {', '.join(SHARES)})", dest="outcomes",
            action="append", choices=tuple(MEASURES)),
        value("--floor", "D", "the smallest change that matters", amount, 0.05),
        value("--alpha", "A", "share of unchanged series that may have a false alarm, over all targets and outcomes",
            amount, 0.05),
        value("--points", "N", "points that the thresholds are made for", positive, 24),
        value("--anchors", "N", "labeled replies that the judges label again at every point; 0: none", natural, 40),
        value("--gold", "DIR", "other labels for that, such as people's (`review export`)", Path),
        value("--title", "TEXT", "what the series is called (default: the study's title)"),
        value("--baseline", "RUN", "a finished run of the study: the first point", Path),
        questions,
        JSON,
    )),
    Command("series run", "series:run", "make the point of the present period", (
        SERIES,
        value("--max-cost", "USD", "stop before the calls of this point could cost more", amount, required=True),
        value("--end", "P:M", "end the line of this target here; repeatable", default=[], action="append"),
        switch("--judge-again", "the judges changed on purpose: judge all earlier transcripts again, as a new segment"),
        switch("--set-aside", "begin an unfinished point again; what it called is kept in a folder of another name"),
        study("judges", "execution", without="judge_repeats judge_sample max_cost"),
        *WRITTEN,
        QUIET,
    )),
    Command("series add", "series:add", "add a run that was made elsewhere", (
        SERIES,
        argument("run", "RUN", "a finished run of the study; it stays where it is"),
        value("--check", "DIR", "a judge check of its judges, made at the same time", Path),
        value("--frozen", "RUN", "the segment's first transcripts, judged again (`rejudge`)", Path),
        value("--date", "DATE", "the date it stands for (default: when it was started)", day, dest="day"),
        *WRITTEN,
    )),
    Command("series status", "series:status", "what the series says: alarms, claims, judges, events", (
        SERIES,
        *WRITTEN,
    )),
    Command("series plot", "series:plot", "write a page: charts, events, and what got better and worse", (
        SERIES,
        value("--html", "FILE", "the page to write (default: series.html in the series)", Path),
    )),
    Command("validate", "scenarios:validate",
            "check and lint scenario files; list facts not confirmed in the primary source", (
        argument("scenario", "SCENARIO", "file, folder, glob or pack:NAME", str, nargs="+"),
        switch("--strict", "house rules are errors, not warnings"),
        REFERENCE_FILES,
    )),
    Command("scenarios", "", "list scenarios, facts, sources or the library; edit scenarios in a spreadsheet"),
    Command("scenarios list", "scenarios:show_scenarios", "themes, variants, plan years, facts", LISTED),
    Command("scenarios facts", "scenarios:show_facts", "every fact, its dates, how confirmed", LISTED),
    Command("scenarios sources", "scenarios:show_sources", "every source, with the facts that cite it", LISTED),
    Command("scenarios library", "scenarios:show_library", "every fact that scenarios can refer to", (
        PLAN_YEAR, REFERENCE_FILES, JSON,
    )),
    Command("scenarios export", "scenarios:export", "write scenarios to a workbook", (
        BANK,
        value("--to", None, "the format, an Excel workbook (default: xlsx)", choices=("xlsx",)),
        value("--out", "FILE", "the workbook to write; never overwritten", Path, required=True),
        REFERENCE_FILES,
    )),
    Command("scenarios import", "scenarios:import_scenarios", "turn a workbook into scenario files", (
        argument("workbook", "WORKBOOK"),
        value("--out", "DIR", "the folder for the scenario files; nothing is overwritten", Path, required=True),
        REFERENCE_FILES,
    )),
    Command("new-scenario", "scenarios:new_scenario", "write a commented skeleton of a scenario to start from", (
        argument("scenario_id", "ID", "letters, digits, - and _", identifier),
        value("--out", "FILE", "where to write (default: ID.json here)", Path),
    )),
    Command("sources", "", "check the web addresses in an answer; keep a snapshot of pages"),
    Command("sources check", "sources:check", "check the addresses in a text", (
        argument("file", "FILE", "a text file", nargs="?"),
        value("--text", "TEXT", "the text itself, instead of a file"),
        PAGES_KNOWN,
        JSON,
    )),
    Command("sources list", "sources:list_pages", "the pages of a snapshot, and addresses of facts without one", (
        PAGES_KNOWN,
        JSON,
    )),
    Command("sources snapshot", "sources:snapshot", "read pages from the web and add them to a snapshot", (
        argument("urls", "URL", "addresses of pages", str, nargs="+"),
        value("--to", "DIR", "the folder to add pages to", Path, required=True),
        value("--timeout", "S", "seconds to wait for a server (default: 30)", amount),
    )),
    Command("models", "environment:models", "list models known by name, which are retired, and which keys are set", (
        JSON,
    )),
    Command("doctor", "environment:doctor", "check SDKs, keys (never shown), clock and disk", (
        switch("--reach", "also ask each provider whose key is set for its list of models, which costs nothing"),
        value("--out", "DIR", "where runs go", Path, RUNS),
        JSON,
    )),
    Command("plugins", "environment:plugins", "list installed adapters, scenario packs and exporters", (JSON,)),
)
# fmt: on
