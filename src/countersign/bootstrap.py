"""Where concrete classes meet: the only module that names them."""

from __future__ import annotations

import getpass
import os
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from countersign.access.room import Access, open_access
from countersign.access.secret_file import make_secret, open_secret
from countersign.access.test_clocks import ManageTestClock
from countersign.acknowledgments.room import Acknowledgments, open_acknowledgments
from countersign.buyers.admin import OperateBuyers
from countersign.buyers.admin_sql import OperatedBuyers
from countersign.buyers.evaluate_session import JudgeSession
from countersign.buyers.expire import ExpireBuyers
from countersign.buyers.expiry_sql import Expiries
from countersign.buyers.poll_sessions import SettleSessions
from countersign.buyers.room import Buyers
from countersign.buyers.rules import VerificationRules
from countersign.buyers.sandbox_faults import SandboxFaults
from countersign.buyers.sandbox_provider import Sandbox
from countersign.buyers.sessions_sql import PendingSessions
from countersign.buyers.settings import ManageVerification
from countersign.buyers.settings_sql import SettingsOfAccounts
from countersign.buyers.sql import Buyers as BuyerRows
from countersign.buyers.verifications_sql import LiveVerifications
from countersign.buyers.verify import BuyerStatusQuery, VerifyBuyer
from countersign.buyers.watch_verifications import WatchVerifications
from countersign.clearances.room import Clearances, open_clearances
from countersign.clock import Clock, Entropy
from countersign.config import Settings
from countersign.db import schema
from countersign.db.database import Database
from countersign.db.engine import database_url
from countersign.errors import InvalidConfiguration
from countersign.events.model import EventIds
from countersign.events.room import Events
from countersign.identity.registry import IdentityProviders
from countersign.identity.transport import Reach
from countersign.log.begin import begin_first_logs
from countersign.log.journal import Journal
from countersign.log.room import LogRoom, open_log
from countersign.notices.publish import Publication, publish_shipped
from countersign.notices.room import Notices, open_notices
from countersign.operations.room import Operations, open_operations
from countersign.privacy.restore import finish_restore
from countersign.privacy.room import Privacy, open_privacy
from countersign.sandbox.helpers import MoveBuyer, TriggerEvent
from countersign.sandbox.room import SandboxRoom
from countersign.sandbox.sql import SandboxRows
from countersign.vault.key_encryption import KeyRing, key_source
from countersign.vault.key_file import key_file, make_first_key
from countersign.vault.room import VaultRoom, open_vault
from countersign.webhooks.room import Webhooks, open_webhooks

R = TypeVar("R")


class SystemClock:
    """The machine's clock. See `ports.Clock`."""

    time_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The rooms of one deployment, ready for use."""

    settings: Settings
    clock: Clock
    entropy: Entropy
    database: Database
    access: Access
    vault: VaultRoom
    log: LogRoom
    events: Events
    notices: Notices
    buyers: Buyers
    acknowledgments: Acknowledgments
    clearances: Clearances
    webhooks: Webhooks
    privacy: Privacy
    sandbox: SandboxRoom
    operations: Operations

    def room(self, kind: type[R]) -> R:
        """The room of this type; of `object`, the whole deployment."""
        rooms: tuple[object, ...] = (self, *(getattr(self, name) for name in self.__slots__))
        for room in rooms:
            if isinstance(room, kind):
                return room
        raise LookupError(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """What `initialise` found: the shipped notices, and whether the schema was made or changed."""

    published: Sequence[Publication]
    upgraded: bool


async def initialise(settings: Settings, entropy: Entropy = os.urandom) -> Initialised:
    """Make or upgrade a deployment; harmless when it is there already.

    Makes the data directory, the schema and the secret key, and publishes the shipped notices.

    Raises:
        InvalidConfiguration: the data directory or a key file in it cannot be made.
        DatabasePermissionDenied: there is something to make, and the role may not.
        WrongSecretKey: the database was initialised with another secret, or the file is gone.
        SchemaMismatch, StorageUnavailable, UnsupportedSqlite: see `db.schema`.
        NoticeVersionConflict: a shipped notice has changed.
    """
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        msg = f"The data directory {settings.data_dir} cannot be used: {error.strerror}."
        raise InvalidConfiguration(msg) from error
    url = database_url(settings.database_url, settings.data_dir)
    upgraded = schema.upgrade(url)
    make_secret(settings.secret_key_file, url, entropy)
    make_first_key(settings.key_encryption_key, url, entropy)
    async with open_deployment(settings, entropy=entropy) as deployment:
        await finish_restore(deployment.privacy)
        await begin_first_logs(deployment.log, settings.public_url)
        await deployment.clearances.keys.begin()
        published = await publish_shipped(deployment.notices)
    return Initialised(published=published, upgraded=upgraded)


@asynccontextmanager
async def open_deployment(
    settings: Settings, *, clock: Clock | None = None, entropy: Entropy | None = None
) -> AsyncIterator[Deployment]:
    """Open an initialised deployment.

    Raises:
        NotInitialised, SchemaMismatch: `countersign init` has to run first.
        WrongSecretKey: the secret key file is not that of the database.
        StorageUnavailable: the database cannot be reached.
    """
    clock, entropy = clock or SystemClock(), entropy or os.urandom
    url = database_url(settings.database_url, settings.data_dir)
    schema.check(url)
    secret = open_secret(settings.secret_key_file, url)
    encryption = KeyRing(key_source(settings.key_encryption_key), entropy)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url))
        sandbox_rows = SandboxRows(database, Journal(None))
        access = open_access(
            database, secret, sandbox_rows, operator=_operator(), clock=clock, entropy=entropy
        )
        test_clocks = access.test_clocks
        own_file = key_file(settings.key_encryption_key)
        vault_room = open_vault(access, encryption, own_file)
        vault = vault_room.vault
        log_room = await open_log(vault_room, settings)
        journal, recorder = log_room.journal, log_room.recorder
        sandbox_rows = SandboxRows(database, journal)
        notices = open_notices(log_room, settings.time_zone)
        acknowledgments = open_acknowledgments(settings, notices)
        stack.push_async_callback(acknowledgments.certificates.close)
        floor = VerificationRules(
            minimum_age=settings.minimum_age, validity_days=settings.verification_days
        )
        buyers = _open_buyers(settings, log_room, floor, sandbox_rows)
        stack.push_async_callback(buyers.settings.close)
        events = Events(access=access, ids=EventIds(secret.event_id_key()))
        yield Deployment(
            settings=settings,
            clock=clock,
            entropy=entropy,
            database=database,
            access=access,
            vault=vault_room,
            log=log_room,
            events=events,
            notices=notices,
            buyers=buyers,
            privacy=open_privacy(access, log_room, settings),
            acknowledgments=acknowledgments,
            clearances=open_clearances(log_room, notices.registry, floor, settings.public_url),
            webhooks=open_webhooks(access, events, vault, settings),
            sandbox=SandboxRoom(
                access=access,
                buyers=buyers,
                clock=ManageTestClock(sandbox_rows, test_clocks, clock),
                move_buyer=MoveBuyer(
                    store=sandbox_rows,
                    clocks=test_clocks,
                    recorder=recorder,
                    secret=secret,
                    clock=clock,
                    entropy=entropy,
                ),
                trigger_event=TriggerEvent(
                    store=sandbox_rows, ids=events.ids, clock=clock, entropy=entropy
                ),
            ),
            operations=open_operations(settings, notices, log_room.heads),
        )


def _open_buyers(
    settings: Settings, log: LogRoom, floor: VerificationRules, sandbox_rows: SandboxRows
) -> Buyers:
    access, vault, recorder = log.access, log.vault.vault, log.recorder
    database, secret, clock, entropy = access.database, access.secret, access.clock, access.entropy
    manage = ManageVerification(
        store=SettingsOfAccounts(database),
        access=access,
        factory=IdentityProviders(secret.document_fingerprint, clock, _reach(settings)),
        vault=vault,
        floor=floor,
        audit=access.audit,
        clock=clock,
        entropy=entropy,
    )
    judge = JudgeSession(
        store=LiveVerifications(database, log.journal),
        recorder=recorder,
        vault=vault,
        secret=secret,
        watch=WatchVerifications(clock),
        clock=clock,
        entropy=entropy,
    )
    rows = BuyerRows(database, log.journal)
    faults = SandboxFaults(sandbox_rows, access.test_clocks, clock)
    return Buyers(
        log=log,
        verify=VerifyBuyer(
            store=rows,
            manage=manage,
            judge=judge,
            sandbox=Sandbox(),
            recorder=recorder,
            secret=secret,
            clocks=access.test_clocks,
            faults=faults,
            clock=clock,
            entropy=entropy,
        ),
        status=BuyerStatusQuery(rows, floor, access.test_clocks, clock),
        settings=manage,
        poll=SettleSessions(
            store=PendingSessions(database),
            manage=manage,
            judge=judge,
            vault=vault,
            secret=secret,
            clock=clock,
        ),
        admin=OperateBuyers(
            store=OperatedBuyers(database),
            database=database,
            vault=vault,
            manage=manage,
            judge=judge,
            audit=access.audit,
            secret=secret,
            clocks=access.test_clocks,
            clock=clock,
        ),
        expire=ExpireBuyers(Expiries(database), access.test_clocks, clock),
        faults=faults,
    )


def _operator() -> str:
    """Who runs this process; what is written down of an operator's acts."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def _reach(settings: Settings) -> Reach:
    file = settings.provider_ca_file
    if file is not None:
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            why = error.strerror or "it contains none"
            msg = (
                f"COUNTERSIGN_PROVIDER_CA_FILE: {file} contains no certificates in PEM format: "
                f"{why}."
            )
            raise InvalidConfiguration(msg) from None
    return Reach(
        concurrency=settings.provider_concurrency,
        proxy_url=settings.provider_proxy_url,
        ca_file=file,
    )
