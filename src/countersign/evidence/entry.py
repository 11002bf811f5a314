"""Log entries: what the log holds of a record is its digest and nothing else."""

import re
from binascii import b2a_base64
from collections.abc import Iterable
from typing import Final

from countersign.evidence.errors import EvidenceError

_ORIGIN: Final = re.compile(
    r"[A-Za-z0-9._~\[\]:-]+(?:/[A-Za-z0-9._~-]+)*/v1/log/(test|live)/[1-9][0-9]{0,8}\Z", re.ASCII
)
_ORIGIN_LENGTH_MAX: Final = 300


def log_entry(origin: str, record_digest: bytes) -> bytes:
    """The entry of a record in the log of this origin, from the SHA-256 of the record."""
    return entries_of(origin, [record_digest])[0]


def entries_of(origin: str, record_digests: Iterable[bytes]) -> list[bytes]:
    """The entries of many records."""
    start = f"{entry_host(origin)}/entry/v1\n".encode()
    return [start + b2a_base64(digest) for digest in record_digests]


def entry_form(host: str) -> bytes:
    """A regular expression for one entry in the logs of this host."""
    return re.escape(f"{host}/entry/v1\n".encode()) + rb"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n"


def entry_length(host: str) -> int:
    """How many bytes each entry in the logs of this host has."""
    return len(f"{host}/entry/v1\n".encode()) + 45


def entry_host(origin: str) -> str:
    """The host (and port) of an origin: what stands before its first slash."""
    return origin.partition("/")[0]


def check_origin(origin: str) -> None:
    """Refuse what is not the origin of a log: `<host[:port][/path]>/v1/log/{mode}/{epoch}`."""
    if len(origin) > _ORIGIN_LENGTH_MAX or _ORIGIN.match(origin) is None:
        raise EvidenceError("not the origin of a log: <host>/v1/log/<test or live>/<epoch>")


def origin_mode(origin: str) -> str:
    """The mode that an origin names: `test` or `live`."""
    check_origin(origin)
    return origin.rsplit("/", 2)[1]
