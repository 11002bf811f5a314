"""Examples for the OpenAPI document: one coherent story, checked against the schemas by a test."""

from typing import Any, Final

from countersign.notices.model import notice_digest, published_bytes
from countersign.notices.notice_file import parse_notice_file, shipped_notice_files

CLEARANCE_ID: Final = "clr_01km9x4zq2e6t9m0r5c7v3w8xa"
FULFILMENT_ID: Final = "ful_01kmcg2a7ke4d1p8z6h0s5n9ry"
ACK_ID: Final = "ack_01km9x4v8gen3rr1p6q1s2t3v4"
CBID: Final = "cbid_test_5d0kz9mq3v7w1xj2r8t4y6n0pa"
SESSION: Final = "cs_8f14e45f"

_content: Final = parse_notice_file(next(iter(shipped_notice_files().values())))
_agent: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

NOTICE: Final[dict[str, Any]] = {
    "notice_id": _content.id,
    "version": _content.version,
    "title": _content.title,
    "heading": _content.heading,
    "bullets": [bullet.text for bullet in _content.bullets],
    "attestation_text": _content.attestation_text,
    "source_law": _content.source_law,
    "source_bill": _content.source_bill,
}
NOTICES: Final[dict[str, Any]] = {
    "data": [
        {
            "notice_id": _content.id,
            "title": _content.title,
            "jurisdiction": _content.jurisdiction,
            "language": _content.language,
            "version": _content.version,
            "versions": 1,
        }
    ],
    "next_cursor": None,
}
_digest: Final = notice_digest(published_bytes(_content))
VERSIONS: Final[dict[str, Any]] = {
    "data": [
        {
            "notice_id": _content.id,
            "version": _content.version,
            "status": "in_force",
            "digest": _digest,
            "lines": len(_content.bullets),
            "effective_from": _content.effective_from,
            "published_at": "2026-11-20T21:30:00Z",
            "reviewed_at": None,
            "reviewed_against": None,
            "source_url": _content.source_url,
            "editorial": list(_content.editorial),
            "text_gaps": list(_content.text_gaps),
        }
    ],
    "next_cursor": None,
}
_initials: Final = ["JD" for _ in _content.bullets]
ACKNOWLEDGE: Final[dict[str, Any]] = {
    "initials_per_line": _initials,
    "session_id": SESSION,
    "cbid": CBID,
    "ip": "203.0.113.7",
    "user_agent": _agent,
    "notice_version": _content.version,
}
ACKNOWLEDGE_MIN: Final[dict[str, Any]] = {"initials_per_line": _initials}
RECEIPT: Final[dict[str, Any]] = {
    "ack_id": ACK_ID,
    "notice_id": _content.id,
    "notice_version": _content.version,
}
ACKNOWLEDGMENT: Final[dict[str, Any]] = {
    "ack_id": ACK_ID,
    "livemode": False,
    "notice_id": _content.id,
    "notice_version": _content.version,
    "notice_version_source": "asserted",
    "notice_digest": _digest,
    "initials_per_line": _initials,
    "session_id": SESSION,
    "cbid": CBID,
    "ip": "203.0.113.7",
    "ip_source": "body",
    "peer_ip": "198.51.100.20",
    "user_agent": _agent,
    "user_agent_source": "body",
    "user_agent_truncated": False,
    "capture": "vendor_api",
    "accepted_at": "2026-11-20T21:31:00Z",
    "clearance_id": CLEARANCE_ID,
    "evidence": {"status": "pending", "log": None, "index": None},
    "erased_at": None,
}
ACKNOWLEDGMENTS: Final[dict[str, Any]] = {"data": [ACKNOWLEDGMENT], "next_cursor": None}
VERIFY: Final[dict[str, Any]] = {
    "provider_identity_session_id": "vs_example",
    "shipping_zip": "94111",
    "test_mode": True,
}
VERIFIED: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "verified",
    "expires_at": "2027-11-20T21:31:00Z",
    "message": "The buyer is verified. Later purchases at integrated vendors will be instant.",
}
UNDERAGE: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "failed",
    "expires_at": None,
    "message": "The buyer could not be verified. See reasons.",
    "reasons": ["age_below_minimum"],
}
STATUS: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "verified",
    "verified_at": "2026-11-20T21:31:00Z",
    "expires_at": "2027-11-20T21:31:00Z",
}

EVENT_ID: Final = "evt_01km9x4vab7wqrr1p6q1s2t3v5"
ENDPOINT_ID: Final = "whe_01km9wzt3hfs8v8j2c7n5k9m0d"
EVENT: Final[dict[str, Any]] = {
    "id": EVENT_ID,
    "type": "acknowledgment.created",
    "livemode": False,
    "created_at": "2026-11-20T21:31:00Z",
    "data": {"ack_id": ACK_ID},
}
EVENTS: Final[dict[str, Any]] = {"data": [EVENT], "next_cursor": None}
NEW_ENDPOINT: Final[dict[str, Any]] = {
    "url": "https://shop.example.com/countersign",
    "event_types": ["acknowledgment.created", "buyer.verified"],
}
ENDPOINT: Final[dict[str, Any]] = {
    "endpoint_id": ENDPOINT_ID,
    "livemode": False,
    **NEW_ENDPOINT,
    "description": "",
    "created_at": "2026-11-20T21:30:00Z",
    "disabled_at": None,
    "disabled_reason": None,
    "secrets": [
        {
            "public_key": "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
            "created_at": "2026-11-20T21:30:00Z",
            "expires_at": None,
        }
    ],
}
ENDPOINT_MADE: Final[dict[str, Any]] = {
    **ENDPOINT,
    "secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}
ENDPOINTS: Final[dict[str, Any]] = {"data": [ENDPOINT], "next_cursor": None}
ATTEMPT: Final[dict[str, Any]] = {
    "attempted_at": "2026-11-20T21:31:00Z",
    "duration_ms": 41,
    "outcome": "delivered",
    "http_status": 204,
}
DELIVERIES: Final[dict[str, Any]] = {
    "data": [
        {"event": EVENT, "status": "succeeded", "next_attempt_at": None, "attempts": [ATTEMPT]}
    ],
    "next_cursor": None,
}

PROOF = """\
c2sp.org/tlog-proof@v1
extra eyJfc2QiOlsi…
index 812
wLUEo/sPK9jOB705DFJ+9w6XvQzodvrVdmAocIyWW3c=

evidence.example.com/v1/log/test/1
815
cF1PqiisCigZpguJ8gu1oSE3FMFDDzWqMo1Fr0xILvc=

— evidence.example.com/v1/log/test/1 G0vEBk7Bej1zBbURuczWTG8sE7FssgwZe3Dk…
"""

POLICY = """\
log evidence.example.com/v1/log/test/1+8ba75e9d+ASdptqLHYwtWEO2zYL9ls21V0FRYpjAoo5pixlR/M183
quorum none
"""

_signed: Final = "eyJhbGciOiJFZERTQSIsImtpZCI6InRlc3QtY2xl…"
_obligations: Final = [{"type": "compared", "what": "zip"}]
CLEAR_MIN: Final[dict[str, Any]] = {
    "ack_id": ACK_ID,
    "cbid": CBID,
    "session_id": SESSION,
    "shipping_zip": "94111",
}
CLEAR: Final[dict[str, Any]] = CLEAR_MIN | {
    "product_class": "accessory",
    "shipping_address": {"line1": "1 Main Street", "state": "CA", "postal_code": "94111"},
}
CLEARED: Final[dict[str, Any]] = {
    "clearance_id": CLEARANCE_ID,
    "cleared": True,
    "reasons": [],
    "obligations": _obligations,
    "expires_at": "2026-11-21T21:31:05Z",
    "token": _signed,
}
NOT_CLEARED: Final[dict[str, Any]] = {
    "clearance_id": CLEARANCE_ID,
    "cleared": False,
    "reasons": ["acknowledgment_too_old", "buyer_expired"],
    "obligations": [],
    "expires_at": None,
    "token": None,
}
FULFIL: Final[dict[str, Any]] = {
    "carrier": "UPS",
    "tracking_number": "1Z999AA10123456784",
    "shipped_at": "2026-11-21T16:05:00Z",
    "adult_signature_obtained": True,
}
FULFILLED: Final[dict[str, Any]] = {
    "fulfilment_id": FULFILMENT_ID,
    "clearance_id": CLEARANCE_ID,
    "closed_at": "2026-11-21T21:02:11Z",
}
CLEARANCE: Final[dict[str, Any]] = {
    "clearance_id": CLEARANCE_ID,
    "livemode": False,
    "ack_id": ACK_ID,
    "cbid": CBID,
    "session_id": SESSION,
    "shipping_zip": "94111",
    "shipping_address": CLEAR["shipping_address"],
    "product_class": "accessory",
    "cleared": True,
    "reasons": [],
    "obligations": _obligations,
    "created_at": "2026-11-20T21:31:05Z",
    "expires_at": "2026-11-21T21:31:05Z",
    "token": _signed,
    "fulfilments": [
        FULFIL
        | {
            "fulfilment_id": FULFILMENT_ID,
            "clearance_id": CLEARANCE_ID,
            "reported_at": "2026-11-21T21:02:11Z",
            "delivered_at": None,
        }
    ],
    "closed_at": "2026-11-21T21:02:11Z",
    "evidence": {"status": "pending", "log": None, "index": None},
    "erased_at": None,
}
CLEARANCES: Final[dict[str, Any]] = {"data": [CLEARANCE], "next_cursor": None}

TEST_CLOCK: Final[dict[str, Any]] = {
    "now": "2026-11-20T21:31:00Z",
    "real_time": "2026-11-20T21:31:00Z",
    "ahead_seconds": 0,
}
TEST_CLOCK_AHEAD: Final[dict[str, Any]] = {
    "now": "2026-11-21T21:31:00Z",
    "real_time": "2026-11-20T21:31:00Z",
    "ahead_seconds": 86400,
}
MOVED: Final[dict[str, Any]] = {
    "cbid": CBID,
    "status": "failed",
    "verified_at": None,
    "expires_at": None,
    "reasons": ["age_below_minimum"],
}
TRIGGERED: Final[dict[str, Any]] = {
    "id": EVENT_ID,
    "type": "buyer.revoked",
    "livemode": False,
    "created_at": "2026-11-20T21:31:00Z",
    "data": {"cbid": CBID},
    "triggered": True,
}
FAULT: Final[dict[str, Any]] = {"fault": "timeout", "calls": 2, "delay_seconds": 0}
NO_FAULT: Final[dict[str, Any]] = {"fault": None, "calls": None, "delay_seconds": None}
