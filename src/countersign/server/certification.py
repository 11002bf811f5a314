"""Drafts of certifications: a deployment's facts about one record, for a person to certify.

The templates are `certifications/*.md`. A draft asserts nothing: facts that only a person can state
are blanks, and it is never signed. No text of a law is in it that `docs/certifications.md` does not
name a source of.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

from countersign import __version__
from countersign.base.values import parse_rfc3339, rfc3339, rfc3339_ms
from countersign_evidence.cli.support import printable
from countersign_evidence.dossier import Dossier, DossierRecord
from countersign_evidence.note import cosigned_at
from countersign_evidence.offline.verify import BOUND
from countersign_evidence.record import ACKNOWLEDGMENT

KINDS: Final = ("902-11", "902-13", "902-14", "ca-1552", "ca-1553", "ca-1561")
DESCRIPTION: Final = "docs/system-description.md"
_VERSION: Final = re.compile(r"^\*\*Version ([0-9]+)\*\*", re.MULTILINE)
_BLANK: Final = re.compile(r"`(\[(?:FILL IN|COUNSEL)[^`]*\])`")
_MARKUP: Final = re.compile(r"([\\`*\[\]<>#|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_FOLDER: Final = Path(__file__).parent / "certifications"
_WORDS: Final[dict[str, Any]] = tomllib.loads((_FOLDER / "words.toml").read_text("utf-8"))


class ExhibitRecord(NamedTuple):
    """A record in an exhibit: its identifier and type, the hex SHA-256 of its bytes."""

    id: str
    type: str
    digest: str


class Exhibit(NamedTuple):
    """A verified file to attach to the certification."""

    name: str
    digest: str
    size: int
    verdict: str
    """The result of verifying it, in one line."""
    records: Sequence[ExhibitRecord]


class CertificationFacts(NamedTuple):
    """The data that fills a draft."""

    subject: DossierRecord
    dossier: Dossier
    """The proof of the record, and of the parties that it names."""
    checkpoint_at: datetime
    """When the checkpoint was made, by the service's clock."""
    erased_at: datetime | None


class CertificationDraft(NamedTuple):
    """A draft, its facts by name, and the blanks for a person to fill in."""

    text: str
    facts: Mapping[str, str]
    blanks: tuple[str, ...]


def draft(kind: str, facts: CertificationFacts, exhibit: Exhibit | None) -> CertificationDraft:
    """The draft of one of KINDS, in Markdown."""
    record = facts.subject.record
    known = dict(_facts(record, facts))
    if exhibit is not None:
        known |= {
            "exhibit": exhibit.name,
            "exhibit_sha256": exhibit.digest,
            "exhibit_bytes": str(exhibit.size),
            "exhibit_verified": exhibit.verdict,
        }
    template = Template((_FOLDER / f"{kind}.md").read_text("utf-8"))
    text = template.substitute(
        notice=_WORDS["notice"] + (_WORDS["test"] if record["mode"] == "test" else ""),
        facts=_section(known, exhibit, _processes(facts)),
        person="`[FILL IN: full name]`",
        operator=_operator(facts),
        system=f"version {known['system_description_version']}, SHA-256 "
        f"`{known['system_description_sha256']}`",
        exhibit=_exhibit(exhibit),
        record_sha256=known["record_sha256"],
        key_fingerprint=facts.dossier.key_fingerprint,
        signature=_WORDS["signature"],
    )
    return CertificationDraft(text, known, tuple(_BLANK.findall(text)))


def _facts(record: Mapping[str, Any], facts: CertificationFacts) -> Iterator[tuple[str, str]]:
    """The facts that the evidence shows, by name; none is personal."""
    from countersign.server.guides import packaged  # noqa: PLC0415 - it is slow to load

    description = packaged(DESCRIPTION).read_bytes()
    yield record["type"], record["id"]
    yield "account", record["account"]
    yield "mode", record["mode"]
    yield from _acknowledged(record) if record["type"] == ACKNOWLEDGMENT else _decided(record)
    yield "record_version", str(record["v"])
    yield "record_sha256", facts.subject.digest
    for member, words in BOUND.items():
        if member in record:
            yield f"{member}_sha256", record[member] or f"no record of {words} was in force"
    if facts.erased_at is not None:
        yield "personal_fields", f"erased at {rfc3339_ms(facts.erased_at)}"
    proved = facts.dossier
    yield "log", proved.origin
    yield "entry", f"{facts.subject.position}, counted from 0, of {proved.size}"
    yield "root", proved.root.hex()
    yield "checkpoint_made_at", f"{rfc3339(facts.checkpoint_at)} by the clock of the service"
    yield "log_key_fingerprint", proved.key_fingerprint
    seen = [(name, "cosigned", cosigned_at(at)) for name, at in proved.cosigned]
    seen += [(name, "time-stamped", parse_rfc3339(at)) for name, at in proved.timestamps]
    others = [f"{how} by {name}" + (f" at {rfc3339(at)}" if at else "") for name, how, at in seen]
    yield "time_by_others", "; ".join(others) or "none: only the clock of the service"
    yield "software", f"Countersign {__version__}"
    version = _VERSION.search(description.decode())
    yield "system_description_version", version[1] if version else "unknown"
    yield "system_description_sha256", sha256(description).hexdigest()


def _acknowledged(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    capture = record["capture"]
    yield "accepted_at", f"{record['accepted_at']} by the clock of the service"
    yield "notice", f"{record['notice_id']} {record['notice_version']}"
    yield "notice_sha256", record["notice_digest"]
    yield "capture", _WORDS["captures"].get(capture, capture)
    if capture in _WORDS["not_distinguished"]:
        yield "not_distinguished", _WORDS["not_distinguished"][capture]
    yield "credential", record["credential"]


def _decided(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "decided_at", f"{record['at']} by the clock of the service"
    yield "acknowledgment", record["ack_id"] or "none: the vendor sent no valid identifier"
    yield "cleared", "yes" if record["cleared"] else f"no: {', '.join(record['reasons'])}"


def _section(known: Mapping[str, str], exhibit: Exhibit | None, processes: str) -> str:
    rows = [f"| {name.replace('_', ' ')} | {_plain(value)} |" for name, value in known.items()]
    lines = ["## Facts recorded by the deployment", "", "| Fact | Value |", "| --- | --- |", *rows]
    if exhibit is not None:
        lines += ["", "### The records in the exhibit", ""]
        lines += ["| Type | Record | SHA-256 |", "| --- | --- | --- |"]
        lines += [f"| {_plain(r.type)} | {_plain(r.id)} | `{r.digest}` |" for r in exhibit.records]
    return "\n".join(lines) + processes


def _party(facts: CertificationFacts, member: str) -> Mapping[str, Any] | None:
    """The record whose digest is in this member; None if there is no party."""
    named = facts.subject.record.get(member)
    return next((one.record for one in facts.dossier.records if one.digest == named), None)


def _processes(facts: CertificationFacts) -> str:
    """The parties and the capture process, from the bound records."""
    parts = []
    for member, title in (("operator_record", "operator"), ("account_record", "account")):
        found = _party(facts, member)
        if found is not None:
            stated = ("legal_name", "address", "licence", "contact")
            said = [f"{name.replace('_', ' ')}: {_plain(found[name] or '-')}" for name in stated]
            parts.append(f"The {title}, as recorded in the log: {'; '.join(said)}.")
    process = _party(facts, "capture_process")
    if process is not None:
        quoted = "\n".join(f"> {_plain(line)}" for line in process["statement"].splitlines())
        head = f"How the account says that it captures (version {process['version']}; not checked):"
        parts.append(f"{head}\n\n{quoted}")
    return "".join(f"\n\n{part}" for part in parts)


def _operator(facts: CertificationFacts) -> str:
    found = _party(facts, "operator_record")
    name = None if found is None else found["legal_name"]
    return _plain(name) if name else "`[FILL IN: legal name of the operator of the service]`"


def _exhibit(exhibit: Exhibit | None) -> str:
    if exhibit is None:
        return "Its SHA-256 is `[FILL IN: of the exhibit; --exhibit FILE computes it]`."
    return f"It is {_plain(exhibit.name)}, {exhibit.size} bytes, SHA-256 `{exhibit.digest}`."


def _plain(text: str) -> str:
    """A text that others wrote, on one line and without effect in Markdown."""
    return _MARKUP.sub(r"\\\1", printable(text, keep=""))
