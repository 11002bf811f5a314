"""The first page: figures of an account, waiting work, and the state of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from countersign.server.console_host import PageReply
from countersign_console.acts import Page
from countersign_console.charts import HEIGHT, WIDTH, Period, draw
from countersign_console.menu import Place
from countersign_console.visit import Refused, Visit

CHARTS: Final = {
    "acknowledgments": ("acknowledgments",),
    "decisions": ("cleared", "refused"),
    "links": ("sessions_completed", "sessions_declined", "sessions_expired"),
    "buyers": ("buyers_verified", "buyers_failed"),
}
"""The figures that are drawn together: chart → series."""
FIGURES: Final = tuple(one for series in CHARTS.values() for one in series)
_WAITING: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "buyers_waiting": ("reviews", {}),
    "open_checkout_sessions": ("orders", {"waiting": "true"}),
    "deliveries_repeated": ("webhooks", {}),
    "endpoints_disabled": ("webhooks", {}),
}
"""Kind of waiting work → the page to act on it, and its filter."""
_REQUESTS: Final = 10
"""The number of requests shown; the page of erasures lists all."""
_OF_SERVICE: Final = "deployment:read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A number with its words, and where to act."""

    name: str
    number: str
    href: str
    """"": the person has no page for it."""


class Today(Page):
    """`today`: figures, charts with the same numbers in a table, and why orders were refused."""

    async def show(self, visit: Visit) -> PageReply:
        """The page as the API has its numbers now."""
        found = await visit.call("GET", "/v1/today")
        periods = [self._period(visit, found, name) for name in ("days", "hours")]
        return visit.show(
            "today.html",
            visit.words["page_today"],
            script="",
            today=found,
            tiles=_tiles(visit, found, periods[0]),
            requests=await self._requests(visit),
            periods={
                one.name: (one, [draw(one, name, series) for name, series in CHARTS.items()])
                for one in reversed(periods)
            },
            figures=FIGURES,
            width=WIDTH,
            height=HEIGHT,
            service=await _service(visit),
            service_page=Place().at("state"),
        )

    @staticmethod
    async def _requests(visit: Visit) -> Sequence[Mapping[str, Any]]:
        """The most urgent requests for erasure, if this person may see requests."""
        if not visit.may(visit.pages[False, "erasures"]):
            return ()
        waiting = await visit.all_of("/v1/erasures/requests")
        return sorted(waiting, key=lambda one: one["answer_by"])[:_REQUESTS]

    @staticmethod
    def _period(visit: Visit, found: Mapping[str, Any], name: str) -> Period:
        return Period(
            name=name,
            figures=found[name],
            most=found["most"],
            locale=visit.locale,
            words=visit.words,
        )


def _tiles(visit: Visit, found: Mapping[str, Any], period: Period) -> list[Tile]:
    return [
        Tile(
            name=name,
            number=period.shown(found[name]),
            href=visit.at(page, **query) if visit.may(visit.pages[False, page]) else "",
        )
        for name, (page, query) in _WAITING.items()
    ]


async def _service(visit: Visit) -> Mapping[str, Any] | None:
    """The state of the whole service, for its staff; None for other people."""
    if not visit.person.may("", _OF_SERVICE):
        return None
    everywhere = visit.of(Place())
    try:
        return {
            "standing": await everywhere.call("GET", "/v1/deployment"),
            "doctor": await everywhere.call("GET", "/v1/deployment/findings"),
        }
    except Refused:
        return None
