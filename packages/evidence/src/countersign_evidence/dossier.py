"""Dossiers: one ZIP file with the evidence of one order, or of one record, under one checkpoint.

Which files it has, and in which order, follows from the records
in it, so there is no manifest: nothing in it is left to its maker but what is checked. The ZIP file
has one form only: no compression, no dates, no extra fields. A reader writes what it has read again
and compares, so not a byte of it is left to chance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

from countersign_evidence import offline
from countersign_evidence.canonical import canonical_json
from countersign_evidence.encoding import by_the_rules
from countersign_evidence.offline import verify as rules

SUMS: Final = "SHA256SUMS"
CONTAINER_BYTES_MAX: Final = rules.BYTES_MAX


def sums(files: Mapping[str, bytes]) -> bytes:
    """The content of SHA256SUMS for these files."""
    return "".join(f"{sha256(data).hexdigest()}  {n}\n" for n, data in files.items()).encode()


write_container: Final = rules.write_zip
"""A ZIP file of these files, in their order."""
read_container: Final = by_the_rules(rules.read_zip)
"""The files of a ZIP file that `write_container` could have written."""


OPERATOR: Final = "operator"
ACCOUNT: Final = "account"
CAPTURE_PROCESS: Final = "capture_process"
NOTICE_EVENT: Final = "notice_event"
CLEARANCE: Final = "clearance"
FULFILMENT: Final = "fulfilment"
OVERRIDE: Final = "override"
ERASURE: Final = "erasure"
TYPES: Final = tuple(rules.PREFIXES)
"""The types of the records in a dossier, in their order."""
PDF: Final = "dossier.pdf"
NOTICE: Final = "notice.json"
POLICY: Final = "policy.txt"
VERIFY_PY: Final = "verify.py"
VERIFY_HTML: Final = "verify.html"
README: Final = "README.txt"

GUIDE: Final = (resources.files(__package__) / "dossier_readme.txt").read_bytes()
"""README.txt of every dossier."""


DossierRecord: TypeAlias = rules.Placed
"""A checked record: the log contains it, and it binds the shown data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """A checked dossier; nothing else in the file was checked."""

    records: tuple[DossierRecord, ...]
    notice: Mapping[str, Any] | None
    """The notice that was acknowledged; None without an acknowledgment."""
    order: Mapping[str, Any]
    """The order for programs, as `verify.py` prints it: what joins the records, what is missing."""
    remarks: tuple[str, ...]
    """Text: oddities that are no failure."""
    origin: str
    size: int
    root: bytes
    cosigned: tuple[tuple[str, int], ...]
    """Witnesses whose cosignature was checked: name, and time in Unix seconds."""
    timestamps: tuple[tuple[str, str], ...]
    """Time-stamps of the checkpoint: file, and the time in it (RFC 3339, UTC)."""
    key_fingerprint: str
    words: tuple[str, ...] = ()
    """The records, their links and gaps, for people."""
    summary: tuple[str, ...] = ()
    """The verdict in at most six lines, as paper can give it: no key of it was checked."""

    def of(self, type_: str) -> list[DossierRecord]:
        """The records of this type."""
        return [record for record in self.records if record.type == type_]


class RecordFiles(NamedTuple):
    """The three files of a record."""

    record: bytes
    disclosures: tuple[str, ...]
    proof: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DossierContents:
    """The content of a dossier; the records by identifier, in their order."""

    records: Mapping[str, RecordFiles]
    notice: bytes | None
    policy: bytes
    timestamps: Mapping[str, bytes] = field(default_factory=dict)
    pdf: bytes
    verify_py: bytes
    verify_html: bytes
    readme: bytes = GUIDE


def write_dossier(contents: DossierContents) -> bytes:
    files: dict[str, bytes] = {}
    for id_, record in contents.records.items():
        names = [f"records/{id_}{ending}" for ending in rules.ENDINGS]
        written = (record.record, canonical_json(list(record.disclosures)), record.proof)
        files |= zip(names, written, strict=True)
    if contents.notice is not None:
        files[NOTICE] = contents.notice
    files |= {POLICY: contents.policy, **dict(sorted(contents.timestamps.items()))}
    files |= {PDF: contents.pdf, VERIFY_PY: contents.verify_py, VERIFY_HTML: contents.verify_html}
    files[README] = contents.readme
    return write_container({**files, SUMS: sums(files)})


def evidence_of(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The checked files of a dossier, by name and in order: all but the PDF and the readers."""
    return {name: data for name, data in files.items() if name not in rules.AFTER}


def verifier(name: str) -> bytes:
    """A verifier that goes with evidence, as this release has it."""
    return (resources.files(offline) / name).read_bytes()


def other_verifiers(files: Mapping[str, bytes]) -> list[str]:
    """The names of a dossier's verifiers that differ from those of this release."""
    return [name for name in (VERIFY_PY, VERIFY_HTML) if files[name] != verifier(name)]
