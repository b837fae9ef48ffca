"""The command line: argv in, text and an exit code out. The only package that prints or knows argparse."""

from .parser import main

__all__ = ["main"]
