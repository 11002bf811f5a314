"""The cost of a console page: ``python -m bench.console``; ``--help`` lists the options.

Each page is requested in this process, as by a browser, from two deployments on the embedded
database: one with few acknowledgments and one with many (see `bench.fill`). A page has the
processor time of all threads of the process, the statements it takes, and its size.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from sqlalchemy import Connection, Engine, event, insert

from bench.fill import fill
from bench.options import LASTING
from bench.plan import NOTICE_ID
from bench.servers import install
from bench.vendor import initials, vendor
from countersign.base.config import load_settings
from countersign.base.db.tables import person_sessions
from countersign.base.http.body import Incoming
from countersign.base.values import Mode, from_ns, timed_id
from countersign.core.access.account import all_accounts
from countersign.core.access.key import PERSON_ENTROPY_BYTES, PERSON_SESSION, compose_token
from countersign.core.access.reach import DeploymentReach
from countersign.core.access.role import Role
from countersign.core.acknowledgments.acknowledge import acknowledge
from countersign.core.gate.route import Call, Reply
from countersign.operate.bootstrap import open_deployment
from countersign.server.app import App
from countersign.server.console_host import ROOT, Host
from countersign.staff.people.roles import invite
from countersign_console.menu import DEPLOYMENT
from countersign_console.pages import SCOPES

URL: Final = "http://localhost:8080"
SESSION_ID: Final = "cart 7"
"""A session of an order that is stored last."""
CPU_MS_MAX: Final = 100
_PREFIX: Final = "COUNTERSIGN_"


class Cost(NamedTuple):
    """The median cost of a page."""

    cpu_ms: float
    statements: int
    size: int


class Browser:
    """A person's browser in the process of the server."""

    def __init__(self, app: App, session: str, code: str) -> None:
        self.app, self.code = app, code
        self.headers = {b"host": b"localhost:8080", b"cookie": f"csc-session={session}".encode()}
        self.headers |= {b"origin": URL.encode(), b"sec-fetch-site": b"same-origin"}
        self.headers[b"content-type"] = b"application/x-www-form-urlencoded"

    async def ask(self, path: str, form: Mapping[str, str] | None = None) -> Reply:
        """Open a page, or send a form and follow its redirect."""
        path, _, query = path.partition("?")
        body = urlencode({"code": self.code, **form}).encode() if form else b""
        parts = iter([body])

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": next(parts, b""), "more_body": False}

        call = Call(
            method="POST" if form else "GET",
            path=path,
            query_string=query.encode(),
            headers=self.headers,
            raw_headers=list(self.headers.items()),
            peer="127.0.0.1",
        )
        reply = await self.app.handle(call, Incoming(receive))
        if reply.status not in {200, 303}:
            raise SystemExit(f"{path}: {reply.status}")
        return await self.ask(dict(reply.headers)[b"location"].decode()) if form else reply


def main() -> None:
    """Fill, measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--stored", type=int, default=1_000_000, help="by the second deployment")
    parser.add_argument("--few", type=int, default=1, help="by the first one")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--work-dir", type=Path, default=LASTING if LASTING.is_dir() else None)
    options = parser.parse_args()
    with TemporaryDirectory(prefix="countersign-console-", dir=options.work_dir) as name:
        few, many = (
            _measured(Path(name) / str(number), number, options.rounds)
            for number in (options.few, options.stored)
        )
    said = f"{options.few:,} and {options.stored:,} stored"
    sys.stdout.write(f"{said:<34}{'CPU':>14}{'statements':>16}{'size':>9}\n")
    for page, cost in many.items():
        before = few[page]
        cpu = f"{before.cpu_ms:.0f} {cost.cpu_ms:>4.0f} ms"
        statements = f"{before.statements} {cost.statements:>4}"
        sys.stdout.write(f"{page:<34}{cpu:>14}{statements:>16}{cost.size / 1024:>6.0f} KB\n")
    worst = max(cost.cpu_ms for cost in many.values())
    sys.stdout.write(f"dearest page: {worst:.0f} ms  <= {CPU_MS_MAX}\n")


def _measured(folder: Path, number: int, rounds: int) -> dict[str, Cost]:
    folder.mkdir()
    installed = install(folder, None, (str(Path(sys.executable).parent / "countersign"),))
    asyncio.run(fill(installed, number))
    own = {"CONSOLE": "true", "PUBLIC_URL": URL, "RATE_LIMIT": "off"}
    # The page of the service's state looks as the doctor does: by the environment of the process.
    os.environ.update(installed.environment)
    os.environ.update({_PREFIX + name: value for name, value in own.items()})
    return asyncio.run(_pages(os.environ, rounds))


async def _pages(environment: Mapping[str, str], rounds: int) -> dict[str, Cost]:
    async with open_deployment(load_settings(environment)) as deployment:
        (account,) = await deployment.database.scan(all_accounts)
        ada = ("Ada", Role.COMPLIANCE, DeploymentReach())
        person = (await deployment.database.write(invite, deployment.people, *ada)).person_id
        token = compose_token(PERSON_SESSION, secrets.token_bytes(PERSON_ENTROPY_BYTES))
        digest = deployment.access.secret.key_digest(token)
        await deployment.database.write(_sign_in, person, digest)
        notice = await deployment.notices.registry.in_force(NOTICE_ID, Mode.TEST)
        submission = initials(len(notice.content.bullets), SESSION_ID)
        who = vendor(account.id)
        made = await acknowledge(deployment.acknowledgments, who, notice, submission)
        app = App(deployment)
        browser = Browser(app, token, Host(deployment, app.handle).form_code(token))
        here = f"{ROOT}/{account.id}/test"
        search = f"{here}/orders"
        asked: dict[str, tuple[str, Mapping[str, str] | None]] = {
            "search by session": (f"{search}/-/find", {"query": SESSION_ID}),
            "search by identifier": (f"{search}/-/find", {"query": made.id}),
            "search for what is not there": (f"{search}/-/find", {"query": "nothing"}),
            "an order": (f"{search}/{made.id}", None),
            "orders that wait": (f"{search}?waiting=true", None),
            "refused orders of a day": (f"{search}?state=refused&day=2026-11-24", None),
        }
        may = Host(deployment, app.handle).scopes(Role.COMPLIANCE, staff=True)
        for (is_all, name), scope in SCOPES.items():
            if scope in may:
                place = f"{ROOT}/{DEPLOYMENT}" if is_all else here
                asked[f"{name}, of all" if is_all else name] = f"{place}/{name}", None
        return {page: await _cost(browser, *one, rounds) for page, one in asked.items()}


async def _cost(browser: Browser, path: str, form: Mapping[str, str] | None, rounds: int) -> Cost:
    await browser.ask(path, form)
    with _counted() as statements:
        size = len((await browser.ask(path, form)).body)
    taken = []
    for _ in range(rounds):
        begun = time.process_time()
        await browser.ask(path, form)
        taken.append((time.process_time() - begun) * 1000)
    return Cost(median(taken), len(statements), size)


@contextmanager
def _counted() -> Iterator[list[str]]:
    """The statements that any connection of this process executes meanwhile."""
    found: list[str] = []

    def note(*given: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
        found.append(str(given[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def _sign_in(connection: Connection, person_id: str, digest: bytes) -> None:
    time_ns = time.time_ns()
    times = dict.fromkeys(("created_at", "last_used_at", "passkey_at"), from_ns(time_ns))
    row = {"id": timed_id("pss", time_ns, secrets.token_bytes(8)), "person_id": person_id}
    connection.execute(insert(person_sessions), row | {"digest": digest} | times)


if __name__ == "__main__":
    main()
