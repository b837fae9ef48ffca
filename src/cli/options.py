"""Groups of command-line options that several commands share."""

from __future__ import annotations

import argparse
import re
from datetime import date
from pathlib import Path
from typing import Any

from ..errors import Origin
from ..scoring.definitions import MEASURES

CHECKLISTS = ("chart", "tripod-llm", "mi-clear-llm", "all")
TRANSCRIPT_FORMATS = ("text", "csv", "whisper", "aws", "vtt", "srt", "docx", "chat")
NOT_GIVEN: Any = argparse.SUPPRESS
"""The default of every option that a study file can also set: absent unless the user typed it."""
FLAGS = {
    "scenarios": "--scenario",
    "targets": "--target",
    "judges": "--judge-model",
    "verifiers": "--judges",
    "adjudicator": "--adjudicator-model",
    "reader": "--reader-model",
    "judge_repeats": "--judge-repeats",
    "judge_sample": "--judge-sample",
    "judge_max_tokens": "--judge-max-tokens",
    "isolation": "--isolation",
    "allow_retired": "--allow-retired",
    "repeats": "--repeats",
    "seed": "--seed",
    "temperature": "--temperature",
    "max_tokens": "--max-tokens",
    "plan_year": "--plan-year",
    "allow_expired": "--allow-expired",
    "strict": "--strict",
    "variants": "--variant",
    "paraphrase": "--paraphrase",
    "questioner": "--questioner-model",
    "wording": "--wording",
    "facts": "--facts",
    "invented_plans": "--invented-plans",
    "sources": "--sources",
    "max_attempts": "--max-attempts",
    "timeout": "--timeout",
    "out": "--out",
    "concurrency": "--concurrency",
    "calls_in_flight": "--in-flight",
    "max_outage": "--max-outage",
    "no_probe": "--no-probe",
    "batch": "--batch",
    "batch_wait": "--batch-wait",
    "max_cost": "--max-cost",
    "prices": "--prices",
    "requests_per_minute": "--rpm",
    "tokens_per_minute": "--tpm",
    "processes": "--processes",
    "engine": "--engine",
    "ray_address": "--ray-address",
}
"""Field of a study to the flag that sets it."""
OTHER_FLAGS = {
    "registration.primary_outcome": "--primary-outcome",
    "registration.tests": "--test",
    "registration.notes": "--notes",
    "registered": "--registered",
    "allow_deviations": "--allow-deviations",
    "to": "--to",
    "pilot": "--pilot",
    "sd": "--sd",
    "frozen": "--frozen",
    "gold": "--gold",
    "host": "--host",
    "port": "--port",
    "reviewers": "--reviewers",
    "keep_claims": "--keep-claims",
    "shard": "--shard",
    "floor": "--floor",
    "outcomes": "--outcome",
    "day": "--date",
    "anchors": "--anchors",
    "title": "--title",
    "alpha": "--alpha",
    "points": "--points",
    "baseline": "--baseline",
    "end": "--end",
    "judge_again": "--judge-again",
    "set_aside": "--set-aside",
    "check": "--check",
}
"""What else errors speak of that a flag sets."""


def given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The fields of a study that the user set by flags."""
    found = {name: value for name, value in vars(arguments).items() if name in FLAGS and value is not None}
    for name in ("requests_per_minute", "tokens_per_minute"):
        if name in found:
            found[name] = dict(found[name])
    return found


def origin(arguments: argparse.Namespace) -> Origin:
    """Where the fields of a study come from, so that an error names the file or the flag."""
    settings = vars(arguments)
    file = settings.get("study") or settings.get("registered")
    registration = {"registration"} if any(map(settings.get, ("primary_outcome", "test", "notes"))) else set()
    return Origin(file=str(file or ""), changed=given(arguments).keys() | registration, flags={**FLAGS, **OTHER_FLAGS})


def positive(text: str) -> int:
    return _at_least(1, text)


def port(text: str) -> int:
    number = _at_least(1, text)
    if number > 65_535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return number


def checklists(text: str) -> list[str]:
    """Names of checklists, with commas between them."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in CHECKLISTS:
            raise argparse.ArgumentTypeError(f"{name!r} is not a checklist. Choose from {', '.join(CHECKLISTS)}")
    return names


def natural(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    value = whole(text)
    if value < least:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least {least}")
    return value


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def rate(text: str) -> tuple[str, int]:
    provider, _, number = text.partition("=")
    if not provider or not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not PROVIDER=NUMBER, for example openai=500")
    return provider, int(number)


def in_flight(text: str) -> tuple[str, int]:
    try:
        return rate(text if "=" in text else f"*={text}")
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not N or PROVIDER=N, for example 64 or openai=64") from None


class InFlight(argparse.Action):
    """Collects numbers by provider; `*` is every provider that is not named."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        provider, number = values
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), provider: number})


def identifier(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an id: use letters, digits, - and _")
    return text


def add_study_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", type=Path, nargs="?", metavar="STUDY", help="a study file (TOML); flags override it")


def add_questions(parser: argparse.ArgumentParser) -> None:
    """What is asked, of whom, and by which key."""
    parser.add_argument(
        "--scenario",
        dest="scenarios",
        action="append",
        default=NOT_GIVEN,
        metavar="PATH",
        help="file, folder, glob or pack:NAME; repeatable",
    )
    parser.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=NOT_GIVEN,
        metavar="P:M",
        help="provider:model, with settings if wanted (P:M,search,effort=low,system=FILE); repeatable",
    )
    add_judges(parser)
    _add(parser, "--seed", whole, "N", "seed of every random draw in the run (default: 42)")
    _add(parser, "--repeats", whole, "N", "trials per scenario and target (default: 1)")
    _add_switch(parser, "--paraphrase", "let a model reword the questions of scenarios that allow it")
    _add(parser, "--questioner-model", str, "P:M", "the model that rewords, with --paraphrase", dest="questioner")
    _add(parser, "--max-tokens", whole, "N", "longest target reply (default: 2048)")
    _add(parser, "--temperature", float, "T", "temperature of targets, 0 to 2 (default: 0)")
    _add(parser, "--max-attempts", whole, "N", "attempts per call (default: 5)")
    _add(parser, "--timeout", float, "S", "seconds per attempt (default: 120)")
    _add(parser, "--plan-year", whole, "YEAR", "Medicare plan year to fill answer keys for (default: this year)")
    _add_switch(parser, "--allow-expired", "use answer keys outside their dates; every report says so")
    _add_switch(parser, "--strict", "refuse scenarios that break a house rule (see `validate`)")
    parser.add_argument(
        "--variant",
        dest="variants",
        action="append",
        default=NOT_GIVEN,
        metavar="NAME",
        help="only this variant of a scenario; repeatable",
    )
    _add(parser, "--wording", str, "FILE", "JSON file of other words for some turns; reports name the file")
    _add(parser, "--sources", str, "DIR", "folder of pages to check citations against (see `sources snapshot`)")
    add_reference_files(parser)


def add_reference_files(parser: argparse.ArgumentParser, *, kind: type = str, default: Any = NOT_GIVEN) -> None:
    parser.add_argument(
        "--facts",
        type=kind,
        default=default,
        metavar="FILE",
        help="JSON file of plan-year figures; adds to or overrides the bundled ones",
    )
    parser.add_argument(
        "--invented-plans",
        type=kind,
        default=default,
        metavar="FILE",
        help="JSON file of invented insurance plans, doctors and places to use instead of the bundled one",
    )


def numbers(text: str) -> list[int]:
    """`2,5` -> the two."""
    return [_at_least(1, one.strip()) for one in text.split(",")]


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it as 2026-01-31") from None


def names(text: str) -> list[str]:
    """`r1,r2` -> the two."""
    found = [one.strip() for one in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names, for example r1,r2")
    return found


def add_judges(parser: argparse.ArgumentParser, *, repeats: bool = True) -> None:
    """Who judges and how; `repeats` adds the options that measure judges' noise."""
    _add(parser, "--judges", whole, "N", "number of verifiers, at least 2 (default: 2)", dest="verifiers")
    parser.add_argument(
        "--judge-model",
        dest="judges",
        action="append",
        default=NOT_GIVEN,
        metavar="P:M",
        help="repeatable; verifiers cycle through them",
    )
    _add(
        parser,
        "--adjudicator-model",
        str,
        "P:M",
        "settles ties; never of a verifier's family; `none` leaves them open for a person (default: a third family, "
        "else none)",
        dest="adjudicator",
    )
    _add(
        parser,
        "--reader-model",
        str,
        "P:M",
        "splits replies into claims and reads their tone (default: the first judge that is no person)",
        dest="reader",
    )
    if repeats:
        noise = "re-judge a sample of trials K more times to measure judge noise (default: 0)"
        _add(parser, "--judge-repeats", whole, "K", noise)
        sample = "fraction of trials to re-judge with --judge-repeats (default: 0.25)"
        _add(parser, "--judge-sample", float, "FRACTION", sample)
    _add(parser, "--judge-max-tokens", whole, "N", "longest answer of a judge (default: 16000)")
    parser.add_argument(
        "--isolation",
        choices=("claim", "flagged", "reply"),
        default=NOT_GIVEN,
        help="claims per verifier call: one; one for replies the screen marks and an audit sample; or all of a reply "
        "(default: flagged)",
    )
    _add_switch(parser, "--allow-retired", "allow models their provider has retired")


def add_execution(parser: argparse.ArgumentParser, *, new_run: bool = True) -> None:
    """How a run is carried out."""
    if new_run:
        _add(parser, "--out", str, "DIR", "where the run folder goes (default: runs)")
    _add_concurrency(parser)
    _add(parser, "--max-cost", amount, "USD", "stop before the run's calls could cost more")
    if new_run:
        _add(parser, "--prices", str, "FILE", "JSON price table; adds to or overrides the built-in prices")
    add_limits(parser)
    _add_engine(parser)
    parser.add_argument("--json", action="store_true", help="print the summary as JSON on stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_carrying_out(parser: argparse.ArgumentParser) -> None:
    """How the runs of a series are carried out."""
    _add_concurrency(parser)
    add_limits(parser)
    _add_engine(parser)


def _add_concurrency(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--concurrency", whole, "N", "trials at a time (default: 8, or as many as calls in flight)")


def _add_engine(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--processes", whole, "N", "processes at a time (default: 1; with Ray, one for each of its CPUs)")
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        default=NOT_GIVEN,
        help="where the processes run: on this machine, or on a Ray cluster (default: local)",
    )
    _add(parser, "--ray-address", str, "A", "the Ray cluster (default: RAY_ADDRESS, or a new one on this machine)")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """How many calls at a time and per minute, and how long an outage may last."""
    parser.add_argument(
        "--in-flight",
        dest="calls_in_flight",
        type=in_flight,
        action=InFlight,
        default=NOT_GIVEN,
        metavar="[P=]N",
        help="calls at a time, for each provider or for one, for example 64 or openai=64; repeatable "
        "(default: eight for every trial)",
    )
    _add(
        parser,
        "--max-outage",
        amount,
        "S",
        "seconds that a model may give no answer before the run stops; until then its calls wait (default: 1800)",
    )
    _add_switch(parser, "--no-probe", "do not ask every model for a word before the first trial")
    parser.add_argument(
        "--batch",
        choices=("judges", "none"),
        default=NOT_GIVEN,
        help="send judges' calls in batches, which cost less and take up to a day (default: none, or as the run began)",
    )
    wait = "minutes to wait for batches before the run stops, to be resumed later (default: until they end)"
    _add(parser, "--batch-wait", float, "MIN", wait)
    for flag, dest, example in (("--rpm", "requests_per_minute", 500), ("--tpm", "tokens_per_minute", 200_000)):
        parser.add_argument(
            flag,
            dest=dest,
            type=rate,
            action="append",
            default=NOT_GIVEN,
            metavar="P=N",
            help=f"{dest.replace('_', ' ')} for a provider, for example openai={example}; repeatable",
        )


def add_measure(parser: argparse.ArgumentParser, *, text: str, **how: Any) -> None:
    known = f"{', '.join(MEASURES)}; {text}"
    parser.add_argument("--measure", choices=MEASURES, metavar="NAME", help=known, **how)


def add_floor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--floor",
        type=amount,
        default=0.05,
        metavar="D",
        help="the smallest difference that matters (default: 0.05)",
    )


def _add(
    parser: argparse.ArgumentParser, flag: str, kind: Any, metavar: str, text: str, *, dest: str | None = None
) -> None:
    parser.add_argument(flag, dest=dest, type=kind, default=NOT_GIVEN, metavar=metavar, help=text)


def _add_switch(parser: argparse.ArgumentParser, flag: str, text: str) -> None:
    parser.add_argument(flag, action="store_true", default=NOT_GIVEN, help=text)
