"""The pages of the console whose pictures are in docs/images, of a shop that is invented.

`make screenshots` takes them in a browser; a test reads the words of the same pages without one.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from countersign.core.access.role import Role
from countersign.operate import bootstrap
from countersign.server.console_host import ROOT
from countersign_console import times
from countersign_console.menu import DEPLOYMENT
from countersign_evidence.offline.verify import MONTHS
from tests.checkout.surfer import Page
from tests.cli.serving import wait_until
from tests.console.visitor import COOKIE, NOTICE, Vendor
from tests.http.backstage import another_deployment
from tests.people.crew import Console
from tests.sealing.inside import ShiftedClock, opened
from tests.storefront.pictured import IMAGES
from tests.support import service
from tests.support.service import running, start_server

SHOP_NAME: Final = "Ridgeline Workshop"
PERSON: Final = "Nora Whitfield"
FOLDER: Final = IMAGES / "console"
WORDS: Final = FOLDER / "words.json"
REFERENCE: Final = "RW-2041"
_REASON: Final = "Letter of counsel, case 26-114"
_DAY: Final = 86_400
_ORDERS_OF_DAYS: Final = (2, 1, 3, 2, 2, 0, 1, 3, 2, 4, 2, 1, 3, 3)
"""Orders per day of the last two weeks, oldest first."""
_FROM_A_PAGE: Final = {"Sec-Fetch-Site": "same-origin"}
_NOTICE: Final = """\
id = "example-storage"
title = "Safe storage (an example)"
heading = "Before you buy, read each line and initial it:"
attestation_text = "I have received and read this notice, and I understand it."
source_law = "None: an example"
source_bill = "None: an example"
jurisdiction = "US-XX"
language = "en"
source_url = "https://law.example/storage"
"""
_LOCKED: Final = "Store it locked, and apart from ammunition."
_CHILDREN: Final = "Keep it out of the reach of everyone younger than 18 years."
_NOTICES: Final = {
    "2026-01-01": (_LOCKED, _CHILDREN),
    "2026-10-01": (_LOCKED, _CHILDREN.replace("18", "21"), "Report a theft within 48 hours."),
}
_CHANGING: Final = re.compile(
    rf"^{re.escape(bootstrap._operator())}$|just now|\b\d+ \w+ ago\b|\b[a-z_]+_[0-9a-z]{{26}}\b"
    r"|\b[0-9a-f]{64}\b|\bhttp://localhost:\d+|/\S+/data\b"
    rf"|\b\d\d? ({'|'.join([*times._MONTHS['en'], *MONTHS.split()])})\b( \d{{4}})?|\d[\d.,:]*"
)
"""Values that differ each time: identifiers, times, ages and figures."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A page, and a form of it that is sent before the picture is taken."""

    page: str
    action: str = ""
    """The action of the form to send; "": none."""
    fields: Mapping[str, str] = field(default_factory=dict)
    part: str = ""
    """The CSS selector of the pictured part; "": the whole page."""
    is_dark: bool = False
    is_phone: bool = False


@dataclass(frozen=True, kw_only=True)
class Staffed:
    """A server with the orders of a shop, and the session of somebody of compliance."""

    url: str
    session: str
    pictures: Mapping[str, Picture]


def pictures(account: str, order: str, attempt: str, buyer: str) -> dict[str, Picture]:
    """Each picture by its name."""
    here, there = f"{account}/test", DEPLOYMENT
    its = f"{here}/orders/{order}"
    notice = f"{there}/notices/example-storage~2026-10-01"
    return {
        "today": Picture(page=f"{here}/today"),
        "orders": Picture(page=f"{here}/orders"),
        "reason": Picture(page=its, part="section:has(#why)"),
        "personal": Picture(page=its, action="/read", fields={"reason": _REASON}),
        "cover": Picture(page=its, action="/cover", fields={"reason": _REASON}),
        "held": Picture(page=f"{its}/hold", action="/hold", fields={"reason": "Case 26-114"}),
        "order": Picture(page=f"{here}/orders", action="/find", fields={"query": REFERENCE}),
        "review": Picture(page=f"{here}/reviews/{attempt}"),
        "erasure": Picture(page=f"{here}/erasures", action="/preview", fields={"subject": buyer}),
        "notice": Picture(page=notice),
        "state": Picture(page=f"{there}/state", is_dark=True),
        "audit": Picture(page=f"{here}/audit"),
    }


async def _past(console: Console, account: str) -> dict[str, str]:
    """Two weeks of a shop: orders, refusals, an order of today, a buyer who waits, two notices."""
    vendor, zips = await Vendor.of(console, account), ("94105", "94110", "95811", "92101")

    async def verify(session: str, zip_code: str) -> Any:  # noqa: ANN401 - JSON
        body = {"provider_identity_session_id": session, "shipping_zip": zip_code}
        return await vendor.ask("POST", "/v1/buyers/verify", body | {"test_mode": True})

    async def buy(number: int, ships_to: str = "") -> dict[str, Any]:
        zip_code = zips[number % len(zips)]
        shared = {"session_id": f"cart-{number}", "order_reference": f"RW-{number}"}
        shared["cbid"] = (await verify(f"check-{number}", zip_code))["cbid"]
        lines = len((await vendor.ask("GET", NOTICE))["bullets"])
        seen = {"ip": "203.0.113.7", "user_agent": "Mozilla/5.0 (Android 16; Mobile)"}
        initials = {"initials_per_line": ["JD"] * lines}
        made = await vendor.ask("POST", f"{NOTICE}/acknowledge", initials | seen | shared)
        about = {"ack_id": made["ack_id"], "shipping_zip": ships_to or zip_code}
        about["product_class"] = "firearm_accessory"
        decided = await vendor.ask("POST", "/v1/clearances", about | shared)
        assert decided["cleared"] == (not ships_to)
        if decided["cleared"]:
            path = f"/v1/clearances/{decided['clearance_id']}/fulfilment"
            at = datetime.now(UTC) + timedelta(seconds=console.clock.seconds)
            sent = {"carrier": "UPS", "shipped_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
            await vendor.ask("POST", path, sent)
        return shared | {"ack_id": made["ack_id"]}

    number, clock = 2012, console.clock
    for day, orders in enumerate(_ORDERS_OF_DAYS):
        for one in reversed(range(orders)):
            clock.seconds = (day + 1 - len(_ORDERS_OF_DAYS)) * _DAY - 3600 * (2 + 3 * one)
            await buy(number, "10001" if number % 9 == 0 else "")
            number += 1
    clock.seconds = -1800
    assert f"RW-{number}" == REFERENCE
    order = await buy(number)
    clock.seconds = -1200
    await verify("test_zip_mismatch", "94105")
    clock.seconds = 0
    return {"order": order["ack_id"], "buyer": order["cbid"]}


async def _publish(console: Console, session: str) -> None:
    """Two versions of a notice that is no law, the first with a review."""
    for version, lines in _NOTICES.items():
        bullets = "".join(
            f'[[bullets]]\nid = "{letter}"\ntext = "{line}"\n'
            for letter, line in zip("ABCD", lines, strict=False)
        )
        file = f'{_NOTICE}version = "{version}"\neffective_from = {version}\n{bullets}'
        body = {"notice": tomllib.loads(file) | {"effective_from": version}}
        published = await console.ask(session, "/v1/notices/publish", "POST", body=body)
        assert published.ok, published.data


@contextmanager
def staffed(directory: Path) -> Iterator[Staffed]:
    """Serve the console of a shop that has been open for two weeks."""
    port = service.free_port()
    url = f"http://localhost:{port}"
    made = another_deployment(directory / "data", None, PUBLIC_URL=url, CONSOLE="true")

    async def before() -> Staffed:
        clock = ShiftedClock()
        async with opened(made, clock, RATE_LIMIT="off") as deployment:
            console = Console(deployment, clock)
            clock.seconds = -15 * _DAY
            account = await console.account(SHOP_NAME)
            past = await _past(console, account)
            session = (await console.person(PERSON, Role.COMPLIANCE)).session
            await _publish(console, session)
            where = {"account": account, "mode": "test"}
            waiting = await console.ask(session, "/v1/buyers/reviews", **where)
            past["attempt"] = waiting.data["data"][0]["verification_id"]
        return Staffed(url=url, session=session, pictures=pictures(account, **past))

    found = asyncio.run(before())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "free_port", lambda: port)
        started = start_server(made)
    with running(started):
        with httpx2.Client(
            base_url=url, headers={"Authorization": f"Bearer {found.session}"}
        ) as it:
            wait_until(lambda: _is_sealed(it), "everything is sealed")
            findings = it.get("/v1/deployment/findings").raise_for_status().json()
            # A nearly full disk, say, would be in the pictures.
            assert findings["severity"] == "fine", f"mend this machine first: {findings}"
        yield found


def _is_sealed(client: httpx2.Client) -> bool:
    promises = client.get("/v1/deployment").raise_for_status().json()["promises"]
    return not any(one["owed_since"] for one in promises if one["promise"] == "sealed")


def words_now(directory: Path) -> dict[str, list[str]]:
    """The words of each page, as they are today."""
    said = {}
    with (
        staffed(directory) as there,
        httpx2.Client(base_url=there.url, follow_redirects=True, headers=_FROM_A_PAGE) as client,
    ):
        client.headers["Origin"] = there.url
        client.cookies.set(COOKIE, there.session)
        for name, one in there.pictures.items():
            page = Page(client.get(f"{ROOT}/{one.page}"))
            if one.action:
                form = next(form for form in page.forms if one.fields.keys() <= form.fields.keys())
                to = form.action.rpartition("/")[0] + one.action
                page = Page(client.post(to, data=form.fields | dict(one.fields)))
            assert page.status == 200, (name, page.text)
            said[name] = _words_of(page)
    return said


def _words_of(page: Page) -> list[str]:
    """The texts of a page, each once, without what differs each time."""
    flat = (" ".join(_CHANGING.sub("…", part).split()) for part in page.words)
    return list(dict.fromkeys(part for part in flat if re.search(r"\w\w\w", part)))
