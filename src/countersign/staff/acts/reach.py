"""Routes and commands of the console."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.base.values import Mode
from countersign.core.gate.route import Route

staff_route: Final = partial(Route, console=True)
"""An operation of the console."""


async def of_deployment(_room: object, _named: str) -> tuple[str, Mode]:
    """The `owner` of a route whose command names no account and mode: the deployment."""
    return "", Mode.LIVE
