"""What each command calls. A command's module is imported only here, when the command runs."""

from __future__ import annotations

from argparse import Namespace


def run(arguments: Namespace) -> int:
    from . import run as module

    return module.run(arguments)


def demo(arguments: Namespace) -> int:
    from . import run as module

    return module.demo(arguments)


def resume(arguments: Namespace) -> int:
    from . import run as module

    return module.resume(arguments)


def rejudge(arguments: Namespace) -> int:
    from . import run as module

    return module.rejudge(arguments)


def merge(arguments: Namespace) -> int:
    from . import shards as module

    return module.merge(arguments)


def freeze(arguments: Namespace) -> int:
    from . import run as module

    return module.freeze(arguments)


def verify(arguments: Namespace) -> int:
    from . import check_run as module

    return module.verify(arguments)


def replay(arguments: Namespace) -> int:
    from . import check_run as module

    return module.replay(arguments)


def judge_check(arguments: Namespace) -> int:
    from . import judge_check as module

    return module.judge_check(arguments)


def report(arguments: Namespace) -> int:
    from . import analyze as module

    return module.report(arguments)


def compare(arguments: Namespace) -> int:
    from . import analyze as module

    return module.compare(arguments)


def drift(arguments: Namespace) -> int:
    from . import analyze as module

    return module.drift(arguments)


def series(arguments: Namespace) -> int:
    from . import series as module

    return module.series(arguments)


def sensitivity(arguments: Namespace) -> int:
    from . import analyze as module

    return module.sensitivity(arguments)


def power(arguments: Namespace) -> int:
    from . import analyze as module

    return module.power(arguments)


def export(arguments: Namespace) -> int:
    from . import analyze as module

    return module.export(arguments)


def validate(arguments: Namespace) -> int:
    from . import scenarios as module

    return module.validate(arguments)


def view(arguments: Namespace) -> int:
    from . import review as module

    return module.view(arguments)


def review(arguments: Namespace) -> int:
    from . import review as module

    return module.review(arguments)


def sources(arguments: Namespace) -> int:
    from . import sources as module

    return module.sources(arguments)


def import_transcripts(arguments: Namespace) -> int:
    from . import transcripts as module

    return module.import_transcripts(arguments)


def collect(arguments: Namespace) -> int:
    from . import transcripts as module

    return module.collect(arguments)


def scenarios(arguments: Namespace) -> int:
    from . import scenarios as module

    return module.scenarios(arguments)


def new_scenario(arguments: Namespace) -> int:
    from . import scenarios as module

    return module.new_scenario(arguments)


def models(arguments: Namespace) -> int:
    from . import environment as module

    return module.models(arguments)


def doctor(arguments: Namespace) -> int:
    from . import environment as module

    return module.doctor(arguments)


def plugins(arguments: Namespace) -> int:
    from . import plugins as module

    return module.plugins(arguments)
