"""The time zone of a person: on pages, with UTC beside it, and in no evidence or file."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from jinja2 import Environment

from countersign_console import times
from countersign_console.view import WORDS
from tests.checkout.surfer import Page
from tests.console.visitor import Visitor, an_officer
from tests.people.crew import Console, in_console

pytestmark = pytest.mark.one_engine
EN: Final = WORDS["en"]
ZONE: Final = "America/Los_Angeles"
BOTH: Final = re.compile(r"P[SD]T <span class=\"quiet\">\(.*UTC\)")


@pytest.mark.parametrize(
    ("at", "said", "day"),
    [
        ("2026-11-27T21:31:00Z", "27 Nov 2026, 13:31:00 PST (21:31:00 UTC)", "27 Nov 2026"),
        ("2026-11-28T05:31:00Z", "27 Nov 2026, 21:31:00 PST (28 Nov, 05:31:00 UTC)", "27 Nov 2026"),
        ("2026-07-01T05:31:00Z", "30 Jun 2026, 22:31:00 PDT (1 Jul, 05:31:00 UTC)", "30 Jun 2026"),
    ],
)
def test_a_time_is_shown_in_the_zone_with_utc_beside_it(at: str, said: str, day: str) -> None:
    """With the day of UTC where it is another one; a day alone is that of the zone."""
    page = Environment(autoescape=True)
    page.filters |= {"moment": times.moment, "day": times.day}

    def shown(how: str, value: str) -> str:
        made = page.from_string("{{ it | " + how + "('en') }}").render(it=value, zone=ZONE)
        return re.sub("<[^>]+>", "", made)

    assert (shown("moment", at), shown("day", at)) == (said, day)
    assert shown("day", "2026-11-27") == "27 Nov 2026"


def test_the_chosen_zone_is_on_every_page_and_in_no_evidence(tmp_path: Path) -> None:
    """A day that is asked for is one of the zone; another text than a zone is UTC."""

    async def work(console: Console) -> None:
        own, its, _ = await an_officer(console)
        orders = its.rpartition("/")[0]
        chosen = await own.send("/console/sessions", zone=ZONE)
        assert f"csc-zone={ZONE}; Max-Age=31536000;" in chosen.headers["set-cookie"]
        none = await own.send("/console/sessions", zone="Mars/North")
        assert "csc-zone=; Max-Age=0;" in none.headers["set-cookie"]
        there = Visitor(console, f"{own.session}; csc-zone={ZONE}")
        for path in (its, orders, orders.replace("/orders", "/audit"), "/console/sessions"):
            assert BOTH.search((await there.open(path)).response.text), path
            assert not BOTH.search((await own.open(path)).response.text), path
        form = next(one for one in (await there.open(its)).forms if one.action.endswith("/read"))
        form.action = form.action.replace("/read", "/cover")
        cover = Page(await there.press(form, reason="case 7")).text
        assert EN["cover_what"] in cover
        assert not re.search("P[SD]T", cover)
        listed = await there.open(orders)
        (opened, *_) = re.findall(r'<time datetime="([^"]+)"', listed.response.text)
        day = f"{datetime.fromisoformat(opened).astimezone(ZoneInfo(ZONE)):%Y-%m-%d}"
        asked = f"{orders}?day={day}"
        assert opened in (await there.open(asked)).response.text
        assert f"({ZONE})" in (await there.open(asked)).text

    in_console(tmp_path, work)
