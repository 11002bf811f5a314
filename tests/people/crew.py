"""A deployment with a console, and people with passkeys who use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from countersign.base.config import PREFIX
from countersign.base.values import Mode
from countersign.core.access.account import create_account
from countersign.core.access.reach import reach_of
from countersign.core.access.role import Role
from countersign.core.gate.route import Reply
from countersign.operate.bootstrap import Deployment
from countersign.server.app import App
from countersign.server.console_host import Answer, Host
from countersign.staff.people import roles
from tests.http.backstage import another_deployment
from tests.remembered.device import ORIGIN, Passkey
from tests.sealing.inside import ShiftedClock, opened
from tests.support.acts import done
from tests.support.in_process import call_of, encoded, whole
from tests.support.service import Deployment as Deployed

T = TypeVar("T")


@dataclass
class Person:
    """A person who accepted an invitation."""

    id: str
    passkey: Passkey
    session: str


class Console:
    """The application in this process, with the host interface of its pages."""

    def __init__(self, deployment: Deployment, clock: ShiftedClock) -> None:
        self.deployment, self.clock = deployment, clock
        self.app = App(deployment)
        self.host = Host(deployment, self.app.handle)

    async def account(self, name: str) -> str:
        return (await create_account(self.deployment.access, name)).id

    async def link(self, name: str, role: Role, account: str | None = None) -> tuple[str, str]:
        """Invite a person; gives the id, and the token of the link."""
        invited = await done(
            roles.invite, self.deployment.people, name, role, reach_of(account or "", Mode.LIVE)
        )
        assert invited.link is not None
        return invited.person_id, token_of(invited.link)

    async def person(self, name: str, role: Role, account: str | None = None) -> Person:
        """Invite a person, who comes in."""
        id_, link = await self.link(name, role, account)
        passkey = Passkey()
        return Person(id_, passkey, await self.come_in(link, passkey))

    async def link_options(self, link: str) -> dict[str, Any] | None:
        """The options for the passkey of a link; None: the link does not work."""
        says = await self.host.link_says(link)
        return None if says is None else says.options

    async def come_in(self, link: str, passkey: Passkey) -> str:
        """The session token of a person who comes in."""
        options = await self.link_options(link)
        assert options is not None
        signed = await self.host.use_link(link, passkey.create(dict(options), origin=self.host.url))
        assert signed is not None
        return signed.token

    async def sign_in(self, passkey: Passkey, **changes: Any) -> str | None:  # noqa: ANN401 - as the device takes
        """The token of a new session; None: refused."""
        self.clock.seconds += 1
        asked = self.host.passkey_options()
        assert asked is not None
        options, state = asked
        signed = await self.host.sign_in(state, passkey.sign(dict(options), **changes))
        return None if signed is None else signed.token

    async def sign_out(self, session: str) -> None:
        """End this session."""
        own = (await self.ask(session, "/v1/me/sessions")).data["data"]
        this = next(one["session_id"] for one in own if one["is_this"])
        assert (await self.ask(session, f"/v1/me/sessions/{this}/end", "POST", body={})).ok

    async def ask(self, session: str, path: str, method: str = "GET", **given: Any) -> Answer:  # noqa: ANN401 - as `call` takes
        """Ask the API as a page does."""
        return await self.host.call(method, path, session=session, **given)

    async def http(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Reply:
        """Ask as from outside."""
        return await self.app.handle(call_of(method, path, encoded(headers or {})), whole(body))


def token_of(url: str | None) -> str:
    """The token of a link, which no server sees."""
    assert url is not None
    return url.partition("#")[2]


def code_of(reply: Reply) -> str:
    """The code of a refusal."""
    return str(json.loads(reply.body)["error"]["code"])


def in_console(
    folder: Path,
    work: Callable[[Console], Awaitable[T]],
    *deployed: Deployed,
    **settings: str,
) -> T:
    """The result of this function with this deployment, or a new one, whose console is on."""
    there = deployed[0] if deployed else another_deployment(folder / "console")
    own = {"PUBLIC_URL": ORIGIN, "CONSOLE": "true", "RATE_LIMIT": "off"} | settings

    async def run() -> T:
        clock = ShiftedClock()
        async with opened(there, clock, **own) as deployment:
            return await work(Console(deployment, clock))

    with pytest.MonkeyPatch.context() as patch:
        # The doctor in a server reads the environment of its process.
        for name, value in there.environment.items():
            patch.setenv(name, value)
        for name, value in own.items():
            patch.setenv(PREFIX + name, value)
        return asyncio.run(run())
