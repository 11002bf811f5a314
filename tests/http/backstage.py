"""Acts of operators and database administrators while a server runs.

The services are the ones behind the command line, called in this process: starting a command for
every account and key would take longer than the tests themselves. A vendor's view always comes over
HTTP.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import httpx2
from msgspec import to_builtins
from sqlalchemy import Connection, make_url, text

from countersign.base.config import load_settings
from countersign.base.db.engine import Purpose, database_url, open_engine
from countersign.base.errors import StorageUnavailable
from countersign.base.snapshot import STALENESS_SECONDS
from countersign.base.values import Mode
from countersign.core.access.account import create_account, find_account
from countersign.core.access.key import Scope
from countersign.core.access.keys import create_key, revoke_key, rotate_key
from countersign.core.notices import publish as publishing
from countersign.core.notices.notice_file import parse_notice_file
from countersign.operate import bootstrap
from tests.support import postgres
from tests.support.acts import done
from tests.support.service import Deployment, Server

T = TypeVar("T")

_numbers = itertools.count(1)
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing is encrypted on the loopback; loading certificates would take longer than a test."""


def make_client(server: Server, key: str | None = None, **headers: str) -> httpx2.Client:
    """Make a client that sends this key."""
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.Client(base_url=server.url, headers=headers, timeout=30.0, verify=_NO_TLS)


@dataclass(frozen=True)
class Key:
    """A key just made."""

    id: str
    token: str


@dataclass(frozen=True)
class Vendor:
    """An account with a client for each mode."""

    account_id: str
    test: httpx2.Client
    live: httpx2.Client

    def client(self, mode: str) -> httpx2.Client:
        return self.live if mode == "live" else self.test


class Operator:
    """The operator of a deployment, who is its database administrator too."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        settings = load_settings(deployment.environment)
        self._runner = asyncio.Runner()
        self._opened = bootstrap.open_deployment(settings)
        self._engine = open_engine(
            database_url(settings.database_url, settings.data_dir), Purpose.WRITE
        )

    def __enter__(self) -> Self:
        self._services = _apart(lambda: self._runner.run(self._opened.__aenter__()))
        return self

    def __exit__(self, *_: object) -> None:
        _apart(lambda: self._runner.run(self._opened.__aexit__(None, None, None)))
        _apart(self._runner.close)
        self._engine.dispose()

    def account(self) -> str:
        """Make an account; gives its id."""
        name = f"vendor {next(_numbers)}"

        async def work(opened: bootstrap.Deployment) -> str:
            return (await create_account(opened.access, name)).id

        return self._do(work)

    def key(
        self,
        account_id: str,
        mode: str = "test",
        *,
        scopes: Sequence[Scope] | None = None,
        lifetime: timedelta | None = None,
    ) -> Key:
        return self.keys(account_id, [(mode, scopes)], lifetime=lifetime)[0]

    def keys(
        self,
        account_id: str,
        wanted: Sequence[tuple[str, Sequence[Scope] | None]],
        *,
        lifetime: timedelta | None = None,
    ) -> list[Key]:
        """Make keys with these modes and scopes; without scopes: those of a vendor's server."""

        async def work(opened: bootstrap.Deployment) -> list[Key]:
            account = await find_account(opened.access, account_id)
            made = [
                await done(
                    create_key,
                    opened.access,
                    account.id,
                    Mode(mode),
                    frozenset(scopes) if scopes else None,
                    lifetime=lifetime,
                )
                for mode, scopes in wanted
            ]
            return [Key(new.key.id, new.token) for new in made]

        return self._do(work)

    def rotate(self, key_id: str, overlap: timedelta) -> Key:
        async def work(opened: bootstrap.Deployment) -> Key:
            new = await done(rotate_key, opened.access, key_id, overlap)
            return Key(new.key.id, new.token)

        return self._do(work)

    def revoke(self, key_id: str) -> None:
        async def work(opened: bootstrap.Deployment) -> None:
            await done(revoke_key, opened.access, key_id)

        self._do(work)

    def publish(self, *files: str, reviewed: bool = True, rule: str | None = None) -> None:
        """Publish the notices in these TOML texts, and sign them off unless `reviewed` is false.

        `rule` is the version of the rule that is signed off, too.
        """

        async def work(opened: bootstrap.Deployment) -> None:
            for file in files:
                content = parse_notice_file(file.encode())
                await done(publishing.publish, opened.notices, content, "")
                if reviewed:
                    await done(
                        publishing.review,
                        opened.notices,
                        content.id,
                        content.version,
                        by="A. Reader",
                        against="https://law.example/text",
                        rule=rule,
                    )

        self._do(work)
        time.sleep(STALENESS_SECONDS)

    def withdraw(self, notice_id: str, version: str, *, enjoined: bool = False) -> None:
        async def work(opened: bootstrap.Deployment) -> None:
            await done(
                publishing.withdraw,
                opened.notices,
                notice_id,
                version,
                reason="a test",
                enjoined=enjoined,
            )

        self._do(work)
        time.sleep(STALENESS_SECONDS)

    def reinstate(self, notice_id: str, version: str) -> None:
        async def work(opened: bootstrap.Deployment) -> None:
            await done(
                publishing.review,
                opened.notices,
                notice_id,
                version,
                by="A. Reader",
                against="https://law.example/text",
                reinstates=True,
            )

        self._do(work)
        time.sleep(STALENESS_SECONDS)

    @contextmanager
    def vendor(self, server: Server) -> Iterator[Vendor]:
        """Make an account with a test and a live key, and clients of this server for them."""
        name = f"vendor {next(_numbers)}"

        async def work(opened: bootstrap.Deployment) -> tuple[str, list[str]]:
            account = await create_account(opened.access, name)
            made = [
                await done(create_key, opened.access, account.id, mode)
                for mode in (Mode.TEST, Mode.LIVE)
            ]
            return account.id, [new.token for new in made]

        account_id, tokens = self._do(work)
        with ExitStack() as stack:
            clients = [stack.enter_context(make_client(server, token)) for token in tokens]
            yield Vendor(account_id, *clients)

    def execute(self, statement: str, **values: object) -> int:
        """Change the database behind the service's back; gives the number of rows."""
        with self.transaction() as connection:
            return connection.execute(text(statement), values).rowcount

    def rows(self, query: str, **values: object) -> Sequence[Mapping[Any, Any]]:
        """Look into the database."""
        with self.transaction() as connection:
            return connection.execute(text(query), values).mappings().all()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A writing transaction: on SQLite it keeps every other writer waiting."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def acts_held(self) -> Iterator[None]:
        """No act with an Idempotency-Key is committed inside this block; reading goes on."""
        with self.transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("LOCK TABLE idempotency_keys IN EXCLUSIVE MODE"))
            yield

    def act(self, work: Callable[[bootstrap.Deployment], Coroutine[Any, Any, T]]) -> T:
        """Do anything else that an operator can."""
        return self._do(work)

    def _do(self, work: Callable[[bootstrap.Deployment], Coroutine[Any, Any, T]]) -> T:
        async def done() -> T:
            try:
                return await work(self._services)
            except StorageUnavailable as error:
                # This loop runs only for calls: without a pause it never hears that the database
                # responds again, and each call after a late one would be refused.
                await asyncio.sleep(error.retry_after)
                raise

        return _apart(lambda: self._runner.run(done()))


def another_deployment(
    data_dir: Path, postgres_server: postgres.PostgresServer | None = None, **settings: str
) -> Deployment:
    """An initialised deployment: on SQLite, or on a database of its own of this PostgreSQL.

    With PUBLIC_URL as the only setting it is a copy of an initialised one: a tenth of the time.
    Copies have the same keys and logs; a test of two deployments runs `init` for the second.
    """
    if settings.keys() - _COPIED:
        return _initialised(data_dir, postgres_server, settings)
    template = _template(postgres_server, settings.get("PUBLIC_URL"))
    shutil.copytree(template.data_dir, data_dir)
    if postgres_server is not None:
        database = make_url(template.settings["DATABASE_URL"]).database
        settings["DATABASE_URL"] = postgres.fresh_database(postgres_server, template=database)
    return Deployment(data_dir=data_dir, settings=settings)


_COPIED: Final = {"PUBLIC_URL"}


@cache
def _template(
    postgres_server: postgres.PostgresServer | None, public_url: str | None
) -> Deployment:
    place = Path(tempfile.mkdtemp(prefix="countersign-template-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    settings = {} if public_url is None else {"PUBLIC_URL": public_url}
    return _initialised(place / "data", postgres_server, settings)


def _initialised(
    data_dir: Path, postgres_server: postgres.PostgresServer | None, settings: dict[str, str]
) -> Deployment:
    if postgres_server is not None:
        settings["DATABASE_URL"] = postgres.fresh_database(postgres_server)
    made = Deployment(data_dir=data_dir, settings=settings)
    _apart(lambda: asyncio.run(bootstrap.initialise(load_settings(made.environment))))
    return made


def _apart(work: Callable[[], T]) -> T:
    """Run it in another thread: Playwright keeps an event loop running in that of the tests."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def notice_json(*args: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401 - as `notice_file`
    """The members of that notice file, as the API takes them."""
    content: dict[str, Any] = to_builtins(parse_notice_file(notice_file(*args, **given).encode()))
    return content


def notice_file(
    notice_id: str,
    version: str,
    *,
    lines: int = 3,
    effective_from: str = "2020-01-01",
    applies_to: str = "",
) -> str:
    """A notice file; its words name the notice and the version."""
    words = f"{notice_id} {version}"
    bullets = "".join(
        f'[[bullets]]\nid = "line-{n}"\ntext = "Line {n} of {words}."\n'
        for n in range(1, lines + 1)
    )
    return f"""\
id = "{notice_id}"
version = "{version}"
title = "Title of {words}"
heading = "Heading of {words}"
attestation_text = "I have read {words}."
source_law = "Law of {words}"
source_bill = "Bill of {words}"
jurisdiction = "US-XX"
language = "en"
effective_from = {effective_from}
source_url = "https://law.example/{notice_id}"
{bullets}{applies_to}"""
