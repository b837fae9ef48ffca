"""The command line: argv in, exit code out. Each command's module is imported only when that command runs, so that
`--help` is quick. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import io
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import NoReturn

from .. import __version__
from ..errors import HarnessError
from . import handlers, help_texts, options, series_options

Handler = Callable[[argparse.Namespace], int]
WIDTH = 79
"""Of descriptions, which are printed as they are; argparse wraps the rest to the terminal."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. Try: {self.prog} --help\n")


class _Commands:
    """Adds commands to a parser, each with the function that carries it out."""

    def __init__(self, parser: argparse.ArgumentParser, name: str = "command") -> None:
        self._commands = parser.add_subparsers(dest=name, required=True, metavar=name.upper(), parser_class=_Parser)

    def add(self, name: str, handler: Handler, summary: str, description: str = "") -> argparse.ArgumentParser:
        command = self._commands.add_parser(
            name,
            help=summary,
            description=description or fill(f"{summary[0].upper()}{summary[1:]}.", WIDTH),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # `--plan` must not mean `--plan-year`
        )
        command.set_defaults(handler=handler)
        return command


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="medicare-eval",
        description=help_texts.MAIN,
        epilog=help_texts.EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"medicare-eval {__version__}")
    commands = _Commands(parser)
    _add_running(commands)
    _add_checking(commands)
    _add_review(commands)
    _add_transcripts(commands)
    _add_findings(commands)
    _add_series(commands)
    _add_authoring(commands)
    _add_sources(commands)
    _add_environment(commands)
    return parser


def _add_running(commands: _Commands) -> None:
    run = commands.add("run", handlers.run, "ask targets every scenario and judge the answers", help_texts.RUN)
    options.add_study_file(run)
    options.add_questions(run)
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="show the study in full, its trials, calls and estimated cost; call nothing, write nothing",
    )
    run.add_argument(
        "--registered", type=Path, metavar="FILE", help="a pre-registration (`freeze`) that this run must match"
    )
    run.add_argument(
        "--allow-deviations",
        action="store_true",
        help="run even if the plan differs from the pre-registration; every report lists the differences",
    )
    run.add_argument(
        "--shard",
        metavar="I/K",
        help="only the I-th of K parts, with a K-th of the money, rates and calls in flight; see `merge`",
    )
    options.add_execution(run)
    demo = commands.add("demo", handlers.demo, "a complete evaluation of four fake targets, without a key or network")
    options.add_execution(demo)
    resume = commands.add(
        "resume", handlers.resume, "resume a run that was stopped or killed; no recorded call is made again"
    )
    resume.add_argument("run", type=Path, metavar="RUN", help="the run folder")
    options.add_execution(resume, new_run=False)
    rejudge = commands.add(
        "rejudge",
        handlers.rejudge,
        "judge an earlier run's transcripts again, with other judges, as a new run",
        help_texts.REJUDGE,
    )
    rejudge.add_argument("run", type=Path, metavar="RUN", help="a complete run; it is read and left as it is")
    rejudge.add_argument(
        "--keep-claims", action="store_true", help="reuse the claims too, so that verdicts compare claim by claim"
    )
    options.add_judges(rejudge)
    options.add_execution(rejudge)
    merge = commands.add("merge", handlers.merge, "join the shards of a study into one run", help_texts.MERGE)
    merge.add_argument("shard", type=Path, nargs="+", metavar="SHARD", help="the folders of all shards, in any order")
    merge.add_argument("--to", type=Path, required=True, metavar="RUN", help="the folder to write; never overwritten")
    _add_json(merge)
    freeze = commands.add("freeze", handlers.freeze, "write a pre-registration of a study", help_texts.FREEZE)
    options.add_study_file(freeze)
    options.add_questions(freeze)
    freeze.add_argument("--primary-outcome", metavar="TEXT", help="the outcome that decides the study")
    freeze.add_argument("--test", action="append", metavar="TEXT", help="a planned test; repeatable")
    freeze.add_argument("--notes", metavar="TEXT", help="anything else to register")
    freeze.add_argument("--to", type=Path, required=True, metavar="FILE", help="the file to write; never overwritten")


def _add_checking(commands: _Commands) -> None:
    verify = commands.add(
        "verify", handlers.verify, "check that a run is exactly what was written, down to every quote and evidence id"
    )
    verify.add_argument("run", type=Path, metavar="RUN")
    verify.add_argument("--expect", metavar="HASH", help="the results hash that you kept elsewhere")
    _add_json(verify)
    replay = commands.add(
        "replay", handlers.replay, "recompute a run's results from its journal, without any key, and compare bytes"
    )
    replay.add_argument("run", type=Path, metavar="RUN")
    _add_json(replay)
    check = commands.add(
        "judge-check",
        handlers.judge_check,
        "measure judge error rates on the human-labeled gold set",
        help_texts.CHECK,
    )
    check.add_argument("--split", choices=["held_out", "dev", "second", "third"], help="(default: held_out)")
    check.add_argument(
        "--only",
        choices=["end-to-end", "verifier"],
        help="measure only whole replies, or only verifiers on gold claims (default: both)",
    )
    check.add_argument("--gold", type=Path, metavar="DIR", help="a gold set of your own, in the same format")
    check.add_argument(
        "--worst", type=options.natural, default=0, metavar="N", help="show the N worst errors with both reasons"
    )
    check.add_argument(
        "--limit", type=options.positive, metavar="N", help="judge only N replies, drawn by the seed (default: all)"
    )
    check.add_argument("--resume", type=Path, metavar="DIR", help="resume a check that was stopped")
    check.add_argument("--seed", type=options.whole, metavar="N", help="seed of every random draw (default: 42)")
    check.add_argument(
        "--out", type=Path, default=Path("judge-checks"), metavar="DIR", help="where checks go (default: judge-checks)"
    )
    check.add_argument("--timeout", type=options.amount, metavar="S", help="seconds per attempt (default: 120)")
    check.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=options.NOT_GIVEN,
        metavar="P:M",
        help="a target of the run that the check is for: judges that are not named are chosen as for it; repeatable",
    )
    options.add_judges(check, repeats=False)
    options.add_limits(check)
    _add_json(check)
    check.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _add_review(commands: _Commands) -> None:
    view = commands.add("view", handlers.view, "look at runs in a browser", help_texts.VIEW)
    view.add_argument(
        "runs",
        type=Path,
        nargs="?",
        default=Path("runs"),
        metavar="RUNS",
        help="a folder of runs, a run, or a series (default: runs)",
    )
    _add_pages(view)
    review = commands.add(
        "review", handlers.review, "people judge a part of a run again, in a browser", help_texts.REVIEW
    )
    actions = ["start", "continue", "export"]
    review.add_argument("what", choices=actions, metavar=f"{{{','.join(actions)}}}")
    review.add_argument("run", type=Path, metavar="RUN", help="start: the run to review; otherwise the review")
    review.add_argument(
        "--reviewers", type=options.names, metavar="r1,r2", help="start: pseudonyms of two or more people"
    )
    review.add_argument(
        "--adjudicator", metavar="r3", help="start: who settles what they disagree about; without one it stays open"
    )
    review.add_argument("--split", action="store_true", help="start: each trial is judged by two of them, not by all")
    review.add_argument(
        "--only",
        choices=["flagged", "doubtful"],
        help="start: no sample; trials that judges or readers marked, or only those that readers marked",
    )
    review.add_argument(
        "--sample", type=options.natural, default=30, metavar="N", help="start: other trials to draw (default: 30)"
    )
    review.add_argument("--seed", type=options.whole, metavar="N", help="start: seed of the draw (default: the run's)")
    review.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="start: where the review goes (default: runs)"
    )
    review.add_argument(
        "--to", type=Path, metavar="DIR", help="export: a new folder for the gold set (default: RUN/gold)"
    )
    _add_pages(review)


def _add_transcripts(commands: _Commands) -> None:
    imported = commands.add(
        "import-transcripts",
        handlers.import_transcripts,
        "import recorded phone calls or chats, to judge them like a model's answers",
        help_texts.IMPORT_TRANSCRIPTS,
    )
    imported.add_argument("files", type=Path, nargs="+", metavar="FILE", help="transcripts, one conversation each")
    _add_script(imported, required=True)
    imported.add_argument("--kind", choices=["phone", "chat"], help="how they took place (default: by the format)")
    imported.add_argument("--caller", metavar="LABEL", help="the speaker who asks (default: recognized)")
    imported.add_argument(
        "--format",
        choices=options.TRANSCRIPT_FORMATS,
        metavar="F",
        help=f"of the files: {', '.join(options.TRANSCRIPT_FORMATS)} (default: recognized by name and contents)",
    )
    imported.add_argument(
        "--map",
        metavar="LIST",
        help="correct the alignment: Q2=7 (the caller's words no. 7 ask Q2), Q3=none (it was not asked), "
        "Q4=early:Q2 (the reply to Q2 answers it)",
    )
    imported.add_argument("--keep", type=options.numbers, metavar="N,N", help="redactions that are not personal")
    imported.add_argument("--redact", action="append", metavar="TEXT", help="redact this text too; repeatable")
    imported.add_argument(
        "--collected", type=options.day, metavar="DATE", help="when they took place, for example 2026-11-02"
    )
    collect = commands.add(
        "collect",
        handlers.collect,
        "collect a conversation with a chat app without an API, question by question",
        help_texts.COLLECT,
    )
    _add_script(collect, required=False)
    collect.add_argument(
        "--reply-file", type=Path, metavar="FILE", help="take the reply to the next question from a file, then stop"
    )
    collect.add_argument("--status", action="store_true", help="list the unfinished conversations of the folder")
    collect.add_argument(
        "--browser", action="store_true", help="ask on a page in your browser instead of in the terminal"
    )
    _add_port(collect)


def _add_script(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """What is asked, where conversations go, and how they are redacted."""
    parser.add_argument("--scenario", required=required, metavar="FILE", help="the scenario that was asked")
    parser.add_argument("--variant", metavar="ID", help="of the scenario, if it has variants")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="the folder of conversations")
    parser.add_argument(
        "--system", metavar="NAME", help="what was spoken to, for example 'SHIP counselors'; never a person"
    )
    parser.add_argument("--names", type=Path, metavar="FILE", help="names to redact, one per line")
    parser.add_argument("--by", metavar="r1", help="pseudonym of the person who checks the redactions")
    parser.add_argument(
        "--plan-year", type=options.positive, metavar="YEAR", help="of figures in questions (default: this year)"
    )
    options.add_reference_files(parser, kind=Path, default=None)
    parser.add_argument("--yes", action="store_true", help="save without asking")


def _add_pages(parser: argparse.ArgumentParser) -> None:
    """Where pages are served."""
    _add_port(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="serve on this address of the machine; one that other machines reach needs a password in "
        "MEDICARE_EVAL_PASSWORD (default: 127.0.0.1)",
    )


def _add_port(parser: argparse.ArgumentParser) -> None:
    """Of pages that only this machine reaches."""
    parser.add_argument("--port", type=options.port, metavar="N", help="port of the pages (default: a free one)")
    parser.add_argument("--no-open", dest="open", action="store_false", help="do not open a browser")


def _add_findings(commands: _Commands) -> None:
    report = commands.add(
        "report", handlers.report, "write a report: CSV, Markdown, HTML and charts", help_texts.REPORT
    )
    report.add_argument("run", type=Path, nargs="+", metavar="RUN")
    report.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/report)")
    report.add_argument(
        "--judge-check", type=Path, metavar="DIR", help="correct estimates by the error rates of this judge check"
    )
    report.add_argument(
        "--checklist",
        type=options.checklists,
        action="extend",
        metavar="NAME",
        help=f"also write a reporting checklist, prefilled: {', '.join(options.CHECKLISTS)}; repeatable",
    )
    report.add_argument(
        "--no-evidence", dest="evidence", action="store_false", help="leave out the pages with every trial in full"
    )
    compare = commands.add(
        "compare",
        handlers.compare,
        "compare targets, or two judgings of the same transcripts, trial by trial",
        help_texts.COMPARE,
    )
    compare.add_argument("run", type=Path, nargs="+", metavar="RUN")
    compare.add_argument(
        "--by", choices=["target", "judges"], default="target", help="what to compare (default: target)"
    )
    options.add_measure(compare, action="append", text="repeatable (default: all)")
    options.add_floor(compare)
    compare.add_argument(
        "--show", type=options.natural, default=20, metavar="N", help="changed claims to show (default: 20)"
    )
    _add_html(compare)
    _add_json(compare)
    drift = commands.add(
        "drift",
        handlers.drift,
        "compare two runs of the same study over time; reports drifted / no evidence / cannot tell",
        help_texts.DRIFT,
    )
    drift.add_argument("old", type=Path, metavar="OLD")
    drift.add_argument("new", type=Path, metavar="NEW")
    drift.add_argument("--frozen", type=Path, metavar="RUN", help="OLD's transcripts judged again by NEW's judges")
    options.add_floor(drift)
    drift.add_argument(
        "--show", type=options.natural, default=5, metavar="N", help="changed answers to show (default: 5)"
    )
    _add_html(drift)
    _add_json(drift)
    sensitivity = commands.add(
        "sensitivity",
        handlers.sensitivity,
        "how much scores vary with wording, voice, knobs, repeats and judges",
        help_texts.SENSITIVITY,
    )
    sensitivity.add_argument("run", type=Path, metavar="RUN")
    options.add_measure(sensitivity, default="accuracy", text="default: accuracy")
    _add_html(sensitivity)
    _add_json(sensitivity)
    _add_power(commands)
    export = commands.add("export", handlers.export, "write tidy tables with a codebook for other tools")
    export.add_argument("run", type=Path, metavar="RUN")
    export.add_argument(
        "--to", default="csv,jsonl", metavar="LIST", help="csv,parquet,jsonl,dta,sav,inspect or plugins (csv,jsonl)"
    )
    export.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/export)")


def _add_html(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also write a page; replaces only an earlier page of this program"
    )


def _add_power(commands: _Commands) -> None:
    power = commands.add(
        "power",
        handlers.power,
        "scenarios and trials needed to detect a difference, from a pilot run or an assumed spread",
        help_texts.POWER,
    )
    power.add_argument("--pilot", type=Path, metavar="RUN", help="take spread, scenarios and ICC from this run")
    power.add_argument(
        "--sd",
        type=options.amount,
        metavar="SD",
        help="standard deviation of the paired differences (instead of --pilot)",
    )
    options.add_measure(power, default="accuracy", text="of the pilot (default: accuracy)")
    power.add_argument(
        "--difference", type=options.amount, default=0.1, metavar="D", help="difference to detect (default: 0.1)"
    )
    power.add_argument(
        "--trials",
        type=options.positive,
        metavar="N",
        help="report the power achieved with N paired trials instead",
    )
    power.add_argument("--power", type=float, default=0.8, metavar="P", help="power wanted (default: 0.8)")
    power.add_argument("--alpha", type=float, default=0.05, metavar="A", help="two-sided (default: 0.05)")
    power.add_argument("--clusters", type=options.positive, metavar="N", help="scenarios (default: as in the pilot)")
    power.add_argument(
        "--icc",
        type=float,
        metavar="R",
        help="how alike differences are within a scenario, 0 to 1 (default: as in the pilot; without one, 0)",
    )


def _add_series(commands: _Commands) -> None:
    parser = commands.add(
        "series", handlers.series, "run the same study again and again, with alarms", help_texts.SERIES
    )
    actions = _Commands(parser, "action")
    for name, summary, text, add_options in series_options.ACTIONS:
        add_options(actions.add(name, handlers.series, summary, text))


def _add_authoring(commands: _Commands) -> None:
    validate = commands.add(
        "validate",
        handlers.validate,
        "check and lint scenario files; list facts not confirmed in the primary source",
    )
    validate.add_argument("scenario", nargs="+", metavar="SCENARIO", help="file, folder, glob or pack:NAME")
    validate.add_argument("--strict", action="store_true", help="house rules are errors, not warnings")
    options.add_reference_files(validate, kind=Path, default=None)
    scenarios = commands.add(
        "scenarios",
        handlers.scenarios,
        "list scenarios, facts, sources or the library; edit scenarios in a spreadsheet",
        help_texts.SCENARIOS,
    )
    actions = ["list", "facts", "sources", "library", "export", "import"]
    scenarios.add_argument("what", choices=actions, metavar=f"{{{','.join(actions)}}}")
    scenarios.add_argument(
        "scenario",
        nargs="*",
        default=[],
        metavar="SCENARIO",
        help="file, folder, glob or pack:NAME (default: the bank); for import, the workbook",
    )
    scenarios.add_argument(
        "--plan-year",
        type=options.positive,
        metavar="YEAR",
        help="of the keys (default: this year; facts and sources: all)",
    )
    scenarios.add_argument("--to", choices=["xlsx"], help="export: the format, an Excel workbook (default: xlsx)")
    scenarios.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="export: the workbook to write; import: the folder for the scenario files; nothing is overwritten",
    )
    options.add_reference_files(scenarios, kind=Path, default=None)
    _add_json(scenarios)
    new = commands.add("new-scenario", handlers.new_scenario, "write a commented skeleton of a scenario to start from")
    new.add_argument("scenario_id", type=options.identifier, metavar="ID", help="letters, digits, - and _")
    new.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: ID.json here)")


def _add_sources(commands: _Commands) -> None:
    sources = commands.add(
        "sources",
        handlers.sources,
        "check the web addresses in an answer; keep a snapshot of pages",
        help_texts.SOURCES,
    )
    actions = ["check", "list", "snapshot"]
    sources.add_argument("what", choices=actions, metavar=f"{{{','.join(actions)}}}")
    sources.add_argument(
        "given", nargs="*", default=[], metavar="FILE|URL", help="check: a text file; snapshot: addresses of pages"
    )
    sources.add_argument("--text", metavar="TEXT", help="check: the text itself, instead of a file")
    sources.add_argument(
        "--snapshot", type=Path, metavar="DIR", help="check, list: the pages to look in (default: the bundled ones)"
    )
    sources.add_argument("--to", type=Path, metavar="DIR", help="snapshot: the folder to add pages to")
    sources.add_argument(
        "--timeout", type=options.amount, metavar="S", help="snapshot: seconds to wait for a server (default: 30)"
    )
    _add_json(sources)


def _add_environment(commands: _Commands) -> None:
    models = commands.add(
        "models", handlers.models, "list models known by name, which are retired, and which keys are set"
    )
    _add_json(models)
    doctor = commands.add("doctor", handlers.doctor, "check SDKs, keys (never shown), clock and disk")
    doctor.add_argument(
        "--reach",
        action="store_true",
        help="also ask each provider whose key is set for its list of models, which costs nothing",
    )
    doctor.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where runs go (default: runs)")
    _add_json(doctor)
    plugins = commands.add(
        "plugins", handlers.plugins, "list installed adapters, scenario packs and exporters", help_texts.PLUGINS
    )
    _add_json(plugins)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Like `parse_args`, but an unknown flag leads to the help of its command."""
    parser = build_parser()
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        command = f"{parser.prog} {arguments.command}"
        parser.exit(2, f"{command}: unrecognized arguments: {' '.join(unknown)}. Try: {command} --help\n")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the rest
    arguments = _parsed(argv)
    disabled = logging.root.manager.disable
    logging.disable(logging.INFO)  # SDKs log addresses and headers where OPENAI_LOG or ANTHROPIC_LOG is set
    try:
        return int(arguments.handler(arguments))
    except HarnessError as error:
        print(f"medicare-eval: {options.origin(arguments).describe(error.problems)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception:
        import traceback

        from ..adapters.secrets import Secret

        print(Secret("").redact(traceback.format_exc()), end="", file=sys.stderr)
        return 1
    finally:
        logging.disable(disabled)


if __name__ == "__main__":
    raise SystemExit(main())
