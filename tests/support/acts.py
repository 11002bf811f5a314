"""Acts over a room, each in a transaction of its own, as the gate runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

from countersign.base.db.database import Act
from countersign.base.errors import CountersignError
from countersign.core.access.room import Access

P = ParamSpec("P")
R = TypeVar("R")


class Room(Protocol):
    """The room that acts work with."""

    @property
    def access(self) -> Access:
        """With the database."""


RoomT = TypeVar("RoomT", bound=Room)


async def asked(
    act: Callable[Concatenate[Connection, RoomT, P], R],
    room: RoomT,
    *args: P.args,
    **named: P.kwargs,
) -> R:
    """The same for one that only reads."""

    def run(connection: Connection) -> R:
        return act(connection, room, *args, **named)

    return await room.access.database.scan(run)


async def done(
    act: Act[Concatenate[RoomT, P], R],
    room: RoomT,
    *args: P.args,
    **named: P.kwargs,
) -> R:
    def run(connection: Connection) -> R | CountersignError:
        return act(connection, room, *args, **named)

    return await room.access.database.write(run)
