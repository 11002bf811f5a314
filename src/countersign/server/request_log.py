"""The requests that each account's keys made last, in memory that the workers of a server share.

An entry has the route, never the path or the body: nothing personal. Nothing is stored. A request
only appends to its account's deque; each second new ones are shown to the other workers together.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import timedelta
from operator import attrgetter
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from countersign.base.http.schemas import Listing, Opaque, Page, Timestamp, page_of, view
from countersign.base.values import Clock, Mode, from_ns
from countersign.core.access.key import Principal, Scope
from countersign.core.access.reach import AccountReach, Reach
from countersign.core.gate.act import Acts
from countersign.server.shared import Boards

ENTRIES: Final = 1000
PLACES: Final = 128
"""Accounts, each in one mode, whose entries a worker keeps: those that called last."""
_Asked: TypeAlias = tuple[Principal, float, int, str, str, str]
"""Who asked, when it ended (monotonic seconds), status, error, request and operation."""
_REQUEST: Final = "req_8k2m0q6w1v7c9z3r5t4x0y2abd"
_AFTER: Final = Meta(description="The `next_cursor` of the previous page.", examples=[_REQUEST])


class RequestsQuery(Listing[Annotated[Opaque, _AFTER]], frozen=True, kw_only=True):
    failed: Annotated[Literal["true", "false"] | None, Meta(examples=["true"])] = None
    """Only those that were refused or failed; false: the others."""


class RequestView(Struct, frozen=True):
    """A request with a key, and its outcome."""

    at: Timestamp
    key_id: Annotated[str, Meta(examples=["key_01km9wtz3tfs8v8j2c7n5k9m0d"])]
    status: Annotated[int, Meta(examples=[422])]
    code: Annotated[str | None, Meta(examples=["invalid_request"])]
    """Of the error; null: it succeeded."""
    request_id: Annotated[str, Meta(examples=[_REQUEST])]
    """As the response has it in `X-Request-Id`."""
    operation: Annotated[str, Meta(examples=["POST /v1/notices/{notice_id}/acknowledge"])]
    """Method and route; identifiers of the path are not kept."""


class RequestLog:
    """The requests at all workers, and the writing of those at this one."""

    def __init__(self, clock: Clock) -> None:
        # By account and mode. Bounded: thousands may come a second, and a flush blocks the loop.
        self.new = defaultdict[tuple[str, Mode], deque[_Asked]](lambda: deque(maxlen=ENTRIES))
        self._clock = clock
        self._kept: dict[Reach, tuple[int, deque[RequestView]]] = {}
        """By account and mode, those that called last at the end: the board and its content."""
        self.share(Boards(PLACES, list[RequestView]), 0)

    def share(self, boards: Boards[RequestView], worker: int) -> None:
        """Show and read on these boards: each worker, counted from 0, has `PLACES` of them."""
        self.boards, self._first = boards, worker * PLACES

    async def flush(self) -> None:
        """Show what is new to all workers."""
        now, monotonic = from_ns(self._clock.time_ns()), self._clock.monotonic()
        new = sorted(self.new.values(), key=lambda asked: asked[-1][1])
        self.new.clear()
        for asked in new:
            reach = asked[0][0].reach
            place = self._kept.pop(reach, None)
            if place is None:
                board = self._first + len(self._kept)
                if len(self._kept) == PLACES:  # the board of the account that called longest ago
                    board, _ = self._kept.pop(next(iter(self._kept)))
                place = board, deque(maxlen=ENTRIES)
            for who, ended, status, code, request_id, operation in asked:
                at = now - timedelta(seconds=monotonic - ended)
                place[1].append(
                    RequestView(at, who.key_id, status, code or None, request_id, operation)
                )
            self._kept[reach] = place  # at the end
        for reach in {asked[0][0].reach for asked in new} & self._kept.keys():
            board, kept = self._kept[reach]
            self.boards.write(board, [*kept], reach)


REQUESTS: Final = Acts("Requests", RequestLog, scope=Scope.EVENTS_READ, reach=AccountReach)


@REQUESTS.act("GET /v1/requests", "List the last requests of the account's keys, newest first")
async def list_requests(log: RequestLog, reach: Reach, query: RequestsQuery) -> Page[RequestView]:
    """The last 1,000 requests with a key of this account and mode, as far as this server has them.

    They are in the memory of the server that answers, of all of its workers: a restart forgets
    them, and other servers have their own. A request without a valid key, or to an unknown path, is
    of no account and is not there.
    """
    await log.flush()
    rows = sorted(log.boards.all_rows(reach), key=attrgetter("at"), reverse=True)[:ENTRIES]
    if query.failed is not None:
        rows = [one for one in rows if (one.code is None) is (query.failed == "false")]
    if query.after is not None:
        ids = [one.request_id for one in rows]
        rows = rows[ids.index(query.after) + 1 :] if query.after in ids else []
    views = [view(RequestView, one) for one in rows[: query.limit + 1]]
    return page_of(views, query.limit, attrgetter("request_id"))
