"""The public time-stamp authorities of a release, and the operator's choice among them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

from sqlalchemy import Connection

from countersign.base.db.schema import put_value, value_of
from countersign.base.errors import InvalidArgument, InvalidConfiguration
from countersign.core.access.audit import AuditAction, AuditEntry, write_audit
from countersign.core.access.room import Access
from countersign.core.log.model import AUDIT_SUBJECT

NONE: Final = "none"
"""The choice of no authority."""
_FILE: Final = "time-stamp-authorities.pem"
_VALUE: Final = "time_stamp_authorities"
_ENTRY: Final = re.compile(
    r"^# +Name: (\S+)\n# +URL: (\S+).*?\n"
    r"(-----BEGIN CERTIFICATE-----\n.+?\n-----END CERTIFICATE-----\n)",
    re.MULTILINE | re.DOTALL,
)


class Authority(NamedTuple):
    """A time-stamp authority (RFC 3161)."""

    name: str
    url: str
    certificate: bytes
    """The root certificates of its time-stamps, in PEM."""


@cache
def known_authorities() -> Mapping[str, Authority]:
    """The authorities included in this release, by name."""
    found = _ENTRY.findall((resources.files(__package__) / _FILE).read_text("utf-8"))
    return {name: Authority(name, url, certificate.encode()) for name, url, certificate in found}


def write_authorities(data_dir: Path) -> Path:
    """The file with this release's authorities; an existing file is not changed."""
    file = data_dir / _FILE
    if not file.exists():
        file.write_text((resources.files(__package__) / _FILE).read_text("utf-8"))
    return file


def read_choice(text: str) -> Sequence[str]:
    """The names in an option, such as `sigstore,digicert`; none for `none`.

    Raises InvalidArgument if there is no such authority.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    if names == [NONE]:
        return []
    unknown = [name for name in names if name not in known_authorities()]
    if unknown:
        raise InvalidArgument(
            f"{unknown[0]!r} is not a time-stamp authority of this release. Expected one or "
            f"several of {', '.join(known_authorities())}, separated by commas, or {NONE}. For "
            "another one set COUNTERSIGN_TIMESTAMP_URLS."
        )
    return names


def chosen_authorities(connection: Connection) -> tuple[str, ...]:
    """The names that the operator chose; of a newer release they may be unknown to this one."""
    found = value_of(connection, _VALUE)
    return tuple(found.decode().split(",")) if found else ()


def timestamps_package() -> ModuleType:
    """The time-stamp client; InvalidConfiguration if the extra is not installed."""
    try:
        from countersign_evidence import timestamp_signer  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise InvalidConfiguration(
            "Time-stamps need the package rfc3161-client, which is not installed: pip install "
            "'rfc3161-client>=1.0.9'."
        ) from error
    return timestamp_signer


async def choose_authorities(access: Access, names: Sequence[str]) -> None:
    """Have every server ask these from now on; harmless if they are chosen already.

    Raises InvalidConfiguration if the package that they need is not installed.
    """
    if names:
        timestamps_package()
    change = AuditAction.TIME_STAMPS_CHOSEN
    audit = access.audit.entry(change, AUDIT_SUBJECT, authorities=list(names))
    await access.database.write(_choose, tuple(names), audit)


def _choose(connection: Connection, names: tuple[str, ...], audit: AuditEntry) -> None:
    if chosen_authorities(connection) == names:
        return
    put_value(connection, _VALUE, ",".join(names).encode())
    write_audit(connection, audit)
