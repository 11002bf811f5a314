"""Bundles: one ZIP file with everything that a stranger needs, the same bytes each time.

The container has one form only: no compression, no dates, no extra fields, the files in a fixed
order. A reader writes what it has read again and compares, so not a byte of it is left to chance.
"""

import io
import re
import struct
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from typing import Final

import msgspec

from countersign_evidence.canonical import canonical_json
from countersign_evidence.errors import EvidenceError

RECORD: Final = "record.json"
DISCLOSURES: Final = "disclosures.json"
NOTICE: Final = "notice.json"
PROOF: Final = "proof.tlog-proof"
POLICY: Final = "policy.txt"
CERTIFICATE: Final = "certificate.pdf"
VERIFY_PY: Final = "verify.py"
VERIFY_HTML: Final = "verify.html"
README: Final = "README.txt"
SUMS: Final = "SHA256SUMS"
_BEFORE: Final = (RECORD, DISCLOSURES, NOTICE, PROOF, POLICY)
_AFTER: Final = (CERTIFICATE, VERIFY_PY, VERIFY_HTML, README, SUMS)
_AS_THEY_ARE: Final = {
    "record": RECORD,
    "notice": NOTICE,
    "proof": PROOF,
    "policy": POLICY,
    "certificate": CERTIFICATE,
    "verify_py": VERIFY_PY,
    "verify_html": VERIFY_HTML,
    "readme": README,
}
"""The fields of BundleContents that are a file each."""
BUNDLE_BYTES_MAX: Final = 16_000_000
FILE_BYTES_MAX: Final = {DISCLOSURES: 1_000_000, NOTICE: 2_000_000}
"""What is read as JSON: as Python's values it takes many times as much memory."""
_STAMP_BYTES_MAX: Final = 1_000_000
_FILES_MAX: Final = 64
_TIMESTAMP: Final = re.compile(r"timestamps/[A-Za-z0-9._-]{1,80}\.tsr\Z", re.ASCII)
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644
_UNIX: Final = 3
_LOCAL: Final = b"PK\x03\x04"
_HEADER_BYTES: Final = 30
_VERSION: Final = 20

GUIDE: Final = (resources.files(__package__) / "bundle_readme.txt").read_bytes()
"""README.txt of a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleContents:
    """What a bundle holds; `timestamps` are named `timestamps/….tsr`."""

    record: bytes
    disclosures: tuple[str, ...]
    notice: bytes
    proof: bytes
    policy: bytes
    timestamps: Mapping[str, bytes] = field(default_factory=dict)
    certificate: bytes
    verify_py: bytes
    verify_html: bytes
    readme: bytes = GUIDE


def write_bundle(contents: BundleContents) -> bytes:
    found = {name: getattr(contents, field) for field, name in _AS_THEY_ARE.items()}
    found |= {DISCLOSURES: canonical_json(list(contents.disclosures)), **contents.timestamps}
    order = (*_BEFORE, *sorted(contents.timestamps), *_AFTER)
    files = {name: found[name] for name in order if name != SUMS}
    return write_container({**files, SUMS: sums(files)})


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


def read_container(data: bytes, files_max: int = _FILES_MAX) -> dict[str, bytes]:
    """The files of a ZIP file that `write_container` could have written."""
    if len(data) > BUNDLE_BYTES_MAX:
        raise EvidenceError(f"a bundle has at most {BUNDLE_BYTES_MAX} bytes")
    # File after file from the start: the directory of a hostile file may name the same bytes as the
    # content of many files, which together are far larger than the bundle.
    files: dict[str, bytes] = {}
    at = 0
    while data[at : at + 4] == _LOCAL and len(data) >= at + _HEADER_BYTES:
        size, length = struct.unpack_from("<IH", data, at + 22)
        start = at + _HEADER_BYTES + length
        name = data[at + _HEADER_BYTES : start].decode("ascii", "replace")
        if name in files or len(files) == files_max or not name.isascii():
            break
        files[name] = data[start : start + size]
        at = start + size
    # Any of the files cut short, or left out, and the same bytes do not come out again.
    if not files or write_container(files) != data:
        raise EvidenceError(
            "not a ZIP file with the format of a bundle; if it was unpacked and packed again, "
            "check the unpacked folder or ask for the original file"
        )
    return files


def in_order(names: Collection[str]) -> list[str]:
    """Those of the names that files of a bundle have, in the order of a bundle."""
    stamps = sorted(name for name in names if _TIMESTAMP.match(name))
    return [name for name in (*_BEFORE, *stamps, *_AFTER) if name in names]


def contents_of(files: Mapping[str, bytes]) -> tuple[BundleContents, bytes]:
    """What the files of a bundle hold, and its SHA256SUMS; no digest is checked yet."""
    stamps = [name for name in files if name.startswith("timestamps/")]
    missing = [name for name in (*_BEFORE, *_AFTER) if name not in files]
    if missing:
        raise EvidenceError(f"the bundle lacks {missing[0]}")
    if list(files) != [*_BEFORE, *sorted(stamps), *_AFTER]:
        raise EvidenceError("the bundle has unexpected files, or its files are in another order")
    check_timestamp_files({name: files[name] for name in stamps})
    for name, most in FILE_BYTES_MAX.items():
        if len(files[name]) > most:
            raise EvidenceError(f"{name} has at most {most} bytes")
    contents = BundleContents(
        disclosures=read_disclosures(files[DISCLOSURES]),
        timestamps={name: files[name] for name in stamps},
        **{field: files[name] for field, name in _AS_THEY_ARE.items()},
    )
    return contents, files[SUMS]


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
