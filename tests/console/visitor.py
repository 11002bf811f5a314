"""The browser of a person who is signed in to the console, and the server of a shop."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx2

from countersign.base.values import Mode
from countersign.core.access.keys import create_key
from countersign.core.access.role import Role
from countersign.server.console_host import ROOT
from countersign_console.menu import DEPLOYMENT
from countersign_console.pages import PAGES
from tests.checkout.surfer import Form, Page
from tests.people.crew import Console
from tests.remembered.device import ORIGIN
from tests.support.acts import done

KEPT: Final = re.compile(r"[?&](v|found)=")
COOKIE: Final = "csc-session"
NOTICE: Final = "/v1/notices/ab1263"


class Visitor:
    """Opens pages and sends forms with the cookie of a session."""

    def __init__(self, console: Console, session: str, origin: str = ORIGIN) -> None:
        self.console, self.session, self.origin = console, session, origin
        self.host = urlsplit(origin).netloc
        self.cookie = COOKIE if origin.startswith("http:") else f"__Host-{COOKIE}"

    async def raw(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> httpx2.Response:
        """Whatever this browser may be made to send."""
        named = {"Host": self.host, "Cookie": f"{self.cookie}={self.session}"}
        reply = await self.console.http(method, path, named | dict(headers or {}), body)
        given = [(name.decode(), value.decode("latin-1")) for name, value in reply.headers]
        request = httpx2.Request(method, self.origin + path)
        return httpx2.Response(reply.status, headers=given, content=reply.body, request=request)

    async def open(self, path: str) -> Page:
        return Page(await self.raw("GET", path))

    async def form(self, path: str) -> Form:
        """The form of the page of an act."""
        return next(one for one in (await self.open(path)).forms if one.action == path)

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form as a page of this console does; the page that shows what was kept of it."""
        form = {"code": self.console.host.form_code(self.session)} | fields
        own = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}
        return await self.led(await self.post(path, form, **own))

    async def led(self, reply: httpx2.Response) -> httpx2.Response:
        """Where a form leads that was kept; another reply as it is."""
        while KEPT.search(to := reply.headers.get("location", "")):
            assert reply.status_code == 303
            reply = await self.raw("GET", to)
        return reply

    async def press(self, form: Form, **fields: str) -> httpx2.Response:
        """Send a form of a page."""
        return await self.send(form.action, **form.fields | fields)

    async def post(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx2.Response:
        """Send these fields with these headers, and nothing else."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await self.raw("POST", path, headers | kind, urlencode(fields).encode())


class Vendor:
    """The server of a shop, with a test key."""

    def __init__(self, console: Console, key: str) -> None:
        self.console, self.key = console, key

    @classmethod
    async def of(cls, console: Console, account_id: str) -> Vendor:
        access = console.deployment.access
        made = await done(create_key, access, account_id, Mode.TEST)
        return cls(console, made.token)

    async def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Call the API; a refusal fails the test."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        sent = b"" if body is None else json.dumps(body).encode()
        reply = await self.console.http(method, path, headers, sent)
        assert reply.status < 300, reply.body
        return json.loads(reply.body)

    async def order(self, session: str, reference: str, **fields: str) -> dict[str, Any]:
        """A buyer who is verified, initials, a clearance and a shipment; another buyer waits."""
        verify, zip_code = "/v1/buyers/verify", {"shipping_zip": "94105", "test_mode": True}
        waits = {"provider_identity_session_id": "test_failed"}
        await self.ask("POST", verify, waits | zip_code)
        named = {"provider_identity_session_id": session}
        buyer = (await self.ask("POST", verify, named | zip_code))["cbid"]
        shared = {"session_id": session, "order_reference": reference, "cbid": buyer}
        lines = len((await self.ask("GET", NOTICE))["bullets"])
        initials = {"initials_per_line": ["JD"] * lines, "ip": "203.0.113.7"}
        made = await self.ask("POST", f"{NOTICE}/acknowledge", initials | shared | fields)
        about = {"ack_id": made["ack_id"], "shipping_zip": "94105"}
        cleared = await self.ask("POST", "/v1/clearances", about | shared)
        return {**shared, "ack_id": made["ack_id"], "clearance_id": cleared["clearance_id"]}


async def an_officer(console: Console) -> tuple[Visitor, str, dict[str, Any]]:
    """A compliance officer of a shop with one order; the address of the order, and the order."""
    account = await console.account("vendor")
    order = await (await Vendor.of(console, account)).order("cs_1", "order 1001")
    cora = await console.person("Cora", Role.COMPLIANCE, account)
    its = f"{places(account)[False, 'orders']}/{order['ack_id']}"
    return Visitor(console, cora.session), its, order


def places(account_id: str, mode: str = "test") -> dict[tuple[bool, str], str]:
    """The address of each page that there is."""
    here = {True: DEPLOYMENT, False: f"{account_id}/{mode}"}
    return {(is_all, name): f"{ROOT}/{here[is_all]}/{name}" for is_all, name in PAGES}


def forms(account_id: str) -> dict[str, str]:
    """The address of each form that needs nothing from another page, and its act."""
    return {
        f"{places(account_id)[key]}/-/{act.name}": act.name
        for key, page in PAGES.items()
        for act in page.new
        if not act.carries
    }
