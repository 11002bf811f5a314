"""Where concrete classes meet: the only module that names them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hmac import compare_digest
from importlib import resources
from pathlib import Path
from typing import Final

from countersign import notices as shipped_notices
from countersign.config import Settings
from countersign.domain.notice_file import NOTICE_BYTES_MAX
from countersign.errors import InvalidConfiguration, WrongSecretKey
from countersign.ports import Clock, Entropy
from countersign.providers.sandbox import Sandbox
from countersign.services.accounts import Accounts, Keys
from countersign.services.acknowledge import Acknowledge
from countersign.services.authenticate import Authenticate
from countersign.services.find_acknowledgments import FindAcknowledgments
from countersign.services.housekeeping import Housekeeping
from countersign.services.idempotency import Idempotency
from countersign.services.publish_notices import Publication, PublishNotices
from countersign.services.registry import Registry
from countersign.services.secrets import SECRET_BYTES, DeploymentSecret
from countersign.services.verify_buyer import BuyerStatusQuery, VerifyBuyer
from countersign.storage import accounts as accounts_store
from countersign.storage import housekeeping as housekeeping_store
from countersign.storage import schema
from countersign.storage.acknowledgments import Acknowledgments
from countersign.storage.buyers import Buyers
from countersign.storage.database import Database
from countersign.storage.engine import database_url
from countersign.storage.idempotency import IdempotencyKeys
from countersign.storage.notices import Notices

_CHECK_VALUE: Final = "secret_check"
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
    acknowledge: Acknowledge
    find_acknowledgments: FindAcknowledgments
    verify_buyer: VerifyBuyer
    buyer_status: BuyerStatusQuery
    accounts: Accounts
    keys: Keys
    publish_notices: PublishNotices
    housekeeping: Housekeeping


async def initialise(settings: Settings, entropy: Entropy = os.urandom) -> list[Publication]:
    """Make or upgrade a deployment; harmless when it is there already.

    Makes the data directory, the schema and the secret key, and publishes the shipped notices.

    Raises:
        InvalidConfiguration: the data directory cannot be made.
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
    schema.upgrade(url)
    path = settings.secret_key_file
    if not path.exists() and not schema.has_value(url, _CHECK_VALUE):
        _write_secret(path, DeploymentSecret.new_text(entropy(SECRET_BYTES)))
    secret = _read_secret(path)
    _check_secret(secret, schema.stored_value(url, _CHECK_VALUE, secret.check_value()))
    async with open_deployment(settings, entropy=entropy) as deployment:
        return [
            await deployment.publish_notices.publish(data, _SHIPPED + name)
            for name, data in shipped_notice_files().items()
        ]


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
    async with Database(url) as database:
        buyers, keys, notices = Buyers(database), accounts_store.Keys(database), Notices(database)
        acknowledgments = Acknowledgments(database)
        yield Deployment(
            settings=settings,
            clock=clock,
            entropy=entropy,
            database=database,
            authenticate=Authenticate(keys, secret, clock, entropy),
            idempotency=Idempotency(IdempotencyKeys(database), secret, clock, entropy),
            registry=Registry(notices, clock, settings.time_zone),
            acknowledge=Acknowledge(acknowledgments, secret, clock, entropy),
            find_acknowledgments=FindAcknowledgments(acknowledgments, secret),
            verify_buyer=VerifyBuyer(buyers, Sandbox(), secret, clock, entropy),
            buyer_status=BuyerStatusQuery(buyers, clock),
            accounts=Accounts(accounts_store.Accounts(database), clock, entropy),
            keys=Keys(keys, secret, clock, entropy),
            publish_notices=PublishNotices(notices, clock, entropy),
            housekeeping=Housekeeping(housekeeping_store.Housekeeping(database), clock),
        )


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


def _write_secret(path: Path, text: str) -> None:
    """Write the secret under a name of its own, then link it in place: whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return  # another `init` was first
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        draft.unlink()


def _read_secret(path: Path) -> DeploymentSecret:
    try:
        return DeploymentSecret.from_text(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        msg = (
            f"The secret key file {path} is missing. Restore it, or point "
            "COUNTERSIGN_SECRET_KEY_FILE at it: without it no API key works."
        )
        raise WrongSecretKey(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"The secret key file {path} cannot be read: {error}."
        raise WrongSecretKey(msg) from error


def _check_secret(secret: DeploymentSecret, kept: bytes) -> None:
    if not compare_digest(secret.check_value(), kept):
        raise WrongSecretKey
