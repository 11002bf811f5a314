"""Commands of the console's routes."""

from __future__ import annotations

from functools import partial
from typing import Final

from countersign.base.values import Mode
from countersign.core.gate.route import Command


async def of_deployment(_room: object, _named: str) -> tuple[str, Mode]:
    """The `owner` of a route whose command names no account and mode: the deployment."""
    return "", Mode.LIVE


command: Final = partial(Command, owner=of_deployment)
