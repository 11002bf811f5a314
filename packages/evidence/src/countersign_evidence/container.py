"""One ZIP file with everything that a stranger needs, the same bytes each time.

The container has one form only: no compression, no dates, no extra fields, the files in a fixed
order. A reader writes what it has read again and compares, so not a byte of it is left to chance.
"""

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from countersign_evidence.canonical import canonical_json
from countersign_evidence.errors import EvidenceError

DISCLOSURES: Final = "disclosures.json"
SUMS: Final = "SHA256SUMS"
CONTAINER_BYTES_MAX: Final = 16_000_000
_STAMP_BYTES_MAX: Final = 1_000_000
_FILES_MAX: Final = 256
_TIMESTAMP: Final = re.compile(r"timestamps/[A-Za-z0-9._-]{1,80}\.tsr\Z", re.ASCII)
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644
_UNIX: Final = 3
_LOCAL: Final = b"PK\x03\x04"
_HEADER_BYTES: Final = 30
_VERSION: Final = 20


def sums(files: Mapping[str, bytes]) -> bytes:
    """The content of SHA256SUMS for these files."""
    return "".join(f"{sha256(data).hexdigest()}  {n}\n" for n, data in files.items()).encode()


def write_container(files: Mapping[str, bytes]) -> bytes:
    """A ZIP file of these files, in their order."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = _UNIX
            info.create_version = info.extract_version = _VERSION
            info.external_attr = _MODE << 16
            archive.writestr(info, data)
    return target.getvalue()


def read_container(data: bytes) -> dict[str, bytes]:
    """The files of a ZIP file that `write_container` could have written."""
    if len(data) > CONTAINER_BYTES_MAX:
        raise EvidenceError(f"a dossier has at most {CONTAINER_BYTES_MAX} bytes")
    # File after file from the start: the directory of a hostile file may name the same bytes as the
    # content of many files, which together are far larger than the container.
    files: dict[str, bytes] = {}
    at = 0
    while data[at : at + 4] == _LOCAL and len(data) >= at + _HEADER_BYTES:
        size, length = struct.unpack_from("<IH", data, at + 22)
        start = at + _HEADER_BYTES + length
        name = data[at + _HEADER_BYTES : start].decode("ascii", "replace")
        if name in files or len(files) == _FILES_MAX or not name.isascii():
            break
        files[name] = data[start : start + size]
        at = start + size
    # Any of the files cut short, or left out, and the same bytes do not come out again.
    if not files or write_container(files) != data:
        raise EvidenceError(
            "not a ZIP file with the format of a dossier; if it was unpacked and packed again, "
            "check the unpacked folder or ask for the original file"
        )
    return files


def check_timestamp_files(stamps: Mapping[str, bytes]) -> None:
    """Check names and sizes of the files in `timestamps/`."""
    for name, data in stamps.items():
        if not _TIMESTAMP.match(name):
            raise EvidenceError("a time-stamp has an invalid name")
        if len(data) > _STAMP_BYTES_MAX:
            raise EvidenceError(f"{name} has at most {_STAMP_BYTES_MAX} bytes")


def read_disclosures(data: bytes) -> tuple[str, ...]:
    """The encoded disclosures in a file: the canonical JSON of an array of strings."""
    try:
        found = msgspec.json.decode(data, type=list[str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{DISCLOSURES} is not an array of strings") from error
    if canonical_json(found) != data:
        raise EvidenceError(f"{DISCLOSURES} is not canonical JSON")
    return tuple(found)
