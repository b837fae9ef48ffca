"""Templates: the only module that opens one. They are in `templates/`, in a folder for each kind.

- `html`: pages. What is put in loses control and direction characters and is escaped.
- `text`: Markdown files. What is put in becomes text without markup.
- `sections`: parts of a report, written much like Markdown, that become the document which Markdown, HTML and the
  terminal are made from. `read_sections.py` reads them: what is put in stays a cell, so text of others is never ours.

A name that a template uses and no one gives is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from jinja2.compiler import CodeGenerator, Frame
from jinja2.nodes import Expr
from markupsafe import Markup, escape

from ..text.escape import inert, plain, plain_lines

Kind = Literal["html", "text", "sections"]
FOLDER = Path(__file__).with_name("templates")
_ENDING: dict[Kind, str] = {"html": "html.j2", "text": "md.j2", "sections": "md.j2"}


class _OneCall(CodeGenerator):
    """Of pages, where `finalize` escapes: it alone is called for a value, which saves a third of the time of a page."""

    def _output_child_pre(self, node: Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write("environment.finalize(")

    def _output_child_post(self, node: Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write(")")


@cache
def environment(kind: Kind) -> Environment:
    """All templates of one kind, with what they may call."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / kind),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=_harmless if kind == "html" else _inert,
    )
    if kind == "html":
        made.code_generator_class = _OneCall
    made.filters.update(plain=plain)
    return made


def _harmless(value: object) -> str:
    if type(value) is not str:
        return value if type(value) is Markup else escape(value)
    if not value.isprintable():
        value = plain_lines(value.replace("\t", " "))
    text = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&#34;").replace("'", "&#39;")


def _inert(value: object) -> object:
    return value if isinstance(value, Markup) else Markup(inert(str(value)))  # noqa: S704 - without markup


def named(kind: Kind, name: str) -> Template:
    return environment(kind).get_template(f"{name}.{_ENDING[kind]}")


def html(name: str, **values: object) -> str:
    """A page."""
    return named("html", name).render(values)


def macro(name: str, part: str, *values: object) -> Markup:
    """A part of a page."""
    made: Callable[..., Any] = getattr(named("html", name).module, part)
    return Markup(made(*values))  # noqa: S704 - the template has escaped what was put in


def text(name: str, **values: object) -> str:
    """A file in Markdown; `Markup` is put in as it is. What is written on several lines becomes one paragraph."""
    return _one_line_each(named("text", name).render(values))


def _one_line_each(text: str) -> str:
    """Text in which paragraphs are one line each, and are one empty line apart."""
    joined = re.sub(r"(?<=[^\n|>])\n(?=[^\s|>#-])", " ", text)
    return re.sub(r"\n{3,}", "\n\n", joined).strip("\n") + "\n"
