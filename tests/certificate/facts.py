"""Checked dossiers to make PDFs of, true to the format of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any, Final

import msgspec

from countersign.core.dossiers.pdf import dossier_pdf
from countersign_evidence.canonical import canonical_json
from countersign_evidence.dossier import Dossier, DossierRecord
from countersign_evidence.record import (
    Record,
    Subject,
    bullet_digests,
    entropy_needed,
    make_records,
)

ACK_ID: Final = "ack_01m7xdxbmvex7t29vh2x05yyyq"
PROOF: Final = b"c2sp.org/tlog-proof@v1\nindex 41\n\nlog.example/v1/log/live/1\n42\nAAAA\n"
LINES: Final = (
    ("A", "Manufacturing more than three firearms per calendar year in California."),
    ("B", "Manufacturing a firearm using a three-dimensional printer or CNC milling machine."),
)
PERSONAL: Final[Mapping[str, Any]] = {
    "initials_per_line": ["JD", "J.D."],
    "session_id": "sess_8c1f",
    "cbid": "cbid_live_01fwhe4ydgfk1shh6w1g60eecf",
    "ip": {
        "ip": "203.0.113.7",
        "source": "body",
        "peer_ip": "192.0.2.10",
        "forwarded": None,
        "truncated": False,
    },
    "user_agent": {
        "user_agent": "Mozilla/5.0 (X11; Linux x86_64)",
        "source": "header",
        "truncated": False,
    },
}


def notice_bytes(lines: Sequence[tuple[str, str]] = LINES, **other: object) -> bytes:
    """A published notice; `other` are members to add or to replace."""
    members: dict[str, Any] = {
        "id": "ab1263",
        "version": "2026-01-01",
        "title": "California firearm manufacturing notice (AB 1263)",
        "heading": "It is generally a crime in California to do any of the following:",
        "bullets": [{"id": id_, "text": text} for id_, text in lines],
        "attestation_text": "I have received and read this notice, and I understand it.",
        "source_law": "Cal. Civ. Code § 3273.51",
        "source_bill": "AB 1263 (Gipson)",
        "source_url": "https://leginfo.legislature.ca.gov/",
        "jurisdiction": "US-CA",
        "language": "en",
        "effective_from": "2026-01-01",
    }
    return canonical_json(members | other)


def party(kind: str, index: int, **members: object) -> DossierRecord:
    """The record of a party, with the members in the format that a certificate uses."""
    no_one = {"legal_name": None, "address": None, "licence": None, "contact": None}
    about: dict[str, Any] = {} if kind == "capture_process" else no_one
    return checked(
        {
            "v": 2,
            "type": kind,
            "id": f"rec_01m7xdxbmvex7t29vh2x05yyy{index}",
            "mode": "live",
            "at": "2026-11-20T21:30:00.000Z",
            "previous": None,
            "_sd": [],
            **about,
            **members,
        },
        index=index,
    )


def checked(
    record: Mapping[str, Any], shown: Mapping[str, Any] | None = None, index: int = 41
) -> DossierRecord:
    """A record as a reader has it after all checks."""
    body = canonical_json(dict(record))
    return DossierRecord(
        id=record["id"],
        type=record["type"],
        record=dict(record),
        digest=sha256(body).hexdigest(),
        shown=dict(shown or {}),
        position=index,
    )


def with_parties(statement: str = "We show each line.") -> Dossier:
    """A dossier of an acknowledgment by a vendor whose parties are described in the log."""
    account = "acct_01kdtvz9n8f6ywn3x2qk4c7r5a"
    parties = {
        "operator_record": party("operator", 1, legal_name="Example Operator, Inc.", licence="L 1"),
        "account_record": party(
            "account", 2, account=account, name="shop", legal_name="Example Vendor, LLC"
        ),
        "capture_process": party(
            "capture_process", 3, account=account, version=3, statement=statement
        ),
    }
    made = made_dossier(subject={member: one.digest for member, one in parties.items()})
    return replace(made, records=(*parties.values(), *made.records))


def made_dossier(
    personal: Mapping[str, Any] | None = None,
    *,
    lines: Sequence[tuple[str, str]] = LINES,
    notice: Mapping[str, Any] | None = None,
    subject: Mapping[str, Any] | None = None,
    show: Sequence[str] | None = None,
    **changed: Any,  # noqa: ANN401 - each field has its own type
) -> Dossier:
    """A dossier of a live acknowledgment alone, all of it shown, unless arguments differ.

    Args:
        personal: values of personal fields, in place of those of `PERSONAL`.
        lines: id and text of each line of the notice.
        notice: members of the notice to add or replace.
        subject: members of the record to replace.
        show: the names of the personal fields that are shown; None for all.
        changed: fields of the dossier to replace.
    """
    fields = dict(PERSONAL)
    fields["initials_per_line"] = ["JD"] * len(lines) if lines is not LINES else ["JD", "J.D."]
    fields |= personal or {}
    body = notice_bytes(lines, **(notice or {}))
    said: dict[str, Any] = {
        "id": ACK_ID,
        "account": "acct_01kdtvz9n8f6ywn3x2qk4c7r5a",
        "mode": "live",
        "notice_id": "ab1263",
        "notice_version": "2026-01-01",
        "notice_digest": sha256(body).hexdigest(),
        "notice_version_source": "asserted",
        "capture": "vendor_api",
        "credential": "secret_key",
        "accepted_at": "2026-11-20T21:31:00.123Z",
        "account_record": None,
        "operator_record": None,
    }
    sealed = Record(
        Subject(bullets=bullet_digests(lines), **(said | dict(subject or {}))),
        list(fields.items()),
        bytes(range(entropy_needed(len(fields)))),
    )
    make_records([sealed])
    shown = {name: value for name, value in fields.items() if show is None or name in show}
    dossier = Dossier(
        records=(checked(msgspec.json.decode(sealed.body), shown),),
        notice=msgspec.json.decode(body),
        order={"joins": [], "missing": ["a clearance"]},
        remarks=(),
        origin="log.example/v1/log/live/1",
        size=42,
        root=sha256(b"root").digest(),
        cosigned=(),
        timestamps=(),
        key_fingerprint=sha256(b"key").hexdigest(),
    )
    return replace(dossier, **changed)


def evidence(dossier: Dossier) -> dict[str, bytes]:
    """Attached files, with made-up proofs and keys."""
    files: dict[str, bytes] = {}
    for one in dossier.records:
        name = f"records/{one.id}"
        files[f"{name}.json"] = canonical_json(one.record)
        files[f"{name}.disclosures.json"] = canonical_json([*one.shown])
        files[f"{name}.tlog-proof"] = PROOF
    return files | {
        "notice.json": canonical_json(dict(dossier.notice or {})),
        "policy.txt": b"log A\n",
    }


def make_certificate(dossier: Dossier) -> bytes:
    """The PDF of the dossier."""
    return dossier_pdf(dossier, evidence(dossier))


@cache
def plain_certificate() -> bytes:
    """The PDF of `made_dossier()`, made once: most tests only read it."""
    return make_certificate(made_dossier())
