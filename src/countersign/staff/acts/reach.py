"""Commands of the console's routes."""

from __future__ import annotations

from countersign.base.values import Mode


async def of_deployment(_room: object, _named: str) -> tuple[str, Mode]:
    """The `owner` of a route whose command names no account and mode: the deployment."""
    return "", Mode.LIVE
