"""Facts to make certificates from, true to the format of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from countersign.acknowledgments.certificate_facts import CertificateFacts
from countersign.evidence.canonical import canonical_json
from countersign.evidence.record import (
    Draft,
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


def party(kind: str, **members: object) -> bytes:
    """The record of a party, true to the format in what a certificate takes from it."""
    nobody = {"legal_name": None, "address": None, "licence": None, "contact": None}
    about: dict[str, Any] = {} if kind == "capture_process" else nobody
    return canonical_json({"v": 1, "type": kind, "previous": None, **about, **members})


def with_parties(statement: str = "We show each line.") -> CertificateFacts:
    """Facts of an acknowledgment by a vendor whose parties are described in the log."""
    account = "acct_01kdtvz9n8f6ywn3x2qk4c7r5a"
    parties = {
        "operator_record": party("operator", legal_name="Example Operator, Inc.", licence="L 1"),
        "account_record": party(
            "account", account=account, name="shop", legal_name="Example Vendor, LLC"
        ),
        "capture_process": party(
            "capture_process", account=account, version=3, statement=statement
        ),
    }
    digests = {member: sha256(body).hexdigest() for member, body in parties.items()}
    return made_facts(subject=digests, parties=(*parties.values(),))


def made_facts(
    personal: Mapping[str, Any] | None = None,
    *,
    lines: Sequence[tuple[str, str]] = LINES,
    notice: Mapping[str, Any] | None = None,
    subject: Mapping[str, Any] | None = None,
    show: Sequence[str] | None = None,
    **changed: Any,  # noqa: ANN401 - each field has its own type
) -> CertificateFacts:
    """Facts of a live acknowledgment of which everything is shown, unless arguments differ.

    Args:
        personal: values of personal fields, in the place of those of `PERSONAL`.
        lines: id and text of each line of the notice.
        notice: members of the notice to add or replace.
        subject: members of the record to replace.
        show: the names of the personal fields that are shown; None for all.
        changed: fields of the facts to replace.
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
    draft = Draft(
        Subject(bullets=bullet_digests(lines), **(said | dict(subject or {}))),
        list(fields.items()),
        bytes(range(entropy_needed(len(fields)))),
    )
    [sealed] = make_records([draft])
    shown = zip(fields, sealed.disclosures, strict=True)
    facts = CertificateFacts(
        record=sealed.body,
        parties=(),
        shown=tuple(one for name, one in shown if show is None or name in show),
        erased_at=None,
        notice=body,
        review=None,
        account_name=None,
        proof=PROOF,
        origin="log.example/v1/log/live/1",
        index=41,
        size=42,
        root=sha256(b"root").digest(),
        checkpoint_at=datetime(2026, 11, 20, 21, 31, 1, tzinfo=UTC),
        key_fingerprint=sha256(b"key").hexdigest(),
        witnesses=(),
        timestamps=(),
        verify_url="https://log.example/verify",
    )
    return replace(facts, **changed)
