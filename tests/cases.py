"""Many small cases as one test: written like `pytest.mark.parametrize`, run in a loop that names every case that fails.

A case costs nothing but its own work. For cases that need other fixtures of their own, parametrize.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def each_case(
    names: str | Sequence[str], values: Iterable[Any], ids: Callable[[Any], object] | Sequence[str] | None = None
) -> Callable[[Test], Test]:
    """Run a test for each value in turn. If some fail, the test fails with all of them, each noted with its case.

    A `tmp_path` is a folder of the case alone, and what a `monkeypatch` changes is undone after each case.
    """
    parts = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [_case(value, len(parts)) for value in values]
    assert cases, "a test of no cases cannot fail"

    def named(number: int) -> str:
        if ids is not None and not callable(ids):
            return ids[number]
        return ", ".join(_short(ids(value) if ids else value) for value in cases[number])

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            failed: list[Exception] = []
            for number, case in enumerate(cases):
                try:
                    with _of_one_case(fixtures, number) as given:
                        test(**dict(zip(parts, case, strict=True)), **given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"case {number + 1} of {len(cases)}: {named(number)}")
                    failed.append(error if isinstance(error, Exception) else AssertionError(str(error)))
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(cases)} cases fail", failed)

        signature = inspect.signature(test)
        others = [one for name, one in signature.parameters.items() if name not in parts]
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in others]
        )
        return run

    return decorate


@contextmanager
def _of_one_case(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    given = dict(fixtures)
    if "tmp_path" in given:
        given["tmp_path"] = given["tmp_path"] / f"case{number + 1}"
        given["tmp_path"].mkdir()
    if "monkeypatch" not in given:
        yield given
        return
    with given["monkeypatch"].context() as given["monkeypatch"]:
        yield given


def _case(value: Any, size: int) -> tuple[Any, ...]:
    if isinstance(value, type(pytest.param())):
        assert not value.marks, "a case with a mark of its own needs parametrize"
        return tuple(value.values)
    return tuple(value) if size > 1 else (value,)


def _short(value: object) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
