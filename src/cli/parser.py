"""The command line: argv in, exit code out. Heavy modules are imported by the command that needs them, so that
`--help` is quick. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import io
import logging
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .. import __version__
from ..errors import HarnessError

if TYPE_CHECKING:
    pass

DESCRIPTION = """\
Asks AI systems the Medicare questions a mystery shopper would ask, and judges the answers only against a
written, dated answer key. Every figure leads back to a quote, a fact, a source and the raw bytes.

  medicare-eval demo                                   a complete evaluation, without key or network
  medicare-eval run --scenario scenarios/v1 --target openai:gpt-4.1 --judges 2 --seed 42
  medicare-eval replay runs/20260101T120000Z           compute a run's results again, without any key
"""
EXIT_CODES = """\
exit codes:
  0 ok   2 usage or bad input   3 configuration or key   4 incomplete, `resume` goes on
  5 integrity   6 storage (disk full, read-only, run in use)   130 stopped at once by a second Ctrl-C
  `drift` also: 7 drifted   8 cannot tell
"""
RUN_HELP = """\
Put scenarios to targets and judge the answers. Every call is journaled before it is used, so a run that
is stopped or killed goes on with `resume` and nothing is paid for twice.

  medicare-eval run --scenario scenarios/v1/scenario_001.json --target openai:gpt-4.1 --judges 2 --seed 42
  medicare-eval run --scenario scenarios/v1 --target fake:careful --target fake:wrong
  medicare-eval run --scenario 'scenarios/**/*.json' --target anthropic:claude-sonnet-4-6 \\
      --judge-model openai:gpt-5.5-2026-04-23 --judge-model google:gemini-3.8-flash --repeats 5

Without --judge-model, fake: targets are judged by offline:rules (for trying out, not for findings), and real
targets by the default judges of other makers whose keys are set, in the order anthropic, openai, google, xai:
two makers if there are two. A judge is never of the target's family.
"""


CHECK_HELP = """\
Measure judges on the gold set that ships with the project: replies whose claims people have labeled, each label with
its reason. The held-out part was used neither for writing prompts nor for the offline judge. Writes a record that
`report --judge-check` uses to correct estimates for the judges' error.

  medicare-eval judge-check --judge-model offline:rules --worst 20
  medicare-eval judge-check --judge-model anthropic:claude-sonnet-4-6 --judge-model openai:gpt-5.5-2026-04-23
"""
MEASURES = ("accuracy", "completeness", "safety_risk", "calibration", "accurate_complete", "incorrect")
REPORT_HELP = """\
Write a report: CSV by scenario, question and code, Markdown, a self-contained HTML page, charts as SVG.

  medicare-eval report runs/20260101T120000Z
  medicare-eval report runs/A runs/B --judge-check judge-checks/20260101T130000Z --checklist chart
"""
COMPARE_HELP = """\
Compare systems on the same trials: paired by scenario, variant and repetition, intervals and tests by scenario.
Given two runs of which one judged the other's transcripts again, compares the judges claim by claim.

  medicare-eval compare runs/A                       the targets of one run
  medicare-eval compare runs/A runs/B                targets of several runs, or two judgings
"""
DRIFT_HELP = """\
What changed between two runs of the same study: as fact first (served model, parameters, prompts, key), then in the
answers. Exit code 0: no evidence of drift; 7: drifted; 8: cannot tell.

  medicare-eval rejudge runs/OLD --judge-model ... --keep-claims      checks the judges on frozen transcripts
  medicare-eval drift runs/OLD runs/NEW --frozen runs/REJUDGED
"""
FREEZE_HELP = """\
Write down what will be run before it is run: hashes of scenarios, keys and prompts, models, parameters, n, the
primary outcome and the tests. `run --plan FILE` then refuses anything else, or names each deviation in every report.

  medicare-eval freeze --scenario scenarios/v1/study --target openai:gpt-4.1 --repeats 10 \\
      --primary-outcome "share of accurate and complete answers" --to study.json
"""
REJUDGE_HELP = """\
Judge an earlier run's transcripts again. The target is not called: its replies come from the earlier journal and
are copied into the new run, which can be verified and replayed on its own. The earlier run is left as it is.

  medicare-eval rejudge runs/20260101T120000Z --judge-model anthropic:claude-sonnet-4-6 --keep-claims
  medicare-eval compare runs/20260101T120000Z runs/20260102T090000Z     which claims changed, and why
"""
SCENARIOS_HELP = """\
What the bank holds.

  medicare-eval scenarios list       themes, variants, question groups, plan years, facts and their status
  medicare-eval scenarios facts      every fact with its dates and how it was confirmed
  medicare-eval scenarios sources    every source address, with the facts that rest on it
"""


MODULES = dict.fromkeys(("compare", "drift", "export", "power", "report", "sensitivity"), "analyze")
"""Commands by the module that holds them, where it is not `commands`: each is imported only when it is used."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. Try: {self.prog} --help\n")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _amount(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value


def _a_minute(text: str) -> tuple[str, int]:
    provider, _, number = text.partition("=")
    return provider, _positive(number)


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value < 2**63:
        raise ValueError
    return value


def _ident(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise ValueError
    return text


_ident.__name__ = "id (letters, digits, - and _)"
_positive.__name__ = "whole number above 0"
_seed.__name__ = "whole number from 0"
_amount.__name__ = "number above 0"
_a_minute.__name__ = "PROVIDER=NUMBER"


def build_parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="medicare-eval", description=DESCRIPTION, epilog=EXIT_CODES, formatter_class=formatter)
    parser.add_argument("--version", action="version", version=f"medicare-eval {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def add(name: str, help_: str, description: str | None = None) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help_, description=description or help_, formatter_class=formatter)

    _add_run(add("run", "put scenarios to targets and judge the answers", RUN_HELP))
    demo = add("demo", "a complete evaluation of four fake targets, without key or network")
    _add_execution(demo)
    _add_rejudge(
        add("rejudge", "judge an earlier run's transcripts again, with other judges, as a new run", REJUDGE_HELP)
    )
    _add_check(add("judge-check", "measure judges on the gold set: their errors, with intervals", CHECK_HELP))
    resume = add("resume", "go on with a run that was stopped or killed; recorded calls are not made again")
    resume.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    _add_execution(resume, out=False)
    verify = add("verify", "check that a run is exactly what was written, down to every quote and evidence id")
    verify.add_argument("run", type=Path, metavar="RUN")
    verify.add_argument("--expect", metavar="HEAD", help="head hash kept elsewhere that the results must end in")
    verify.add_argument("--json", action="store_true", help="print the finding as JSON")
    replay = add("replay", "compute a run's results again from its journal, without any adapter, and compare bytes")
    replay.add_argument("run", type=Path, metavar="RUN")
    _add_authoring(add)
    models = add("models", "the models known by name, which are retired, and which keys are set")
    models.add_argument("--json", action="store_true", help="print the table as JSON")
    doctor = add("doctor", "check SDKs, keys (never shown), clock and disk")
    doctor.add_argument("--reach", action="store_true", help="also ask each provider with a key, without the key")
    doctor.add_argument("--out", type=Path, default=Path("runs"), metavar="DIR", help="where runs go (default: runs)")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    _add_findings(add)
    return parser


def _add_judges(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--judges", type=int, default=2, metavar="N", help="verifiers, at least 2 (default: 2)")
    parser.add_argument(
        "--judge-model", action="append", default=[], metavar="P:M", help="repeatable; judges cycle through them"
    )
    parser.add_argument(
        "--adjudicator-model", metavar="P:M", help="settles ties (default: a third maker, else the first judge)"
    )
    parser.add_argument(
        "--judge-repeats", type=int, default=0, metavar="K", help="judge a sample K times more: the judges' noise"
    )
    parser.add_argument("--judge-sample", type=float, default=0.25, metavar="S", help="share of trials in it (0.25)")
    parser.add_argument("--allow-retired", action="store_true", help="call a retired model all the same")


def _add_rejudge(rejudge: argparse.ArgumentParser) -> None:
    rejudge.add_argument("run", type=Path, metavar="RUN", help="a complete run; it is read and left as it is")
    rejudge.add_argument(
        "--keep-claims", action="store_true", help="take the claims over too, so that verdicts compare claim by claim"
    )
    _add_judges(rejudge)
    _add_execution(rejudge)


def _add_findings(add: Callable[..., argparse.ArgumentParser]) -> None:
    report = add("report", "write a run's report: CSV, Markdown, HTML and charts", REPORT_HELP)
    report.add_argument("run", type=Path, nargs="+", metavar="RUN")
    report.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/report)")
    report.add_argument("--judge-check", type=Path, metavar="DIR", help="correct estimates by this check of the judges")
    report.add_argument("--checklist", choices=["chart"], help="also write a reporting checklist, prefilled")
    compare = add("compare", "compare targets, or two judgings of the same transcripts, trial by trial", COMPARE_HELP)
    compare.add_argument("run", type=Path, nargs="+", metavar="RUN")
    compare.add_argument("--by", choices=["target", "judges"], default="target", help="what is compared (target)")
    compare.add_argument("--measure", action="append", choices=MEASURES, help="repeatable (default: all)")
    _add_floor(compare)
    compare.add_argument("--show", type=int, default=20, metavar="N", help="changed claims to show (default: 20)")
    drift = add("drift", "what changed between two runs of the same study, and whether one can tell", DRIFT_HELP)
    drift.add_argument("old", type=Path, metavar="OLD")
    drift.add_argument("new", type=Path, metavar="NEW")
    drift.add_argument("--frozen", type=Path, metavar="RUN", help="OLD's transcripts judged again by NEW's judges")
    _add_floor(drift)
    drift.add_argument("--show", type=int, default=5, metavar="N", help="changed answers to show (default: 5)")
    sensitivity = add("sensitivity", "how far results hang on wording, voice, knobs, repeats and judges")
    sensitivity.add_argument("run", type=Path, metavar="RUN")
    sensitivity.add_argument("--measure", choices=MEASURES, default="accuracy", help="(default: accuracy)")
    power = add("power", "trials needed to show a difference, from a pilot run or assumed values")
    power.add_argument("--pilot", type=Path, metavar="RUN", help="take the spread from this run")
    power.add_argument("--sd", type=_amount, metavar="SD", help="or assume it: of paired differences")
    power.add_argument("--measure", choices=MEASURES, default="accuracy", help="of the pilot (default: accuracy)")
    power.add_argument("--difference", type=_amount, default=0.1, metavar="D", help="to be shown (default: 0.1)")
    power.add_argument("--trials", type=_positive, metavar="N", help="power of so many pairs instead")
    power.add_argument("--power", type=float, default=0.8, metavar="P", help="wanted (default: 0.8)")
    power.add_argument("--alpha", type=float, default=0.05, metavar="A", help="two-sided (default: 0.05)")
    power.add_argument("--clusters", type=_positive, metavar="N", help="scenarios the trials are spread over")
    power.add_argument("--icc", type=float, default=0.0, metavar="R", help="correlation within a scenario (0)")
    export = add("export", "write tidy tables with a codebook for other tools")
    export.add_argument("run", type=Path, metavar="RUN")
    export.add_argument("--to", default="csv,jsonl", metavar="LIST", help="csv,parquet,jsonl,dta,sav,inspect")
    export.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: RUN/export)")
    for parser in (compare, drift, sensitivity):
        parser.add_argument("--json", action="store_true", help="print as JSON")
    freeze = add(
        "freeze", "write a pre-registration of a run: what, with what, how often, and which tests", FREEZE_HELP
    )
    _add_plan(freeze)
    freeze.add_argument("--primary-outcome", required=True, metavar="TEXT", help="what the study is decided by")
    freeze.add_argument("--test", action="append", default=[], metavar="TEXT", help="a planned test; repeatable")
    freeze.add_argument("--notes", default="", metavar="TEXT")
    freeze.add_argument("--to", type=Path, required=True, metavar="FILE", help="where to write; never overwritten")


def _add_floor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--floor", type=_amount, default=0.05, metavar="D", help="the least difference that matters (default: 0.05)"
    )


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument("--split", choices=["held_out", "dev"], default="held_out", help="part of it (held_out)")
    check.add_argument("--gold", type=Path, metavar="DIR", help="a gold set of your own, in the same format")
    check.add_argument("--worst", type=int, default=0, metavar="N", help="show the N worst errors with both reasons")
    check.add_argument("--resume", type=Path, metavar="DIR", help="go on with a check that was stopped")
    check.add_argument("--seed", type=_seed, default=42, metavar="N", help="order of claims and judges' seeds (42)")
    check.add_argument(
        "--out", type=Path, default=Path("judge-checks"), metavar="DIR", help="where checks go (default: judge-checks)"
    )
    check.add_argument("--judges", type=int, default=1, metavar="N", help="verifiers; 2 or more also form a panel")
    check.add_argument("--judge-model", action="append", default=[], metavar="P:M", help="repeatable (offline:rules)")
    check.add_argument("--adjudicator-model", metavar="P:M", help="settles the panel's ties (default: the last judge)")
    check.add_argument("--allow-retired", action="store_true", help="call a retired model all the same")
    _add_rates(check)
    check.add_argument("--json", action="store_true", help="print the record as JSON on stdout")
    check.add_argument("--quiet", action="store_true", help="no progress on stderr")


def _add_rates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rpm", type=_a_minute, action="append", default=[], metavar="P=N", help="requests a minute; repeatable"
    )
    parser.add_argument(
        "--tpm", type=_a_minute, action="append", default=[], metavar="P=N", help="tokens a minute; repeatable"
    )


def _add_authoring(add: Callable[..., argparse.ArgumentParser]) -> None:
    validate = add("validate", "check scenario files, and lint them; lists facts not read in the source itself")
    validate.add_argument("scenario", nargs="+", metavar="SCENARIO", help="file, folder or glob")
    validate.add_argument("--facts", type=Path, metavar="FILE", help="figures of a plan year to add or put for ours")
    validate.add_argument("--plan-file", type=Path, metavar="FILE", help="plans, doctors and places to put for ours")
    scenarios = add("scenarios", "what the bank holds: list it, its facts, or its sources", SCENARIOS_HELP)
    scenarios.add_argument("what", choices=["list", "facts", "sources"])
    scenarios.add_argument("scenario", nargs="*", metavar="SCENARIO", help="file, folder or glob (default: the bank)")
    scenarios.add_argument("--plan-year", type=_positive, metavar="YEAR", help="of facts and sources (default: all)")
    scenarios.add_argument("--json", action="store_true", help="print as JSON")
    new = add("new-scenario", "write a commented skeleton of a scenario to start from")
    new.add_argument("scenario_id", type=_ident, metavar="ID", help="letters, digits, - and _")
    new.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: ID.json here)")


def _add_run(run: argparse.ArgumentParser) -> None:
    _add_plan(run)
    run.add_argument(
        "--dry-run", action="store_true", help="show the plan, its trials and calls; make no call, write nothing"
    )
    run.add_argument("--plan", type=Path, metavar="FILE", help="a pre-registration (`freeze`) that this run must match")
    run.add_argument("--allow-deviations", action="store_true", help="run all the same; every report names each one")
    _add_execution(run)


def _add_plan(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--scenario", action="append", required=True, metavar="PATH", help="file, folder or glob; repeatable"
    )
    run.add_argument("--target", action="append", required=True, metavar="P:M", help="provider:model; repeatable")
    _add_judges(run)
    run.add_argument("--seed", type=_seed, default=42, metavar="N", help="decides every draw of the run (default: 42)")
    run.add_argument(
        "--repeats", type=_positive, default=1, metavar="N", help="trials of each scenario and target (default: 1)"
    )
    run.add_argument(
        "--paraphrase", action="store_true", help="let a model reword the questions where the scenario allows it"
    )
    run.add_argument("--questioner-model", metavar="P:M", help="the model that rewords, with --paraphrase")
    run.add_argument(
        "--max-tokens", type=_positive, default=2048, metavar="N", help="longest target reply (default: 2048)"
    )
    run.add_argument("--temperature", type=float, default=0.0, metavar="T", help="of the target, 0 to 2 (default: 0)")
    run.add_argument("--max-attempts", type=_positive, default=5, metavar="N", help="tries at a call (default: 5)")
    run.add_argument("--timeout", type=_amount, default=120.0, metavar="S", help="seconds an attempt may take (120)")
    run.add_argument(
        "--plan-year", type=_positive, metavar="YEAR", help="whose figures the keys hold (default: this year)"
    )
    run.add_argument(
        "--allow-expired", action="store_true", help="use a key outside its dates; every report will say so"
    )
    run.add_argument(
        "--variant", action="append", default=[], metavar="NAME", help="only this variant of a scenario; repeatable"
    )
    run.add_argument("--wording", type=Path, metavar="FILE", help="other words for some turns; reports name the file")
    run.add_argument("--facts", type=Path, metavar="FILE", help="figures of a plan year to add or put for ours")
    run.add_argument("--plan-file", type=Path, metavar="FILE", help="plans, doctors and places to put for ours")


def _add_execution(parser: argparse.ArgumentParser, *, out: bool = True) -> None:
    if out:
        parser.add_argument(
            "--out", type=Path, default=Path("runs"), metavar="DIR", help="where runs go (default: runs)"
        )
    parser.add_argument("--concurrency", type=_positive, default=8, metavar="N", help="trials at once (default: 8)")
    parser.add_argument("--max-cost", type=_amount, metavar="USD", help="stop before the run's calls could cost more")
    if out:
        parser.add_argument("--prices", type=Path, metavar="FILE", help="prices to add to or put for the built-in ones")
    _add_rates(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the rest
    arguments = build_parser().parse_args(argv)
    module = import_module(f".{MODULES.get(arguments.command, 'run')}", __package__)
    silenced = logging.root.manager.disable
    logging.disable(logging.INFO)  # SDKs log addresses and headers where OPENAI_LOG or ANTHROPIC_LOG is set
    try:
        return int(getattr(module, arguments.command.replace("-", "_"))(arguments))
    except HarnessError as error:
        print(f"medicare-eval: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception:
        from ..adapters.http import Secret

        print(Secret("").redact(traceback.format_exc()), end="", file=sys.stderr)
        return 1
    finally:
        logging.disable(silenced)


if __name__ == "__main__":
    raise SystemExit(main())
