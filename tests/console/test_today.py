"""The page `today`: the same numbers in words, in charts and in tables, for each role."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from sqlalchemy import Connection, insert, update

from countersign.base.db.tables import accounts, erasure_requests
from countersign.base.values import Mode
from countersign.core.access.role import Role
from countersign.operate.doctor.promises import PROMISES
from countersign.server.console_host import SESSION
from countersign.staff.acts import today as api
from countersign_console.charts import Period, draw
from countersign_console.state import ON_THE_MACHINE
from countersign_console.times import age
from countersign_console.today import CHARTS, FIGURES
from countersign_console.view import WORDS
from tests.console.visitor import Vendor
from tests.people.crew import Console, Person, in_console
from tests.staff.test_today import happen, principal

pytestmark = pytest.mark.one_engine
EN: Final = WORDS["en"]
SVG: Final = re.compile(r"<svg.*?</svg>", re.DOTALL)
NOTHING: Final = dict.fromkeys(FIGURES, 0)
AT: Final = datetime(2026, 11, 28, tzinfo=UTC)


def hours(*figures: Mapping[str, int | None], most: int = 10_000) -> Period:
    """Hours with these figures."""
    begins = [f"2026-11-28T{hour:02}:00:00Z" for hour in range(len(figures))]
    rows = [{"begins_at": at, **NOTHING, **one} for at, one in zip(begins, figures, strict=True)]
    return Period(name="hours", figures=rows, most=most, locale="en", words=EN)


def test_bars_are_as_high_as_their_figures() -> None:
    """Stacked, in the order of the legend; zero has no bar, and a small value still has one."""
    chart = draw(
        hours({"cleared": 100, "refused": 50}, {}, {"cleared": 1}, {"refused": 200}),
        "decisions",
        CHARTS["decisions"],
    )
    lowest = max(bar.y + bar.height for bar in chart.bars)
    assert [(bar.series, bar.height) for bar in chart.bars] == [
        *((1, 56.0), (2, 28.0)),
        *((1, 1.5), (2, 112.0)),
    ]
    assert chart.bars[1].y + chart.bars[1].height == chart.bars[0].y
    assert {bar.y + bar.height for bar in (chart.bars[0], *chart.bars[2:])} == {lowest}
    assert chart.totals == ["101", "250"]
    assert chart.says == "Peak hour: 200, from 03:00 UTC."


def test_unmeasured_values_are_not_zero() -> None:
    """It has an edge in the place of a bar, and words in the place of a number."""
    unknown = dict.fromkeys(FIGURES)
    period = hours(unknown, {})
    chart = draw(period, "buyers", CHARTS["buyers"])
    assert ([bar.series for bar in chart.bars], chart.is_empty) == ([0], True)
    assert (chart.has_gaps, chart.says) == (True, EN["chart_nothing_known"])
    assert [period.shown(None), period.shown(0)] == [EN["not_measured"], "0"]
    assert draw(hours(unknown), "buyers", CHARTS["buyers"]).totals == [EN["not_measured"]] * 2


def test_a_figure_at_the_bound_means_at_least_that_many() -> None:
    """In the total too, and with a mark above the bar."""
    period = hours({"acknowledgments": 7000}, {"acknowledgments": 10_000})
    chart = draw(period, "acknowledgments", CHARTS["acknowledgments"])
    assert chart.totals == ["17,000 or more"]
    assert [mark.text for mark in chart.more] == ["+"]
    assert period.shown(10_000) == "10,000 or more"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (3 * 86_400, "3 days ago"),
        (-5, "just now"),
    ],
)
def test_ages_are_in_words(seconds: int, words: str) -> None:
    """Rounded down; the clock of a witness may be ahead."""
    then = (AT - timedelta(seconds=seconds)).isoformat()
    assert f">{words}<" in age(then, AT.isoformat(), EN)


async def page(console: Console, person: Person, path: str) -> str:
    """The page for this person; without a path, the page after the redirect."""
    cookie = f"{console.host.cookie_name(SESSION)}={person.session}"
    reply = await console.http("GET", f"/console/{path}", {"cookie": cookie})
    if not path:
        return dict(reply.headers)[b"location"].decode()
    text = bytes(reply.body).decode()
    assert reply.status == 200, text
    return text


def cells(text: str, name: str) -> list[list[str]]:
    """The table of hours or days, without its head."""
    table = text.partition(f'aria-label="{EN["numbers_" + name]}"')[2].partition("</table>")[0]
    rows = table.partition("<tbody>")[2].split("</tr>")[:-1]
    return [re.findall(r'<td class="number">(.*?)</td>', row) for row in rows]


def test_charts_tables_and_api_say_the_same(tmp_path: Path) -> None:
    """Each drawing is well formed, has a title and a description, and no style of its own."""

    async def work(console: Console) -> tuple[str, Mapping[str, Any]]:
        account = await console.account("Ridgeline Workshop")

        def past(connection: Connection) -> None:
            now = datetime.now(UTC)
            old = update(accounts).values(created_at=now - timedelta(days=5))
            connection.execute(old)
            for number, figure in enumerate(api.Figures.__struct_fields__[1:]):
                for back in range(number + 1):
                    at = now - timedelta(hours=7 * back)
                    happen(connection, principal(account, Mode.LIVE), figure, at)

        await console.deployment.database.write(past)
        person = await console.person("Ada", Role.AUDITOR)
        found = await console.ask(person.session, "/v1/today", account=account, mode="live")
        return await page(console, person, f"{account}/live/today"), found.data

    text, found = in_console(tmp_path, work)
    for name in ("hours", "days"):
        shown = [
            [EN["not_measured"] if row[one] is None else str(row[one]) for one in FIGURES]
            for row in found[name]
        ]
        assert cells(text, name) == shown
    assert EN["not_measured"] in text
    drawings = [ET.fromstring(one) for one in SVG.findall(text)]  # noqa: S314 - our own
    charts = [one for one in drawings if one.get("role") == "img"]
    assert len(charts) == 2 * len(CHARTS)
    names = [f"{name}-{chart}" for name in ("hours", "days") for chart in CHARTS]
    for chart, name in zip(charts, names, strict=True):
        assert chart.findtext("title")
        assert chart.findtext("desc")
        series = CHARTS[name.partition("-")[2]]
        figures = [one[figure] for one in found[name.partition("-")[0]] for figure in series]
        bars = [rect for rect in chart.iter("rect") if rect.get("class") != "series-0"]
        assert len(bars) == sum(bool(figure) for figure in figures)
    assert " style=" not in text
    assert "<script" not in text


def test_requests_for_erasure_have_a_deadline_and_what_blocks_them(tmp_path: Path) -> None:
    """By the account's own days, the next to answer first, for who sees requests at all."""

    async def work(console: Console) -> None:
        account = await console.account("Ridgeline Workshop")
        vendor = await Vendor.of(console, account)
        held, free = [(await vendor.order(f"cs_{n}", f"RW-{n}"))["cbid"] for n in (1, 2)]
        staff = await console.person("Ada", Role.COMPLIANCE)
        now, where = datetime.now(UTC), {"account": account, "mode": "test"}
        hold = {"subject": held, "reason": "Case 26-114"}
        assert (await console.ask(staff.session, "/v1/holds", "POST", body=hold, **where)).ok

        def ask(connection: Connection) -> None:
            connection.execute(update(accounts).values(request_days=30))
            asked = [(held, now + timedelta(days=20)), (free, now)]
            rows = [{"cbid": cbid, "requested_at": at} for cbid, at in asked]
            connection.execute(insert(erasure_requests), rows)

        await console.deployment.database.write(ask)
        listed = (await console.ask(staff.session, "/v1/erasures/requests", **where)).data["data"]
        [block] = [one["prevented_by"] for one in listed if one["cbid"] == held]
        for role in Role:
            person = await console.person(f"{role}", role, account)
            text = unescape(await page(console, person, f"{account}/test/today"))
            may = "erasure:write" in console.host.scopes(str(role), staff=False)
            assert (EN["erase_requests"] in text) is (block in text) is may
            if may:
                assert text.index(free) < text.index(held)
                times = [now + timedelta(days=days) for days in (30, 50)]
                assert all(f"{at:%Y-%m-%dT%H:%M:%SZ}" in text for at in times)
            live = await page(console, person, f"{account}/live/today")
            assert EN["erase_requests"] not in live

    in_console(tmp_path, work)


def test_a_page_shows_what_its_reader_may_see(tmp_path: Path) -> None:
    """Only staff see the state of the service; only reviewers have a link to the queue."""

    async def work(console: Console) -> None:
        account = await console.account("Ridgeline Workshop")
        here = f"{account}/test/today"
        for role in Role:
            person = await console.person(f"{role}", role, account)
            text = await page(console, person, here)
            assert EN["standing_sealing"] not in text
            waiting = f'href="/console/{account}/test/reviews"'
            assert (waiting in text) is console.host.scopes(str(role), staff=False).issuperset(
                {"buyers:review"}
            )
            assert await page(console, person, "") == f"/console/{account}/test/orders"
        staff = await console.person("Ada", Role.COMPLIANCE)
        text = await page(console, staff, here)
        assert text.count(EN["standing_sealing"]) == 2
        # No loop of a server runs here, so records may have waited for long.
        is_late = any(EN[f"promise_{name}"] in text for name in PROMISES)
        assert (EN["promises_kept"] in text) is not is_late
        health = [EN[f"health_{one}"] in text for one in ("fine", "warning", "missing", "broken")]
        assert sum(health) == 1
        text = unescape(await page(console, staff, "all/state"))
        assert all(line in text for line in ON_THE_MACHINE.values())
        assert EN["machine_recover"] in text
        assert all(EN[f"promise_{name}"] in text for name in PROMISES)

    in_console(tmp_path, work)
