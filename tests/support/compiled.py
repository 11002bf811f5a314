"""One cache of compiled statements for all engines of a process.

SQLAlchemy has one for each engine. Tests open hundreds of deployments, and each would compile the
same statements again: that was a sixth of the CPU of tests in this process.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

_SIZE: Final = 3000


class _Shared(LRUCache[Any, Any]):
    """Its keys name the kind of a dialect, not the one that each engine has."""

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401 - as SQLAlchemy's
        return super().get(_of_kind(key), default)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as SQLAlchemy's
        return super().__getitem__(_of_kind(key))

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - as SQLAlchemy's
        super().__setitem__(_of_kind(key), value)


def _of_kind(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return (type(key[0]), *key[1:])


def share() -> None:
    """Have all engines that this process opens from now on use one cache."""
    shared, make = _Shared(_SIZE), Engine.__init__

    @wraps(make)
    def made(engine: Engine, *args: Any, **given: Any) -> None:  # noqa: ANN401 - whatever it takes
        make(engine, *args, **given)
        engine._compiled_cache = shared

    Engine.__init__ = made  # type: ignore[assignment, method-assign]
