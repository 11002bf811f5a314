"""Acts over a room, each in a transaction of its own, as the gate runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

from countersign.access.room import Access

P = ParamSpec("P")
R = TypeVar("R")


class Room(Protocol):
    """What acts work with."""

    @property
    def access(self) -> Access:
        """With the database."""


RoomT = TypeVar("RoomT", bound=Room)


async def done(
    act: Callable[Concatenate[Connection, RoomT, P], R],
    room: RoomT,
    *args: P.args,
    **named: P.kwargs,
) -> R:
    def run(connection: Connection) -> R:
        return act(connection, room, *args, **named)

    return await room.access.database.write(run)
