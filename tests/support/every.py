"""One test over many values, as `parametrize` has one for each: for quick checks.

A case of its own costs more than such a question. The failures are listed all at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]


def every(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Call the test with each value of an argument, or of several; may be stacked.

    The fixtures of a test are made once for all values.
    """
    wanted = (names,) if isinstance(names, str) else names
    cases = [(value,) if isinstance(names, str) else tuple(value) for value in values]
    assert cases, "there is nothing to ask"

    def decorate(test: Test) -> Test:
        @wraps(test)
        def asked(**fixtures: object) -> None:
            failures = []
            for case in cases:
                try:
                    test(**fixtures, **dict(zip(wanted, case, strict=True)))
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - listed below
                    failures.append((case, failure))
            if failures:
                listed = "\n".join(f"{case!r}: {_said(failure)}" for case, failure in failures)
                number = f"{len(failures)} of {len(cases)} {' and '.join(wanted)}"
                raise AssertionError(f"{number}:\n{listed}") from failures[0][1]

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        asked.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return asked

    return decorate


def _said(failure: BaseException) -> str:
    return f"{type(failure).__name__}: {failure}"
