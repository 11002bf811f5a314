"""The error of evidence code, and those of its commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class CountersignError(Exception):
    """The root. `code` is stable; the first line of the docstring is the default message."""

    code: ClassVar[str] = "internal_error"

    def __init_subclass__(cls, code: str = "") -> None:
        if code:
            cls.code = code

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])

    @property
    def message(self) -> str:
        """The text to show to the caller."""
        return str(self.args[0])


class OperatorError(CountersignError, code="operator_error"):
    """The command failed."""


class InvalidArgument(OperatorError, code="invalid_argument"):
    """An argument is not valid."""


class EvidenceError(ValueError):
    """The input cannot become evidence, or is not the evidence that a function reads or checks.

    Every reader and check in this package raises it; docstrings add details only if they are not
    obvious.
    """


@contextmanager
def refused_as(kind: type[CountersignError], what: str, *on: type[Exception]) -> Iterator[None]:
    """An error of these types inside, or an EvidenceError, is raised as this one: what, and why."""
    caught: tuple[type[Exception], ...] = (EvidenceError, *on)
    try:
        yield
    except caught as error:
        raise kind(f"{what}: {error}.") from error


@contextmanager
def files_refused_as(kind: type[CountersignError], what: str) -> Iterator[None]:
    """An OSError inside is raised as this error, which says what and the system's reason."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}.") from error
