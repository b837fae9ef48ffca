"""The options of `series` and its parts."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..scoring.definitions import MEASURES, SHARES
from . import help_texts, options

CADENCES = ("day", "week", "month", "quarter")


def add_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", type=Path, metavar="SERIES", help="a new folder for the series")
    options.add_study_file(parser)
    parser.add_argument("--every", choices=CADENCES, default="month", help="how often a point is made (default: month)")
    parser.add_argument(
        "--outcome",
        dest="outcomes",
        action="append",
        choices=tuple(MEASURES),
        metavar="NAME",
        help=f"a primary outcome: {', '.join(MEASURES)}; repeatable (default: {', '.join(SHARES)})",
    )
    parser.add_argument(
        "--floor",
        type=options.amount,
        default=0.05,
        metavar="D",
        help="the smallest change that matters (default: 0.05)",
    )
    parser.add_argument(
        "--alpha",
        type=options.amount,
        default=0.05,
        metavar="A",
        help="share of unchanged series that may have a false alarm, over all targets and outcomes (default: 0.05)",
    )
    parser.add_argument(
        "--points",
        type=options.positive,
        default=24,
        metavar="N",
        help="points that the thresholds are made for (default: 24)",
    )
    parser.add_argument(
        "--anchors",
        type=options.natural,
        default=40,
        metavar="N",
        help="labeled replies that the judges label again at every point; 0: none (default: 40)",
    )
    parser.add_argument(
        "--gold", type=Path, metavar="DIR", help="other labels for that, such as people's (`review export`)"
    )
    parser.add_argument("--title", metavar="TEXT", help="what the series is called (default: the study's title)")
    parser.add_argument("--baseline", type=Path, metavar="RUN", help="a finished run of the study: the first point")
    options.add_questions(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_run(parser: argparse.ArgumentParser) -> None:
    _add_series(parser)
    parser.add_argument(
        "--max-cost",
        type=options.amount,
        required=True,
        metavar="USD",
        help="stop before the calls of this point could cost more",
    )
    parser.add_argument(
        "--end", action="append", default=[], metavar="P:M", help="end the line of this target here; repeatable"
    )
    parser.add_argument(
        "--judge-again",
        action="store_true",
        help="the judges changed on purpose: judge all earlier transcripts again, as a new segment",
    )
    parser.add_argument(
        "--set-aside",
        action="store_true",
        help="begin an unfinished point again; what it called is kept in a folder of another name",
    )
    options.add_judges(parser, repeats=False)
    options.add_carrying_out(parser)
    _add_outputs(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def add_add(parser: argparse.ArgumentParser) -> None:
    _add_series(parser)
    parser.add_argument("run", type=Path, metavar="RUN", help="a finished run of the study; it stays where it is")
    parser.add_argument("--check", type=Path, metavar="DIR", help="a judge check of its judges, made at the same time")
    parser.add_argument(
        "--frozen", type=Path, metavar="RUN", help="the segment's first transcripts, judged again (`rejudge`)"
    )
    parser.add_argument(
        "--date", type=options.day, metavar="DATE", help="the date it stands for (default: when it was started)"
    )
    _add_outputs(parser)


def add_status(parser: argparse.ArgumentParser) -> None:
    _add_series(parser)
    _add_outputs(parser)


def add_plot(parser: argparse.ArgumentParser) -> None:
    _add_series(parser)
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the page to write (default: series.html in the series)"
    )


def _add_series(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", type=Path, metavar="SERIES", help="the folder of the series")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the verdicts as JUnit XML, for CI")
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="write a Markdown summary that a bot can post as one issue"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page with the charts")


ACTIONS = (
    ("init", "freeze a study and compute the thresholds of its alarms", help_texts.SERIES_INIT, add_init),
    ("run", "make the point of the present period", help_texts.SERIES_RUN, add_run),
    ("add", "add a run that was made elsewhere", help_texts.SERIES_ADD, add_add),
    ("status", "what the series says: alarms, claims, judges, events", help_texts.SERIES_STATUS, add_status),
    ("plot", "write a page: charts, events, and what got better and worse", "", add_plot),
)
