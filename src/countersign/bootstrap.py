"""Where concrete classes meet: the only module that names them."""

from __future__ import annotations

import getpass
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
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
from countersign.db.engine import database_url, is_embedded
from countersign.errors import (
    AnchoringFailed,
    InvalidArgument,
    InvalidConfiguration,
)
from countersign.events.model import EventIds
from countersign.events.room import Events
from countersign.evidence.errors import EvidenceError
from countersign.evidence.policy import Witness
from countersign.identity.registry import IdentityProviders
from countersign.identity.transport import Reach
from countersign.log.anchor import AnchorLog
from countersign.log.anchor_client import AnchorClient
from countersign.log.append_record import Recorder
from countersign.log.begin import BeginLog
from countersign.log.check import CheckLog
from countersign.log.check_records import CheckRecords
from countersign.log.head_files import HeadFiles
from countersign.log.integrity_sql import Integrity
from countersign.log.journal import Journal
from countersign.log.keys import LogKeys
from countersign.log.policy import LogPolicy, read_witnesses
from countersign.log.recover import RecoverLog
from countersign.log.room import LogRoom
from countersign.log.seal import SealLog
from countersign.log.sequencer import Sequencer
from countersign.log.sql import LogRecords
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
        await deployment.log.begin.first(settings.public_url)
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
        vault_room = open_vault(access, encryption, own_file, clock, entropy)
        vault = vault_room.vault
        heads = HeadFiles(settings.log_head_dir)
        sequencer = Sequencer(clock, heads)
        journal = Journal(sequencer if is_embedded(url) else None)
        log = LogRecords(database, journal, sequencer)
        recorder = Recorder(vault, clock, entropy)
        log_keys = LogKeys(log, sequencer, vault, clock, entropy)
        await log_keys.load()
        seal_log = SealLog(log, sequencer, heads, log_keys, clock)
        lines, witnesses = _witnesses(settings.witness_policy_file)
        policy = LogPolicy(log, lines, clock)
        log_room = LogRoom(
            access=access,
            vault=vault_room,
            store=log,
            journal=journal,
            recorder=recorder,
            seal=seal_log,
            begin=BeginLog(
                store=log,
                sequencer=sequencer,
                heads=heads,
                keys=log_keys,
                recorder=recorder,
                clock=clock,
            ),
            recover=RecoverLog(log, heads, recorder),
            policy=policy,
            check=CheckLog(log, heads, log_keys, CheckRecords(Integrity(database), vault)),
            anchor=_anchor_log(settings, log, seal_log, witnesses, clock),
        )
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
                    store=log,
                    notices=notice_rows,
                    accounts=access.account_rows,
                    seal_log=seal_log,
                    policy=policy,
                    certificates=certificates,
                    stamped_at=_stamped_at,
                    public_url=settings.public_url,
                ),
                export=ExportAcknowledgments(find),
                client_ip_header=settings.client_ip_header,
                trusted_proxies=settings.trusted_proxies,
            ),
            clearances=open_clearances(log_room, registry, floor, settings.public_url),
            webhooks=open_webhooks(access, events, vault, settings),
            sandbox=SandboxRoom(buyers=buyers, events=events),
            operations=open_operations(settings, notices, heads),
        )


def _operator() -> str:
    """Who runs this process; what is written down of an operator's acts."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def _witnesses(file: Path | None) -> tuple[bytes | None, Sequence[Witness]]:
    """The lines of the operator's witness policy, and the witnesses in it."""
    if file is None:
        return None, ()
    try:
        return read_witnesses(file.read_bytes())
    except (OSError, EvidenceError, InvalidArgument) as error:
        msg = f"COUNTERSIGN_WITNESS_POLICY_FILE: {file} cannot be used: {error}."
        raise InvalidConfiguration(msg) from error


def _anchor_log(
    settings: Settings,
    log: LogRecords,
    seal_log: SealLog,
    witnesses: Sequence[Witness],
    clock: Clock,
) -> AnchorLog:
    request: Callable[[bytes], bytes] = bytes
    check: Callable[[bytes, bytes], str] = _no_check
    if settings.timestamp_urls:
        try:
            from countersign.log import timestamps  # noqa: PLC0415 - an optional extra
        except ImportError as error:
            msg = (
                "COUNTERSIGN_TIMESTAMP_URLS needs the package rfc3161-client, which is not "
                "installed."
            )
            raise InvalidConfiguration(msg) from error
        request, check = timestamps.timestamp_request, timestamps.check_timestamp
    return AnchorLog(
        store=log,
        seal_log=seal_log,
        post=AnchorClient().post,
        witnesses=witnesses,
        authorities=settings.timestamp_urls,
        request=request,
        check=check,
        clock=clock,
    )


def _stamped_at(token: bytes) -> datetime | None:
    """The time that a stored RFC 3161 response states; None without the package that reads it."""
    try:
        from countersign.log import timestamps  # noqa: PLC0415 - an optional extra
    except ImportError:
        return None
    return timestamps.stamped_at(token)


def _no_check(_token: bytes, _over: bytes) -> str:
    raise AnchoringFailed


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
