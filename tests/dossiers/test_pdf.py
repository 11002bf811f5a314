"""The PDF of a dossier has the checked facts, nothing else, and the same bytes each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

import pytest

from countersign.core.dossiers.pdf import maker
from countersign_evidence.canonical import canonical_json
from countersign_evidence.dossier import TYPES, Dossier, DossierRecord
from tests.certificate.facts import ACK_ID, made_dossier, make_certificate
from tests.certificate.reader import pages_of, words_of

AT: Final = "2026-11-20T21:31:05.000Z"
ACCOUNT_ID: Final = "acct_01kdtvz9n8f6ywn3x2qk4c7r5a"
CLR: Final = "clr_01m7xdxbmvex7t29vh2x05yyyq"
PARTICULARS: Final = {
    "legal_name": "Example Operator, Inc.",
    "address": "1 Main St, Sacramento",
    "licence": "FFL 1-23",
    "contact": "records@example.com",
    "previous": None,
}


def a_record(
    kind: str, id_: str, members: Mapping[str, Any], shown: Mapping[str, Any] | None = None
) -> DossierRecord:
    """A record of version 2, as a reader has it after all checks."""
    record = {"v": 2, "type": kind, "id": id_, "mode": "live", "at": AT, "_sd": [], **members}
    body = canonical_json(record)
    return DossierRecord(
        id=id_, type=kind, record=record, digest=sha256(body).hexdigest(),
        shown=dict(shown or {}), position=TYPES.index(kind),
    )  # fmt: skip


def rec(number: int) -> str:
    return f"rec_01m7xdxbmvex7t29vh2x05yyy{number}"


def an_acknowledgment(**changed: Any) -> tuple[DossierRecord, Mapping[str, Any]]:  # noqa: ANN401
    made = made_dossier(**changed)
    assert made.notice
    return made.records[0]._replace(position=4), made.notice


def an_order(mode: str = "live", **changed: Any) -> Dossier:  # noqa: ANN401
    acknowledgment, notice = an_acknowledgment(subject={"mode": mode}, **changed)
    records = (
        a_record("operator", rec(1), PARTICULARS),
        a_record("account", rec(2), {**PARTICULARS, "account": ACCOUNT_ID, "name": "Shop",
                                     "legal_name": "Example Vendor, LLC"}),
        a_record("capture_process", rec(3), {"account": ACCOUNT_ID, "version": 3,
                                             "statement": "We show each line.\nThe buyer types."}),
        a_record("notice_event", rec(4), {"event": "reviewed", "notice_id": "ab1263",
                                          "notice_version": "2026-01-01", "notice_digest": "ab"}),
        acknowledgment,
        a_record("verification", "ver_01m7xdxbmvex7t29vh2x05yyyq",
                 {"account": ACCOUNT_ID, "provider": "persona", "simulated": False},
                 {"result": {"status": "verified", "reasons": []}, "cbid": "cbid_live_x"}),
        a_record("clearance", CLR, {"account": ACCOUNT_ID, "ack_id": ACK_ID, "cleared": True,
                                    "reasons": [], "obligations": [{"label": "Adult signature"}],
                                    "expires_at": "2026-11-21T21:31:05Z"},
                 {"shipping": {"zip": "95814", "address": None, "product_class": "accessory"}}),
        a_record("fulfilment", "ful_01m7xdxbmvex7t29vh2x05yyyq",
                 {"account": ACCOUNT_ID, "clearance_id": CLR, "adult_signature_obtained": True,
                  "shipped_at": "2026-11-22T17:00:00Z", "delivered_at": None},
                 {"carrier": "UPS", "tracking_number": "1Z"}),
    )  # fmt: skip
    return Dossier(
        records=tuple(one._replace(record={**one.record, "mode": mode}) for one in records),
        notice=MappingProxyType(notice),
        order={
            "joins": [f"{CLR} names {ACK_ID} as its acknowledgment"],
            "missing": ["events of the notice, such as its review"],
        },
        remarks=(),
        origin="log.example/v1/log/live/1",
        size=42,
        root=sha256(b"root").digest(),
        cosigned=(("witness.example/w1", 1_795_300_000),),
        timestamps=(("timestamps/1.tsr", "2026-11-20T21:31:10Z"),),
        key_fingerprint=sha256(b"key").hexdigest(),
    )


def test_a_judge_reads_who_what_when_and_how_in_one_document() -> None:
    """The parties, a timeline in both times, the lines, the capture, joins, and missing parts."""
    words = words_of(make_certificate(an_order()))
    for expected in (
        "Dossier of an Order",
        "Example Operator, Inc.",
        "Example Vendor, LLC",
        "licence FFL 1-23",
        "2026-11-20 21:31:00.123 UTC 2026-11-20 13:31:00.123 PST The initials were accepted by",
        f"2026-11-20 13:31:05 PST The order was cleared by the service's clock; {CLR}",
        "2026-11-22 09:00:00 PST The order was shipped by the vendor's report",
        "more than three firearms per calendar year in California. JD",
        "The vendor described it as follows (version 3",
        "We show each line.",
        f"{CLR} names {ACK_ID} as its acknowledgment",
        "events of the notice, such as its review",
        "witness.example/w1, 2026-11-",
        "the clock of timestamps/1.tsr, a time-stamp authority",
        "status: verified",
        "zip: 95814",
        "1Z a personal field, disclosed",
        "Adult signature obtained yes",
        "What this does not prove",
    ):
        assert expected in words, expected
    assert "TEST EVIDENCE" not in words


def test_a_dossier_agrees_with_the_certificate_of_its_acknowledgment() -> None:
    """Whose words the notice has, its gaps, the sender of the initials, and whose word it is."""
    notice = {"editorial": ["title"], "text_gaps": ["(E) is missing"]}
    pdf = make_certificate(an_order(notice=notice))
    words = words_of(pdf)
    for expected in (
        "this service accepted, from the account acct_",
        "On 2026-11-20 21:31:05 UTC = 2026-11-20 13:31:05 PST this service cleared the order.",
        "Buyer not named in the evidence; as buyer identifier: cbid_live_",
        "Made with Countersign",
        "Version asserted: the vendor named it when it submitted the initials",
        "Law Cal. Civ. Code § 3273.51; AB 1263 (Gipson)",
        "Official text https://leginfo.legislature.ca.gov/",
        "Editorial wording the publisher's own words, not the law's: title",
        "Gaps in the text (E) is missing as stated by the publisher",
        "Captured The vendor's server sent it (vendor_api).",
        "203.0.113.7 asserted by the vendor in its request",
        "That the buyer was shown the notice and typed these initials",
        "That the buyer was shown the notice. This document shows the text",
        "carrier, tracking number, whether an adult signed",
        "What this service's clock shows is the word of its operator.",
        "In a browser: open https://log.example/verify, or the file verify.html of the dossier",
    ):
        assert expected in words, expected
    assert "[U+" not in words
    assert "Check page" in words


def test_a_dossier_without_gaps_claims_no_more_than_it_can_name() -> None:
    """No reader can know whether anything else was left out."""
    words = words_of(make_certificate(replace(an_order(), order={"joins": [], "missing": []})))
    assert "Nothing that a dossier can name is missing." in words


def test_the_same_dossier_gives_the_same_bytes_which_name_their_maker() -> None:
    """So a reader of this release can make it again and compare."""
    assert make_certificate(an_order()) == make_certificate(an_order())
    assert maker() in make_certificate(an_order())


def test_a_dossier_of_test_evidence_is_marked_in_red_on_every_page() -> None:
    """No one takes a rehearsal for a sale."""
    pages = pages_of(make_certificate(an_order("test")))
    assert len(pages) > 1
    assert all("TEST EVIDENCE" in page for page in pages)


@pytest.mark.parametrize("kept", ["clearance", "acknowledgment"])
def test_a_dossier_of_one_record_names_the_missing_ones(kept: str) -> None:
    """Without parties, clearance or acknowledgment, each absence is in words."""
    whole = an_order()
    alone = replace(
        whole,
        records=tuple(one for one in whole.records if one.type == kept),
        notice=whole.notice if kept == "acknowledgment" else None,
        order={"joins": [], "missing": ["a clearance"]}, cosigned=(), timestamps=(),
    )  # fmt: skip
    words = words_of(make_certificate(alone))
    assert "nothing to join to it" in words
    assert "a clearance" in words
    assert "not described in the log" in words
    assert "did not rewrite the whole log" in words
    has_words = "three firearms per calendar year" in words
    assert has_words == (kept == "acknowledgment")


def test_hostile_text_in_any_record_breaks_nothing() -> None:
    """All that anyone wrote is data."""
    hostile = '#eval("1") *x* \u202egnp.exe \u05e9\u05dc\u05d5\u05dd ' + "W" * 500
    order = an_order()
    records = tuple(
        one._replace(record={**one.record, "statement": hostile, "legal_name": hostile})
        for one in order.records
    )
    words = words_of(make_certificate(replace(order, records=records)))
    assert '#eval("1") *x* [U+202E]gnp.exe' in words


@pytest.mark.parametrize(("version", "reviewed"), [("2026-01-01", True), ("zz", False)])
def test_a_review_of_another_version_is_no_review(version: str, reviewed: bool) -> None:
    """Two versions can have the same text, and only one of them a review."""
    order = an_order()
    event = {"notice_version": version, "at": "2026-11-01T00:00:00.000Z"}
    records = tuple(
        one._replace(record={**one.record, **event}) if one.type == "notice_event" else one
        for one in order.records
    )
    words = words_of(make_certificate(replace(order, records=records)))
    assert ("Reviewed the operator noted on" in words) is reviewed
    assert ("no note from before the acknowledgment" in words) is not reviewed


def test_a_check_at_another_address_is_said_to_have_an_unknown_responder() -> None:
    """The member by itself, an address, says nothing to a reader."""
    order = an_order()
    records = tuple(
        one._replace(record={**one.record, "endpoint": "http://127.0.0.1:18433"})
        if one.type == "verification"
        else one
        for one in order.records
    )
    words = words_of(make_certificate(replace(order, records=records)))
    assert (
        "Asked at http://127.0.0.1:18433 asked at another address than the provider's own; it "
        "is not known what answered there"
    ) in words
