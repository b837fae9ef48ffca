"""The command line: argv in, exit code out. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import io
import logging
import sys
from collections.abc import Sequence
from textwrap import fill
from typing import Any, NoReturn

from .. import __version__
from ..errors import HarnessError
from . import options
from .commands import COMMANDS, WIDTH, texts


class _Parser(argparse.ArgumentParser):
    def __init__(self, **how: Any) -> None:
        self.flags: dict[str, str] = {}
        """What is set to the flag that sets it, for errors."""
        super().__init__(**how, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def add_argument(self, *names: Any, **how: Any) -> argparse.Action:
        action = super().add_argument(*names, **how)
        if action.option_strings:
            self.flags[action.dest] = action.option_strings[-1]
        return action

    def error(self, message: str) -> NoReturn:
        order = " Options come after this word." if message.startswith("argument {") else ""  # `review start` and such
        self.exit(2, f"{self.prog}: {message}.{order} Try: {self.prog} --help\n")


def build_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of all commands. If `words` are given, only commands among them have their options."""
    parser = _Parser(prog="medicare-eval", description=texts()["medicare-eval"], epilog=texts()["exit codes"])
    parser.add_argument("--version", action="version", version=f"medicare-eval {__version__}")
    groups = {"": _group(parser, "command", "COMMAND")}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        summary = command.summary
        description = command.text or fill(f"{summary[0].upper()}{summary[1:]}.", WIDTH)
        made = groups[group].add_parser(name, help=summary, description=description)
        if not command.function:
            parts = (one.name.split()[1] for one in COMMANDS if one.name.startswith(f"{command.name} "))
            groups[command.name] = _group(made, "action", f"{{{','.join(parts)}}}")
        elif words is None or name in words:
            for add in command.options:
                add(made)
            made.set_defaults(handler=command, flags=made.flags)
    return parser


def _group(parser: _Parser, name: str, metavar: str) -> argparse._SubParsersAction[_Parser]:
    return parser.add_subparsers(dest=name, required=True, metavar=metavar, parser_class=_Parser)


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Like `parse_args`, but an unknown flag leads to the help of its command."""
    parser = build_parser(argv)
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        command = " ".join(filter(None, [parser.prog, arguments.command, getattr(arguments, "action", "")]))
        parser.exit(2, f"{command}: unrecognized arguments: {' '.join(unknown)}. Try: {command} --help\n")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a character still shows the rest
    arguments = _parsed(sys.argv[1:] if argv is None else argv)
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
