"""The composition root: the only module that names concrete classes."""

from __future__ import annotations

import getpass
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from countersign.base.config import Settings
from countersign.base.db import schema
from countersign.base.db.database import Database
from countersign.base.db.engine import is_embedded, url_of
from countersign.base.db.pooler import refuse_unknown_pooler
from countersign.base.db.turn import Turn
from countersign.base.db.writes import Writes
from countersign.base.errors import DeploymentIncomplete, InvalidConfiguration, NotInitialised
from countersign.base.files import only_server
from countersign.base.generics import R
from countersign.base.host import ip_or_none
from countersign.base.passkeys import relying_party
from countersign.base.values import Clock, Mode
from countersign.core.access.room import Access, open_access
from countersign.core.access.secrets import make_secret, open_secret
from countersign.core.acknowledgments.room import Acknowledgments, open_acknowledgments
from countersign.core.buyers.room import Buyers, open_buyers
from countersign.core.buyers.rules import VerificationRules
from countersign.core.checkout.room import Asking, Updates
from countersign.core.clearances.keys import ClearanceKeys
from countersign.core.clearances.room import Clearances
from countersign.core.events.model import EventIds
from countersign.core.events.room import Events
from countersign.core.log.authorities import choose_authorities, chosen_authorities
from countersign.core.log.head_store import open_heads
from countersign.core.log.operate import begin_first_logs
from countersign.core.log.room import LogRoom, open_log
from countersign.core.notices.publish import Publication, publish_shipped
from countersign.core.notices.registry import Registry
from countersign.core.notices.room import Notices
from countersign.core.privacy.erase import finish_restore
from countersign.core.privacy.room import Privacy, open_privacy
from countersign.core.sandbox.room import SandboxRoom
from countersign.core.vault.key_encryption import KeyRing, key_source
from countersign.core.vault.key_file import key_file, make_first_key
from countersign.core.vault.vault import SealedColumn, VaultRoom, open_vault
from countersign.core.webhooks.room import Webhooks, open_webhooks
from countersign.hosted.pages.mails import CopyMails, load_client
from countersign.hosted.pages.room import HostedPages
from countersign.hosted.remembered import Remembered
from countersign.hosted.self_service import SelfService
from countersign.identity.registry import IdentityProviders
from countersign.identity.transport import Outbound
from countersign.operate.backup import note_of_backup
from countersign.operate.room import Operations, open_operations
from countersign.staff.people.room import RETURN_PATH, People
from countersign_evidence.errors import files_refused_as

if TYPE_CHECKING:
    from sqlalchemy import URL

    from countersign.staff.people.provider import Provider


class SystemClock:
    """The machine's clock."""

    time_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The rooms of one deployment, ready for use."""

    settings: Settings
    clock: Clock
    database: Database
    access: Access
    people: People
    vault: VaultRoom
    log: LogRoom
    events: Events
    notices: Notices
    buyers: Buyers
    acknowledgments: Acknowledgments
    clearances: Clearances
    checkout: HostedPages
    webhooks: Webhooks
    privacy: Privacy
    self_service: SelfService
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
    """The result of `initialise`: shipped notices, and whether the schema was made or changed."""

    published: Sequence[Publication]
    upgraded: bool
    time_stamps: Sequence[str]
    """The names of the time-stamp authorities that were chosen, now or before."""


async def initialise(
    settings: Settings, time_stamps: Sequence[str] | None = None, *, founds: bool = True
) -> Initialised:
    """Make or upgrade a deployment; harmless when it is there already.

    Makes the data directory, the schema and the secret key, and publishes the shipped notices.
    `time_stamps` are the authorities to ask from now on, by name; None: as before.

    Raises:
        NotInitialised: nothing of a deployment is there, and `founds` is false.
        DeploymentIncomplete: something of one is there, and its database is not.
    """
    url = url_of(settings)
    if not is_embedded(url):
        refuse_unknown_pooler(url)
    _refuse_absence(settings, url, founds=founds)
    what = f"The data directory {settings.data_dir} cannot be used"
    with files_refused_as(InvalidConfiguration, what):
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A server of an older release would continue with a schema that it does not know.
    alone = is_embedded(url) and schema.is_older(url)
    with only_server(settings.data_dir) if alone else nullcontext():
        upgraded = schema.upgrade(url)
    make_secret(settings.secret_key_file, url, os.urandom)
    make_first_key(settings.key_encryption_key, url, os.urandom)
    now_ms = SystemClock.time_ns() // 10**6
    schema.stored_value(url, schema.WATCHED_SINCE, str(now_ms).encode())
    async with open_deployment(settings) as deployment:
        await finish_restore(deployment.privacy)
        await begin_first_logs(deployment.log, settings.public_url)
        await deployment.clearances.keys.begin()
        published = await deployment.database.write(publish_shipped, deployment.notices)
        if time_stamps is not None:
            await choose_authorities(deployment.access, time_stamps)
        chosen = await deployment.database.read(chosen_authorities)
    return Initialised(published=published, upgraded=upgraded, time_stamps=chosen)


def remains(settings: Settings) -> Mapping[str, bool]:
    """The parts of a deployment outside its database, in words, and whether each is there.

    The last one shows that it has lived: the note of a backup if there is one, or else the
    published head.

    HeadUnavailable: the published head may exist, but cannot be read.
    """
    heads, key = open_heads(settings.log_head_dir), key_file(settings.key_encryption_key)
    published = any(heads.read(mode) is not None for mode in Mode)
    place = settings.log_head_dir
    # A link to a disk that is not mounted is a remain, too.
    published = published or (isinstance(place, Path) and place.is_symlink() and not place.exists())
    note = note_of_backup(settings.data_dir)
    return {
        f"the secret key {settings.secret_key_file}": lexists(settings.secret_key_file),
        **({} if key is None else {f"the key-encryption key {key}": lexists(key)}),
        f"the last published checkpoints in {settings.log_head_dir}": published,
        **({f"the note of the last backup {note}": True} if lexists(note) else {}),
    }


def _refuse_absence(settings: Settings, url: URL, *, founds: bool) -> None:
    """Refuse to mistake a missing disk, file or database for a new deployment."""
    if schema.is_there(url, founded=True):
        return
    parts = remains(settings)
    left = [part for part, is_there in parts.items() if is_there]
    *_, has_lived = parts.values()
    # Another `init` may have been first: tables come before keys, and a log before its heads.
    if schema.is_there(url, founded=has_lived or not founds) or (founds and not left):
        return
    if not left:
        raise NotInitialised
    missing = [f"the database {schema.place(url)}", *(part for part in parts if part not in left)]
    raise DeploymentIncomplete(
        "This looks like a lost disk, not like a new deployment. "
        f"Missing: {', '.join(missing)}. Still here: {', '.join(left)}. Mount the disk that is "
        "away, correct COUNTERSIGN_DATA_DIR or COUNTERSIGN_DATABASE_URL, or restore a backup "
        "(docs/backup.md). Only to give that deployment up: move the remaining parts away."
    )


@asynccontextmanager
async def open_deployment(
    settings: Settings,
    *,
    clock: Clock | None = None,
    turn: Turn | None = None,
    writes: Writes | None = None,
    while_moving: bool = False,
) -> AsyncIterator[Deployment]:
    """Open an initialised deployment; `turn` and `writes` are shared with the other workers.

    `while_moving` also opens a deployment whose data is still being moved in, to inspect it.
    """
    clock, entropy, url = clock or SystemClock(), os.urandom, url_of(settings)
    schema.check(url, while_moving=while_moving)
    secret = open_secret(settings.secret_key_file, url)
    encryption = KeyRing(key_source(settings.key_encryption_key), entropy)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url, turn, writes))
        access = open_access(database, secret, operator=_operator(), clock=clock, entropy=entropy)
        vault_room = open_vault(access, encryption, key_file(settings.key_encryption_key))
        vault = vault_room.vault
        log_room = await open_log(vault_room, settings)
        registry = Registry(database, clock, settings.time_zone)
        notices = Notices(log=log_room, registry=registry, reviewers=settings.notice_reviewers)
        acknowledgments = open_acknowledgments(settings, notices)
        stack.push_async_callback(acknowledgments.certificates.close)
        floor = VerificationRules(
            minimum_age=settings.minimum_age, validity_days=settings.verification_days
        )
        factory = IdentityProviders(secret.document_fingerprint, clock, _outbound(settings))
        buyers = open_buyers(log_room, factory, floor, settings.public_url)
        stack.push_async_callback(buyers.providers.close)
        clearances = Clearances(
            access=access,
            log=log_room,
            registry=registry,
            keys=ClearanceKeys(access, vault),
            floor=floor,
            public_url=settings.public_url,
        )
        events = Events(access=access, ids=EventIds(secret.event_id_key()))
        privacy = open_privacy(access, log_room, settings)
        mails = _copy_mails(settings)
        checkout = HostedPages(
            access=access,
            vault=vault,
            acknowledgments=acknowledgments,
            buyers=buyers,
            clearances=clearances,
            remembered=Remembered(buyers=buyers, party=relying_party(settings.public_url)),
            updates=Updates(database),
            asking=Asking(clock),
            public_url=settings.public_url,
            client_ip_header=settings.client_ip_header,
            trusted_proxies=settings.trusted_proxies,
            mails=mails,
        )
        # Browsers allow no passkeys at an address in numbers.
        by_name = settings.public_url.replace("//127.0.0.1", "//localhost")
        console_url = settings.console_url or by_name
        provider = _provider(settings, console_url, clock)
        if provider is not None:
            stack.push_async_callback(provider.close)
        webhooks = open_webhooks(access, events, vault, settings)
        stack.push_async_callback(webhooks.sender.close)
        yield Deployment(
            settings=settings,
            clock=clock,
            database=database,
            access=access,
            people=People(
                access=access,
                party=relying_party(console_url),
                provider=provider,
                url=console_url,
                is_on=settings.console,
                addresses=SealedColumn(vault, entropy, "people", "address"),
                mails=mails,
            ),
            vault=vault_room,
            log=log_room,
            events=events,
            notices=notices,
            buyers=buyers,
            privacy=privacy,
            acknowledgments=acknowledgments,
            clearances=clearances,
            checkout=checkout,
            self_service=SelfService(checkout=checkout, privacy=privacy),
            webhooks=webhooks,
            sandbox=SandboxRoom(buyers=buyers, events=events),
            operations=open_operations(settings, notices, log_room.heads),
        )


def _operator() -> str:
    """The user of this process, for the audit of an operator's acts."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def _copy_mails(settings: Settings) -> CopyMails | None:
    if settings.smtp_url is None:
        return None
    load_client()
    host = urlsplit(settings.public_url).hostname or ""
    host = host if ip_or_none(host) is None else "localhost"
    return CopyMails(
        server=settings.smtp_url,
        sender=settings.smtp_sender or f"copies@{host}",
        daily_limit=settings.smtp_daily_limit,
    )


def _provider(settings: Settings, console_url: str, clock: Clock) -> Provider | None:
    issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
    secret = settings.oidc_client_secret
    if issuer is None and client_id is None and secret is None:
        return None
    if issuer is None or client_id is None or secret is None:
        raise InvalidConfiguration(
            "COUNTERSIGN_OIDC_ISSUER, COUNTERSIGN_OIDC_CLIENT_ID and "
            "COUNTERSIGN_OIDC_CLIENT_SECRET must be set together."
        )
    try:
        from countersign.staff.people.provider import Provider  # noqa: PLC0415 - an extra
    except ImportError:
        raise InvalidConfiguration(
            "COUNTERSIGN_OIDC_ISSUER is set, and the extra that OpenID Connect needs is not "
            "installed: pip install 'countersign-service[oidc]'."
        ) from None
    return Provider(issuer, client_id, secret, f"{console_url}{RETURN_PATH}", clock)


def _outbound(settings: Settings) -> Outbound:
    file = settings.provider_ca_file
    if file is not None:
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            why = error.strerror or "it contains none"
            raise InvalidConfiguration(
                f"COUNTERSIGN_PROVIDER_CA_FILE: {file} contains no certificates in PEM format: "
                f"{why}."
            ) from None
    return Outbound(
        concurrency=settings.provider_concurrency,
        proxy_url=settings.provider_proxy_url,
        ca_file=file,
    )
