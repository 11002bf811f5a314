"""Where concrete classes meet: the only module that names them."""

from __future__ import annotations

import getpass
import os
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, TypeVar

from countersign import notices as shipped_notices
from countersign.access.room import Access, open_access
from countersign.access.secret_file import make_secret, open_secret
from countersign.acknowledgments.acknowledge import Acknowledge
from countersign.acknowledgments.certificate import Certificates
from countersign.acknowledgments.export import ExportAcknowledgments
from countersign.acknowledgments.find import FindAcknowledgments
from countersign.acknowledgments.proof import ProveAcknowledgment
from countersign.acknowledgments.room import Acknowledgments
from countersign.acknowledgments.sql import Acknowledgments as AcknowledgmentRows
from countersign.buyers.room import Buyers, open_buyers
from countersign.buyers.rules import VerificationRules
from countersign.clearances.room import Clearances, open_clearances
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
from countersign.log.room import LogRoom, open_log
from countersign.notices.notice_file import NOTICE_BYTES_MAX
from countersign.notices.publish import Publication, PublishNotices
from countersign.notices.registry import Registry
from countersign.notices.room import Notices
from countersign.notices.sql import Notices as NoticeRows
from countersign.operations.room import Operations, open_operations
from countersign.ports import Clock, Entropy
from countersign.privacy.restore import finish_restore
from countersign.privacy.room import Privacy, open_privacy
from countersign.sandbox.room import SandboxRoom
from countersign.vault.key_encryption import KeyRing, key_source
from countersign.vault.key_file import key_file, make_first_key
from countersign.vault.room import VaultRoom, open_vault
from countersign.webhooks.room import Webhooks, open_webhooks

R = TypeVar("R")

_SHIPPED: Final = "shipped:"


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
        published = [
            await deployment.notices.publish.publish(data, _SHIPPED + name)
            for name, data in shipped_notice_files().items()
        ]
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
    certificates = Certificates()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url))
        stack.push_async_callback(certificates.close)
        access = open_access(database, secret, operator=_operator(), clock=clock, entropy=entropy)
        audit, test_clocks = access.audit, access.test_clocks
        own_file = key_file(settings.key_encryption_key)
        vault_room = open_vault(access, encryption, own_file)
        vault = vault_room.vault
        log_room = await open_log(vault_room, settings)
        journal, recorder = log_room.journal, log_room.recorder
        notice_rows = NoticeRows(database, journal)
        registry = Registry(notice_rows, clock, settings.time_zone)
        notices = Notices(
            log=log_room,
            rows=notice_rows,
            registry=registry,
            publish=PublishNotices(
                store=notice_rows,
                registry=registry,
                recorder=recorder,
                audit=audit,
                clock=clock,
                entropy=entropy,
            ),
        )
        floor = VerificationRules(
            minimum_age=settings.minimum_age, validity_days=settings.verification_days
        )
        factory = IdentityProviders(secret.document_fingerprint, clock, _reach(settings))
        buyers = open_buyers(log_room, factory, floor, settings.public_url)
        stack.push_async_callback(buyers.providers.close)
        acknowledgment_rows = AcknowledgmentRows(database, journal)
        find = FindAcknowledgments(acknowledgment_rows, database, secret, vault)
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
            acknowledgments=Acknowledgments(
                notices=notices,
                acknowledge=Acknowledge(
                    store=acknowledgment_rows,
                    secret=secret,
                    vault=vault,
                    clocks=test_clocks,
                    clock=clock,
                    entropy=entropy,
                ),
                find=find,
                prove=ProveAcknowledgment(
                    find=find,
                    log=log_room,
                    notices=notice_rows,
                    certificates=certificates,
                    public_url=settings.public_url,
                ),
                export=ExportAcknowledgments(find),
                client_ip_header=settings.client_ip_header,
                trusted_proxies=settings.trusted_proxies,
            ),
            clearances=open_clearances(log_room, registry, floor, settings.public_url),
            webhooks=open_webhooks(access, events, vault, settings),
            sandbox=SandboxRoom(buyers=buyers, events=events),
            operations=open_operations(settings, notices, log_room.heads),
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


async def refuse_changed_notices(deployment: Deployment) -> None:
    """Refuse to go on where the file of a published notice version holds other words now.

    Raises:
        NoticeFileChanged: with every such file.
    """
    files = {_SHIPPED + name: data for name, data in shipped_notice_files().items()}
    for source in await deployment.notices.publish.sources():
        if not source.startswith(_SHIPPED):
            files[source] = _read_if_there(source)
    await deployment.notices.publish.refuse_changed(files)


def _read_if_there(place: str) -> bytes:
    """The file's bytes; none where it is gone, for what it said is in the database."""
    try:
        file = Path(place)
        is_notice = file.is_file() and file.stat().st_size <= NOTICE_BYTES_MAX
        return file.read_bytes() if is_notice else b""
    except OSError:
        return b""


def shipped_notice_files() -> dict[str, bytes]:
    """The notice files of this release by name, in order."""
    folder = resources.files(shipped_notices)
    files = [f for f in folder.iterdir() if f.name.endswith(".toml")]
    return {f.name: f.read_bytes() for f in sorted(files, key=lambda f: f.name)}
