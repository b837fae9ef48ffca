"""A report as files. All of it is derived, so it is made again each time; the same findings give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from ... import storage
from ..analysis.judge_agreement import Judging
from ..analysis.read_run import Findings
from .charts import renderer, svg
from .csv import table_csv, write_codes
from .html import html
from .markdown import markdown
from .sections import contents
from .series import runs_of

CHARTS = "charts"


def write_report(findings: Sequence[Findings], judging: Sequence[Judging | None], out: Path) -> list[Path]:
    """CSV by scenario, question and code, the report as Markdown and HTML, and its charts. Returns what was written."""
    made = contents(findings, judging)
    written: list[Path] = []

    def put(name: str, data: bytes) -> None:
        (out / name).write_bytes(data)
        written.append(out / name)

    def stream(name: str, write: Callable[[TextIO], None]) -> None:
        with (out / name).open("w", encoding="utf-8", newline="") as file:
            write(file)
        written.append(out / name)

    try:
        (out / CHARTS).mkdir(parents=True, exist_ok=True)
        put("per_scenario.csv", table_csv(made.per_scenario).encode())
        put("per_question.csv", table_csv(made.per_question).encode())
        stream("codes.csv", lambda file: write_codes(runs_of(findings, judging), file))
        put("report.md", markdown(made).encode())
        put("report.html", html(made).encode())
        drawings = made.charts()
        to_png = renderer() if drawings else None
        for chart in drawings:
            drawn = svg(chart, alone=True)
            put(f"{CHARTS}/{chart.name}.svg", drawn.encode())
            if to_png:
                put(f"{CHARTS}/{chart.name}.png", to_png(drawn))
    except OSError as error:
        raise storage.storage_error(out, error) from None
    return written
