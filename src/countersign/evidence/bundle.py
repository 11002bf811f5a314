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
from typing import Final

import msgspec

from countersign.evidence.canonical import canonical_json
from countersign.evidence.errors import EvidenceError

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
BUNDLE_BYTES_MAX: Final = 16_000_000
_FILE_BYTES_MAX: Final = {DISCLOSURES: 1_000_000, NOTICE: 2_000_000}
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

GUIDE: Final = b"""Evidence of an acknowledgment. You need not trust the person who gave it to you.

  certificate.pdf    the recorded facts, for people to read
  verify.html        open it in a browser and choose this ZIP file: nothing is uploaded
  verify.py          python3 -I verify.py (Python 3.11 or newer, nothing to install), in this folder

Both check against policy.txt, the key that came in this file. To be independent of the person who
gave it to you, get the policy from a source that you trust: python3 -I verify.py --policy FILE

The signature does not cover certificate.pdf, verify.py, verify.html and this file: the person who
gave you the bundle could have put anything into them, and SHA256SUMS would still match. Rely on the
text that the verifier prints, and get the verifier from another source too: a release of
Countersign, or a program of your own that follows its spec/evidence-format.md.

  record.json        the record: the log contains the digest of its exact bytes
  disclosures.json   the personal fields that are shown, each bound to the record by its digest
  notice.json        the notice as published, bound to the record by its digest
  proof.tlog-proof   the proof that the log contains the record (c2sp.org/tlog-proof)
  policy.txt         the keys of the log and its witnesses (c2sp.org/tlog-policy)
  timestamps/        time-stamps of the checkpoint (RFC 3161), if any
  SHA256SUMS         the digests of all these files: sha256sum -c SHA256SUMS
"""


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
    """The bytes of the ZIP file."""
    files = {
        RECORD: contents.record,
        DISCLOSURES: canonical_json(list(contents.disclosures)),
        NOTICE: contents.notice,
        PROOF: contents.proof,
        POLICY: contents.policy,
        **{name: contents.timestamps[name] for name in sorted(contents.timestamps)},
        CERTIFICATE: contents.certificate,
        VERIFY_PY: contents.verify_py,
        VERIFY_HTML: contents.verify_html,
        README: contents.readme,
    }
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


def read_container(data: bytes) -> dict[str, bytes]:
    """The files of a ZIP file that `write_container` could have written.

    Raises:
        EvidenceError: it is none.
    """
    if len(data) > BUNDLE_BYTES_MAX:
        msg = f"a bundle has at most {BUNDLE_BYTES_MAX} bytes"
        raise EvidenceError(msg)
    # File after file from the start: the directory of a hostile file may name the same bytes as the
    # content of many files, which together are far larger than the bundle.
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
        msg = (
            "not a ZIP file with the format of a bundle; if it was unpacked and packed again, "
            "check the unpacked folder or ask for the original file"
        )
        raise EvidenceError(msg)
    return files


def read_bundle(data: bytes) -> tuple[BundleContents, bytes]:
    """What a bundle holds, and its SHA256SUMS; no digest is checked yet.

    Raises:
        EvidenceError: it is not a bundle.
    """
    return contents_of(read_container(data))


def in_order(names: Collection[str]) -> list[str]:
    """Those of the names that files of a bundle have, in the order of a bundle."""
    stamps = sorted(name for name in names if _TIMESTAMP.match(name))
    return [name for name in (*_BEFORE, *stamps, *_AFTER) if name in names]


def contents_of(files: Mapping[str, bytes]) -> tuple[BundleContents, bytes]:
    """The same from the files themselves.

    Raises:
        EvidenceError: a file is missing, unknown, or not in its place.
    """
    stamps = [name for name in files if name.startswith("timestamps/")]
    missing = [name for name in (*_BEFORE, *_AFTER) if name not in files]
    if missing:
        msg = f"the bundle lacks {missing[0]}"
        raise EvidenceError(msg)
    if list(files) != [*_BEFORE, *sorted(stamps), *_AFTER]:
        msg = "the bundle has unexpected files, or its files are in another order"
        raise EvidenceError(msg)
    if not all(_TIMESTAMP.match(name) for name in stamps):
        msg = "a time-stamp has an invalid name"
        raise EvidenceError(msg)
    for name, most in {**_FILE_BYTES_MAX, **dict.fromkeys(stamps, _STAMP_BYTES_MAX)}.items():
        if len(files[name]) > most:
            msg = f"{name} has at most {most} bytes"
            raise EvidenceError(msg)
    contents = BundleContents(
        record=files[RECORD],
        disclosures=read_disclosures(files[DISCLOSURES]),
        notice=files[NOTICE],
        proof=files[PROOF],
        policy=files[POLICY],
        timestamps={name: files[name] for name in stamps},
        certificate=files[CERTIFICATE],
        verify_py=files[VERIFY_PY],
        verify_html=files[VERIFY_HTML],
        readme=files[README],
    )
    return contents, files[SUMS]


def read_disclosures(data: bytes) -> tuple[str, ...]:
    """The encoded disclosures in a file.

    Raises:
        EvidenceError: it is not the canonical JSON of an array of strings.
    """
    try:
        found = msgspec.json.decode(data, type=list[str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        msg = f"{DISCLOSURES} is not an array of strings"
        raise EvidenceError(msg) from error
    if canonical_json(found) != data:
        msg = f"{DISCLOSURES} is not canonical JSON"
        raise EvidenceError(msg)
    return tuple(found)
