"""Waiting for other services gets its own span, if the server is traced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Final

Begin = Callable[[str], AbstractContextManager[object]]

BEGIN: Final[ContextVar[Begin | None]] = ContextVar("begin_span", default=None)
"""Begins a span within the request that is being answered; None: no tracing."""


def outgoing(name: str) -> AbstractContextManager[object]:
    """A span for a request to another service, such as `GET api.stripe.com`; a no-op untraced."""
    begin = BEGIN.get()
    return nullcontext() if begin is None else begin(name)
