"""Log entries: of a record, the log holds its digest alone."""

import re
from binascii import b2a_base64
from collections.abc import Iterable
from hashlib import sha256

from countersign_evidence.errors import EvidenceError
from countersign_evidence.offline.verify import ORIGIN


def log_entry(origin: str, record_digest: bytes) -> bytes:
    """The entry of a record in the log of this origin, from the SHA-256 of the record."""
    return entries_of(origin, [record_digest])[0]


def entries_of(origin: str, record_digests: Iterable[bytes]) -> list[bytes]:
    """The entries of many records."""
    start = f"{origin.partition('/')[0]}/entry/v1\n".encode()
    return [start + b2a_base64(digest) for digest in record_digests]


def leaves_of(origin: str, record_digests: Iterable[bytes]) -> list[bytes]:
    """The leaf hashes of these entries: SHA-256(0x00 ‖ entry)."""
    start = f"\x00{origin.partition('/')[0]}/entry/v1\n".encode()
    return [sha256(start + b2a_base64(digest)).digest() for digest in record_digests]


def entry_form(host: str) -> bytes:
    """A regular expression for one entry in the logs of this host."""
    return re.escape(f"{host}/entry/v1\n".encode()) + rb"[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n"


def entry_length(host: str) -> int:
    """How many bytes each entry in the logs of this host has."""
    return len(f"{host}/entry/v1\n".encode()) + 45


def entry_host(origin: str) -> str:
    """The host (and port) of an origin: the part before its first slash."""
    return origin.partition("/")[0]


def service_of(origin: str) -> str:
    """The part of an origin before `/v1/log/`: host, port and path of its service."""
    return _parts(origin)[0].removesuffix("/v1/log")


def check_origin(origin: str) -> None:
    """Refuse an invalid origin; valid: `<host[:port][/path]>/v1/log/{mode}/{epoch}`."""
    if len(origin) > 300 or ORIGIN.fullmatch(origin) is None:
        raise EvidenceError("not the origin of a log: <host>/v1/log/<test or live>/<epoch>")


def origin_mode(origin: str) -> str:
    """The mode that an origin names: `test` or `live`."""
    return _parts(origin)[1]


def is_next(origin: str, before: str) -> bool:
    """Whether this is the origin of the next epoch of the same mode; its host may be another."""
    _, mode, epoch = _parts(origin)
    return (mode, epoch) == (origin_mode(before), _parts(before)[2] + 1)


def is_same_service(one: str, other: str) -> bool:
    """Whether two origins differ in nothing but mode and epoch."""
    return _parts(one)[0] == _parts(other)[0]


def _parts(origin: str) -> tuple[str, str, int]:
    check_origin(origin)
    start, mode, epoch = origin.rsplit("/", 2)
    return start, mode, int(epoch)
