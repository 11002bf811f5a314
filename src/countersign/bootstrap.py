"""Where concrete classes meet: the only module that names them."""

from __future__ import annotations

import getpass
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from importlib import resources
from pathlib import Path
from typing import Final

from countersign import notices as shipped_notices
from countersign.config import Settings
from countersign.domain.event import EventIds
from countersign.domain.notice_file import NOTICE_BYTES_MAX
from countersign.domain.verification_rules import VerificationRules
from countersign.errors import (
    AnchoringFailed,
    BackupFailed,
    InvalidArgument,
    InvalidConfiguration,
    WrongSecretKey,
)
from countersign.evidence.errors import EvidenceError
from countersign.evidence.policy import Witness
from countersign.ports import Clock, Entropy
from countersign.providers.address_guard import AddressGuard
from countersign.providers.anchoring import AnchorClient
from countersign.providers.identity.registry import IdentityProviders
from countersign.providers.identity.transport import Reach
from countersign.providers.key_encryption import (
    KEY_BYTES,
    KeyRing,
    key_source,
    key_text,
)
from countersign.providers.key_file import KeyFile, key_file, loose_mode, write_key_file
from countersign.providers.sandbox import Sandbox
from countersign.providers.webhook_sender import WebhookSender
from countersign.services.accounts import Accounts, Keys
from countersign.services.acknowledge import Acknowledge
from countersign.services.anchor import AnchorLog
from countersign.services.authenticate import Authenticate
from countersign.services.begin_log import BeginLog
from countersign.services.certificate import Certificates
from countersign.services.check_log import CheckLog
from countersign.services.check_records import CheckRecords
from countersign.services.clear_order import ClearOrder
from countersign.services.clearance_keys import ClearanceKeys
from countersign.services.clearance_settings import ManageClearances
from countersign.services.clearance_token import ClearanceToken
from countersign.services.conformance import RunConformance
from countersign.services.conformance_watch import WatchVendors
from countersign.services.conformance_webhooks import ProbeWebhooks
from countersign.services.deliver_webhooks import DeliverWebhooks
from countersign.services.erase import Erase, EvidenceRetention
from countersign.services.events import ReadEvents
from countersign.services.expire_buyers import ExpireBuyers
from countersign.services.export import ExportAcknowledgments
from countersign.services.find_acknowledgments import FindAcknowledgments
from countersign.services.finish_restore import FinishRestore
from countersign.services.fulfil_order import FulfilOrder
from countersign.services.housekeeping import Housekeeping
from countersign.services.idempotency import Idempotency
from countersign.services.judge_session import JudgeSession
from countersign.services.log_keys import LogKeys
from countersign.services.log_policy import LogPolicy, read_witnesses
from countersign.services.operate_buyers import OperateBuyers
from countersign.services.operators import Audit
from countersign.services.prove import ProveAcknowledgment
from countersign.services.publish_notices import Publication, PublishNotices
from countersign.services.readiness import Readiness
from countersign.services.records import Recorder, seal_plaintext
from countersign.services.recover_log import RecoverLog
from countersign.services.registry import Registry
from countersign.services.rotate_key import RotateKeyEncryption
from countersign.services.sandbox_faults import SandboxFaults
from countersign.services.seal_log import SealLog
from countersign.services.secrets import SECRET_BYTES, DeploymentSecret
from countersign.services.settle_sessions import SettleSessions
from countersign.services.test_clocks import ManageTestClock, TestClocks
from countersign.services.test_helpers import MoveBuyer, TriggerEvent
from countersign.services.vault import Vault
from countersign.services.verification_settings import ManageVerification
from countersign.services.verify_buyer import BuyerStatusQuery, VerifyBuyer
from countersign.services.watch_verifications import WatchVerifications
from countersign.services.webhook_endpoints import WebhookEndpoints
from countersign.services.webhook_secrets import WebhookSecrets
from countersign.storage import accounts as accounts_store
from countersign.storage import backup as backups
from countersign.storage import housekeeping as housekeeping_store
from countersign.storage import schema, serving_role
from countersign.storage import webhooks as webhooks_store
from countersign.storage.acknowledgments import Acknowledgments
from countersign.storage.audit import AuditLog
from countersign.storage.buyers import Buyers
from countersign.storage.clearance_keys import ClearanceKeyRows, ClearanceSettings
from countersign.storage.clearances import Clearances
from countersign.storage.conformance import ConformanceRuns
from countersign.storage.data_keys import DataKeys
from countersign.storage.database import Database
from countersign.storage.deliveries import Deliveries
from countersign.storage.engine import database_url, is_embedded
from countersign.storage.erasure import Erasures
from countersign.storage.events import Events
from countersign.storage.expiries import Expiries
from countersign.storage.fulfilments import Fulfilments
from countersign.storage.heads import HeadFiles
from countersign.storage.idempotency import IdempotencyKeys
from countersign.storage.integrity import Integrity
from countersign.storage.journal import Journal
from countersign.storage.live_verifications import LiveVerifications
from countersign.storage.log import LogRecords
from countersign.storage.notices import Notices
from countersign.storage.operated_buyers import OperatedBuyers
from countersign.storage.pending_sessions import PendingSessions
from countersign.storage.plaintext import PlaintextDisclosures
from countersign.storage.restored import RestoredRecords
from countersign.storage.sandbox import SandboxRows
from countersign.storage.sequencer import Sequencer
from countersign.storage.verification_settings import SettingsOfAccounts

_CHECK_VALUE: Final = "secret_check"
_VAULT_VALUE: Final = "vault"
_SHIPPED: Final = "shipped:"


class SystemClock:
    """The machine's clock. See `ports.Clock`."""

    time_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)


class SystemEntropy:
    """The operating system's random bytes, drawn in one go for many uses. See `ports.Entropy`.

    A draw is a system call during which other threads run; on the hot path, waiting for one's turn
    again costs far more than the bytes.
    """

    _DRAW: Final = 16 * 1024

    def __init__(self) -> None:
        self._pool = b""
        self._used = 0
        self._lock = threading.Lock()
        # A child process must not give out the same bytes as its parent.
        os.register_at_fork(after_in_child=self._forget)

    def __call__(self, number: int) -> bytes:
        """That many bytes, each given out once."""
        with self._lock:  # threads of the database draw, too
            end = self._used + number
            if end > len(self._pool):
                if number > self._DRAW:
                    return os.urandom(number)
                self._pool, self._used, end = os.urandom(self._DRAW), 0, number
            given = self._pool[self._used : end]
            self._used = end
            return given

    def _forget(self) -> None:
        self._pool, self._used = b"", 0
        self._lock = threading.Lock()  # the parent's may have been held by another thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The services of one deployment, ready for use."""

    settings: Settings
    clock: Clock
    entropy: Entropy
    database: Database
    authenticate: Authenticate
    idempotency: Idempotency
    registry: Registry
    vault: Vault
    encryption: KeyRing
    data_keys: DataKeys
    rotate_key: RotateKeyEncryption
    plaintext: PlaintextDisclosures
    seal_log: SealLog
    begin_log: BeginLog
    recover_log: RecoverLog
    erase: Erase
    finish_restore: FinishRestore
    prove: ProveAcknowledgment
    policy: LogPolicy
    check_log: CheckLog
    anchor_log: AnchorLog
    export: ExportAcknowledgments
    log_store: LogRecords
    acknowledge: Acknowledge
    find_acknowledgments: FindAcknowledgments
    verify_buyer: VerifyBuyer
    buyer_status: BuyerStatusQuery
    clear_order: ClearOrder
    fulfil_order: FulfilOrder
    clearance_keys: ClearanceKeys
    manage_clearances: ManageClearances
    manage_verification: ManageVerification
    settle_sessions: SettleSessions
    operate_buyers: OperateBuyers
    audit: Audit
    accounts: Accounts
    keys: Keys
    publish_notices: PublishNotices
    expire_buyers: ExpireBuyers
    test_clocks: TestClocks
    manage_test_clock: ManageTestClock
    sandbox_faults: SandboxFaults
    move_buyer: MoveBuyer
    trigger_event: TriggerEvent
    read_events: ReadEvents
    webhook_endpoints: WebhookEndpoints
    deliver_webhooks: DeliverWebhooks
    watch_vendors: WatchVendors
    run_conformance: RunConformance
    housekeeping: Housekeeping
    readiness: Readiness


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
        SchemaMismatch, StorageUnavailable, UnsupportedSqlite: see `storage.schema`.
        NoticeVersionConflict: a shipped notice has changed.
    """
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        msg = f"The data directory {settings.data_dir} cannot be used: {error.strerror}."
        raise InvalidConfiguration(msg) from error
    url = database_url(settings.database_url, settings.data_dir)
    upgraded = schema.upgrade(url)
    path = settings.secret_key_file
    if not path.exists() and not schema.has_value(url, _CHECK_VALUE):
        write_key_file(path, DeploymentSecret.new_text(entropy(SECRET_BYTES)))
    secret = _read_secret(path)
    _check_secret(secret, schema.stored_value(url, _CHECK_VALUE, secret.check_value()))
    keys = key_file(settings.key_encryption_key)
    if keys is not None and not keys.exists() and not schema.has_value(url, _VAULT_VALUE):
        write_key_file(keys, key_text(entropy(KEY_BYTES)))
    current = KeyRing(key_source(settings.key_encryption_key), entropy).current_id
    schema.stored_value(url, _VAULT_VALUE, current)
    async with open_deployment(settings, entropy=entropy) as deployment:
        await seal_plaintext(deployment.plaintext, deployment.vault, entropy)
        await deployment.finish_restore()
        await deployment.begin_log.first(settings.public_url)
        await deployment.clearance_keys.begin()
        published = [
            await deployment.publish_notices.publish(data, _SHIPPED + name)
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
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    url = database_url(settings.database_url, settings.data_dir)
    schema.check(url)
    secret = _read_secret(settings.secret_key_file)
    _check_secret(secret, schema.stored_value(url, _CHECK_VALUE, secret.check_value()))
    encryption = KeyRing(key_source(settings.key_encryption_key), entropy)
    certificates = Certificates()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url))
        stack.push_async_callback(certificates.close)
        data_keys = DataKeys(database)
        vault = Vault(data_keys, encryption, clock, entropy)
        heads = HeadFiles(settings.log_head_dir)
        sequencer = Sequencer(clock, heads)
        journal = Journal(sequencer if is_embedded(url) else None)
        buyers, keys = Buyers(database, journal), accounts_store.Keys(database)
        notices = Notices(database, journal)
        acknowledgments = Acknowledgments(database, journal)
        log = LogRecords(database, journal, sequencer)
        recorder = Recorder(vault, clock, entropy)
        log_keys = LogKeys(log, sequencer, vault, clock, entropy)
        await log_keys.load()
        seal_log = SealLog(log, sequencer, heads, log_keys, clock)
        lines, witnesses = _witnesses(settings.witness_policy_file)
        policy = LogPolicy(log, lines, clock)
        audit = Audit(AuditLog(database), clock, entropy, _operator())
        accounts = Accounts(accounts_store.Accounts(database), audit, clock, entropy)
        floor = VerificationRules(
            minimum_age=settings.minimum_age, validity_days=settings.verification_days
        )
        manage = ManageVerification(
            store=SettingsOfAccounts(database),
            accounts=accounts,
            factory=IdentityProviders(
                secret.document_fingerprint,
                clock,
                _reach(settings),
            ),
            vault=vault,
            floor=floor,
            audit=audit,
            clock=clock,
            entropy=entropy,
        )
        stack.push_async_callback(manage.close)
        judge = JudgeSession(
            store=LiveVerifications(database, journal),
            recorder=recorder,
            vault=vault,
            secret=secret,
            watch=WatchVerifications(clock),
            clock=clock,
            entropy=entropy,
        )
        registry = Registry(notices, clock, settings.time_zone)
        sandbox_rows = SandboxRows(database, journal)
        test_clocks = TestClocks(sandbox_rows, clock)
        faults = SandboxFaults(sandbox_rows, test_clocks, clock)
        clearances = Clearances(database, journal)
        clearance_keys = ClearanceKeys(
            store=ClearanceKeyRows(database),
            vault=vault,
            audit=audit,
            clock=clock,
            entropy=entropy,
        )
        token = ClearanceToken(settings.public_url)
        find = FindAcknowledgments(acknowledgments, clearances, secret, vault)
        own_file = key_file(settings.key_encryption_key)
        erasures = Erasures(database, journal)
        read_events = ReadEvents(Events(database), EventIds(secret.event_id_key()), clock)
        deliveries = Deliveries(database)
        webhook_secrets = WebhookSecrets(vault, clock, entropy)
        private = settings.webhook_allow_private
        webhook_endpoints = WebhookEndpoints(
            store=webhooks_store.WebhookEndpoints(database),
            deliveries=deliveries,
            events=read_events,
            secrets=webhook_secrets,
            private=private,
            clock=clock,
            entropy=entropy,
        )
        conformance_runs = ConformanceRuns(database)
        watch_vendors = WatchVendors(conformance_runs, secret, clock, entropy)
        yield Deployment(
            settings=settings,
            clock=clock,
            entropy=entropy,
            database=database,
            authenticate=Authenticate(keys, secret, clock, entropy),
            idempotency=Idempotency(IdempotencyKeys(database), secret, clock, entropy),
            registry=registry,
            vault=vault,
            encryption=encryption,
            data_keys=data_keys,
            rotate_key=RotateKeyEncryption(
                file=None if own_file is None else KeyFile(own_file),
                encryption=encryption,
                vault=vault,
                data_keys=data_keys,
                entropy=entropy,
            ),
            plaintext=PlaintextDisclosures(database),
            seal_log=seal_log,
            begin_log=BeginLog(
                store=log,
                sequencer=sequencer,
                heads=heads,
                keys=log_keys,
                recorder=recorder,
                clock=clock,
            ),
            recover_log=RecoverLog(log, heads, recorder),
            erase=Erase(
                store=erasures,
                accounts=accounts_store.Accounts(database),
                notices=notices,
                secret=secret,
                recorder=recorder,
                audit=audit,
                evidence_retention=_evidence_retention(settings),
                clock=clock,
                entropy=entropy,
            ),
            finish_restore=FinishRestore(
                restored=RestoredRecords(database),
                erasures=erasures,
                recorder=recorder,
                secret=secret,
                clock=clock,
                entropy=entropy,
            ),
            check_log=CheckLog(log, heads, log_keys, CheckRecords(Integrity(database), vault)),
            anchor_log=_anchor_log(settings, log, seal_log, witnesses, clock),
            export=ExportAcknowledgments(find),
            prove=ProveAcknowledgment(
                find=find,
                store=log,
                notices=notices,
                accounts=accounts_store.Accounts(database),
                seal_log=seal_log,
                policy=policy,
                certificates=certificates,
                stamped_at=_stamped_at,
                public_url=settings.public_url,
            ),
            policy=policy,
            log_store=log,
            acknowledge=Acknowledge(
                store=acknowledgments,
                secret=secret,
                vault=vault,
                clocks=test_clocks,
                clock=clock,
                entropy=entropy,
            ),
            find_acknowledgments=find,
            verify_buyer=VerifyBuyer(
                store=buyers,
                manage=manage,
                judge=judge,
                sandbox=Sandbox(),
                recorder=recorder,
                secret=secret,
                clocks=test_clocks,
                faults=faults,
                clock=clock,
                entropy=entropy,
            ),
            buyer_status=BuyerStatusQuery(buyers, floor, test_clocks, clock),
            clear_order=ClearOrder(
                store=clearances,
                registry=registry,
                keys=clearance_keys,
                token=token,
                floor=floor,
                secret=secret,
                vault=vault,
                clocks=test_clocks,
                clock=clock,
                entropy=entropy,
            ),
            fulfil_order=FulfilOrder(
                store=Fulfilments(database, journal),
                keys=clearance_keys,
                token=token,
                recorder=recorder,
                secret=secret,
                vault=vault,
                clocks=test_clocks,
                clock=clock,
                entropy=entropy,
            ),
            clearance_keys=clearance_keys,
            manage_clearances=ManageClearances(ClearanceSettings(database), accounts, audit),
            manage_verification=manage,
            settle_sessions=SettleSessions(
                store=PendingSessions(database),
                manage=manage,
                judge=judge,
                vault=vault,
                secret=secret,
                clock=clock,
            ),
            operate_buyers=OperateBuyers(
                store=OperatedBuyers(database),
                audit_store=AuditLog(database),
                vault=vault,
                manage=manage,
                judge=judge,
                audit=audit,
                secret=secret,
                clocks=test_clocks,
                clock=clock,
            ),
            audit=audit,
            accounts=accounts,
            keys=Keys(keys, audit, secret, clock, entropy),
            publish_notices=PublishNotices(
                store=notices,
                registry=registry,
                recorder=recorder,
                audit=audit,
                clock=clock,
                entropy=entropy,
            ),
            expire_buyers=ExpireBuyers(Expiries(database), test_clocks, clock),
            test_clocks=test_clocks,
            manage_test_clock=ManageTestClock(sandbox_rows, test_clocks, clock),
            sandbox_faults=faults,
            move_buyer=MoveBuyer(
                store=sandbox_rows,
                clocks=test_clocks,
                recorder=recorder,
                secret=secret,
                clock=clock,
                entropy=entropy,
            ),
            trigger_event=TriggerEvent(
                store=sandbox_rows, events=read_events, clock=clock, entropy=entropy
            ),
            read_events=read_events,
            webhook_endpoints=webhook_endpoints,
            deliver_webhooks=DeliverWebhooks(
                store=deliveries,
                events=read_events,
                secrets=webhook_secrets,
                sender=WebhookSender(
                    AddressGuard(private=private),
                    timeout_seconds=settings.webhook_timeout_seconds,
                ),
                timeout_seconds=settings.webhook_timeout_seconds,
                private=private,
                clock=clock,
                entropy=entropy,
            ),
            watch_vendors=watch_vendors,
            run_conformance=RunConformance(
                conformance_runs,
                watch_vendors,
                ProbeWebhooks(
                    endpoints=webhook_endpoints,
                    events=read_events,
                    secrets=webhook_secrets,
                    sender=WebhookSender(
                        AddressGuard(private=private),
                        timeout_seconds=settings.webhook_timeout_seconds,
                    ),
                    private=private,
                    clock=clock,
                    entropy=entropy,
                ),
                clock,
                entropy,
            ),
            housekeeping=Housekeeping(housekeeping_store.Housekeeping(database), clock),
            readiness=Readiness(housekeeping_store.Housekeeping(database), heads, clock),
        )


def _operator() -> str:
    """Who runs this process; what is written down of an operator's acts."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def _evidence_retention(settings: Settings) -> EvidenceRetention:
    counts = settings.verification_days + settings.evidence_days
    return EvidenceRetention(
        verified=timedelta(days=counts), other=timedelta(days=settings.failed_evidence_days)
    )


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
            from countersign.providers import timestamps  # noqa: PLC0415 - an optional extra
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
        from countersign.providers import timestamps  # noqa: PLC0415 - an optional extra
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


def back_up_deployment(settings: Settings, target: Path, shred_keys: Path | None) -> None:
    """Write a backup of the embedded database. See `storage.backup.back_up`."""
    url = database_url(settings.database_url, settings.data_dir)
    backups.back_up(url, target, shred_keys, SystemClock.time_ns())


def restore_deployment(
    settings: Settings, source: Path, shred_keys: Path | None
) -> backups.Restored:
    """Make the embedded database from a backup. See `storage.backup.restore`."""
    url = database_url(settings.database_url, settings.data_dir)
    if not is_embedded(url):
        msg = (
            "`countersign restore` restores the embedded database. Restore PostgreSQL with its "
            "own tools; a running server explains how under /docs/operate#backup-and-restore."
        )
        raise BackupFailed(msg)
    own = source / backups.SHRED_KEYS
    given = shred_keys or (own if own.is_file() else None)
    return backups.restore(source, Path(url.database or ""), given)


async def refuse_changed_notices(deployment: Deployment) -> None:
    """Refuse to go on where the file of a published notice version holds other words now.

    Raises:
        NoticeFileChanged: with every such file.
    """
    files = {_SHIPPED + name: data for name, data in shipped_notice_files().items()}
    for source in await deployment.publish_notices.sources():
        if not source.startswith(_SHIPPED):
            files[source] = _read_if_there(source)
    await deployment.publish_notices.refuse_changed(files)


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


def _read_secret(path: Path) -> DeploymentSecret:
    try:
        return DeploymentSecret.from_text(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        msg = (
            f"The secret key file {path} is missing. Restore it, or set "
            "COUNTERSIGN_SECRET_KEY_FILE to its path: without it no API key works."
        )
        raise WrongSecretKey(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The secret key file {path} cannot be read: {error}."
        raise WrongSecretKey(msg) from error


def check_serving_role(settings: Settings) -> None:
    """On PostgreSQL, find out whether the role may do all that a server does.

    Raises:
        DatabasePermissionDenied: with every right that is missing.
        StorageUnavailable: the database cannot be reached.
    """
    url = database_url(settings.database_url, settings.data_dir)
    if not is_embedded(url):
        serving_role.check_rights(url)


def serving_role_grants(role: str) -> list[str]:
    """The statements that let a role of PostgreSQL serve. See `storage.serving_role`."""
    return serving_role.grants(role)


def loose_key_files(settings: Settings) -> list[tuple[Path, int]]:
    """The key files that others than their owner may read or change, each with its mode."""
    files = [settings.secret_key_file, key_file(settings.key_encryption_key)]
    found = [(file, loose_mode(file)) for file in files if file is not None]
    return [(file, mode) for file, mode in found if mode]


def _check_secret(secret: DeploymentSecret, kept: bytes) -> None:
    if not compare_digest(secret.check_value(), kept):
        raise WrongSecretKey
