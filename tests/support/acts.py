"""Acts over a room, each in a transaction of its own, as the gate runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


async def done(act: Callable[..., R], room: Any, *args: Any, **named: Any) -> R:  # noqa: ANN401 - of the act
    result: R = await room.access.database.write(act, room, *args, **named)
    return result
